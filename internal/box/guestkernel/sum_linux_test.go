package guestkernel

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestASumIsRememberedUntilTheFileChanges(t *testing.T) {
	// A file of the system is old enough to be cached.
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
	if got, n, err := s.of(old, sumOf); err != nil || got != want || n != size {
		t.Errorf("%s of %d bytes, %v, want %s of %d", got, n, err, want, size)
	}
	s.known = map[unchanged]string{key(old): "as remembered"}
	if got, _, err := s.of(old, sumOf); err != nil || got != "as remembered" {
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
	if _, _, err := s.of(f, sumOf); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.known[key(f)]; ok {
		t.Error("what was written just now is remembered, and the next change might not be seen")
	}
}

func TestTheSumOfASparseFileIsOfWhatIsInIt(t *testing.T) {
	file := func(size int64, data map[int64]string) *os.File {
		f, err := os.Create(filepath.Join(t.TempDir(), "f"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		if err := f.Truncate(size); err != nil {
			t.Fatal(err)
		}
		for at, s := range data {
			if _, err := f.WriteAt([]byte(s), at); err != nil {
				t.Fatal(err)
			}
		}
		return f
	}
	const size = 1<<30 + 5
	sum := func(f *os.File) string {
		s, n, err := sumSparse(f)
		if err != nil || n != size {
			t.Fatal(n, err)
		}
		return s
	}
	one := sum(file(size, map[int64]string{100_000: "x", size - 1: "y"}))
	if same := sum(file(size, map[int64]string{100_000: "x", 500_000_000: "\x00", size - 1: "y"})); same != one {
		t.Error("zeros that are written count")
	}
	for _, other := range []map[int64]string{{100_001: "x", size - 1: "y"}, {100_000: "z", size - 1: "y"}, {100_000: "x"}, {100_000 + 64<<10: "x", size - 1: "y"}} {
		if sum(file(size, other)) == one {
			t.Errorf("%v has the same sum", other)
		}
	}
}
