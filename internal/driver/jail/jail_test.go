//go:build linux

package jail

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
)

func open(state string) (paddock.Driver, error) {
	return New(Options{State: state, Environ: os.Environ()})
}

func TestMain(m *testing.M) {
	if Main() {
		return
	}
	drivertest.Main(m, open)
}

func TestPromises(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{New: open, Base: paddock.Spec{AllowMissing: weak(t)}})
}

// weak names what this host enforces weakly, for a suite that asks for every
// limit: memory, where the caller may make no control group.
func weak(t *testing.T) []paddock.Control {
	t.Helper()
	d, err := open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	info, err := d.Info(t.Context())
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

func BenchmarkDriver(b *testing.B) { drivertest.Bench(b, drivertest.Harness{New: open}) }

// nobodyInParticular is a user that no account has.
const nobodyInParticular = 64102

// TestPromisesAsUser runs this package's tests again as an unprivileged user.
func TestPromisesAsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("already running as an ordinary user: TestPromises was it")
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
		if err := os.Chown(d, nobodyInParticular, nobodyInParticular); err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(dir, "jail.test")
	copyFile(t, "/proc/self/exe", bin)
	args := []string{"-test.v", "-test.run=^TestPromises$", "-test.timeout=10m"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	probe := filepath.Join(dir, "probe")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", probe, drivertest.Probe)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the probe: %v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), bin, args...)
	cmd.Dir = dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "HOME=") || strings.HasPrefix(v, "TMPDIR=") || strings.HasPrefix(v, "XDG_")
	}), "HOME="+filepath.Join(dir, "home"), "TMPDIR="+filepath.Join(dir, "tmp"), drivertest.ProbeVariable+"="+probe)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyInParticular, Gid: nobodyInParticular}}
	out, err := cmd.CombinedOutput()
	for _, line := range strings.Split(string(out), "\n") {
		if strings.Contains(line, "--- FAIL") || strings.Contains(line, "--- SKIP") {
			t.Log(line)
		}
	}
	if err != nil {
		t.Fatalf("as user %d: %v\n%s", nobodyInParticular, err, out)
	}
	if n := strings.Count(string(out), "--- PASS"); n < 50 {
		t.Fatalf("as user %d only %d promises were checked:\n%s", nobodyInParticular, n, out)
	}
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
