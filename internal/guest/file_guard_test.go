//go:build linux

package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// wall is a Guard that denies everything below one directory, and remembers
// what it was asked.
type wall struct {
	below string

	mu    sync.Mutex
	asked []string // guarded by mu
}

func (w *wall) Check(op string, dir *os.File, base string) (func(), error) {
	return nil, w.check(op, dir, base)
}

func (w *wall) Rename(dir *os.File, base string, newDir *os.File, newBase string) error {
	return renamed(w.check, dir, base, newDir, newBase)
}

// renamed renames what a function allows to be renamed.
func renamed(check func(op string, dir *os.File, base string) error, dir *os.File, base string, newDir *os.File, newBase string) error {
	if err := errors.Join(check("rename", dir, base), check("rename", newDir, newBase)); err != nil {
		return err
	}
	return sys.RenameAt(int(dir.Fd()), base, int(newDir.Fd()), newBase)
}

func (w *wall) check(op string, dir *os.File, base string) error {
	path, err := sys.PathOf(int(dir.Fd()))
	if err != nil {
		return err
	}
	name := join(path, base)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, op+" "+name)
	if w.below != "" && (name == w.below || strings.HasPrefix(name, w.below+"/")) {
		return fmt.Errorf("%s is behind the wall: %w", name, paddock.Denied)
	}
	return nil
}

func (w *wall) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := w.asked
	w.asked = nil
	return asked
}

func realTemp(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func goOn() error { return nil }

func create(f *files, name string, c creation) error {
	file, err := f.create(name, c)
	if err == nil {
		err = file.Close()
	}
	return err
}

func TestTheGuardIsAskedAboutWhatIsReallyChanged(t *testing.T) {
	dir := realTemp(t)
	w := &wall{}
	f := &files{guard: w, names: &names{}}
	for name, data := range map[string]string{"real/old": "", "real/full/sub/x": "", "real/full/y": ""} {
		if err := os.MkdirAll(filepath.Dir(dir+"/"+name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/"+name, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"link": "real", "file": dir + "/link/old", "new": "link/made"} {
		if err := os.Symlink(target, dir+"/"+link); err != nil {
			t.Fatal(err)
		}
	}
	real := dir + "/real"
	for _, row := range []struct {
		what string
		do   func() error
		want []string
	}{
		{"write a file", func() error { return create(f, dir+"/link/a", creation{}) }, []string{"write " + real + "/a"}},
		{"write through a link", func() error { return create(f, dir+"/file", creation{append: true}) }, []string{"write " + real + "/old"}},
		{"write through a dangling link", func() error { return create(f, dir+"/new", creation{}) }, []string{"write " + real + "/made"}},
		{"write with parents", func() error { return create(f, dir+"/link/p/q/f", creation{parents: true}) },
			[]string{"make " + real + "/p", "make " + real + "/p/q", "write " + real + "/p/q/f"}},
		{"mkdir", func() error { return f.mkdir(dir+"/link/d/", 0, false) }, []string{"make " + real + "/d"}},
		{"mkdir with parents", func() error { return f.mkdir(dir+"/link/d/e/f", 0, true) }, []string{"make " + real + "/d/e", "make " + real + "/d/e/f"}},
		{"mkdir what is there", func() error { return f.mkdir(dir+"/link/d/e", 0, true) }, nil},
		{"symlink", func() error { return f.symlink([]byte("x"), dir+"/link/s") }, []string{"link " + real + "/s"}},
		{"chmod through a link", func() error { return f.chmod(dir+"/file", 0o600) }, []string{"chmod " + real + "/old"}},
		{"chmod a directory", func() error { return f.chmod(dir+"/link/", 0o755) }, []string{"chmod " + real}},
		{"chmod above", func() error { return f.chmod(dir+"/link/d/..", 0o755) }, []string{"chmod " + real}},
		{"rename", func() error { return f.rename(dir+"/link/a", dir+"/link/b") }, []string{"rename " + real + "/a", "rename " + real + "/b"}},
		{"rename a link", func() error { return f.rename(dir+"/file", dir+"/file2") }, []string{"rename " + dir + "/file", "rename " + dir + "/file2"}},
		{"remove", func() error { return f.remove(dir+"/link/b", false, goOn) }, []string{"remove " + real + "/b"}},
		{"remove a tree", func() error { return f.remove(dir+"/link/full", true, goOn) },
			[]string{"remove " + real + "/full", "remove " + real + "/full/sub", "remove " + real + "/full/sub/x", "remove " + real + "/full/y"}},
		{"read", func() error {
			c, err := f.open(dir+"/file2", 0, 0)
			if err == nil {
				c.close()
			}
			return err
		}, nil},
	} {
		t.Run(row.what, func(t *testing.T) {
			if err := row.do(); err != nil {
				t.Error(err)
			}
			got := w.take()
			if row.what == "remove a tree" {
				slices.Sort(got) // a directory has no order
			}
			if !slices.Equal(got, row.want) {
				t.Errorf("asked %q, want %q", got, row.want)
			}
		})
	}
}

func TestWhatTheGuardDeniesIsNotDone(t *testing.T) {
	dir := realTemp(t)
	safe := dir + "/safe"
	if err := os.MkdirAll(safe+"/d", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(safe+"/f", []byte("keep"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/mine", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"link": "safe", "to": "safe/f", "new": "safe/new"} {
		if err := os.Symlink(target, dir+"/"+link); err != nil {
			t.Fatal(err)
		}
	}
	before := snapshot(t, safe)
	f := &files{guard: &wall{below: safe}, names: &names{}}
	for what, err := range map[string]error{
		"write":         create(f, safe+"/f", creation{}),
		"write by link": create(f, dir+"/to", creation{}),
		"write new":     create(f, dir+"/new", creation{}),
		"parents":       create(f, dir+"/link/a/b", creation{parents: true}),
		"mkdir":         f.mkdir(dir+"/link/x", 0, true),
		"symlink":       f.symlink([]byte("x"), dir+"/link/x"),
		"chmod":         f.chmod(dir+"/to", 0o777),
		"rename away":   f.rename(safe+"/f", dir+"/stolen"),
		"rename in":     f.rename(dir+"/mine", safe+"/f"),
		"rename it":     f.rename(safe, dir+"/other"),
		"remove":        f.remove(dir+"/link/f", false, goOn),
		"remove all":    f.remove(dir+"/link/d", true, goOn),
		"remove above":  f.remove(dir, true, goOn),
	} {
		if paddock.KindOf(err) != paddock.Denied || err == nil || !strings.Contains(err.Error(), "behind the wall") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if after := snapshot(t, safe); !slices.Equal(before, after) {
		t.Errorf("it was %q and is %q", before, after)
	}
	if _, err := os.Lstat(dir + "/mine"); err == nil {
		t.Error("what is not protected stays when the tree is removed")
	}
}

// snapshot describes all that is below dir.
func snapshot(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.Walk(dir, func(name string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		all = append(all, fmt.Sprint(name, info.Mode()))
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(name)
			all = append(all, string(data))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestNothingCanBeSwappedBetweenTheGuardAndTheChange(t *testing.T) {
	dir := realTemp(t)
	safe, sub := dir+"/safe", dir+"/sub"
	if err := os.MkdirAll(safe+"/d/e", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(safe+"/f", []byte("keep"), 0o640); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, safe)
	f := &files{guard: &wall{below: safe}, names: &names{}}

	stop := make(chan struct{})
	var wg sync.WaitGroup
	spin := func(do func()) {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					do()
				}
			}
		})
	}
	// A directory that is a link to the protected one, now and then; and a
	// file in it that is a link to the protected file.
	spin(func() {
		_ = os.Mkdir(sub, 0o755)
		_ = os.Mkdir(sub+"/d", 0o755)
		_ = os.Symlink(safe+"/f", sub+"/f")
		_ = os.Rename(sub, dir+"/aside")
		_ = os.Symlink("safe", sub)
		_ = os.Remove(sub)
		_ = os.RemoveAll(dir + "/aside")
	})
	// A file that is a link to the protected one every other moment.
	swap := dir + "/swap"
	spin(func() {
		_ = os.WriteFile(dir+"/plain", nil, 0o600)
		_ = os.Symlink(safe+"/f", dir+"/bent")
		_ = os.Rename(dir+"/plain", swap)
		_ = os.Rename(dir+"/bent", swap)
	})
	done := map[string]int{}
	for range 300 {
		for what, err := range map[string]error{
			"write":   create(f, sub+"/f", creation{mode: 0o777}),
			"swapped": create(f, swap, creation{}),
			"changed": f.chmod(swap, 0o777),
			"parents": create(f, sub+"/d/e/f", creation{parents: true}),
			"mkdir":   f.mkdir(sub+"/x", 0o777, true),
			"symlink": f.symlink([]byte("/"), sub+"/l"),
			"chmod":   f.chmod(sub+"/f", 0o777),
			"rename":  f.rename(sub+"/f", sub+"/g"),
			"remove":  f.remove(sub+"/f", false, goOn),
			"all":     f.remove(sub+"/d", true, goOn),
		} {
			if err == nil {
				done[what]++
			}
		}
	}
	close(stop)
	wg.Wait()
	if after := snapshot(t, safe); !slices.Equal(before, after) {
		t.Errorf("it was %q and is %q", before, after)
	}
	if len(done) == 0 {
		t.Error("nothing was ever done, so nothing was tried")
	}
}

// swapper is a Guard that allows what it is asked, and at that very moment puts
// a link to the protected file, or directory, in the place of the entry.
type swapper struct {
	wall
	target string
	on     bool
}

func (s *swapper) Check(op string, dir *os.File, base string) (func(), error) {
	return nil, s.check(op, dir, base)
}

func (s *swapper) Rename(dir *os.File, base string, newDir *os.File, newBase string) error {
	return renamed(s.check, dir, base, newDir, newBase)
}

func (s *swapper) check(op string, dir *os.File, base string) error {
	if err := s.wall.check(op, dir, base); err != nil || !s.on {
		return err
	}
	s.on = false
	path, err := sys.PathOf(int(dir.Fd()))
	if err != nil {
		return err
	}
	if err := os.RemoveAll(join(path, base)); err != nil {
		return err
	}
	return os.Symlink(s.target, join(path, base))
}

func TestALinkPutThereAfterTheGuardHasAllowedIsNotFollowed(t *testing.T) {
	dir := realTemp(t)
	safe := dir + "/safe"
	if err := os.MkdirAll(safe+"/d", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(safe+"/f", []byte("keep"), 0o640); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, safe)
	g := &swapper{wall: wall{below: safe}}
	f := &files{guard: g, names: &names{}}
	name := dir + "/x"
	for what, row := range map[string]struct {
		target string
		do     func() error
	}{
		"write":            {safe + "/f", func() error { return create(f, name, creation{}) }},
		"append":           {safe + "/f", func() error { return create(f, name, creation{append: true}) }},
		"write new":        {safe + "/new", func() error { return create(f, name, creation{}) }},
		"write exclusive":  {safe + "/new", func() error { return create(f, name, creation{exclusive: true}) }},
		"mkdir":            {safe + "/new", func() error { return f.mkdir(name, 0o777, false) }},
		"parents":          {safe, func() error { return create(f, name+"/y/z", creation{parents: true}) }},
		"chmod":            {safe + "/f", func() error { return f.chmod(name, 0o777) }},
		"remove":           {safe + "/f", func() error { return f.remove(name, false, goOn) }},
		"remove directory": {safe, func() error { return f.remove(name, true, goOn) }},
		"rename":           {safe + "/f", func() error { return f.rename(name, dir+"/y") }},
	} {
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
		switch what {
		case "mkdir", "parents", "write new", "write exclusive":
		case "remove directory":
			if err := os.MkdirAll(name+"/d", 0o755); err != nil {
				t.Fatal(err)
			}
		default:
			if err := os.WriteFile(name, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		g.target, g.on = row.target, true
		err := row.do()
		if g.on {
			t.Errorf("%s: the guard was not asked", what)
		}
		if after := snapshot(t, safe); !slices.Equal(before, after) {
			t.Fatalf("%s (%v): it was %q and is %q", what, err, before, after)
		}
	}
}

// guardFunc is a Guard that is one function.
type guardFunc func(op string, dir *os.File, base string) error

func (g guardFunc) Check(op string, dir *os.File, base string) (func(), error) {
	return nil, g(op, dir, base)
}

func (g guardFunc) Rename(dir *os.File, base string, newDir *os.File, newBase string) error {
	return renamed(g, dir, base, newDir, newBase)
}

func TestADirectoryThatOthersRemoveMeanwhileIsRemoved(t *testing.T) {
	for what, again := range map[string]bool{"for good": false, "and make anew": true} {
		t.Run(what, func(t *testing.T) {
			dir := realTemp(t) + "/tree"
			fill := func() {
				if err := os.MkdirAll(dir+"/sub", 0o755); err != nil {
					t.Error(err)
				}
				if err := os.WriteFile(dir+"/sub/f", nil, 0o600); err != nil {
					t.Error(err)
				}
			}
			fill()
			asked := false
			f := &files{names: &names{}, guard: guardFunc(func(_ string, _ *os.File, base string) error {
				if base != "f" || asked {
					return nil
				}
				asked = true
				if err := os.RemoveAll(dir); err != nil {
					t.Error(err)
				}
				if again {
					fill()
				}
				return fmt.Errorf("it has no name any more: %w", paddock.NotFound)
			})}
			if err := f.remove(dir, true, goOn); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(dir); !os.IsNotExist(err) || !asked {
				t.Errorf("it is still there: %v, the guard was asked: %v", err, asked)
			}
		})
	}
}

func TestAGuardThatFindsNothingDoesNotHideWhatIsThere(t *testing.T) {
	dir := realTemp(t)
	if err := os.Mkdir(dir+"/tree", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/tree/f", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := &files{names: &names{}, guard: guardFunc(func(_ string, _ *os.File, base string) error {
		if base == "f" {
			return fmt.Errorf("a name that cannot be told: %w", paddock.NotFound)
		}
		return nil
	})}
	if err := f.remove(dir+"/tree", true, goOn); paddock.KindOf(err) != paddock.NotFound || err == nil {
		t.Errorf("it answers %v", err)
	}
	if _, err := os.Lstat(dir + "/tree/f"); err != nil {
		t.Error(err)
	}
}
