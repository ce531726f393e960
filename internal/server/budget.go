package server

import (
	"fmt"
	"io"
	"sync"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of the bytes that are held at once, for one caller and for all.
const (
	maxOutput    = 64 << 20 // of processes, not yet acknowledged
	allOutput    = 1 << 30
	maxBodies    = 32 << 20 // in JSON, under way
	allBodies    = 256 << 20
	maxInputHeld = 64 << 20 // not yet taken by its process
	allInputHeld = 256 << 20
	maxFiles     = 64 << 20 // of files, between their sandbox and their client
	allFiles     = 512 << 20
)

// A budget bounds how many bytes are held at once: of one caller, and what is
// drawn there also counts in the one above it, which is the server's.
type budget struct {
	max   int64
	above *budget // nil is none

	mu   sync.Mutex
	used int64         // guarded by mu
	more chan struct{} // guarded by mu; closed when something was given back; nil if nobody waits
}

// take draws up to n bytes. Where it is none, there is something to wait for.
func (b *budget) take(n int64) (int64, <-chan struct{}) {
	b.mu.Lock()
	got := min(n, b.max-b.used)
	if got <= 0 {
		defer b.mu.Unlock()
		if b.more == nil {
			b.more = make(chan struct{})
		}
		return 0, b.more
	}
	b.used += got
	b.mu.Unlock()
	if b.above == nil {
		return got, nil
	}
	have, more := b.above.take(got)
	b.put(have - got)
	return have, more
}

// scarce tells whether half of it is drawn.
func (b *budget) scarce() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used >= b.max/2
}

// force draws n bytes, whether they are there or not.
func (b *budget) force(n int64) {
	for ; b != nil; b = b.above {
		b.put(n)
	}
}

// give gives n bytes back.
func (b *budget) give(n int64) {
	for ; b != nil; b = b.above {
		b.put(-n)
	}
}

// put counts n bytes here alone.
func (b *budget) put(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used += n
	if n < 0 && b.more != nil {
		close(b.more)
		b.more = nil
	}
}

// A metered reader counts what came through it, until it is done.
type metered struct {
	r    io.Reader
	b    *budget
	held int64
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	got, _ := m.b.take(int64(n))
	m.held += got
	if got < int64(n) {
		return 0, fmt.Errorf("the bodies under way are too large together: %w", paddock.Exhausted)
	}
	return n, err
}

func (m *metered) done() { m.b.give(m.held) }
