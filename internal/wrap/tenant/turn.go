package tenant

import (
	"context"
	"errors"
	"fmt"

	"github.com/paddock-sandbox/paddock"
)

// A turn lets one change of a sandbox's limits at a time go all its way: what is
// reserved in the end is what the sandbox has in the end.
type turn struct {
	held  chan struct{} // has one while someone changes
	count int           // guarded by House.mu; who changes, and who waits
}

// name holds a name: while somebody has it, no sandbox of that name is made and
// none is given terms. A server is the only one of its place, so no other needs
// to know. The empty one is nobody's. leave must be called.
func (h *House) name(ctx context.Context, id paddock.ID) (leave func(), err error) {
	if id == "" {
		return func() {}, nil
	}
	return h.enter(ctx, "name "+string(id)) // no token has a space
}

// enter waits until nobody else changes a sandbox, or for as long as the context
// allows. leave must be called.
func (h *House) enter(ctx context.Context, token string) (leave func(), err error) {
	h.mu.Lock()
	t := h.turns[token]
	if t == nil {
		t = &turn{held: make(chan struct{}, 1)}
		h.turns[token] = t
	}
	t.count++
	h.mu.Unlock()
	out := func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if t.count--; t.count == 0 {
			delete(h.turns, token)
		}
	}
	select {
	case t.held <- struct{}{}:
		return func() { <-t.held; out() }, nil
	case <-ctx.Done():
		out()
		kind := paddock.Canceled
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			kind = paddock.Timeout
		}
		return nil, fmt.Errorf("another change of the sandbox is under way: %w", kind)
	}
}
