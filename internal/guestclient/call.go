package guestclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A call is a stream of messages. It may outlive the context that opened it.
type call struct {
	g      *Guest
	ctx    context.Context
	cancel context.CancelCauseFunc

	// While it is being opened:
	opening context.Context    // the caller's, bounded
	open    context.CancelFunc // ends opening
	detach  func() bool        // of opening from ctx
}

var (
	errClosed  = errors.New("closed by its user")
	errStalled = errors.New("the guest did not answer")
)

// call makes a call that ends with ctx.
func (g *Guest) call(ctx context.Context) *call {
	c := &call{g: g}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	return c
}

// begin makes a call that outlives ctx, once it is opened.
func (g *Guest) begin(ctx context.Context) *call {
	c := g.call(context.WithoutCancel(ctx))
	c.opening, c.open = g.bound(ctx)
	c.detach = context.AfterFunc(c.opening, func() { c.cancel(context.Cause(c.opening)) })
	return c
}

// opened says that the call is open now. It fails if the caller has given up.
func (c *call) opened() error {
	if !c.detach() {
		return c.fail(c.opening.Err())
	}
	c.open()
	return nil
}

// fail ends a call that could not be opened, and says why.
func (c *call) fail(err error) error {
	err = c.g.failure(c.opening, err)
	c.detach()
	c.open()
	c.cancel(nil)
	return err
}

// patiently does one exchange with the guest, and ends the call if that takes
// too long. While the sandbox is paused it has all the time.
func (c *call) patiently(do func() error) error {
	var timer *time.Timer
	armed := make(chan struct{})
	timer = time.AfterFunc(answerTime, func() {
		<-armed
		if c.g.o.Paused != nil && c.g.o.Paused() {
			timer.Reset(answerTime)
			return
		}
		c.cancel(errStalled)
	})
	close(armed)
	defer timer.Stop()
	return do()
}

// failure says why an open call has ended.
func (c *call) failure(err error) error {
	switch cause := context.Cause(c.ctx); {
	case errors.Is(cause, errClosed):
		return fmt.Errorf("%w: %w", io.ErrClosedPipe, paddock.Canceled)
	case errors.Is(cause, errStalled):
		c.g.wire.giveUp()
		return fmt.Errorf("%w: %w", errStalled, paddock.Timeout)
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return c.g.failure(c.ctx, err)
}

// ended makes the end of a stream an error.
func ended(err error) error {
	if err == nil {
		return io.EOF
	}
	return err
}
