package step

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// What people wrote is kept, whatever marks of caches lie beside it.
func TestAMarkDoesNotMakeTheUsersFilesACache(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"a virtual environment in the root":   {"pyvenv.cfg": "v", "main.py": "mine", "lib/mine.py": "mine", "bin/tool": "mine"},
		"a tag in the root":                   {"CACHEDIR.TAG": cacheTag, "main.go": "mine"},
		"a tag in a repository":               {"p/CACHEDIR.TAG": cacheTag, "p/.git/HEAD": "ref", "p/main.go": "mine"},
		"a tag beside sources":                {"p/CACHEDIR.TAG": cacheTag, "p/go.mod": "m", "p/main.go": "mine"},
		"an environment among sources":        {"p/pyvenv.cfg": "v", "p/src/x": "mine", "p/lib/x": "mine"},
		"beside an environment":               {"p/pyvenv.cfg": "v", "p/notes": "mine"},
		"a repository with a name of a cache": {"node_modules/.git/HEAD": "ref", "node_modules/main.js": "mine"},
		"target with sources":                 {"Cargo.toml": "c", "target/Cargo.toml": "c", "target/x.rs": "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			files["mine"] = "x"
			dir, j := workspace(t), journal(t, Options{})
			plant(t, dir, files)
			before := picture(t, dir)
			oldEnough(t, dir)
			b := &box{r: begin(t, j, dir), dirs: []string{dir}}
			all, err := os.ReadDir(dir)
			must(t, err)
			for _, e := range all {
				must(t, b.clear(0, e.Name()))
			}
			if rec := end(t, b.r); len(rec.Left) != 0 {
				t.Errorf("left %+v", rec.Left)
			}
			undoing(t, j, 1)
			same(t, "undo", before, picture(t, dir))
		})
	}
}

// A sandbox makes the mark in one run, and destroys in the next.
func TestAMarkThatAnEarlierStepMadeIsNone(t *testing.T) {
	dir, j := workspace(t), journal(t, Options{})
	plant(t, dir, map[string]string{"p/x": "mine", "q/x": "cached", "q/CACHEDIR.TAG": cacheTag, "mine": ""})
	oldEnough(t, dir)
	b := &box{r: begin(t, j, dir), dirs: []string{dir}}
	must(t, b.write(0, "p/CACHEDIR.TAG", cacheTag, 0))
	end(t, b.r)
	living := begin(t, j, dir)
	b = &box{r: begin(t, j, dir), dirs: []string{dir}}
	must(t, b.remove(0, "p/x"))
	must(t, b.remove(0, "q/x"))
	rec := end(t, b.r)
	must(t, living.Abandon())
	if len(rec.Left) != 1 || rec.Left[0].Path != "q" {
		t.Errorf("left %+v", rec.Left)
	}
	undoing(t, j, rec.Number)
	if text, err := os.ReadFile(dir + "/p/x"); err != nil || string(text) != "mine" {
		t.Errorf("%q %v", text, err)
	}
}

// The mark is one of a box that is still running.
func TestAMarkThatALivingStepMadeIsNone(t *testing.T) {
	dir, j := workspace(t), journal(t, Options{})
	plant(t, dir, map[string]string{"p/x": "mine", "mine": ""})
	living := &box{r: begin(t, j, dir), dirs: []string{dir}}
	must(t, living.write(0, "p/CACHEDIR.TAG", cacheTag, 0))
	plant(t, dir, map[string]string{"mine": ""})
	oldEnough(t, dir)
	b := &box{r: begin(t, j, dir), dirs: []string{dir}}
	must(t, b.remove(0, "p/x"))
	if rec := end(t, b.r); len(rec.Left) != 0 {
		t.Errorf("left %+v", rec.Left)
	}
	end(t, living.r)
}

func TestAStrictStepTrustsNoMark(t *testing.T) {
	dir, j := workspace(t), journal(t, Options{})
	plant(t, dir, map[string]string{"q/x": "cached", "q/CACHEDIR.TAG": cacheTag, "mine": ""})
	oldEnough(t, dir)
	r, err := j.Begin(t.Context(), About{Roots: []Root{{Path: Text(dir)}}, Strict: true})
	must(t, err)
	b := &box{r: r, dirs: []string{dir}}
	must(t, b.remove(0, "q/x"))
	undoing(t, j, end(t, r).Number)
	if text, err := os.ReadFile(dir + "/q/x"); err != nil || string(text) != "cached" {
		t.Errorf("%q %v", text, err)
	}
}

// What comes and goes in a cache takes no place in the list of what is kept.
func TestACacheDoesNotFillTheListOfPaths(t *testing.T) {
	for _, strict := range []bool{false, true} {
		dir, j := workspace(t), journal(t, Options{Changes: 10})
		plant(t, dir, map[string]string{"src/a": "mine", "src/b": "mine"})
		for i := range 50 {
			plant(t, dir, map[string]string{fmt.Sprint("node_modules/old", i): "x"})
		}
		r, err := j.Begin(t.Context(), About{Roots: []Root{{Path: Text(dir)}}, Strict: strict})
		must(t, err)
		b := &box{r: r, dirs: []string{dir}}
		for i := range 50 {
			must(t, b.write(0, fmt.Sprint("node_modules/new", i), "x", 0))
			must(t, b.remove(0, fmt.Sprint("node_modules/new", i)))
			must(t, b.remove(0, fmt.Sprint("node_modules/old", i)))
		}
		err = b.clear(0, "src")
		if errors.Is(err, paddock.Exhausted) {
			t.Fatal(err)
		}
		must(t, err)
		rec := end(t, r)
		if len(rec.Left) != 1 || rec.Left[0].Why != whyRebuilt {
			t.Errorf("left %+v", rec.Left)
		}
		undoing(t, j, rec.Number)
		for _, p := range []string{"/src/a", "/src/b"} {
			if _, err := os.Lstat(dir + p); errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
		}
	}
}
