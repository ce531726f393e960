package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/paddock-sandbox/paddock"
)

// A line is the queue of creations. It admits few at once. Keys take turns, and each key
// has its own first-in, first-out order.
type line struct {
	most int  // maximum of waiting callers
	each int  // maximum of one key
	keys bool // there is more than one key

	mu      sync.Mutex
	free    int                 // guarded by mu; how many may be admitted now
	waiting int                 // guarded by mu
	places  map[string][]*place // guarded by mu; no empty lists
	turns   []string            // guarded by mu; keys with places, the next first
}

// A place is the place of one caller.
type place struct {
	ready chan struct{} // closed when it is admitted
}

// enter waits until the caller is admitted. Call leave afterwards.
func (l *line) enter(ctx context.Context, key string) error {
	l.mu.Lock()
	if l.free > 0 { // then no caller is waiting
		l.free--
		l.mu.Unlock()
		return nil
	}
	if own := len(l.places[key]); l.waiting >= l.most || own >= l.each {
		waiting := l.waiting
		l.mu.Unlock()
		if own >= l.each && l.keys {
			return fmt.Errorf("%d of your sandboxes are waiting to be created, which is the maximum; wait for them: %w", own, paddock.Exhausted)
		}
		return fmt.Errorf("the machine creates as many sandboxes at once as it can, and %d more are waiting, which is the maximum; try again later: %w", waiting, paddock.Exhausted)
	}
	p := &place{ready: make(chan struct{})}
	if len(l.places[key]) == 0 {
		l.turns = append(l.turns, key)
	}
	l.places[key] = append(l.places[key], p)
	l.waiting++
	l.mu.Unlock()
	select {
	case <-p.ready:
		return nil
	case <-ctx.Done():
		return l.giveUp(ctx, key, p)
	}
}

// giveUp removes a place. If it was admitted meanwhile, the next one is admitted.
func (l *line) giveUp(ctx context.Context, key string, p *place) error {
	l.mu.Lock()
	at := slices.Index(l.places[key], p)
	if at >= 0 {
		l.take(key, at)
	}
	before := l.waiting
	l.mu.Unlock()
	if at < 0 {
		l.leave()
	}
	kind := paddock.Canceled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		kind = paddock.Timeout
	}
	return fmt.Errorf("wait in line to create a sandbox, with %d others: %w: %w", before, kind, ctx.Err())
}

// take removes a place. mu is held.
func (l *line) take(key string, at int) *place {
	p := l.places[key][at]
	l.waiting--
	if l.places[key] = slices.Delete(l.places[key], at, at+1); len(l.places[key]) == 0 {
		delete(l.places, key)
		l.turns = slices.DeleteFunc(l.turns, func(other string) bool { return other == key })
	}
	return p
}

// leave admits the next caller.
func (l *line) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.turns) == 0 {
		l.free++
		return
	}
	key := l.turns[0]
	p := l.take(key, 0)
	if len(l.places[key]) > 0 { // move the key to the end
		l.turns = append(l.turns[1:], key)
	}
	close(p.ready)
}
