package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A stuck sandbox has files and a process that block forever. It reports each blocked call.
type stuck struct {
	thing
	began chan struct{}
}

func newStuck() *stuck { return &stuck{thing: thing{id: "a"}, began: make(chan struct{}, 100)} }

func (s *stuck) FS() paddock.FS { return stuckFiles{s: s} }

type stuckFiles struct {
	paddock.FS
	s *stuck
}

func (f stuckFiles) Create(context.Context, string, paddock.CreateOptions) (io.WriteCloser, error) {
	f.s.began <- struct{}{}
	return discard{}, nil
}

func (f stuckFiles) Open(context.Context, string, paddock.OpenOptions) (io.ReadCloser, error) {
	f.s.began <- struct{}{}
	return io.NopCloser(zeros{}), nil
}

func (s *stuck) Attach(context.Context, paddock.PID, paddock.Output) (paddock.Process, error) {
	return &deaf{s: s, released: make(chan struct{})}, nil
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// A deaf process never reads its input.
type deaf struct {
	paddock.Process
	s        *stuck
	once     sync.Once
	released chan struct{}
}

func (d *deaf) ID() paddock.PID       { return 1 }
func (d *deaf) Input() io.WriteCloser { return d }
func (d *deaf) Close() error          { return nil }
func (d *deaf) Release()              { d.once.Do(func() { close(d.released) }) }

func (d *deaf) Write([]byte) (int, error) {
	d.s.began <- struct{}{}
	<-d.released
	return 0, paddock.Canceled
}

// say starts a request by sending only this text.
func (tr *trial) say(text string) net.Conn {
	tr.t.Helper()
	conn, err := net.Dial("tcp", tr.web.Listener.Addr().String())
	if err != nil {
		tr.t.Fatal(err)
	}
	tr.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, strings.ReplaceAll(text, "\n", "\r\n")); err != nil {
		tr.t.Fatal(err)
	}
	return conn
}

func TestAClientThatDoesNothingDoesNotKeepTheServerFromClosing(t *testing.T) {
	const head = "\nHost: x\nAuthorization: Bearer good\n"
	for name, text := range map[string]string{
		"a file that is not sent":        "PUT /v1/sandboxes/a/files?path=/x HTTP/1.1" + head + "Content-Length: 10\n\n",
		"a file that is not read":        "GET /v1/sandboxes/a/files?path=/x HTTP/1.1" + head + "\n",
		"input that is not taken":        "POST /v1/sandboxes/a/processes/1/input HTTP/1.1" + head + "Content-Length: 1\n\nx",
		"input of a writer with a name":  "POST /v1/sandboxes/a/processes/1/input?writer=0123456789abcdef HTTP/1.1" + head + "Content-Length: 1\n\nx",
		"a body that is not sent, ended": "POST /v1/sandboxes/a/processes HTTP/1.1" + head + "Content-Length: 10\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			sb := newStuck()
			tr := newTrial(t, func(c *Caller) { c.Driver = &shelf{sb: sb} })
			tr.say(text)
			if !strings.Contains(name, "body") {
				select {
				case <-sb.began:
				case <-time.After(time.Minute):
					t.Fatal("the request did not begin")
				}
			}
			closed := make(chan error, 1)
			go func() { closed <- tr.s.Close() }()
			select {
			case err := <-closed:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(time.Minute):
				t.Fatal("the server does not close")
			}
		})
	}
}

func TestAConnectionWhoseBodyNeverComesIsClosed(t *testing.T) {
	for _, text := range []string{
		"POST /v1/sandboxes HTTP/1.1\nHost: x\nContent-Length: 10\n\n",
		"POST /v1/sandboxes HTTP/1.1\nHost: x\nAuthorization: Bearer good\nContent-Length: 10\n\n",
		"POST /v1/sandboxes HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n\n",
		"GET /openapi.yaml HTTP/1.1\nHost: x\nContent-Length: 10\n\n",
		"GET /nowhere HTTP/1.1\nHost: x\nContent-Length: 10\n\n",
	} {
		tr := newTrial(t, func(c *Caller) { c.Driver = empty{} })
		tr.s.bodyTime = 50 * time.Millisecond
		conn := tr.say(text)
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAConnectionIsUsedAgainAfterABody(t *testing.T) {
	tr := newTrial(t)
	conn := tr.say("")
	in := bufio.NewReader(conn)
	for i := range 3 {
		body := fmt.Sprintf(`{"id":"box-%d"}`, i)
		_, err := fmt.Fprintf(conn, "POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusCreated {
			t.Fatalf("%s, %v", res.Status, err)
		}
		_ = res.Body.Close()
	}
}
