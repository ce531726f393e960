package envd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A wire is a listener in a bubble of synctest, whose connections are pipes.
type wire struct {
	coming chan net.Conn
	closed chan struct{}
}

func (w *wire) Accept() (net.Conn, error) {
	select {
	case c := <-w.coming:
		return c, nil
	case <-w.closed:
		return nil, net.ErrClosed
	}
}

func (w *wire) Close() error   { close(w.closed); return nil }
func (w *wire) Addr() net.Addr { return &net.TCPAddr{} }

// A sender sends a request, and reads its answer.
type sender struct {
	net.Conn
	answer chan string // all of it, once the connection is closed
}

// send begins a request.
func (w *wire) send(text string) *sender {
	here, there := net.Pipe()
	w.coming <- there
	s := &sender{here, make(chan string, 1)}
	go func() {
		data, _ := io.ReadAll(here)
		s.answer <- string(data)
	}()
	go s.more(text)
	synctest.Wait()
	return s
}

func (s *sender) more(text string) {
	_, _ = io.WriteString(s, text) // the server may read only a part
}

// told gives the status of the answer, or 0 while there is none.
func (s *sender) told(t *testing.T) int {
	t.Helper()
	synctest.Wait()
	select {
	case text := <-s.answer:
		res, err := http.ReadResponse(bufio.NewReader(strings.NewReader(text)), nil)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		res.Body.Close()
		return res.StatusCode
	default:
		return 0
	}
}

// begins serves a box on a wire.
func begins(t *testing.T, o Options) (*Box, *wire) {
	t.Helper()
	o.Sandbox = nothing{}
	b, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{make(chan net.Conn), make(chan struct{})}
	server := &http.Server{Handler: b}
	done := make(chan error)
	go func() { done <- server.Serve(w) }()
	t.Cleanup(func() {
		if err := errors.Join(b.Close(), server.Close()); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return b, w
}

func request(path, kind string, length int, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", path, kind, length, body)
}

func TestRequestsToComposeThatStopEarlyCountAndEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 5 << 20
		room := newNarrow(most)
		b, w := begins(t, Options{Room: room})
		long := `{"source_paths":["` + strings.Repeat("x", 3<<20)
		first := w.send(request("/files/compose", "application/json", maxCompose, long))
		if n := b.held.Load(); n < 3<<20 {
			t.Errorf("%d bytes are counted of a body that has not ended", n)
		}
		second := w.send(request("/files/compose", "application/json", maxCompose, long))
		time.Sleep(time.Second) // in which package http closes the connection
		if code := second.told(t); code != http.StatusTooManyRequests {
			t.Errorf("there is no room for the second: %d", code)
		}
		if code := first.told(t); code != 0 {
			t.Errorf("the first is answered before its time: %d", code)
		}
		time.Sleep(stall)
		if code := first.told(t); code != http.StatusRequestTimeout {
			t.Errorf("the first, after its time: %d", code)
		}
		if left := <-room.room; left != most || b.held.Load() != 0 {
			t.Errorf("%d and %d bytes are held of no request", most-left, b.held.Load())
		}
	})
}

func TestABodyThatStopsEarlyIsWaitedForSoLongAndNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, w := begins(t, Options{})
		for what, text := range map[string]string{
			"a message":                   request("/process.Process/List", "application/json", 100, `{"x`),
			"a stream's message":          request("/process.Process/Start", "application/connect+json", 100, "\x00\x00\x00\x00\x10{"),
			"what follows the message":    request("/process.Process/Start", "application/connect+json", 100, frame(0, start("true"))),
			"a message of several inputs": request("/process.Process/StreamInput", "application/connect+json", 100, frame(0, `{"keepalive":{}}`)+"\x00"),
		} {
			s := w.send(text)
			time.Sleep(stall - time.Second)
			if code := s.told(t); code != 0 {
				t.Errorf("%s: %d before its time", what, code)
			}
			time.Sleep(3 * time.Second)
			if code := s.told(t); code == 0 {
				t.Errorf("%s: no answer", what)
			}
		}
	})
}

func TestInputsMayComeAtAnyTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, w := begins(t, Options{})
		one := frame(0, `{"keepalive":{}}`)
		s := w.send(request("/process.Process/StreamInput", "application/connect+json", 3*len(one), one))
		for range 2 {
			time.Sleep(time.Hour)
			if code := s.told(t); code != 0 {
				t.Fatalf("%d before the next", code)
			}
			s.more(one)
		}
		time.Sleep(time.Second)
		if code := s.told(t); code == 0 {
			t.Error("no answer at the end")
		}
	})
}

// The answer to a form describes each of its files, with metadata.
func TestTheAnswerToAFormCountsWhileTheFormArrives(t *testing.T) {
	const most = uploadCost + 100<<10
	room := newNarrow(most)
	tr := newTrial(t, func(o *Options) { o.Room = room })
	form := func(files int) (int, string) {
		var body strings.Builder
		for n := range files {
			fmt.Fprintf(&body, "--x\r\nContent-Disposition: form-data; name=file; filename=f%d\r\n\r\ntext\r\n", n)
		}
		body.WriteString("--x--\r\n")
		code, answer, _ := tr.ask("POST", "/files", body.String(), "Content-Type", "multipart/form-data; boundary=x", "X-Metadata-A", strings.Repeat("<", 1000))
		return code, answer
	}
	if code, answer := form(3); code != 200 || len(answer) < 3*1000 {
		t.Errorf("a few: %d %.200s", code, answer)
	}
	if code, answer := form(20); code != http.StatusTooManyRequests {
		t.Errorf("many: %d %.200s", code, answer)
	}
	tr.web.Close() // waits for its requests
	if left := <-room.room; left != most {
		t.Errorf("%d bytes are held of no request", most-left)
	}
	room.room <- most
}
