package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/paddock-sandbox/paddock"
)

// hasty sets short timeouts for slow clients.
func hasty(h *http.Server) {
	h.ReadHeaderTimeout = 200 * time.Millisecond
	h.HTTP2.SendPingTimeout, h.HTTP2.PingTimeout = 200*time.Millisecond, 200*time.Millisecond
}

func dialTCP(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return c
}

// cut waits until the server has closed a connection, and ignores what it sends before.
func cut(t *testing.T, c net.Conn) {
	t.Helper()
	_, err := io.Copy(io.Discard, c)
	var slow net.Error
	if errors.As(err, &slow) && slow.Timeout() {
		t.Error("the connection is still there")
	}
}

func TestAClientThatDawdlesIsCut(t *testing.T) {
	address, _ := servedOn(t, Connections{}, hasty)
	for name, begin := range map[string]func(t *testing.T, c net.Conn){
		"without a word": func(*testing.T, net.Conn) {},
		"in the middle of a head": func(t *testing.T, c net.Conn) {
			t.Helper()
			write(t, c, "GET / HTTP/1.1\r\nHost: x\r\nX-A: ")
		},
		"in the middle of the preface of HTTP/2": func(t *testing.T, c net.Conn) {
			t.Helper()
			write(t, c, http2.ClientPreface[:10])
		},
		"in HTTP/2 in the middle of a head": func(t *testing.T, c net.Conn) {
			t.Helper()
			f := framer(t, c)
			if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: head(t, "/v1/info"), EndHeaders: false}); err != nil {
				t.Fatal(err)
			}
		},
		"in HTTP/2 without an answer to pings": func(t *testing.T, c net.Conn) {
			t.Helper()
			framer(t, c)
		},
		"in the middle of a frame of HTTP/2": func(t *testing.T, c net.Conn) {
			t.Helper()
			framer(t, c)
			write(t, c, "\x00\x10\x00\x01")
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := dialTCP(t, address)
			begin(t, c)
			cut(t, c)
		})
	}
}

func write(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// framer starts HTTP/2 on a connection.
func framer(t *testing.T, c net.Conn) *http2.Framer {
	t.Helper()
	write(t, c, http2.ClientPreface)
	f := http2.NewFramer(c, c)
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return f
}

// head encodes a request with an unknown key.
func head(t *testing.T, path string, more ...hpack.HeaderField) []byte {
	t.Helper()
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for _, field := range append([]hpack.HeaderField{
		{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "http"}, {Name: ":authority", Value: "x"}, {Name: ":path", Value: path},
	}, more...) {
		if err := e.WriteField(field); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// Each of these attackers has only one connection. Package http bounds the use of HTTP/2.
// This test checks, for each new version of Go, that other clients are served meanwhile and
// that the flood ends.
func TestAFloodOfHTTP2KeepsNobodyElseOut(t *testing.T) {
	floods := map[string]func(t *testing.T, f *http2.Framer, id uint32) error{
		"streams that are reset at once": func(t *testing.T, f *http2.Framer, id uint32) error {
			t.Helper()
			err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: head(t, "/v1/sandboxes", hpack.HeaderField{Name: "authorization", Value: "flood"}), EndHeaders: true, EndStream: true})
			return errors.Join(err, f.WriteRSTStream(id, http2.ErrCodeCancel))
		},
		"settings": func(_ *testing.T, f *http2.Framer, _ uint32) error {
			return f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1})
		},
		"pings": func(_ *testing.T, f *http2.Framer, id uint32) error {
			var data [8]byte
			binary.BigEndian.PutUint32(data[:], id)
			return f.WritePing(false, data)
		},
		"empty data": func(t *testing.T, f *http2.Framer, id uint32) error {
			t.Helper()
			if id == 1 {
				return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: head(t, "/v1/info"), EndHeaders: true})
			}
			return f.WriteData(1, false, nil)
		},
		"continuation without end": func(t *testing.T, f *http2.Framer, id uint32) error {
			t.Helper()
			if id == 1 {
				return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: head(t, "/")})
			}
			return f.WriteContinuation(1, false, head(t, "/", hpack.HeaderField{Name: "x-a", Value: strings.Repeat("a", 8<<10)}))
		},
		"streams that are never read": func(t *testing.T, f *http2.Framer, id uint32) error {
			t.Helper()
			if id == 1 {
				if err := f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
					return err
				}
			}
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: head(t, "/openapi.yaml"), EndHeaders: true, EndStream: true})
		},
	}
	for name, more := range floods {
		t.Run(name, func(t *testing.T) {
			address, _ := servedOn(t, Connections{}, nil)
			c := dialTCP(t, address)
			f := framer(t, c)
			before := inUse()
			stop := make(chan struct{})
			var wg sync.WaitGroup
			wg.Go(func() { // nothing that the server sends is read
				for id := uint32(1); id < 200_001; id += 2 {
					select {
					case <-stop:
						return
					default:
					}
					if err := more(t, f, id); err != nil {
						return // the connection was cut, as it should be
					}
				}
			})
			for range 20 {
				answered(t, address)
			}
			if grown := inUse() - before; grown > 128<<20 {
				t.Errorf("one connection has the server hold %d bytes", grown)
			}
			close(stop)
			c.Close()
			wg.Wait()
			answered(t, address)
		})
	}
}

// A jammed driver blocks one caller's creations until the test lets them continue.
type jammed struct {
	paddock.Driver
	mu   sync.Mutex
	in   int           // guarded by mu
	most int           // guarded by mu
	go_  chan struct{} // closed when all may continue
	came chan struct{}
}

func (d *jammed) Create(ctx context.Context, _ paddock.Spec) (paddock.Sandbox, error) {
	d.mu.Lock()
	d.in++
	d.most = max(d.most, d.in)
	d.mu.Unlock()
	d.came <- struct{}{}
	select {
	case <-d.go_:
	case <-ctx.Done():
	}
	d.mu.Lock()
	d.in--
	d.mu.Unlock()
	return nil, fmt.Errorf("no room: %w", paddock.Exhausted)
}

func TestATenantThatFloodsIsRefusedAndNobodyElse(t *testing.T) {
	const most = 16
	flooded := &jammed{go_: make(chan struct{}), came: make(chan struct{}, 1000)}
	quiet := &jammed{go_: make(chan struct{}), came: make(chan struct{}, 1000)}
	close(quiet.go_)
	s, err := New(Options{Streams: most, Caller: func(r *http.Request) (Caller, error) {
		if r.Header.Get("Authorization") == "flood" {
			return Caller{Name: "flood", Driver: flooded}, nil
		}
		return Caller{Name: "quiet", Driver: quiet}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	create := func(who string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/sandboxes", strings.NewReader("{}"))
		r.Header.Set("Authorization", who)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Code
	}
	var wg sync.WaitGroup
	for range most {
		wg.Go(func() { create("flood") })
	}
	for range most {
		<-flooded.came
	}
	for range 10 * most {
		if code := create("flood"); code != http.StatusTooManyRequests {
			t.Fatalf("more of the flood: %d", code)
		}
		if code := create("quiet"); code != http.StatusTooManyRequests || len(quiet.came) == 0 {
			t.Fatalf("another's driver was not asked: %d", code)
		}
		<-quiet.came
	}
	close(flooded.go_)
	wg.Wait()
	flooded.mu.Lock()
	defer flooded.mu.Unlock()
	if flooded.most != most {
		t.Errorf("%d at once, want %d", flooded.most, most)
	}
}
