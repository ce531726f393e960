package guestclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock"
)

// A call is a stream of messages. It may outlive the context that opened it.
type call struct {
	g      *Guest
	ctx    context.Context
	cancel context.CancelCauseFunc

	turn sync.Mutex // held by an exchange over the guest's connection, also by one that nobody waits for

	// While it is being opened:
	opening context.Context    // the caller's, bounded
	open    context.CancelFunc // ends opening
	detach  func()             // of opening, and of the driver's pauses, from ctx
	late    func() bool        // whether opening has ended; stops what would end ctx with it
}

var (
	errClosed  = errors.New("closed by its user")
	errStalled = errors.New("the guest did not answer")
	errPaused  = errors.New("the sandbox was paused before it answered")
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
	stop := context.AfterFunc(c.opening, func() {
		if errors.Is(c.opening.Err(), context.DeadlineExceeded) && ctx.Err() == nil && g.paused() {
			c.cancel(errPaused)
			return
		}
		c.cancel(context.Cause(c.opening))
	})
	awake := context.AfterFunc(g.awake(), func() { c.cancel(errPaused) })
	c.late = func() bool { return !stop() }
	c.detach = func() {
		stop()
		awake()
	}
	return c
}

// opened says that the call is open now. It fails if the caller has given up.
func (c *call) opened() error {
	if c.late() {
		return c.fail(c.opening.Err())
	}
	c.detach()
	c.open()
	return nil
}

// fail ends a call that could not be opened, and says why.
func (c *call) fail(err error) error {
	if errors.Is(context.Cause(c.ctx), errPaused) {
		err = fmt.Errorf("%w: %w", errPaused, paddock.Conflict)
	} else {
		err = c.g.failure(c.opening, err)
	}
	c.detach()
	c.open()
	c.cancel(nil)
	return err
}

// looks is how often a call that waits for the guest asks whether the sandbox is paused, until its
// time is over.
const looks = 3

// watch ends the call if the guest does not answer for a time, or if the sandbox is paused for as
// long: after a pause by this process's driver at once. So no exchange lasts twice that time. Call
// stop when the guest has answered.
func (c *call) watch(limit time.Duration) (stop func()) {
	awake := context.AfterFunc(c.g.awake(), func() { c.cancel(errPaused) })
	var timer *time.Timer
	armed := make(chan struct{})
	silent, paused := 0, 0
	timer = time.AfterFunc(limit/looks, func() {
		<-armed
		if c.g.paused() {
			paused++
		} else {
			silent++
		}
		switch {
		case paused == looks:
			c.cancel(errPaused)
		case silent == looks:
			c.cancel(errStalled)
		default:
			timer.Reset(limit / looks)
		}
	})
	close(armed)
	return func() {
		timer.Stop()
		awake()
	}
}

// patiently does one exchange with the guest over a connection that ends with the call.
func (c *call) patiently(do func() error) error {
	defer c.watch(c.g.waits)()
	return do()
}

// exchange does one exchange with the guest over the connection of all calls. late, which may be nil,
// gets what comes after nobody waits for it any more.
func exchange[T any](c *call, do func() (T, error), late func(T)) (T, error) {
	defer c.watch(c.g.waits)()
	return within(c.ctx, func() (T, error) {
		c.turn.Lock()
		defer c.turn.Unlock()
		return do()
	}, late)
}

// first opens a stream and waits for its first message. If it fails, it ends the call and says why.
func first[M any](c *call, open func() (*connect.ServerStreamForClient[M], error)) (*connect.ServerStreamForClient[M], error) {
	stream, err := within(c.ctx, func() (*connect.ServerStreamForClient[M], error) {
		stream, err := open()
		if err == nil {
			_, err = next(stream)
		}
		return stream, err
	}, closed)
	if err == nil {
		return stream, nil
	}
	err = c.fail(err)
	if stream != nil {
		c.leave(func() { _ = stream.Close() })
	}
	return nil, err
}

// closed closes a stream whose context has ended, else Close would read what is left.
func closed[M any](stream *connect.ServerStreamForClient[M]) {
	if stream != nil {
		_ = stream.Close()
	}
}

// next waits for the next message of a stream. It returns io.EOF after the last one.
func next[M any](stream *connect.ServerStreamForClient[M]) (*M, error) {
	if !stream.Receive() {
		return nil, ended(stream.Err())
	}
	return stream.Msg(), nil
}

// leave ends the call, and closes its stream as soon as no exchange uses it. It does not wait for that.
func (c *call) leave(closing func()) {
	c.cancel(nil)
	go func() {
		c.turn.Lock()
		defer c.turn.Unlock()
		closing()
	}()
}

// within returns what do returns, or the error of ctx if that ends first. While a guest takes nothing,
// every call may wait for its turn to write to the connection, which no context ends. Then do
// goes on alone, until the guest takes more or the connection ends. What it returns then is given to late, which
// may be nil.
func within[T any](ctx context.Context, do func() (T, error), late func(T)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	done, left := make(chan answer), make(chan struct{})
	go func() {
		v, err := do()
		select {
		case done <- answer{v, err}:
		case <-left:
			if late != nil {
				late(v)
			}
		}
	}()
	select {
	case a := <-done:
		return a.v, a.err
	case <-ctx.Done():
	}
	close(left)
	var none T
	return none, ctx.Err()
}

// ask makes a call with one answer.
func ask[Q, A any](ctx context.Context, method func(context.Context, *connect.Request[Q]) (*connect.Response[A], error), q *Q) (*A, error) {
	res, err := within(ctx, func() (*connect.Response[A], error) { return method(ctx, connect.NewRequest(q)) }, nil)
	if err != nil {
		return nil, err
	}
	return res.Msg, nil
}

// askFor is ask for a call that ends if the guest does not answer for a time, or if the sandbox is paused.
func askFor[Q, A any](ctx context.Context, g *Guest, limit time.Duration, method func(context.Context, *connect.Request[Q]) (*connect.Response[A], error), q *Q) (*A, error) {
	c := g.call(ctx)
	defer c.cancel(nil)
	defer c.watch(limit)()
	m, err := ask(c.ctx, method, q)
	if err != nil {
		return nil, c.failure(err)
	}
	return m, nil
}

// failure says why an open call has ended.
func (c *call) failure(err error) error {
	switch cause := context.Cause(c.ctx); {
	case errors.Is(cause, errClosed):
		return fmt.Errorf("%w: %w", io.ErrClosedPipe, paddock.Canceled)
	case errors.Is(cause, errPaused):
		return fmt.Errorf("%w: %w", errPaused, paddock.Conflict)
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
