package keyagent

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A gnupg is a home of GnuPG with an agent.
type gnupg struct {
	t     *testing.T
	home  string
	extra string   // socket for clients that are restricted
	grips []string // of the keys: one that signs, and one that decrypts
}

// newGnuPG makes a home with a key, and starts its agent. The test is skipped where there is no GnuPG.
func newGnuPG(t *testing.T, passphrase, pinentry string) *gnupg {
	t.Helper()
	for _, name := range []string{"gpg", "gpg-agent", "gpgconf"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
	home, err := os.MkdirTemp("/tmp", "gpg") // not t.TempDir: paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	g := &gnupg{t: t, home: home}
	t.Cleanup(func() {
		_ = g.command("gpgconf", "--kill", "all").Run()
		_ = os.RemoveAll(home)
	})
	if pinentry != "" {
		if err := os.WriteFile(filepath.Join(home, "gpg-agent.conf"), []byte("pinentry-program "+pinentry+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g.run("gpg", "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", passphrase, "--quick-generate-key", "me@example.test", "default", "default", "never")
	for line := range strings.Lines(g.run("gpg", "--batch", "--with-keygrip", "--with-colons", "--list-secret-keys")) {
		if f := strings.Split(line, ":"); f[0] == "grp" {
			g.grips = append(g.grips, f[9])
		}
	}
	if len(g.grips) != 2 {
		t.Fatalf("keygrips %q", g.grips)
	}
	g.run("gpgconf", "--kill", "gpg-agent") // which forgets the passphrase
	g.extra = strings.TrimSpace(g.run("gpgconf", "--list-dirs", "agent-extra-socket"))
	// It waits five seconds for an agent to start, which is not enough on a busy machine. There it also takes the agent
	// that is about to end for one that runs.
	for range 100 {
		if g.command("gpgconf", "--launch", "gpg-agent").Run() == nil && g.answers() {
			return g
		}
	}
	t.Fatal("the agent of GnuPG does not start")
	return nil
}

// answers reports whether the agent greets whoever connects, and stays.
func (g *gnupg) answers() bool {
	c, err := net.Dial("unix", g.extra)
	if err != nil {
		return false
	}
	defer c.Close()
	lines := bufio.NewReader(c)
	for _, request := range []string{"", "NOP\n", "NOP\n"} {
		if _, err := io.WriteString(c, request); err != nil {
			return false
		}
		if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, "OK") {
			return false
		}
	}
	return g.command("gpg-connect-agent", "--no-autostart", "/bye").Run() == nil
}

func (g *gnupg) command(args ...string) *exec.Cmd {
	c := exec.Command(args[0], args[1:]...)
	c.Env = append(os.Environ(), "GNUPGHOME="+g.home, "LC_ALL=C")
	return c
}

func (g *gnupg) run(args ...string) string {
	g.t.Helper()
	out, err := g.command(args...).Output()
	if err != nil {
		g.t.Fatalf("%q: %v", args, err)
	}
	return string(out)
}

// client returns a connection that is forwarded to the agent, with what is reported.
func (g *gnupg) client(keys ...string) (*assuan, *uses) {
	g.t.Helper()
	seen := &uses{}
	guest, ours := net.Pipe()
	f := &Forwarder{Agent: paddock.KeyAgent{Kind: paddock.KeyAgentGPG, Keys: keys}, Sandbox: "sb-1", Used: seen.used, Refused: seen.add, Dial: func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", g.extra)
	}}
	done := make(chan struct{})
	go func() { f.Serve(g.t.Context(), ours); close(done) }()
	g.t.Cleanup(func() { guest.Close(); <-done })
	_ = guest.SetDeadline(time.Now().Add(time.Minute))
	c := &assuan{t: g.t, conn: guest, lines: bufio.NewReader(guest)}
	if _, end := c.answer(); end != "OK" {
		g.t.Fatalf("the greeting is %q", end)
	}
	return c, seen
}

// An assuan is a client of a gpg-agent.
type assuan struct {
	t     *testing.T
	conn  net.Conn
	lines *bufio.Reader
}

func (c *assuan) send(text string) { go func() { _, _ = io.WriteString(c.conn, text) }() }

// answer reads up to the line that ends an answer, and returns its data, and that line's first word.
func (c *assuan) answer() (data, end string) {
	for {
		line, err := c.lines.ReadString('\n')
		if err != nil {
			return data, "nothing"
		}
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch word {
		case "OK", "ERR", "INQUIRE":
			return data, word
		case "D":
			data += rest
		}
	}
}

func (c *assuan) ask(line string) (data, end string) {
	c.send(line + "\n")
	return c.answer()
}

func TestEachSignatureOfGnuPGIsReported(t *testing.T) {
	g := newGnuPG(t, "", "")
	for what, answer := range map[string]string{
		"too much data": strings.Repeat("D "+strings.Repeat("x", 900)+"\n", 6) + "END\n", "a word alone": "D\nEND\n", "a small letter": "d x\nEND\n",
		"an end with more": "END x\n", "a cancellation": "CAN\n", "nonsense": "D (nonsense)\nEND\n", "nothing": "END\n", "not a code": "D %\nEND\n", "a line of its own": "D x\rSIGKEY\nEND\n",
	} {
		t.Run(what, func(t *testing.T) {
			c, seen := g.client()
			signatures := 0
			ask := func(lines ...string) {
				for _, line := range lines { // whose answers may be those of others
					if data, _ := c.ask(line); strings.Contains(data, "sig-val") {
						signatures++
					}
				}
			}
			ask("SIGKEY "+g.grips[0], "SETHASH 8 "+strings.Repeat("ab", 32))
			if _, end := c.ask("PKDECRYPT"); end != "INQUIRE" {
				t.Fatalf("the answer is %q", end)
			}
			c.send(answer)
			if _, end := c.answer(); end == "OK" {
				t.Errorf("nothing was decrypted, and the answer is %q", end)
			}
			for range 8 {
				ask("SIGKEY "+g.grips[0], "SETHASH 8 "+strings.Repeat("ab", 32), "HAVEKEY "+strings.Repeat("0", 40), "PKSIGN", "NOP")
			}
			reported := slices.DeleteFunc(seen.list(), func(u Use) bool { return u.Request != "sign" || u.Refused != "" })
			if len(reported) != signatures {
				t.Errorf("the sandbox got %d signatures, and reported are %d", signatures, len(reported))
			}
		})
	}
}

func TestEachSignatureOfGnuPGIsReportedWithItsHash(t *testing.T) {
	g := newGnuPG(t, "", "")
	first, second := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	for what, line := range map[string]string{
		"a short hash": "SETHASH 8 " + strings.Repeat("cd", 15), "an unknown kind": "SETHASH 255 " + second, "a kind of another length": "SETHASH 10 " + second, "an unknown key": "SIGKEY " + strings.Repeat("0", 40), "everything": "RESET",
	} {
		t.Run(what, func(t *testing.T) {
			c, seen := g.client()
			signatures := 0
			for _, line := range []string{"SIGKEY " + g.grips[0], "SETHASH 8 " + first, "PKSIGN", line, "PKSIGN", "SIGKEY " + g.grips[0], "PKSIGN", "SETHASH 8 " + second, "PKSIGN"} {
				if data, _ := c.ask(line); strings.Contains(data, "sig-val") {
					signatures++
				}
			}
			var reported []string
			for _, u := range seen.list() {
				if u.Request == "sign" && u.Refused == "" {
					reported = append(reported, u.Digest)
				}
			}
			if signatures < 2 || len(reported) != signatures || reported[0] != "sha256:"+first || reported[signatures-1] != "sha256:"+second || slices.Contains(reported, "") {
				t.Errorf("the sandbox got %d signatures, and reported are %q", signatures, reported)
			}
		})
	}
}

func TestADialogOfGnuPGHasNoWordOfTheSandbox(t *testing.T) {
	dir := t.TempDir()
	pinentry, log := filepath.Join(dir, "pinentry"), filepath.Join(dir, "log")
	program := "#!/bin/sh\necho OK\nwhile read -r line; do\n\techo \"$line\" >> " + log + "\n\t[ \"$line\" = GETPIN ] && echo D secret\n\techo OK\ndone\n"
	if err := os.WriteFile(pinentry, []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	g := newGnuPG(t, "secret", pinentry)
	c, seen := g.client(g.grips[0])
	for _, line := range []string{
		"OPTION ttyname=/dev/tty1", "OPTION display=:0", "OPTION pinentry-mode=loopback", "OPTION putenv=EVIL=1", "OPTION lc-messages=EVIL", "SIGKEY " + g.grips[1], "SIGKEY " + g.grips[0],
		"SETKEYDESC EVIL", "SETHASH 8 " + strings.Repeat("ab", 32), "SETKEYDESC EVIL",
	} {
		c.ask(line)
	}
	if data, end := c.ask("PKSIGN"); !strings.Contains(data, "sig-val") || end != "OK" {
		t.Fatalf("%q, %q", data, end)
	}
	said, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(said); strings.Contains(text, "EVIL") || strings.Contains(text, "/dev/tty1") || !strings.Contains(text, "asks to sign") || !strings.Contains(text, "sb-1") || !strings.Contains(text, g.grips[0]) {
		t.Errorf("the dialog was told %s", text)
	}
	uses := slices.DeleteFunc(seen.list(), func(u Use) bool { return u.Refused != "" })
	if len(uses) != 1 || uses[0].Key != g.grips[0] || uses[0].Digest != "sha256:"+strings.Repeat("ab", 32) {
		t.Errorf("reported is %+v", uses)
	}
}
