package client

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// A lease shows the server that this client lives. It is a stream that stays open as long
// as the client has an ephemeral sandbox.
type lease struct {
	token  string
	ctx    context.Context // ends with the lease
	cancel context.CancelFunc
	ready  chan struct{} // closed when the lease is held for the first time, or err is set
	err    error         // set before ready is closed

	making int                     // guarded by Driver.mu; creations in progress
	boxes  map[paddock.ID]struct{} // guarded by Driver.mu; the sandboxes of the lease
}

// hold returns the lease for one creation, and makes one if there is none. made ends the
// creation.
func (d *Driver) hold(ctx context.Context) (*lease, error) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil, fmt.Errorf("the driver is closed: %w", paddock.Unavailable)
	}
	l := d.lease
	if l == nil {
		l = &lease{token: token(), ready: make(chan struct{}), boxes: map[paddock.ID]struct{}{}}
		l.ctx, l.cancel = context.WithCancel(d.ctx)
		d.lease = l
		d.wg.Go(func() { d.keep(l) })
	}
	l.making++
	d.mu.Unlock()
	var err error
	select {
	case <-l.ready:
		err = l.err
	case <-ctx.Done():
		err = d.lost(ctx, ctx.Err())
	}
	if err != nil {
		d.made(l, "")
	}
	return l, err
}

// made ends a creation. id is empty if it failed.
func (d *Driver) made(l *lease, id paddock.ID) {
	d.mu.Lock()
	l.making--
	if id != "" {
		l.boxes[id] = struct{}{}
	}
	d.mu.Unlock()
	d.spare(l)
}

// removed notes that a sandbox was removed.
func (d *Driver) removed(id paddock.ID) {
	d.mu.Lock()
	l := d.lease
	if l != nil {
		if _, mine := l.boxes[id]; !mine {
			l = nil
		} else {
			delete(l.boxes, id)
		}
	}
	d.mu.Unlock()
	if l != nil {
		d.spare(l)
	}
}

// spare ends a lease that has no sandbox and no creation left.
func (d *Driver) spare(l *lease) {
	d.mu.Lock()
	needless := d.lease == l && l.making == 0 && len(l.boxes) == 0 && !d.closed
	if needless {
		d.lease = nil
	}
	d.mu.Unlock()
	if needless {
		l.cancel() // the server ends the lease some time after the end of its stream
	}
}

// keep holds a lease until its end, and reconnects when a connection breaks.
func (d *Driver) keep(l *lease) {
	defer l.cancel()
	first := true
	tries := d.tries()
	for {
		res, err := d.stream(l.ctx, "/v1/leases/"+l.token, nil)
		if err == nil {
			if first {
				first = false
				close(l.ready)
			}
			tries = d.tries()
			lines := bufio.NewReader(res.Body)
			for err == nil {
				_, err = lines.ReadSlice('\n')
			}
			_ = res.Body.Close() // the stream has ended
			if l.ctx.Err() == nil {
				continue
			}
		}
		if l.ctx.Err() == nil && broken(err) && tries.again(l.ctx) {
			continue
		}
		if first {
			l.err = err
			close(l.ready)
		}
		d.mu.Lock()
		if d.lease == l && !d.closed {
			d.lease = nil // the next creation makes a new one
		}
		d.mu.Unlock()
		return
	}
}

// letGo makes the server remove the ephemeral sandboxes, and waits for it.
func (d *Driver) letGo(l *lease) error {
	if l == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := d.ask(ctx, call{method: "DELETE", path: "/v1/leases/" + l.token, repeat: true}); err != nil {
		return fmt.Errorf("close: remove ephemeral sandboxes: %w", err)
	}
	return nil
}

// stream starts a request with a streaming answer.
func (d *Driver) stream(ctx context.Context, path string, query map[string][]string) (*http.Response, error) {
	req, err := d.request(ctx, "GET", path, query)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", streams)
	return d.do(req)
}

// streams are the types of streams that this package reads.
const streams = api.FrameType + ", " + api.LineType

// drain reads the rest of an answer, so that its connection can be reused.
func drain(r io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, r, 4<<10)
	_ = r.Close() // the body was only read
}
