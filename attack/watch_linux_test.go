package attack

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
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
