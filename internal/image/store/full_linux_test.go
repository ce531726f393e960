package store_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/image/store"
)

// A disk that becomes full in the middle of a pull, a load or a form is told in words, and gets back what was taken.
func TestAFullDiskIsToldAndNothingHalfStays(t *testing.T) {
	if os.Getenv("PADDOCK_TEST_SMALL") == "" {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
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
		return
	}
	dir := filepath.Join(t.TempDir(), "small")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("small", dir, "tmpfs", 0, "size=1m,mode=0700"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	free := func() uint64 {
		t.Helper()
		var st syscall.Statfs_t
		if err := syscall.Statfs(dir, &st); err != nil {
			t.Fatal(err)
		}
		return st.Bfree * uint64(st.Bsize)
	}
	hub, s := newShop(t), open(t, dir, nil)
	ref := hub.push(t, "a/b:1", build(t, runtime.GOARCH, archive(t, file{"a", noise(2 << 20), 0})))
	before := free()
	if _, err := s.Pull(t.Context(), store.Request{Reference: ref}); !errors.Is(err, paddock.Exhausted) || !strings.Contains(err.Error(), "disk") {
		t.Errorf("a pull: %v", err)
	}
	tree := archive(t, file{"a", noise(2 << 20), 0})
	if _, err := s.Load(t.Context(), store.Load{Input: strings.NewReader(string(tree)), Tag: "own:1"}); !errors.Is(err, paddock.Exhausted) || !strings.Contains(err.Error(), "disk") {
		t.Errorf("a load: %v", err)
	}
	if now := free(); before-now > 64<<10 { // directories
		t.Errorf("of %d bytes, %d are left", before, now)
	}
	zeros, err := s.Pull(t.Context(), store.Request{Reference: hub.push(t, "a/b:2", build(t, runtime.GOARCH, archive(t, file{"a", strings.Repeat("\x00", 2<<20), 0})))})
	if err != nil {
		t.Fatal(err)
	}
	before = free()
	if _, _, err := s.Tree(t.Context(), zeros.Digest, image.FormDir); !errors.Is(err, paddock.Exhausted) || !strings.Contains(err.Error(), "disk") {
		t.Errorf("a form: %v", err)
	}
	if now := free(); before-now > 64<<10 {
		t.Errorf("of %d bytes, %d are left", before, now)
	}
}
