package server

import (
	"context"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// flushAfter is the number of lines that may be buffered before a flush.
const flushAfter = 64

// tell sends the events of a watcher until one side ends.
func (q *request) tell(out lines, w paddock.Watcher) error {
	events := make(chan api.Line)
	ctx, cancel := context.WithCancel(q.Context())
	defer cancel()
	stop := context.AfterFunc(q.s.ctx, cancel)
	defer stop()
	ended := make(chan error, 1)
	done := make(chan struct{})
	go func() { // ends with ctx; its end is awaited below
		defer close(done)
		for {
			e, err := w.Next(ctx)
			if err != nil {
				ended <- err
				return
			}
			change := api.Event{Op: e.Op, Name: api.Bytes(e.Name), Lost: e.Lost}
			select {
			case events <- api.Line{Change: &change}:
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() {
		cancel()
		<-done
	}()
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	for {
		select {
		case line := <-events:
			if err := out.some(line, events); err != nil {
				return nil // the client has gone
			}
		case err := <-ended:
			if ctx.Err() != nil {
				return nil
			}
			return out.end(err)
		case <-alive.C:
			if err := out.send(api.Line{Alive: true}); err != nil {
				return nil // the client has gone
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// some sends a line together with the lines that are already available.
func (l lines) some(line api.Line, more <-chan api.Line) error {
	for range flushAfter {
		if err := l.put(line); err != nil {
			return err
		}
		select {
		case line = <-more:
		default:
			return l.q.flush()
		}
	}
	return l.send(line)
}
