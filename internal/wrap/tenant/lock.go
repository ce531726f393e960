package tenant

import (
	"context"
	"errors"
	"fmt"

	"github.com/paddock-sandbox/paddock"
)

// A lock serialises the changes of one sandbox's limits, so that the store in the end
// reserves what the sandbox in the end has.
type lock struct {
	held  chan struct{} // holds one value while it is taken
	count int           // guarded by Set.mu; its holder and those who wait
}

// name locks the ID of a sandbox: until leave is called, no other call makes a sandbox of
// that ID or changes its terms. The lock is in this process, because a server is the only
// one of its place. An empty ID needs no lock.
func (ts *Set) name(ctx context.Context, id paddock.ID) (leave func(), err error) {
	if id == "" {
		return func() {}, nil
	}
	return ts.enter(ctx, "name "+string(id)) // no token has a space
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
		kind := paddock.Canceled
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			kind = paddock.Timeout
		}
		return nil, fmt.Errorf("another change of the sandbox is under way: %w", kind)
	}
}
