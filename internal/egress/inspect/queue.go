package inspect

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/paddock-sandbox/paddock"
)

const (
	muchSize  = 64 << 10  // size from which a body is large
	queueSize = 128 << 10 // bytes read ahead
	queuesMax = 64        // at once; further large bodies are carried like small ones
)

// slots counts the queues in use.
type slots struct{ used atomic.Int64 }

// begin takes a slot, if one is left.
func (s *slots) begin() bool {
	if s.used.Add(1) <= queuesMax {
		return true
	}
	s.used.Add(-1)
	return false
}

func (s *slots) end() { s.used.Add(-1) }

// A queue holds bytes of a body between reading and writing.
type queue struct {
	mu     sync.Mutex
	change *sync.Cond // with mu; signals a change of the fields below
	data   []byte     // guarded by mu
	err    error      // guarded by mu; the end of the reading
	closed bool       // guarded by mu; no more data is taken
}

func newQueue() *queue {
	q := &queue{}
	q.change = sync.NewCond(&q.mu)
	return q
}

// fill reads a body to its end, or until the queue is closed. A panic of a decoder ends
// only this answer.
func (q *queue) fill(body io.Reader, buffer []byte) {
	defer func() {
		if fault := recover(); fault != nil {
			q.put(nil, fmt.Errorf("read the answer: %v: %w", fault, paddock.Internal))
		}
	}()
	for {
		n, err := body.Read(buffer)
		if !q.put(buffer[:n], err) {
			return
		}
	}
}

// put waits for room, and reports whether more data is wanted.
func (q *queue) put(data []byte, err error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.data) > 0 && len(q.data)+len(data) > queueSize && !q.closed {
		q.change.Wait()
	}
	q.data, q.err = append(q.data, data...), err
	q.change.Signal()
	return err == nil && !q.closed
}

// take waits for data and returns all of it, or the end of the reading. It reuses the
// buffer of the last call.
func (q *queue) take(last []byte) ([]byte, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.data) == 0 && q.err == nil {
		q.change.Wait()
	}
	data := q.data
	q.data = last[:0]
	q.change.Signal()
	return data, q.err
}

// close makes put report false.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.change.Signal()
}

// A cork is a connection that can delay writes, so that TLS records are sent together.
type cork struct {
	net.Conn

	mu      sync.Mutex
	holding bool   // guarded by mu
	held    []byte // guarded by mu
	room    int    // guarded by mu; capacity to keep
}

// heldMost is the maximum for a large answer.
const heldMost = 2 * queueSize

// Write implements net.Conn.
func (c *cork) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.holding {
		return c.Conn.Write(b)
	}
	c.held = append(c.held, b...)
	return len(b), nil
}

// hold starts delaying writes.
func (c *cork) hold() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holding = true
}

// release writes the delayed bytes.
func (c *cork) release() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holding = false
	if len(c.held) == 0 {
		return nil
	}
	_, err := c.Conn.Write(c.held)
	if c.held = c.held[:0]; cap(c.held) > c.room {
		c.held = nil
	}
	return err
}

// keep sets the capacity to keep for the next time.
func (c *cork) keep(room int) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.room = room; room == 0 {
		c.held = nil
	}
}
