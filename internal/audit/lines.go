package audit

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of the lines that wait for the writer, in bytes.
const (
	held = 4 << 20
	// heldOfProcesses is the part that lines about processes may take. A command makes as many of those as it
	// likes, and must not hide by them what others say of it: the network's decisions and actions from outside.
	heldOfProcesses = held / 2
)

// room returns how much may wait with a line of this event.
func room(e *Event) int {
	switch e.Kind {
	case Network, KeyAgent, Did, Started, Stepped, Lost:
		return held
	}
	return heldOfProcesses
}

// A Sealer is a writer of lines that adds a seal to them after a while. One goroutine uses it.
type Sealer interface {
	io.Writer
	Due() <-chan time.Time // receives when Seal must be called; nil while it need not
	Seal() error
}

// Lines is a [Sink] that writes each event as a line of JSON. It buffers a bounded amount, half of which is for events
// that no process makes. Events beyond it are lost, and the next event that finds room reports how many.
type Lines struct {
	w      io.Writer
	wake   chan struct{} // told of lines that wait; closed by Close
	done   chan struct{} // closed after the last write
	failed chan struct{} // closed at the first error
	err    error         // the writer's own until done is closed

	mu      sync.Mutex
	waiting []byte // lines; guarded by mu
	lost    uint64 // since the last line; guarded by mu
	last    Event  // that was lost; guarded by mu
	closed  bool   // guarded by mu

	taken chan struct{} // guarded by mu; closed and replaced when the writer takes what waits
}

// NewLines makes a sink that writes whole lines to w from one goroutine, and calls Seal in time if w is a [Sealer].
// Close ends it and leaves w open.
func NewLines(w io.Writer) *Lines {
	l := &Lines{w: w, wake: make(chan struct{}, 1), done: make(chan struct{}), failed: make(chan struct{}), taken: make(chan struct{})}
	go l.write()
	return l
}

// Record queues the event and never waits for the writer. After Close it does nothing.
func (l *Lines) Record(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	if !l.put(e) {
		l.lose(e)
	}
}

// Keep is Record for an event that must not be lost, whatever number of others are recorded: it waits until the writer
// has made room. It returns Unavailable if no line is written any more, or if ctx ends first; then the event is lost.
func (l *Lines) Keep(ctx context.Context, e Event) error {
	for {
		l.mu.Lock()
		gone := l.closed
		select {
		case <-l.failed:
			gone = true
		default:
		}
		kept, taken := !gone && l.put(e), l.taken
		l.mu.Unlock()
		switch {
		case kept:
			return nil
		case gone:
			return fmt.Errorf("no event is written any more: %w", paddock.Unavailable)
		}
		select {
		case <-taken:
		case <-l.failed:
		case <-ctx.Done():
			l.mu.Lock()
			l.lose(e)
			l.mu.Unlock()
			return fmt.Errorf("the writer of events makes no room: %w: %w", ctx.Err(), paddock.Unavailable)
		}
	}
}

// put queues the line of an event, or returns false if there is no room for it.
// Preconditions: mu is held.
func (l *Lines) put(e Event) bool {
	e.Dropped = add(e.Dropped, l.lost)
	line, err := Line(e)
	if err != nil || len(l.waiting)+len(line) > room(&e) {
		return false
	}
	l.lost = 0
	l.waiting = append(l.waiting, line...)
	select {
	case l.wake <- struct{}{}:
	default: // the writer was told, and has not looked yet
	}
	return true
}

// lose counts an event as lost.
// Preconditions: mu is held.
func (l *Lines) lose(e Event) {
	l.lost, l.last = add(add(e.Dropped, l.lost), 1), Event{Time: e.Time, Sandbox: e.Sandbox, Kind: Lost}
}

// Failed returns a channel that is closed when a line could not be written. Nothing is written after that, so a
// half-written line stays the last. A caller that must not run without a log then ends the sandbox.
func (l *Lines) Failed() <-chan struct{} { return l.failed }

// Close writes the queued lines and returns the first write error. It waits for the writer as long as that takes. A
// second call returns the same.
func (l *Lines) Close() error {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		l.tellLost()
		close(l.wake)
	}
	l.mu.Unlock()
	<-l.done
	return l.err
}

// tellLost adds the line of what was lost after the last event.
// Preconditions: mu is held.
func (l *Lines) tellLost() {
	if l.lost == 0 {
		return
	}
	l.last.Dropped = l.lost
	if line, err := Line(l.last); err == nil {
		l.waiting = append(l.waiting, line...)
	}
}

// write is the goroutine of the sink. What comes while it writes waits in the
// other of two buffers.
func (l *Lines) write() {
	defer close(l.done)
	sealer, _ := l.w.(Sealer)
	var lines []byte
	for open := true; open; {
		var due <-chan time.Time
		if sealer != nil && l.err == nil {
			due = sealer.Due()
		}
		select {
		case _, open = <-l.wake:
		case <-due:
			l.note(sealer.Seal())
			continue
		}
		l.mu.Lock()
		lines, l.waiting = l.waiting, lines[:0]
		close(l.taken)
		l.taken = make(chan struct{})
		l.mu.Unlock()
		if len(lines) == 0 || l.err != nil {
			continue
		}
		n, err := l.w.Write(lines)
		if err == nil && n < len(lines) {
			err = io.ErrShortWrite
		}
		l.note(err)
	}
}

// note keeps the first error of writing.
func (l *Lines) note(err error) {
	if err != nil && l.err == nil {
		l.err = fmt.Errorf("write events: %w", err)
		close(l.failed)
	}
}

// add sums counts that a hostile side may have chosen, and stays within what
// readers of JSON keep exactly.
func add(a, b uint64) uint64 {
	const most = 1<<53 - 1
	if a > most || b > most || a+b > most {
		return most
	}
	return a + b
}
