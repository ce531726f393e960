package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// handleTime is how long an opened sandbox is cached. Opening one can cost more than the
// call that follows. The cache cannot notice that somebody else removed the sandbox and
// made another of the same name, so the time is short.
const handleTime = time.Second

// handles caches a caller's opened sandboxes for a short time.
type handles struct {
	mu   sync.Mutex
	open map[handleKey]*handle // guarded by mu
	gone uint64                // guarded by mu; counts removals, including suspected ones
}

type handleKey struct {
	driver paddock.Driver
	id     paddock.ID
}

type handle struct {
	sb     paddock.Sandbox
	opened time.Time
}

// count returns the argument since of put. Call it before opening or making the sandbox.
func (h *handles) count() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gone
}

// get returns the cached sandbox, or opens it.
func (h *handles) get(ctx context.Context, d paddock.Driver, id paddock.ID) (paddock.Sandbox, error) {
	key := handleKey{d, id}
	h.mu.Lock()
	if have := h.open[key]; have != nil && time.Since(have.opened) < handleTime {
		h.mu.Unlock()
		return have.sb, nil
	}
	since, began := h.gone, time.Now()
	h.mu.Unlock()
	sb, err := d.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	h.put(key, &handle{sb, began}, since)
	return sb, nil
}

// put caches a sandbox. It does nothing if a sandbox was removed since the opening began,
// because it may be this one, or if a newer handle is cached. Then the next call opens the
// sandbox again.
func (h *handles) put(key handleKey, it *handle, since uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	have := h.open[key]
	switch {
	case h.gone != since || (have != nil && have.opened.After(it.opened)):
		return
	case have != nil || len(h.open) < maxHandles:
		h.open[key] = it
	}
}

// forget drops the handle of a sandbox that may be removed. It also keeps pending openings
// out of the cache.
func (h *handles) forget(d paddock.Driver, id paddock.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone++
	delete(h.open, handleKey{d, id})
}

func (h *handles) sweep(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, have := range h.open {
		if now.Sub(have.opened) > handleTime {
			delete(h.open, key)
		}
	}
}

// sandbox returns the sandbox that the path names.
func (q *request) sandbox() (paddock.Sandbox, error) {
	id, err := q.sandboxID()
	if err != nil {
		return nil, err
	}
	return q.account.boxes.get(q.Context(), q.caller.Driver, id)
}

// sandboxID returns the ID in the path. An ephemeral sandbox is visible only to the client
// that made it.
func (q *request) sandboxID() (paddock.ID, error) {
	id := paddock.ID(q.PathValue("id"))
	if !id.Valid() {
		return "", fmt.Errorf("sandbox %q: invalid name: %w", string(id), paddock.Invalid)
	}
	if !q.visible(id) {
		return "", fmt.Errorf("sandbox %s: %w", id, paddock.NotFound)
	}
	return id, nil
}

// with calls do for the sandbox that the path names. If do returns an error as of a removed
// sandbox, the handle is dropped, because the name may now belong to another sandbox.
func (q *request) with(do func(sb paddock.Sandbox) error) error {
	sb, err := q.sandbox()
	if err != nil {
		return err
	}
	if err = do(sb); err != nil {
		if errors.Is(err, paddock.Unavailable) || errors.Is(err, paddock.NotFound) {
			q.account.boxes.forget(q.caller.Driver, sb.ID())
		}
	}
	return err
}
