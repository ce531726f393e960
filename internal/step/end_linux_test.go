package step

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/snapshot"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// dig makes a chain of directories, each by its parent, because the whole path is longer than a path may be.
func dig(t *testing.T, r *Recorder, dir, top string, bytes int) (last string) {
	t.Helper()
	at, err := sys.OpenDirAt(sys.AtCWD, dir)
	must(t, err)
	name, p := top, ""
	for len(p)+len(name) < bytes {
		must(t, sys.MkdirAt(at, name, 0o755))
		next, err := sys.OpenDirAt(at, name)
		must(t, err)
		sys.Close(at)
		at, p = next, strings.TrimPrefix(p+"/"+name, "/")
		if r != nil {
			must(t, r.Create(0, p))
		}
		name = strings.Repeat("d", 250)
	}
	sys.Close(at)
	return p
}

// A moved directory takes paths along that become too long for anything. That must not end the end, nor what recovers.
func TestAPathThatIsTooLongAtTheEndCostsNoRecord(t *testing.T) {
	for _, made := range []bool{true, false} {
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprint(made, killed), func(t *testing.T) {
				dir, j := workspace(t), journal(t, Options{})
				plant(t, dir, map[string]string{"src/a": "mine"})
				var deep string
				if !made {
					deep = dig(t, nil, dir, "top", 3900)
				}
				b := &box{r: begin(t, j, dir), dirs: []string{dir}}
				if made {
					dig(t, b.r, dir, "top", 3900)
				} else { // a file of before the step deep below, whose contents are kept
					must(t, b.r.Mode(0, deep))
					tree, err := openTree(dir)
					must(t, err)
					defer tree.close()
					must(t, tree.in(deep, func(d int, name string) error { return sys.ChmodAt(d, name, 0o700) }))
				}
				x, y := strings.Repeat("x", 200), strings.Repeat("y", 200)
				must(t, b.mkdir(0, x))
				must(t, b.mkdir(0, x+"/"+y))
				must(t, b.move(0, "top", 0, x+"/"+y+"/top", Free))
				must(t, b.clear(0, "src"))
				var rec *Record
				if killed {
					leaveDead(t, b.r)
					list, err := j.Recover(t.Context())
					must(t, err)
					if len(list) != 1 {
						t.Fatal(list)
					}
				} else {
					end(t, b.r)
				}
				rec, err := j.Read(t.Context(), 1)
				must(t, err)
				if len(rec.Left) == 0 || !rec.Incomplete {
					t.Errorf("left %+v", rec.Left)
				}
				if _, err := j.Undo(t.Context(), Request{Steps: []int64{1}, Paths: []string{dir + "/src"}}); err != nil {
					t.Fatal(err)
				}
				if text, err := os.ReadFile(dir + "/src/a"); err != nil || string(text) != "mine" {
					t.Errorf("%q %v", text, err)
				}
			})
		}
	}
}

func TestAFileThatNoSnapshotCanHoldIsNotKept(t *testing.T) {
	dir, j := workspace(t), journal(t, Options{})
	if err := os.WriteFile(dir+"/huge", nil, 0o600); err != nil || os.Truncate(dir+"/huge", snapshot.MaxSize+1) != nil {
		memory, err := os.MkdirTemp("/dev/shm", "step")
		if err != nil {
			t.Skipf("no file system has files of that size: %v", err)
		}
		t.Cleanup(func() { os.RemoveAll(memory) })
		dir = memory
	}
	plant(t, dir, map[string]string{"huge": "x", "src": "mine"})
	if err := os.Truncate(dir+"/huge", snapshot.MaxSize+1); err != nil {
		t.Skipf("the file system has no files of that size: %v", err)
	}
	for _, strict := range []bool{true, false} {
		r, err := j.Begin(t.Context(), About{Roots: []Root{{Path: Text(dir)}}, Strict: strict})
		must(t, err)
		if err := r.Write(0, "huge"); strict == (err == nil) {
			t.Errorf("strict %v: %v", strict, err)
		}
		must(t, os.WriteFile(dir+"/huge", []byte("y"), 0o644))
		must(t, os.Truncate(dir+"/huge", snapshot.MaxSize+1))
		must(t, r.Remove(0, "src"))
		must(t, os.Remove(dir+"/src"))
		undoing(t, j, end(t, r).Number)
		if text, err := os.ReadFile(dir + "/src"); err != nil || string(text) != "mine" {
			t.Errorf("%q %v", text, err)
		}
	}
}

// Whatever keeps the end from ending, it does not keep the log and the draft for ever.
func TestARecoveryThatFailedTwiceEndsWithARecord(t *testing.T) {
	dir, j := workspace(t), journal(t, Options{})
	plant(t, dir, map[string]string{"a": strings.Repeat("mine", packMost)})
	b := &box{r: begin(t, j, dir), dirs: []string{dir}}
	must(t, b.remove(0, "a"))
	kept := b.r.saved[key{0, "a"}]
	must(t, b.r.note(true, &entry{Op: opSave, From: "b", State: State{Kind: File, Size: 1}, Kept: 2, Parts: func() []byte {
		p, err := kept.contents.MarshalBinary()
		must(t, err)
		return p
	}()})) // contents that are longer than their file
	leaveDead(t, b.r)
	for i := range 3 {
		list, err := j.Recover(t.Context())
		if (i == 0) != (err != nil) || (i == 1) != (len(list) == 1) {
			t.Fatalf("%d: %+v %v", i, list, err)
		}
	}
	if rec, err := j.Read(t.Context(), 1); err != nil || !rec.Incomplete || len(rec.Changes) != 2 || rec.Changes[0].Why == "" {
		t.Errorf("%+v %v", rec, err)
	}
	drafts, err := j.store.Drafts()
	if err != nil || len(drafts) != 0 {
		t.Error(drafts, err)
	}
	if all, err := j.numbers(dirLogs); err != nil || len(all) != 0 {
		t.Error(all, err)
	}
}

// Many names that the step made do not make a record that nobody can read.
func TestARecordHasNoMorePathsThanItMay(t *testing.T) {
	dir, j := workspace(t), journal(t, Options{Changes: 20})
	plant(t, dir, map[string]string{"src": "mine"})
	b := &box{r: begin(t, j, dir), dirs: []string{dir}}
	must(t, b.remove(0, "src"))
	for i := range 60 {
		must(t, b.write(0, fmt.Sprint("new", i), "x", 0))
	}
	rec := end(t, b.r)
	if len(rec.Changes) > 21 || !rec.Incomplete || len(rec.Left) != 1 || rec.Left[0].Why != whyMany {
		t.Errorf("%d changes, left %+v", len(rec.Changes), rec.Left)
	}
	undoing(t, j, rec.Number)
	if text, err := os.ReadFile(dir + "/src"); err != nil || string(text) != "mine" {
		t.Errorf("%q %v", text, err)
	}
}
