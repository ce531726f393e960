package boxinit

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

func TestAModeOfAMountsDirectoryOnlyTakesRightsOfOthersAway(t *testing.T) {
	for _, c := range []struct {
		from, to uint32
		want     bool
	}{
		{0o755, 0o755, true}, {0o755, 0o750, true}, {0o755, 0o700, true}, {0o777, 0o701, true}, {0o2775, 0o2770, true}, {0o1777, 0o1755, true},
		{0o555, 0o500, true}, // the owner has no more than before
		{0o755, 0o555, false}, {0o755, 0o655, false}, {0o755, 0o355, false}, {0o755, 0, false}, {0o555, 0o755, false},
		{0o755, 0o757, false}, {0o750, 0o755, false}, {0o700, 0o710, false}, {0o750, 0o705, false},
		{0o755, 0o1755, false}, {0o755, 0o2755, false}, {0o755, 0o4755, false}, {0o2775, 0o775, false}, {0o1777, 0o777, false},
	} {
		if got := takesRights(sys.TypeDir|c.from, c.to); got != c.want {
			t.Errorf("%o to %o: %v", c.from, c.to, got)
		}
	}
}

// A mount's directory, and those above it that another mount shows, are known by any name.
func TestDirectoriesOfMountsAreKnown(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"host/above/desk/sub", "desk", "up"} {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// The tree stands for what is mounted: a mount of a directory is the directory.
	desk, up := filepath.Join(top, "host/above/desk"), filepath.Join(top, "host")
	trees := []Tree{{Path: desk, Protected: true, Source: "/src/above/desk"}, {Path: up, Protected: true, Source: "/src"}, {Path: filepath.Join(top, "missing"), Protected: true, Source: "/src/missing"}, {Path: top}}
	b, err := newBroker(&Config{Trees: trees})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.keepTops(trees); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"host": true, "host/above": true, "host/above/desk": true, "host/above/desk/sub": false, "up": false, "": false} {
		st, err := sys.StatAt(sys.AtCWD, filepath.Join(top, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := b.isTop("/elsewhere", st); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
