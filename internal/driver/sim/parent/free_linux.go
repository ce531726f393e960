package parent

import (
	"context"
	"fmt"
	"sync"

	"github.com/paddock-sandbox/paddock"
)

// A freeing frees what only removed snapshots had, in one goroutine for all that ask: who removes one may go, and
// nothing else would free that later.
type freeing struct {
	free func(context.Context) error // takes as long as there are snapshots, and ends with the context

	ctx  context.Context // ends with close
	stop context.CancelFunc
	wg   sync.WaitGroup // of the goroutine

	mu      sync.Mutex
	running bool   // guarded by mu
	next    *round // guarded by mu: begins after the one that is under way; nil if nobody asked for it
	closed  bool   // guarded by mu
}

var errFreeing = fmt.Errorf("the driver is closed, and its bytes are freed later: %w", paddock.Unavailable)

// A round is one call of free.
type round struct {
	over chan struct{}
	err  error // written before over is closed
}

func newFreeing(free func(context.Context) error) *freeing {
	f := &freeing{free: free}
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f
}

// ask has everything freed that no snapshot has at this moment, and waits for that until ctx ends.
func (f *freeing) ask(ctx context.Context) error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return errFreeing
	}
	if f.next == nil { // the one that is under way may have read the snapshots before
		f.next = &round{over: make(chan struct{})}
	}
	r := f.next
	if !f.running {
		f.running = true
		f.wg.Go(f.run)
	}
	f.mu.Unlock()
	select {
	case <-r.over:
		return r.err
	case <-ctx.Done():
		return fmt.Errorf("its bytes are freed later: %w: %w", ctx.Err(), endKind(ctx))
	}
}

// run carries out rounds until nobody asks for one.
func (f *freeing) run() {
	for {
		f.mu.Lock()
		r := f.next
		f.next, f.running = nil, r != nil
		f.mu.Unlock()
		if r == nil {
			return
		}
		if r.err = f.free(f.ctx); r.err != nil && f.ctx.Err() != nil {
			r.err = errFreeing
		}
		close(r.over)
	}
}

// close ends the round that is under way. The next removal, also by another driver, frees the rest.
func (f *freeing) close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.stop()
	f.wg.Wait()
}
