package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image/store"
)

// A sandbox can make a layout in its workspace, of which each file may be a FIFO that nobody writes to.
func TestALoadWaitsForNoFIFO(t *testing.T) {
	sum := strings.Repeat("0", 64)
	index := `{"manifests":[{"digest":"sha256:` + sum + `","size":2}]}`
	for _, c := range []struct{ fifo, index string }{{"index.json", ""}, {"blobs/sha256/" + sum, index}} {
		dir := t.TempDir()
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "oci-layout"), []byte("{}"), 0o600), os.MkdirAll(filepath.Join(dir, "blobs", "sha256"), 0o700),
			os.WriteFile(filepath.Join(dir, "index.json"), []byte(c.index), 0o600)); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(filepath.Join(dir, c.fifo)) // only one of them is there
		if err := syscall.Mkfifo(filepath.Join(dir, c.fifo), 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, t.TempDir(), nil)
		list, err := s.Load(t.Context(), store.Load{Path: dir, Tag: "a:b"})
		if !errors.Is(err, paddock.Invalid) || len(list) > 0 {
			t.Errorf("%s: %v, %v", c.fifo, list, err)
		}
	}
}

// A sandbox exchanges a file for a FIFO while the directory is packed: by chance before or after it is looked at.
func TestATreeThatChangesWhileItIsPackedStallsNobody(t *testing.T) {
	dir := t.TempDir()
	name, other := filepath.Join(dir, "a"), filepath.Join(t.TempDir(), "a")
	if err := errors.Join(os.WriteFile(name, []byte("x"), 0o600), syscall.Mkfifo(other, 0o600)); err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan error)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if err := errors.Join(os.Rename(name, name+"b"), os.Rename(other, name), os.Rename(name, other), os.Rename(name+"b", name)); err != nil {
				done <- err
				return
			}
		}
	}()
	s := open(t, t.TempDir(), nil)
	for range 50 {
		_, err := s.Load(t.Context(), store.Load{Path: dir, Tag: "a:b"})
		if err != nil && !errors.Is(err, paddock.Conflict) && !errors.Is(err, paddock.Invalid) && !errors.Is(err, paddock.Denied) && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
