package gateway

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/time/rate"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/egress/netstack"
)

// datagramMax is larger than any datagram.
const datagramMax = 65535

// datagrams carries a flow of datagrams until it is idle for too long or cut.
func (c *connection) datagrams(guest netstack.Conn) {
	defer c.end()
	both := func() {
		_ = guest.Close()
		_ = c.up.Close()
	}
	defer both()
	defer context.AfterFunc(c.ctx, both)()
	var sent, received *rate.Limiter
	if c.meter != nil {
		sent, received = c.meter.sent, c.meter.received
	}
	var wg sync.WaitGroup
	var spent error
	wg.Go(func() {
		spent = c.packets(guest, c.up, received, &c.came)
		both()
	})
	err := c.packets(c.up, guest, sent, &c.sent)
	both()
	wg.Wait()
	e := c.event()
	if cause := context.Cause(c.ctx); cause != nil && c.g.ctx.Err() == nil {
		e.Verdict, e.Reason = gatewayclient.VerdictDeny, cause.Error()
	} else if err = errors.Join(err, spent); paddock.KindOf(err) == paddock.Exhausted {
		e.Verdict, e.Reason = gatewayclient.VerdictDeny, err.Error()
	}
	c.g.teller.tell(e)
}

// packets carries one direction. It returns an error if a limit ended it.
func (c *connection) packets(to, from net.Conn, l *rate.Limiter, count *atomic.Int64) error {
	buf := make([]byte, datagramMax)
	for {
		n, err := from.Read(buf)
		if err != nil {
			if c.ctx.Err() == nil && errors.Is(err, syscall.ECONNREFUSED) {
				continue // unreachable for one datagram, perhaps not for the next
			}
			return nil
		}
		if c.meter != nil {
			if err := c.meter.allowed(l, n); errors.Is(err, errTooFast) {
				continue // dropped, as on a slow line
			} else if err != nil {
				return err
			}
		}
		if _, err := to.Write(buf[:n]); err == nil {
			count.Add(int64(n))
		}
	}
}
