package box

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestFilesOfTheSystemThatAreNotForEverybodyAreFound(t *testing.T) {
	dir := t.TempDir()
	modes := map[string]os.FileMode{
		"public": 0o644, "own": 0o600, "group": 0o640, "run": 0o711,
		"closed/": 0o750, "closed/file": 0o644, "open/": 0o755, "open/own": 0o400, "open/public": 0o444,
		"open/deeper/": 0o755, "open/deeper/own": 0o600, "open/deeper/closed/": 0o700,
		"unlisted/": 0o711, "unlisted/own": 0o600, "used/": 0o700, "used/bin/": 0o755, "used/own": 0o600, "nobody": 0o000, "shut/": 0o000,
	}
	names := make([]string, 0, len(modes))
	for name := range modes {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		at := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			if err := os.Mkdir(at, 0o755); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(at, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("own", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Backward(names) {
		if err := os.Chmod(filepath.Join(dir, name), modes[name]); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "shut"), 0o700) })
	want := []string{"closed", "group", "open/own", "own", "run", "unlisted/own", "used/own"}
	if os.Geteuid() == 0 { // who may read everything
		want = append(want, "nobody", "shut")
	}
	for levels, deeper := range map[int][]string{2: nil, 3: {"open/deeper/closed", "open/deeper/own"}} {
		var got []string
		for _, name := range closedTo(dir, levels, []string{filepath.Join(dir, "used/bin")}) {
			got = append(got, strings.TrimPrefix(name, dir+"/"))
		}
		slices.Sort(got)
		if all := slices.Sorted(slices.Values(slices.Concat(want, deeper))); !slices.Equal(got, all) {
			t.Errorf("%d levels: %q, not %q", levels, got, all)
		}
	}
}

func BenchmarkSecrets(b *testing.B) {
	for b.Loop() {
		(&Layout{}).secrets()
	}
}
