//go:build linux

package guestclient_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestListGoesAsDeepAsAsked(t *testing.T) {
	fsys, dir := box(t)
	for _, name := range []string{"/a/b/c/d", "/a/x", "/y"} {
		put(t, fsys, dir+name, nil, paddock.CreateOptions{Parents: true})
	}
	if err := fsys.Symlink(t.Context(), dir, dir+"/a/loop"); err != nil {
		t.Fatal(err)
	}
	for depth, want := range map[int][]string{
		1: {"a", "y"},
		2: {"a", "a/b", "a/loop", "a/x", "y"},
		9: {"a", "a/b", "a/b/c", "a/b/c/d", "a/loop", "a/x", "y"},
	} {
		if got, err := list(t.Context(), fsys, dir, depth); err != nil || !slices.Equal(got, want) {
			t.Errorf("depth %d: %q, %v", depth, got, err)
		}
	}
	for range fsys.List(t.Context(), dir, 9) {
		break
	}
	if got, err := list(t.Context(), fsys, dir+"/", 1); err != nil || len(got) != 2 || got[0] != dir+"/a" {
		t.Errorf("with a slash at the end: %q, %v", got, err)
	}
}

func TestLargeDirectoriesAreListedInFull(t *testing.T) {
	fsys, dir := box(t)
	const n = 3000
	for i := range n {
		if err := os.WriteFile(fmt.Sprintf("%s/%d", dir, i), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := list(t.Context(), fsys, dir, 1); err != nil || len(got) != n || len(slices.Compact(got)) != n {
		t.Errorf("%d files, %v", len(got), err)
	}
	for range fsys.List(t.Context(), dir, 1) {
		break // with much still to come
	}
	ctx, cancel := context.WithCancel(t.Context())
	var last error
	for _, err := range fsys.List(ctx, dir, 1) {
		cancel()
		last = err
	}
	if last != nil {
		wantKind(t, last, paddock.Canceled) // unless all had come already
	}
	cancel()
	if err := fsys.Remove(t.Context(), dir, true); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("it is still there:", err)
	}
}

// deepen makes a tree of this depth below dir.
func deepen(t *testing.T, dir string, depth int) {
	t.Helper()
	at, err := syscall.Open(dir, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range depth {
		if err := syscall.Mkdirat(at, "d", 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := syscall.Openat(at, "d", syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
		syscall.Close(at)
		if err != nil {
			t.Fatal(err)
		}
		at = next
	}
	syscall.Close(at)
}

func TestTreesDeeperThanAnyNameAreListedAndRemoved(t *testing.T) {
	fsys, dir := box(t)
	const depth = 3000
	deepen(t, dir, depth)
	n := 0
	for _, err := range fsys.List(t.Context(), dir, depth+1) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != depth {
		t.Errorf("listed %d of %d", n, depth)
	}
	if err := fsys.Remove(t.Context(), dir+"/d", true); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(dir + "/d"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("it is still there:", err)
	}
}

func TestRemoveAllGoesOnWhileOthersWork(t *testing.T) {
	fsys, dir := box(t)
	root := dir + "/tree"
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				_ = os.MkdirAll(fmt.Sprintf("%s/%d/x/y", root, i), 0o755)
				_ = os.WriteFile(fmt.Sprintf("%s/%d/x/f", root, i), nil, 0o600)
				_ = os.Symlink("/", fmt.Sprintf("%s/%d/l", root, i))
				_ = os.Rename(fmt.Sprintf("%s/%d/x", root, i), fmt.Sprintf("%s/%d/z", root, i))
			}
		})
	}
	for range 50 {
		if err := fsys.Remove(t.Context(), root, true); err != nil && paddock.KindOf(err) != paddock.Conflict {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
	if err := fsys.Remove(t.Context(), root, true); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(root); !errors.Is(err, fs.ErrNotExist) {
		t.Error("it is still there:", err)
	}
}
