package keyagent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// uses keeps what a forwarder reports.
type uses struct {
	mu  sync.Mutex
	all []Use // guarded by mu
}

func (u *uses) add(one Use) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all = append(u.all, one)
}

func (u *uses) used(_ context.Context, one Use) error {
	u.add(one)
	return nil
}

func (u *uses) list() []Use {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.all)
}

// serve forwards an agent, which agent plays, and returns the sandbox's end of a connection.
func serve(t *testing.T, a paddock.KeyAgent, agent func(net.Conn)) (net.Conn, *uses) {
	t.Helper()
	seen := &uses{}
	guest, ours := net.Pipe()
	var wg sync.WaitGroup
	f := &Forwarder{Agent: a, Sandbox: "sb-1", Used: seen.used, Refused: seen.add, Dial: func(context.Context) (net.Conn, error) {
		near, far := net.Pipe()
		wg.Go(func() {
			defer far.Close()
			agent(far)
		})
		return near, nil
	}}
	ctx, cancel := context.WithCancel(t.Context())
	wg.Go(func() { f.Serve(ctx, ours) })
	t.Cleanup(func() {
		guest.Close()
		cancel()
		wg.Wait()
	})
	return guest, seen
}

func ask(t *testing.T, conn net.Conn, request []byte) []byte {
	t.Helper()
	go func() { _ = writeSSH(conn, request) }()
	answer, err := readSSH(conn)
	if err != nil {
		t.Fatalf("%x: %v", request, err)
	}
	return answer
}

// sshAgentWith plays an agent with a key, and keeps the requests that it gets.
func sshAgentWith(key, comment []byte, got *uses) func(net.Conn) {
	return func(conn net.Conn) {
		for {
			request, err := readSSH(conn)
			if err != nil {
				return
			}
			got.add(Use{Request: string(request)})
			answer := []byte{sshFailure}
			switch request[0] {
			case sshRequestIdentities:
				answer = encodeKeys([]sshKey{{blob: key, comment: comment}})
			case sshSignRequest:
				answer = appendText([]byte{sshSignResponse}, []byte("signature"))
			case sshExtension:
				answer = []byte{sshSuccess}
			}
			if writeSSH(conn, answer) != nil {
				return
			}
		}
	}
}

func TestAnAgentIsAskedOnlyWhatIsForwarded(t *testing.T) {
	key, got := []byte("key"), &uses{}
	conn, seen := serve(t, paddock.KeyAgent{Kind: paddock.KeyAgentSSH}, sshAgentWith(key, []byte("work"), got))
	sign := func(key, data string, flags uint32) []byte {
		return binary.BigEndian.AppendUint32(appendText(appendText([]byte{sshSignRequest}, []byte(key)), []byte(data)), flags)
	}
	bind := func(session string, last ...byte) []byte {
		b := appendText([]byte{sshExtension}, []byte(sshBind))
		for _, part := range []string{"host key", session, "signature"} {
			b = appendText(b, []byte(part))
		}
		return append(b, last...)
	}
	failure := []byte{sshFailure}
	for _, row := range []struct {
		what            string
		request, answer []byte
	}{
		{"list", []byte{sshRequestIdentities}, encodeKeys([]sshKey{{blob: key, comment: []byte("work")}})},
		{"list with more", []byte{sshRequestIdentities, 0}, failure},
		{"sign", sign("key", "data", 2), appendText([]byte{sshSignResponse}, []byte("signature"))},
		{"sign with another key", sign("other", "data", 0), failure},
		{"sign with a flag that nobody knows", sign("key", "data", 8), failure},
		{"sign with more", append(sign("key", "data", 0), 0), failure},
		{"sign with less", sign("key", "data", 0)[:12], failure},
		{"bind", bind("session", 1), []byte{sshSuccess}},
		{"bind with more", bind("session", 1, 0), failure},
		{"bind a session with a long name", bind(strings.Repeat("x", 129), 0), failure},
		{"bind for what is neither", bind("session", 2), failure},
		{"query", appendText([]byte{sshExtension}, []byte("query")), failure},
		{"an extension without a name", []byte{sshExtension}, failure},
		{"add", []byte{17, 0, 0, 0, 1, 'x'}, failure}, {"remove", []byte{18}, failure}, {"remove all", []byte{19}, failure},
		{"lock", appendText([]byte{22}, []byte("word")), failure}, {"an answer", []byte{sshSignResponse}, failure}, {"nothing known", []byte{255}, failure},
	} {
		if answer := ask(t, conn, row.request); !bytes.Equal(answer, row.answer) {
			t.Errorf("%s: %x", row.what, answer)
		}
	}
	for _, u := range got.list() {
		if kind := u.Request[0]; kind != sshRequestIdentities && kind != sshSignRequest && kind != sshExtension {
			t.Errorf("the agent got %x", u.Request)
		}
		if u.Request[0] == sshSignRequest && u.Request != string(sign("key", "data", 2)) || u.Request[0] == sshExtension && u.Request != string(bind("session", 1)) {
			t.Errorf("the agent got %x", u.Request)
		}
	}
	all := seen.list()
	if !slices.ContainsFunc(all, func(u Use) bool {
		return u.Request == "sign" && u.Key == fingerprint(key) && u.Comment == "work" && u.Refused == ""
	}) {
		t.Errorf("no signature in %+v", all)
	}
	if !slices.ContainsFunc(all, func(u Use) bool { return u.Request == "remove all keys" && u.Refused == notForwarded }) {
		t.Errorf("no refusal in %+v", all)
	}
}

func TestOnlyNamedKeysAreForwarded(t *testing.T) {
	for _, name := range []string{"work", fingerprint([]byte("key"))} {
		conn, _ := serve(t, paddock.KeyAgent{Kind: paddock.KeyAgentSSH, Keys: []string{name}}, sshAgentWith([]byte("key"), []byte("work"), &uses{}))
		if answer := ask(t, conn, []byte{sshRequestIdentities}); len(answer) < 10 {
			t.Errorf("%s: %x", name, answer)
		}
	}
	conn, _ := serve(t, paddock.KeyAgent{Kind: paddock.KeyAgentSSH, Keys: []string{"other"}}, sshAgentWith([]byte("key"), []byte("work"), &uses{}))
	if answer := ask(t, conn, []byte{sshRequestIdentities}); !bytes.Equal(answer, encodeKeys(nil)) {
		t.Errorf("%x", answer)
	}
	if answer := ask(t, conn, append(appendText(appendText([]byte{sshSignRequest}, []byte("key")), nil), 0, 0, 0, 0)); !bytes.Equal(answer, []byte{sshFailure}) {
		t.Errorf("%x", answer)
	}
}

func TestAMessageThatIsTooLongEndsTheConnection(t *testing.T) {
	for _, head := range [][]byte{{0, 0, 0, 0}, {0, 4, 0, 1}, {255, 255, 255, 255}} {
		conn, seen := serve(t, paddock.KeyAgent{Kind: paddock.KeyAgentSSH}, sshAgentWith(nil, nil, &uses{}))
		if _, err := conn.Write(head); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("%x: %v", head, err)
		}
		if all := seen.list(); len(all) != 1 || all[0].Refused != malformed {
			t.Errorf("%x: %+v", head, all)
		}
	}
}

func TestFingerprintsAreThoseOfOpenSSH(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("there is no ssh-keygen")
	}
	dir := t.TempDir()
	run := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), "ssh-keygen", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", args, out)
		}
		return string(out)
	}
	run("-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, "ca"))
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		name := filepath.Join(dir, kind)
		run("-q", "-t", kind, "-N", "", "-f", name)
		run("-q", "-s", filepath.Join(dir, "ca"), "-I", "id", name+".pub")
		for _, file := range []string{name + ".pub", name + "-cert.pub"} {
			want := strings.Fields(run("-l", "-f", file))[1]
			if got := fingerprint(publicBlob(t, file)); got != want {
				t.Errorf("%s: %s, and ssh-keygen says %s", file, got, want)
			}
		}
	}
}

func TestEqualRefusalsAreReportedTogether(t *testing.T) {
	var seen uses
	f := &Forwarder{Agent: paddock.KeyAgent{Kind: paddock.KeyAgentSSH}, Refused: seen.add}
	for range 1000 {
		f.refuse("lock", notForwarded)
	}
	f.End()
	total := 0
	for _, u := range seen.list() {
		total += u.Count
	}
	if n := len(seen.list()); total != 1000 || n > 20 {
		t.Errorf("%d reports of %d refusals", n, total)
	}
	f.End()
	if len(seen.list()) > 20 {
		t.Error("they are reported again")
	}
}

// gpgAgentThat plays a gpg-agent that keeps what it gets, and takes lines as libassuan does.
func gpgAgentThat(got *uses) func(net.Conn) {
	return func(conn net.Conn) {
		_, _ = io.WriteString(conn, "OK Pleased to meet you, process 4711\n")
		lines := bufio.NewScanner(conn)
		asking, taken := false, 0
		for lines.Scan() {
			line := lines.Text()
			got.add(Use{Request: line})
			verb, _, _ := strings.Cut(line, " ")
			answer := "OK\n"
			switch {
			case asking && strings.HasPrefix(line, "D "):
				if taken += len(line); taken <= gpgMaxData {
					continue
				}
				fallthrough // at once, and not after the end
			case asking && verb != "END":
				asking, answer = false, "ERR 67109139 Unknown IPC inquire <GPG Agent>\n"
			case asking:
				asking, answer = false, "S PADDING 0\nD plain\nOK\n"
			case verb == "PKDECRYPT":
				asking, taken, answer = true, 0, "S INQUIRE_MAXLEN 4096\nINQUIRE CIPHERTEXT\n"
			case verb == "PKSIGN":
				answer = "S PINENTRY_LAUNCHED 4711 curses 1.2.1 /dev/tty1 xterm :0\nD signature\nOK\n"
			case verb == "D" || verb == "END" || verb == "CAN" || verb == "HAVEKEY":
				answer = "ERR 67109139 Unknown IPC command <GPG Agent>\n"
			}
			if _, err := io.WriteString(conn, answer); err != nil {
				return
			}
		}
	}
}

func TestAGPGAgentIsAskedOnlyWhatIsForwarded(t *testing.T) {
	key, other := strings.Repeat("0A", 20), strings.Repeat("0B", 20)
	got := &uses{}
	conn, seen := serve(t, paddock.KeyAgent{Kind: paddock.KeyAgentGPG, Keys: []string{key}}, gpgAgentThat(got))
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	lines := bufio.NewReader(conn)
	read := func() string {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	read() // the greeting
	const ok = "OK\n"
	hash := "SETHASH 8 ABcd" + strings.Repeat("0", 60)
	for _, row := range []struct{ request, answer string }{
		{"RESET", ok}, {"GETINFO version", ok}, {"GETINFO socket_name", gpgForbidden}, {"OPTION agent-awareness=2.1.0", ok}, {"OPTION putenv=X=1", gpgForbidden}, {"OPTION ttyname=/dev/tty1", gpgForbidden},
		{"PKSIGN", gpgForbidden}, {"HAVEKEY " + key, "ERR 67109139 Unknown IPC command <GPG Agent>\n"}, {"HAVEKEY", gpgForbidden}, {"HAVEKEY --list=1000", gpgForbidden}, {"KEYINFO " + key, ok}, {"KEYINFO --list", gpgForbidden}, {"READKEY " + other, gpgForbidden},
		{"SIGKEY " + other, gpgForbidden}, {"sigkey " + strings.ToLower(key), ok}, {"SETKEYDESC Please", ok}, {"PKSIGN", gpgForbidden}, {hash, ok},
		{"SETHASH --inquire", gpgForbidden}, {"SETHASH 8 abc", gpgForbidden}, {"SETHASH 8 ABcd", gpgForbidden}, {"SETHASH 10 " + strings.Repeat("ab", 63), gpgForbidden}, {"SETHASH 10 " + strings.Repeat("ab", 65), gpgForbidden}, {"SETHASH --hash=../x ab", gpgForbidden}, {"PKSIGN --x", gpgForbidden}, {"PKDECRYPT -- AB", gpgForbidden},
		{"PKSIGN", "D signature\nOK\n"}, {"PKSIGN -- ABCD", "D signature\nOK\n"}, {"PKDECRYPT", "S INQUIRE_MAXLEN 4096\nINQUIRE CIPHERTEXT\n"}, {"D (enc-%76al)%0AKILLAGENT\nEND", "S PADDING 0\nD plain\nOK\n"},
		{"PKDECRYPT", "S INQUIRE_MAXLEN 4096\nINQUIRE CIPHERTEXT\n"}, {"CAN", "ERR 67109139 Unknown IPC inquire <GPG Agent>\n"}, {"PKSIGN", gpgForbidden},
		{"GENKEY", gpgForbidden}, {"EXPORT_KEY " + key, gpgForbidden}, {"DELETE_KEY " + key, gpgForbidden}, {"GET_PASSPHRASE X X X X", gpgForbidden}, {"SCD SERIALNO", gpgForbidden},
		{"KILLAGENT", gpgForbidden}, {"D data", gpgForbidden}, {"END", gpgForbidden}, {"NONSENSE", gpgForbidden}, {"SETKEYDESC a\tb", gpgForbidden}, {"RESET\x00", gpgForbidden}, {"BYE", ok},
	} {
		go func() { _, _ = io.WriteString(conn, row.request+"\n") }()
		answer := ""
		for range strings.Count(row.answer, "\n") {
			answer += read()
		}
		if answer != row.answer {
			t.Errorf("%s: %q", row.request, answer)
		}
	}
	if rest, err := io.ReadAll(conn); len(rest) > 0 || err != nil {
		t.Errorf("after BYE there is %q: %v", rest, err)
	}
	var asked []string
	for _, u := range got.list() {
		asked = append(asked, u.Request)
	}
	const describe = "SETKEYDESC A+command+in+a+sandbox+of+Paddock+asks+to+%s+with+your+key.%%0ASandbox:+sb-1%%0AKeygrip:+%s"
	want := []string{
		"RESET", "GETINFO version", "HAVEKEY " + key, "KEYINFO " + key, "SIGKEY " + key, hash,
		fmt.Sprintf(describe, "sign", key), "PKSIGN", fmt.Sprintf(describe, "sign", key), "PKSIGN", fmt.Sprintf(describe, "decrypt", key), "PKDECRYPT", "D (enc-val)%0AKILLAGENT", "END",
		fmt.Sprintf(describe, "decrypt", key), "PKDECRYPT", "CAN", "BYE",
	}
	if !slices.Equal(asked, want) {
		t.Errorf("the agent got %q", asked)
	}
	var used []string
	for _, u := range seen.list() {
		if u.Refused == "" {
			used = append(used, strings.TrimSpace(u.Request+" "+u.Key+" "+u.Digest))
		}
	}
	signed := "sign " + key + " sha256:abcd" + strings.Repeat("0", 60)
	if want := []string{signed, signed, "decrypt " + key}; !slices.Equal(used, want) {
		t.Errorf("reported are %q", used)
	}
}

// An agent that answers before it has read all takes the rest for commands. Then an answer must not pass for that to
// another command, as a signature for a failure.
func TestEachSignatureIsReportedWhateverAnAgentWasAnswered(t *testing.T) {
	key, hash := strings.Repeat("0A", 20), "SETHASH 8 "+strings.Repeat("ab", 32)
	for what, answer := range map[string]string{
		"too much": strings.Repeat("D "+strings.Repeat("x", 900)+"\n", 6) + "END\n", "a word alone": "D\nEND\n", "a small letter": "d x\nEND\n", "an end with more": "END x\n", "a cancellation": "CAN\n", "lines without data": strings.Repeat("D \n", gpgMaxData) + "END\n",
		"much": strings.Repeat("D "+strings.Repeat("x", 900)+"\n", 4) + "D " + strings.Repeat("%0A", 300) + "\nEND\n",
	} {
		t.Run(what, func(t *testing.T) {
			conn, seen := serve(t, paddock.KeyAgent{Kind: paddock.KeyAgentGPG}, gpgAgentThat(&uses{}))
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			c := &assuan{t: t, conn: conn, lines: bufio.NewReader(conn)}
			c.answer() // the greeting
			signatures := 0
			for _, line := range []string{"SETKEY " + key, hash, "PKDECRYPT", "", "SETKEY " + key, hash, "HAVEKEY " + key, "PKSIGN", "NOP", "HAVEKEY " + key, "PKSIGN", "NOP"} {
				if line == "" {
					line = strings.TrimSuffix(answer, "\n")
				}
				if data, _ := c.ask(line); data == "signature" {
					signatures++
				}
			}
			reported := slices.DeleteFunc(seen.list(), func(u Use) bool { return u.Request != "sign" || u.Refused != "" })
			if len(reported) != signatures {
				t.Errorf("the sandbox got %d signatures, and reported are %d", signatures, len(reported))
			}
		})
	}
}

// forgetfulAgent plays an agent that keeps what GnuPG's keeps of a command that it refuses: after SETHASH the hash before
// it, and after RESET everything. Its signature says what was signed.
func forgetfulAgent(conn net.Conn) {
	_, _ = io.WriteString(conn, "OK Pleased to meet you\n")
	lines := bufio.NewScanner(conn)
	key, kind, digest := "", "", ""
	for lines.Scan() {
		words, answer := strings.Fields(lines.Text()), "OK\n"
		switch words[0] {
		case "RESET":
			answer = "ERR 1 Not now\n"
		case "SIGKEY":
			if strings.HasPrefix(words[1], "FF") {
				answer = "ERR 2 No key\n"
				break
			}
			key = words[1]
		case "SETHASH":
			if words[1] == "255" {
				answer = "ERR 3 Unsupported\n"
				break
			}
			if kind = words[1]; len(words[2]) != 64 && kind != "10" {
				answer = "ERR 4 Unsupported length of hash\n"
				break
			}
			digest = words[2]
		case "PKSIGN":
			answer = "D signed " + key + " " + kind + " " + digest + "\nOK\n"
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}

func TestASignatureIsReportedWithItsHashWhateverAnAgentRefused(t *testing.T) {
	key, other, none := strings.Repeat("0A", 20), strings.Repeat("0B", 20), strings.Repeat("FF", 20)
	hash := "SETHASH 8 " + strings.Repeat("ab", 32)
	for what, line := range map[string]string{
		"a short hash": "SETHASH 8 " + strings.Repeat("cd", 15), "no hash": "SETHASH 8 ab", "a long hash": "SETHASH 8 " + strings.Repeat("cd", 48), "an unknown kind": "SETHASH 255 " + strings.Repeat("cd", 32),
		"another kind, and a short hash": "SETHASH 9 " + strings.Repeat("cd", 20), "another key": "SIGKEY " + none, "everything": "RESET",
	} {
		for _, again := range [][]string{nil, {"SIGKEY " + key}, {hash}, {"SIGKEY " + other, "SETHASH 10 " + strings.Repeat("ef", 64)}} {
			t.Run(fmt.Sprintf("%s, then %d", what, len(again)), func(t *testing.T) {
				conn, seen := serve(t, paddock.KeyAgent{Kind: paddock.KeyAgentGPG}, forgetfulAgent)
				_ = conn.SetDeadline(time.Now().Add(time.Minute))
				c := &assuan{t: t, conn: conn, lines: bufio.NewReader(conn)}
				c.answer() // the greeting
				var signed []string
				for _, line := range append([]string{"SIGKEY " + key, hash, "PKSIGN", line, "PKSIGN"}, append(again, "PKSIGN")...) {
					if data, end := c.ask(line); line == "PKSIGN" && end == "OK" {
						f := strings.Fields(data)
						signed = append(signed, f[1]+" "+map[string]string{"8": "sha256:", "9": "sha384:", "10": "sha512:"}[f[2]]+f[3])
					}
				}
				var reported []string
				for _, u := range seen.list() {
					if u.Refused == "" {
						reported = append(reported, u.Key+" "+u.Digest)
					}
				}
				if len(signed) == 0 || !slices.Equal(signed, reported) {
					t.Errorf("signed is %q, and reported is %q", signed, reported)
				}
			})
		}
	}
}

func TestWhatIsNotRecordedIsNotGiven(t *testing.T) {
	fail := func(context.Context, Use) error { return paddock.Unavailable }
	guest, ours := net.Pipe()
	defer guest.Close()
	dial := func(agent func(net.Conn)) func(context.Context) (net.Conn, error) {
		return func(context.Context) (net.Conn, error) {
			near, far := net.Pipe()
			go func() { defer far.Close(); agent(far) }()
			return near, nil
		}
	}
	f := &Forwarder{Agent: paddock.KeyAgent{Kind: paddock.KeyAgentSSH}, Used: fail, Refused: (&uses{}).add, Dial: dial(sshAgentWith([]byte("key"), nil, &uses{}))}
	go f.Serve(t.Context(), ours)
	request := append(appendText(appendText([]byte{sshSignRequest}, []byte("key")), []byte("data")), 0, 0, 0, 0)
	if answer := ask(t, guest, request); !bytes.Equal(answer, []byte{sshFailure}) {
		t.Errorf("ssh: %x", answer)
	}

	guest2, ours2 := net.Pipe()
	defer guest2.Close()
	f = &Forwarder{Agent: paddock.KeyAgent{Kind: paddock.KeyAgentGPG}, Used: fail, Refused: (&uses{}).add, Dial: dial(gpgAgentThat(&uses{}))}
	go f.Serve(t.Context(), ours2)
	c := &assuan{t: t, conn: guest2, lines: bufio.NewReader(guest2)}
	c.answer() // the greeting
	c.ask("SIGKEY " + strings.Repeat("0A", 20))
	c.ask("SETHASH 8 " + strings.Repeat("ab", 32))
	if data, end := c.ask("PKSIGN"); data != "" || end != "nothing" {
		t.Errorf("gpg: %q, %q", data, end)
	}
}

func TestASandboxDoesNotKeepAnAgentBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guest, ours := net.Pipe()
		f := &Forwarder{Agent: paddock.KeyAgent{Kind: paddock.KeyAgentSSH}, Refused: (&uses{}).add}
		done := make(chan struct{})
		go func() { f.Serve(t.Context(), ours); close(done) }()
		begin := time.Now()
		for range requestBurst + 3*requestRate {
			ask(t, guest, []byte{19})
		}
		if took := time.Since(begin); took < 2900*time.Millisecond { // of a clock that stands still while programs compute
			t.Errorf("it took %v", took)
		}
		guest.Close()
		<-done
	})
}

func TestThePurposeOfASignatureIsTold(t *testing.T) {
	login := func(method string, more ...string) []byte {
		b := append(appendText(nil, []byte("session")), 50)
		for _, part := range []string{"git", "ssh-connection", method} {
			b = appendText(b, []byte(part))
		}
		b = append(b, 1)
		for _, part := range append([]string{"ssh-ed25519", "key"}, more...) {
			b = appendText(b, []byte(part))
		}
		return b
	}
	signature := func(name string) []byte { return appendText([]byte("SSHSIG"), []byte(name)) }
	for want, data := range map[string][]byte{
		"signature for git": signature("git"), "login as git": login("publickey"), "signature for " + strings.Repeat("x", 64): signature(strings.Repeat("x", 300)),
		"login as git at the host with the key " + fingerprint([]byte("host key")): login("publickey-hostbound-v00@openssh.com", "host key"),
	} {
		if got := purpose(data); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, data := range []string{"", "text", "SSHSIG", "SSHSIG\xff\xff\xff\xff", string(login("password")), string(login("publickey")[:20])} {
		if got := purpose([]byte(data)); got != "" {
			t.Errorf("%q: %q", data, got)
		}
	}
}

func TestKeyAgentsOfASpecAreChecked(t *testing.T) {
	good := paddock.KeyAgent{Kind: paddock.KeyAgentSSH, Socket: "/run/agent", Keys: []string{"SHA256:x", "me@work"}}
	if err := Check([]paddock.KeyAgent{good, {Kind: paddock.KeyAgentGPG, Socket: "/run/gpg", Keys: []string{strings.Repeat("aB", 20)}}}); err != nil {
		t.Error(err)
	}
	for what, change := range map[string]func(*paddock.KeyAgent){
		"kind": func(a *paddock.KeyAgent) { a.Kind = "x" }, "no socket": func(a *paddock.KeyAgent) { a.Socket = "" }, "a relative one": func(a *paddock.KeyAgent) { a.Socket = "agent" },
		"a detour": func(a *paddock.KeyAgent) { a.Socket = "/a/../b" }, "NUL": func(a *paddock.KeyAgent) { a.Socket = "/a\x00" }, "no name": func(a *paddock.KeyAgent) { a.Keys = []string{""} },
		"a line": func(a *paddock.KeyAgent) { a.Keys = []string{"a\nb"} }, "no keygrip": func(a *paddock.KeyAgent) { a.Kind = paddock.KeyAgentGPG }, "many": func(a *paddock.KeyAgent) { a.Keys = make([]string, 65) },
	} {
		bad := good
		change(&bad)
		if err := Check([]paddock.KeyAgent{bad}); !errors.Is(err, paddock.Invalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := Check([]paddock.KeyAgent{good, good}); !errors.Is(err, paddock.Invalid) {
		t.Errorf("twice: %v", err)
	}
}
