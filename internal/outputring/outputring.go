// Package outputring buffers the newest output of a process, both streams in order, for readers that
// are attached and for readers that attach later.
package outputring

import (
	"context"
	"io"
	"sort"
	"sync"
)

// DefaultKept is the default size of a process's kept output, in bytes.
const DefaultKept = 1 << 20

// A Ring is what a process has written: the newest bytes of both streams in
// the order in which they were read, in a ring of bounded size. Offsets count
// all bytes since the start, both streams together.
//
// While readers are there, Write waits for the slowest of them, so that each
// gets everything. Without a reader the oldest bytes make room.
type Ring struct {
	limit int

	mu      sync.Mutex
	room    chan struct{}        // guarded by mu; closed when a reader went on or away, or the output was closed
	ring    []byte               // guarded by mu; grows to limit as needed
	first   int64                // guarded by mu; offset of the oldest byte kept
	next    int64                // guarded by mu; offset after the newest
	runs    []run                // guarded by mu; the first one begins at first
	readers map[*Reader]struct{} // guarded by mu
	ended   bool                 // guarded by mu; the process has ended
	closed  bool                 // guarded by mu; nobody will read any more
}

// A run is a stretch of output of one stream, up to where the next begins.
type run struct {
	at     int64
	stderr bool
}

// A Reader is a consumer of output; Ring.Join returns one.
type Reader struct {
	wake    chan struct{} // holds one: there is more, or the end is known
	at      int64         // guarded by Ring.mu; next offset wanted
	end     int64         // guarded by Ring.mu; where the process ended, or -1
	dropped int64         // guarded by Ring.mu; bytes that were wanted and not kept
}

// New returns a ring that keeps up to limit bytes.
func New(limit int) *Ring {
	return &Ring{limit: limit, readers: map[*Reader]struct{}{}}
}

// maxRuns bounds what the order of the streams costs, where a process changes
// between them with every byte: a run stands for 64 bytes of output.
func (o *Ring) maxRuns() int { return max(o.limit/64, 16) }

// Join adds a reader from an offset on.
func (o *Ring) Join(from int64) *Reader {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := &Reader{wake: make(chan struct{}, 1), at: from, end: -1}
	if o.ended {
		r.end = o.next
	}
	if r.at < o.first {
		r.dropped = o.first - r.at
		r.at = o.first
	}
	o.readers[r] = struct{}{}
	return r
}

// Leave removes a reader; output no longer waits for it.
func (o *Ring) Leave(r *Reader) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.readers, r)
	o.freed()
}

// Write stores p. It waits while a reader needs the space.
func (o *Ring) Write(stderr bool, p []byte) {
	for {
		n, room := o.Offer(stderr, p)
		if p = p[n:]; len(p) == 0 {
			return
		}
		<-room
	}
}

// Offer keeps as much of p as there is space for, and all of it once the ring
// is closed. Where that is not all, room is closed when it is worth offering
// the rest.
func (o *Ring) Offer(stderr bool, p []byte) (n int, room <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return len(p), nil
	}
	for n < len(p) {
		k := min(o.space(stderr), len(p)-n)
		if k == 0 {
			if o.room == nil {
				o.room = make(chan struct{})
			}
			return n, o.room
		}
		o.add(stderr, p[n:n+k])
		n += k
		for r := range o.readers {
			r.tell()
		}
	}
	return n, nil
}

// freed tells those who wait for room. o.mu must be held.
func (o *Ring) freed() {
	if o.room != nil {
		close(o.room)
		o.room = nil
	}
}

// space says how much can be added without taking anything from a reader.
// o.mu must be held.
func (o *Ring) space(stderr bool) int {
	low := o.next
	for r := range o.readers {
		low = min(low, max(r.at, o.first))
	}
	if len(o.runs) >= o.maxRuns() && o.runs[len(o.runs)-1].stderr != stderr && o.runEnd(0) > low {
		return 0
	}
	return o.limit - int(o.next-low)
}

// runEnd gives the offset after run i. o.mu must be held.
func (o *Ring) runEnd(i int) int64 {
	if i+1 < len(o.runs) {
		return o.runs[i+1].at
	}
	return o.next
}

// add keeps p, which is no longer than the limit. o.mu must be held.
func (o *Ring) add(stderr bool, p []byte) {
	if n := len(o.runs); n == 0 || o.runs[n-1].stderr != stderr {
		if n >= o.maxRuns() {
			o.forget(o.runEnd(0))
		}
		o.runs = append(o.runs, run{o.next, stderr})
	}
	o.grow(int(o.next-o.first) + len(p))
	o.forget(o.next + int64(len(p)) - int64(len(o.ring)))
	at := int(o.next % int64(len(o.ring)))
	n := copy(o.ring[at:], p)
	copy(o.ring, p[n:])
	o.next += int64(len(p))
}

// forget drops everything before an offset. o.mu must be held.
func (o *Ring) forget(first int64) {
	if first <= o.first {
		return
	}
	o.first = first
	gone := 0
	for gone < len(o.runs)-1 && o.runEnd(gone) <= first {
		gone++
	}
	o.runs = o.runs[gone:]
	if len(o.runs) > 0 && o.runs[0].at < first {
		o.runs[0].at = first
	}
}

// grow makes the ring hold n bytes, or the limit. o.mu must be held.
func (o *Ring) grow(n int) {
	if n <= len(o.ring) || len(o.ring) == o.limit {
		return
	}
	size := max(len(o.ring), 512)
	for size < n {
		size *= 2
	}
	ring := make([]byte, min(size, o.limit))
	for at := o.first; at < o.next; {
		from := o.ring[at%int64(len(o.ring)):]
		from = from[:min(int64(len(from)), o.next-at)]
		at += int64(copy(ring[at%int64(len(ring)):], from))
	}
	o.ring = ring
}

// Wait waits until Take has bytes or an end to return.
func (o *Ring) Wait(ctx context.Context, r *Reader) error {
	for {
		o.mu.Lock()
		ready := r.at < o.next || r.end >= 0 || o.closed
		o.mu.Unlock()
		if ready {
			return nil
		}
		select {
		case <-r.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Take returns the next bytes of one stream and their offset, or io.EOF at the end of the process. It
// does not wait: no bytes and no error mean that none have arrived yet.
func (o *Ring) Take(r *Reader, p []byte) (n int, stderr bool, offset int64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	end := o.next
	if r.end >= 0 {
		end = r.end
	}
	if o.closed || r.at >= end {
		if o.closed || r.end >= 0 {
			return 0, false, r.at, io.EOF
		}
		return 0, false, r.at, nil
	}
	i := sort.Search(len(o.runs), func(i int) bool { return o.runEnd(i) > r.at })
	end = min(end, o.runEnd(i))
	offset = r.at
	for n < len(p) && r.at < end {
		from := o.ring[r.at%int64(len(o.ring)):]
		from = from[:min(int64(len(from)), end-r.at)]
		k := copy(p[n:], from)
		n += k
		r.at += int64(k)
	}
	o.freed()
	return n, o.runs[i].stderr, offset, nil
}

// End says that the process has ended here. More may still be written, by
// what it left behind; readers of now do not get it.
func (o *Ring) End() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	for r := range o.readers {
		r.end = o.next
		r.tell()
	}
}

// Close drops everything from now on.
func (o *Ring) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.freed()
	for r := range o.readers {
		r.tell()
	}
}

// Bounds returns the offset of the oldest kept byte, the offset after the newest, and the memory that
// they use.
func (o *Ring) Bounds() (first, next int64, size int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.first, o.next, len(o.ring)
}

// Memory returns the bytes that the ring holds, with the order of the streams.
func (o *Ring) Memory() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.ring) + cap(o.runs)*runSize
}

// runSize is the size of a run in bytes.
const runSize = 16

// Missed returns the number of bytes that a reader asked for and that were no longer kept.
func (o *Ring) Missed(r *Reader) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return r.dropped
}

func (r *Reader) tell() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}
