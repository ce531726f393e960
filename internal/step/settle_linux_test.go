package step

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/internal/protect"
)

// A file of somebody else comes to the name between the last look of an undo and what it gives the file: it keeps its owner
// and mode, and the path is a conflict.
func TestAnUndoGivesAnotherFileNothing(t *testing.T) {
	for name, c := range map[string]struct {
		step  func(x *telling)
		path  string // what is exchanged with "other", or "otherdir"
		other string
	}{
		"a mode": {func(x *telling) {
			must(x.t, x.r.Mode(0, "d/f"))
			must(x.t, os.Chmod(x.at("d/f"), 0o600))
		}, "d/f", "other"},
		"contents with other names": {func(x *telling) {
			must(x.t, x.r.Write(0, "d/linked"))
			must(x.t, os.WriteFile(x.at("d/linked"), []byte("new"), 0))
			must(x.t, x.r.Mode(0, "d/linked"))
			must(x.t, os.Chmod(x.at("d/linked"), 0o600))
		}, "d/linked", "other"},
		"a directory that was closed": {func(x *telling) {
			must(x.t, x.r.Mode(0, "d/sub"))
			must(x.t, os.Chmod(x.at("d/sub"), 0o500))
		}, "d/sub", "otherdir"},
	} {
		t.Run(name, func(t *testing.T) {
			x := &telling{t: t, dir: workspace(t)}
			var hook func()
			j := journal(t, Options{Watch: &keeping{change: func(w Watched) error {
				if hook != nil && string(w.Path) == c.path && w.Verb == Edited {
					hook()
				}
				return nil
			}}})
			plant(t, x.dir, map[string]string{"d/f": "mine", "d/linked": "old", "other": "secret"})
			must(t, os.Link(x.at("d/linked"), x.at("d/more")))
			for _, p := range []string{"d/f", "d/linked"} {
				must(t, os.Chmod(x.at(p), 0o666))
			}
			must(t, os.Mkdir(x.at("d/sub"), 0o755))
			must(t, os.Mkdir(x.at("otherdir"), 0o700))
			must(t, os.Chmod(x.at("other"), 0o400))
			if os.Geteuid() == 0 {
				must(t, os.Chown(x.dir, 54321, 54321))
				for _, p := range []string{"d", "d/f", "d/linked", "d/sub"} {
					must(t, os.Chown(x.at(p), 54321, 54321))
				}
				for _, p := range []string{"other", "otherdir"} {
					must(t, os.Chown(x.at(p), 12345, 12345))
				}
			}
			x.r = begin(t, j, x.dir)
			c.step(x)
			rec := end(t, x.r)
			is, err := os.Open(x.at(c.other))
			must(t, err)
			defer is.Close()
			was, err := is.Stat()
			must(t, err)
			exchanged := 0
			hook = func() {
				must(t, unix.Renameat2(unix.AT_FDCWD, x.at(c.other), unix.AT_FDCWD, x.at(c.path), unix.RENAME_EXCHANGE))
				exchanged, hook = exchanged+1, nil
			}
			res, err := j.Undo(t.Context(), Request{Steps: []int64{rec.Number}})
			must(t, err)
			if exchanged != 1 {
				t.Fatalf("nothing was exchanged: %+v", res)
			}
			now, err := is.Stat()
			must(t, err)
			a, b := was.Sys().(*syscall.Stat_t), now.Sys().(*syscall.Stat_t)
			if a.Mode != b.Mode || a.Uid != b.Uid || a.Gid != b.Gid || a.Mtim != b.Mtim {
				t.Errorf("the other file had %o of %d.%d, and has %o of %d.%d", a.Mode, a.Uid, a.Gid, b.Mode, b.Uid, b.Gid)
			}
			if len(res.Conflicts) != 1 {
				t.Errorf("%+v", res)
			}
		})
	}
}

// A directory that an undo makes again is nobody else's before it has its owner and mode.
func TestADirectoryComesBackWhole(t *testing.T) {
	dir, j := workspace(t), journal(t, Options{})
	must(t, os.MkdirAll(filepath.Join(dir, "a/b/c"), 0o700))
	must(t, os.Chmod(filepath.Join(dir, "a/b"), 0o750))
	if os.Geteuid() == 0 {
		must(t, os.Chown(filepath.Join(dir, "a/b"), 54321, 54322))
	}
	r := begin(t, j, dir)
	for _, p := range []string{"a/b/c", "a/b", "a"} {
		must(t, r.Remove(0, p))
		must(t, os.Remove(filepath.Join(dir, p)))
	}
	undoing(t, j, end(t, r).Number)
	st, err := os.Stat(filepath.Join(dir, "a/b"))
	must(t, err)
	if s := st.Sys().(*syscall.Stat_t); st.Mode().Perm() != 0o750 || os.Geteuid() == 0 && (s.Uid != 54321 || s.Gid != 54322) {
		t.Errorf("%v of %d.%d", st.Mode(), s.Uid, s.Gid)
	}
	left, err := filepath.Glob(filepath.Join(dir, "a/b/.paddock"))
	must(t, err)
	if more, _ := filepath.Glob(filepath.Join(dir, ".paddock")); len(left)+len(more) > 0 {
		t.Errorf("%q and %q are left", left, more)
	}
}

// A guest may lock a directory for as long as it lives.
func TestAnUndoWaitsForLocksOnceAltogether(t *testing.T) {
	dir, j := workspace(t), journal(t, Options{})
	files := map[string]string{}
	for i := range 30 {
		files[fmt.Sprintf("d%d/hooks/x", i%3)+fmt.Sprint(i)] = "x"
	}
	plant(t, dir, files)
	r := begin(t, j, dir)
	for p := range files {
		must(t, r.Remove(0, p))
		must(t, os.Remove(filepath.Join(dir, p)))
	}
	for i := range 3 {
		p := fmt.Sprintf("d%d/hooks", i)
		must(t, r.Remove(0, p))
		must(t, os.Remove(filepath.Join(dir, p)))
	}
	rec := end(t, r)
	for i := range 3 {
		d, err := os.Open(filepath.Join(dir, fmt.Sprint("d", i)))
		must(t, err)
		defer d.Close()
		must(t, syscall.Flock(int(d.Fd()), syscall.LOCK_EX))
	}
	set, err := protect.New(nil, nil)
	must(t, err)
	top, err := openTree(dir)
	must(t, err)
	defer top.close()
	u := &undo{
		j: j, ctx: t.Context(), q: &Request{Protect: set}, patience: patience{claimTries},
		rec: &Recorder{trees: []*tree{top}, head: header{Roots: []Root{{Path: Text(dir)}}}},
	}
	for i := range 30 {
		if _, err := u.claim(key{0, fmt.Sprintf("d%d/hooks/x", i%3)}); err == nil {
			t.Error("a lock of somebody else was taken")
		}
	}
	if u.patience.left != -30 {
		t.Errorf("%d tries for 30 paths", claimTries-u.patience.left)
	}
	res, err := j.Undo(t.Context(), Request{Steps: []int64{rec.Number}})
	must(t, err)
	if len(res.Conflicts) == 0 || !strings.Contains(res.Conflicts[0].Why, `a process holds a lock on the directory "d`) {
		t.Errorf("%+v", res)
	}
}
