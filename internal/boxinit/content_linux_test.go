package boxinit

import (
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// What a box that was killed left in a stage goes with the next use, and what another box uses stays.
func TestAStageIsSwept(t *testing.T) {
	top := t.TempDir()
	dir, err := sys.OpenDirAt(sys.AtCWD, top)
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(dir)
	at := path.Join(top, stage)
	if err := os.Mkdir(at, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{"old": 2 * leftAfter, "new": 0} {
		file, then := path.Join(at, name), time.Now().Add(-age)
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, then, then); err != nil {
			t.Fatal(err)
		}
	}
	if err := new(broker).land(dir, "config", []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path.Join(at, "old")); !os.IsNotExist(err) {
		t.Errorf("what was left is still there: %v", err)
	}
	if err := os.Remove(path.Join(at, "new")); err != nil {
		t.Errorf("what is used is gone: %v", err)
	}
	if err := new(broker).land(dir, "config", []byte("y"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(at); !os.IsNotExist(err) {
		t.Errorf("the empty stage stays: %v", err)
	}
}

// A file .git that the broker takes for its own leads upward, and then through .git alone.
func FuzzPointer(f *testing.F) {
	for _, seed := range []string{"gitdir: ../.git/modules/a\n", "gitdir: ../../.git/worktrees/x", "gitdir: /tmp", "gitdir: ../.git/modules/../x", "gitdir: ../.git/modules/a/refs/b", "gitdir: ../.git/worktrees/a/b", "gitdir: ../x/.git/modules/a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ups, down, ok := pointer(text)
		if !ok {
			return
		}
		if again := "gitdir: " + strings.Repeat("../", ups) + down; again != strings.TrimRight(text, "\n") {
			t.Fatalf("%q is read as %q", text, again)
		}
		if ups == 0 || path.Clean(down) != down || !strings.HasPrefix(down, ".git/modules/") && !strings.HasPrefix(down, ".git/worktrees/") || strings.ContainsAny(down, "\n\r\x00\\") {
			t.Fatalf("%q leads up %d and then to %q", text, ups, down)
		}
		for i, comp := range strings.Split(down, "/") {
			if comp == "" || comp == ".." || i > 2 && (comp == "refs" || comp == "objects" || comp == "logs") {
				t.Fatalf("%q leads through %q", text, comp)
			}
		}
	})
}
