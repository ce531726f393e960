// Package imagetest has a source of images for tests of those that use one.
package imagetest

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/image/erofs"
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

// most bounds the images of tests.
const most = 4 << 30

// convert makes the file system of a directory.
func convert(name, dir string) error {
	pack := func() (io.ReadCloser, error) {
		r, w := io.Pipe()
		go func() { _ = w.CloseWithError(archive(w, dir)) }() // it ends with the reader
		return r, nil
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	_, err = erofs.Convert(context.Background(), f, []func() (io.ReadCloser, error){pack}, erofs.Bounds{Bytes: most, Names: 1 << 20})
	return errors.Join(err, f.Chmod(0o644), f.Close()) // a sandbox of root's reads it as nobody
}

// archive writes the files of a directory.
func archive(to io.Writer, dir string) error {
	w := tar.NewWriter(to)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		link := ""
		if info.Mode()&fs.ModeSymlink != 0 {
			if link, err = os.Readlink(name); err != nil {
				return err
			}
		}
		h, err := tar.FileInfoHeader(info, link)
		if err != nil {
			return err
		}
		if h.Name, err = filepath.Rel(dir, name); err != nil {
			return err
		}
		if err := w.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
			return err
		}
		f, err := root.Open(h.Name)
		if err != nil {
			return err
		}
		_, err = io.Copy(w, f)
		return errors.Join(err, f.Close())
	})
	return errors.Join(err, w.Close())
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
