package step

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/protect"
)

// In all of these the sandbox wrote what git would obey while the directory was no repository, removed it, and made the
// directory a repository later. Each single call is one that the broker of a sandbox lets through.
func TestUndoMakesNoRepositoryThatTheSandboxPrepared(t *testing.T) {
	const evil = "[core]\n\tfsmonitor = /tmp/evil\n\tbare = false\n"
	head := map[string]string{"d/HEAD": "ref: refs/heads/m"}
	bare := map[string]string{"d/HEAD": "ref: refs/heads/m", "d/objects/x": "", "d/refs/x": ""}
	for _, test := range []struct {
		name   string
		before map[string]string
		step   func(t *testing.T, b *box)
		later  map[string]string
		never  string
	}{
		{"commondir beside HEAD", map[string]string{"d/commondir": "x", "d/x/config": evil, "d/x/objects/a": "", "d/x/refs/a": ""},
			func(t *testing.T, b *box) { must(t, b.remove(0, "d/commondir")) }, head, "d/commondir"},
		{"commondir that was moved", map[string]string{"d/commondir": "x", "d/x/config": evil, "d/x/objects/a": "", "d/x/refs/a": ""},
			func(t *testing.T, b *box) { must(t, b.move(0, "d/commondir", 0, "d/y", Free)) }, head, "d/commondir"},
		{"HEAD beside commondir", map[string]string{"d/HEAD": "ref: refs/heads/m", "d/x/config": evil},
			func(t *testing.T, b *box) { must(t, b.remove(0, "d/HEAD")) }, map[string]string{"d/commondir": "x"}, "d/HEAD"},
		{"hooks", map[string]string{"d/hooks/reference-transaction": "run me"},
			func(t *testing.T, b *box) { must(t, b.clear(0, "d/hooks")) }, bare, "d/hooks/reference-transaction"},
		{"a hook in a directory that stayed", map[string]string{"d/hooks/reference-transaction": "run me", "d/hooks/x": ""},
			func(t *testing.T, b *box) { must(t, b.remove(0, "d/hooks/reference-transaction")) }, bare, "d/hooks/reference-transaction"},
		{"hooks that were moved", map[string]string{"d/hooks/reference-transaction": "run me"},
			func(t *testing.T, b *box) { must(t, b.move(0, "d/hooks", 0, "d/y", Free)) }, bare, "d/hooks/reference-transaction"},
		{"a directory around attributes", map[string]string{"d/info/attributes": "* filter=evil"},
			func(t *testing.T, b *box) { must(t, b.move(0, "d/info", 0, "d/y", Free)) }, bare, "d/info/attributes"},
		{"alternates", map[string]string{"d/objects/info/alternates": "/tmp/evil", "d/objects/x": ""},
			func(t *testing.T, b *box) { must(t, b.remove(0, "d/objects/info/alternates")) }, bare, "d/objects/info/alternates"},
		{"a configuration", map[string]string{"d/config": evil},
			func(t *testing.T, b *box) { must(t, b.remove(0, "d/config")) }, bare, "d/config"},
		{"a configuration that was moved", map[string]string{"d/config": evil},
			func(t *testing.T, b *box) { must(t, b.move(0, "d/config", 0, "d/y", Free)) }, bare, "d/config"},
	} {
		t.Run(test.name, func(t *testing.T) {
			j, dir, rec := recorded(t, test.before, func(b *box) { test.step(t, b) })
			plant(t, dir, test.later)
			res := undoing(t, j, rec.Number)
			if _, err := os.Lstat(filepath.Join(dir, test.never)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v, %+v", test.never, err, res)
			}
			if len(res.Conflicts) == 0 {
				t.Error("no conflict")
			}
			for p := range picture(t, dir) {
				if strings.Contains(p, ".paddock") {
					t.Errorf("%q is left", p)
				}
			}
		})
	}
}

// A box that runs meanwhile makes the directory a repository after the undo looked, but before the file is there.
func TestUndoTakesBackWhatARepositoryWouldObey(t *testing.T) {
	j, dir, rec := recorded(t, map[string]string{"d/hooks/pre-commit": "run me", "d/hooks/x": ""}, func(b *box) {
		must(t, b.remove(0, "d/hooks/pre-commit"))
	})
	j.built = func(string) {
		plant(t, dir, map[string]string{"d/HEAD": "ref: refs/heads/m", "d/objects/x": "", "d/refs/x": ""})
	}
	res := undoing(t, j, rec.Number)
	if _, err := os.Lstat(dir + "/d/hooks/pre-commit"); !errors.Is(err, fs.ErrNotExist) || len(res.Conflicts) != 1 {
		t.Errorf("%v, %+v", err, res)
	}
}

// What is built for a path, and what is taken away from it, must not be open to a box that runs meanwhile.
func TestUndoBuildsFilesWhereNoSandboxCanOpenThem(t *testing.T) {
	const mine = "[user]\n\tname = me\n"
	set, err := protect.New(nil, nil)
	must(t, err)
	j, dir, rec := recorded(t, map[string]string{".git/config": mine, "a/b": "1", "c": "2"}, func(b *box) {
		must(t, b.write(0, ".git/config", mine+"\temail = x@example.com\n", os.O_TRUNC))
		must(t, b.remove(0, "a/b"))
		must(t, b.write(0, "c", "3", os.O_TRUNC))
		must(t, b.write(0, "new", "4", 0))
	})
	n := 0
	j.built = func(temp string) {
		n++
		for p := range picture(t, dir) {
			p = strings.TrimPrefix(p, "0:")
			if _, hit := set.Match(p); hit != protect.Protected && strings.Contains(p, "undo") || p == temp && hit != protect.Protected {
				t.Errorf("a sandbox may open %q", p)
			}
		}
		if _, err := os.Lstat(filepath.Join(dir, temp)); err != nil {
			t.Error(err)
		}
	}
	res := undoing(t, j, rec.Number)
	if len(res.Conflicts) != 0 || n != 3 {
		t.Errorf("%d built, %+v", n, res)
	}
	same(t, "undo", map[string]string{
		"0:.git": "drwxr-xr-x", "0:.git/config": `-rw-r--r-- "[user]\n\tname = me\n"`, "0:a": "drwxr-xr-x", "0:a/b": `-rw-r--r-- "1"`, "0:c": `-rw-r--r-- "2"`,
	}, picture(t, dir))
}

func TestUndoOfAFileSystemThatCannotExchangeNames(t *testing.T) {
	j, dir, rec := recorded(t, map[string]string{"a": "1", "b": "2"}, func(b *box) {
		must(t, b.write(0, "a", "by the step", os.O_TRUNC))
		must(t, b.write(0, "b", "by the step", os.O_TRUNC))
	})
	j.noSwap = true
	j.built = func(string) { must(t, os.WriteFile(dir+"/b", []byte("by the user"), 0o644)) }
	res := undoing(t, j, rec.Number)
	if len(res.Restored) != 1 || res.Restored[0].Note == "" || len(res.Conflicts) != 1 {
		t.Errorf("%+v", res)
	}
	same(t, "undo", map[string]string{"0:a": `-rw-r--r-- "1"`, "0:b": `-rw-r--r-- "by the user"`}, picture(t, dir))
	j.noSwap, j.built = false, func(string) {}
	if res := undoing(t, j, res.Step); len(res.Restored) != 1 || len(res.Conflicts) != 0 {
		t.Errorf("redo: %+v", res)
	}
	same(t, "redo", map[string]string{"0:a": `-rw-r--r-- "by the step"`, "0:b": `-rw-r--r-- "by the user"`}, picture(t, dir))
}
