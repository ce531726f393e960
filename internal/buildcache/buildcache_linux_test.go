package buildcache

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

func open(t *testing.T, dir, workspace string) *Cache {
	t.Helper()
	c, err := Open(dir, workspace)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEachWorkspaceHasCachesOfItsOwn(t *testing.T) {
	dir, top := filepath.Join(t.TempDir(), "build"), t.TempDir()
	var before string
	for _, name := range []string{"a", "b"} {
		work := filepath.Join(top, name)
		if err := os.Mkdir(work, 0o755); err != nil {
			t.Fatal(err)
		}
		c := open(t, dir, work)
		again := open(t, dir, work)
		if c.Mounts[0] != again.Mounts[0] || c.Mounts[0].Source == before {
			t.Errorf("%s has %v, then %v", name, c.Mounts[0], again.Mounts[0])
		}
		before = c.Mounts[0].Source
		for _, m := range c.Mounts {
			if !m.Cache || !m.Write || !strings.HasPrefix(m.Target, "~/") || !strings.HasPrefix(m.Source, dir+"/") {
				t.Errorf("%+v", m)
			}
		}
		for _, c := range []*Cache{c, again} {
			if removed, err := c.Close(); err != nil || removed {
				t.Error(removed, err)
			}
		}
	}
	// Another directory at the same path is another workspace.
	a := filepath.Join(top, "a")
	first := open(t, dir, a)
	if err := errors.Join(os.Rename(a, a+".old"), os.Mkdir(a, 0o755)); err != nil {
		t.Fatal(err)
	}
	if open(t, dir, a).Mounts[0].Source == first.Mounts[0].Source {
		t.Error("a new directory got the caches of the one before")
	}
	list, err := List(dir)
	if err != nil || len(list) != 3 || list[0].Workspace == "" {
		t.Errorf("%+v, %v", list, err)
	}
	// The caches of a workspace that is gone go, too.
	if _, err := first.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir, a)
	list, err = List(dir)
	if err != nil || len(list) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
}

// File systems give the inode number of a removed directory to the next one.
func TestADirectoryWithTheInodeOfTheOneBeforeGetsNewCaches(t *testing.T) {
	dir, work := filepath.Join(t.TempDir(), "build"), filepath.Join(t.TempDir(), "w")
	seen := map[string]bool{}
	for range 20 {
		if err := os.Mkdir(work, 0o755); err != nil {
			t.Fatal(err)
		}
		if born, err := sys.BornAt(sys.AtCWD, work); err != nil || born == 0 {
			t.Skipf("the file system knows no time of birth: %d, %v", born, err)
		}
		c := open(t, dir, work)
		if seen[c.dir] {
			t.Fatalf("%s was that of a directory before", c.dir)
		}
		seen[c.dir] = true
		if _, err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(work); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v, %v are left of workspaces that are gone", left, err)
	}
}

// Whoever wants caches that somebody removes waits for that, and gets new ones that nobody removes.
func TestCachesThatAreRemovedMeanwhileAreMadeAnew(t *testing.T) {
	dir, work := filepath.Join(t.TempDir(), "build"), t.TempDir()
	done := make(chan error)
	for range 4 {
		go func() {
			for range 20 {
				c, err := Open(dir, work)
				if err != nil {
					done <- err
					return
				}
				_ = Remove(dir, filepath.Base(c.dir)) // in use, as far as it is this one's
				if _, err := os.Stat(c.Mounts[0].Source); err != nil {
					done <- err
					return
				}
				c.lock.Close()
				if err := Remove(dir, filepath.Base(c.dir)); err != nil && !errors.Is(err, paddock.Conflict) && !errors.Is(err, paddock.NotFound) {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestTheDirectoryOfCachesIsTheCallersAlone(t *testing.T) {
	dir, work := filepath.Join(t.TempDir(), "build"), t.TempDir()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, work); !errors.Is(err, paddock.Denied) {
		t.Errorf("a directory that others can read: %v", err)
	}
	if err := errors.Join(os.Remove(dir), os.Symlink(t.TempDir(), dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, work); !errors.Is(err, paddock.Denied) {
		t.Errorf("a link: %v", err)
	}
}

func TestCachesThatAreTooLargeAreRemoved(t *testing.T) {
	dir, work := filepath.Join(t.TempDir(), "build"), t.TempDir()
	c := open(t, dir, work)
	for i := range 5 {
		if err := os.WriteFile(filepath.Join(c.Mounts[0].Source, fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.max = bound{1 << 40, 3}
	other := open(t, dir, work)
	if removed, err := c.Close(); removed || err != nil {
		t.Errorf("while another sandbox uses them: %v, %v", removed, err)
	}
	other.max = c.max
	if removed, err := other.Close(); !removed || err != nil {
		t.Errorf("%v, %v", removed, err)
	}
	if _, err := os.Lstat(c.Mounts[0].Source); err == nil {
		t.Error("they are still there")
	}
	c = open(t, dir, work)
	if removed, err := c.Close(); removed || err != nil {
		t.Errorf("%v, %v", removed, err)
	}
}

// What a hostile sandbox can leave is removed, and nothing else.
func TestRemoveFollowsNoLinkAndKnowsNoDepth(t *testing.T) {
	dir, work, outside := filepath.Join(t.TempDir(), "build"), t.TempDir(), t.TempDir()
	kept := filepath.Join(outside, "kept")
	if err := os.WriteFile(kept, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := open(t, dir, work)
	id := filepath.Base(c.dir)
	if err := Remove(dir, id); !errors.Is(err, paddock.Conflict) {
		t.Errorf("in use: %v", err)
	}
	at := c.Mounts[0].Source
	deep, err := os.OpenRoot(at)
	if err != nil {
		t.Fatal(err)
	}
	for range 700 {
		if err := deep.Mkdir("d", 0o700); err != nil {
			t.Fatal(err)
		}
		below, err := deep.OpenRoot("d")
		if err != nil {
			t.Fatal(err)
		}
		if err := deep.Symlink(outside, "link"); err != nil {
			t.Fatal(err)
		}
		deep.Close()
		deep = below
	}
	deep.Close()
	if err := errors.Join(syscall.Mkfifo(filepath.Join(at, "fifo"), 0), os.WriteFile(filepath.Join(at, "file"), nil, 0), os.Mkdir(filepath.Join(at, "closed"), 0o700),
		os.WriteFile(filepath.Join(at, "closed/x"), nil, 0), os.Chmod(filepath.Join(at, "closed"), 0)); err != nil {
		t.Fatal(err)
	}
	if size, err := measure(filepath.Dir(at), bound{1 << 40, 1 << 40}); err != nil || size.files <= 1<<40 {
		t.Errorf("a tree that is too deep counts %+v, %v", size, err)
	}
	if _, err := c.Close(); err != nil { // it is too deep, and so removed
		t.Fatal(err)
	}
	if err := Remove(dir, id); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v are left", left, err)
	}
	if _, err := os.Lstat(kept); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{id, "", "..", "../x", strings.Repeat("a", 16), strings.ToUpper("abcdefabcdefabcd")} {
		if err := Remove(dir, bad); !errors.Is(err, paddock.NotFound) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A file system of the host may have files of any size, which are holes alone.
func TestSizesThatAddUpToMoreThanANumberHoldsAreTooLarge(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "buildcache") // its files may be so large
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	below := filepath.Join(dir, "a", "b")
	if err := os.MkdirAll(below, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{dir, filepath.Dir(below), below} {
		for _, name := range []string{"x", "y", "z"} {
			name := filepath.Join(at, name)
			if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Truncate(name, math.MaxInt64)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, most := range []bound{{MaxBytes, MaxFiles}, {1 << 62, 1 << 62}} {
		if size, err := measure(dir, most); err != nil || size.bytes <= MaxBytes {
			t.Errorf("with the bound %d: %+v, %v", most, size, err)
		}
	}
}
