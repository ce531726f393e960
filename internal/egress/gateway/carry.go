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
	"github.com/paddock-sandbox/paddock/internal/egress/inspect"
	"github.com/paddock-sandbox/paddock/internal/egress/owner"
)

// The patience with what a guest says first.
const (
	helloTime = 30 * time.Second // for the rest of a ClientHello
	lineTime  = 30 * time.Second // for the rest of a first line
)

// carry carries the connection until both sides are done or it is cut, and closes
// both.
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
		e.Verdict, e.Reason = owner.VerdictDeny, cause.Error()
	case errors.As(err, &r):
		e.Verdict, e.Reason, e.Hint, e.Rule = owner.VerdictDeny, r.Reason, r.Hint, r.Rule
	case paddock.KindOf(err) == paddock.Exhausted:
		e.Verdict, e.Reason = owner.VerdictDeny, err.Error()
	}
	c.g.teller.tell(e)
	return err
}

// errInspected says that a connection was carried by the inspecting proxy after
// all, which has told what there was to tell.
var errInspected = errors.New("it was looked into")

// splice looks at what the guest says first, while what the destination says
// passes, and then carries both directions.
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
	// One direction that fails ends the other one.
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

// kind waits for the guest's first bytes, as long as it takes. What has begun like
// a request has to go on: until its first line is whole nobody can tell what it is.
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

// inspect has the connection carried by who looks into it, with what was dialled.
func (c *connection) inspect(guest *inspect.PeekConn) error {
	if c.meter != nil {
		c.meter.giveBack() // each request is counted instead
	}
	err := c.g.proxy.Serve(withConnection(c.ctx, c), guest, c.flow)
	if up := c.take(); up != nil {
		_ = up.Close() // nothing was asked for
	}
	return errors.Join(err, errInspected)
}

// upstream gives what was dialled, if it was and nobody took it.
func (c *connection) upstream() net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.up
}

// take gives what was dialled, once.
func (c *connection) take() net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	up := c.up
	c.up = nil
	return up
}

// checkTLS has the guest ask for the name that it connected to, and refuses it
// with an alert otherwise.
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
		return c.refuse(fmt.Sprintf("its TLS names no server, and must name %s", c.flow.Host))
	case !raw && h.Host != c.flow.Host:
		return c.refuse(fmt.Sprintf("its TLS names %s, and it was made to %s", h.Host, c.flow.Host))
	case !raw || !h.Named:
		return nil
	}
	// A connection to an address that a rule lists may name any server there,
	// but none that a rule denies, or wants a look into.
	v := c.g.now.Load().rules.Flow(decide.Flow{Host: h.Host, Port: c.flow.Port})
	switch {
	case !v.Allow && v.Rule >= 0:
		return &refusal{c.flow, v}
	case v.Look:
		return c.refuse(fmt.Sprintf("its TLS names %s, which is looked into where it is connected to by name", h.Host))
	}
	return nil
}

func (c *connection) refuse(reason string) error {
	return &refusal{c.flow, decide.Verdict{Rule: c.verdict.Rule, Reason: reason}}
}

// A backward carries what the destination says to the guest. Until it has spoken
// it can be held.
type backward struct {
	c      *connection
	first  chan struct{} // closed when the destination has spoken, or hold was called
	silent bool          // set before first is closed: it had not
	done   chan struct{}
	err    error // set before done is closed
}

// receive begins to carry what the destination says.
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

// hold stops it where the destination has said nothing, not even that it is
// done, and tells whether that was so. It goes on otherwise.
func (b *backward) hold() bool {
	_ = b.c.up.SetReadDeadline(time.Unix(1, 0))
	<-b.first
	_ = b.c.up.SetReadDeadline(time.Time{})
	if b.silent {
		<-b.done
	}
	return b.silent
}

// reset ends a connection at once, and tells the other side that it was cut off.
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
