package step

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func journal(t testing.TB, o Options) *Journal {
	t.Helper()
	j, err := Open(filepath.Join(t.TempDir(), "journal"), o)
	must(t, err)
	t.Cleanup(func() { j.Close() })
	return j
}

// workspace returns an empty directory, by its real path.
func workspace(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	dir = filepath.Join(dir, "w")
	must(t, os.Mkdir(dir, 0o755))
	return dir
}

func begin(t testing.TB, j *Journal, dirs ...string) *Recorder {
	t.Helper()
	a := About{Sandbox: "box", Kind: "exec", Command: []string{"sh", "-c", "true"}}
	for i, d := range dirs {
		a.Roots = append(a.Roots, Root{Path: Text(d), Target: Text(fmt.Sprintf("/w%d", i))})
	}
	r, err := j.Begin(t.Context(), a)
	must(t, err)
	return r
}

func end(t testing.TB, r *Recorder) *Record {
	t.Helper()
	rec, err := r.End(t.Context(), Outcome{})
	must(t, err)
	return rec
}

func undoing(t testing.TB, j *Journal, steps ...int64) *Result {
	t.Helper()
	res, err := j.Undo(t.Context(), Request{Steps: steps})
	must(t, err)
	return res
}

// A box performs changes in directories, and tells a recorder as a broker would.
type box struct {
	r     *Recorder
	dirs  []string
	rand  *rand.Rand // decides whether what need not wait is told afterwards
	links bool       // makes no hard links
	die   func()     // called between any two calls, or nil
}

func (b *box) full(root int, p string) string { return b.dirs[root] + "/" + p }

// early calls tell before do; late may call it afterwards.
func (b *box) early(at key, tell, do func() error) error {
	b.tick()
	if err := tell(); err != nil {
		return err
	}
	b.tick()
	err := do()
	if err != nil {
		err = errors.Join(err, b.r.Failed(at.root, at.path))
	}
	return err
}

func (b *box) late(at key, tell, do func() error) error {
	if b.rand == nil || b.rand.IntN(2) == 0 {
		return b.early(at, tell, do)
	}
	b.tick()
	if err := do(); err != nil {
		return err
	}
	return tell()
}

func (b *box) tick() {
	if b.die != nil {
		b.die()
	}
}

func (b *box) write(root int, p, text string, flags int) error {
	full := b.full(root, p)
	do := func() error {
		f, err := os.OpenFile(full, os.O_WRONLY|flags, 0o644)
		if err != nil {
			return err
		}
		_, err = f.WriteString(text)
		return errors.Join(err, f.Close())
	}
	if _, err := os.Lstat(full); errors.Is(err, fs.ErrNotExist) {
		flags |= os.O_CREATE | os.O_EXCL
		return b.late(key{root, p}, func() error { return b.r.Create(root, p) }, do)
	}
	return b.early(key{root, p}, func() error { return b.r.Write(root, p) }, do)
}

func (b *box) remove(root int, p string) error {
	return b.early(key{root, p}, func() error { return b.r.Remove(root, p) }, func() error { return os.Remove(b.full(root, p)) })
}

// clear is rm -rf.
func (b *box) clear(root int, p string) error {
	i, err := os.Lstat(b.full(root, p))
	if err != nil {
		return err
	}
	if i.IsDir() {
		all, err := os.ReadDir(b.full(root, p))
		if err != nil {
			return err
		}
		for _, e := range all {
			if err := b.clear(root, p+"/"+e.Name()); err != nil {
				return err
			}
		}
	}
	return b.remove(root, p)
}

func (b *box) mkdir(root int, p string) error {
	return b.late(key{root, p}, func() error { return b.r.Create(root, p) }, func() error { return os.Mkdir(b.full(root, p), 0o755) })
}

func (b *box) symlink(root int, target, p string) error {
	return b.late(key{root, p}, func() error { return b.r.Create(root, p) }, func() error { return os.Symlink(target, b.full(root, p)) })
}

func (b *box) link(fromRoot int, from string, root int, p string) error {
	return b.late(key{root, p}, func() error { return b.r.Link(fromRoot, from, root, p) }, func() error { return os.Link(b.full(fromRoot, from), b.full(root, p)) })
}

func (b *box) chmod(root int, p string, mode fs.FileMode) error {
	return b.early(key{root, p}, func() error { return b.r.Mode(root, p) }, func() error { return os.Chmod(b.full(root, p), mode) })
}

func (b *box) move(fromRoot int, from string, root int, p string, how How) error {
	do := func() error {
		a, c := b.full(fromRoot, from), b.full(root, p)
		switch how {
		case Free:
			return sys.MoveAt(sys.AtCWD, a, sys.AtCWD, c)
		case Exchange:
			return sys.ExchangeAt(sys.AtCWD, a, sys.AtCWD, c)
		}
		return sys.RenameAt(sys.AtCWD, a, sys.AtCWD, c)
	}
	tell := func() error { return b.r.Move(fromRoot, from, root, p, how) }
	if how == Free {
		return b.late(key{root, p}, tell, do)
	}
	return b.early(key{root, p}, tell, do)
}

// picture describes a tree: each path with what undo promises to bring back.
func picture(t testing.TB, dirs ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for n, dir := range dirs {
		must(t, filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			i, err := e.Info()
			if err != nil {
				return err
			}
			s := i.Mode().String()
			switch {
			case i.Mode().IsRegular():
				b, err := os.ReadFile(p)
				if err != nil {
					return err
				}
				s += fmt.Sprintf(" %q", b)
			case i.Mode()&fs.ModeSymlink != 0:
				to, err := os.Readlink(p)
				if err != nil {
					return err
				}
				s = "-> " + to
			}
			if p != dir {
				all[fmt.Sprintf("%d:%s", n, p[len(dir)+1:])] = s
			}
			return nil
		}))
	}
	return all
}

func differ2(a, b map[string]string) string {
	var out []string
	for k, v := range a {
		if w, ok := b[k]; !ok {
			out = append(out, fmt.Sprintf("- %q %s", k, v))
		} else if v != w {
			out = append(out, fmt.Sprintf("! %q %s, not %s", k, w, v))
		}
	}
	for k, v := range b {
		if _, ok := a[k]; !ok {
			out = append(out, fmt.Sprintf("+ %q %s", k, v))
		}
	}
	sort.Strings(out)
	return strings.Join(out, "\n")
}

func same(t testing.TB, what string, want, got map[string]string) {
	t.Helper()
	if !maps.Equal(want, got) {
		t.Fatalf("%s:\n%s", what, differ2(want, got))
	}
}

// words for names: bytes of any sort.
func words() []string {
	return []string{"a", "b", "c.txt", "d d", "\xff\xfe", "e\nf", "Ünï", "g", "-h", "a.b"}
}

// places lists the present paths of the roots.
func (b *box) places(want func(fs.FileMode) bool) (all []key) {
	for n, dir := range b.dirs {
		_ = filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
			if err == nil && p != dir && want(e.Type()) {
				all = append(all, key{n, p[len(dir)+1:]})
			}
			return nil
		})
	}
	return all
}

func anything(fs.FileMode) bool    { return true }
func regular(m fs.FileMode) bool   { return m.IsRegular() }
func directory(m fs.FileMode) bool { return m.IsDir() }

// random does something. A call that the kernel refuses is part of it: it was told and not done.
func (b *box) random(x *rand.Rand) (string, error) {
	pick := func(want func(fs.FileMode) bool) (key, bool) {
		all := b.places(want)
		if len(all) == 0 {
			return key{}, false
		}
		return all[x.IntN(len(all))], true
	}
	fresh := func() (key, bool) { // a free name
		k := key{x.IntN(len(b.dirs)), ""}
		if d, ok := pick(directory); ok && x.IntN(3) > 0 {
			k = d
		}
		k = k.in(words()[x.IntN(len(words()))])
		_, err := os.Lstat(b.full(k.root, k.path))
		return k, errors.Is(err, fs.ErrNotExist) && strings.Count(k.path, "/") < 6
	}
	text := func() string { return fmt.Sprintf("%d\n", x.IntN(1000)) + strings.Repeat("x", x.IntN(50)) }
	switch x.IntN(16) {
	case 0, 1:
		if k, ok := fresh(); ok {
			return fmt.Sprintf("new %v", k), b.write(k.root, k.path, text(), 0)
		}
	case 2, 3:
		if k, ok := pick(regular); ok {
			return fmt.Sprintf("write %v", k), b.write(k.root, k.path, text(), []int{0, os.O_TRUNC, os.O_APPEND}[x.IntN(3)])
		}
	case 4, 5:
		if k, ok := pick(anything); ok {
			return fmt.Sprintf("remove %v", k), b.remove(k.root, k.path)
		}
	case 6:
		if k, ok := fresh(); ok {
			return fmt.Sprintf("mkdir %v", k), b.mkdir(k.root, k.path)
		}
	case 7:
		if k, ok := pick(directory); ok && x.IntN(3) == 0 {
			return fmt.Sprintf("clear %v", k), b.clear(k.root, k.path)
		}
	case 8:
		if k, ok := fresh(); ok {
			return fmt.Sprintf("symlink %v", k), b.symlink(k.root, words()[x.IntN(4)], k.path)
		}
	case 9:
		if b.links { // of files of before the step: a test of its own says what is promised
			return "", nil
		}
		from, ok := pick(regular)
		if to, free := fresh(); ok && free {
			return fmt.Sprintf("link %v %v", from, to), b.link(from.root, from.path, to.root, to.path)
		}
	case 10:
		if k, ok := pick(anything); ok {
			if i, err := os.Lstat(b.full(k.root, k.path)); err == nil && i.Mode()&fs.ModeSymlink == 0 {
				mode := fs.FileMode(0o600 | x.IntN(0o200))
				if i.IsDir() {
					mode |= 0o700
				}
				return fmt.Sprintf("chmod %v %o", k, mode), b.chmod(k.root, k.path, mode)
			}
		}
	case 11, 12:
		from, ok := pick(anything)
		if to, free := fresh(); ok && free && !related(from, to) {
			return fmt.Sprintf("move %v %v", from, to), b.move(from.root, from.path, to.root, to.path, Free)
		}
	case 13:
		from, ok := pick(anything)
		if to, there := pick(anything); ok && there && !related(from, to) {
			return fmt.Sprintf("replace %v %v", from, to), b.move(from.root, from.path, to.root, to.path, Replace)
		}
	case 14:
		from, ok := pick(anything)
		if to, there := pick(anything); ok && there && !related(from, to) {
			return fmt.Sprintf("exchange %v %v", from, to), b.move(from.root, from.path, to.root, to.path, Exchange)
		}
	case 15:
		if k, ok := pick(regular); ok { // as editors save
			temp := key{k.root, path.Join(path.Dir(k.path), "save.tmp")}
			if err := b.write(temp.root, temp.path, text(), 0); err != nil {
				return "save", err
			}
			return fmt.Sprintf("save %v", k), b.move(temp.root, temp.path, k.root, k.path, Replace)
		}
	}
	return "", nil
}

// grow fills a directory without telling anybody.
func grow(t testing.TB, x *rand.Rand, dirs ...string) {
	t.Helper()
	quiet := &box{dirs: dirs, r: mute(t, dirs), links: true}
	for range 40 {
		_, _ = quiet.random(x)
	}
	must(t, quiet.r.Abandon())
}

// mute returns a recorder whose step nobody needs.
func mute(t testing.TB, dirs []string) *Recorder {
	t.Helper()
	return begin(t, journal(t, Options{}), dirs...)
}

func TestUndoBringsBackWhatARandomStepChanged(t *testing.T) {
	seeds := 150
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			x := rand.New(rand.NewPCG(uint64(seed), 7))
			dirs := []string{workspace(t)}
			if seed%4 == 0 {
				dirs = append(dirs, workspace(t))
			}
			grow(t, x, dirs...)
			j := journal(t, Options{})
			before := picture(t, dirs...)
			b := &box{r: begin(t, j, dirs...), dirs: dirs, rand: x}
			var did []string
			for range 5 + x.IntN(60) {
				what, err := b.random(x)
				if what != "" {
					did = append(did, fmt.Sprint(what, " ", err))
				}
				var errno syscall.Errno
				if err != nil && !errors.As(err, &errno) {
					t.Fatal(what, err)
				}
			}
			rec := end(t, b.r)
			after := picture(t, dirs...)
			if len(rec.Left) > 0 || rec.Incomplete {
				t.Errorf("left %v, incomplete %v", rec.Left, rec.Incomplete)
			}
			res := undoing(t, j, rec.Number)
			if d := differ2(before, picture(t, dirs...)); d != "" || len(res.Conflicts) > 0 {
				t.Fatalf("undo of\n%s\nleft\n%s\nconflicts %+v\nchanges %s", strings.Join(did, "\n"), d, res.Conflicts, describe(rec))
			}
			if maps.Equal(before, after) {
				return
			}
			redo := undoing(t, j, res.Step)
			if d := differ2(after, picture(t, dirs...)); d != "" || len(redo.Conflicts) > 0 {
				undone, err := j.Read(t.Context(), res.Step)
				must(t, err)
				t.Fatalf("redo of\n%s\nleft\n%s\nconflicts %+v\nchanges of the undo %s", strings.Join(did, "\n"), d, redo.Conflicts, describe(undone))
			}
			again := undoing(t, j, redo.Step)
			same(t, "undo of the redo", before, picture(t, dirs...))
			if len(again.Conflicts) > 0 {
				t.Errorf("conflicts %+v", again.Conflicts)
			}
		})
	}
}

func describe(rec *Record) string {
	var b strings.Builder
	for _, c := range rec.Changes {
		fmt.Fprintf(&b, "\n%d:%q", c.Root, c.Path)
		if c.Moved {
			fmt.Fprintf(&b, " from %d:%q", c.FromRoot, c.From)
		}
		fmt.Fprintf(&b, " %s %o %d kept %d -> %s %o %d %s", c.Before.Kind, c.Before.Mode, c.Before.Size, c.Kept, c.After.Kind, c.After.Mode, c.After.Size, c.Why)
	}
	return b.String()
}

// Whatever a step did, and whatever the user wrote since: an undo loses nothing of the user's.
func TestUndoNeverLosesWhatTheUserWroteSince(t *testing.T) {
	for seed := range 60 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			x := rand.New(rand.NewPCG(uint64(seed), 9))
			dir := workspace(t)
			grow(t, x, dir)
			j := journal(t, Options{})
			b := &box{r: begin(t, j, dir), dirs: []string{dir}, rand: x}
			for range 5 + x.IntN(40) {
				_, _ = b.random(x)
			}
			rec := end(t, b.r)
			var texts []string
			for n, k := range b.places(anything) {
				if x.IntN(4) > 0 {
					continue
				}
				i, err := os.Lstat(b.full(0, k.path))
				if err != nil || i.Mode()&fs.ModeSymlink != 0 {
					continue
				}
				p := b.full(0, k.path)
				if i.IsDir() {
					p += "/user"
				} else { // as an editor saves: it may have other names, which keep what they have
					must(t, os.Remove(p))
				}
				texts = append(texts, fmt.Sprintf("by the user %d", n))
				must(t, os.WriteFile(p, []byte(texts[len(texts)-1]), 0o644))
			}
			for range 2 {
				res := undoing(t, j, rec.Number)
				now := picture(t, dir)
				for _, text := range texts {
					found := false
					for _, v := range now {
						found = found || strings.Contains(v, fmt.Sprintf("%q", text))
					}
					if !found {
						t.Fatalf("%q is gone: %+v\nchanges %s", text, res.Conflicts, describe(rec))
					}
				}
				for p := range now {
					if strings.Contains(p, stageDir) {
						t.Errorf("%q is left", p)
					}
				}
			}
		})
	}
}
