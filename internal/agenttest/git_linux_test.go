package agenttest_test

import (
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/agenttest"
)

// gitPassword is what git on the host knows, and no box.
const (
	gitUser     = "alice"
	gitPassword = "tok-4f8a1c09-real-0123456789-real"
)

// A gitRig is a user with a login at a server of git, and a project that has a repository there as its remote.
type gitRig struct {
	server, other *agenttest.Git
	paddock, tier string
	top           string // holds the rest
	home, work    string
	out           string
}

func newGitRig(t *testing.T, tier string) *gitRig {
	t.Helper()
	built := os.Getenv("PADDOCK_TEST_BUILT")
	if built == "" {
		t.Skip("PADDOCK_TEST_BUILT is not set: make build")
	}
	if f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0); err != nil {
		t.Skipf("a network with rules needs it: %v", err)
	} else if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	top := t.TempDir()
	if err := os.Chmod(filepath.Dir(top), 0o755); err != nil { // the box and its gateway are other users
		t.Fatal(err)
	}
	r := &gitRig{
		server: agenttest.NewGit(t, gitUser, gitPassword, "team/one.git", "team/two.git"), other: agenttest.NewGit(t, gitUser, gitPassword, "team/one.git"),
		paddock: filepath.Join(built, "paddock"), tier: tier, top: top,
		home: filepath.Join(top, "home"), work: filepath.Join(top, "work"), out: filepath.Join(top, "out"),
	}
	for _, dir := range []string{r.home, r.work, r.out} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, r.authorities(), string(r.server.Authority())+string(r.other.Authority()))
	write(t, filepath.Join(top, "helper"), "#!/bin/sh\n{ echo \"$1\"; cat; } >> "+filepath.Join(top, "asked")+"\n[ \"$1\" = get ] && printf 'username="+gitUser+"\\npassword="+gitPassword+"\\n'\n")
	if err := os.Chmod(filepath.Join(top, "helper"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(r.home, ".gitconfig"), "[user]\n\tname = Alice Host\n\temail = alice@host.example\n[credential]\n\thelper = "+filepath.Join(top, "helper")+"\n")
	write(t, filepath.Join(r.home, ".config", "paddock", "agents", "gitter.yaml"), "version: 1\nname: gitter\ntitle: Gitter\nprogram: [bash]\nstate:\n  keep: [~/.gitter]\n")
	script, err := os.ReadFile("testdata/search.py")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(r.work, "search.py"), string(script))
	r.git(t, "init", "-q", "-b", "main")
	r.git(t, "add", ".")
	r.git(t, "commit", "-q", "-m", "on the host")
	r.git(t, "push", "-q", filepath.Join(r.server.Top, "team/one.git"), "main")
	r.git(t, "remote", "add", "origin", r.server.URL("team/one.git"))
	// What the workspace itself says of helpers must not run on the host.
	r.git(t, "config", "credential.helper", "!touch "+filepath.Join(top, "planted")+"; :")
	r.git(t, "config", "core.askPass", "touch "+filepath.Join(top, "planted"))
	t.Cleanup(func() {
		if out, err := r.command(t, "agent", "reset", "gitter").CombinedOutput(); err != nil && !strings.Contains(string(out), "has no files") {
			t.Errorf("reset: %v: %s", err, out)
		}
	})
	return r
}

func (r *gitRig) authorities() string { return filepath.Join(r.top, "ca.pem") }

func (r *gitRig) git(t *testing.T, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "git", append([]string{"-C", r.work}, args...)...)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.home}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v: %s", args, err, out)
	}
	return string(out)
}

func (r *gitRig) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(r.paddock, args...)
	c.Dir, c.Env = r.work, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.home, "LANG=C.UTF-8", "SSL_CERT_FILE=" + r.authorities()}
	return c
}

// read returns a file below the top, or nothing.
func (r *gitRig) read(name string) string {
	data, _ := os.ReadFile(filepath.Join(r.top, name))
	return string(data)
}

// secrets are the texts that no box may have.
func secrets() []string {
	return []string{gitPassword, base64.StdEncoding.EncodeToString([]byte(gitUser + ":" + gitPassword))}
}

// An agent fetches, commits and pushes with the login of the host's git, for the remote of its project alone, and finds
// nothing of the login.
func TestGitInABoxUsesTheLoginOfTheHost(t *testing.T) {
	for _, tier := range []string{"jail", "gvisor"} {
		t.Run(tier, func(t *testing.T) {
			r := newGitRig(t, tier)
			r.unapproved(t)
			r.session(t)
			r.without(t)
		})
	}
}

// unapproved checks that a remote that the user has not approved gets no login, and approves it.
func (r *gitRig) unapproved(t *testing.T) {
	t.Helper()
	name := agenttest.Host + ":" + r.server.Port() + "/team/one"
	out, err := r.command(t, "agent", "gitter", "--tier", r.tier, "--", "-c", "git ls-remote origin; true").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "paddock agent approve --git "+name) || strings.Contains(string(out), "refs/heads") || r.read("asked") != "" {
		t.Errorf("before the approval: %v: %s: the helper was asked %q", err, out, r.read("asked"))
	}
	for name, fails := range map[string]bool{agenttest.Host + "/team/one": true, name: false} {
		if out, err := r.command(t, "agent", "approve", "--git", name).CombinedOutput(); (err != nil) != fails {
			t.Errorf("approve %s: %v: %s", name, err, out)
		}
	}
}

func (r *gitRig) session(t *testing.T) {
	t.Helper()
	script := `set -x; cd ` + r.work + `
export GIT_TRACE_CURL=` + r.out + `/trace GIT_TRACE_REDACT=0 GIT_TERMINAL_PROMPT=0 GIT_SSL_NO_VERIFY=
git fetch origin && git log -1 --format=%s origin/main > ` + r.out + `/fetched
echo inside > inside.txt; git add inside.txt
git commit -m "in the box" && git push origin main && echo yes > ` + r.out + `/pushed
git clone ` + r.server.URL("team/one.git") + ` /tmp/again && echo yes > ` + r.out + `/cloned
git push ` + r.server.URL("team/two.git") + ` main && echo no > ` + r.out + `/wrong
git push ` + r.other.URL("team/one.git") + ` main && echo no > ` + r.out + `/wrong
git push https://x:$(printf 'protocol=https\nhost=` + agenttest.Host + `:` + r.server.Port() + `\n\n' | git credential fill | sed -n s/password=//p)@` + agenttest.Host + ":" + r.other.Port() + `/team/one.git main
printf 'protocol=https\nhost=` + agenttest.Host + `:` + r.server.Port() + `\n\n' | git credential fill > ` + r.out + `/credential
env > ` + r.out + `/env
git remote add two ` + r.server.URL("team/two.git") + ` && echo yes > ` + r.out + `/added
python3 search.py GIT_CONFIG_VALUE_2 ` + base64.StdEncoding.EncodeToString([]byte(gitPassword)) + ` > ` + r.out + `/found.json
true`
	out, err := r.command(t, "agent", "gitter", "--tier", r.tier, "--write", r.out, "--allow", "host:"+r.other.Port(), "--", "-c", script).CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "git reaches "+agenttest.Host+":"+r.server.Port()+"/team/one with your login, which stays outside") {
		t.Error("the screen does not tell what git may do")
	}
	for name, want := range map[string]string{"fetched": "on the host\n", "pushed": "yes\n", "cloned": "yes\n", "added": "yes\n", "wrong": ""} {
		if got := r.read("out/" + name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	c := exec.CommandContext(t.Context(), "git", "-C", filepath.Join(r.server.Top, "team/one.git"), "log", "-1", "--format=%s|%an|%ae|%cn", "main")
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.home, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}
	if got, err := c.CombinedOutput(); err != nil || string(got) != "in the box|Alice Host|alice@host.example|Alice Host\n" {
		t.Errorf("the server has %s, %v", got, err)
	}
	r.apart(t)
	r.nothingOf(t, out)
}

// apart checks that only the remote was asked for with the login, and only the user's own helper asked.
func (r *gitRig) apart(t *testing.T) {
	t.Helper()
	if !slices.ContainsFunc(r.server.Asked("/team/one.git/"), func(s string) bool { return strings.HasSuffix(s, " "+gitUser+":"+gitPassword) }) {
		t.Error("the remote never got the login")
	}
	if list := r.server.Asked("/team/two.git/"); len(list) > 0 {
		t.Errorf("another repository was reached: %s", list)
	}
	reached := r.other.Asked("")
	for _, s := range reached {
		if strings.Contains(s, gitPassword) {
			t.Errorf("another server got the login: %s", s)
		}
	}
	if !slices.ContainsFunc(reached, func(s string) bool { return strings.Contains(s, ":paddock") }) {
		t.Errorf("the box did not try to give the placeholder away: %s", reached)
	}
	asked := r.read("asked")
	for line := range strings.Lines(asked) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if key == "host" && value != agenttest.Host+":"+r.server.Port() || key == "erase" || key == "store" {
			t.Errorf("the helper was told %s", asked)
		}
	}
	if !strings.Contains(asked, "protocol=https\n") {
		t.Errorf("the helper of the user was asked %q", asked)
	}
	if _, err := os.Lstat(filepath.Join(r.top, "planted")); err == nil {
		t.Error("the host ran a helper of the workspace's configuration")
	}
}

// nothingOf checks that the box had the placeholder, and nothing of the login.
func (r *gitRig) nothingOf(t *testing.T, output []byte) {
	t.Helper()
	if got := r.read("out/credential"); !strings.Contains(got, "username=paddock\npassword=paddock") {
		t.Errorf("git in the box has the credential %q", got)
	}
	var found struct {
		Key, Placeholder []string
	}
	if err := json.Unmarshal([]byte(r.read("out/found.json")), &found); err != nil || len(found.Placeholder) == 0 {
		t.Errorf("what the search found: %v, %s", err, r.read("out/found.json"))
	}
	if len(found.Key) > 0 {
		t.Errorf("the password is in %s", found.Key)
	}
	if !strings.Contains(r.read("out/trace"), "Authorization: Basic") {
		t.Error("git's own record of its traffic has no login, so it does not count")
	}
	for _, s := range secrets() {
		if strings.Contains(string(output), s) {
			t.Errorf("the output has %s", s)
		}
		for _, dir := range []string{r.work, r.out} {
			if err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() {
					return err
				}
				data, err := os.ReadFile(name)
				if strings.Contains(string(data), s) {
					t.Errorf("%s has %s", name, s)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// without checks that nothing of it is there with --no-git, and for run without --git.
func (r *gitRig) without(t *testing.T) {
	t.Helper()
	before := r.read("asked")
	script := "GIT_TERMINAL_PROMPT=0 git ls-remote origin; git config user.name; true"
	for _, args := range [][]string{
		{"agent", "gitter", "--tier", r.tier, "--no-git", "--allow", "host:" + r.server.Port(), "--", "-c", script},
		{"run", "--tier", r.tier, "-w", ".", "--allow", "host:" + r.server.Port(), "--", "bash", "-c", script},
	} {
		out, err := r.command(t, args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "fatal:") || strings.Contains(string(out), "refs/heads/main") || strings.Contains(string(out), "Alice") {
			t.Errorf("%s: %v: %s", args[0], err, out)
		}
	}
	if after := r.read("asked"); after != before {
		t.Errorf("the helper was asked without being wanted: %s", after)
	}
	// The remote that a sandbox added is not approved with the other.
	out, err := r.command(t, "run", "--tier", r.tier, "-w", ".", "--git", "--", "bash", "-c", script+"; git ls-remote two && echo reached; true").CombinedOutput()
	if list := r.server.Asked("/team/two.git/"); len(list) > 0 || strings.Contains(string(out), "reached\n") || !strings.Contains(string(out), "/team/two, which you have not approved") {
		t.Errorf("a remote that a sandbox added: %s: %s", list, out)
	}
	if err != nil || !strings.Contains(string(out), "refs/heads/main") || !strings.Contains(string(out), "Alice Host") {
		t.Errorf("run --git: %v: %s", err, out)
	}
}
