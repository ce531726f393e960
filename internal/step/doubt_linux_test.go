package step

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Another sandbox moves a directory while this one changes what is in it. What is about to change is not where it was seen, so
// nobody knows what it is.
func TestWhatIsNotWhereItWasSeenIsNotChanged(t *testing.T) {
	for name, call := range map[string]func(*Recorder) error{
		"write": func(r *Recorder) error { return r.Write(0, "d/f") }, "mode": func(r *Recorder) error { return r.Mode(0, "d/f") },
		"removal": func(r *Recorder) error { return r.Remove(0, "d/f") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := workspace(t)
			plant(t, dir, map[string]string{"d/f": "1"})
			r := begin(t, journal(t, Options{}), dir)
			must(t, os.Rename(dir+"/d", dir+"/e"))
			if err := call(r); !Elsewhere(err) {
				t.Errorf("it may change: %v", err)
			}
			must(t, os.Rename(dir+"/e", dir+"/d"))
			must(t, call(r))
			must(t, r.Remove(0, "d/f"))
			must(t, os.Remove(dir+"/d/f"))
			if err := call(r); !Elsewhere(err) {
				t.Errorf("it may change after its removal: %v", err)
			}
			if rec := end(t, r); len(rec.Changes) != 1 || rec.Changes[0].Kept == 0 {
				t.Errorf("%+v", rec.Changes)
			}
		})
	}
}

// The recorder is killed, the user repairs a file, and only then is the step recovered.
func TestWhatTheUserRepairedAfterAKillIsNotTheSteps(t *testing.T) {
	dir, j := workspace(t), journal(t, Options{})
	plant(t, dir, map[string]string{"a": "old a", "b": "old b"})
	b := &box{r: begin(t, j, dir), dirs: []string{dir}}
	for _, p := range []string{"a", "b", "new"} {
		must(t, b.write(0, p, "by the step", os.O_TRUNC))
	}
	leaveDead(t, b.r)
	long := time.Now().Add(-time.Hour) // as if the step was killed then
	must(t, os.Chtimes(j.root.Name()+"/"+b.r.path, long, long))
	for _, p := range []string{"a", "new"} {
		must(t, os.WriteFile(dir+"/"+p, []byte("by the user"), 0o644))
	}
	_, err := j.Recover(t.Context())
	must(t, err)
	res := undoing(t, j, 1)
	if len(res.Conflicts) != 3 { // that of b changed after the last line of the log, too
		t.Errorf("%+v", res)
	}
	for _, p := range []string{"a", "new"} {
		if text, err := os.ReadFile(dir + "/" + p); err != nil || string(text) != "by the user" {
			t.Errorf("%s: %q %v", p, text, err)
		}
	}
}

// The step removes a file, the user makes it again, and the step removes that one as well.
func TestAFileThatTheUserMadeAgainIsNotRemovedUnsaid(t *testing.T) {
	for _, write := range []bool{false, true} {
		for _, strict := range []bool{false, true} {
			dir, j := workspace(t), journal(t, Options{})
			plant(t, dir, map[string]string{"f": "old"})
			r, err := j.Begin(t.Context(), About{Roots: []Root{{Path: Text(dir)}}, Strict: strict})
			must(t, err)
			b := &box{r: r, dirs: []string{dir}}
			must(t, b.write(0, "keep", "x", 0))
			must(t, b.remove(0, "f"))
			plant(t, dir, map[string]string{"other": "", "f": "by the user"})
			if write {
				err = r.Write(0, "f")
			} else {
				err = r.Remove(0, "f")
			}
			if strict != errors.Is(err, paddock.Exhausted) || !strict && err != nil {
				t.Errorf("write %v, strict %v: %v", write, strict, err)
			}
			rec := end(t, r)
			if !strict && (len(rec.Left) != 1 || rec.Left[0].Path != "f" || rec.Left[0].Why != whyStray) {
				t.Errorf("left %+v", rec.Left)
			}
		}
	}
}

// A removal failed, and nobody said so. The file itself is there, so it is the same.
func TestARemovalThatFailedUnsaidIsTakenBack(t *testing.T) {
	for _, strict := range []bool{false, true} {
		dir, j := workspace(t), journal(t, Options{})
		plant(t, dir, map[string]string{"f": "old", "d/x": "old"})
		before := picture(t, dir)
		r, err := j.Begin(t.Context(), About{Roots: []Root{{Path: Text(dir)}}, Strict: strict})
		must(t, err)
		b := &box{r: r, dirs: []string{dir}}
		must(t, r.Remove(0, "f"))
		must(t, r.Remove(0, "d"))
		must(t, b.write(0, "f", "by the step", os.O_TRUNC))
		must(t, b.clear(0, "d"))
		rec := end(t, r)
		if len(rec.Left) != 0 {
			t.Errorf("left %+v", rec.Left)
		}
		if res := undoing(t, j, rec.Number); len(res.Conflicts) != 0 {
			t.Errorf("%+v", res.Conflicts)
		}
		same(t, "undo", before, picture(t, dir))
	}
}

func TestWhatIsNotFollowedAnyMoreIsRefusedByAStrictStep(t *testing.T) {
	dir, j := workspace(t), journal(t, Options{})
	plant(t, dir, map[string]string{"src/a": "mine"})
	r, err := j.Begin(t.Context(), About{Roots: []Root{{Path: Text(dir)}}, Strict: true})
	must(t, err)
	must(t, r.Create(0, "src/new"))
	r.mu.Lock()
	r.names.lose(key{0, "src/new"})
	r.names.put(key{0, "src"}).is = unknown
	r.mu.Unlock()
	for _, err := range []error{r.Remove(0, "src/a"), r.Write(0, "src/a")} {
		if !errors.Is(err, paddock.Exhausted) {
			t.Error(err)
		}
	}
	end(t, r)
}

// Undo removes nothing that redo could not bring back.
func TestUndoKeepsWhatItDestroysOrLeavesItAlone(t *testing.T) {
	j, dir, rec := recorded(t, map[string]string{"main.go": "mine"}, func(b *box) {
		must(t, b.write(0, "dataset", strings.Repeat("x", 100_000), 0))
		must(t, b.write(0, "main.go", "broken", os.O_TRUNC))
	})
	j.opts.File = 50_000
	res := undoing(t, j, rec.Number)
	if len(res.Restored) != 1 || len(res.Conflicts) != 1 || res.Conflicts[0].Path != "dataset" {
		t.Errorf("%+v", res)
	}
	if i, err := os.Lstat(dir + "/dataset"); err != nil || i.Size() != 100_000 {
		t.Error(err)
	}
	if text, err := os.ReadFile(dir + "/main.go"); err != nil || string(text) != "mine" {
		t.Errorf("%q %v", text, err)
	}
}

// The long step wrote first, the short one wrote and ended, and only then did the long one end.
func TestUndoOfAStepLeavesWhatAnotherChangedMeanwhile(t *testing.T) {
	dir, j := workspace(t), journal(t, Options{})
	plant(t, dir, map[string]string{"f": "old", "g": "old"})
	long := &box{r: begin(t, j, dir), dirs: []string{dir}}
	must(t, long.write(0, "f", "by the long one", os.O_TRUNC))
	must(t, long.write(0, "g", "by the long one", os.O_TRUNC))
	short := &box{r: begin(t, j, dir), dirs: []string{dir}}
	must(t, short.write(0, "f", "by the short one", os.O_TRUNC))
	end(t, short.r)
	rec := end(t, long.r)
	res := undoing(t, j, rec.Number)
	if len(res.Conflicts) != 1 || res.Conflicts[0].Path != "f" || len(res.Restored) != 1 {
		t.Errorf("%+v", res)
	}
	same(t, "undo", map[string]string{"0:f": `-rw-r--r-- "by the short one"`, "0:g": `-rw-r--r-- "old"`}, picture(t, dir))
}

// Each of many names of one file costs the recorder no more than a line: not the list of its parts again.
func TestNamesOfOneFileShareItsContents(t *testing.T) {
	dir, j := workspace(t), journal(t, Options{})
	f, err := os.Create(dir + "/0")
	must(t, err)
	for i := range int64(200) { // many parts with holes between
		_, err := f.WriteAt(bytes.Repeat([]byte{byte(i), 1}, 2048), i*65536)
		must(t, err)
	}
	must(t, f.Close())
	for i := 1; i < 50; i++ {
		must(t, os.Link(dir+"/0", fmt.Sprint(dir, "/", i)))
	}
	b := &box{r: begin(t, j, dir)}
	must(t, b.r.Write(0, "0"))
	first := b.r.log.size
	must(t, os.Truncate(dir+"/0", 0))
	for i := 1; i < 50; i++ {
		must(t, b.r.Write(0, fmt.Sprint(i)))
	}
	if more := b.r.log.size - first; more > 49*1000 || first < 200*32 {
		t.Errorf("the log has %d bytes of the first name, and %d of the others", first, more)
	}
	leaveDead(t, b.r)
	list, err := j.Recover(t.Context())
	must(t, err)
	if len(list) != 1 || len(list[0].Changes) != 50 {
		t.Fatalf("%+v", list)
	}
	if res := undoing(t, j, 1); len(res.Conflicts) != 0 {
		t.Errorf("%+v", res.Conflicts)
	}
	text, err := os.ReadFile(dir + "/49")
	if err != nil || len(text) != 199*65536+4096 || text[199*65536] != 199 || text[len(text)-1] != 1 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// What is stored and then turns out to have changed meanwhile counts, and is not tried again by each other name.
func TestAFileThatNeverStandsStillIsStoredOnlySoOften(t *testing.T) {
	dir, j := workspace(t), journal(t, Options{Step: 1 << 20})
	plant(t, dir, map[string]string{"0": strings.Repeat("0", 100_000)})
	for i := 1; i < 30; i++ {
		must(t, os.Link(dir+"/0", fmt.Sprint(dir, "/", i)))
	}
	r := begin(t, j, dir)
	n := 0
	r.pass = func() {
		n++
		must(t, os.WriteFile(dir+"/0", []byte(fmt.Sprintf("%0100000d", n)), 0o644))
	}
	for i := range 30 {
		must(t, r.Write(0, fmt.Sprint(i)))
	}
	r.mu.Lock()
	bytes := r.bytes
	r.mu.Unlock()
	if bytes < 100_000 || bytes > 300_000 {
		t.Errorf("%d bytes", bytes)
	}
	r.pass = func() {}
	if rec := end(t, r); len(rec.Left) != 30 {
		t.Errorf("%d left", len(rec.Left))
	}
}

// A killed recorder's contents do not stay uncounted until somebody asks for the steps.
func TestAStepThatBeginsRecoversDeadOnes(t *testing.T) {
	dir, j := workspace(t), journal(t, Options{})
	plant(t, dir, map[string]string{"a": "old"})
	b := &box{r: begin(t, j, dir), dirs: []string{dir}}
	must(t, b.remove(0, "a"))
	leaveDead(t, b.r)
	must(t, begin(t, j, dir).Abandon())
	if rec, err := j.Read(t.Context(), 1); err != nil || !rec.Incomplete || len(rec.Changes) != 1 {
		t.Errorf("%+v %v", rec, err)
	}
	drafts, err := j.store.Drafts()
	if err != nil || len(drafts) != 0 {
		t.Error(drafts, err)
	}
}

// A pack that was left by a kill in the last moment goes.
func TestAPackWithoutALogGoes(t *testing.T) {
	j := journal(t, Options{})
	must(t, j.root.WriteFile(packPath(7), []byte("x"), 0o600))
	_, err := j.Recover(t.Context())
	must(t, err)
	if _, err := j.root.Lstat(packPath(7)); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// Small files are in one blob, also after a kill, and each comes back with its own contents.
func TestSmallFilesComeBackFromOneBlob(t *testing.T) {
	for _, killed := range []bool{false, true} {
		dir, j := workspace(t), journal(t, Options{})
		files := map[string]string{"empty": "", "large": strings.Repeat("large", packMost)}
		for i := range 300 {
			files[fmt.Sprint("d/", i)] = strings.Repeat(fmt.Sprint(i, " "), i*10)
		}
		plant(t, dir, files)
		must(t, os.Link(dir+"/d/7", dir+"/seven"))
		before := picture(t, dir)
		b := &box{r: begin(t, j, dir), dirs: []string{dir}}
		for _, p := range []string{"d", "empty", "large", "seven"} {
			must(t, b.clear(0, p))
		}
		if killed {
			leaveDead(t, b.r)
			_, err := j.Recover(t.Context())
			must(t, err)
		} else {
			end(t, b.r)
		}
		has, err := j.stock(t.Context(), &Record{Number: 1, Snapshot: j.snapshot(1)})
		must(t, err)
		if len(has.has) != 2 {
			t.Errorf("%d contents", len(has.has))
		}
		if res := undoing(t, j, 1); len(res.Conflicts) != 0 {
			t.Errorf("%+v", res.Conflicts)
		}
		same(t, "undo", before, picture(t, dir))
		if all, err := j.root.Open(dirLogs); err == nil {
			names, err := all.Readdirnames(-1)
			must(t, err)
			must(t, all.Close())
			if len(names) != 0 {
				t.Errorf("left %q", names)
			}
		}
	}
}

// The number of a file whose last name went may soon be that of another one, of somebody else.
func TestAFileIsForgottenWithItsLastName(t *testing.T) {
	for _, replace := range []bool{false, true} {
		dir, j := workspace(t), journal(t, Options{})
		plant(t, dir, map[string]string{"a": "old", "other": "x"})
		must(t, os.Link(dir+"/a", dir+"/b"))
		b := &box{r: begin(t, j, dir), dirs: []string{dir}}
		must(t, b.write(0, "a", "new", os.O_TRUNC))
		must(t, b.remove(0, "a"))
		if len(b.r.linked) != 1 {
			t.Error("forgotten too early")
		}
		if replace {
			must(t, b.move(0, "other", 0, "b", Replace))
		} else {
			must(t, b.remove(0, "b"))
		}
		if len(b.r.linked) != 0 {
			t.Error("not forgotten")
		}
		before := map[string]string{"0:a": `-rw-r--r-- "old"`, "0:b": `-rw-r--r-- "old"`, "0:other": `-rw-r--r-- "x"`}
		undoing(t, j, end(t, b.r).Number)
		same(t, "undo", before, picture(t, dir))
	}
}
