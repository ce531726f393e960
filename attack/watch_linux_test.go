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
	w := &watch{fd: fd, is: func(p string) bool { return filepath.Base(p) == ".mcp.json" }, dirs: map[int32]string{}, first: map[string]fileNumber{}}
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
