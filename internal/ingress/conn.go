package ingress

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/paddock-sandbox/paddock"
)

// lines are the connections to the insides of sandboxes that are open, and the
// requests that use them.
type lines struct {
	mu     sync.Mutex
	closed bool                 // guarded by mu
	open   map[*line]struct{}   // guarded by mu
	users  map[*flight]struct{} // guarded by mu
}

// A line is one such connection.
type line struct {
	net.Conn
	l    *lines
	id   paddock.ID
	port int
}

// A flight is one such request.
type flight struct {
	id   paddock.ID
	port int
	end  context.CancelCauseFunc
}

var (
	errClosed = errors.New("the server ends")
	errCut    = errors.New("the port was closed to its callers")
)

// watch gives a context that ends when the port is cut.
func (l *lines) watch(ctx context.Context, id paddock.ID, port int) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	f := &flight{id, port, end}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		end(errClosed)
		return ctx, func() {}
	}
	if l.users == nil {
		l.users = map[*flight]struct{}{}
	}
	l.users[f] = struct{}{}
	return ctx, func() {
		l.mu.Lock()
		delete(l.users, f)
		l.mu.Unlock()
		end(context.Canceled)
	}
}

// keep takes what was dialled.
func (l *lines) keep(id paddock.ID, port int, c net.Conn) (*line, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed
	}
	if l.open == nil {
		l.open = map[*line]struct{}{}
	}
	it := &line{Conn: c, l: l, id: id, port: port}
	l.open[it] = struct{}{}
	return it, nil
}

// cut ends requests to a port, or to all where port is 0, and closes connections.
func (l *lines) cut(id paddock.ID, port int) {
	l.end(errCut, func(have paddock.ID, number int) bool { return have == id && (port == 0 || number == port) })
}

func (l *lines) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.end(errClosed, func(paddock.ID, int) bool { return true })
}

func (l *lines) end(why error, which func(paddock.ID, int) bool) {
	l.mu.Lock()
	var list []*line
	for it := range l.open {
		if which(it.id, it.port) {
			list = append(list, it)
		}
	}
	for f := range l.users {
		if which(f.id, f.port) {
			f.end(why) // a request that only lost its connection might be made again
		}
	}
	l.mu.Unlock()
	for _, it := range list {
		_ = it.Close() // whoever uses it hears of it
	}
}

func (c *line) Close() error {
	c.l.mu.Lock()
	delete(c.l.open, c)
	c.l.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite is for what was upgraded.
func (c *line) CloseWrite() error { return closeWrite(c.Conn) }

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// An exchange is a connection of HTTP/1, on which each request has one answer. Package http
// would take what follows an answer for the answer to the next request.
type exchange struct {
	net.Conn
	change *sync.Cond

	mu      sync.Mutex
	reading bool // guarded by mu: everything before was taken, and http waits for more
	serving bool // guarded by mu: a request waits for its answer, or for the rest of it
	closed  bool // guarded by mu
}

func newExchange(c net.Conn) *exchange {
	e := &exchange{Conn: c}
	e.change = sync.NewCond(&e.mu)
	return e
}

// begin waits until nothing is left of the last answer, or until http has found that something
// is left and has closed the connection. Then http makes a request without a body again on another
// connection; one with a body fails.
func (e *exchange) begin(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.change.Broadcast()
	})
	defer stop()
	e.mu.Lock()
	defer e.mu.Unlock()
	for !e.reading && !e.closed && ctx.Err() == nil {
		e.change.Wait()
	}
	e.serving = true
}

// end ends the request. The loop of http that reads answers calls it before it reads on.
func (e *exchange) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.serving = false
}

// Read takes what comes while no request is carried for the end: it is nobody's answer.
func (e *exchange) Read(p []byte) (int, error) {
	e.mu.Lock()
	e.reading = true
	e.change.Broadcast()
	e.mu.Unlock()
	n, err := e.Conn.Read(p)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reading = false
	if n > 0 && !e.serving {
		return 0, io.EOF
	}
	return n, err
}

func (e *exchange) Close() error {
	e.mu.Lock()
	e.closed = true
	e.change.Broadcast()
	e.mu.Unlock()
	return e.Conn.Close()
}

func (e *exchange) CloseWrite() error { return closeWrite(e.Conn) }
