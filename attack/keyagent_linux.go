package attack

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// keyAgents plays the caller's agents of keys, and notes what they are asked that is not forwarded. Each has two keys,
// one of which the sandbox may use.
type keyAgents struct {
	brief     *protocol.Brief
	other     string // token: the comment of the ssh-agent's other key
	signature string // token: what another key signs
	host      string // token: what the gpg-agent tells of its host
	listeners []net.Listener
	wg        sync.WaitGroup

	mu   sync.Mutex
	open int        // guarded by mu: connections
	all  []net.Conn // guarded by mu
	seen []string   // guarded by mu
}

// startKeyAgents is P37.
func startKeyAgents(w *world) error {
	a := &keyAgents{brief: &w.brief, other: w.token("the comment of another key"), signature: w.token("a signature with another key"), host: w.token("what a gpg-agent tells of its host")}
	w.agents = a
	w.brief.Agents = protocol.Agents{
		SSH: w.brief.Home + "/ssh-agent.sock", GPG: w.brief.Home + "/gpg-agent.sock", Key: []byte("the forwarded key"), Other: []byte("the other key"),
		Grip: strings.Repeat("0A", 20), OtherGrip: strings.Repeat("0B", 20),
	}
	for name, serve := range map[string]func(net.Conn) error{w.brief.Agents.SSH: a.ssh, w.brief.Agents.GPG: a.gpg} {
		l, err := net.Listen("unix", name)
		if err != nil {
			return err
		}
		a.listeners = append(a.listeners, l)
		a.wg.Go(func() { a.accept(l, serve) })
	}
	return nil
}

// forwardAgents is P37.
func forwardAgents(w *world, s *paddock.Spec) {
	s.Policy.KeyAgents = []paddock.KeyAgent{
		{Kind: paddock.KeyAgentSSH, Socket: w.brief.Agents.SSH, Keys: []string{"forwarded"}},
		{Kind: paddock.KeyAgentGPG, Socket: w.brief.Agents.GPG, Keys: []string{w.brief.Agents.Grip}},
	}
}

func (a *keyAgents) notef(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if text := fmt.Sprintf(format, args...); !slices.Contains(a.seen, text) {
		a.seen = append(a.seen, text)
	}
}

// asked returns what was noted. Nil was asked nothing.
func (a *keyAgents) asked() []string {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.seen)
}

func (a *keyAgents) close() error {
	if a == nil {
		return nil
	}
	var errs []error
	for _, l := range a.listeners {
		errs = append(errs, l.Close())
	}
	a.mu.Lock()
	for _, c := range a.all {
		_ = c.Close() // which may be closed
	}
	a.mu.Unlock()
	a.wg.Wait()
	return errors.Join(errs...)
}

func (a *keyAgents) accept(l net.Listener, serve func(net.Conn) error) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		a.mu.Lock()
		a.open++
		many := a.open > 2*protocol.AgentConnections
		a.all = append(a.all, conn)
		a.mu.Unlock()
		if many {
			a.notef("a key agent has more than %d connections", 2*protocol.AgentConnections)
		}
		a.wg.Go(func() {
			for serve(conn) == nil {
			}
			conn.Close()
			a.mu.Lock()
			a.open--
			a.mu.Unlock()
		})
	}
}

func text(to []byte, parts ...[]byte) []byte {
	for _, p := range parts {
		to = append(binary.BigEndian.AppendUint32(to, uint32(len(p))), p...)
	}
	return to
}

// ssh answers one request to the ssh-agent.
func (a *keyAgents) ssh(conn net.Conn) error {
	var length [4]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n == 0 || n > 256<<10 {
		a.notef("the ssh-agent got a message of %d bytes", n)
		return io.ErrUnexpectedEOF
	}
	request := make([]byte, n)
	if _, err := io.ReadFull(conn, request); err != nil {
		return err
	}
	const success = 6
	b := a.brief.Agents
	answer := []byte{success}
	switch kind, rest := request[0], request[1:]; {
	case kind == 11 && n == 1:
		answer = text([]byte{12, 0, 0, 0, 2}, b.Key, []byte("forwarded"), b.Other, []byte(a.other))
	case kind == 13 && bytes.HasPrefix(rest, text(nil, b.Key)):
		answer = text([]byte{14}, []byte("signature"))
		data := rest[4+len(b.Key):]
		if len(data) < 8 || int(binary.BigEndian.Uint32(data)) != len(data)-8 {
			a.notef("the ssh-agent got a request to sign that is malformed")
		}
	case kind == 13:
		a.notef("the ssh-agent was asked to sign with another key")
		answer = text([]byte{14}, []byte(a.signature))
	case kind == 27 && bytes.HasPrefix(rest, text(nil, []byte("session-bind@openssh.com"))):
	default:
		a.notef("the ssh-agent got a request %d of %d bytes", kind, n)
	}
	_, err := conn.Write(text(nil, answer))
	return err
}

// gpg serves one connection to the gpg-agent.
func (a *keyAgents) gpg(conn net.Conn) error {
	if _, err := io.WriteString(conn, "OK Pleased to meet you, process "+a.host+"\n"); err != nil {
		return err
	}
	b := a.brief.Agents
	key, asking, taken := "", false, 0
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		verb, args, _ := strings.Cut(lines.Text(), " ")
		answer := "OK\n"
		switch {
		case asking && verb == "D" && args != "" && taken+len(args) <= 8192:
			taken += len(args)
			continue
		case asking && verb == "END" && args == "":
			asking, answer = false, "D text\nOK\n"
		case asking: // at once, as libassuan; the rest is taken for commands
			asking, answer = false, "ERR 1 no data\n"
		case verb == "PKDECRYPT" && args == "":
			asking, taken, answer = true, 0, "INQUIRE CIPHERTEXT\n"
		case verb == "PKSIGN" && args == "" && key == b.OtherGrip:
			answer = "D " + a.signature + "\nOK\n"
		case verb == "PKSIGN" && args == "":
			answer = "S PINENTRY_LAUNCHED " + a.host + "\nD signature\nOK\n"
		case slices.Contains([]string{"SIGKEY", "SETKEY", "KEYINFO", "READKEY", "HAVEKEY"}, verb):
			if key = args; args != b.Grip {
				a.notef("the gpg-agent got %q", lines.Text())
			}
		case verb == "SETKEYDESC" && strings.Contains(args, a.brief.Marker):
			a.notef("a dialog of the gpg-agent has a text of the sandbox")
		case verb == "BYE" && args == "": // it closes the connection, as gpg-agent does
			_, err := io.WriteString(conn, "OK closing connection\n")
			return cmp.Or(err, io.EOF)
		case slices.Contains([]string{"RESET", "NOP", "BYE", "SETHASH", "SETKEYDESC"}, verb), lines.Text() == "GETINFO version":
		default:
			a.notef("the gpg-agent got %.60q", lines.Text())
			answer = "D " + a.host + "\nOK\n"
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return err
		}
	}
	return io.EOF
}
