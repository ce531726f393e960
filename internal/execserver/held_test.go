package execserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"testing"
)

// serverFor is a server that writes to out.
func serverFor(out io.Writer) *server {
	b := &box{files: &tree{files: map[string]string{"/work/a": "b"}}}
	return &server{
		Options: Options{Sandbox: b}, out: out, fs: b.files, cancel: func() {}, greeted: true,
		busy: make(chan struct{}, maxBusy), whole: make(chan struct{}, maxWhole),
		processes: map[string]*process{}, handles: map[string]string{},
	}
}

func processOf(s *server) *process {
	p := &process{id: "p", server: s, input: true, changed: make(chan struct{})}
	s.processes[p.id] = p
	return p
}

// The box chooses how large the pieces of output are. A piece of one byte costs the host far more than a byte.
func TestOutputInSmallPiecesIsBounded(t *testing.T) {
	const pieces = 20_000
	p := processOf(serverFor(io.Discard))
	for i := range pieces {
		if _, err := (stream{p, "stdout"}).Write([]byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	// A chunk costs 48 bytes, its place in JSON 50, its byte an allocation.
	if most := maxKept / 100; len(p.chunks) > most {
		t.Errorf("%d pieces are held, more than %d", len(p.chunks), most)
	}
	got, _ := p.since(readParams{})
	last := got.Chunks[len(got.Chunks)-1]
	if len(got.Chunks) < 1000 || last.Seq != pieces || last.Chunk[0] != byte((pieces-1)&0xff) || got.NextSeq != pieces+1 {
		t.Errorf("of the newest %d pieces are given, the last is %v, the next %d", len(got.Chunks), last, got.NextSeq)
	}
	text, err := json.Marshal(got)
	if err != nil || len(text) > 2*maxKept {
		t.Errorf("an answer of %d bytes, %v", len(text), err)
	}
}

// What is dropped is let go, also where the list that held it lives on.
func TestDroppedOutputIsLetGo(t *testing.T) {
	p := processOf(serverFor(io.Discard))
	all := make([]chunk, 64)
	p.chunks = all[:0]
	for range all {
		if _, err := (stream{p, "stdout"}).Write(make([]byte, 64<<10)); err != nil {
			t.Fatal(err)
		}
	}
	held := 0
	for _, c := range all {
		held += len(c.Chunk)
	}
	if held == 0 || held > maxKept {
		t.Errorf("%d bytes are held, %d are to be kept at most", held, maxKept)
	}
}

// Input that a process does not take is bounded, whatever its pieces are.
func TestInputInSmallPiecesIsBounded(t *testing.T) {
	for _, piece := range []string{"", "x"} {
		s := serverFor(io.Discard)
		p := processOf(s) // it has not started, so it takes nothing
		var last error
		for range 50_000 {
			if _, last = s.write(writeParams{"p", []byte(piece)}); last != nil {
				break
			}
		}
		if len(p.queue) > maxPending/100 || (last == nil) != (piece == "") {
			t.Errorf("%q: %d pieces wait, the last answer is %v", piece, len(p.queue), last)
		}
	}
}

type onWrite func([]byte)

func (f onWrite) Write(b []byte) (int, error) { f(b); return len(b), nil }

// A file has its place among those that are held whole until the client has it.
func TestFileHasItsPlaceUntilItIsSent(t *testing.T) {
	var s *server
	places, sent := -1, ""
	s = serverFor(onWrite(func(b []byte) { places, sent = len(s.whole), string(b) }))
	s.take(context.Background(), []byte(`{"id":1,"method":"fs/readFile","params":{"path":"file:///work/a"}}`))
	s.work.Wait()
	if want := `{"id":1,"result":{"dataBase64":"Yg=="}}` + "\n"; sent != want || places != 1 || len(s.whole) != 0 {
		t.Errorf("%s is sent, with %d places taken, and %d afterwards", sent, places, len(s.whole))
	}
	s.fs.(*tree).files["/work/empty"] = ""
	s.take(context.Background(), []byte(`{"id":3,"method":"fs/readFile","params":{"path":"file:///work/empty"}}`))
	s.work.Wait()
	if want := `{"id":3,"result":{"dataBase64":""}}` + "\n"; sent != want {
		t.Errorf("an empty file is %s", sent)
	}
	s.take(context.Background(), []byte(`{"id":2,"method":"fs/readFile","params":{"path":"file:///none"}}`))
	s.work.Wait()
	if len(s.whole) != 0 {
		t.Errorf("a file that is not there keeps %d places", len(s.whole))
	}
}

type encoded func() error

func (f encoded) MarshalJSON() ([]byte, error) { return []byte("1"), f() }

// Answers that wait for the client are not held as text.
func TestAnswersAreEncodedOneAtATime(t *testing.T) {
	var out bytes.Buffer
	s := serverFor(&out)
	s.send(encoded(func() error {
		if s.writing.TryLock() {
			s.writing.Unlock()
			return fmt.Errorf("another answer may be encoded at the same time")
		}
		return nil
	}))
	if err := s.failure(); err != nil || out.String() != "1\n" {
		t.Errorf("%q is sent, %v", out.String(), err)
	}
}
