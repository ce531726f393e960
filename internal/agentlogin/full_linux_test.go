package agentlogin

import (
	"bytes"
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
	if home := small(t); home != "" {
		filled(t, home)
	}
}

// On btrfs, an overwrite takes new blocks.
func TestABoxThatFillsABtrfsDoesNotLoseTheLogin(t *testing.T) {
	if home := btrfs(t); home != "" {
		filled(t, home)
	}
}

// btrfs runs a test again in a mount namespace of its own with a directory on a small btrfs. It is empty where the test has
// run there.
func btrfs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if image := os.Getenv("PADDOCK_TEST_BTRFS"); image != "" {
		if out, err := exec.Command("mount", "-t", "btrfs", "-o", "loop", image, dir).CombinedOutput(); err != nil {
			t.Skipf("no btrfs here: %s", out)
		}
		t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
		return dir
	}
	mkfs, err := exec.LookPath("mkfs.btrfs")
	if err != nil || os.Geteuid() != 0 {
		t.Skip("a btrfs is made by root, with mkfs.btrfs")
	}
	image := filepath.Join(dir, "image")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 160<<20); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(mkfs, "-q", image).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), "PADDOCK_TEST_BTRFS="+image)
	c.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := c.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
	return ""
}

// filled has a box fill the disk before and during an exchange.
func filled(t *testing.T, home string) {
	t.Helper()
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

// Blocks are allocated where that is possible, and an error of that is no reason to do with less.
func TestRoomIsAllocatedOrFilled(t *testing.T) {
	for _, c := range []struct {
		fault   error
		written int
	}{{nil, 0}, {os.NewSyscallError("fallocate", syscall.EOPNOTSUPP), 100}, {syscall.ENOSYS, 100}, {syscall.ENOSPC, 0}} {
		var b bytes.Buffer
		err := hold(&b, 100, func() error { return c.fault })
		if b.Len() != c.written || (err != nil) != (c.fault != nil && c.written == 0) {
			t.Errorf("%v: %v, wrote %d bytes", c.fault, err, b.Len())
		}
	}
	home := small(t) // a tmpfs, where blocks can be allocated
	if home == "" {
		return
	}
	v, err := openVault(filepath.Join(home, "login"))
	if err != nil {
		t.Fatal(err)
	}
	defer v.dir.Close()
	r, err := v.reserve(10000)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.drop(); err != nil {
			t.Error(err)
		}
	}()
	info, err := r.file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || info.Size() != 10000 || st.Blocks*512 < 10000 {
		t.Errorf("the room is %+v", st)
	}
	if data, err := os.ReadFile(filepath.Join(home, r.name)); err != nil || !bytes.Equal(data, make([]byte, 10000)) {
		t.Errorf("the room is filled, not allocated: %v", err)
	}
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
