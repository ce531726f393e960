package boxinit

import (
	"path"
	"strings"
	"testing"
)

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
