package attack

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestAChangeThatIsUndoneIsSeen(t *testing.T) {
	dir := t.TempDir()
	is := func(p string) bool { return filepath.Base(p) == ".mcp.json" }
	made := func(p string) error { return os.WriteFile(p, []byte("x"), 0o644) }
	for name, change := range map[string]func(p string) error{
		"a file":         func(p string) error { return made(p) },
		"a directory":    func(p string) error { return os.Mkdir(p, 0o755) },
		"a moved file":   func(p string) error { return errors.Join(made(p+"x"), os.Rename(p+"x", p)) },
		"in a new place": func(p string) error { return errors.Join(os.Mkdir(p+".d", 0o755), made(p+".d/.mcp.json")) },
	} {
		t.Run(name, func(t *testing.T) {
			w, err := newWatch(is, dir)
			if err != nil {
				t.Fatal(err)
			}
			p := filepath.Join(dir, ".mcp.json")
			if err := errors.Join(change(p), os.RemoveAll(p)); err != nil {
				t.Fatal(err)
			}
			seen, err := w.stop()
			if err != nil || len(seen) == 0 {
				t.Errorf("saw %q, %v", seen, err)
			}
		})
	}
	w, err := newWatch(is, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := made(filepath.Join(dir, "other")); err != nil {
		t.Fatal(err)
	}
	if seen, err := w.stop(); err != nil || len(seen) > 0 {
		t.Errorf("saw %q in what is nobody's business, %v", strings.Join(seen, ", "), err)
	}
}

// A directory is made where another one was, and the former is back before the watch looks.
func TestWhatIsBackInItsPlaceWasNotMade(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "project")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, ".mcp.json"), []byte("x"), 0o644)); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	w := &watch{fd: fd, is: func(p string) bool { return filepath.Base(p) == ".mcp.json" }, dirs: map[int32]watched{}, first: map[string]fileNumber{}}
	if err := w.add(root, false); err != nil {
		t.Fatal(err)
	}
	if err := w.add(dir, true); err != nil || len(w.seen) > 0 {
		t.Errorf("saw %q, %v", w.seen, err)
	}
	if err := errors.Join(os.Rename(filepath.Join(dir, ".mcp.json"), filepath.Join(dir, "other")), os.WriteFile(filepath.Join(dir, ".mcp.json"), []byte("x"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if err := w.add(dir, true); err != nil || len(w.seen) != 1 {
		t.Errorf("saw %q in place of another file, %v", w.seen, err)
	}
}

// A repository is moved away, and another one is made under its name.
func TestARepositoryInTheNameOfAnotherIsANewOne(t *testing.T) {
	root := t.TempDir()
	dir, moved := filepath.Join(root, "nested"), filepath.Join(root, "moved")
	if err := os.MkdirAll(dir+"/.git/hooks", 0o755); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	w := &watch{fd: fd, is: func(p string) bool { return within(p, ".git/hooks") }, dirs: map[int32]watched{}, first: map[string]fileNumber{}}
	if err := w.add(root, false); err != nil {
		t.Fatal(err)
	}
	number := func(dir string) int32 {
		n, err := syscall.InotifyAddWatch(fd, dir, changes|syscall.IN_ONLYDIR)
		if err != nil {
			t.Fatal(err)
		}
		return int32(n)
	}
	if err := errors.Join(os.Rename(dir, moved), os.MkdirAll(dir+"/.git", 0o755), w.add(dir, true)); err != nil {
		t.Fatal(err)
	}
	w.note(number(dir+"/.git"), syscall.IN_CREATE|syscall.IN_ISDIR, "hooks")
	w.note(number(dir+"/.git"), syscall.IN_DELETE|syscall.IN_ISDIR, "hooks")
	if len(w.seen) > 0 {
		t.Errorf("saw %q of a new repository", w.seen)
	}
	// The first one is watched where it is now, and when it is back.
	first := number(moved + "/.git")
	w.note(first, syscall.IN_DELETE|syscall.IN_ISDIR, "hooks")
	if len(w.seen) != 1 {
		t.Errorf("saw %q of the repository that was moved", w.seen)
	}
	if err := errors.Join(os.RemoveAll(dir), os.Rename(moved, dir), w.add(dir, true)); err != nil {
		t.Fatal(err)
	}
	w.note(first, syscall.IN_DELETE|syscall.IN_ISDIR, "hooks")
	if len(w.seen) != 2 {
		t.Errorf("saw %q of the repository that is back", w.seen)
	}
}

func TestTheWatchLooksIntoWhatGitMakesAnew(t *testing.T) {
	is := func(p string) bool { return within(p, ".git/hooks") || within(p, ".git/config") }
	const harmless = "[core]\n\tbare = false\n"
	put := func(p, text string) error {
		return errors.Join(os.WriteFile(p+".lock", []byte(text), 0o644), os.Rename(p+".lock", p))
	}
	for name, c := range map[string]struct {
		change func(repo string) error
		seen   bool
	}{
		"as git init does": {func(repo string) error {
			return errors.Join(os.Mkdir(repo+"/hooks", 0o755), os.WriteFile(repo+"/hooks/update.sample", []byte("x"), 0o755), put(repo+"/config", harmless), put(repo+"/config", harmless+"\tfilemode = true\n"))
		}, false},
		"a configuration that runs something": {func(repo string) error { return put(repo+"/config", harmless+"\tpager = x\n") }, true},
		"a configuration that is written to": {func(repo string) error {
			return errors.Join(put(repo+"/config", harmless), os.WriteFile(repo+"/config", []byte(harmless), 0o644))
		}, true},
		"a hook": {func(repo string) error {
			return errors.Join(os.Mkdir(repo+"/hooks", 0o755), os.WriteFile(repo+"/hooks/update", []byte("x"), 0o755))
		}, true},
		"a hook that was a sample": {func(repo string) error {
			return errors.Join(os.Mkdir(repo+"/hooks", 0o755), os.WriteFile(repo+"/hooks/update.sample", []byte("x"), 0o755), os.Rename(repo+"/hooks/update.sample", repo+"/hooks/update"))
		}, true},
		"a link to hooks":           {func(repo string) error { return os.Symlink("elsewhere", repo+"/hooks") }, true},
		"a link to a configuration": {func(repo string) error { return os.Symlink("elsewhere", repo+"/config") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			repo := filepath.Join(dir, "new", ".git")
			if err := os.MkdirAll(repo, 0o755); err != nil {
				t.Fatal(err)
			}
			w, err := newWatch(is, dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.change(repo); err != nil {
				t.Fatal(err)
			}
			seen, err := w.stop()
			if err != nil || len(seen) > 0 != c.seen {
				t.Errorf("saw %q, %v", seen, err)
			}
		})
	}
	// What the host had is never expected to change.
	dir := t.TempDir()
	repo := filepath.Join(dir, ".git")
	if err := errors.Join(os.Mkdir(repo, 0o755), put(repo+"/config", harmless)); err != nil {
		t.Fatal(err)
	}
	w, err := newWatch(is, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := put(repo+"/config", harmless); err != nil {
		t.Fatal(err)
	}
	if seen, err := w.stop(); err != nil || len(seen) == 0 {
		t.Errorf("saw %q, %v", seen, err)
	}
}
