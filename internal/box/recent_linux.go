package box

import (
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// recentTime is how long an unused sandbox is kept open.
const recentTime = 30 * time.Second

// recents are the kept sandboxes that were used recently: a command was started, or a file
// or a port was used. Opening one again returns the same object with its connection to the
// agent, because making another connection takes some milliseconds. A query of the status
// does not count as use, because monitoring queries all sandboxes. A dropped sandbox stays
// usable for its holders.
type recents struct {
	mu     sync.Mutex
	open   map[paddock.ID]*recent // guarded by mu
	timer  *time.Timer            // guarded by mu; nil while none is open
	closed bool                   // guarded by mu
}

type recent struct {
	sb   *Sandbox
	used time.Time
}

// find returns the sandbox of a name, which may have ended; nil means none.
func (r *recents) find(id paddock.ID) *Sandbox {
	r.mu.Lock()
	defer r.mu.Unlock()
	if it := r.open[id]; it != nil {
		return it.sb
	}
	return nil
}

// use records the use of a sandbox, and replaces another one of the same name.
func (r *recents) use(sb *Sandbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if it := r.open[sb.id]; it != nil && it.sb == sb {
		it.used = time.Now()
		return
	}
	if r.closed {
		return
	}
	if r.open == nil {
		r.open = map[paddock.ID]*recent{}
	}
	r.open[sb.id] = &recent{sb, time.Now()}
	if r.timer == nil {
		r.timer = time.AfterFunc(recentTime, r.sweep)
	}
}

func (r *recents) drop(sb *Sandbox) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if it := r.open[sb.id]; it != nil && it.sb == sb {
		delete(r.open, sb.id)
	}
}

// sweep drops sandboxes that were not used again.
func (r *recents) sweep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, it := range r.open {
		if time.Since(it.used) >= recentTime {
			delete(r.open, id)
		}
	}
	if len(r.open) == 0 || r.closed {
		r.timer = nil
		return
	}
	r.timer.Reset(recentTime)
}

// close drops all of them.
func (r *recents) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open, r.closed = nil, true
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
}
