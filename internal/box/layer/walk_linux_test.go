package layer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/snapshot"
)

func blocks(t *testing.T, f *os.File) int64 {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}

func here(dirs ...string) walk {
	return walk{
		dirs: dirs, stub: func(string, *snapshot.Entry) bool { return false },
		own: func(uid, gid uint32) (uint32, uint32, bool) { return 1000, 1001, int(uid) == os.Geteuid() },
	}
}

func TestAWalkFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret")
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(os.WriteFile(outside, []byte("secret"), 0o600))
	do(os.MkdirAll(filepath.Join(dir, "tmp", "d"), 0o750))
	do(os.Chmod(filepath.Join(dir, "tmp", "d"), 0o750))
	do(os.Symlink(outside, filepath.Join(dir, "tmp", "file")))
	do(os.Symlink(filepath.Dir(outside), filepath.Join(dir, "tmp", "dir")))
	do(os.WriteFile(filepath.Join(dir, "tmp", "d", "odd \xff\nname"), []byte("abc"), 0o600))
	do(os.Link(filepath.Join(dir, "tmp", "d", "odd \xff\nname"), filepath.Join(dir, "tmp", "e")))
	do(syscall.Mkfifo(filepath.Join(dir, "tmp", "pipe"), 0o600))
	do(os.Symlink("tmp", filepath.Join(dir, "other")))
	root, err := os.Open(dir)
	do(err)
	defer root.Close()
	got := strings.Join(show(t, here("tmp", "missing").entries(t.Context(), root)), "\n")
	for _, want := range []string{
		`"tmp" 2`, `"tmp/d" 2 750 1000:1001`, `"tmp/d/odd \xff\nname" 1 600 1000:1001 "" 0 0 false true 3 0+"abc"`, `"tmp/dir" 3 777`,
		`"tmp/e" 9 0 0:0 "" 0`, `"tmp/file" 3`, `"tmp/pipe" 4`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, `"secret"`) {
		t.Errorf("it read what a link leads to:\n%s", got)
	}
	for _, err := range here("other").entries(t.Context(), root) {
		if !errors.Is(err, paddock.Conflict) {
			t.Errorf("a place that became a link: %v", err)
		}
	}
	foreign := here("tmp")
	foreign.own = func(uint32, uint32) (uint32, uint32, bool) { return 0, 0, false }
	for _, err := range foreign.entries(t.Context(), root) {
		if !errors.Is(err, paddock.Internal) {
			t.Errorf("a file of somebody else: %v", err)
		}
	}
}

func TestAWalkHasABound(t *testing.T) {
	dir := t.TempDir()
	deep := dir
	for range 40 { // each of the names is long, so that the path is longer than one call takes
		deep = filepath.Join(deep, strings.Repeat("d", 30))
	}
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := os.Open(filepath.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	w := here(filepath.Base(dir))
	if got := show(t, w.entries(t.Context(), root)); len(got) != 41 {
		t.Errorf("%d entries", len(got))
	}
	count := 0
	for range w.entries(t.Context(), root) {
		if count++; count == 3 {
			break // a reader that has enough ends it
		}
	}
}
