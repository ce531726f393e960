package box

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// A sandbox may write where a link to the cache leads, before there is a cache.
func TestTheCacheIsProtectedWhereItWillBe(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	disk := filepath.Join(home, "disk")
	if err := errors.Join(os.Mkdir(disk, 0o700), os.Symlink("disk", filepath.Join(home, "cache"))); err != nil {
		t.Fatal(err)
	}
	s, err := NewSite(paddock.Jail, Options{State: filepath.Join(home, "state"), Cache: filepath.Join(home, "cache", "paddock")})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{filepath.Join(disk, "paddock"), filepath.Join(home, "state")} {
		if own := s.own(); !slices.Contains(own, want) {
			t.Errorf("%s is not among %q", want, own)
		}
	}
}

// A server runs on while paddock is upgraded, and the next program is as precious as the first.
func TestAProgramIsProtectedWhereItIsInstalledAfterAnUpgrade(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	name, next := filepath.Join(dir, "paddock"), filepath.Join(dir, "next")
	if err := errors.Join(os.WriteFile(name, nil, 0o755), os.WriteFile(next, nil, 0o755)); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	link := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	if got := installedAt(link); got != name {
		t.Errorf("%q, not %q", got, name)
	}
	if err := os.Rename(next, name); err != nil {
		t.Fatal(err)
	}
	if got := installedAt(link); got != name {
		t.Errorf("after an upgrade %q, not %q", got, name)
	}
}
