package vfs_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// drain gives the events that are there.
func drain(t *testing.T, w *vfs.Watch) []string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var all []string
	for {
		e, err := w.Next(ctx)
		if err != nil {
			return all
		}
		s := fmt.Sprintf("%s %s", e.Op, e.Path)
		if e.Lost {
			s = "lost, then " + s
		}
		all = append(all, s)
	}
}

func TestAWatchTellsWhatChanges(t *testing.T) {
	v := root(vfs.New(vfs.Options{}))
	must(t, v.MkdirAll("/d/sub/deep", 0o755))
	must(t, v.WriteFile("/d/file", nil, 0o644))
	must(t, v.Symlink("/d", "/link"))
	flat, err := v.FS.Watch("/d/", false)
	must(t, err)
	all, err := v.FS.Watch("/link", true)
	must(t, err)
	one, err := v.FS.Watch("/d/file", false)
	must(t, err)
	must(t, v.WriteFile("/d/new", []byte("x"), 0o644))
	must(t, v.WriteFile("/d/sub/deep/f", []byte("x"), 0o644))
	must(t, v.Chmod("/d/file", 0o600))
	must(t, v.WriteFile("/elsewhere", nil, 0o644))
	must(t, v.Rename("/d/sub", "/d/moved"))
	h, err := v.Open("/d/file", linux.O_WRONLY, 0)
	must(t, err)
	for range 3 {
		_, err = h.Write([]byte("a"))
		must(t, err)
	}
	must(t, v.Rename("/d/file", "/d/moved/f2"))
	_, err = h.Write([]byte("a"))
	must(t, err)
	must(t, v.Unlink("/d/moved/f2"))
	_, err = h.Write([]byte("a"))
	must(t, err)
	must(t, v.RemoveAll("/d"))
	check := func(what string, w *vfs.Watch, want ...string) {
		t.Helper()
		if got := drain(t, w); !slices.Equal(got, want) {
			t.Errorf("%s:\n%q\nwant\n%q", what, got, want)
		}
	}
	check("a directory", flat, "made /d/new", "written /d/new", "changed /d/file", "moved /d/sub", "made /d/moved",
		"written /d/file", "moved /d/file", "removed /d/new", "removed /d/moved", "removed /d")
	check("all below", all, "made /link/new", "written /link/new", "made /link/sub/deep/f", "written /link/sub/deep/f",
		"changed /link/file", "moved /link/sub", "made /link/moved", "written /link/file", "moved /link/file",
		"made /link/moved/f2", "written /link/moved/f2", "removed /link/moved/f2", "removed /link/new",
		"removed /link/moved/deep/f", "removed /link/moved/deep", "removed /link/moved", "removed /link")
	check("one file", one, "changed /d/file", "written /d/file", "moved /d/file", "made /d/file", "written /d/file",
		"removed /d/file", "written /d/file")
	must(t, flat.Close())
	must(t, flat.Close())
	if _, err := flat.Next(t.Context()); err != linux.EBADF {
		t.Errorf("after Close: %v", err)
	}
}

func TestAWatchThatIsNotReadLosesTheOldest(t *testing.T) {
	v := root(vfs.New(vfs.Options{}))
	w, err := v.FS.Watch("/", false)
	must(t, err)
	for i := range 10_000 {
		must(t, v.Mkdir(fmt.Sprint("/", i), 0o755))
	}
	got := drain(t, w)
	if len(got) >= 10_000 || got[0][:4] != "lost" || got[len(got)-1] != "made /9999" {
		t.Errorf("%d events, from %q to %q", len(got), got[0], got[len(got)-1])
	}
	done := make(chan error)
	go func() {
		_, err := w.Next(t.Context())
		done <- err
	}()
	must(t, w.Close())
	if err := <-done; err != linux.EBADF {
		t.Errorf("one that waited: %v", err)
	}
}
