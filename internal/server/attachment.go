package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

const (
	// window is how much output may be under way to a client: made by the process
	// and not yet acknowledged. Beyond it the process waits.
	window = 1 << 20
	// least is what an attachment that holds nothing may take though the budget is
	// used up: who holds much does not stop everyone else.
	least = 4 << 10
	// piece is what one frame carries at most.
	piece = 32 << 10
	// attachmentGrace is how long a process waits for a client that was cut off.
	attachmentGrace = time.Minute
	// toldGrace is how long an end is kept that was sent.
	toldGrace = 10 * time.Second
)

// An attachment is a client's place in the output of a process. It outlives the
// connection: the process goes on being attached, and waits, until the client
// comes back for what it has not acknowledged.
type attachment struct {
	ready  chan struct{}      // closed when process and pid, or failed, are set
	cancel context.CancelFunc // ends the call that starts or attaches
	room   *budget            // what is held is drawn from it
	leave  func()             // called when it is detached, once
	looks  bool               // its caller may only look: it does not hold the process up
	who    string             // Caller.Who of whom it is

	pid    paddock.PID // before ready is closed
	origin int64       // before ready is closed; the process's offset of what is 0 below
	failed error       // before ready is closed

	mu       sync.Mutex
	process  paddock.Process // guarded by mu; nil before it began and after it ended
	more     chan struct{}   // guarded by mu; closed and made anew by every change
	pieces   []output        // guarded by mu
	base     int64           // guarded by mu; offset of the first byte that is held
	next     int64           // guarded by mu; offset after the newest
	auto     bool            // guarded by mu; what was sent counts as acknowledged
	detached bool            // guarded by mu
	cut      bool            // guarded by mu; it lost its place: what is held is sent, and no more comes
	ended    bool            // guarded by mu; exit or err is set
	exit     paddock.Exit    // guarded by mu
	err      error           // guarded by mu
	told     bool            // guarded by mu; the end was sent
	streams  int             // guarded by mu; requests that serve it
	turn     int             // guarded by mu; the newest of them: others end
	left     time.Time       // guarded by mu; when the client was last heard of
}

// An output is a stretch of one stream.
type output struct {
	at     int64
	stderr bool
	data   []byte
}

func newAttachment(cancel context.CancelFunc, room *budget) *attachment {
	return &attachment{
		ready: make(chan struct{}), cancel: cancel, room: room, leave: func() {}, more: make(chan struct{}), left: time.Now(),
	}
}

// place turns an offset of the process into one of the attachment, which begins
// where the driver still had output.
func (at *attachment) place(offset int64) int64 { return max(0, offset-at.origin) }

// changed wakes all who wait. at.mu is held.
func (at *attachment) changed() {
	close(at.more)
	at.more = make(chan struct{})
}

// A stream is one of the two that a process writes to.
type stream struct {
	at     *attachment
	stderr bool
}

// Write keeps output for the client, and waits while the window is full, or the
// budget used up.
func (s stream) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		n, full, err := s.at.add(p[:min(len(p), piece)], s.stderr)
		if err != nil {
			return written, err
		}
		if n == 0 {
			select {
			case <-full.more:
			case <-full.room:
			}
			continue
		}
		written += n
		p = p[n:]
	}
	return written, nil
}

// errDetached is told to the driver, which then lets the process go on alone.
var errDetached = errors.New("the client has gone")

// full is what to wait for where there is no place: either will do.
type full struct{ more, room <-chan struct{} }

func (at *attachment) add(p []byte, stderr bool) (int, full, error) {
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.detached || at.cut {
		return 0, full{}, errDetached
	}
	n, room := at.draw(len(p))
	switch {
	case n == 0 && at.looks: // who may only look does not hold a process up
		at.cut = true
		at.changed()
		return 0, full{}, errDetached
	case n == 0:
		return 0, full{at.more, room}, nil
	}
	if last := len(at.pieces) - 1; last >= 0 && at.pieces[last].stderr == stderr && len(at.pieces[last].data)+n <= piece {
		at.pieces[last].data = append(at.pieces[last].data, p[:n]...)
	} else {
		at.pieces = append(at.pieces, output{at: at.next, stderr: stderr, data: append([]byte(nil), p[:n]...)})
	}
	at.next += int64(n)
	at.changed()
	return n, full{}, nil
}

// draw makes place for up to n bytes. at.mu is held.
func (at *attachment) draw(n int) (int, <-chan struct{}) {
	want := min(int64(n), window-(at.next-at.base))
	if want <= 0 {
		return 0, nil
	}
	got, room := at.room.take(want)
	if got == 0 && at.next == at.base {
		got = min(want, least)
		at.room.force(got)
	}
	return int(got), room
}

// ack lets go of what the client has.
func (at *attachment) ack(offset int64) error {
	at.mu.Lock()
	defer at.mu.Unlock()
	if offset < 0 || offset > at.next {
		return fmt.Errorf("offset %d: no such output was sent: %w", offset, paddock.Invalid)
	}
	at.left = time.Now()
	if offset <= at.base {
		return nil
	}
	if !at.detached {
		at.room.give(offset - at.base)
	}
	at.base = offset
	gone := 0
	for gone < len(at.pieces) && at.pieces[gone].at+int64(len(at.pieces[gone].data)) <= offset {
		gone++
	}
	at.pieces = append(at.pieces[:0:0], at.pieces[gone:]...)
	at.changed()
	return nil
}

// detach lets the process go on alone. What is kept for the client is gone.
func (at *attachment) detach() {
	at.mu.Lock()
	again := at.detached
	at.detached = true
	at.pieces = nil
	if !again {
		at.room.give(at.next - at.base)
	}
	at.changed()
	at.mu.Unlock()
	if !again {
		at.leave()
	}
	at.cancel()
	<-at.ready
	at.mu.Lock()
	p := at.process
	at.mu.Unlock()
	if p != nil {
		p.Release()
	}
}

func (at *attachment) late(now time.Time) bool {
	at.mu.Lock()
	defer at.mu.Unlock()
	grace := attachmentGrace
	switch {
	case at.cut:
		grace = 0
	case at.told:
		grace = toldGrace
	}
	return at.streams == 0 && now.Sub(at.left) > grace
}

// over tells whether nothing more will come of it: who comes back needs another.
func (at *attachment) over() bool {
	at.mu.Lock()
	defer at.mu.Unlock()
	return at.cut || at.detached
}

// begin says how the start went, and follows the process to its end.
func (at *attachment) begin(s *Server, p paddock.Process, origin int64, err error) {
	at.cancel()
	if err != nil {
		at.failed = err
		close(at.ready)
		return
	}
	at.pid, at.origin = p.ID(), origin
	at.mu.Lock()
	at.process = p
	at.mu.Unlock()
	close(at.ready)
	s.wg.Go(func() {
		exit, err := p.Wait(s.ctx)
		p.Release()
		at.mu.Lock()
		defer at.mu.Unlock()
		at.process = nil // it may hold what its sandbox held
		if s.ctx.Err() != nil {
			return // the server ends, not the process
		}
		at.ended, at.exit, at.err = true, exit, err
		at.changed()
	})
}

// enter begins to serve it. The newest client is the one.
func (at *attachment) enter() int {
	at.mu.Lock()
	defer at.mu.Unlock()
	at.streams++
	at.turn++
	at.left = time.Now()
	at.changed()
	return at.turn
}

func (at *attachment) exitStream() {
	at.mu.Lock()
	defer at.mu.Unlock()
	at.streams--
	at.left = time.Now()
}

// A moment is what there is to send.
type moment struct {
	pieces []output
	next   int64
	end    bool
	exit   paddock.Exit
	err    error
	more   <-chan struct{} // to wait for where there is nothing
}

// errReplaced is that another request serves the attachment, or nobody any more.
var errReplaced = errors.New("another request took this place")

// look gives what is to be sent from an offset on.
func (at *attachment) look(from int64, turn int) (moment, error) {
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.detached || at.turn != turn {
		return moment{}, errReplaced
	}
	if from < at.base || from > at.next {
		return moment{}, fmt.Errorf("output from %d: there is what lies between %d and %d: %w",
			at.origin+from, at.origin+at.base, at.origin+at.next, paddock.Conflict)
	}
	m := moment{next: from, more: at.more}
	for _, o := range at.pieces {
		end := o.at + int64(len(o.data))
		if end <= from {
			continue
		}
		o.data = o.data[max(0, from-o.at):]
		m.pieces = append(m.pieces, o)
		m.next = end
	}
	if len(m.pieces) == 0 && at.cut {
		return moment{}, errReplaced
	}
	if len(m.pieces) == 0 && at.ended {
		m.end, m.exit, m.err = true, at.exit, at.err
	}
	return m, nil
}

// sent notes that the end was sent.
func (at *attachment) sent() {
	at.mu.Lock()
	defer at.mu.Unlock()
	at.told = true
}
