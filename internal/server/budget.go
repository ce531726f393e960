package server

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of the bytes held at once, for one caller and for all. The bounds for all can be exceeded by the
// floors of the callers.
const (
	maxOutput    = 64 << 20 // output of processes, not yet acknowledged
	allOutput    = 1 << 30
	maxBodies    = 32 << 20 // bodies in JSON and their decoded values, of requests in progress
	allBodies    = 256 << 20
	maxInputHeld = 64 << 20 // input that its process has not accepted
	allInputHeld = 256 << 20
	maxFiles     = 64 << 20 // content of files, between sandbox and client
	allFiles     = 512 << 20
	maxAnswers   = 64 << 20 // answers that were built and are not sent
	allAnswers   = 512 << 20
)

// floor is what each caller may hold of a kind even if others use up the bound for all, so that few
// callers cannot shut all others out.
const floor = 1 << 20

// A budget bounds the bytes held at once. The bytes of a caller's budget also count in the
// server's budget above it.
type budget struct {
	max   int64
	floor int64   // what it may hold even if the budget above is used up
	above *budget // nil if there is none

	mu   sync.Mutex
	used int64         // guarded by mu
	more chan struct{} // guarded by mu; closed when bytes are given back; nil if nothing waits
}

// take reserves up to n bytes. If it returns 0, the channel is closed when bytes are given
// back.
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
	sure := min(got, max(0, b.floor-b.used))
	b.used += got
	b.mu.Unlock()
	if b.above == nil {
		return got, nil
	}
	have, more := b.above.take(got)
	if have < sure {
		b.above.force(sure - have)
		have = sure
	}
	b.put(have - got)
	return have, more
}

// scarce reports whether at least half of the budget is reserved.
func (b *budget) scarce() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used >= b.max/2
}

// force reserves n bytes even beyond the maximum.
func (b *budget) force(n int64) {
	for ; b != nil; b = b.above {
		b.put(n)
	}
}

// give returns n bytes.
func (b *budget) give(n int64) {
	for ; b != nil; b = b.above {
		b.put(-n)
	}
}

// put adds n, which may be negative, to this budget and not to the one above.
func (b *budget) put(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used += n
	if n < 0 && b.more != nil {
		close(b.more)
		b.more = nil
	}
}

// A metered reader counts the bytes read through it, until it is done.
type metered struct {
	r    io.Reader
	b    *budget
	held int64
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if full := m.hold(int64(n)); full != nil {
		return 0, full
	}
	return n, err
}

// hold counts n more bytes: the memory that a decoded body takes beside its text.
func (m *metered) hold(n int64) error {
	got, _ := m.b.take(n)
	m.held += got
	if got < n {
		return fmt.Errorf("the bodies of pending requests are too large in total: %w", paddock.Exhausted)
	}
	return nil
}

func (m *metered) done() {
	m.b.give(m.held)
	m.held = 0
}

// settle stops to count bodies.
func settle(bodies []*metered) {
	for _, b := range bodies {
		b.done()
	}
}

// small is the size of answers that are not counted. The bound of requests in progress bounds them.
const small = 16 << 10

// encodings is how many answers of one caller are encoded at a time. The memory of an encoding is known
// only afterwards.
const encodings = 2

// A reply counts the bytes of an answer until it was sent. It is used by one goroutine at a time.
type reply struct {
	b    *budget
	held int64
}

// hold makes n the number of bytes counted.
func (r *reply) hold(n int64) error {
	if n <= small {
		n = 0
	}
	if n <= r.held {
		r.b.give(r.held - n)
		r.held = n
		return nil
	}
	got, _ := r.b.take(n - r.held)
	if r.held += got; r.held < n {
		return fmt.Errorf("the answers that wait for their clients are too large in total: %w", paddock.Exhausted)
	}
	return nil
}

// done stops to count.
func (r *reply) done() {
	if r.held > 0 {
		r.b.give(r.held)
		r.held = 0
	}
}

// encode returns v in JSON as a line, and counts it in r.
func (a *account) encode(r *reply, v any) ([]byte, error) {
	a.encoding <- struct{}{}
	defer func() { <-a.encoding }()
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("the answer is not JSON: %w", paddock.Internal)
	}
	data = append(data, '\n')
	return data, r.hold(int64(len(data)))
}
