package interpreter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A running is a cell that runs, seen from the caller's side.
type running struct {
	k    *kernel
	c    *turn
	sent <-chan struct{} // closed when the request was written
	cell Cell
	tell func(Event) error

	why       error // the caller has gone; nothing is told any more
	late      bool  // its time is over
	asked     bool  // it was interrupted
	killed    bool
	told      int  // results and errors so far
	failed    bool // an error was told
	hasBegun  bool
	begun     chan struct{} // closed when the kernel said that it has begun
	ended     chan struct{} // closed when the cell has ended
	delivered chan struct{} // closed when nobody interrupts the cell any more; nil is nobody did
	grace     <-chan time.Time
}

// run runs a cell: see Interpreter.Run. It needs the session's turn.
func (k *kernel) run(ctx context.Context, cell Cell, tell func(Event) error) error {
	seq := time.Now().UnixNano()
	request := k.l.request(seq, cell, k.l.size(cell))
	r := &running{k: k, c: k.begin(seq), cell: cell, tell: tell, begun: make(chan struct{}), ended: make(chan struct{})}
	defer func() { k.end(r.c); k.used = time.Now() }()
	for _, it := range k.kept() {
		r.say(ctx, it.event)
	}
	end, err := k.step(ctx, cell)
	if err != nil {
		return err
	}
	r.sent = k.send(request)
	err = r.follow(ctx)
	close(r.ended)
	end(r.exit(err))
	if r.delivered != nil { // so that it does not meet the next cell
		<-r.delivered
	}
	return err
}

// step begins the step of a cell, if the sandbox records them. The kernel runs already: what it changes meanwhile belongs
// to the cell.
func (k *kernel) step(ctx context.Context, cell Cell) (end func(exit int), err error) {
	j, err := paddock.JournalOf(k.i.o.Sandbox)
	if err == nil {
		end, err = j.Begin(ctx, "cell", []string{string(k.name), cell.Code})
	}
	if errors.Is(err, paddock.Unsupported) { // it records none, or is one of a server, which records cells of its own
		return func(int) {}, nil
	}
	return end, err
}

// exit returns the exit of the step of a cell.
func (r *running) exit(err error) int {
	switch {
	case err != nil:
		return paddock.UnknownExit
	case r.failed:
		return 1
	}
	return 0
}

// follow tells what comes until the cell ends.
func (r *running) follow(ctx context.Context) error {
	var deadline <-chan time.Time
	if r.cell.Timeout > 0 {
		t := time.NewTimer(r.cell.Timeout)
		defer t.Stop()
		deadline = t.C
	}
	done := ctx.Done()
	var unread <-chan time.Time
	for ends, written := 0, r.sent; ends != onOut|onErr || written != nil; {
		if ends == onOut|onErr && unread == nil {
			unread = time.After(signalTime)
		}
		select {
		case <-written:
			written = nil
		case <-unread: // or requests pile up that nobody reads
			r.fail(ctx, Error{Name: ErrorEnded, Value: "the kernel was killed: it did not read the cell that it ended"})
			r.kill(ctx)
		case it := <-r.c.items:
			ends |= r.take(ctx, it)
		case <-done:
			done = nil
			r.leave(ctx, ended(ctx))
		case <-deadline:
			r.late = true
			r.interrupt(ctx)
		case <-r.c.asked:
			r.interrupt(ctx)
		case <-r.grace:
			r.kill(ctx)
		case err := <-r.k.fault:
			r.fail(ctx, Error{Name: ErrorEnded, Value: "the kernel was killed: " + err.Error()})
			r.kill(ctx)
		case <-r.k.exited:
			return r.died(ctx)
		case <-r.k.i.ctx.Done():
			return fmt.Errorf("the interpreter is closed: %w", paddock.Unavailable)
		}
	}
	if r.late && !r.failed {
		r.fail(ctx, Error{})
	}
	return r.finish(ctx)
}

// take tells an item, and answers which end of the cell it is. What belongs to another
// cell is passed over: an interrupt that came late has the kernel say the end of one again.
func (r *running) take(ctx context.Context, it item) (end int) {
	defer r.k.i.room.give(it.took)
	switch {
	case it.end != 0 && it.seq != r.c.seq, it.seq != 0 && it.seq != r.c.seq:
		return 0
	case it.end != 0:
		return it.end
	case it.event.Kind == Begun && !r.hasBegun:
		r.hasBegun = true
		close(r.begun)
	}
	r.say(ctx, it.event)
	return 0
}

// finish tells the end.
func (r *running) finish(ctx context.Context) error {
	r.say(ctx, Event{Kind: Ended, Time: time.Now().UTC()})
	return r.why
}

// died tells the end of a kernel in the middle of a cell.
func (r *running) died(ctx context.Context) error {
	for more := true; more; {
		select {
		case it := <-r.c.items:
			_ = r.take(ctx, it)
		default:
			more = false
		}
	}
	value := "the kernel ended in the middle of the cell: " + r.k.cause()
	switch {
	case r.killed && r.late:
		value = fmt.Sprintf("the cell ran longer than %v and did not end when it was interrupted: its kernel was killed", r.cell.Timeout)
	case r.killed && r.asked:
		value = "the cell did not end when it was interrupted: its kernel was killed"
	}
	r.late = false
	r.fail(ctx, Error{Name: ErrorEnded, Value: value + "; the state of the context is lost"})
	return r.finish(ctx)
}

// say tells an event, unless the caller has gone.
func (r *running) say(ctx context.Context, e Event) {
	switch e.Kind {
	case Failed:
		r.fail(ctx, *e.Error)
		return
	case Shown:
		if r.told++; r.told > maxEvents {
			return
		}
	}
	r.pass(ctx, e)
}

// fail tells how the cell failed. That its time was over is why an interrupt was
// the error.
func (r *running) fail(ctx context.Context, e Error) {
	if r.failed && e.Name == errInterrupted {
		return // a kernel that is interrupted while it tells so tells it again
	}
	if r.told++; r.told > maxEvents {
		return
	}
	if r.late {
		e.Name, e.Value = ErrorTimeout, fmt.Sprintf("the cell ran longer than %v", r.cell.Timeout)
	}
	if e.Traceback == "" {
		e.Traceback = e.Name + ": " + e.Value
	}
	r.failed = true
	r.pass(ctx, Event{Kind: Failed, Time: time.Now().UTC(), Error: &e})
}

func (r *running) pass(ctx context.Context, e Event) {
	if r.why != nil {
		return
	}
	if err := r.tell(e); err != nil {
		r.leave(ctx, fmt.Errorf("%w: %w", paddock.Canceled, err))
	}
}

// leave is the caller's going: the cell is interrupted.
func (r *running) leave(ctx context.Context, why error) {
	if r.why == nil {
		r.why = why
	}
	r.interrupt(ctx)
}

// interrupt has the cell interrupted, until it ends.
func (r *running) interrupt(ctx context.Context) {
	if r.asked {
		return
	}
	r.asked = true
	r.delivered = make(chan struct{})
	r.k.i.wg.Go(func() {
		defer close(r.delivered)
		r.k.interrupt(ctx, r.c.seq, r.begun, r.ended)
	})
	r.grace = time.After(r.k.i.o.Stop)
}

// kill ends the kernel; that it ended is heard of as of any other end.
func (r *running) kill(ctx context.Context) {
	if r.killed {
		return
	}
	r.killed = true
	r.k.i.wg.Go(func() {
		if err := r.k.kill(context.WithoutCancel(ctx)); err != nil {
			r.k.i.log.Warn("kill a kernel", "err", err)
			r.k.p.Release() // or the cell waits for ever for an end that the sandbox does not tell
		}
	})
}
