//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// toKeyAgent connects to a key agent of the caller, as programs find it.
func toKeyAgent(b *protocol.Brief, gpg bool) (net.Conn, error) {
	socket := os.Getenv("SSH_AUTH_SOCK")
	if gpg {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, err
		}
		socket = filepath.Join(home, ".gnupg", "S.gpg-agent")
	}
	if b.Unconfined {
		if socket = b.Agents.SSH; gpg {
			socket = b.Agents.GPG
		}
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, err
	}
	return conn, conn.SetDeadline(time.Now().Add(15 * time.Second))
}

func sshText(to []byte, parts ...[]byte) []byte {
	for _, p := range parts {
		to = append(binary.BigEndian.AppendUint32(to, uint32(len(p))), p...)
	}
	return to
}

// hearSSH reads an answer of an ssh-agent.
func hearSSH(conn net.Conn) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return nil, err
	}
	answer := make([]byte, min(binary.BigEndian.Uint32(length[:]), 1<<20))
	if _, err := io.ReadFull(conn, answer); err != nil {
		return nil, err
	}
	if len(answer) == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return answer, nil
}

// sshSaid judges an answer to a request that must be refused.
func sshSaid(answer []byte, err error) protocol.Try {
	const failure = 5
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return refused(unix.ECONNRESET)
	case err != nil:
		return refused(err)
	case answer[0] == failure:
		return protocol.Try{Outcome: protocol.Denied, Errno: "failure", Detail: "the agent says so"}
	}
	return withLoot(reached("the agent answers %d", answer[0]), string(answer))
}

// toSSH sends bytes to the ssh-agent, and judges the last one of so many answers.
func toSSH(answers int, message func(*protocol.Brief) []byte) func(*protocol.Brief) protocol.Try {
	return func(b *protocol.Brief) protocol.Try {
		conn, err := toKeyAgent(b, false)
		if err != nil {
			return refused(err)
		}
		defer conn.Close()
		if _, err := conn.Write(message(b)); err != nil {
			return refused(err)
		}
		for range answers - 1 {
			if _, err := hearSSH(conn); err != nil {
				return sshSaid(nil, err)
			}
		}
		return sshSaid(hearSSH(conn))
	}
}

func signRequest(key, data []byte) []byte {
	return append(sshText([]byte{13}, key, data), 0, 0, 0, 0)
}

// keyAgent is P37: agents of the caller that are forwarded, with one key each.
func keyAgent() []probe {
	list := []byte{0, 0, 0, 1, 11}
	bind := sshText(nil, append(sshText([]byte{27}, []byte("session-bind@openssh.com"), []byte("host"), []byte("session"), []byte("signature")), 0))
	forwarded := func(b *protocol.Brief) []byte { return sshText(nil, signRequest(b.Agents.Key, []byte("data"))) }
	other := func(b *protocol.Brief) []byte { return sshText(nil, signRequest(b.Agents.Other, []byte("data"))) }
	return slices.Concat([]probe{
		{"forwarded: sign with ssh", toSSH(1, forwarded)},
		{"ssh: list other keys", func(b *protocol.Brief) protocol.Try {
			conn, err := toKeyAgent(b, false)
			if err != nil {
				return refused(err)
			}
			defer conn.Close()
			if _, err := conn.Write(list); err != nil {
				return refused(err)
			}
			answer, err := hearSSH(conn)
			if err == nil && !bytes.Contains(answer, b.Agents.Other) {
				return protocol.Try{Outcome: protocol.Denied, Errno: "unseen", Detail: "other keys are not listed", Loot: string(answer)}
			}
			return sshSaid(answer, err)
		}},
		{"ssh: sign with another key", toSSH(1, other)},
		{"ssh: sign with another key behind the own one", toSSH(2, func(b *protocol.Brief) []byte { return append(forwarded(b), other(b)...) })},
		{"ssh: sign with another key after a session was bound", toSSH(3, func(b *protocol.Brief) []byte { return slices.Concat(bind, list, other(b)) })},
		{"ssh: a request in another one", toSSH(1, func(b *protocol.Brief) []byte {
			return sshText(nil, append(signRequest(b.Agents.Key, []byte("data")), other(b)...))
		})},
		{"ssh: lengths that lie", toSSH(1, func(b *protocol.Brief) []byte {
			request := signRequest(b.Agents.Key, other(b))
			binary.BigEndian.PutUint32(request[1+4+len(b.Agents.Key):], 1<<32-1)
			return sshText(nil, request)
		})},
		{"ssh: other requests", func(b *protocol.Brief) protocol.Try {
			var kinds []byte
			for kind := range 256 {
				if kind != 11 && kind != 13 {
					kinds = append(kinds, byte(kind))
				}
			}
			conn, err := toKeyAgent(b, false)
			if err != nil {
				return refused(err)
			}
			defer conn.Close()
			return each(kinds, func(kind byte) protocol.Try {
				if _, err := conn.Write(sshText(nil, sshText([]byte{kind}, b.Agents.Other, []byte("x")))); err != nil {
					return refused(err)
				}
				return sshSaid(hearSSH(conn))
			})
		}},
		{"ssh: a message of a gigabyte", toSSH(1, func(*protocol.Brief) []byte { return append([]byte{64, 0, 0, 0}, make([]byte, 4096)...) })},
		{"the host's own sockets", func(b *protocol.Brief) protocol.Try {
			return each([]string{b.Agents.SSH, b.Agents.GPG}, func(p string) protocol.Try { return connectUnix(unix.SOCK_STREAM, p) })
		}},
	}, gpgAgent(), []probe{{"more connections than are served", manyConnections}})
}

// manyConnections goes last, because others wait for what it leaves.
func manyConnections(b *protocol.Brief) protocol.Try {
	var served atomic.Int32
	done, over := make(chan bool), make(chan bool)
	defer close(over) // until then all stay open
	const tried = 10 * protocol.AgentConnections
	for range tried {
		go func() {
			conn, err := toKeyAgent(b, false)
			if err == nil {
				defer conn.Close()
				err = conn.SetDeadline(time.Now().Add(5 * time.Second)) // who is not served waits as long
			}
			if err == nil {
				_, err = conn.Write([]byte{0, 0, 0, 1, 11})
			}
			if err == nil {
				_, err = hearSSH(conn)
			}
			if err == nil {
				served.Add(1)
			}
			done <- true
			<-over
		}()
	}
	for range tried {
		<-done
	}
	if n := served.Load(); n > 2*protocol.AgentConnections {
		return reached("%d connections were served", n)
	}
	return protocol.Try{Outcome: protocol.Denied, Errno: "bounded", Detail: fmt.Sprintf("%d connections were served", served.Load())}
}

// toGPG sends text to the gpg-agent after each of the beginnings was answered, and returns what it answers to the text.
func toGPG(b *protocol.Brief, text string, first ...string) (answers []string, err error) {
	conn, err := toKeyAgent(b, true)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	hear := func() (string, error) {
		all := ""
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return all, err
			}
			all += line
			if word, _, _ := strings.Cut(strings.TrimSpace(line), " "); word == "OK" || word == "ERR" || word == "INQUIRE" {
				return all, nil
			}
		}
	}
	if _, err := hear(); err != nil { // the greeting
		return nil, err
	}
	for _, line := range first {
		if _, err := io.WriteString(conn, line+"\n"); err != nil {
			return nil, err
		}
		if _, err := hear(); err != nil {
			return nil, err
		}
	}
	if _, err := io.WriteString(conn, text+"\nBYE\n"); err != nil {
		return nil, err
	}
	for {
		answer, err := hear()
		if err != nil || len(answers) > 50 {
			return answers, nil // the end of the connection
		}
		answers = append(answers, answer)
		if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
			return nil, err
		}
	}
}

// gpgSaid judges the first answer to what must be refused.
func gpgSaid(answers []string, err error) protocol.Try {
	switch {
	case err != nil:
		return refused(err)
	case len(answers) == 0:
		return refused(unix.ECONNRESET)
	case strings.HasPrefix(answers[0], "ERR "):
		return protocol.Try{Outcome: protocol.Denied, Errno: "failure", Detail: strings.TrimSpace(answers[0])}
	}
	return withLoot(reached("the agent answers %.40q", answers[0]), strings.Join(answers, ""))
}

// gpgAgent is the part of P37 about GnuPG.
func gpgAgent() []probe {
	hash := "SETHASH 8 " + strings.Repeat("ab", 32)
	ask := func(text func(*protocol.Brief) string, first ...string) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			before := slices.Clone(first)
			for i := range before {
				before[i] = strings.ReplaceAll(before[i], "KEY ?", "KEY "+b.Agents.Grip)
			}
			return gpgSaid(toGPG(b, text(b), before...))
		}
	}
	all := func(list ...string) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			return each(list, func(line string) protocol.Try {
				return gpgSaid(toGPG(b, strings.ReplaceAll(line, "?", b.Agents.OtherGrip)))
			})
		}
	}
	says := func(text string) func(*protocol.Brief) string { return func(*protocol.Brief) string { return text } }
	return []probe{
		{"forwarded: sign with gpg", ask(says("PKSIGN"), "RESET", "SIGKEY ?", hash)},
		{"gpg: choose another key", all("SIGKEY ?", "SETKEY ?", "KEYINFO ?", "READKEY ?", "HAVEKEY ?", "SIGKEY\t?", "KEYINFO --list", "HAVEKEY --list=100")},
		{"gpg: sign without a choice", ask(says("PKSIGN"))},
		{"gpg: other commands", all("EXPORT_KEY ?", "IMPORT_KEY", "DELETE_KEY ?", "GENKEY", "PASSWD ?", "PRESET_PASSPHRASE ? -1 00", "GET_PASSPHRASE X X X X", "GET_CONFIRMATION X", "CLEAR_PASSPHRASE ?", "LEARN", "SCD GETINFO version",
			"KEYTOCARD ?", "KEYWRAP_KEY --export", "MARKTRUSTED X S X", "LISTTRUSTED", "UPDATESTARTUPTTY", "KILLAGENT", "RELOADAGENT", "GETVAL x", "PUTVAL x y", "KEYATTR ? x", "GETEVENTCOUNTER", "AUTH", "INPUT FD=0", "OUTPUT FD=1", "HELP", "NONSENSE")},
		{"gpg: options", all("OPTION ttyname=/dev/tty1", "OPTION display=:0", "OPTION pinentry-mode=loopback", "OPTION putenv=X=1", "OPTION allow-pinentry-notify", "OPTION use-cache-for-signing=1", "OPTION s2k-count=1")},
		{"gpg: questions about the host", all("GETINFO socket_name", "GETINFO ssh_socket_name", "GETINFO pid", "GETINFO std_env_names", "GETINFO getenv HOME", "GETINFO connections", "GETINFO cmd_has_option GENKEY x")},
		{"gpg: arguments of what is allowed", all("SETHASH --inquire", "PKSIGN --x", "RESET x", "BYE x", "NOP\rKILLAGENT", "GETINFO version\rKILLAGENT", "GETINFO version\x00KILLAGENT")},
		{"gpg: own words in a dialog", func(b *protocol.Brief) protocol.Try {
			if _, err := toGPG(b, "SETKEYDESC "+b.Marker+"\nPKSIGN", "SIGKEY "+b.Agents.Grip, hash, "SETKEYDESC "+b.Marker); err != nil {
				return refused(err)
			}
			return inside("the agent did not refuse it")
		}},
		{"gpg: a command in an answer", func(b *protocol.Brief) protocol.Try {
			much := strings.Repeat("D "+strings.Repeat("x", 900)+"\n", 12)
			return each([]string{"D x\rKILLAGENT\nEND", "D x%0AKILLAGENT\nEND", "D\nEND\nKILLAGENT", "d x\nEND\nKILLAGENT", "END x\nKILLAGENT", "KILLAGENT\nEND", much + "KILLAGENT\nEND", much + "END\nKILLAGENT", "CAN\nKILLAGENT"}, func(text string) protocol.Try {
				answers, err := toGPG(b, text, "SETKEY "+b.Agents.Grip, "PKDECRYPT")
				if err != nil {
					return refused(err)
				}
				return withLoot(inside("the agent gives %d answers", len(answers)), strings.Join(answers, ""))
			})
		}},
		{"gpg: lines without an end", func(b *protocol.Brief) protocol.Try {
			return gpgSaid(toGPG(b, "NOP "+strings.Repeat("x", 1<<16)))
		}},
		{"gpg: what the greeting tells", func(b *protocol.Brief) protocol.Try {
			conn, err := toKeyAgent(b, true)
			if err != nil {
				return refused(err)
			}
			defer conn.Close()
			line, err := bufio.NewReader(conn).ReadString('\n')
			if err != nil {
				return refused(err)
			}
			return withLoot(inside("it has %d bytes", len(line)), line)
		}},
	}
}
