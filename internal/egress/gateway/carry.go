package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/egress/inspect"
)

// Time for the guest's first bytes.
const (
	helloTime = 30 * time.Second // for the rest of a ClientHello
	lineTime  = 30 * time.Second // for the rest of a first line
)

// carry carries the connection until both sides have ended or it is cut, and closes both.
func (c *connection) carry(guest net.Conn) error {
	defer c.end()
	defer guest.Close()
	stop := context.AfterFunc(c.ctx, func() {
		reset(guest)
		if up := c.upstream(); up != nil {
			reset(up)
		}
	})
	defer stop()
	if !c.spliced {
		return c.g.proxy.Serve(withConnection(c.ctx, c), guest, c.flow)
	}
	err := c.splice(inspect.NewPeekConn(guest))
	if errors.Is(err, errInspected) {
		return nil
	}
	e := c.event()
	_ = c.up.Close()
	var r *refusal
	switch cause := context.Cause(c.ctx); {
	case cause != nil && c.g.ctx.Err() == nil:
		e.Verdict, e.Reason = gatewayclient.VerdictDeny, cause.Error()
	case errors.As(err, &r):
		e.Verdict, e.Reason, e.Hint, e.Rule = gatewayclient.VerdictDeny, r.Reason, r.Hint, r.Rule
	case paddock.KindOf(err) == paddock.Exhausted:
		e.Verdict, e.Reason = gatewayclient.VerdictDeny, err.Error()
	}
	c.g.teller.tell(e)
	return err
}

// errInspected reports that the inspecting proxy carried the connection, and has reported
// its outcome.
var errInspected = errors.New("the connection was inspected")

// splice examines the first bytes of the guest, while bytes of the destination pass, and
// then carries both directions.
func (c *connection) splice(guest *inspect.PeekConn) error {
	back := c.receive(guest)
	kind, err := c.kind(guest)
	switch {
	case err != nil:
	case kind == inspect.TLS:
		err = c.checkTLS(guest)
	case kind == inspect.HTTP:
		if back.hold() {
			return c.inspect(guest)
		}
		err = c.refuse("HTTP is carried where the destination has not spoken before, and it had")
	}
	if err != nil {
		if !back.hold() {
			_ = c.up.Close()
			_ = guest.SetWriteDeadline(time.Unix(1, 0))
			<-back.done
		}
		return err
	}
	var take func(context.Context, int) error
	if c.meter != nil {
		take = c.meter.Sent
	}
	// An error in one direction ends the other.
	both := func(err error) error {
		if err != nil {
			reset(c.up)
			reset(guest.Conn)
		}
		return err
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		<-back.done
		_ = both(back.err)
	})
	err = both(c.g.buffers.pump(c.ctx, pipe{to: c.up, from: guest, count: &c.sent, take: take}))
	wg.Wait()
	if paddock.KindOf(back.err) == paddock.Exhausted {
		return back.err
	}
	return err
}

// kind waits for the guest's first bytes, without a limit. Bytes that may begin a request
// must continue, because its kind is unknown until its first line is complete.
func (c *connection) kind(guest *inspect.PeekConn) (inspect.Protocol, error) {
	for begun := false; ; begun = guest.Begun() {
		kind, err := guest.Protocol(lineTime)
		switch {
		case err == nil || paddock.KindOf(err) != paddock.Timeout || c.ctx.Err() != nil:
			return kind, err
		case begun:
			return kind, c.refuse("its first line does not end, so that nobody can tell whether it is a request")
		}
	}
}

// inspect passes the connection to the inspecting proxy, with the dialled connection.
func (c *connection) inspect(guest *inspect.PeekConn) error {
	if c.meter != nil {
		c.meter.giveBack() // each request counts instead
	}
	err := c.g.proxy.Serve(withConnection(c.ctx, c), guest, c.flow)
	if up := c.take(); up != nil {
		_ = up.Close() // nothing was sent on it
	}
	return errors.Join(err, errInspected)
}

// upstream returns the dialled connection, if it was not taken.
func (c *connection) upstream() net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.up
}

// take returns the dialled connection once.
func (c *connection) take() net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	up := c.up
	c.up = nil
	return up
}

// checkTLS checks that the guest's TLS names the host that it connected to. Otherwise it
// sends an alert and refuses the connection.
func (c *connection) checkTLS(guest *inspect.PeekConn) error {
	h, err := guest.ClientHello(helloTime)
	if err == nil {
		err = c.checkName(h)
	} else {
		err = c.refuse(fmt.Sprintf("its TLS cannot be read: %v", err))
	}
	if err != nil {
		_ = guest.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = guest.Write([]byte{21, 3, 3, 0, 2, 2, 112}) // a fatal alert: unrecognized_name
	}
	return err
}

func (c *connection) checkName(h inspect.ClientHello) error {
	_, raw := c.flow.Host.Addr()
	switch {
	case !raw && !h.Named:
		return c.refuse(fmt.Sprintf("its TLS names no server, but must name %s", c.flow.Host))
	case !raw && h.Host != c.flow.Host:
		return c.refuse(fmt.Sprintf("its TLS names %s, but the connection is to %s", h.Host, c.flow.Host))
	case !raw || !h.Named:
		return nil
	}
	// A connection to a listed address may name any server there, except one that a rule
	// denies or that needs inspection.
	v := c.g.now.Load().rules.Flow(decide.Flow{Host: h.Host, Port: c.flow.Port})
	switch {
	case !v.Allow && v.Rule >= 0:
		return &refusal{c.flow, v}
	case v.Look:
		return c.refuse(fmt.Sprintf("its TLS names %s, and connections to that name are inspected", h.Host))
	}
	return nil
}

func (c *connection) refuse(reason string) error {
	return &refusal{c.flow, decide.Verdict{Rule: c.verdict.Rule, Reason: reason}}
}

// A backward carries bytes from the destination to the guest. Until the first byte it can
// be stopped.
type backward struct {
	c      *connection
	first  chan struct{} // closed after the first byte, or by hold
	silent bool          // set before first is closed; nothing was received
	done   chan struct{}
	err    error // set before done is closed
}

// receive starts to carry bytes from the destination.
func (c *connection) receive(guest net.Conn) *backward {
	b := &backward{c: c, first: make(chan struct{}), done: make(chan struct{})}
	var take func(context.Context, int) error
	if c.meter != nil {
		take = c.meter.Received
	}
	go func() { // splice waits for done
		defer close(b.done)
		buf := c.g.buffers.get(false)
		n, err := c.up.Read(buf)
		b.silent = errors.Is(err, os.ErrDeadlineExceeded)
		close(b.first)
		if b.silent {
			c.g.buffers.put(buf)
			return
		}
		b.err = c.g.buffers.pump(c.ctx, pipe{to: guest, from: c.up, count: &c.came, take: take, buf: buf, n: n, err: err})
	}()
	return b
}

// hold stops it if the destination has sent nothing, not even its end, and reports whether
// it stopped.
func (b *backward) hold() bool {
	_ = b.c.up.SetReadDeadline(time.Unix(1, 0))
	<-b.first
	_ = b.c.up.SetReadDeadline(time.Time{})
	if b.silent {
		<-b.done
	}
	return b.silent
}

// reset ends a connection at once, so that the other side sees an error.
func reset(c net.Conn) {
	switch c := c.(type) {
	case interface{ Reset() }:
		c.Reset()
		return
	case interface{ SetLinger(int) error }:
		_ = c.SetLinger(0)
	}
	_ = c.Close()
}
