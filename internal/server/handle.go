package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// handles keeps the sandboxes that a caller uses open: opening one can cost more
// than what is then asked of it.
type handles struct {
	mu   sync.Mutex
	open map[handleKey]*handle // guarded by mu
}

type handleKey struct {
	driver paddock.Driver
	id     paddock.ID
}

type handle struct {
	sb   paddock.Sandbox
	used time.Time // guarded by handles.mu
}

// get gives a sandbox that was opened before, or opens it.
func (h *handles) get(ctx context.Context, d paddock.Driver, id paddock.ID) (paddock.Sandbox, error) {
	key := handleKey{d, id}
	h.mu.Lock()
	if have := h.open[key]; have != nil {
		have.used = time.Now()
		h.mu.Unlock()
		return have.sb, nil
	}
	h.mu.Unlock()
	sb, err := d.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	return h.put(key, sb), nil
}

// put keeps a sandbox, unless another request kept it first.
func (h *handles) put(key handleKey, sb paddock.Sandbox) paddock.Sandbox {
	h.mu.Lock()
	defer h.mu.Unlock()
	if have := h.open[key]; have != nil {
		return have.sb
	}
	if len(h.open) < maxHandles {
		h.open[key] = &handle{sb: sb, used: time.Now()}
	}
	return sb
}

// forget drops a handle that may be of a sandbox that is gone.
func (h *handles) forget(d paddock.Driver, id paddock.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, handleKey{d, id})
}

func (h *handles) sweep(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, have := range h.open {
		if now.Sub(have.used) > handleTime {
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
		return "", fmt.Errorf("sandbox %q: not a name: %w", string(id), paddock.Invalid)
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
		if errors.Is(err, paddock.Unavailable) {
			q.account.boxes.forget(q.caller.Driver, sb.ID())
		}
	}
	return err
}
