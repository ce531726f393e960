package container

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestASumIsRememberedUntilTheFileChanges(t *testing.T) {
	// A file of the system's is old enough to be remembered.
	old, err := os.Open("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	var s sums
	key := func(f *os.File) unchanged {
		t.Helper()
		var st syscall.Stat_t
		if err := syscall.Fstat(int(f.Fd()), &st); err != nil {
			t.Fatal(err)
		}
		return unchanged{device: st.Dev, inode: st.Ino, size: st.Size, changed: st.Ctim, written: st.Mtim}
	}
	want, size, err := sumOf(old)
	if err != nil {
		t.Fatal(err)
	}
	if got, n, err := s.of(old); err != nil || got != want || n != size {
		t.Errorf("%s of %d bytes, %v, want %s of %d", got, n, err, want, size)
	}
	s.known = map[unchanged]string{key(old): "as remembered"}
	if got, _, err := s.of(old); err != nil || got != "as remembered" {
		t.Errorf("%s, %v: it was summed up again", got, err)
	}

	name := filepath.Join(t.TempDir(), "part")
	if err := os.WriteFile(name, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, _, err := s.of(f); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.known[key(f)]; ok {
		t.Error("what was written just now is remembered, and the next change might not be seen")
	}
}
