package step

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/protect"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// recorded begins a step in a new directory with files, lets do change it, and ends the step.
func recorded(t testing.TB, files map[string]string, do func(b *box)) (j *Journal, dir string, rec *Record) {
	t.Helper()
	j, dir = journal(t, Options{}), workspace(t)
	plant(t, dir, files)
	b := &box{r: begin(t, j, dir), dirs: []string{dir}}
	do(b)
	return j, dir, end(t, b.r)
}

// plant makes files, with the directories that they are in.
func plant(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for p, text := range files {
		must(t, os.MkdirAll(filepath.Dir(dir+"/"+p), 0o755))
		must(t, os.WriteFile(dir+"/"+p, []byte(text), 0o644))
	}
}

func TestWhatTheUserChangedSinceIsAConflictAndStays(t *testing.T) {
	files := map[string]string{}
	for i := range 20 {
		files[fmt.Sprintf("d%d/f%d", i%3, i)] = fmt.Sprint("old", i)
	}
	j, dir, rec := recorded(t, files, func(b *box) {
		for i := range 20 {
			p := fmt.Sprintf("d%d/f%d", i%3, i)
			switch i % 4 {
			case 0:
				must(t, b.write(0, p, "by the step", os.O_TRUNC))
			case 1:
				must(t, b.remove(0, p))
			case 2:
				must(t, b.move(0, p, 0, p+".moved", Free))
			case 3:
				must(t, b.write(0, p+".new", "by the step", 0))
			}
		}
	})
	edited := map[string]bool{"d0/f0": true, "d2/f5": true, "d0/f6.moved": true, "d1/f7.new": true}
	for p := range edited {
		must(t, os.WriteFile(dir+"/"+p, []byte("by the user"), 0o644))
	}
	res := undoing(t, j, rec.Number)
	if len(res.Conflicts) != len(edited) {
		t.Errorf("conflicts %+v", res.Conflicts)
	}
	for _, c := range res.Conflicts {
		if !edited[string(c.Path)] || c.Why == "" || c.Remedy == "" || c.Step != rec.Number || string(c.Root) != dir {
			t.Errorf("conflict %+v", c)
		}
	}
	want := map[string]string{}
	for _, d := range []string{"d0", "d1", "d2"} {
		want["0:"+d] = "drwxr-xr-x"
	}
	for p, text := range files {
		want["0:"+p] = fmt.Sprintf("-rw-r--r-- %q", text)
	}
	for p := range edited {
		want["0:"+p] = `-rw-r--r-- "by the user"`
	}
	delete(want, "0:d0/f6") // it stays where the user edited it
	same(t, "undo", want, picture(t, dir))
	if again := undoing(t, j, rec.Number); len(again.Restored) != 0 {
		t.Errorf("again %+v", again.Restored)
	}
	same(t, "again", want, picture(t, dir))
}

func TestAnUndoOfPathsLeavesTheOthers(t *testing.T) {
	j, dir, rec := recorded(t, map[string]string{"a/x": "1", "a/y": "2", "b": "3"}, func(b *box) {
		must(t, b.clear(0, "a"))
		must(t, b.write(0, "b", "new", os.O_TRUNC))
	})
	if _, err := j.Undo(t.Context(), Request{Steps: []int64{rec.Number}, Paths: []string{dir + "/a/x"}}); err != nil {
		t.Fatal(err)
	}
	same(t, "undo of a/x", map[string]string{"0:a": "drwxr-xr-x", "0:a/x": `-rw-r--r-- "1"`, "0:b": `-rw-r--r-- "new"`}, picture(t, dir))
	must(t, os.RemoveAll(dir+"/a"))
	res, err := j.Undo(t.Context(), Request{Steps: []int64{rec.Number}, Paths: []string{dir + "/a"}})
	must(t, err)
	if len(res.Restored) != 3 || len(res.Conflicts) != 0 {
		t.Errorf("%+v", res)
	}
	same(t, "undo of a", map[string]string{"0:a": "drwxr-xr-x", "0:a/x": `-rw-r--r-- "1"`, "0:a/y": `-rw-r--r-- "2"`, "0:b": `-rw-r--r-- "new"`}, picture(t, dir))
	for _, p := range []string{"a", dir + "/../x", dir + "/a/"} {
		if _, err := j.Undo(t.Context(), Request{Steps: []int64{rec.Number}, Paths: []string{p}}); !errors.Is(err, paddock.Invalid) {
			t.Errorf("%q: %v", p, err)
		}
	}
}

func TestSeveralStepsAreUndoneTheNewestFirst(t *testing.T) {
	dir, j := workspace(t), journal(t, Options{})
	plant(t, dir, map[string]string{"a": "0", "keep": "k"})
	before := picture(t, dir)
	var pictures []map[string]string
	for i := range 4 {
		b := &box{r: begin(t, j, dir), dirs: []string{dir}}
		must(t, b.write(0, "a", fmt.Sprint(i+1), os.O_TRUNC))
		must(t, b.write(0, fmt.Sprint("new", i), "n", 0))
		if i == 2 {
			must(t, b.move(0, "a", 0, "b", Free))
			must(t, b.move(0, "b", 0, "a", Free))
			must(t, b.remove(0, "new0"))
		}
		end(t, b.r)
		pictures = append(pictures, picture(t, dir))
	}
	res, err := j.Undo(t.Context(), Request{To: 3, Only: Filter{Directory: dir}})
	must(t, err)
	same(t, "to 3", pictures[1], picture(t, dir))
	if len(res.Conflicts) > 0 {
		t.Error(res.Conflicts)
	}
	if rec, err := j.Read(t.Context(), res.Step); err != nil || !slices.Equal(rec.Undoes, []int64{4, 3}) || rec.Kind != "undo" {
		t.Errorf("%+v %v", rec, err)
	}
	res, err = j.Undo(t.Context(), Request{To: 1})
	must(t, err)
	same(t, "to 1, with the undo", before, picture(t, dir))
	if len(res.Conflicts) > 0 {
		t.Error(res.Conflicts)
	}
}

// swap lets a test change a directory for a link at some moment.
func swap(t *testing.T, dir, outside string) {
	t.Helper()
	must(t, os.Rename(dir, dir+".real"))
	must(t, os.Symlink(outside, dir))
}

func TestNothingOutsideIsReadOrChangedThroughLinks(t *testing.T) {
	outside := workspace(t)
	plant(t, outside, map[string]string{"f": "secret", "g": "secret", "sub/h": "secret"})
	untouched := picture(t, outside)
	for _, moment := range []string{"before the report", "before the end", "before the undo"} {
		t.Run(moment, func(t *testing.T) {
			dir, j := workspace(t), journal(t, Options{})
			plant(t, dir, map[string]string{"d/f": "mine", "d/g": "mine", "d/sub/h": "mine"})
			r := begin(t, j, dir)
			if moment == "before the report" {
				swap(t, dir+"/d", outside)
			}
			b := &box{r: r, dirs: []string{dir}}
			for _, p := range []string{"d/f", "d/g", "d/sub/h"} {
				if err := r.Write(0, p); moment != "before the report" {
					must(t, err)
				} else if !Elsewhere(err) {
					t.Errorf("a change of what is not there: %v", err)
				}
			}
			if moment != "before the report" {
				must(t, os.WriteFile(dir+"/d/f", []byte("new"), 0o644))
				must(t, b.remove(0, "d/g"))
				must(t, b.write(0, "d/n", "new", 0))
			}
			if moment == "before the end" {
				swap(t, dir+"/d", outside)
			}
			rec := end(t, r)
			if moment == "before the undo" {
				swap(t, dir+"/d", outside)
			}
			res := undoing(t, j, rec.Number)
			for _, c := range rec.Changes {
				if c.Before.Size == int64(len("secret")) || c.After.Size == int64(len("secret")) {
					t.Errorf("it looked outside: %+v", c)
				}
			}
			if len(res.Restored) > 0 {
				t.Errorf("restored %+v", res.Restored)
			}
			same(t, "outside", untouched, picture(t, outside))
			n, err := j.store.Usage(t.Context())
			must(t, err)
			if moment == "before the report" && n != 0 {
				t.Errorf("%d bytes were kept", n)
			}
		})
	}
}

func TestPathsThatCouldLeaveTheRootAreRefused(t *testing.T) {
	dir, j := workspace(t), journal(t, Options{})
	r := begin(t, j, dir)
	for _, p := range []string{"", ".", "..", "a/..", "../a", "/a", "a//b", "a/", "./a", "a\x00b", strings.Repeat("x", 256), strings.Repeat("a/", 2048) + "a"} {
		for name, err := range map[string]error{
			"write": r.Write(0, p), "mode": r.Mode(0, p), "remove": r.Remove(0, p), "create": r.Create(0, p), "failed": r.Failed(0, p),
			"move from": r.Move(0, p, 0, "x", Free), "move to": r.Move(0, "x", 0, p, Free), "link": r.Link(0, "x", 0, p),
		} {
			if !errors.Is(err, paddock.Invalid) {
				t.Errorf("%s %q: %v", name, p, err)
			}
		}
	}
	for _, root := range []int{-1, 1} {
		if err := r.Write(root, "a"); !errors.Is(err, paddock.Invalid) {
			t.Error(err)
		}
	}
	if rec := end(t, r); len(rec.Changes) != 0 {
		t.Errorf("%+v", rec.Changes)
	}
}

func TestForgedReportsDoNotRemoveOrMoveWhatTheStepDidNotTouch(t *testing.T) {
	dir, j := workspace(t), journal(t, Options{})
	plant(t, dir, map[string]string{"mine": "m", "other": "o", "sub/x": "x"})
	for _, p := range []string{"mine", "other", "sub/x"} { // made long ago
		old := time.Now().Add(-time.Hour)
		must(t, os.Chtimes(dir+"/"+p, old, old))
	}
	oldEnough(t, dir)
	before := picture(t, dir)
	r := begin(t, j, dir)
	must(t, errors.Join(
		r.Create(0, "mine"), r.Create(0, "sub"), r.Create(0, "sub/x"), r.Remove(0, "other"), r.Move(0, "gone", 0, "other", Free),
		r.Move(0, "nothing", 0, "sub", Exchange), r.Link(0, "other", 0, "mine"), r.Failed(0, "never"),
	))
	rec := end(t, r)
	res := undoing(t, j, rec.Number)
	same(t, "undo of lies", before, picture(t, dir))
	if len(res.Restored) > 0 {
		t.Errorf("restored %+v", res.Restored)
	}
}

// oldEnough waits until a new file is younger than those of a directory by more than the clock's steps.
func oldEnough(t *testing.T, dir string) {
	t.Helper()
	tree, err := openTree(dir)
	must(t, err)
	defer tree.close()
	for {
		s, err := tree.stat("mine")
		must(t, err)
		if time.Since(time.Unix(0, s.Change)) > 2*tick {
			return
		}
		runtime.Gosched()
	}
}

func TestProtectedNamesComeBackOnlyWithWhatTheHostHad(t *testing.T) {
	const safe = "[core]\n\tbare = false\n"
	t.Run("hooks that the step removed", func(t *testing.T) {
		j, dir, rec := recorded(t, map[string]string{".git/hooks/pre-commit": "mine"}, func(b *box) {
			must(t, b.remove(0, ".git/hooks/pre-commit"))
		})
		undoing(t, j, rec.Number)
		if text, err := os.ReadFile(dir + "/.git/hooks/pre-commit"); err != nil || string(text) != "mine" {
			t.Errorf("%q %v", text, err)
		}
	})
	t.Run("a forged move", func(t *testing.T) {
		j, dir, rec := recorded(t, map[string]string{".git/HEAD": "ref"}, func(b *box) {
			must(t, b.write(0, "evil", "run me", 0))
			// It says that the file was a hook, and was moved away.
			must(t, b.r.Move(0, ".git/hooks/post-checkout", 0, "evil", Replace))
			must(t, b.r.Move(0, ".envrc", 0, "evil2", Free))
			must(t, os.WriteFile(dir2(b)+"/evil2", []byte("run me"), 0o644))
		})
		must(t, os.MkdirAll(dir+"/.git/hooks", 0o755))
		res := undoing(t, j, rec.Number)
		for _, p := range []string{"/.git/hooks/post-checkout", "/.envrc"} {
			if _, err := os.Lstat(dir + p); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v; %+v", p, err, res)
			}
		}
	})
	t.Run("contents seen under another name", func(t *testing.T) {
		j, dir, rec := recorded(t, map[string]string{"evil": "run me"}, func(b *box) {
			must(t, b.r.Move(0, ".envrc", 0, "evil", Replace))
			must(t, b.remove(0, "evil"))
		})
		undoing(t, j, rec.Number)
		if _, err := os.Lstat(dir + "/.envrc"); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
	t.Run("a configuration that is refused", func(t *testing.T) {
		j, dir, rec := recorded(t, map[string]string{".git/config": safe + "\tfsmonitor = /tmp/evil\n"}, func(b *box) {
			must(t, b.write(0, ".git/config", safe, os.O_TRUNC))
		})
		res := undoing(t, j, rec.Number)
		text, err := os.ReadFile(dir + "/.git/config")
		must(t, err)
		if string(text) != safe || len(res.Conflicts) != 1 || !strings.Contains(res.Conflicts[0].Why, "fsmonitor") {
			t.Errorf("%q, %+v", text, res.Conflicts)
		}
	})
	t.Run("a configuration that is let through", func(t *testing.T) {
		j, dir, rec := recorded(t, map[string]string{".git/config": safe}, func(b *box) {
			must(t, b.write(0, ".git/config", safe+"[user]\n\tname = Agent\n", os.O_TRUNC))
		})
		res := undoing(t, j, rec.Number)
		text, err := os.ReadFile(dir + "/.git/config")
		must(t, err)
		if string(text) != safe {
			t.Errorf("%q, %+v", text, res.Conflicts)
		}
	})
	t.Run("a link below .git", func(t *testing.T) {
		j, dir, rec := recorded(t, map[string]string{".git/refs/heads/main": "1"}, func(b *box) {
			must(t, b.symlink(0, "/etc", "evil"))
			must(t, b.r.Move(0, ".git/refs/evil", 0, "evil", Replace))
		})
		undoing(t, j, rec.Number)
		if _, err := os.Lstat(dir + "/.git/refs/evil"); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
	t.Run("the last part of a bare repository", func(t *testing.T) {
		dir, j := workspace(t), journal(t, Options{})
		plant(t, dir, map[string]string{"x/HEAD": "ref: refs/heads/main", "x/objects/a": "", "x/refs/a": ""})
		b := &box{r: begin(t, j, dir), dirs: []string{dir}}
		must(t, b.remove(0, "x/HEAD"))
		rec := end(t, b.r)
		plant(t, dir, map[string]string{"x/config": safe + "\tfsmonitor = /tmp/evil\n"}) // a later step
		res := undoing(t, j, rec.Number)
		if _, err := os.Lstat(dir + "/x/HEAD"); !errors.Is(err, fs.ErrNotExist) || len(res.Conflicts) != 1 {
			t.Errorf("%v, %+v", err, res)
		}
	})
	t.Run("a made file with a protected name", func(t *testing.T) {
		j, dir, rec := recorded(t, nil, func(b *box) { must(t, b.write(0, ".envrc", "x", 0)) })
		if res := undoing(t, j, rec.Number); len(res.Conflicts) != 1 {
			t.Errorf("%+v", res)
		}
		if _, err := os.Lstat(dir + "/.envrc"); err != nil {
			t.Error(err)
		}
		none, err := protect.New(nil, []string{".envrc"})
		must(t, err)
		res, err := j.Undo(t.Context(), Request{Steps: []int64{rec.Number}, Protect: none})
		if err != nil || len(res.Restored) != 1 {
			t.Errorf("%+v %v", res, err)
		}
	})
}

func dir2(b *box) string { return b.dirs[0] }

func TestSetIDBitsDevicesAndSocketsDoNotComeBack(t *testing.T) {
	dir, j := workspace(t), journal(t, Options{})
	plant(t, dir, map[string]string{"set": "x"})
	must(t, os.Chmod(dir+"/set", 0o755|fs.ModeSetuid|fs.ModeSetgid))
	must(t, syscall.Mkfifo(dir+"/fifo", 0o640))
	must(t, os.Chmod(dir+"/fifo", 0o640))
	socket, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	must(t, err)
	defer syscall.Close(socket)
	if err := syscall.Bind(socket, &syscall.SockaddrUnix{Name: dir + "/s"}); err != nil {
		t.Fatal(err)
	}
	b := &box{r: begin(t, j, dir), dirs: []string{dir}}
	for _, p := range []string{"set", "fifo", "s"} {
		must(t, b.remove(0, p))
	}
	rec := end(t, b.r)
	res := undoing(t, j, rec.Number)
	same(t, "undo", map[string]string{"0:set": `-rwxr-xr-x "x"`, "0:fifo": "prw-r-----"}, picture(t, dir))
	if len(res.Conflicts) != 1 || !strings.Contains(res.Conflicts[0].Why, "socket") {
		t.Errorf("%+v", res.Conflicts)
	}
	if i := slices.IndexFunc(res.Restored, func(r Restored) bool { return r.Path == "set" }); i < 0 || res.Restored[i].Note == "" {
		t.Errorf("%+v", res.Restored)
	}
}

func TestNothingBlocksOnFIFOs(t *testing.T) {
	dir, j := workspace(t), journal(t, Options{})
	r := begin(t, j, dir)
	must(t, syscall.Mkfifo(dir+"/f", 0o600))
	must(t, errors.Join(r.Write(0, "f"), r.Create(0, "g"), r.Remove(0, "f")))
	must(t, syscall.Mkfifo(dir+"/g", 0o600))
	rec := end(t, r)
	undoing(t, j, rec.Number)
}

func TestHardLinksGetTheirContentsInPlace(t *testing.T) {
	dir, j := workspace(t), journal(t, Options{})
	plant(t, dir, map[string]string{"a": "old"})
	must(t, os.Link(dir+"/a", dir+"/b"))
	b := &box{r: begin(t, j, dir), dirs: []string{dir}}
	must(t, b.write(0, "a", "first", os.O_TRUNC))
	must(t, b.write(0, "b", "second", os.O_TRUNC))
	must(t, b.link(0, "a", 0, "c"))
	must(t, b.write(0, "c", "third", os.O_TRUNC))
	rec := end(t, b.r)
	res := undoing(t, j, rec.Number)
	if len(res.Conflicts) > 0 {
		t.Error(res.Conflicts)
	}
	same(t, "undo", map[string]string{"0:a": `-rw-r--r-- "old"`, "0:b": `-rw-r--r-- "old"`}, picture(t, dir))
	x, err := os.Lstat(dir + "/a")
	must(t, err)
	y, err := os.Lstat(dir + "/b")
	must(t, err)
	if !os.SameFile(x, y) {
		t.Error("they are two files now")
	}
}

func TestTreesThatToolsRebuildAreNotKept(t *testing.T) {
	files := map[string]string{
		"node_modules/a/index.js": "x", "p/target/debug/x": "x", "p/Cargo.toml": "c", "venv/pyvenv.cfg": "v", "venv/lib/x": "x",
		"cache/CACHEDIR.TAG": cacheTag + "\n", "cache/x": "x", "target/x": "mine", "src/user": "mine", "fake/x": "mine", "mine": "",
	}
	dir, j := workspace(t), journal(t, Options{})
	plant(t, dir, files)
	oldEnough(t, dir)
	b := &box{r: begin(t, j, dir), dirs: []string{dir}}
	func() {
		for _, p := range []string{"node_modules", "p/target", "venv/lib", "cache", "target"} {
			must(t, b.clear(0, p))
		}
		must(t, b.mkdir(0, "node_modules"))
		must(t, b.write(0, "node_modules/new", "x", 0))
		must(t, b.write(0, "fake/CACHEDIR.TAG", cacheTag, 0)) // the step's own mark counts for nothing
		must(t, b.remove(0, "fake/x"))
		must(t, b.move(0, "src/user", 0, "node_modules/user", Free)) // nor does moving the user's files there
		must(t, b.remove(0, "node_modules/user"))
	}()
	rec := end(t, b.r)
	var left []string
	for _, l := range rec.Left {
		left = append(left, string(l.Path))
	}
	slices.Sort(left)
	if !slices.Equal(left, []string{"cache", "node_modules", "p/target", "venv/lib"}) {
		t.Errorf("left %q", left)
	}
	undoing(t, j, rec.Number)
	for p, text := range map[string]string{"target/x": "mine", "src/user": "mine", "fake/x": "mine"} {
		if b, err := os.ReadFile(dir + "/" + p); err != nil || string(b) != text {
			t.Errorf("%s: %q %v", p, b, err)
		}
	}
	for _, p := range []string{"venv/lib", "cache/x", "p/target"} {
		if _, err := os.Lstat(dir + "/" + p); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", p, err)
		}
	}
	if !Rebuildable("a/node_modules/b") || Rebuildable("a/target") {
		t.Error("by names alone")
	}
}

func TestWhatIsTooLargeIsSaidOrRefused(t *testing.T) {
	for _, limits := range []struct {
		name string
		o    Options
		why  string
	}{
		{"file", Options{File: 1000}, errLarge.Error()},
		{"step", Options{Step: 1000}, whyStep},
		{"size", Options{Size: 1000}, whySize},
		{"changes", Options{Changes: 1}, whyMany},
	} {
		t.Run(limits.name, func(t *testing.T) {
			for _, strict := range []bool{false, true} {
				dir, j := workspace(t), journal(t, limits.o)
				plant(t, dir, map[string]string{"a": "small", "large": strings.Repeat("x", 2000)})
				r, err := j.Begin(t.Context(), About{Roots: []Root{{Path: Text(dir)}}, Strict: strict})
				must(t, err)
				must(t, r.Write(0, "a"))
				must(t, os.WriteFile(dir+"/a", []byte("new"), 0o644))
				err = r.Remove(0, "large")
				if strict != errors.Is(err, paddock.Exhausted) || !strict && err != nil {
					t.Fatalf("strict %v: %v", strict, err)
				}
				if !strict {
					must(t, os.Remove(dir+"/large"))
				}
				rec := end(t, r)
				if !strict && (len(rec.Left) != 1 || !strings.Contains(rec.Left[0].Why, limits.why)) {
					t.Errorf("left %+v", rec.Left)
				}
				undoing(t, j, rec.Number)
				if b, err := os.ReadFile(dir + "/a"); err != nil || string(b) != "small" {
					t.Errorf("%q %v", b, err)
				}
			}
		})
	}
}

func TestASparseFileOfFourGigabytesComesBackSparse(t *testing.T) {
	dir, j := workspace(t), journal(t, Options{})
	const size = 4<<30 + 3
	f, err := os.Create(dir + "/image")
	must(t, err)
	must(t, f.Truncate(size))
	_, err = f.WriteAt([]byte("somewhere"), 3<<30)
	must(t, err)
	must(t, f.Close())
	b := &box{r: begin(t, j, dir), dirs: []string{dir}}
	must(t, b.remove(0, "image"))
	rec := end(t, b.r)
	if rec.Bytes > 1<<20 {
		t.Errorf("%d bytes were kept", rec.Bytes)
	}
	undoing(t, j, rec.Number)
	i, err := os.Lstat(dir + "/image")
	must(t, err)
	if i.Size() != size || i.Sys().(*syscall.Stat_t).Blocks > 1<<12 {
		t.Errorf("%d bytes in %d blocks", i.Size(), i.Sys().(*syscall.Stat_t).Blocks)
	}
	f, err = os.Open(dir + "/image")
	must(t, err)
	defer f.Close()
	got := make([]byte, 9)
	if _, err := f.ReadAt(got, 3<<30); err != nil || string(got) != "somewhere" {
		t.Errorf("%q %v", got, err)
	}
}

func TestTwoRecordersOnOneDirectory(t *testing.T) {
	dir, j := workspace(t), journal(t, Options{})
	plant(t, dir, map[string]string{"a": "0", "b": "0", "c": "0"})
	one := &box{r: begin(t, j, dir), dirs: []string{dir}}
	two := &box{r: begin(t, j, dir), dirs: []string{dir}}
	if one.r.Number() == two.r.Number() {
		t.Fatal("they have one number")
	}
	must(t, one.write(0, "a", "one", os.O_TRUNC))
	must(t, two.write(0, "b", "two", os.O_TRUNC))
	must(t, one.write(0, "c", "one", os.O_TRUNC))
	must(t, two.write(0, "c", "two", os.O_TRUNC))
	must(t, two.write(0, "n", "two", 0))
	first, err := one.r.End(t.Context(), Outcome{Concurrent: []int64{two.r.Number()}})
	must(t, err)
	second := end(t, two.r)
	undoing(t, j, second.Number)
	same(t, "undo of the second", map[string]string{"0:a": `-rw-r--r-- "one"`, "0:b": `-rw-r--r-- "0"`, "0:c": `-rw-r--r-- "one"`}, picture(t, dir))
	res := undoing(t, j, first.Number)
	// The first one ended after the second had written c, so that this is not what it saw.
	if len(res.Conflicts) != 1 || res.Conflicts[0].Path != "c" {
		t.Errorf("%+v", res.Conflicts)
	}
	same(t, "undo of both", map[string]string{"0:a": `-rw-r--r-- "0"`, "0:b": `-rw-r--r-- "0"`, "0:c": `-rw-r--r-- "one"`}, picture(t, dir))
}

func TestReadOnlyDirectoriesComeBackWithWhatWasInThem(t *testing.T) {
	j, dir, rec := recorded(t, map[string]string{"d/x": "1", "e/y": "2"}, func(b *box) {
		must(t, b.chmod(0, "d", 0o555))
		must(t, b.chmod(0, "e", 0o700))
		must(t, b.clear(0, "e"))
	})
	undoing(t, j, rec.Number)
	same(t, "undo", map[string]string{"0:d": "drwxr-xr-x", "0:d/x": `-rw-r--r-- "1"`, "0:e": "drwxr-xr-x", "0:e/y": `-rw-r--r-- "2"`}, picture(t, dir))
}

// What a step made unsearchable or unreadable comes back at once.
func TestWhatTheStepTookTheRightsOfComesBackToo(t *testing.T) {
	runtime.LockOSThread() // never unlocked: the thread ends without capabilities, so that modes matter
	if err := sys.DropThreadCapabilities(); err != nil {
		t.Fatal(err)
	}
	j, dir, rec := recorded(t, map[string]string{"d/e/x": "1", "d/y": "2", "z": "3", "w": "4"}, func(b *box) {
		must(t, b.remove(0, "d/e/x"))
		must(t, b.remove(0, "d/y"))
		must(t, b.r.Write(0, "z")) // as the init reports a mode by which nobody can read it
		must(t, os.Chmod(b.full(0, "z"), 0o200))
		must(t, b.write(0, "z", "evil", os.O_TRUNC))
		must(t, b.r.Write(0, "w"))
		must(t, os.Chmod(b.full(0, "w"), 0))
		must(t, b.write(0, "made", "5", os.O_CREATE))
		must(t, b.chmod(0, "made", 0))
		must(t, b.chmod(0, "d/e", 0))
	})
	if res := undoing(t, j, rec.Number); len(res.Conflicts) > 0 || rec.Missed > 0 {
		t.Errorf("%+v, of %+v", res.Conflicts, rec)
	}
	same(t, "undo", map[string]string{
		"0:d": "drwxr-xr-x", "0:d/e": "drwxr-xr-x", "0:d/e/x": `-rw-r--r-- "1"`, "0:d/y": `-rw-r--r-- "2"`, "0:z": `-rw-r--r-- "3"`, "0:w": `-rw-r--r-- "4"`,
	}, picture(t, dir))
}

func TestTimesOfFilesComeBack(t *testing.T) {
	long := time.Date(2001, 2, 3, 4, 5, 6, 789, time.UTC)
	dir, j := workspace(t), journal(t, Options{})
	plant(t, dir, map[string]string{"d/a": "1", "b": "2"})
	for _, p := range []string{"d/a", "b"} {
		must(t, os.Chtimes(dir+"/"+p, long, long))
	}
	b := &box{r: begin(t, j, dir), dirs: []string{dir}}
	must(t, b.clear(0, "d"))
	must(t, b.write(0, "b", "new", os.O_TRUNC))
	rec := end(t, b.r)
	undoing(t, j, rec.Number)
	for _, p := range []string{"d/a", "b"} {
		if i, err := os.Stat(dir + "/" + p); err != nil || !i.ModTime().Equal(long) {
			t.Errorf("%s: %v %v", p, i.ModTime(), err)
		}
	}
}

func TestOwnersComeBackIfThatIsPossible(t *testing.T) {
	dir, j := workspace(t), journal(t, Options{Sync: true})
	plant(t, dir, map[string]string{"d/a": "1", "b": "2", "c": "3"})
	own := os.Geteuid()
	if own == 0 {
		for _, p := range []string{"d", "d/a", "b", "c"} {
			must(t, os.Lchown(dir+"/"+p, 1234, 1235))
		}
		own = 1234
	}
	b := &box{r: begin(t, j, dir), dirs: []string{dir}}
	must(t, b.clear(0, "d"))
	must(t, b.write(0, "b", "new", os.O_TRUNC))
	must(t, b.move(0, "c", 0, "moved", Free))
	must(t, b.remove(0, "moved")) // not seen under its own name: it gets the owner of the root
	undoing(t, j, end(t, b.r).Number)
	for p, want := range map[string]int{"d": own, "d/a": own, "b": own, "c": os.Geteuid()} {
		if i, err := os.Lstat(dir + "/" + p); err != nil || int(i.Sys().(*syscall.Stat_t).Uid) != want {
			t.Errorf("%s: %v", p, err)
		}
	}
}

func TestTrimKeepsTheYoungAndFreesTheRest(t *testing.T) {
	dir := workspace(t)
	j := journal(t, Options{Size: 100_000, Step: 40_000})
	text := func(i int) string { return string(bytes.Repeat([]byte{byte('a' + i)}, 20_000)) }
	plant(t, dir, map[string]string{"f": text(0)})
	for i := range 12 {
		b := &box{r: begin(t, j, dir), dirs: []string{dir}}
		must(t, b.write(0, "f", text(i+1), os.O_TRUNC))
		if rec := end(t, b.r); len(rec.Left) > 0 {
			t.Fatalf("step %d: %+v", rec.Number, rec.Left)
		}
	}
	if _, _, err := j.Trim(t.Context()); err != nil {
		t.Fatal(err)
	}
	n, err := j.store.Usage(t.Context())
	must(t, err)
	list, err := j.List(t.Context(), Filter{})
	must(t, err)
	if n > 100_000 || len(list) < 2 || list[len(list)-1].Number != 12 {
		t.Errorf("%d bytes, %d records", n, len(list))
	}
	undoing(t, j, 12)
	if b, err := os.ReadFile(dir + "/f"); err != nil || string(b) != text(11) {
		t.Error(err)
	}
	must(t, j.Remove(t.Context(), list[0].Number))
	if _, err := j.Read(t.Context(), list[0].Number); !errors.Is(err, paddock.NotFound) {
		t.Error(err)
	}
	j.opts.Age = time.Nanosecond
	if _, _, err := j.Trim(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := j.store.Usage(t.Context()); err != nil || n != 0 {
		t.Errorf("%d bytes are left, %v", n, err)
	}
	b := &box{r: begin(t, j, dir)}
	if b.r.Number() != 14 { // the undo was 13
		t.Errorf("number %d was given again", b.r.Number())
	}
	must(t, b.r.Abandon())
}

func TestEqualContentsAreStoredOnce(t *testing.T) {
	dir, j := workspace(t), journal(t, Options{})
	for i := range 10 {
		plant(t, dir, map[string]string{fmt.Sprint("f", i): strings.Repeat("same", 10_000)})
	}
	for range 3 {
		b := &box{r: begin(t, j, dir), dirs: []string{dir}}
		for i := range 10 {
			must(t, b.remove(0, fmt.Sprint("f", i)))
		}
		undoing(t, j, end(t, b.r).Number)
	}
	if n, err := j.store.Usage(t.Context()); err != nil || n != 40_000 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

func TestARecordThatWasChangedOnTheDiskIsNotRead(t *testing.T) {
	j, _, rec := recorded(t, map[string]string{"a": "1"}, func(b *box) { must(t, b.remove(0, "a")) })
	b, err := j.root.ReadFile(recordPath(rec.Number))
	must(t, err)
	read, err := j.Read(t.Context(), rec.Number)
	must(t, err)
	if read.Digest != rec.Digest || len(rec.Digest) != 64 || len(read.Changes) != 1 || read.Changes[0] != rec.Changes[0] {
		t.Errorf("%+v\n%+v", read, rec)
	}
	for i := 0; i < len(b); i += 7 {
		bad := bytes.Clone(b)
		bad[i] ^= 1
		must(t, j.root.WriteFile(recordPath(rec.Number), bad, 0o600))
		if _, err := j.Read(t.Context(), rec.Number); err == nil {
			t.Fatalf("byte %d may be changed", i)
		}
	}
}

func TestAJournalThatOthersCanReachIsRefused(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755))
	if _, err := Open(dir, Options{}); !errors.Is(err, paddock.Denied) {
		t.Error(err)
	}
}

func TestListFilters(t *testing.T) {
	dir, other, j := workspace(t), workspace(t), journal(t, Options{})
	for i, d := range []string{dir, other, dir} {
		b := &box{r: begin(t, j, d), dirs: []string{d}}
		must(t, b.write(0, "f", fmt.Sprint(i), os.O_TRUNC))
		end(t, b.r)
	}
	for _, c := range []struct {
		f    Filter
		want []int64
	}{
		{Filter{}, []int64{1, 2, 3}},
		{Filter{Directory: dir}, []int64{1, 3}},
		{Filter{Directory: dir + "/sub"}, []int64{1, 3}},
		{Filter{Directory: dir + "x"}, nil},
		{Filter{Sandbox: "box", Last: 2}, []int64{2, 3}},
		{Filter{Sandbox: "another"}, nil},
		{Filter{From: 2, To: 2}, []int64{2}},
		{Filter{Since: time.Now().Add(time.Hour)}, nil},
	} {
		list, err := j.List(t.Context(), c.f)
		must(t, err)
		var got []int64
		for _, r := range list {
			got = append(got, r.Number)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v", c.f, got)
		}
	}
}

func TestGitComesBack(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git")
	}
	dir, j := workspace(t), journal(t, Options{})
	run := func(args ...string) {
		t.Helper()
		c := exec.Command(git, args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	run("init", "-q")
	plant(t, dir, map[string]string{"a": "1", "b": "2"})
	run("add", ".")
	run("commit", "-qm", "one")
	run("branch", "topic")
	plant(t, dir, map[string]string{"a": "edited", "untracked": "u"})
	before := picture(t, dir)
	// git does not tell: what it will change is told before, as a broker would.
	r := begin(t, j, dir)
	for _, p := range []string{"a", ".git/index", ".git/refs/heads/topic", ".git/logs/refs/heads/topic", ".git/HEAD", ".git/logs/HEAD", ".git/ORIG_HEAD", "untracked", ".git/packed-refs"} {
		if _, err := os.Lstat(dir + "/" + p); err != nil {
			must(t, r.Create(0, p))
			continue
		}
		must(t, r.Remove(0, p))
		must(t, r.Create(0, p))
	}
	run("reset", "-q", "--hard")
	run("clean", "-qxfd")
	run("branch", "-qD", "topic")
	rec := end(t, r)
	res := undoing(t, j, rec.Number)
	if d := differ2(before, picture(t, dir)); d != "" || len(res.Conflicts) > 0 {
		t.Errorf("%s\n%+v", d, res.Conflicts)
	}
}

func TestManyRemovedFilesNeedBoundedMemory(t *testing.T) {
	const files = 100_000
	dir, j := workspace(t), journal(t, Options{})
	for i := range files / 1000 {
		d := fmt.Sprintf("%s/%d", dir, i)
		must(t, os.Mkdir(d, 0o755))
		for k := range 1000 {
			must(t, os.Link(source(t, dir), fmt.Sprintf("%s/%d", d, k)))
		}
	}
	r := begin(t, j, dir)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range files / 1000 {
		for k := range 1000 {
			p := fmt.Sprintf("%d/%d", i, k)
			must(t, r.Remove(0, p))
			must(t, os.Remove(dir+"/"+p))
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if used := int64(after.HeapAlloc) - int64(before.HeapAlloc); used > 200<<20 {
		t.Errorf("%d bytes", used)
	}
	rec := end(t, r)
	if len(rec.Changes) != files || rec.Incomplete {
		t.Errorf("%d changes", len(rec.Changes))
	}
}

// source returns a file to link to: names are what costs memory.
func source(t *testing.T, dir string) string {
	p := dir + ".source"
	i, err := os.Lstat(p)
	if err == nil && i.Sys().(*syscall.Stat_t).Nlink < 60_000 {
		return p
	}
	_ = os.Remove(p)
	must(t, os.WriteFile(p, []byte("x"), 0o644))
	return p
}

func TestAUserWhoEditsDuringAnUndoLosesNothing(t *testing.T) {
	for seed := range 20 {
		j, dir, rec := recorded(t, map[string]string{"a": "old", "b": "old"}, func(b *box) {
			must(t, b.write(0, "a", "step", os.O_TRUNC))
			must(t, b.write(0, "n", "step", 0))
		})
		x := rand.New(rand.NewPCG(uint64(seed), 5))
		name := []string{"a", "n"}[x.IntN(2)]
		saved := fmt.Sprint("by the user ", seed)
		done := make(chan error, 1)
		go func() { // as an editor saves
			for range x.IntN(200) {
				runtime.Gosched()
			}
			done <- errors.Join(os.WriteFile(dir+"/.save", []byte(saved), 0o644), os.Rename(dir+"/.save", dir+"/"+name))
		}()
		_, err := j.Undo(t.Context(), Request{Steps: []int64{rec.Number}})
		must(t, errors.Join(err, <-done))
		if b, err := os.ReadFile(dir + "/" + name); err != nil || string(b) != saved {
			t.Fatalf("seed %d: %q %v", seed, b, err)
		}
	}
}

// fullDisk is set in a child that has a small file system of its own.
const fullDisk = "PADDOCK_TEST_STEP_FULL"

func TestAFullDiskRefusesOrSaysSo(t *testing.T) {
	if home := os.Getenv(fullDisk); home != "" {
		testFullDisk(t, home)
		return
	}
	home := t.TempDir()
	c := exec.Command(os.Args[0], "-test.run=^TestAFullDiskRefusesOrSaysSo$", "-test.v")
	c.Env = append(os.Environ(), fullDisk+"="+home)
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := c.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
		t.Skip("no user namespaces:", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func testFullDisk(t *testing.T, home string) {
	must(t, syscall.Mount("tmpfs", home, "tmpfs", 0, "size=1m,mode=0700"))
	for _, strict := range []bool{true, false} {
		dir := workspace(t)
		large := strings.Repeat("0123456789abcdef", 128<<10) // 2 MiB
		files := map[string]string{"small": "s", "large": large}
		for i := range 40 {
			files[fmt.Sprint("f", i)] = strings.Repeat(fmt.Sprint(i), 20_000)
		}
		plant(t, dir, files)
		j, err := Open(fmt.Sprint(home, "/j", strict), Options{})
		must(t, err)
		r, err := j.Begin(context.Background(), About{Roots: []Root{{Path: Text(dir)}}, Strict: strict})
		must(t, err)
		refused := 0
		for p := range files {
			err := r.Remove(0, p)
			if err == nil {
				must(t, os.Remove(dir+"/"+p))
				continue
			}
			if !strict || !errors.Is(err, paddock.Exhausted) {
				t.Fatalf("strict %v, %s: %v", strict, p, err)
			}
			refused++
		}
		if strict && refused == 0 {
			t.Error("nothing was refused")
		}
		must(t, syscall.Mount("tmpfs", home, "tmpfs", syscall.MS_REMOUNT, "size=16m,mode=0700")) // somebody frees space
		rec, err := r.End(context.Background(), Outcome{})
		must(t, err)
		res, err := j.Undo(context.Background(), Request{Steps: []int64{rec.Number}})
		must(t, err)
		lost := map[string]bool{}
		for _, l := range rec.Left {
			lost[string(l.Path)] = true
		}
		if !strict && len(lost) == 0 {
			t.Error("nothing is said to be lost")
		}
		for p, text := range files {
			b, err := os.ReadFile(dir + "/" + p)
			if back := err == nil && string(b) == text; back == lost[p] {
				t.Errorf("strict %v, %s: back %v, lost %v; %+v", strict, p, back, lost[p], res.Conflicts)
			}
		}
		must(t, j.Close())
		must(t, os.RemoveAll(fmt.Sprint(home, "/j", strict)))
		must(t, syscall.Mount("tmpfs", home, "tmpfs", syscall.MS_REMOUNT, "size=1m,mode=0700"))
	}
}
