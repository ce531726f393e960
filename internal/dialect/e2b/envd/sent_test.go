package envd

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b/envd/envdpb"
)

// wide is a sandbox whose directories hold some files with long names.
type wide struct{ nothing }

func (wide) FS() paddock.FS { return wideFiles{} }

type wideFiles struct{ noFiles }

func (wideFiles) Stat(_ context.Context, name string) (paddock.FileInfo, error) {
	return paddock.FileInfo{Name: name, Mode: fs.ModeDir}, nil
}

func (wideFiles) List(_ context.Context, root string, _ int) iter.Seq2[paddock.FileInfo, error] {
	return func(yield func(paddock.FileInfo, error) bool) {
		for i := range 100 {
			if !yield(paddock.FileInfo{Name: fmt.Sprint(root, "/", strings.Repeat("d", 1000), i)}, nil) {
				return
			}
		}
	}
}

// An unread answer is not read until it may be.
type unread struct {
	*httptest.ResponseRecorder
	begun chan struct{} // receives an element when a write begins
	read  chan struct{} // closed when the client reads
}

func newUnread() *unread {
	return &unread{httptest.NewRecorder(), make(chan struct{}, 100), make(chan struct{})}
}

func (u *unread) Write(p []byte) (int, error) {
	u.begun <- struct{}{}
	<-u.read
	return u.ResponseRecorder.Write(p)
}

// list lists a directory, and closes ended when it was answered.
func list(t *testing.T, b *Box, w http.ResponseWriter) (ended chan struct{}) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/filesystem.Filesystem/ListDir", strings.NewReader(`{"path":"/tmp"}`))
	r.Header.Set("Content-Type", "application/json")
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		b.ServeHTTP(w, r)
	}()
	return ended
}

// A full room counts, and has no room beyond a bound.
type fullRoom struct{ used, most int64 }

func (f *fullRoom) Take(n int64) bool {
	if f.used+n > f.most {
		return false
	}
	f.used += n
	return true
}

func (f *fullRoom) Give(n int64) { f.used -= n }

func TestASecondListWaitsUntilTheFirstWasSent(t *testing.T) {
	room := &fullRoom{most: 1 << 20}
	b, err := New(Options{Sandbox: wide{}, Answers: room})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	first, second := newUnread(), newUnread()
	close(second.read)
	firstEnded := list(t, b, first)
	<-first.begun
	if len(b.listing) != 1 {
		t.Error("the list that is not sent has given its place back")
	}
	if room.used < 100_000 || b.answers.Load() != room.used {
		t.Errorf("%d and %d bytes are counted of the list", room.used, b.answers.Load())
	}
	secondEnded := list(t, b, second)
	close(first.read)
	<-firstEnded
	<-secondEnded
	for _, w := range []*unread{first, second} {
		if w.Code != http.StatusOK || w.Body.Len() < 100_000 {
			t.Errorf("answered %d with %d bytes", w.Code, w.Body.Len())
		}
	}
	if room.used != 0 || b.answers.Load() != 0 || len(b.listing) != 0 {
		t.Errorf("%d and %d bytes are counted of no answer", room.used, b.answers.Load())
	}
}

func TestAnswersOfABoxHoldBoundedMemory(t *testing.T) {
	room := &fullRoom{most: 50_000}
	b, err := New(Options{Sandbox: wide{}, Answers: room, Env: map[string]string{"A": strings.Repeat("x", 60_000)}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	w := httptest.NewRecorder()
	<-list(t, b, w)
	if w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), "resource_exhausted") {
		t.Errorf("a list: %d %s", w.Code, w.Body)
	}
	w = httptest.NewRecorder()
	b.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/envs", http.NoBody))
	if w.Code == http.StatusOK {
		t.Errorf("variables: %d", w.Code)
	}
	if room.used != 0 || b.answers.Load() != 0 || len(b.listing) != 0 {
		t.Errorf("%d and %d bytes are counted of no answer", room.used, b.answers.Load())
	}
}

func TestEventsThatCannotBeSentAreKept(t *testing.T) {
	room := &fullRoom{most: 50_000}
	b, err := New(Options{Sandbox: wide{}, Answers: room})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	f := &fetched{all: &b.watchers, cancel: func() {}, some: make(chan struct{}, 1)}
	id, err := b.watchers.add(f)
	if err != nil {
		t.Fatal(err)
	}
	b.watchers.mu.Lock()
	for range 100 {
		b.watchers.keep(f, &envdpb.FilesystemEvent{Name: strings.Repeat("x", 1000)})
	}
	b.watchers.mu.Unlock()
	fetch := func() *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/filesystem.Filesystem/GetWatcherEvents", strings.NewReader(`{"watcherId":"`+id+`"}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		b.ServeHTTP(w, r)
		return w
	}
	if w := fetch(); w.Code != http.StatusTooManyRequests || len(f.events) != 100 {
		t.Errorf("%d, and %d events are left", w.Code, len(f.events))
	}
	room.most = 1 << 20
	if w := fetch(); w.Code != http.StatusOK || strings.Count(w.Body.String(), "name") != 100 || len(f.events) != 0 {
		t.Errorf("%d with %d bytes, and %d events are left", w.Code, w.Body.Len(), len(f.events))
	}
	if room.used != 0 {
		t.Errorf("%d bytes are counted of no answer", room.used)
	}
}

// packet is a sandbox with one file, of a size that is its own.
type packet struct{ nothing }

func (packet) FS() paddock.FS { return packetFiles{} }

type packetFiles struct{ noFiles }

const packetSize = 100_000

func (packetFiles) Stat(_ context.Context, name string) (paddock.FileInfo, error) {
	return paddock.FileInfo{Name: name, Mode: 0o644, Size: packetSize}, nil
}

func (packetFiles) Open(_ context.Context, _ string, o paddock.OpenOptions) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(strings.Repeat("x", packetSize-int(o.Offset)))), nil
}

func TestFilesThatAreNotReadTakeCountedBuffers(t *testing.T) {
	lent, full := 0, false
	room := &fullRoom{most: packCost}
	b, err := New(Options{Sandbox: packet{}, Answers: room, Buffer: func() ([]byte, func(), error) {
		if full {
			return nil, nil, paddock.Exhausted
		}
		lent++
		return make([]byte, 1000), func() { lent-- }, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	get := func(w http.ResponseWriter, accept string) {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/files?path=/tmp/x", http.NoBody)
		if accept != "" {
			r.Header.Set("Accept-Encoding", accept)
		}
		b.ServeHTTP(w, r)
	}
	for _, accept := range []string{"", "gzip"} {
		w, ended := newUnread(), make(chan struct{})
		go func() {
			defer close(ended)
			get(w, accept)
		}()
		<-w.begun
		if held := accept != ""; lent != 1 || held != (room.used == packCost) {
			t.Errorf("Accept-Encoding: %q: %d buffers, and %d bytes are counted", accept, lent, room.used)
		}
		if accept != "" { // there is no room for another writer of gzip
			plain := httptest.NewRecorder()
			if get(plain, "gzip"); plain.Code != http.StatusOK || plain.Body.Len() != packetSize || plain.Header().Get("Content-Encoding") != "" {
				t.Errorf("%d %v with %d bytes", plain.Code, plain.Header(), plain.Body.Len())
			}
			refused := httptest.NewRecorder()
			if get(refused, "gzip, identity;q=0"); refused.Code != http.StatusTooManyRequests {
				t.Errorf("%d %v", refused.Code, refused.Header())
			}
		}
		close(w.read)
		<-ended
		if w.Code != http.StatusOK || lent != 0 || room.used != 0 {
			t.Errorf("%d; %d buffers and %d bytes are counted of no file", w.Code, lent, room.used)
		}
	}
	full = true
	w := httptest.NewRecorder()
	if get(w, ""); w.Code != http.StatusTooManyRequests {
		t.Errorf("without a buffer: %d", w.Code)
	}
}
