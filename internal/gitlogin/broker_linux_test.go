package gitlogin

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
)

// A user is one whose git has a helper, and a workspace that has other plans.
type user struct{ top, work string }

func newUser(t *testing.T, helper string) user {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	u := user{top, filepath.Join(top, "work")}
	u.write(t, "helper", "#!/bin/sh\necho $1 >> "+top+"/calls\nenv > "+top+"/env\ncat > "+top+"/told\n"+helper+"\n")
	u.write(t, "home/.gitconfig", "[user]\n\tname = Alice\n[credential]\n\thelper = "+top+"/helper\n")
	u.write(t, "work/git", "#!/bin/sh\ntouch "+top+"/planted\n")
	return u
}

func (u user) write(t *testing.T, name, text string) {
	t.Helper()
	at := filepath.Join(u.top, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func (u user) read(name string) string {
	data, _ := os.ReadFile(filepath.Join(u.top, name))
	return string(data)
}

func (u user) broker(t *testing.T, config string) *Broker {
	t.Helper()
	env := map[string]string{
		"PATH": u.work + ":.:" + os.Getenv("PATH"), "HOME": filepath.Join(u.top, "home"), "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "credential.helper",
		"GIT_CONFIG_VALUE_0": "!touch " + u.top + "/planted", "SSH_ASKPASS": u.work + "/git", "LD_PRELOAD": "/nothing", "OTHER": "x",
	}
	b, err := New(t.Context(), func(name string) (string, bool) { v, ok := env[name]; return v, ok }, u.reach, Read([]byte(config)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// reach is that a box may write the workspace: its names, and what leads over them.
func (u user) reach(path string) bool {
	if strings.HasPrefix(path+"/", u.work+"/") {
		return true
	}
	real, err := filepath.EvalSymlinks(path)
	return err == nil && strings.HasPrefix(real+"/", u.work+"/")
}

const origin = "[remote \"origin\"]\n\turl = https://bob@git.example/team/one.git\n"

func ask(t *testing.T, b *Broker, host, method, path string) gatewayclient.LoginAnswer {
	t.Helper()
	path, query, _ := strings.Cut(path, "?")
	return b.Login(t.Context(), gatewayclient.LoginRequest{Host: host, Port: 443, Method: method, Path: path, Query: query})
}

func TestOnlyRequestsOfGitToTheRemoteGetTheLogin(t *testing.T) {
	u := newUser(t, "echo username=bob; echo password=long-secret")
	b := u.broker(t, origin)
	for _, bad := range []struct{ host, method, path string }{
		{"git.example", "GET", "/team/two.git/info/refs?service=git-receive-pack"}, {"other.example", "GET", "/team/one.git/info/refs"},
		{"git.example", "DELETE", "/team/one.git/info/refs"}, {"git.example", "GET", "/team/one.git/../two.git/info/refs"},
		{"git.example", "GET", "/team/one.git/%2e%2e/two.git/info/refs"}, {"git.example", "POST", "/api/v4/user/keys"}, {"git.example", "GET", "/team/one/settings"}, {"git.example", "GET", "/team/one.gitx/info/refs"},
	} {
		if a := ask(t, b, bad.host, bad.method, bad.path); len(a.Tokens) > 0 {
			t.Errorf("%s gets the login", bad)
		}
	}
	if u.read("calls") != "" {
		t.Error("the helper was asked for requests that are not git's")
	}
	for _, good := range []struct{ method, path string }{
		{"GET", "/team/one.git/info/refs?service=git-upload-pack"}, {"POST", "/team/one.git/git-receive-pack"}, {"POST", "/team/one/git-upload-pack"}, {"POST", "/team/one.git/info/lfs/objects/batch"},
	} {
		a := ask(t, b, "git.example", good.method, good.path)
		if len(a.Tokens) != 2 || a.Tokens[0].Value != "bob:long-secret" || a.Tokens[1].Value != "long-secret" {
			t.Errorf("%s gets %d tokens", good, len(a.Tokens))
		}
	}
	if got := u.read("calls"); got != "get\n" {
		t.Errorf("the helper was called: %q", got)
	}
	if got := u.read("told"); got != "protocol=https\nhost=git.example\nusername=bob\n" {
		t.Errorf("the helper was told %q", got)
	}
	for line := range strings.Lines(u.read("env")) {
		name, _, _ := strings.Cut(line, "=")
		if name == "OTHER" || strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "GIT_CONFIG") || strings.Contains(line, u.work) {
			t.Errorf("the helper has %s", line)
		}
	}
	if _, err := os.Lstat(filepath.Join(u.top, "planted")); err == nil {
		t.Error("something of the workspace ran on the host")
	}
}

func TestAnswersThatAreNotTaken(t *testing.T) {
	for _, text := range []string{
		"", "username=a\n", "password=long-secret\n", "protocol=http\nusername=a\npassword=long-secret\n", "host=other\nusername=a\npassword=long-secret\n",
		"username=a:b\npassword=long-secret\n", "username=a\npassword=short\n", "username=a\x01\npassword=long-secret\n", "username=a\npassword=long\tsecret\n",
	} {
		if c, err := readCredential(text, "h"); err == nil {
			t.Errorf("%q: %v", text, c.user)
		}
	}
	u := newUser(t, "exit 1")
	b := u.broker(t, origin)
	if a := ask(t, b, "git.example", "GET", "/team/one.git/info/refs"); len(a.Tokens) > 0 || a.Refused != "" {
		t.Error("a request without a login does not go as it is")
	}
	if got := b.Failed(); len(got) != 1 || got[0] != "bob@git.example/team/one" {
		t.Errorf("without a login: %q", got)
	}
}

// Git in the box is configured by data that has no secret of the host, and says who commits unless the repository does.
func TestSettingsOfGitInTheBox(t *testing.T) {
	u := newUser(t, "echo username=bob; echo password=long-secret")
	b := u.broker(t, origin)
	all := ""
	for _, s := range b.Settings() {
		all += s[0] + "=" + s[1] + "\n"
	}
	if !strings.HasPrefix(all, "credential.https://git.example.helper=\ncredential.https://git.example.helper=!f()") || !strings.HasSuffix(all, "user.name=Alice\n") || strings.Contains(all, "long-secret") {
		t.Errorf("%s", all)
	}
	for _, s := range u.broker(t, origin+"[user]\n\temail = a@work.example\n").Settings() {
		if s[0] == "user.name" {
			t.Errorf("the repository's own name is hidden by %q", s[1])
		}
	}
	if other := u.broker(t, origin); other.placeholder == b.placeholder {
		t.Error("two boxes have the same placeholder")
	}
}

// Requests that a box gives up start the helper once, and nothing of it stays when the run ends.
func TestRequestsThatAreGivenUpStartOneHelper(t *testing.T) {
	u := newUser(t, "")
	fifo := filepath.Join(u.top, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	// The helper's child has the pipe open for writing, until it is killed.
	u.write(t, "helper", "#!/bin/sh\necho get >> "+u.top+"/calls\nexec 3> "+fifo+"\nsleep 100000 &\necho x >&3\nwait\n")
	b := u.broker(t, origin)
	request := gatewayclient.LoginRequest{Host: "git.example", Port: 443, Method: "GET", Path: "/team/one/info/refs"}
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan struct{})
	go func() { b.Login(ctx, request); close(first) }()
	f, err := os.Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.ReadFull(f, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-first
	for range 10 {
		if a := b.Login(ctx, request); len(a.Tokens) > 0 {
			t.Error("there is a login")
		}
	}
	b.Close()
	if _, err := io.ReadAll(f); err != nil { // ends when nobody has it open any more
		t.Error(err)
	}
	if got := u.read("calls"); got != "get\n" {
		t.Errorf("the helper was started: %q", got)
	}
	if a := b.Login(t.Context(), request); len(a.Tokens) > 0 || u.read("calls") != "get\n" {
		t.Error("it is asked after the end")
	}
}
