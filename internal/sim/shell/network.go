package shell

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// network reports whether a redirection's file is /dev/tcp/HOST/PORT or
// /dev/udp/HOST/PORT.
func network(name string) (kind, address string, ok bool) {
	rest, ok := strings.CutPrefix(name, "/dev/")
	if !ok {
		return "", "", false
	}
	part := strings.Split(rest, "/")
	if len(part) != 3 || part[0] != "tcp" && part[0] != "udp" || part[1] == "" || part[2] == "" {
		return "", "", false
	}
	return part[0], net.JoinHostPort(part[1], part[2]), true
}

// dial opens a connection for a redirection, by the way to the network that
// the computer has: it may have none.
func (s *Shell) dial(name, kind, address string) (*kernel.Desc, error) {
	fail := func(err error) (*kernel.Desc, error) {
		why := networkError(err)
		s.Warn("connect: %s", why)
		return nil, errors.New(name + ": " + why)
	}
	if s.t.K.Dial == nil {
		return fail(linux.ENETUNREACH)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var conn net.Conn
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err = s.t.K.Dial(ctx, kind, address)
	}()
	ended := false
	defer func() {
		if ended {
			return
		}
		cancel()
		<-done
		if conn != nil {
			_ = conn.Close() // nobody will use it
		}
	}()
	for s.t.AwaitIO(done) != nil {
		if sig := s.t.Caught(); sig != 0 {
			s.caughtLater(sig)
		}
	}
	ended = true
	if err != nil {
		return fail(err)
	}
	return kernel.NewDesc(&connection{conn: conn}, "socket"), nil
}

// networkError gives the system's words for why there is no connection.
func networkError(err error) string {
	e, known := linux.FromHost(err)
	var dns *net.DNSError
	switch {
	case known:
		return vfs.Message(e)
	case errors.As(err, &dns):
		return "Name or service not known"
	}
	return vfs.Message(linux.ENETUNREACH)
}

// A connection is a file whose other end is elsewhere.
type connection struct {
	conn net.Conn

	mu      sync.Mutex
	reading *transfer // guarded by mu: that a signal interrupted, or nil
}

// A transfer is a read or write that runs beside the task, which waits for it.
type transfer struct {
	done chan struct{}
	b    []byte // what was read, when done is closed
	n    int
	err  error
}

func start(do func(t *transfer)) *transfer {
	t := &transfer{done: make(chan struct{})}
	go func() {
		defer close(t.done)
		do(t)
	}()
	return t
}

func (c *connection) Read(t *kernel.Task, p []byte) (int, error) {
	c.mu.Lock()
	r := c.reading
	if r == nil {
		size := min(len(p), 32<<10)
		r = start(func(r *transfer) {
			r.b = make([]byte, size)
			r.n, r.err = c.conn.Read(r.b)
			r.b = r.b[:r.n]
		})
		c.reading = r
	}
	c.mu.Unlock()
	if err := t.AwaitIO(r.done); err != nil {
		return 0, err // the next read takes what it brings
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := copy(p, r.b)
	if r.b = r.b[n:]; len(r.b) == 0 {
		c.reading = nil
	}
	if n > 0 || len(p) == 0 {
		return n, nil
	}
	return 0, r.err
}

func (c *connection) Write(t *kernel.Task, p []byte) (int, error) {
	own := append([]byte(nil), p...)
	w := start(func(w *transfer) { w.n, w.err = c.conn.Write(own) })
	switch err := t.AwaitIO(w.done); {
	case err == linux.EINTR:
		_ = c.conn.Close() // half of it may be gone: there is no going on
		<-w.done
		return w.n, linux.EINTR
	case err != nil:
		return 0, err
	}
	if w.err != nil {
		return w.n, linux.EPIPE
	}
	return w.n, nil
}

func (c *connection) Info() (vfs.Info, error) {
	return vfs.Info{Mode: linux.S_IFSOCK | 0o777, Nlink: 1}, nil
}

// Close ends the connection and what still runs on it.
func (c *connection) Close() {
	_ = c.conn.Close() // nobody can be told
	c.mu.Lock()
	r := c.reading
	c.mu.Unlock()
	if r != nil {
		<-r.done
	}
}
