package serve

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/mcpserver"
	"github.com/paddock-sandbox/paddock/internal/server"
)

// toolPath is where tools of the Model Context Protocol are offered.
const toolPath = "/mcp"

// longCall bounds the body of a request to it: a file that is written, and its escapes.
const longCall = 8 << 20

// callTime bounds how long the body may take to arrive.
const callTime = 2 * time.Minute

// A toolEndpoint offers sandboxes as tools. What a tool does is a request to the server's own API, with the key of whoever
// called it, over a connection in memory. So a key can do by tools what it can do by the API, and nothing else.
type toolEndpoint struct {
	handler http.Handler
	web     *http.Server
	inside  *insideListener
	served  sync.WaitGroup
}

// offer makes the service answer at /mcp. Pages of the web reach it only from one of the origins, which are addresses of
// the server itself.
func (s *service) offer(origins ...string) error {
	tools, err := mcpserver.New(mcpserver.Options{Version: cli.Build().Version, Offer: mcpserver.Offer{AnyHost: true}})
	if err != nil {
		return err
	}
	e := &toolEndpoint{web: s.api.HTTP(), inside: newInsideListener()}
	e.served.Go(func() { _ = e.web.Serve(e.inside) }) // always http.ErrServerClosed
	answer := tools.Handler(func(r *http.Request) (mcpserver.Driver, func(), error) {
		d, err := client.New(client.Options{
			Address: "http://paddock", Key: bearer(r),
			Dial: func(ctx context.Context) (net.Conn, error) { return e.inside.dial(ctx, r.RemoteAddr) },
		})
		if err != nil {
			return nil, nil, err
		}
		return d, func() { _ = d.Close() }, nil // it has no ephemeral sandboxes, so nothing can fail
	})
	e.handler = s.api.Supervise("mcp", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if origin := r.Header.Get("Origin"); origin != "" && !slices.Contains(origins, origin) {
			http.Error(w, "pages of the web are not answered here", http.StatusForbidden)
			return
		}
		who, err := s.caller(r)
		if err != nil {
			refuseTools(w, r, err)
			return
		}
		place, err := s.api.Enter(r.Context(), who.Name)
		if err != nil {
			refuseTools(w, r, err)
			return
		}
		defer place.Leave()
		if r, err = wholeCall(w, r, place); err != nil {
			refuseTools(w, r, err)
			return
		}
		answer.ServeHTTP(w, r)
	}))
	s.mcp = e
	return nil
}

// wholeCall reads the body of a request, which is memory of its caller. Then the connection may be quiet for as long as the
// call takes.
func wholeCall(w http.ResponseWriter, r *http.Request, place *server.Place) (*http.Request, error) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(callTime)) // HTTP/2 sets its own
	data, err := io.ReadAll(place.Body(http.MaxBytesReader(w, r.Body, longCall)))
	if err == nil {
		err = place.Hold(2 * int64(len(data))) // read by the library, and decoded
	}
	var long *http.MaxBytesError
	if errors.As(err, &long) {
		err = fmt.Errorf("the request has more than %d bytes: %w", longCall, paddock.Exhausted)
	}
	if err != nil {
		return r, err
	}
	_ = control.SetReadDeadline(time.Time{})
	r.Body = io.NopCloser(bytes.NewReader(data))
	return r, nil
}

// bearer gives the key that a request shows.
func bearer(r *http.Request) string {
	text, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return text
}

func refuseTools(w http.ResponseWriter, r *http.Request, err error) {
	code := paddock.KindOf(err).Translate().HTTP
	if errors.Is(err, paddock.Denied) && r.Header.Get("Authorization") == "" {
		code = http.StatusUnauthorized
		w.Header().Set("WWW-Authenticate", `Bearer realm="paddock"`)
	}
	http.Error(w, err.Error(), code)
}

// close ends the connections inside, whose requests the API has cut.
func (e *toolEndpoint) close() {
	_ = e.web.Close() // it closes the listener, which cannot fail
	e.served.Wait()
}

// An insideListener has connections of this process.
type insideListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newInsideListener() *insideListener {
	return &insideListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *insideListener) dial(ctx context.Context, from string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- insideConn{theirs, insideAddr(cmp.Or(from, "inside"))}:
		return ours, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("connect: %w", ctx.Err())
	case <-l.done:
		return nil, fmt.Errorf("connect: the server ends: %w", paddock.Unavailable)
	}
}

func (l *insideListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *insideListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *insideListener) Addr() net.Addr { return insideAddr("inside") }

// An insideConn says whom its request is from: the client of the tools.
type insideConn struct {
	net.Conn
	from insideAddr
}

func (c insideConn) RemoteAddr() net.Addr { return c.from }

type insideAddr string

func (insideAddr) Network() string  { return "inside" }
func (a insideAddr) String() string { return string(a) }
