package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
)

// A queue lets the outputs of several runs through, one after another.
type queue struct {
	stdout, stderr io.Writer
	ordered        bool
	broken         func()        // called when something cannot be written
	last           chan struct{} // of the run that was added last: closed when it is done
	token          chan struct{} // holds one thing while nobody writes; for those without an order

	mu   sync.Mutex
	fail error // guarded by mu; of a write
}

func newQueue(stdout, stderr io.Writer, ordered bool) *queue {
	q := &queue{stdout: stdout, stderr: stderr, ordered: ordered, last: make(chan struct{}), token: make(chan struct{}, 1)}
	close(q.last)
	q.token <- struct{}{}
	return q
}

func (q *queue) err() error { q.mu.Lock(); defer q.mu.Unlock(); return q.fail }

// A queued is the output of one run. One goroutine at a time uses it.
type queued struct {
	q      *queue
	before <-chan struct{} // closed when it is this run's turn
	done   chan struct{}
	turn   bool
	held   []piece
	size   int
}

// A piece is output that is held back.
type piece struct {
	errors bool
	data   []byte
}

// add gives the next run a place.
func (q *queue) add() *queued {
	o := &queued{q: q, before: q.last, done: make(chan struct{})}
	q.last = o.done
	return o
}

// await waits for this run's turn, and then writes what was held back.
func (o *queued) await(ctx context.Context) error {
	if o.turn {
		return nil
	}
	before := o.before
	if !o.q.ordered {
		before = o.q.token
	}
	select {
	case <-before:
	case <-ctx.Done():
		return ctx.Err()
	}
	o.turn = true
	for _, p := range o.held {
		o.write(p)
	}
	o.held = nil
	return nil
}

func (o *queued) write(p piece) {
	to := o.q.stdout
	if p.errors {
		to = o.q.stderr
	}
	if _, err := to.Write(p.data); err != nil {
		o.q.mu.Lock()
		defer o.q.mu.Unlock()
		if o.q.fail == nil {
			o.q.fail = err
			o.q.broken()
		}
	}
}

// put takes output: it is written in this run's turn, and held back before. When
// too much is held back it waits.
func (o *queued) put(ctx context.Context, p piece) error {
	if !o.turn && o.q.ordered {
		select {
		case <-o.before:
			if err := o.await(ctx); err != nil {
				return err
			}
		default:
		}
	}
	if !o.turn && o.size+len(p.data) > kept {
		if err := o.await(ctx); err != nil {
			return err
		}
	}
	if o.turn {
		o.write(p)
		return o.q.err()
	}
	p.data = slices.Clone(p.data)
	o.held, o.size = append(o.held, p), o.size+len(p.data)
	return nil
}

// end writes the rest, and lets the next run through.
func (o *queued) end(ctx context.Context) {
	if o.await(ctx) != nil {
		return // nobody gets a turn any more
	}
	if o.q.ordered {
		close(o.done)
		return
	}
	o.q.token <- struct{}{}
}

// object writes one line of JSON in this run's turn.
func (o *queued) object(ctx context.Context, l *lot) {
	data, err := jsonLine(l)
	if err != nil {
		data = fmt.Appendf(nil, "{\"index\":%d}\n", l.Index) // cannot be: every field of it has a form
	}
	_ = o.put(ctx, piece{data: data}) // who cannot write is told at the end
}

// A stream is one of a run's.
type mapStream struct {
	ctx    context.Context
	o      *queued
	errors bool
}

func (o *queued) stream(ctx context.Context, errors bool) io.Writer { return mapStream{ctx, o, errors} }

func (s mapStream) Write(p []byte) (int, error) {
	if err := s.o.put(s.ctx, piece{s.errors, p}); err != nil {
		return 0, err
	}
	return len(p), nil
}
