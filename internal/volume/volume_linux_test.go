package volume

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func TestAVolumeStaysUntilNobodyUsesIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volumes")
	if err := Create(dir, "a", 1<<20, time.Unix(5, 0)); err != nil {
		t.Fatal(err)
	}
	if err := Create(dir, "a", 1<<20, time.Unix(5, 0)); !errors.Is(err, paddock.Conflict) {
		t.Errorf("twice: %v", err)
	}
	one, err := Open(dir, "a", true)
	if err != nil {
		t.Fatal(err)
	}
	two, err := Open(dir, "a", false)
	if err != nil {
		t.Fatal(err)
	}
	m := one.Mount("/v")
	if !m.Cache || !m.Write || two.Mount("/v").Write || !two.Mount("/v").Cache || m.Source != filepath.Join(dir, "a", "data") {
		t.Errorf("%+v, %+v", m, two.Mount("/v"))
	}
	if err := os.WriteFile(filepath.Join(m.Source, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, u := range []*Use{one, two} {
		if err := Remove(dir, "a"); !errors.Is(err, paddock.Conflict) {
			t.Errorf("in use: %v", err)
		}
		if e, err := Inspect(dir, "a"); err != nil || !e.InUse || e.Files != 1 || e.Size != 1<<20 || !e.Created.Equal(time.Unix(5, 0)) {
			t.Errorf("%+v, %v", e, err)
		}
		if err := u.Close(); err != nil {
			t.Error(err)
		}
	}
	if list, err := List(dir); err != nil || len(list) != 1 || list[0].InUse {
		t.Errorf("%+v, %v", list, err)
	}
	if err := Remove(dir, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, "a", true); !errors.Is(err, paddock.NotFound) {
		t.Errorf("removed: %v", err)
	}
}

func TestAFullVolumeIsOnlyRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volumes")
	if err := Create(dir, "a", 1<<20, time.Now()); err != nil {
		t.Fatal(err)
	}
	u, err := Open(dir, "a", true)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(u.Mount("/v").Source, "x"), make([]byte, 1<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := u.Close(); !errors.Is(err, paddock.Exhausted) {
		t.Errorf("at the end: %v", err)
	}
	if _, err := Open(dir, "a", true); !errors.Is(err, paddock.Exhausted) {
		t.Errorf("to write: %v", err)
	}
	r, err := Open(dir, "a", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Close(), Resize(dir, "a", 2<<20)); err != nil {
		t.Fatal(err)
	}
	u, err = Open(dir, "a", true)
	if err != nil {
		t.Fatal(err)
	}
	if err := u.Close(); err != nil {
		t.Error(err)
	}
}

func TestRemovalFollowsNoLinkAndClearsWhatAKilledOneLeft(t *testing.T) {
	top := t.TempDir()
	dir, kept := filepath.Join(top, "volumes"), filepath.Join(top, "kept")
	if err := errors.Join(Create(dir, "a", 1<<20, time.Now()), os.WriteFile(kept, nil, 0o600),
		os.Symlink(top, filepath.Join(dir, "a", "data", "link")), os.MkdirAll(filepath.Join(dir, ".made-1", "data"), 0o700),
		os.MkdirAll(filepath.Join(dir, ".gone-1", "data"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if list, err := List(dir); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	if err := Remove(dir, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(kept); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 { // the lock
		t.Errorf("%v, %v", left, err)
	}
}

func TestNamesAreNoPaths(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volumes")
	for _, name := range []string{"", ".", "..", "a/b", "../a", "A", ".lock", "-a", strings.Repeat("a", 64), "a\x00"} {
		_, opened := Open(dir, name, true)
		_, inspected := Inspect(dir, name)
		for _, err := range []error{Create(dir, name, 1<<20, time.Now()), Resize(dir, name, 1<<20), Remove(dir, name), opened, inspected} {
			if !errors.Is(err, paddock.Invalid) {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
	if err := Create(dir, "a", 0, time.Now()); !errors.Is(err, paddock.Invalid) {
		t.Errorf("no size: %v", err)
	}
}

func TestMeasuringLeavesTheModesOfDirectories(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volumes")
	closed := filepath.Join(dir, "a", "data", "closed")
	if err := errors.Join(Create(dir, "a", 1<<20, time.Now()), os.Mkdir(closed, 0o700), os.WriteFile(filepath.Join(closed, "x"), nil, 0o600), os.Chmod(closed, 0)); err != nil {
		t.Fatal(err)
	}
	if e, err := Inspect(dir, "a"); err != nil || e.Files != 2 {
		t.Errorf("%+v, %v", e, err)
	}
	if st, err := os.Lstat(closed); err != nil || st.Mode().Perm() != 0 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	if err := Remove(dir, "a"); err != nil {
		t.Error(err)
	}
}
