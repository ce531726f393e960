package agentlogin

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// small runs a test again in a mount namespace of its own with a directory on a small disk. It is empty where the test
// has run there, or cannot.
func small(t *testing.T) string {
	t.Helper()
	if os.Getenv("PADDOCK_TEST_SMALL") != "" {
		dir := t.TempDir()
		if err := syscall.Mount("small", dir, "tmpfs", 0, "size=256k,mode=0700"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
		return dir
	}
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), "PADDOCK_TEST_SMALL=1")
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Skipf("no mount namespace here: %v", err)
	}
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
	return ""
}

// fill fills the disk of a directory, as a box can.
func fill(t *testing.T, dir string) (name string) {
	t.Helper()
	f, err := os.CreateTemp(dir, "fill")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 64 << 10; size > 0; { // to the last byte
		if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return f.Name()
}

func TestABoxThatFillsTheDiskDoesNotLoseTheLogin(t *testing.T) {
	home := small(t)
	if home == "" {
		return
	}
	s := newServer(t)
	s.write(t, home, 0, -time.Minute)
	b := s.box(t, home)
	full := fill(t, home)
	if status, fields := b.renew(t.Context()); status != 502 || s.asked() != 0 {
		t.Fatalf("a full disk: %d %v, asked %d times", status, fields, s.asked())
	}
	if err := os.Remove(full); err != nil {
		t.Fatal(err)
	}
	s.before = func() { fill(t, home) }
	if status, fields := b.renew(t.Context()); status != 200 || s.asked() != 1 {
		t.Errorf("filled during the exchange: %d %v, asked %d times", status, fields, s.asked())
	}
	if got := s.host(t, home).text("oauth.refreshToken"); got != s.real("refresh", 1) {
		t.Errorf("the host has %s", got)
	}
	b.sawNothing(t)
}

func TestTheEndStoresWhatCouldNotBeStored(t *testing.T) {
	s, home := newServer(t), t.TempDir()
	s.write(t, home, 0, -time.Minute)
	b := s.box(t, home)
	name := filepath.Join(home, ".claude/.credentials.json")
	s.before = func() {
		if err := errors.Join(os.Rename(name, name+".moved"), os.Symlink(name+".moved", name)); err != nil {
			t.Error(err)
		}
	}
	if status, _ := b.renew(t.Context()); status != http.StatusBadGateway {
		t.Fatalf("%d with a link", status)
	}
	if err := os.Rename(name+".moved", name); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if got := s.host(t, home).text("oauth.refreshToken"); got != s.real("refresh", 1) {
		t.Errorf("the host has %s", got)
	}
	if left, err := filepath.Glob(filepath.Join(home, ".claude/.paddock*")); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}
