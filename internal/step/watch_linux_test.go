package step

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock"
)

// watching keeps what it is told, and refuses the removal of one path.
type watching struct {
	told   []string
	refuse string
	ended  []*Record
}

func (w *watching) Change(c Watched) error {
	w.told = append(w.told, fmt.Sprintf("%s %s%s", c.Verb, c.From, c.Path))
	if string(c.Path) == w.refuse {
		return fmt.Errorf("not this one: %w", paddock.Denied)
	}
	return nil
}

func (w *watching) Ended(r *Record) { w.ended = append(w.ended, r) }

func TestAWatcherIsToldOfChangesAndMayRefuseThem(t *testing.T) {
	w := &watching{refuse: "kept"}
	dir, j := workspace(t), journal(t, Options{Watch: w})
	plant(t, dir, map[string]string{"kept": "mine", "gone": "old", "edited": "one", "moved": "m"})
	r := begin(t, j, dir)
	must(t, r.Write(0, "edited"))
	must(t, r.Write(0, "edited")) // once is enough
	must(t, os.WriteFile(filepath.Join(dir, "edited"), []byte("two"), 0o600))
	must(t, r.Remove(0, "gone"))
	must(t, os.Remove(filepath.Join(dir, "gone")))
	must(t, os.WriteFile(filepath.Join(dir, "made"), []byte("new"), 0o600))
	must(t, r.Create(0, "made"))
	must(t, r.Remove(0, "made")) // which was not there before the step
	must(t, os.Remove(filepath.Join(dir, "made")))
	must(t, r.Move(0, "moved", 0, "elsewhere", Replace))
	must(t, os.Rename(filepath.Join(dir, "moved"), filepath.Join(dir, "elsewhere")))
	for _, err := range []error{r.Remove(0, "kept"), r.Write(0, "kept"), r.Move(0, "edited", 0, "kept", Replace)} {
		if !Refused(err) || !errors.Is(err, paddock.Denied) {
			t.Errorf("a refused change gave %v", err)
		}
	}
	if err := r.Remove(9, "kept"); err == nil || Refused(err) {
		t.Errorf("another error: %v", err)
	}
	rec := end(t, r)
	want := []string{"edited edited", "removed gone", "created made", "moved movedelsewhere", "removed kept", "edited kept", "moved editedkept"}
	if !slices.Equal(w.told, want) {
		t.Errorf("told %q, want %q", w.told, want)
	}
	if len(w.ended) != 1 || w.ended[0].Number != rec.Number || w.ended[0].Changed != 3 {
		t.Errorf("ended: %+v", w.ended)
	}
	undoing(t, j, rec.Number)
	if data, err := os.ReadFile(filepath.Join(dir, "gone")); err != nil || string(data) != "old" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestAWatcherIsToldOfBothNamesOfAnExchangeAndOfLinks(t *testing.T) {
	var told []Watched
	w := &keeping{change: func(c Watched) error {
		told = append(told, c)
		if c.Path == "refused" {
			return fmt.Errorf("not this one: %w", paddock.Denied)
		}
		return nil
	}}
	dir, j := workspace(t), journal(t, Options{Watch: w})
	plant(t, dir, map[string]string{"a": "1", "b": "2", "refused": "3"})
	r := begin(t, j, dir)
	must(t, r.Move(0, "a", 0, "b", Exchange))
	must(t, unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, "a"), unix.AT_FDCWD, filepath.Join(dir, "b"), unix.RENAME_EXCHANGE))
	for _, err := range []error{r.Move(0, "refused", 0, "b", Exchange), r.Move(0, "b", 0, "refused", Exchange)} {
		if !Refused(err) {
			t.Errorf("an exchange with a name that is refused gave %v", err)
		}
	}
	must(t, os.Symlink("a", filepath.Join(dir, "link")))
	must(t, r.Create(0, "link"))
	must(t, os.Mkdir(filepath.Join(dir, "dir"), 0o700))
	must(t, r.Create(0, "dir"))
	end(t, r)
	want := []Watched{
		{Path: "b", From: "a", Verb: Moved, Half: 1}, {Path: "a", From: "b", Verb: Moved, Half: 2},
		{Path: "b", From: "refused", Verb: Moved, Half: 1}, {Path: "refused", From: "b", Was: "a", Old: true, Verb: Moved, Half: 2},
		{Path: "refused", From: "b", Was: "a", Old: true, Verb: Moved, Half: 1},
		{Path: "link", Verb: Created, Link: true, Done: true}, {Path: "dir", Verb: Created, Done: true},
	}
	if !slices.Equal(told, want) {
		t.Errorf("told %+v, want %+v", told, want)
	}
}

// keeping is a watcher with a function of its own.
type keeping struct{ change func(Watched) error }

func (k *keeping) Change(c Watched) error { return k.change(c) }

func (*keeping) Ended(*Record) {}
