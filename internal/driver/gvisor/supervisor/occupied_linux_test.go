package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
)

// controlVariable makes this program a hostile process without restrictions.
const controlVariable = "PADDOCK_SENTRY_CONTROL"

// prey is a set of targets for attacks.
type prey struct {
	base  string
	brief brief
}

func newPrey(t *testing.T, base string) prey {
	t.Helper()
	p := prey{base: base, brief: brief{
		Secrets: map[string]string{}, Work: filepath.Join(base, "work"), Mount: "/mnt/work",
		Keep: []string{".git/config", "locked"}, Make: []string{".git/hooks/pre-commit", ".envrc"}, Read: []string{"denied"},
	}}
	if err := furnish(p.brief.Work); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"home/secret": "a secret of the caller's", "state/data/gvisor/secret": "what is saved of others",
	} {
		path := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		p.brief.Secrets[path] = content
	}
	if err := os.Mkdir(filepath.Join(base, "reports"), 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		p.brief.Secrets["/etc/shadow"] = "root:"
	}
	p.brief.Abstract = fmt.Sprintf("paddock-hostile-%d", os.Getpid())
	for _, a := range [][2]string{{"unix", "@" + p.brief.Abstract}, {"tcp", "127.0.0.1:0"}} {
		l, err := net.Listen(a[0], a[1])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		if addr, ok := l.Addr().(*net.TCPAddr); ok {
			p.brief.Port = addr.Port
		}
	}
	return p
}

// furnish fills a workspace.
func furnish(work string) error {
	if err := os.MkdirAll(filepath.Join(work, ".git/hooks"), 0o755); err != nil {
		return err
	}
	var errs []error
	for name, content := range map[string]string{".git/config": aliased, ".git/HEAD": "ref: refs/heads/main\n", "locked": "locked\n", "denied": "denied\n"} {
		errs = append(errs, os.WriteFile(filepath.Join(work, name), []byte(content), 0o600))
	}
	return errors.Join(errs...)
}

// unharmed fails if the workspace has changed.
func (p prey) unharmed(t *testing.T) {
	t.Helper()
	for name, want := range map[string]string{".git/config": aliased, "locked": "locked\n", "denied": "denied\n"} {
		st, err := os.Lstat(filepath.Join(p.brief.Work, name))
		if err != nil || !st.Mode().IsRegular() || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, st, err)
			continue
		}
		if got, err := os.ReadFile(filepath.Join(p.brief.Work, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(p.brief.Work, ".envrc")); err == nil {
		t.Error(".envrc was made")
	}
	if left, err := os.ReadDir(filepath.Join(p.brief.Work, ".git/hooks")); err != nil || len(left) > 0 {
		t.Errorf("hooks: %v, %v", left, err)
	}
}

// aliased is a configuration with a key that only the host may set or remove.
const aliased = "[alias]\n\tst = status\n"

func place(t *testing.T) string {
	t.Helper()
	parent := os.Getenv("HOME") // not a temporary directory, because those are private inside
	base, err := os.MkdirTemp(parent, "paddock-hostile")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	return base
}

// free returns the techniques that may succeed, because they act on a workspace. They show
// that the others fail because of their target.
func free() []string {
	const made = "make a file that may be made"
	return []string{made, "in the gofer's place: " + made, "by the gofer: make free-by-gofer"}
}

func TestATakenOverSentryReachesNothing(t *testing.T) {
	base := place(t)
	p := newPrey(t, base)
	data, err := json.Marshal(p.brief)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(base, "reports")
	if err := os.WriteFile(filepath.Join(dir, "brief.json"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := open(filepath.Join(base, "state"), hostileArgv0, sunk{})
	if err != nil {
		t.Fatal(err)
	}
	spec := paddock.Spec{
		Ephemeral: true,
		Mounts:    []paddock.Mount{{Source: dir, Target: reports, Write: true}, {Source: p.brief.Work, Target: p.brief.Mount, Write: true}},
		Policy: paddock.Policy{Files: paddock.FilePolicy{
			DenyRead: []string{p.brief.Mount + "/denied"}, DenyWrite: []string{p.brief.Mount + "/locked"},
		}},
	}
	info, err := d.Info(t.Context(), paddock.Auto)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range info.Controls {
		if f.Strength == paddock.Weak {
			spec.AllowMissing = append(spec.AllowMissing, f.Control)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	created := make(chan error, 1)
	go func() {
		_, err := d.Create(ctx, spec)
		created <- err
	}()
	var list []attempt
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		data, err := os.ReadFile(filepath.Join(dir, "report.json"))
		if err == nil && json.Unmarshal(data, &list) == nil {
			break
		}
		if time.Now().After(end) {
			cancel()
			t.Fatal("the hostile process says nothing; the box:", <-created)
		}
	}
	if len(list) < 200 {
		t.Errorf("only %d techniques are tried", len(list))
	}
	for _, name := range free() {
		if !slices.ContainsFunc(list, func(a attempt) bool { return a.Name == name }) {
			t.Errorf("nobody tries to %s", name)
		}
	}
	for _, a := range list {
		t.Run(a.Name, func(t *testing.T) {
			may := slices.Contains(free(), a.Name)
			switch {
			case a.Reached && !may:
				t.Error("this gets through", a.Detail)
			case !a.Reached && may:
				t.Error("not even this:", a.Detail)
			default:
				t.Log(a.Detail)
			}
		})
	}
	cancel()
	<-created
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	p.unharmed(t)
}

// The same techniques succeed without restrictions. Otherwise the test would prove nothing.
func TestATakenOverSentryWithoutWallsReachesAll(t *testing.T) {
	p := newPrey(t, place(t))
	data, err := json.Marshal(p.brief)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := net.Listen("unix", filepath.Join(p.base, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer pair.Close()
	conn, err := net.Dial("unix", pair.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	end, err := conn.(*net.UnixConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), controlVariable+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = bytes.NewReader(data), &out, &errs, []*os.File{end}
	if os.Geteuid() == 0 {
		// Techniques that would harm the machine are not tried. In addition, mounts, names
		// and IPC are private to the process. Network and processes must be shared.
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC}
	}
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, &errs)
	}
	var list []attempt
	if err := json.Unmarshal(out.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) < 70 {
		t.Errorf("only %d techniques are tried", len(list))
	}
	for _, a := range list {
		t.Run(a.Name, func(t *testing.T) {
			if why, ok := needsMore(a.Name); !a.Reached && !ok {
				t.Error("not even without walls:", a.Detail)
			} else if !a.Reached {
				t.Logf("%s: %s", a.Detail, why)
			}
		})
	}
}

// needsMore returns why a technique fails even without restrictions.
func needsMore(name string) (why string, ok bool) {
	switch {
	case name == "move its directory, of locked":
		return "it is the workspace itself", true
	case name == "connect to the guard once more":
		return "there is none", true
	case os.Geteuid() == 0:
		return "", false
	}
	for _, n := range []string{"open a raw socket", "load a program into the kernel", "give away", "make namespaces of its own, and look from there",
		"by its handle", "use the ring", "read performance counters", "answer its own system calls", "join namespaces of"} {
		if strings.HasPrefix(name, n) {
			return "the host's kernel wants privileges for it", true
		}
	}
	return "", false
}

func TestATakenOverSentryOfAUserReachesNothing(t *testing.T) {
	drivertest.AsUser(t, "^(TestATakenOverSentryReachesNothing|TestATakenOverSentryWithoutWallsReachesAll|TestAssumptionsAboutGVisor)$")
}
