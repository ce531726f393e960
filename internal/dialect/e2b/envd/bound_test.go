package envd

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b/envd/envdpb"
)

func TestWatchersThatNobodyAsksHoldBoundedMemory(t *testing.T) {
	var w watchers
	w.init()
	list := make([]*fetched, 3)
	for i := range list {
		list[i] = &fetched{all: &w, cancel: func() {}, some: make(chan struct{}, 1)}
		if _, err := w.add(list[i]); err != nil {
			t.Fatal(err)
		}
	}
	w.mu.Lock()
	for i := range maxEvents {
		for _, f := range list[:2] {
			w.keep(f, &envdpb.FilesystemEvent{Name: fmt.Sprint(i, strings.Repeat("x", 4000))})
		}
	}
	w.keep(list[2], &envdpb.FilesystemEvent{Name: "seldom"})
	sum := 0
	for _, f := range list {
		sum += f.kept
	}
	if w.kept > maxKept || sum != w.kept {
		t.Errorf("%d bytes are kept, and counted as %d", sum, w.kept)
	}
	if len(list[2].events) != 1 {
		t.Error("who holds much took the room of who holds little")
	}
	if last := list[0].events[len(list[0].events)-1]; !strings.HasPrefix(last.GetName(), fmt.Sprint(maxEvents-1)) {
		t.Errorf("the newest is %.10q", last.GetName())
	}
	w.mu.Unlock()
	w.close()
	if w.kept != 0 {
		t.Errorf("%d bytes are kept of nobody", w.kept)
	}
}

func TestAWatcherThatNobodyAsksEnds(t *testing.T) {
	var w watchers
	w.init()
	w.idle = time.Millisecond
	ended := make(chan struct{})
	id, err := w.add(&fetched{all: &w, cancel: func() { close(ended) }, some: make(chan struct{}, 1)})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
	}
	if _, err := w.get(id); err == nil {
		t.Error("it is there")
	}
}

func TestMetadataHoldsBoundedMemory(t *testing.T) {
	var m metadata
	for i := range maxDescribed {
		m.set(fmt.Sprintf("/%d/%s", i, strings.Repeat("d", 4000)), map[string]string{"k": strings.Repeat("v", 4000)})
	}
	m.move("/1", "/2")
	sum := 0
	for name, about := range m.files {
		sum += costOf(name, about)
	}
	if sum > maxAbout || sum != m.size || sum < maxAbout/2 {
		t.Errorf("%d bytes are kept, and counted as %d", sum, m.size)
	}
}

// deep is a sandbox whose directories hold files with long names, without end.
type deep struct {
	nothing
	told *int
}

func (d deep) FS() paddock.FS { return deepFiles{told: d.told} }

type deepFiles struct {
	noFiles
	told *int
}

func (deepFiles) Stat(_ context.Context, name string) (paddock.FileInfo, error) {
	return paddock.FileInfo{Name: name, Mode: fs.ModeDir}, nil
}

func (d deepFiles) List(_ context.Context, root string, _ int) iter.Seq2[paddock.FileInfo, error] {
	long := strings.Repeat("d", 64<<10)
	return func(yield func(paddock.FileInfo, error) bool) {
		for ; yield(paddock.FileInfo{Name: root + "/" + long}, nil); *d.told++ {
		}
	}
}

func TestAListOfLongNamesEndsAtItsBound(t *testing.T) {
	told := 0
	b, err := New(Options{Sandbox: deep{told: &told}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	_, err = b.list(t.Context(), nil, &envdpb.ListDirRequest{Path: "/tmp"})
	if paddock.KindOf(err) != paddock.Exhausted || told > maxListed/(64<<10) {
		t.Errorf("%v after %d names", err, told)
	}
}

func TestRequestsOfABoxHoldBoundedMemory(t *testing.T) {
	tr := newTrial(t)
	tr.box.held.Add(maxHeld - 1000)
	if _, failure := tr.call("filesystem.Filesystem/Stat", `{"path":"/"}`); failure != "" {
		t.Error(failure)
	}
	long := strings.Repeat("x", 1001)
	if _, failure := tr.call("filesystem.Filesystem/Stat", `{"path":"`+long+`"}`); !strings.HasPrefix(failure, "resource_exhausted: ") {
		t.Errorf("plain: %q", failure)
	}
	if _, failure := tr.call("filesystem.Filesystem/Stat", zip(t, `{"path":"`+long+`"}`), "Content-Encoding", "gzip"); !strings.HasPrefix(failure, "resource_exhausted: ") {
		t.Errorf("packed: %q", failure)
	}
	s := tr.open("process.Process/Start", start("true", `"tag":"`+long+`"`))
	if _, _, _, failure := s.rest(); !strings.Contains(failure, "resource_exhausted") {
		t.Errorf("a stream: %q", failure)
	}
	upload := func() int {
		return tr.do("POST", "/files?path=a", strings.NewReader("a"), "Content-Type", "application/octet-stream").StatusCode
	}
	if code := upload(); code != http.StatusTooManyRequests {
		t.Errorf("an upload: %d", code)
	}
	if code, body, _ := tr.ask("POST", "/files/compose", `{"source_paths":["a"],"destination":"b"}`, "Content-Type", "application/json"); code != http.StatusTooManyRequests {
		t.Errorf("a composition: %d %s", code, body)
	}
	tr.box.held.Add(1000 - maxHeld)
	if code := upload(); code != http.StatusOK {
		t.Errorf("an upload when there is room: %d", code)
	}
	if _, failure := tr.call("filesystem.Filesystem/Stat", `{"path":"`+strings.Repeat("x", maxMessage)+`"}`); !strings.HasPrefix(failure, "resource_exhausted: ") {
		t.Errorf("a large one: %q", failure)
	}
	code, _, _ := tr.ask("POST", "/filesystem.Filesystem/Stat", zip(t, `{"path":"/"}`), "Content-Type", "application/json", "Content-Encoding", "gzip")
	if code != http.StatusOK {
		t.Errorf("a packed one: %d", code)
	}
	tr.web.Close() // waits for its requests
	if n := tr.box.held.Load(); n != 0 {
		t.Errorf("%d bytes are counted of no request", n)
	}
}
