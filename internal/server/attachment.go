package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

const (
	// window bounds the output that the process has written and the client has not
	// acknowledged. Beyond it the process waits.
	window = 1 << 20
	// least is what an attachment may hold even if the budget is used up, so that an
	// attachment which holds much does not stop all others.
	least = 4 << 10
	// attachmentGrace is how long a process waits for a client whose connection was cut.
	attachmentGrace = time.Minute
	// toldGrace is how long an exit is kept after it was sent.
	toldGrace = 10 * time.Second
)

// An attachment is a client's position in the output of a process. It outlives the
// connection. The process stays attached and waits until the client returns for the output
// that it has not acknowledged.
type attachment struct {
	ready  chan struct{}      // closed when process and pid, or failed, are set
	cancel context.CancelFunc // ends the call that starts or attaches
	room   *budget            // budget for the bytes held
	leave  func()             // called once, when the attachment is detached
	gone   func()             // called when the sandbox sends nothing more: the process ended, or was released
	looks  bool               // the caller is read-only, so it does not block the process
	who    string             // Caller.Who of the owner

	pid    paddock.PID // set before ready is closed
	origin int64       // set before ready is closed; the process's offset of byte 0 of the attachment
	failed error       // set before ready is closed

	mu       sync.Mutex
	process  paddock.Process // guarded by mu; nil before the start and after the end
	more     chan struct{}   // guarded by mu; closed and replaced at every change
	held     backlog         // guarded by mu; its bytes count in room
	base     int64           // guarded by mu; offset of the first byte that is not acknowledged
	next     int64           // guarded by mu; offset after the newest byte
	auto     bool            // guarded by mu; output counts as acknowledged once it was sent
	detached bool            // guarded by mu
	cut      bool            // guarded by mu; held output is still sent, but no more is added
	ended    bool            // guarded by mu; exit or err is set
	exit     paddock.Exit    // guarded by mu
	err      error           // guarded by mu
	told     bool            // guarded by mu; the exit was sent
	streams  int             // guarded by mu; requests that serve the attachment
	turn     int             // guarded by mu; number of the newest request; earlier ones end
	left     time.Time       // guarded by mu; time of the client's last request
}

func newAttachment(cancel context.CancelFunc, room *budget) *attachment {
	return &attachment{
		ready: make(chan struct{}), cancel: cancel, room: room, leave: func() {}, gone: func() {}, more: make(chan struct{}), left: time.Now(),
	}
}

// place converts an offset of the process to an offset of the attachment. The attachment
// begins with the oldest output that the driver still had.
func (at *attachment) place(offset int64) int64 { return max(0, offset-at.origin) }

// changed wakes all waiting goroutines. at.mu is held.
func (at *attachment) changed() {
	close(at.more)
	at.more = make(chan struct{})
}

// A stream is the writer for stdout or stderr of a process.
type stream struct {
	at     *attachment
	stderr bool
}

// Write keeps output for the client. It waits while the window is full or the budget is
// used up.
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

// errDetached makes the driver detach its Output, so that the process continues without
// waiting.
var errDetached = errors.New("the client has gone")

// full holds two channels. A writer without space waits until either is closed.
type full struct{ more, room <-chan struct{} }

func (at *attachment) add(p []byte, stderr bool) (int, full, error) {
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.detached || at.cut {
		return 0, full{}, errDetached
	}
	n, room := at.draw(len(p))
	switch {
	case n == 0 && at.looks: // a read-only caller must not block a process
		at.cut = true
		at.changed()
		return 0, full{}, errDetached
	case n == 0:
		return 0, full{at.more, room}, nil
	}
	at.held.add(at.next, p[:n], stderr)
	at.next += int64(n)
	at.changed()
	return n, full{}, nil
}

// draw reserves up to n bytes. at.mu is held.
func (at *attachment) draw(n int) (int, <-chan struct{}) {
	want := min(int64(n), window-(at.next-at.base))
	if want <= 0 {
		return 0, nil
	}
	got, room := at.room.take(want)
	if held := at.next - at.base; got == 0 && held < least {
		got = min(want, least-held)
		at.room.force(got)
	}
	return int(got), room
}

// ack discards the output before offset, because the client has it.
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
	at.base = offset
	at.room.give(at.held.drop(offset))
	at.changed()
	return nil
}

// detach discards the held output. The process then continues without waiting.
func (at *attachment) detach() {
	at.mu.Lock()
	again := at.detached
	at.detached = true
	at.room.give(at.held.drop(at.next))
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
	at.gone()
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

// over reports whether the attachment accepts no more output. A client that returns then
// needs a new one.
func (at *attachment) over() bool {
	at.mu.Lock()
	defer at.mu.Unlock()
	return at.cut || at.detached
}

// begin publishes the result of the start, and follows the process to its end.
func (at *attachment) begin(s *Server, p paddock.Process, origin int64, err error) {
	at.cancel()
	if err != nil {
		at.failed = api.Keep(err)
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
		at.gone()
		at.mu.Lock()
		defer at.mu.Unlock()
		at.process = nil // it may keep resources of its sandbox alive
		if s.ctx.Err() != nil {
			return // the server was closed; the process continues
		}
		at.ended, at.exit, at.err = true, exit, api.Keep(err)
		at.changed()
	})
}

// enter begins to serve the attachment. It ends every earlier request that serves it.
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

// A moment is the output to send at one time.
type moment struct {
	pieces []output
	next   int64
	end    bool
	exit   paddock.Exit
	err    error
	more   <-chan struct{} // closed at the next change
}

// errReplaced reports that another request serves the attachment, or that it was detached.
var errReplaced = errors.New("another request serves the attachment")

// look returns output to send, starting at an offset: all of it, or as much as a moment holds.
func (at *attachment) look(from int64, turn int) (moment, error) {
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.detached || at.turn != turn {
		return moment{}, errReplaced
	}
	if from < at.base || from > at.next {
		return moment{}, fmt.Errorf("output from %d: only output from %d to %d is kept: %w",
			at.origin+from, at.origin+at.base, at.origin+at.next, paddock.Conflict)
	}
	m := moment{more: at.more}
	m.pieces, m.next = at.held.from(from)
	if len(m.pieces) == 0 && at.cut {
		return moment{}, errReplaced
	}
	if len(m.pieces) == 0 && at.ended {
		m.end, m.exit, m.err = true, at.exit, at.err
	}
	return m, nil
}

// sent notes that the exit was sent.
func (at *attachment) sent() {
	at.mu.Lock()
	defer at.mu.Unlock()
	at.told = true
}
