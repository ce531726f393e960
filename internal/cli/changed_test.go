package cli

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func TestChangedFilesThatTheHostObeysAreFound(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"Makefile", "notes.txt", "sub/package.json", "node_modules/x/package.json"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// A program that hides its change behind an old date is found too.
	if err := os.Chtimes(filepath.Join(dir, "Makefile"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/", filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	mounts := []paddock.Mount{{Source: dir, Write: true}, {Source: filepath.Join(dir, "sub")}}
	found, whole := change{since: time.Unix(2, 0)}.files(mounts)
	if len(found) != 2 || !whole {
		t.Fatalf("found %v, whole %v", found, whole)
	}
	for i, name := range []string{"Makefile", "sub/package.json"} {
		if found[i].Path != filepath.Join(dir, name) || found[i].Reason == "" {
			t.Errorf("found %+v, want %s", found[i], name)
		}
	}

	info, err := os.Lstat(filepath.Join(dir, "sub/package.json"))
	if err != nil {
		t.Fatal(err)
	}
	last := ChangeTime(info)
	if found, _ := (change{since: last.Add(time.Hour)}).files(mounts); len(found) != 0 {
		t.Errorf("found what nobody changed: %v", found)
	}
}

func TestABeginningIsNotAfterWhatFollows(t *testing.T) {
	dir := t.TempDir()
	c := beginning()
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if found, _ := c.files([]paddock.Mount{{Source: dir, Write: true}}); len(found) != 1 {
		t.Errorf("found %v", found)
	}
	if c.since.IsZero() {
		t.Error("the beginning is not known")
	}
}
