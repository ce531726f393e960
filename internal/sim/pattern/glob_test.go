package pattern_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/pattern"
)

// disk is a real directory, so that bash can look at the same one.
type disk string

func (d disk) at(path string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	return string(d) + "/" + path
}

func (d disk) ReadDir(dir string) ([]pattern.Entry, error) {
	list, err := os.ReadDir(d.at(dir))
	if err != nil {
		return nil, err
	}
	var entries []pattern.Entry
	for _, e := range list {
		kind := pattern.Other
		switch {
		case e.IsDir():
			kind = pattern.Directory
		case e.Type()&os.ModeSymlink != 0:
			kind = pattern.Link
		}
		entries = append(entries, pattern.Entry{Name: e.Name(), Kind: kind})
	}
	return entries, nil
}

func (d disk) Exists(path string) bool {
	_, err := os.Lstat(d.at(path))
	return err == nil
}

func (d disk) IsDir(path string) bool {
	info, err := os.Stat(d.at(path))
	return err == nil && info.IsDir()
}

func tree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"a/b/c/h", "a/b/g", "a/f", "a/.k/x", ".d/e/q", ".hid", "x/y/z", "A.txt", "b.txt", "[z]", "x/a/x/1", "é/ü", "-n", "q r/s t"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"la": "a", "dang": "nowhere", "a/b/up": "../..", "lf": "a/f"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestPathsAreFoundAsInBash(t *testing.T) {
	dir := tree(t)
	patterns := strings.Fields(`* */ */* */*/ a/* a//* a//b/* *// *//f ./* ./*/ a/b/../* .* .*/ [.]hid @(.hid|b.txt) !(x) ?(.)hid *(.)hid +(.)hid .!(hid) @([.])hid
		dang* dan[g]/ d*/x lf* lf*/ l*/* l*/ */f */b/g */b/c* a/*/g a/b* a?b a/?/? */. */.. */./b [a-z]* [!a]* [[]z] \[z]* [[:upper:]]* *.txt *.[tx]*t {a,b}* ?? é* é/? ?/ü
		nothing* a/nothing* */nothing \a/* a\/* a*/ x/a/x/* *[ ]* q\ r/* *\ t @(a|x)/* @(a/b|x)/* +([a-z]) !(*.txt) *@(.txt|g) a/!(b) */!(.*) [a/]* a[/]* [ -*`)
	stars := strings.Fields(`** **/ a/** **/b **/* **/*/ **/f **/up/* **/c/** **/** a** **a la/** **/la/** **/. .** **/.* x/**/x **/x **/x/** **/x/**/1 **/x/**/ **/x/**/a **/a/** **/[a-c] a/**/ **/*.txt **/**/h ./** ./**/ nothing/** **/nothing **/up/ *a/** .d/** **/y/z`)
	var script strings.Builder
	type query struct {
		pat string
		opt pattern.GlobOptions
	}
	var queries []query
	ask := func(setup string, o pattern.GlobOptions, list []string) {
		o.ExtGlob = true
		fmt.Fprintf(&script, "shopt -u globstar dotglob nocaseglob; shopt -s globskipdots extglob nullglob; unset GLOBIGNORE; %s\n", setup)
		for _, pat := range list {
			if strings.Contains(pat, "{") {
				continue
			}
			fmt.Fprintf(&script, "IFS=; p=%s; set -- $p; IFS='#'; printf '%%s\\n' \"$*\"\n", single(pat))
			queries = append(queries, query{pat, o})
		}
	}
	ask(":", pattern.GlobOptions{}, patterns)
	ask("shopt -s dotglob", pattern.GlobOptions{Dots: true}, patterns)
	ask("shopt -u globskipdots", pattern.GlobOptions{DotDirs: true}, patterns)
	ask("shopt -s nocaseglob", pattern.GlobOptions{IgnoreCase: true}, patterns)
	ask("shopt -s globstar", pattern.GlobOptions{Star: true}, append(stars, patterns...))
	for _, ignore := range []string{"a*", "*.txt:x", "*f", "a/b", "a/*", "*/b", ".hid:*[a-c]", "[[:alpha:]]*"} {
		o := pattern.GlobOptions{Dots: true, Ignore: pattern.IgnorePatterns(ignore, true)}
		ask("GLOBIGNORE="+single(ignore), o, strings.Fields("* */* a/* .* */ */b"))
	}
	lines := bash(t, dir, script.String())
	if len(lines) != len(queries) {
		t.Fatalf("bash printed %d lines for %d patterns", len(lines), len(queries))
	}
	for i, q := range queries {
		found, err := pattern.Glob(disk(dir), q.pat, q.opt)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(found, "#")
		if !pattern.HasMeta(q.pat, true) {
			continue
		}
		if got != lines[i] {
			t.Errorf("%s with %+v:\n bash: %s\n mine: %s", q.pat, q.opt, lines[i], got)
		}
	}
}

// fuse ends everything after so many steps.
type fuse struct{ left int }

var errSpent = errors.New("spent")

func (f *fuse) Step(n int) error {
	if f.left -= n; f.left < 0 {
		return errSpent
	}
	return nil
}

func TestAWalkIsCounted(t *testing.T) {
	_, err := pattern.Glob(endless{}, "**/x", pattern.GlobOptions{Star: true, Meter: &fuse{left: 100_000}})
	if !errors.Is(err, errSpent) {
		t.Errorf("an endless tree ended with %v", err)
	}
}

// endless is a tree without a bottom.
type endless struct{}

func (endless) ReadDir(string) ([]pattern.Entry, error) {
	return []pattern.Entry{{Name: "d", Kind: pattern.Directory}}, nil
}
func (endless) Exists(string) bool { return false }
func (endless) IsDir(string) bool  { return true }
