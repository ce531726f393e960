package box

import (
	"errors"
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
