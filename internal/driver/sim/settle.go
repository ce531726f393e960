package sim

import (
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// What a command left running may still write: a process substitution gets its
// last input when the shell ends. The output ends when nobody holds it any
// more, or when nothing has been written or computed for settleQuiet, and after
// settleLimit in any case unless a process substitution is alive. A box of
// another tier does the same.
const (
	settleQuiet = 250 * time.Millisecond
	settleLimit = 2 * time.Second
	settleTick  = 5 * time.Millisecond
)

// A holding counts those who hold an output, and what they write.
type holding struct {
	mu      sync.Mutex
	holders int           // guarded by mu
	writes  int64         // guarded by mu
	gone    chan struct{} // guarded by mu: closed when nobody holds it; nil if nobody waits for that
}

// hold adds a holder. Whoever holds calls drop once.
func (h *holding) hold() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holders++
}

func (h *holding) drop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.holders--; h.holders == 0 && h.gone != nil {
		close(h.gone)
		h.gone = nil
	}
}

func (h *holding) wrote() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writes++
}

// empty gives a channel that is closed when nobody holds the output; nil says
// that this is so already.
func (h *holding) empty() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.holders == 0 {
		return nil
	}
	if h.gone == nil {
		h.gone = make(chan struct{})
	}
	return h.gone
}

func (h *holding) written() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.writes
}

// settle waits until the output of a run is complete, or until stop is closed.
// aside says that only process substitutions are waited for.
func (h *holding) settle(r *kernel.Run, stop <-chan struct{}, aside bool) {
	gone := h.empty()
	if gone == nil || aside && !r.Aside() {
		return
	}
	tick := time.NewTicker(settleTick)
	defer tick.Stop()
	began := time.Now()
	last, writes, busy := began, h.written(), r.Busy()
	for {
		select {
		case <-gone:
			return
		case <-stop:
			return
		case now := <-tick.C:
			alive := r.Aside()
			if w, b := h.written(), r.Busy(); w != writes || b != busy {
				last, writes, busy = now, w, b
			}
			if now.Sub(last) >= settleQuiet || !alive && (aside || now.Sub(began) >= settleLimit) || r.Cause() != nil {
				return
			}
		}
	}
}
