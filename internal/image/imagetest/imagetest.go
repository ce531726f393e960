// Package imagetest has a source of images for tests of those that use one.
package imagetest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/image"
)

// A Source has the images that a test adds. It is safe for concurrent use.
type Source struct {
	lock string // the file whose lock holds trees

	mu    sync.Mutex
	trees map[string]image.Tree // guarded by mu; by digest
	files map[string]string     // guarded by mu; those of trees that are converted
}

// New returns a source without images.
func New(tb testing.TB) *Source {
	tb.Helper()
	lock := filepath.Join(tb.TempDir(), "lock")
	if err := os.WriteFile(lock, nil, 0o600); err != nil {
		tb.Fatal(err)
	}
	return &Source{lock: lock, trees: map[string]image.Tree{}, files: map[string]string{}}
}

// convert makes the file system of a directory.
func convert(path, dir string) error {
	out, err := exec.Command("mkfs.erofs", "--quiet", "-E", "noinline_data", path, dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// Add adds an image whose files are those of a directory, and returns a digest for it.
func (s *Source) Add(tb testing.TB, dir string, c image.Config) string {
	tb.Helper()
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		tb.Fatal(err)
	}
	var sum [32]byte
	_, _ = rand.Read(sum[:]) // never fails
	digest := "sha256:" + hex.EncodeToString(sum[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trees[digest] = image.Tree{Digest: digest, Form: image.FormDir, Path: real, Config: c}
	return digest
}

// Image is Harness.Image of package drivertest.
func (s *Source) Image(tb testing.TB, tree string, c drivertest.ImageConfig) string {
	tb.Helper()
	return s.Add(tb, tree, image.Config{Env: c.Env, Dir: c.Dir, User: c.User})
}

// Tree implements [image.Source].
func (s *Source) Tree(_ context.Context, digest string, form image.Form) (image.Tree, *os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tree, ok := s.trees[digest]
	if !ok {
		return image.Tree{}, nil, fmt.Errorf("no such image: %w", paddock.NotFound)
	}
	if tree.Form != form {
		if tree.Path, ok = s.files[digest]; !ok {
			path := filepath.Join(filepath.Dir(s.lock), digest[len("sha256:"):])
			if err := convert(path, s.trees[digest].Path); err != nil {
				return image.Tree{}, nil, err
			}
			tree.Path, s.files[digest] = path, path
		}
		tree.Form = form
	}
	hold, err := os.Open(s.lock)
	if err != nil {
		return image.Tree{}, nil, err
	}
	if err := syscall.Flock(int(hold.Fd()), syscall.LOCK_SH); err != nil {
		return image.Tree{}, nil, err
	}
	return tree, hold, nil
}
