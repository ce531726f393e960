package guestclient

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
)

func (f files) Watch(ctx context.Context, name string, o paddock.WatchOptions) (paddock.Watcher, error) {
	if err := checkName("watch", name); err != nil {
		return nil, err
	}
	c := f.g.begin(ctx)
	stream, err := first(c, func() (*connect.ServerStreamForClient[guestpb.WatchResponse], error) {
		return f.g.rpc.Watch(c.ctx, connect.NewRequest(&guestpb.WatchRequest{Name: []byte(name), Recursive: o.Recursive}))
	})
	if err != nil {
		return nil, err
	}
	if len(stream.Msg().GetEvents()) != 0 {
		c.leave(func() { _ = stream.Close() })
		return nil, c.fail(nonsense("events before it watched"))
	}
	if err := c.opened(); err != nil {
		c.leave(func() { _ = stream.Close() })
		return nil, err
	}
	depth := 1
	if o.Recursive {
		depth = maxListName
	}
	v := &view{c: c, stream: stream, name: name, dir: tidy(name), depth: depth, events: make(chan paddock.Event), done: make(chan struct{})}
	go v.run()
	w := &watcher{v}
	runtime.AddCleanup(w, func(c *call) { c.cancel(errClosed) }, c)
	return w, nil
}

// A watcher is what the caller holds. One that is forgotten without Close ends
// with the garbage collection, or with the connection.
type watcher struct{ v *view }

// Next takes from the guest only as fast as it is called: what is not taken
// waits inside the sandbox, up to a bound.
func (w *watcher) Next(ctx context.Context) (paddock.Event, error) {
	defer runtime.KeepAlive(w)
	select {
	case e := <-w.v.events:
		return e, nil
	default:
	}
	select {
	case e := <-w.v.events:
		return e, nil
	case <-w.v.done:
		return paddock.Event{}, w.v.err
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return paddock.Event{}, fmt.Errorf("watch %q: %w: %w", w.v.name, paddock.Timeout, ctx.Err())
		}
		return paddock.Event{}, fmt.Errorf("watch %q: %w: %w", w.v.name, paddock.Canceled, ctx.Err())
	}
}

func (w *watcher) Close() error {
	w.v.c.cancel(errClosed)
	<-w.v.done
	return nil
}

// A view receives events for a watcher.
type view struct {
	c      *call
	stream *connect.ServerStreamForClient[guestpb.WatchResponse]
	name   string
	dir    string
	depth  int
	events chan paddock.Event
	done   chan struct{} // closed when run has ended
	err    error         // why; written before done is closed
}

func (v *view) run() {
	defer close(v.done)
	err := v.receive()
	v.err = fmt.Errorf("watch %q: %w", v.name, err)
	v.c.leave(func() { _ = v.stream.Close() })
}

func (v *view) receive() error {
	for {
		m, err := within(v.c.ctx, func() (*guestpb.WatchResponse, error) {
			v.c.turn.Lock()
			defer v.c.turn.Unlock()
			return next(v.stream)
		}, nil)
		if err != nil {
			return v.c.failure(err)
		}
		batch := m.GetEvents()
		if len(batch) > maxBatch {
			return nonsense("too many events at once")
		}
		for _, m := range batch {
			e, err := v.event(m)
			if err != nil {
				return err
			}
			select {
			case v.events <- e:
			case <-v.c.ctx.Done():
				return v.c.failure(v.c.ctx.Err())
			}
		}
	}
}

// event checks what the guest says has happened.
func (v *view) event(m *guestpb.FileEvent) (paddock.Event, error) {
	var op paddock.EventOp
	switch m.GetOp() {
	case guestpb.FileOp_FILE_OP_CREATE:
		op = paddock.EventCreate
	case guestpb.FileOp_FILE_OP_WRITE:
		op = paddock.EventWrite
	case guestpb.FileOp_FILE_OP_REMOVE:
		op = paddock.EventRemove
	case guestpb.FileOp_FILE_OP_RENAME:
		op = paddock.EventRename
	case guestpb.FileOp_FILE_OP_CHMOD:
		op = paddock.EventChmod
	default:
		return paddock.Event{}, nonsense("an unknown event")
	}
	name := string(m.GetName())
	if name != v.dir && (len(name) > maxListName || hasNUL(name) || !below(v.dir, name, v.depth)) {
		return paddock.Event{}, nonsense("an event of another file")
	}
	return paddock.Event{Op: op, Name: name, Lost: m.GetLost()}, nil
}
