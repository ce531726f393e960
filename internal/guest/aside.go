package guest

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
)

// asideTime bounds how long a connection for a transfer that goes past the calls waits
// for its call: the host has made that when it makes the connection.
const asideTime = 30 * time.Second

// asides are connections by the numbers that the host gave them. Both halves come by
// themselves: the connection, and the call that is about it.
type asides struct {
	mu   sync.Mutex
	open map[asideNumber]*aside // guarded by mu: those of which one half is here
}

type asideNumber [guestpb.AsideNumber]byte

// An aside is one.
type aside struct {
	conn chan net.Conn // takes it, once
	done chan struct{} // closed when the call has ended
	call bool          // guarded by asides.mu: the call is here
}

// numbered reads a number. None is nil.
func numbered(b []byte) (*asideNumber, error) {
	if len(b) == 0 {
		return nil, nil
	}
	if len(b) != guestpb.AsideNumber {
		return nil, fmt.Errorf("a connection's number of %d bytes: %w", len(b), paddock.Invalid)
	}
	n := asideNumber(b)
	return &n, nil
}

// half gives what is known by a number, and makes it where nothing is.
func (a *asides) half(n asideNumber) *aside {
	if a.open == nil {
		a.open = map[asideNumber]*aside{}
	}
	one := a.open[n]
	if one == nil {
		one = &aside{conn: make(chan net.Conn, 1), done: make(chan struct{})}
		a.open[n] = one
	}
	return one
}

// forget ends what is known by a number, if it is still that.
func (a *asides) forget(n asideNumber, one *aside) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open[n] == one {
		delete(a.open, n)
	}
}

// claim waits for the connection of a call, and calls do with it. It is closed then,
// and when ctx ends. The host may take its time: it makes the connection when whoever
// reads there has got that far.
func (a *asides) claim(ctx context.Context, n asideNumber, do func(net.Conn) error) error {
	a.mu.Lock()
	one := a.half(n)
	if one.call {
		a.mu.Unlock()
		return fmt.Errorf("two calls have a connection of one number: %w", paddock.Invalid)
	}
	one.call = true
	a.mu.Unlock()
	defer close(one.done)
	defer a.forget(n, one)
	select {
	case conn := <-one.conn:
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { conn.Close() })()
		return do(conn)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// serve gives a connection, of which the first byte was read, to its call, and waits
// for the end of that.
func (a *asides) serve(ctx context.Context, conn net.Conn) error {
	defer conn.Close()
	var n asideNumber
	if _, err := io.ReadFull(conn, n[:]); err != nil {
		return err
	}
	a.mu.Lock()
	one := a.half(n)
	a.mu.Unlock()
	select {
	case one.conn <- conn:
	default:
		return fmt.Errorf("two connections have one number: %w", paddock.Invalid)
	}
	late := time.NewTimer(asideTime)
	defer late.Stop()
	for {
		select {
		case <-one.done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-late.C:
			a.mu.Lock()
			claimed := one.call
			if !claimed && a.open[n] == one {
				delete(a.open, n)
			}
			a.mu.Unlock()
			if !claimed {
				return fmt.Errorf("a connection for a file of which no call is: %w", paddock.Timeout)
			}
		}
	}
}

// receive writes to a file what comes over a connection.
func (s *Server) receive(ctx context.Context, conn net.Conn, file *os.File, name string) (written int64, err error) {
	buf := make([]byte, guestpb.AsideBlock)
	for {
		n, err := guestpb.ReadBlock(conn, buf)
		if err != nil {
			return written, fmt.Errorf("what is to be written: %w: %w", err, paddock.Unavailable)
		}
		if n == 0 {
			return written, nil
		}
		err = s.turns.do(ctx, func() (err error) { n, err = file.Write(buf[:n]); return err })
		written += int64(n)
		if err != nil {
			return written, failed("write", name, err)
		}
	}
}

// send sends the rest of a file over a connection.
func (c *content) send(ctx context.Context, t turns, conn net.Conn) error {
	buf := make([]byte, guestpb.AsideBlock)
	for {
		var n int
		err := t.do(ctx, func() (err error) { n, err = c.read(buf); return err })
		if err != nil {
			return err
		}
		if err := guestpb.WriteBlock(conn, buf[:n]); err != nil {
			return fmt.Errorf("what is read of %s: %w: %w", c.name, err, paddock.Unavailable)
		}
		if n == 0 {
			return nil
		}
	}
}
