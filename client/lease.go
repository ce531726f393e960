package client

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/paddock-sandbox/paddock"
)

// A lease shows the server that this client lives: a stream that stays open.
type lease struct {
	token string
	ready chan struct{} // closed when held for the first time, or err is set
	err   error         // before ready is closed
}

// hold makes the lease, once.
func (d *Driver) hold(ctx context.Context) error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return fmt.Errorf("the driver is closed: %w", paddock.Unavailable)
	}
	l := d.lease
	if l == nil {
		l = &lease{token: token(), ready: make(chan struct{})}
		d.lease = l
		d.wg.Go(func() { d.keep(l) })
	}
	d.mu.Unlock()
	select {
	case <-l.ready:
		return l.err
	case <-ctx.Done():
		return d.lost(ctx, ctx.Err())
	}
}

// keep holds the lease until Close, with one connection after the other.
func (d *Driver) keep(l *lease) {
	first := true
	tries := d.tries()
	for d.ctx.Err() == nil {
		res, err := d.stream(d.ctx, "/v1/leases/"+l.token, nil)
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
			_ = res.Body.Close() // it has ended
		} else if !broken(err) || !tries.again(d.ctx) {
			if first {
				l.err = err
				d.mu.Lock()
				d.lease = nil // the next one tries again
				d.mu.Unlock()
				close(l.ready)
			}
			return
		}
	}
}

// letGo has the server remove what is ephemeral, and waits for it.
func (d *Driver) letGo(l *lease) error {
	if l == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := d.ask(ctx, call{method: "DELETE", path: "/v1/leases/" + l.token, repeat: true}); err != nil {
		return fmt.Errorf("close: remove what is ephemeral: %w", err)
	}
	return nil
}

// stream begins a request whose answer goes on.
func (d *Driver) stream(ctx context.Context, path string, query map[string][]string) (*http.Response, error) {
	req, err := d.request(ctx, "GET", path, query)
	if err != nil {
		return nil, err
	}
	return d.do(req)
}

// drain reads what is left of an answer, so that its connection can be used again.
func drain(r io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, r, 4<<10)
	_ = r.Close() // it was only read
}
