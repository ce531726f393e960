package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// handleTime is how long a sandbox is kept open. Opening one can cost more than
// what is then asked of it; but who removes it elsewhere, and makes another of its
// name, is not heard of here.
const handleTime = time.Second

// handles keeps the sandboxes that a caller uses open, for a moment.
type handles struct {
	mu   sync.Mutex
	open map[handleKey]*handle // guarded by mu
	gone uint64                // guarded by mu; raised whenever a sandbox may have gone
}

type handleKey struct {
	driver paddock.Driver
	id     paddock.ID
}

type handle struct {
	sb     paddock.Sandbox
	opened time.Time
}

// count gives what put is to be told: taken before a sandbox is opened or made.
func (h *handles) count() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gone
}

// get gives a sandbox that was opened just now, or opens it.
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

// put keeps a sandbox, unless since it began to be opened one has gone, which may
// have been this one, or a newer one is kept. One that is not kept costs no more
// than that it is opened again.
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

// forget drops a handle that may be of a sandbox that is gone, and those of it
// that are being opened.
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

// sandbox gives the one that the path names, if it is the caller's.
func (q *request) sandbox() (paddock.Sandbox, error) {
	id, err := q.sandboxID()
	if err != nil {
		return nil, err
	}
	return q.account.boxes.get(q.Context(), q.caller.Driver, id)
}

// sandboxID gives the ID that the path names. An ephemeral sandbox is there only
// for the client that made it.
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

// with does something to the sandbox that the path names. A handle that answers
// as if its sandbox were gone is dropped: the name may be another's by now.
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
