package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestFilesGoInAndOutAsTheyAre(t *testing.T) {
	r := newRack(t)
	tree := filepath.Join(r.dir, "tree")
	Plant(t, filepath.Join(tree, "run.sh"), "#!/bin/sh\n", 0o755)
	Plant(t, filepath.Join(tree, "deep", "er", "secret"), "s", 0o600)
	Plant(t, filepath.Join(tree, "large"), strings.Repeat("0123456789abcdef", 1<<17), 0o640)
	if err := os.Symlink("deep/er", filepath.Join(tree, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(tree, "deep"), 0o550); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // who is not root removes nothing from it else
		for _, name := range []string{"tree", "back"} {
			_ = os.Chmod(filepath.Join(r.dir, name, "deep"), 0o755)
		}
	})
	id := r.do(t, "create")
	r.do(t, "cp", tree, id+":/tmp")
	if out := r.do(t, "exec", id, "--", "sh", "-c", "cd /tmp/tree; stat -c '%a %n' run.sh deep deep/er/secret; readlink link; wc -c <large"); out != "755 run.sh\n550 deep\n600 deep/er/secret\ndeep/er\n2097152" {
		t.Errorf("inside %q", out)
	}
	r.do(t, "cp", id+":/tmp/tree", filepath.Join(r.dir, "back"))
	for name, mode := range map[string]fs.FileMode{"run.sh": 0o755, "deep": fs.ModeDir | 0o550, "deep/er/secret": 0o600, "large": 0o640} {
		info, err := os.Lstat(filepath.Join(r.dir, "back", name))
		if err != nil || info.Mode() != mode {
			t.Errorf("%s: %v: %v", name, info, err)
		}
	}
	if to, err := os.Readlink(filepath.Join(r.dir, "back", "link")); err != nil || to != "deep/er" {
		t.Errorf("link to %q: %v", to, err)
	}

	// Into a directory it goes under its own name, and a file over a file.
	if err := os.Mkdir(filepath.Join(r.dir, "in"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.do(t, "cp", id+":/tmp/tree/run.sh", "in")
	r.do(t, "cp", id+":/tmp/tree/run.sh", "in/run.sh")
	if data, err := os.ReadFile(filepath.Join(r.dir, "in", "run.sh")); err != nil || string(data) != "#!/bin/sh\n" {
		t.Errorf("%q: %v", data, err)
	}

	// Standard streams.
	in := r.invoke("cp", "-", id+":/tmp/typed")
	in.App.Stdin = strings.NewReader("typed")
	if code := in.Run(t.Context()); code != 0 {
		t.Error(in.Stderr.String())
	}
	if out := r.do(t, "cp", id+":/tmp/typed", "-"); out != "typed" {
		t.Errorf("came out as %q", out)
	}

	// Mistakes.
	r.fail(t, 125, "cp", "a", "b")
	r.fail(t, 125, "cp", id+":/a", id+":/b")
	r.fail(t, 125, "cp", id+":/missing", ".")
	r.fail(t, 125, "cp", "missing", id+":/tmp")
	r.fail(t, 125, "cp", id+":/tmp/typed", "nowhere/")
	r.fail(t, 125, "cp", id+":/tmp/tree", "-")
}

// A liar is files that say what is not so.
type liar struct {
	paddock.FS
	stat map[string]paddock.FileInfo
	list map[string][]paddock.FileInfo
}

func (l liar) Stat(_ context.Context, name string) (paddock.FileInfo, error) {
	info, ok := l.stat[name]
	if !ok {
		return info, paddock.NotFound
	}
	return info, nil
}

func (l liar) List(_ context.Context, name string, _ int) iter.Seq2[paddock.FileInfo, error] {
	return func(yield func(paddock.FileInfo, error) bool) {
		for _, info := range l.list[name] {
			if !yield(info, nil) {
				return
			}
		}
	}
}

func (l liar) Open(context.Context, string, paddock.OpenOptions) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("evil")), nil
}

func TestWhatComesOutOfASandboxStaysInTheTarget(t *testing.T) {
	dir := fs.ModeDir | 0o755
	for _, row := range []struct {
		name string
		list map[string][]paddock.FileInfo
	}{
		{"a name that leads up", map[string][]paddock.FileInfo{"/a": {{Name: "/a/../../outside/x", Mode: 0o644}}}},
		{"a name from the root", map[string][]paddock.FileInfo{"/a": {{Name: "/outside/x", Mode: 0o644}}}},
		{"two dots", map[string][]paddock.FileInfo{"/a": {{Name: "/a/..", Mode: dir}}}},
		{"a name of nothing", map[string][]paddock.FileInfo{"/a": {{Name: "/a/", Mode: dir}}}},
		{"a link, and a directory of the same name", map[string][]paddock.FileInfo{
			"/a":   {{Name: "/a/l", Mode: fs.ModeSymlink | 0o777, Link: "../outside"}, {Name: "/a/l", Mode: dir}},
			"/a/l": {{Name: "/a/l/x", Mode: 0o644}},
		}},
		{"a link, and a file of the same name", map[string][]paddock.FileInfo{
			"/a": {{Name: "/a/l", Mode: fs.ModeSymlink | 0o777, Link: "../outside/x"}, {Name: "/a/l", Mode: 0o644}},
		}},
		{"a directory without end", map[string][]paddock.FileInfo{"/a": {{Name: "/a/a", Mode: dir}}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			top := t.TempDir()
			Plant(t, filepath.Join(top, "outside", "x"), "mine", 0o644)
			if err := os.Mkdir(filepath.Join(top, "target"), 0o755); err != nil {
				t.Fatal(err)
			}
			v := invoke(top, nil, nil)
			c := &copying{files: liar{stat: map[string]paddock.FileInfo{"/a": {Name: "/a", Mode: dir}}, list: row.list}, a: v.App}
			err := c.out(t.Context(), "/a", "target")
			if err == nil && !strings.Contains(row.name, "without end") {
				t.Error("it was believed")
			}
			if data, err := os.ReadFile(filepath.Join(top, "outside", "x")); err != nil || string(data) != "mine" {
				t.Errorf("outside is %q: %v", data, err)
			}
			if entries, err := os.ReadDir(filepath.Join(top, "outside")); err != nil || len(entries) != 1 {
				t.Errorf("outside are %v: %v", entries, err)
			}
		})
	}
}

// The attacker changes, in a tree that a person copies in and out again, what programs of this machine obey without being
// asked. See the protected names of a workspace.
func TestWhatProgramsHereObeyDoesNotComeOut(t *testing.T) {
	const dir = fs.ModeDir | 0o755
	tree := func(files ...string) (liar, *copying, string) {
		l := liar{stat: map[string]paddock.FileInfo{"/a": {Name: "/a", Mode: dir}}, list: map[string][]paddock.FileInfo{}}
		seen := map[string]bool{"/a": true}
		for _, name := range files {
			mode := fs.FileMode(0o755)
			if link, ok := strings.CutSuffix(name, "@"); ok {
				name, mode = link, fs.ModeSymlink|0o777
			}
			for at := "/a/" + name; !seen[at]; at = filepath.Dir(at) {
				seen[at] = true
				info := paddock.FileInfo{Name: at, Mode: mode}
				if mode&fs.ModeSymlink != 0 {
					info.Link = "elsewhere"
				}
				l.list[filepath.Dir(at)] = append(l.list[filepath.Dir(at)], info)
				mode = dir
			}
		}
		top := t.TempDir()
		v := invoke(top, nil, nil)
		return l, &copying{files: l, a: v.App}, top
	}
	var l liar
	var c *copying
	var top string
	for what, name := range map[string]string{
		"a hook": ".git/hooks/pre-commit", "a configuration": ".git/config", "one of a repository below": "deep/er/.git/config", "in another case": ".GIT/config",
		"of an editor": ".vscode/tasks.json", "a repository elsewhere": ".git", "a link to one": ".git@", "one of Mercurial": ".hg/hgrc", "a shell's": ".bashrc",
	} {
		_, c, top = tree(name, "kept")
		if err := c.out(t.Context(), "/a", "."); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		name = strings.TrimSuffix(name, "@")
		if _, err := os.Lstat(filepath.Join(top, "a", name)); err == nil || c.left != 1 {
			t.Errorf("%s came out, and %d were left out", what, c.left)
		}
		if data, err := os.ReadFile(filepath.Join(top, "a", "kept")); err != nil || string(data) != "evil" {
			t.Errorf("beside %s: %q, %v", what, data, err)
		}
	}

	// A bare repository is obeyed as a whole.
	_, c, top = tree("x/HEAD", "x/config", "x/objects/o", "x/refs/r")
	if err := c.out(t.Context(), "/a", "."); err != nil || c.left == 0 {
		t.Errorf("a bare repository: %v, %d left out", err, c.left)
	}
	if _, err := os.Lstat(filepath.Join(top, "a", "x", "HEAD")); err == nil {
		t.Error("a bare repository came out")
	}

	// So it is if the target becomes one.
	l, c, top = tree()
	if err := os.Mkdir(filepath.Join(top, "a"), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	l.stat["/"] = paddock.FileInfo{Name: "/", Mode: dir}
	l.list["/"] = []paddock.FileInfo{{Name: "/HEAD", Mode: 0o644}, {Name: "/config", Mode: 0o644}, {Name: "/objects", Mode: dir}, {Name: "/refs", Mode: dir}}
	if err := c.out(t.Context(), "/", "a"); err != nil || c.left == 0 {
		t.Errorf("a bare repository in the target: %v, %d left out", err, c.left)
	}
	if _, err := os.Lstat(filepath.Join(top, "a", "HEAD")); err == nil {
		t.Error("the target became a bare repository")
	}

	// What is there is not changed, and what is the same is no matter.
	_, c, top = tree(".git/config", ".git/hooks/pre-commit", "x.git/HEAD", "x.git/config", "x.git/objects/o", "x.git/refs/r", "kept")
	for name, text := range map[string]string{".git/config": "mine", ".git/hooks/pre-commit": "evil", "x.git/HEAD": "evil", "x.git/config": "mine"} {
		Plant(t, filepath.Join(top, "a", name), text, 0o644)
	}
	if err := c.out(t.Context(), "/a", "."); err != nil || c.left != 2 {
		t.Errorf("over a repository: %v, %d left out", err, c.left)
	}
	for _, name := range []string{".git/config", "x.git/config"} {
		if data, err := os.ReadFile(filepath.Join(top, "a", name)); err != nil || string(data) != "mine" {
			t.Errorf("%s is %q, %v", name, data, err)
		}
	}

	// The path of the target is a part of the name.
	l, c, top = tree("info/attributes")
	l.stat["/a/info"] = paddock.FileInfo{Name: "/a/info", Mode: dir}
	if err := os.MkdirAll(filepath.Join(top, "x", ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := c.out(t.Context(), "/a/info", "x/.git/"); err != nil || c.left != 1 {
		t.Errorf("into a repository: %v, %d left out", err, c.left)
	}

	// Whoever names one gets it.
	l, c, top = tree(".git/config")
	var err error
	if c.names, err = protectedBut([]string{".git/config"}); err != nil {
		t.Fatal(err)
	}
	l.stat["/a/.envrc"] = paddock.FileInfo{Name: "/a/.envrc", Mode: 0o644}
	if err := errors.Join(c.out(t.Context(), "/a", "."), c.out(t.Context(), "/a/.envrc", ".")); err != nil || c.left != 0 {
		t.Errorf("what is named: %v, %d left out", err, c.left)
	}
	for _, name := range []string{"a/.git/config", ".envrc"} {
		if _, err := os.Lstat(filepath.Join(top, name)); err != nil {
			t.Errorf("%s did not come out: %v", name, err)
		}
	}
	if _, err := protectedBut([]string{"nothing"}); !errors.Is(err, paddock.Invalid) {
		t.Errorf("--unprotect nothing: %v", err)
	}
}

// A mode is content too: hooks that everybody may write run what anybody wrote, and those that nobody may read do not run.
func TestADirectoryThatIsHereGivesNobodyMoreRights(t *testing.T) {
	for _, row := range []struct {
		name             string
		have, said, want fs.FileMode
		told             bool
	}{
		{".git/hooks", 0o755, 0o777, 0o755, true},
		{".git/hooks", 0o755, 0, 0o755, true},
		{".git/hooks", 0o755, 0o755, 0o755, false},
		{".git", 0o755, 0, 0o755, true},
		{".git", 0o700, 0o777, 0o700, true},
		{".vscode", 0o755, 0o775, 0o755, true},
		{".config", 0o700, 0o755, 0o700, true}, // has protected names below
		{"x.git/hooks", 0o755, 0o777, 0o755, true},
		{"plain", 0o755, 0o777, 0o755, false},
		{"plain", 0o700, 0o777, 0o700, false},
		{"plain", 0o700, fs.ModeSetgid | 0o755, 0o700, false},
		{"plain", 0o755, 0o700, 0o700, false},
		{"plain", 0o755, 0o555, 0o555, false},
		{"plain", 0o777 | fs.ModeSticky, 0o777, 0o777 | fs.ModeSticky, false},
		{"plain", 0o770 | fs.ModeSetgid, 0o750, 0o750 | fs.ModeSetgid, false},
	} {
		t.Run(fmt.Sprintf("%s %v and %v", row.name, row.have, row.said), func(t *testing.T) {
			const dir = fs.ModeDir | 0o755
			top := t.TempDir()
			for _, name := range []string{"x.git/HEAD", "x.git/objects/o", "x.git/refs/r"} {
				Plant(t, filepath.Join(top, "a", name), "mine", 0o644)
			}
			l := liar{stat: map[string]paddock.FileInfo{"/a": {Name: "/a", Mode: dir}}, list: map[string][]paddock.FileInfo{}}
			for at, mode := "/a/"+row.name, fs.ModeDir|row.said; at != "/a"; at, mode = filepath.Dir(at), dir {
				l.list[filepath.Dir(at)] = append(l.list[filepath.Dir(at)], paddock.FileInfo{Name: at, Mode: mode})
			}
			at := filepath.Join(top, "a", row.name)
			if err := os.MkdirAll(at, 0o755); err != nil {
				t.Fatal(err)
			}
			for name := filepath.Dir(at); name != top; name = filepath.Dir(name) {
				if err := os.Chmod(name, 0o755); err != nil { // whatever the umask is
					t.Fatal(err)
				}
			}
			if err := os.Chmod(at, row.have); err != nil {
				t.Fatal(err)
			}
			v := invoke(top, nil, nil)
			c := &copying{files: l, a: v.App}
			if err := c.out(t.Context(), "/a", "."); err != nil {
				t.Fatal(err)
			}
			st, err := os.Stat(at)
			if err != nil || st.Mode() != fs.ModeDir|row.want {
				t.Errorf("it is %v, %v; want %v", st.Mode(), err, fs.ModeDir|row.want)
			}
			if said := v.Stderr.String(); (c.left == 1) != row.told || strings.Contains(said, "its mode") != row.told {
				t.Errorf("%d were left out: %q", c.left, said)
			}
		})
	}
}

func TestAFileThatIsHereGivesNobodyMoreRights(t *testing.T) {
	for _, row := range []struct{ have, said, want fs.FileMode }{
		{0o600, 0o666, 0o600}, {0o644, 0o777, 0o744}, {0o755, 0o777, 0o755}, {0o666, 0o640, 0o640}, {0, 0o777, 0o777}, // the last is new
	} {
		top := t.TempDir()
		at := filepath.Join(top, "a/x")
		if row.have != 0 {
			Plant(t, at, "mine", row.have)
		}
		v := invoke(top, nil, nil)
		one := &copying{a: v.App, files: liar{stat: map[string]paddock.FileInfo{"/a": {Name: "/a", Mode: fs.ModeDir | 0o755}},
			list: map[string][]paddock.FileInfo{"/a": {{Name: "/a/x", Mode: row.said}}}}}
		if err := one.out(t.Context(), "/a", "."); err != nil {
			t.Fatal(err)
		}
		if st, err := os.Stat(at); err != nil || st.Mode() != row.want {
			t.Errorf("%v and %v: it is %v, %v", row.have, row.said, st.Mode(), err)
		}
	}
}

func TestWhatIsNoFileIsLeftOutAndTold(t *testing.T) {
	top := t.TempDir()
	v := invoke(top, nil, nil)
	c := &copying{a: v.App, files: liar{stat: map[string]paddock.FileInfo{"/a": {Name: "/a", Mode: fs.ModeDir | 0o755}},
		list: map[string][]paddock.FileInfo{"/a": {{Name: "/a/\x1bpipe", Mode: fs.ModeNamedPipe | 0o644}, {Name: "/a/set", Mode: fs.ModeSetuid | 0o755}}}}}
	if err := c.out(t.Context(), "/a", "."); err != nil || c.left != 1 {
		t.Errorf("%d left out: %v", c.left, err)
	}
	if said := v.Stderr.String(); !strings.Contains(said, `\x1bpipe was left out`) {
		t.Errorf("said %q", said)
	}
	if info, err := os.Stat(filepath.Join(top, "a", "set")); err != nil || info.Mode() != 0o755 {
		t.Errorf("%v: %v", info, err)
	}
}
