package interpreter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
)

const (
	sigInterrupt = syscall.SIGINT
	sigKill      = syscall.SIGKILL

	signalTime = 30 * time.Second // in which a signal has to get to its process
	maxSpare   = 64 << 10         // bytes of output between two cells
	// maxSparePieces bounds the pieces of that output, because the code inside chooses their size, and each takes
	// more than 100 bytes beside its text.
	maxSparePieces = maxSpare / 64
	maxQueue       = 4        // items of a cell that wait for its caller
	maxText        = 64 << 10 // bytes of one event's text
	idleTime       = 100 * time.Millisecond
	answerTime     = 3 * time.Second // in which a kernel between two cells answers
)

// errLet is what writers answer when nobody is to read any more.
var errLet = errors.New("nobody reads")

// A kernel is a process that runs cells, one at a time.
type kernel struct {
	i    *Interpreter
	l    language
	name Language
	p    paddock.Process

	// Used by the goroutine that writes output alone.
	out, err         stream
	outText, errText decoder

	input sync.Mutex // held while something is sent

	exited chan struct{} // closed when the way to it, or itself, is over
	lost   bool          // written before exited is closed: the way is over, it may live
	how    paddock.Exit  // likewise
	fault  chan error    // of one place: how it broke the form
	used   time.Time     // of the turn: when the last cell ended

	mu    sync.Mutex
	cell  *turn  // guarded by mu; nil between cells
	spare []item // guarded by mu; output between cells
	held  int    // guarded by mu; bytes of spare
}

// A turn is one cell, as it runs.
type turn struct {
	seq   int64
	items chan item
	over  chan struct{} // closed when nobody takes items any more
	asked chan struct{} // of one place: somebody asked for an interrupt
}

// An item is what a kernel sent: an event, or the end of a cell on one stream.
type item struct {
	event Event
	seq   int64 // of the turn that it belongs to; 0 is not told
	end   int   // onOut, onErr, or 0
	took  int   // bytes of the interpreter's room that it holds
}

const (
	onOut = 1
	onErr = 2
)

func (s *session) newKernel(mark string) *kernel {
	return &kernel{
		i: s.i, l: languages()[s.context.Language], name: s.context.Language,
		out: stream{mark: mark, room: s.i.room}, err: stream{mark: mark, room: s.i.room},
		exited: make(chan struct{}), fault: make(chan error, 1),
	}
}

// output gives where the kernel's output goes.
func (k *kernel) output(from int64) paddock.Output {
	return paddock.Output{
		Stdout: writer(func(p []byte) error { return k.take(&k.out, &k.outText, Stdout, onOut, p) }),
		Stderr: writer(func(p []byte) error { return k.take(&k.err, &k.errText, Stderr, onErr, p) }),
		From:   from,
	}
}

type writer func([]byte) error

func (w writer) Write(p []byte) (int, error) {
	if err := w(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// take reads what came on one stream. After an error the process runs alone, and
// who has the turn kills it.
func (k *kernel) take(s *stream, d *decoder, kind Kind, end int, p []byte) error {
	err := s.write(p, func(b []byte) error {
		for part := range slices.Chunk(b, maxText) {
			if err := k.text(kind, d.text(part)); err != nil {
				return err
			}
		}
		return nil
	}, func(b []byte, took int) error {
		b, took = whole(b, took, k.i.room)
		if b == nil {
			b = []byte(lostMessage)
		}
		m, err := parseMessage(b)
		if err == nil {
			err = k.text(kind, d.rest())
		}
		if err != nil {
			k.i.room.give(took)
			return err
		}
		return k.message(m, end, took)
	})
	if err != nil && !errors.Is(err, errLet) {
		select {
		case k.fault <- err:
		default:
		}
	}
	return err
}

func (k *kernel) text(kind Kind, text string) error {
	if text == "" {
		return nil
	}
	return k.put(item{event: Event{Kind: kind, Time: time.Now().UTC(), Text: text}})
}

func (k *kernel) message(m message, end, took int) error {
	now := time.Now().UTC()
	it := item{seq: m.Seq, took: took}
	switch m.Type {
	case typeReady, typeEnd:
		it.end = end
	case typeBegun:
		it.event = Event{Kind: Begun, Time: now, Count: m.Count}
	case typeError:
		it.event = Event{Kind: Failed, Time: now, Error: &Error{m.Name, m.Value, m.Traceback}}
	default:
		it.event = Event{Kind: Shown, Time: now, Result: &Result{m.Main, m.Data}}
	}
	return k.put(it)
}

// put hands an item to the cell that runs, and waits until it is taken. Between
// cells a little of the output is kept for the next one.
func (k *kernel) put(it item) error {
	k.mu.Lock()
	c := k.cell
	if c == nil {
		k.keep(it)
		k.mu.Unlock()
		k.i.room.give(it.took)
		return nil
	}
	k.mu.Unlock()
	select {
	case <-c.over: // rather than into a queue that nobody takes from
	default:
		select {
		case c.items <- it:
			select {
			case <-c.over: // meanwhile
				k.empty(c)
			default:
			}
			return nil
		case <-c.over:
		case <-k.i.ctx.Done():
			k.i.room.give(it.took)
			return errLet
		}
	}
	k.i.room.give(it.took)
	return nil
}

// keep keeps text for the next cell, or for the error of a start, if there is space. mu is held.
func (k *kernel) keep(it item) {
	n := len(it.event.Text)
	if n > 0 && k.held+n <= maxSpare && len(k.spare) < maxSparePieces {
		k.spare, k.held = append(k.spare, it), k.held+n
	}
}

// begin makes the kernel's next items a turn's.
func (k *kernel) begin(seq int64) *turn {
	c := &turn{seq: seq, items: make(chan item, maxQueue), over: make(chan struct{}), asked: make(chan struct{}, 1)}
	k.mu.Lock()
	k.cell = c
	k.mu.Unlock()
	return c
}

// end ends a turn. What was to come to it, and of messages what did come, is dropped.
func (k *kernel) end(c *turn) {
	k.mu.Lock()
	if k.cell == c {
		k.cell = nil
	}
	k.mu.Unlock()
	close(c.over)
	k.out.drop()
	k.err.drop()
	k.empty(c)
}

// empty gives back the room of items that nobody takes any more.
func (k *kernel) empty(c *turn) {
	for {
		select {
		case it := <-c.items:
			k.i.room.give(it.took)
		default:
			return
		}
	}
}

// kept gives the output since the last cell.
func (k *kernel) kept() []item {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := k.spare
	k.spare, k.held = nil, 0
	return list
}

// early gives what a kernel that did not become ready said, shortened.
func (k *kernel) early() string {
	var text strings.Builder
	for _, it := range k.kept() {
		text.WriteString(it.event.Text)
	}
	return cut(text.String(), 500)
}

// watch waits for the end of the kernel's process, and releases it then: a write to it that the sandbox never answers
// would wait for ever.
func (k *kernel) watch(p paddock.Process) {
	k.p = p
	k.i.wg.Go(func() {
		defer p.Release()
		exit, err := p.Wait(k.i.ctx)
		k.how, k.lost = exit, err != nil
		close(k.exited)
	})
}

// discard kills a kernel that no session keeps, and lets go of it even if it could not be killed.
func (k *kernel) discard(ctx context.Context) error {
	defer k.p.Release()
	return k.kill(context.WithoutCancel(ctx))
}

// over tells whether the kernel has ended, or the way to it has.
func (k *kernel) over() bool {
	select {
	case <-k.exited:
		return true
	default:
		return false
	}
}

// exit tells how the kernel ended, if it did.
func (k *kernel) exit() (paddock.Exit, bool) {
	return k.how, k.over() && !k.lost
}

// send writes to the kernel, in the background: one that does not read is found by
// who waits for what it says.
// What is answered is closed when it was written.
func (k *kernel) send(p []byte) <-chan struct{} {
	sent := make(chan struct{})
	k.i.wg.Go(func() {
		defer close(sent)
		k.input.Lock()
		defer k.input.Unlock()
		_, _ = k.p.Input().Write(p) // a kernel that has gone is told by its end
	})
	return sent
}

// want asks for an interrupt of the cell that runs.
func (k *kernel) want() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cell != nil {
		select {
		case k.cell.asked <- struct{}{}:
		default:
		}
	}
}

// kill ends the kernel and what it started, and waits for the end.
func (k *kernel) kill(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, signalTime)
	defer cancel()
	if k.over() && !k.lost {
		return nil
	}
	if err := killed(k.p.Signal(ctx, sigKill)); err != nil {
		return fmt.Errorf("kill a kernel: %w", err)
	}
	select {
	case <-k.exited:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

// await waits until the kernel says on both streams that it is ready, or has done
// nothing in the turn c. What else it says is kept for the error.
func (k *kernel) await(ctx context.Context, c *turn, bound time.Duration) error {
	late := time.NewTimer(bound)
	defer late.Stop()
	for ends := 0; ends != onOut|onErr; {
		select {
		case it := <-c.items:
			k.i.room.give(it.took)
			switch {
			case it.end != 0 && it.seq == c.seq:
				ends |= it.end
			default:
				k.mu.Lock()
				k.keep(it)
				k.mu.Unlock()
			}
		case err := <-k.fault:
			return err
		case <-k.exited:
			return fmt.Errorf("it ended: %s: %w", k.cause(), paddock.Unavailable)
		case <-late.C:
			return fmt.Errorf("it did not answer in %v: %w", bound, paddock.Timeout)
		case <-ctx.Done():
			return ended(ctx)
		case <-k.i.ctx.Done():
			return fmt.Errorf("the interpreter is closed: %w", paddock.Unavailable)
		}
	}
	return nil
}

// cause says in words why the kernel ended.
func (k *kernel) cause() string {
	exit, ok := k.exit()
	switch {
	case !ok:
		return "the connection to it was lost"
	case exit.Cause == paddock.OutOfMemory:
		return fmt.Sprintf("the sandbox ran out of memory (limit %d bytes, peak %d bytes)", exit.Limit, exit.Peak)
	case exit.Cause == paddock.Exited:
		return fmt.Sprintf("it exited with status %d", exit.Code)
	case exit.Cause == paddock.Signaled:
		return fmt.Sprintf("it was killed by signal %d (%v)", int(exit.Signal), exit.Signal)
	case exit.Reason != "":
		return fmt.Sprintf("%s: %s", exit.Cause, exit.Reason)
	}
	return string(exit.Cause)
}
