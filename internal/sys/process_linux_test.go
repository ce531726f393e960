package sys

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
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
	got := make(chan locked, 1)
	go func() {
		f, err := LockDir(t.Context(), path)
		got <- locked{f, err}
	}()
	time.Sleep(20 * time.Millisecond) // it has the first one open, most likely
	if err := errors.Join(os.Rename(path, path+"-away"), os.Mkdir(path, 0o700), first.Close()); err != nil {
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
