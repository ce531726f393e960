package parent

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/snapshot"
)

// keepOne writes a snapshot of one file.
func keepOne(t *testing.T, d *Driver, id paddock.SnapshotID) {
	t.Helper()
	s, err := d.store(0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	data := func(yield func(snapshot.Extent, error) bool) { yield(snapshot.Extent{Bytes: []byte(id)}, nil) }
	var files iter.Seq2[snapshot.Entry, error] = func(yield func(snapshot.Entry, error) bool) {
		yield(snapshot.Entry{Path: "file", Kind: snapshot.File, Mode: 0o600, Size: int64(len(id)), Data: data}, nil)
	}
	if err := s.Write(t.Context(), snapshot.Meta{ID: id}, files); err != nil {
		t.Fatal(err)
	}
}

// blobs counts the files in which contents are kept.
func blobs(t *testing.T, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "blob"), func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// collecting holds the lock of one that collects in another process.
func collecting(t *testing.T, dir string) (over func()) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "collect"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	over = sync.OnceFunc(func() { f.Close() })
	t.Cleanup(over)
	return over
}

func TestWhoRemovesASnapshotMayGoAndItsBytesDoAllTheSame(t *testing.T) {
	dir := t.TempDir()
	d, err := New(Options{Snapshots: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	keepOne(t, d, "snap-one")
	over := collecting(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.RemoveSnapshot(ctx, "snap-one"); !errors.Is(err, paddock.Canceled) {
		t.Errorf("a removal that is given up: %v", err)
	}
	if n := blobs(t, dir); n != 1 {
		t.Fatalf("%d blobs, while another one collects", n)
	}
	over()
	d.free.wg.Wait()
	if n := blobs(t, dir); n != 0 {
		t.Errorf("%d blobs of what was removed stay", n)
	}
	keepOne(t, d, "snap-two")
	if err := d.RemoveSnapshot(t.Context(), "snap-two"); err != nil || blobs(t, dir) != 0 {
		t.Errorf("%v, %d blobs", err, blobs(t, dir))
	}
}

func TestADriverClosesWhileAnotherOneCollects(t *testing.T) {
	dir := t.TempDir()
	d, err := New(Options{Snapshots: dir})
	if err != nil {
		t.Fatal(err)
	}
	keepOne(t, d, "snap-one")
	collecting(t, dir)
	removed := make(chan error)
	go func() { removed <- d.RemoveSnapshot(context.WithoutCancel(t.Context()), "snap-one") }()
	for {
		d.free.mu.Lock()
		running := d.free.running
		d.free.mu.Unlock()
		if running {
			break
		}
		select {
		case err := <-removed:
			t.Fatalf("it does not wait: %v", err)
		default:
			runtime.Gosched()
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := <-removed; !errors.Is(err, paddock.Unavailable) {
		t.Errorf("meanwhile: %v", err)
	}
	if err := d.RemoveSnapshot(t.Context(), "snap-one"); !errors.Is(err, paddock.Unavailable) {
		t.Errorf("after that: %v", err)
	}
}

func TestOneRoundIsForAllThatAskDuringAnother(t *testing.T) {
	begun, end := make(chan struct{}, 1), make(chan struct{})
	var rounds atomic.Int32
	f := newFreeing(func(context.Context) error {
		rounds.Add(1)
		begun <- struct{}{}
		<-end
		return nil
	})
	defer f.close()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range 10 {
		if err := f.ask(gone); !errors.Is(err, paddock.Canceled) {
			t.Error(err)
		}
		if i == 0 {
			<-begun
		}
	}
	close(end)
	f.wg.Wait()
	if n := rounds.Load(); n != 2 {
		t.Errorf("%d rounds", n)
	}
}
