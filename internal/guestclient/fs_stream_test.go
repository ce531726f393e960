//go:build linux

package guestclient_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func TestTheContextBoundsOnlyTheOpening(t *testing.T) {
	fsys, dir := box(t)
	ctx, cancel := context.WithCancel(t.Context())
	data := noise(4 << 20)
	w, err := fsys.Create(ctx, dir+"/f", paddock.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	r, err := fsys.Open(ctx, dir+"/f", paddock.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	r.Close()
	_, err = fsys.Open(ctx, dir+"/f", paddock.OpenOptions{})
	wantKind(t, err, paddock.Canceled)
	_, err = fsys.Create(ctx, dir+"/f", paddock.CreateOptions{})
	wantKind(t, err, paddock.Canceled)
}

func TestClosingAReaderEndsAReadThatWaits(t *testing.T) {
	fsys, _ := box(t)
	r, err := fsys.Open(t.Context(), "/dev/zero", paddock.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := io.Copy(io.Discard, r) // without end
		wantKind(t, err, paddock.Canceled)
	})
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if err := r.Close(); err != nil {
		t.Error("closing twice:", err)
	}
}

func TestForgottenFilesEnd(t *testing.T) {
	fsys, dir := box(t)
	put(t, fsys, dir+"/big", make([]byte, 8<<20), paddock.CreateOptions{})
	before := runtime.NumGoroutine()
	open := func() {
		for i := range 20 {
			w, err := fsys.Create(t.Context(), fmt.Sprintf("%s/%d", dir, i), paddock.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			if _, err := fsys.Open(t.Context(), dir+"/big", paddock.OpenOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := fsys.Watch(t.Context(), dir, paddock.WatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	open()
	eventually(t, func() bool {
		runtime.GC()
		return runtime.NumGoroutine() <= before+5
	})
}

// eventually waits for what others do, which nothing tells.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("it does not come to pass")
		}
	}
}

func TestManyFilesAtOnce(t *testing.T) {
	fsys, dir := box(t)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			name := fmt.Sprintf("%s/%d/%d", dir, i%5, i)
			data := noise(100000 + i)
			w, err := fsys.Create(t.Context(), name, paddock.CreateOptions{Parents: true})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := w.Write(data); err != nil {
				t.Error(err)
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			r, err := fsys.Open(t.Context(), name, paddock.OpenOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			got, err := io.ReadAll(r)
			r.Close()
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("%s: %d bytes, %v", name, len(got), err)
			}
		})
	}
	wg.Wait()
}

// pattern is a file of blocks that tell where they stand.
type pattern struct {
	at, size int64
	block    [64 << 10]byte
}

func (p *pattern) Read(b []byte) (int, error) {
	if p.at == p.size {
		return 0, io.EOF
	}
	in := p.at % int64(len(p.block))
	if in == 0 {
		binary.BigEndian.PutUint64(p.block[:], uint64(p.at))
	}
	n := copy(b, p.block[in:min(int64(len(p.block)), in+p.size-p.at)])
	p.at += int64(n)
	return n, nil
}

func TestAGigabyteNeedsNoMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("short: a gigabyte takes seconds")
	}
	fsys, dir := box(t)
	const size = 1 << 30
	sent := sha256.New()
	w, err := fsys.Create(t.Context(), dir+"/f", paddock.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	if _, err := io.Copy(w, io.TeeReader(&pattern{size: size}, sent)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := fsys.Open(t.Context(), dir+"/f", paddock.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := sha256.New()
	if n, err := io.Copy(got, r); err != nil || n != size {
		t.Fatal(n, err)
	}
	r.Close()
	runtime.ReadMemStats(&after)
	if !bytes.Equal(got.Sum(nil), sent.Sum(nil)) {
		t.Error("other bytes came back")
	}
	// What the heap took from the system is its largest size so far.
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 128<<20 {
		t.Errorf("the heap has grown by %d MB", grown>>20)
	}
}

func BenchmarkFileIn(b *testing.B) {
	fsys, dir := box(b)
	data := noise(64 << 20)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		put(b, fsys, dir+"/f", data, paddock.CreateOptions{})
	}
}

func BenchmarkFileOut(b *testing.B) {
	fsys, dir := box(b)
	data := noise(64 << 20)
	put(b, fsys, dir+"/f", data, paddock.CreateOptions{})
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		r, err := fsys.Open(b.Context(), dir+"/f", paddock.OpenOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			b.Fatal(err)
		}
		r.Close()
	}
}

func BenchmarkStat(b *testing.B) {
	fsys, dir := box(b)
	for b.Loop() {
		if _, err := fsys.Stat(b.Context(), dir); err != nil {
			b.Fatal(err)
		}
	}
}
