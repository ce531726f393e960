package box

import (
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// recentTime is how long a sandbox is kept open that nobody uses.
const recentTime = 30 * time.Second

// recents are the kept sandboxes that were used lately: a command was started, a file
// or a port was asked for. Whoever opens one again gets the same, with its way to the
// agent: to make another takes some milliseconds. To look how one is does not count, as
// who measures looks at all. What is dropped here lives on as long as somebody holds it.
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

// find gives the sandbox of a name, which may be gone by now; nil is none.
func (r *recents) find(id paddock.ID) *Sandbox {
	r.mu.Lock()
	defer r.mu.Unlock()
	if it := r.open[id]; it != nil {
		return it.sb
	}
	return nil
}

// use keeps a sandbox that is used, in the place of another of its name.
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

// sweep drops what nobody has used again.
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
