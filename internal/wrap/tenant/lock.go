package tenant

import (
	"context"
	"errors"
	"fmt"

	"github.com/paddock-sandbox/paddock"
)

// A lock serialises changes of one sandbox's limits, so that the reservation in the store
// finally equals the limits of the sandbox.
type lock struct {
	held  chan struct{} // holds one value while it is locked
	count int           // guarded by Set.mu; holder and waiters
}

// name locks the ID of a sandbox. Until leave is called, no other call makes a sandbox of
// that ID or changes its terms. The lock is local to this process, because a place has only
// one server. An empty ID needs no lock.
func (ts *Set) name(ctx context.Context, id paddock.ID) (leave func(), err error) {
	if id == "" {
		return func() {}, nil
	}
	return ts.enter(ctx, "name "+string(id)) // a token never has a space
}

// enter takes the lock of a token. It waits for it as long as the context allows. The
// caller calls leave.
func (ts *Set) enter(ctx context.Context, token string) (leave func(), err error) {
	ts.mu.Lock()
	l := ts.locks[token]
	if l == nil {
		l = &lock{held: make(chan struct{}, 1)}
		ts.locks[token] = l
	}
	l.count++
	ts.mu.Unlock()
	out := func() {
		ts.mu.Lock()
		defer ts.mu.Unlock()
		if l.count--; l.count == 0 {
			delete(ts.locks, token)
		}
	}
	select {
	case l.held <- struct{}{}:
		return func() { <-l.held; out() }, nil
	case <-ctx.Done():
		out()
		return nil, fmt.Errorf("another change of the sandbox is under way: %w", stopped(ctx))
	}
}

// stopped returns the kind of an error of a context that ended.
func stopped(ctx context.Context) paddock.Kind {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return paddock.Timeout
	}
	return paddock.Canceled
}
