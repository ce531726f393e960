package measure

import (
	"fmt"
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
	if n, whole := Count(mounts); n != 7 || !whole { // a, a/b, a/b/c, a/d, a/loop, away, fifo
		t.Errorf("%d, %t", n, whole)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if n, read, whole := countBelow(root, 3); n > 3 || read != 3 || whole {
		t.Errorf("%d, %d, %t", n, read, whole)
	}
	many := filepath.Join(dir, "many")
	for i := range 20 { // which do not count, and are read all the same
		if err := os.MkdirAll(filepath.Join(many, fmt.Sprint("cmake-build-", i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	below, err := root.OpenRoot("many")
	if err != nil {
		t.Fatal(err)
	}
	defer below.Close()
	if n, read, whole := countBelow(below, 10); n != 0 || read != 10 || whole {
		t.Errorf("%d, %d, %t", n, read, whole)
	}
}
