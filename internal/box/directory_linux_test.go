package box

import (
	"os"
	"path/filepath"
	"testing"
)

// held is a directory in a state directory, as a keeper holds it.
func held(t *testing.T) (state, path string, d *directory) {
	t.Helper()
	state = filepath.Join(t.TempDir(), "state")
	path = filepath.Join(state, "one")
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return state, path, newDirectory(path, f)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestADirectoryIsGoneWhenItWasRemovedAndNotWhenItIsElsewhere(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(t *testing.T, state, path string)
		gone   bool
	}{
		{"as it was", func(*testing.T, string, string) {}, false},
		{"its files changed", func(t *testing.T, _, path string) { must(t, os.WriteFile(filepath.Join(path, aboutName), nil, 0o600)) }, false},
		{"it was renamed", func(t *testing.T, _, path string) { must(t, os.Rename(path, path+"-2")) }, false},
		{"the state directory was renamed", func(t *testing.T, state, _ string) { must(t, os.Rename(state, state+"-2")) }, false},
		{"it was renamed, and another has its name", func(t *testing.T, _, path string) {
			must(t, os.Rename(path, path+"-2"))
			must(t, os.Mkdir(path, 0o700))
		}, false},
		{"nobody may enter what is above", func(t *testing.T, state, _ string) {
			must(t, os.Chmod(state, 0))
			t.Cleanup(func() { must(t, os.Chmod(state, 0o700)) })
		}, false},
		{"it was removed", func(t *testing.T, _, path string) { must(t, os.Remove(path)) }, true},
		{"the state directory was removed", func(t *testing.T, state, _ string) { must(t, os.RemoveAll(state)) }, true},
		{"it was removed, and another has its name", func(t *testing.T, state, path string) {
			must(t, os.RemoveAll(state))
			must(t, os.MkdirAll(path, 0o700))
		}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			state, path, d := held(t)
			row.change(t, state, path)
			gone := false
			for range mostMisses + 1 {
				gone = d.gone()
			}
			if gone != row.gone {
				t.Errorf("gone: %t", gone)
			}
			if first := newDirectory(d.path, d.held).gone(); first != row.gone {
				t.Errorf("at the first look: %t", first)
			}
		})
	}
}

func TestADirectoryThatNoPathLeadsToIsGoneAfterAWhile(t *testing.T) {
	_, _, d := held(t)
	// As of a file system that was unmounted while it was in use.
	d.path, d.name = d.path+"-2", func() string { return "/" }
	looks := 1
	for ; !d.gone(); looks++ {
		if looks > mostMisses {
			t.Fatal("it never is")
		}
	}
	if looks != mostMisses {
		t.Errorf("after %d looks", looks)
	}
}

func TestAStateDirectoryWithAnyNameLeadsToItsSandboxes(t *testing.T) {
	for _, name := range []string{"plain", "[a-b]", `back\slash`, "star*", "open["} {
		state := filepath.Join(t.TempDir(), name)
		if leadsTo(state, "one") {
			t.Errorf("%s: it leads to a sandbox before there is one", name)
		}
		if err := os.MkdirAll(filepath.Join(state, "jail", "one"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(state, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if !leadsTo(state, "one") || leadsTo(state, "two") {
			t.Errorf("%s: one is found: %v, two is found: %v", name, leadsTo(state, "one"), leadsTo(state, "two"))
		}
	}
}
