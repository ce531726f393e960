package drivertest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
)

// Weak returns the controls that a driver enforces weakly on this host, for a suite that
// sets every limit. An example is memory, if the caller cannot make a control group.
func Weak(t *testing.T, open func(state string) (paddock.Driver, error)) []paddock.Control {
	t.Helper()
	d, err := open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	info, err := d.Info(t.Context(), paddock.Auto)
	if err != nil {
		t.Fatal(err)
	}
	var list []paddock.Control
	for _, f := range info.Controls {
		if f.Strength == paddock.Weak {
			list = append(list, f.Control)
		}
	}
	return list
}

// nobodyInParticular is a user number without an account.
const nobodyInParticular = 64102

// AsUser runs tests of the calling package again, in a process of its own, as an
// unprivileged user. It does nothing if the caller is unprivileged.
func AsUser(t *testing.T, run string) {
	t.Helper()
	SampleAsUser(t, run, "")
}

// SampleAsUser is AsUser with a sample of the promises, chosen by seed as for
// Harness.Sample.
func SampleAsUser(t *testing.T, run, seed string) {
	t.Helper()
	least := 50 // a driver has more promises
	if seed != "" {
		least = 10 // and more groups in each turn
	}
	again(t, run, seed, least, nobodyInParticular)
}

// SomeAsUser is AsUser for tests other than a driver's promises. At least that many must
// pass.
func SomeAsUser(t *testing.T, run string, least int) {
	t.Helper()
	again(t, run, "", least, nobodyInParticular)
}

// SomeAsAccount is SomeAsUser with a user who has an account, which some programs ask for.
func SomeAsAccount(t *testing.T, run string, least int) {
	t.Helper()
	const name = "games" // nothing runs as it
	u, err := user.Lookup(name)
	if err != nil {
		t.Skip("this system does not have the account that the tests run as: ", err)
	}
	id, err := strconv.Atoi(u.Uid)
	if err != nil || id == 0 {
		t.Fatalf("the user %s has the number %q", name, u.Uid)
	}
	again(t, run, "", least, id)
}

func again(t *testing.T, run, seed string, least, id int) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("already running as an ordinary user: the tests " + run + " were it")
	}
	dir, err := os.MkdirTemp("", "paddock-user")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, d := range []string{dir, filepath.Join(dir, "home"), filepath.Join(dir, "tmp")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(d, id, id); err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(dir, "driver.test")
	copyFile(t, "/proc/self/exe", bin)
	args := []string{"-test.v", "-test.run=" + run, "-test.timeout=40m"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	probe := filepath.Join(dir, "probe")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", probe, Probe)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the probe: %v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), bin, args...)
	cmd.Dir = dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "HOME=") || strings.HasPrefix(v, "TMPDIR=") || strings.HasPrefix(v, "XDG_")
	}), "HOME="+filepath.Join(dir, "home"), "TMPDIR="+filepath.Join(dir, "tmp"), ProbeVariable+"="+probe, againVariable+"="+seed)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(id), Gid: uint32(id)}}
	out, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "--- SKIP") || strings.Contains(line, sample.LeftOut) {
			t.Log(line)
		}
	}
	if err != nil {
		// The failures come last, because the end of a long output is kept.
		t.Fatalf("%s\nas user %d: %v\n%s", out, id, err, whatFailed(string(out)))
	}
	if n := strings.Count(string(out), "--- PASS"); n < least {
		t.Fatalf("as user %d only %d promises were checked:\n%s", id, n, out)
	}
}

// whatFailed returns what the failed tests printed, from the output of go test -v.
func whatFailed(out string) string {
	var name string
	var failed []string
	said := map[string][]string{}
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "=== ") && len(words) == 3:
			name = words[2]
		case len(words) > 2 && words[0] == "---":
			if name = words[2]; words[1] == "FAIL:" {
				failed = append(failed, name)
			}
		default:
			said[name] = append(said[name], line)
		}
	}
	var b strings.Builder
	for _, name := range failed {
		fmt.Fprintf(&b, "failed: %s\n%s", name, strings.Join(said[name], ""))
	}
	return b.String()
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
