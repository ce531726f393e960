package sys

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestALockIsThatOfTheDirectoryWhichHasThePath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	first, err := LockDir(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	type locked struct {
		f   *os.File
		err error
	}
	other := path + "-other"
	got := make(chan locked, 1)
	go func() {
		f, err := LockDir(t.Context(), path)
		got <- locked{f, err}
	}()
	time.Sleep(20 * time.Millisecond) // it has the first one open, most likely
	if err := errors.Join(os.Mkdir(other, 0o700), unix.Renameat2(unix.AT_FDCWD, other, unix.AT_FDCWD, path, unix.RENAME_EXCHANGE), first.Close()); err != nil {
		t.Fatal(err)
	}
	second := <-got
	if second.err != nil {
		t.Fatal(second.err)
	}
	defer second.f.Close()
	now, err := second.f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if there, err := os.Stat(path); err != nil || !os.SameFile(now, there) {
		t.Errorf("another directory is locked, %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if f, err := LockDir(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("locked twice: %v, %v", f, err)
	}
	if _, err := LockDir(t.Context(), path+"-none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is not there: %v", err)
	}
}
