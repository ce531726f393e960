package drivertest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// sharedVariable is set in the process that SharedMounts starts.
const sharedVariable = "PADDOCK_DRIVERTEST_SHARED"

// SharedMounts tests that what is mounted in a sandbox does not appear on the host where the host's mounts are shared,
// as systemd makes them. It runs the test that calls it again, in a mount namespace of its own.
func SharedMounts(t *testing.T, open func(state string) (paddock.Driver, error)) {
	if os.Getuid() != 0 {
		t.Skip("mounts of an ordinary user's namespaces never reach the host")
	}
	if _, again := os.LookupEnv(sharedVariable); !again {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), self, "-test.v", "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), sharedVariable+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, ""); err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	for _, dir := range []string{"inner", "overlaid", ".git"} {
		if err := os.Mkdir(filepath.Join(work, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(work, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSuite(t, Harness{New: open})
	weak := Weak(t, open)
	mounts := []paddock.Mount{
		{Source: work, Target: work, Write: true},
		{Source: filepath.Join(work, "inner"), Target: filepath.Join(work, "inner")},
		{Source: filepath.Join(work, "file"), Target: filepath.Join(work, "file")},
	}
	if s.info.Can(paddock.CanMountOverlay) {
		mounts = append(mounts, paddock.Mount{Source: filepath.Join(work, "overlaid"), Target: filepath.Join(work, "overlaid"), Overlay: true})
	}
	before := lines("/proc/self/mountinfo", "")
	b := s.own(t, func(spec *paddock.Spec) { spec.AllowMissing, spec.Mounts = weak, mounts })
	b.must(t, "touch "+filepath.Join(work, "made"))
	for _, line := range lines("/proc/self/mountinfo", "") {
		if !slices.Contains(before, line) {
			t.Errorf("appeared on the host: %s", line)
		}
	}
}
