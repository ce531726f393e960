package guest

import (
	"fmt"
	"sync"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of what is kept of processes that have ended, so that a later Attach
// finds their output.
const (
	maxEnded      = 256
	maxEndedBytes = 16 << 20
)

// readSize is how much is read from a process at once: what a pipe holds, and
// what one message may.
const readSize = 64 << 10

// A table holds all processes, those that run and those that ended.
type table struct {
	// starting is held while a process is started and noted, so that nobody
	// waits for it before it is known, and taken before mu.
	starting sync.Mutex

	buffers sync.Pool // of *[]byte, readSize long

	killing sync.Mutex // held while the descendants of a process are looked for, which holds a thread

	mu     sync.Mutex
	byPID  map[int]*process // guarded by mu
	ended  []*process       // guarded by mu; oldest first
	bytes  int              // guarded by mu; kept by those of ended
	closed bool             // guarded by mu
}

func (t *table) buffer() *[]byte {
	if b, ok := t.buffers.Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, readSize)
	return &b
}

func (t *table) find(pid int) (*process, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p, ok := t.byPID[pid]
	if !ok || p.hidden {
		return nil, fmt.Errorf("process %d: %w", pid, paddock.NotFound)
	}
	return p, nil
}

// add notes a new process. One of the same number that has ended gives way.
func (t *table) add(p *process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old, ok := t.byPID[p.pid]; ok {
		t.drop(old)
	}
	t.byPID[p.pid] = p
}

// retire keeps p among those that have ended, and lets go of the oldest.
func (t *table) retire(p *process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.hidden || t.byPID[p.pid] != p { // its number may be another's already
		t.drop(p)
		return
	}
	t.ended = append(t.ended, p)
	_, _, p.size = p.out.Bounds()
	t.bytes += p.size
	for len(t.ended) > maxEnded || (t.bytes > maxEndedBytes && len(t.ended) > 1) {
		t.drop(t.ended[0])
	}
}

// drop forgets a process that has ended. t.mu must be held.
func (t *table) drop(p *process) {
	for i, e := range t.ended {
		if e == p {
			t.ended = append(t.ended[:i], t.ended[i+1:]...)
			t.bytes -= p.size
			break
		}
	}
	if t.byPID[p.pid] == p {
		delete(t.byPID, p.pid)
	}
	p.outlets.close()
}

// running gives the process of that number if it is not reaped.
func (t *table) running(pid int) *process {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p, ok := t.byPID[pid]; ok && !p.hasEnded() {
		return p
	}
	return nil
}

func (t *table) isClosed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// all gives every process that is not hidden, in no order.
func (t *table) all() []*process {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]*process, 0, len(t.byPID))
	for _, p := range t.byPID {
		if !p.hidden {
			list = append(list, p)
		}
	}
	return list
}
