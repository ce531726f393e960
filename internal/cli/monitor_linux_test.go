package cli

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestFilesAreCountedWithoutFollowingAnything(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/b/c", "a/d", "node_modules/x/y"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/usr", filepath.Join(dir, "away")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..", filepath.Join(dir, "a/loop")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	mounts := []paddock.Mount{{Source: dir, Write: true}, {Source: "/usr"}, {Source: "/usr", Write: true, Cache: true}, {Source: filepath.Join(dir, "a/d"), Write: true}}
	if n, whole := countIn(mounts); n != 7 || !whole { // a, a/b, a/b/c, a/d, a/loop, away, fifo
		t.Errorf("%d, %t", n, whole)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if n, whole := countBelow(root, 3); n != 3 || whole {
		t.Errorf("%d, %t", n, whole)
	}
}
