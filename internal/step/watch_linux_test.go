package step

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

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
