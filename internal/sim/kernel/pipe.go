package kernel

import (
	"io"
	"sync"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// pipeSize is how much a pipe holds, as in Linux.
const pipeSize = 64 << 10

// A pipe is a bounded queue of bytes between tasks.
type pipe struct {
	mu      sync.Mutex
	buf     []byte          // guarded by mu: a ring
	start   int             // guarded by mu
	n       int             // guarded by mu
	readers int             // guarded by mu
	writers int             // guarded by mu
	heap    *budget.Counter // guarded by mu: where the ring is counted; nil until a task writes
	paid    int             // guarded by mu: what is counted of the ring
	waiting []*Task         // guarded by mu: woken at every change
	outside []chan struct{} // guarded by mu: those who wait and are no task

	opened                chan struct{} // of a named pipe: closed and made anew at every open
	readOpens, writeOpens int           // guarded by mu: of a named pipe: how often each end was opened
	changed               func()        // of a named pipe: told when an end was closed
}

// Pipe makes a pipe: what is written to w is read from r.
func Pipe() (r, w *Desc) {
	p := &pipe{readers: 1, writers: 1}
	return NewDesc(&pipeReader{p: p}, "pipe"), NewDesc(&pipeWriter{p: p}, "pipe")
}

// wakeAll wakes whoever waits. p is locked.
func (p *pipe) wakeAll() {
	for i, t := range p.waiting {
		t.wakeUp()
		p.waiting[i] = nil
	}
	p.waiting = p.waiting[:0]
	for _, c := range p.outside {
		close(c)
	}
	p.outside = nil
}

// wait unlocks p and waits for a change.
func (p *pipe) wait(t *Task) error {
	p.waiting = append(p.waiting, t)
	p.mu.Unlock()
	return t.sleep()
}

// put takes as much of b as there is room for. p is locked. Its error is a limit.
func (p *pipe) put(b []byte) (int, error) {
	room := pipeSize - p.n
	b = b[:min(len(b), room)]
	if len(b) == 0 {
		return 0, nil
	}
	if p.n+len(b) > len(p.buf) {
		size := max(512, 2*len(p.buf))
		for size < p.n+len(b) {
			size *= 2
		}
		size = min(size, pipeSize)
		if p.heap != nil {
			if err := p.heap.Add(int64(size)); err != nil {
				return 0, err
			}
			_ = p.heap.Add(-int64(p.paid))
			p.paid = size
		}
		ring := make([]byte, size)
		p.peekInto(ring)
		p.buf, p.start = ring, 0
	}
	end := (p.start + p.n) % len(p.buf)
	k := copy(p.buf[end:], b)
	copy(p.buf, b[k:])
	p.n += len(b)
	return len(b), nil
}

// give gives the ring back, once nobody can read it any more. p is locked.
func (p *pipe) give() {
	if p.heap != nil {
		_ = p.heap.Add(-int64(p.paid))
	}
	p.buf, p.start, p.n, p.paid = nil, 0, 0, 0
}

// peekInto copies what the ring holds to the start of b.
func (p *pipe) peekInto(b []byte) int {
	if p.n == 0 {
		return 0
	}
	first := p.buf[p.start:min(len(p.buf), p.start+p.n)]
	k := copy(b, first)
	if k == len(first) && p.n > k {
		k += copy(b[k:], p.buf[:p.n-k])
	}
	return k
}

func (p *pipe) take(n int) {
	p.n -= n
	if p.n == 0 {
		p.start = 0
	} else {
		p.start = (p.start + n) % len(p.buf)
	}
}

type pipeReader struct {
	p *pipe
}

func (r *pipeReader) Read(t *Task, b []byte) (int, error) {
	p := r.p
	if len(b) == 0 {
		return 0, nil
	}
	for {
		p.mu.Lock()
		if p.n > 0 {
			k := p.peekInto(b)
			p.take(k)
			p.wakeAll()
			p.mu.Unlock()
			return k, nil
		}
		if p.writers == 0 {
			p.mu.Unlock()
			return 0, io.EOF
		}
		if err := p.wait(t); err != nil {
			return 0, err
		}
	}
}

// Peek shows the first unbroken stretch.
func (r *pipeReader) Peek(t *Task) ([]byte, error) {
	p := r.p
	for {
		p.mu.Lock()
		if p.n > 0 {
			// The bytes stay where they are until Discard: writers only
			// write behind them, and a ring that grows is a new one.
			b := p.buf[p.start:min(len(p.buf), p.start+p.n)]
			p.mu.Unlock()
			return b, nil
		}
		if p.writers == 0 {
			p.mu.Unlock()
			return nil, io.EOF
		}
		if err := p.wait(t); err != nil {
			return nil, err
		}
	}
}

func (r *pipeReader) Discard(n int) {
	p := r.p
	p.mu.Lock()
	defer p.mu.Unlock()
	p.take(min(n, p.n))
	p.wakeAll()
}

func (r *pipeReader) Write(*Task, []byte) (int, error) { return 0, linux.EBADF }

func (r *pipeReader) Info() (vfs.Info, error) { return pipeInfo(), nil }

func pipeInfo() vfs.Info { return vfs.Info{Mode: linux.S_IFIFO | 0o600, Nlink: 1} }

func (r *pipeReader) Close() { r.p.close(1, 0) }

func (p *pipe) close(readers, writers int) {
	p.mu.Lock()
	p.readers -= readers
	p.writers -= writers
	if p.readers == 0 && p.writers == 0 {
		p.give()
	}
	p.wakeAll()
	p.mu.Unlock()
	if p.changed != nil {
		p.changed()
	}
}

type pipeWriter struct {
	p *pipe
}

func (w *pipeWriter) Read(*Task, []byte) (int, error) { return 0, linux.EBADF }

func (w *pipeWriter) Write(t *Task, b []byte) (int, error) {
	p := w.p
	done := 0
	for {
		p.mu.Lock()
		if p.readers == 0 {
			p.mu.Unlock()
			return done, linux.EPIPE
		}
		if p.heap == nil && t != nil {
			p.heap = t.K.heap
		}
		k, err := p.put(b[done:])
		if err != nil {
			p.mu.Unlock()
			return done, t.Must(err)
		}
		if k > 0 {
			done += k
			p.wakeAll()
		}
		if done == len(b) {
			p.mu.Unlock()
			return done, nil
		}
		if err := p.wait(t); err != nil && done > 0 {
			return done, err
		} else if err != nil {
			return 0, err
		}
	}
}

func (w *pipeWriter) Info() (vfs.Info, error) { return pipeInfo(), nil }

func (w *pipeWriter) Close() { w.p.close(0, 1) }

// An OutsideWriter is the writing end of a pipe for somebody who is no task.
type OutsideWriter struct {
	p    *pipe
	once sync.Once
	gone chan struct{}
}

// PipeFromOutside makes a pipe whose writing end belongs to the host.
func PipeFromOutside() (*Desc, *OutsideWriter) {
	p := &pipe{readers: 1, writers: 1}
	return NewDesc(&pipeReader{p: p}, "pipe"), &OutsideWriter{p: p, gone: make(chan struct{})}
}

// Write waits for room. Where nobody reads any more it is EPIPE.
func (w *OutsideWriter) Write(b []byte) (int, error) {
	p := w.p
	done := 0
	for {
		p.mu.Lock()
		if p.readers == 0 {
			p.mu.Unlock()
			return done, linux.EPIPE
		}
		k, err := p.put(b[done:])
		if err != nil {
			p.mu.Unlock()
			return done, err
		}
		if k > 0 {
			done += k
			p.wakeAll()
		}
		if done == len(b) {
			p.mu.Unlock()
			return done, nil
		}
		c := make(chan struct{})
		p.outside = append(p.outside, c)
		p.mu.Unlock()
		select {
		case <-c:
		case <-w.gone:
			return done, io.ErrClosedPipe
		}
	}
}

// Close ends the input. Closing twice is fine.
func (w *OutsideWriter) Close() error {
	w.once.Do(func() {
		close(w.gone)
		w.p.close(0, 1)
	})
	return nil
}

// A Buffer is a File that keeps what is written to it, up to a limit. What it keeps is counted as heap until [Buffer.Free].
type Buffer struct {
	limit int64
	mu    sync.Mutex
	b     []byte          // guarded by mu
	heap  *budget.Counter // guarded by mu: where cap(b) is counted; nil until something is written
	freed bool            // guarded by mu
	gone  chan struct{}   // closed when the last descriptor is
}

// NewBuffer makes a Buffer; writing more than limit bytes ends the run with
// the limit "string".
func NewBuffer(limit int64) (*Desc, *Buffer) {
	b := &Buffer{limit: limit, gone: make(chan struct{})}
	return NewDesc(b, "pipe"), b
}

// Bytes returns what was written.
func (b *Buffer) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b
}

// Closed is closed when nobody can write any more.
func (b *Buffer) Closed() <-chan struct{} { return b.gone }

func (b *Buffer) Read(*Task, []byte) (int, error) { return 0, linux.EBADF }

func (b *Buffer) Write(t *Task, p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.freed {
		return len(p), nil
	}
	need := len(b.b) + len(p)
	t.Bound("string", int64(need), b.limit)
	if need > cap(b.b) {
		// Both are in memory while one is copied to the other.
		b.heap = t.K.heap
		size := max(need, cap(b.b)+cap(b.b)/2, 512)
		_ = t.Must(b.heap.Add(int64(size)))
		had := cap(b.b)
		b.b = append(make([]byte, 0, size), b.b...)
		_ = b.heap.Add(-int64(had))
	}
	b.b = append(b.b, p...)
	return len(p), nil
}

// Take returns what was written, which the buffer neither keeps nor counts any more.
func (b *Buffer) Take() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.b
	if b.heap != nil {
		_ = b.heap.Add(-int64(cap(taken)))
	}
	b.b, b.heap = nil, nil
	return taken
}

// Free gives back what is kept. What is written afterwards is not kept.
func (b *Buffer) Free() {
	b.mu.Lock()
	b.freed = true
	b.mu.Unlock()
	_ = b.Take()
}

// Info says that it is a pipe.
func (b *Buffer) Info() (vfs.Info, error) { return pipeInfo(), nil }

// Close is for the last descriptor.
func (b *Buffer) Close() { close(b.gone) }
