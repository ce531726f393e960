package box

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/egress/owner"
)

// A life is what a sandbox is to its owner: the box that runs, or what is kept
// of it while none does.
//
// A box on the host's kernel is paused by stopping its processes. One with a
// kernel of its own is saved and ended; it goes on in another box.
type life struct {
	start     start     // how its boxes are made; its files stay open
	data      string    // where boxes are saved
	ephemeral bool      // what is saved goes with this process
	made      time.Time // when the first box was

	turn sync.Mutex // held while boxes come and go

	mu      sync.Mutex
	box     *box          // guarded by mu; the last one that was made
	saved   *checkpoint   // guarded by mu; nil while a box runs
	going   bool          // guarded by mu; it is being paused, or resumed
	removed bool          // guarded by mu; or is being
	gone    bool          // guarded by mu; nothing of it is left
	used    time.Duration // guarded by mu; processor time of earlier boxes
}

// begin makes the first box, and gives the connection to its agent.
func (l *life) begin(ctx context.Context) (net.Conn, error) {
	told := l.start.made
	l.start.made = func(b *box) {
		l.mu.Lock()
		l.box = b
		l.mu.Unlock()
		if told != nil {
			told(b)
		}
	}
	l.made = time.Now()
	b, conn, err := newBox(ctx, l.start)
	l.start.made, l.start.connected, l.start.finish = told, nil, nil // the layout is whole
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.box, l.made = b, b.created
	return conn, nil
}

func (l *life) now() *box {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.box
}

func (l *life) connect(context.Context) (net.Conn, *board, error) {
	f, err := l.now().connect()
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	conn, err := net.FileConn(f)
	return conn, nil, err
}

// there is nil until the sandbox was removed.
func (l *life) there() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return fmt.Errorf("the sandbox was removed: %w", paddock.Unavailable)
	}
	return nil
}

func (l *life) stand(context.Context) (standing, error) {
	if err := l.there(); err != nil {
		return standing{}, err
	}
	if l.paused() {
		return standing{State: paddock.Paused}, nil
	}
	return l.now().stand(), nil
}

func (l *life) kills(ctx context.Context) (int64, error) {
	if err := l.there(); err != nil {
		return 0, err
	}
	return l.now().kills(ctx)
}

func (l *life) measure(ctx context.Context) (measure, error) {
	if err := l.there(); err != nil {
		return measure{}, err
	}
	m := l.now().measure()
	if !l.paused() { // it would answer later
		l.now().tell(ctx, &m)
	}
	m.Usage.Wall, m.Traffic = time.Since(l.made), l.traffic()
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.Usage.CPU >= 0 {
		m.Usage.CPU += l.used
	}
	if l.saved != nil || l.going {
		m.State, m.Reason = paddock.Paused, ""
		if l.saved != nil {
			m.Usage.Memory, m.Usage.PIDs = 0, 0
		}
	}
	return m, nil
}

// traffic is what has crossed the way out; nil is that nobody counts.
func (l *life) traffic() *paddock.Traffic {
	t := paddock.Traffic{}
	switch {
	case l.start.gateway != nil:
		t = l.start.gateway.Traffic()
	case l.start.policy.Network.Mode != paddock.NetworkNone:
		return nil // the host's network, which counts nobody apart
	}
	return &t
}

func (l *life) update(ctx context.Context, u paddock.Update) error {
	if err := l.there(); err != nil || u.Limits == nil && u.Policy == nil {
		return err
	}
	l.turn.Lock()
	defer l.turn.Unlock()
	l.mu.Lock()
	saved := l.saved
	l.mu.Unlock()
	if saved != nil {
		return fmt.Errorf("the sandbox is paused: %w", paddock.Conflict)
	}
	undo := func() {}
	if u.Policy != nil {
		var err error
		if undo, err = l.police(ctx, *u.Policy); err != nil || u.Limits == nil {
			return err
		}
	}
	if err := l.now().update(ctx, *u.Limits); err != nil {
		undo()
		return err
	}
	// A box that goes on later is to have them too.
	now := l.now().bounds()
	l.start.limits = now
	if l.start.layout.nested {
		l.start.layout.config.PIDs = now.PIDs
	}
	return nil
}

// police changes the rules of the way out, which is all of a policy that can
// change, and gives what undoes that.
func (l *life) police(ctx context.Context, p paddock.Policy) (undo func(), err error) {
	was, mode := l.start.policy, l.start.policy.Network.Mode
	f, g := was.Files, p.Files
	switch {
	case !slices.Equal(f.DenyRead, g.DenyRead) || !slices.Equal(f.DenyWrite, g.DenyWrite) || !slices.Equal(f.Protect, g.Protect) || !slices.Equal(f.Unprotect, g.Unprotect):
		return nil, fmt.Errorf("the rules about files cannot be changed while the sandbox lives: they are a part of its tree: %w", paddock.Unsupported)
	case !slices.Equal(was.Audit, p.Audit):
		return nil, fmt.Errorf("what is recorded cannot be changed while the sandbox lives: %w", paddock.Unsupported)
	case mode != p.Network.Mode && mode == paddock.NetworkList:
		return nil, fmt.Errorf("the network cannot be taken away while the sandbox lives; a list without rules allows nothing: %w", paddock.Unsupported)
	case mode != p.Network.Mode:
		return nil, fmt.Errorf("the sandbox was made with another network, %q, and has no link for rules; make another sandbox, with a list, which may be empty: %w", string(mode), paddock.Unsupported)
	case l.start.gateway == nil:
		return func() {}, nil
	}
	return l.start.gateway.Update(ctx, p.Network)
}

func (l *life) egress(ctx context.Context) (owner.State, error) {
	if l.start.gateway == nil {
		return owner.State{}, nil
	}
	l.start.gateway.Settle(ctx) // who was refused may have been answered before it was told
	return l.start.gateway.State(), nil
}

func (l *life) inspect(ctx context.Context) (boxinit.Inspection, error) { return l.now().inspect(ctx) }

// pause stops everything. Twice is fine.
func (l *life) pause(ctx context.Context) error {
	if err := l.there(); err != nil {
		return err
	}
	if !l.start.layout.nested {
		return l.now().pause(ctx)
	}
	l.turn.Lock()
	defer l.turn.Unlock()
	l.mu.Lock()
	again := l.saved != nil
	b := l.box
	l.going = !again
	l.mu.Unlock()
	if again {
		return nil
	}
	m, err := l.save(ctx, b, boxinit.OpStop)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.going = false
	if err != nil {
		return fmt.Errorf("pause: %w", err)
	}
	l.saved = m
	return nil // nobody but this process knows of it, or the keeper tells
}

// resume undoes pause. A sandbox that runs goes on.
func (l *life) resume(ctx context.Context) error {
	if err := l.there(); err != nil {
		return err
	}
	if !l.start.layout.nested {
		return l.now().resume()
	}
	l.turn.Lock()
	defer l.turn.Unlock()
	l.mu.Lock()
	saved, removed := l.saved, l.removed
	l.mu.Unlock()
	switch {
	case removed:
		return fmt.Errorf("resume: the sandbox was removed: %w", paddock.Unavailable)
	case saved == nil:
		return nil
	}
	s := l.start
	var err error
	if s.image, err = saved.open(s.kernel, s.agent, nil); err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	b, conn, err := newBox(ctx, s)
	for _, f := range s.image {
		f.Close()
	}
	if err != nil {
		return fmt.Errorf("resume: %w", err) // what is saved stays
	}
	conn.Close() // whoever wants the agent asks for a connection
	l.mu.Lock()
	l.box, l.saved = b, nil
	l.mu.Unlock()
	return saved.remove()
}

// save writes a box to files. With boxinit.OpStop it has ended then.
func (l *life) save(ctx context.Context, b *box, op boxinit.Op) (*checkpoint, error) {
	prefix := snapshotPrefix
	if op == boxinit.OpStop {
		prefix = pausedPrefix
	}
	m, err := newCheckpoint(l.data, prefix, l.start)
	if err != nil {
		return nil, err
	}
	m.unnamed = l.ephemeral && op == boxinit.OpStop
	// All is safe before the box ends.
	if err = m.fill(ctx, b, op); err == nil && l.start.gateway != nil {
		if err = l.start.gateway.Remember(ctx); err == nil {
			m.about.Order.Gateway = l.start.gateway.Saved(op == boxinit.OpStop)
		}
	}
	if err == nil && op == boxinit.OpStop {
		err = m.seal(l.start.agent)
	}
	if err == nil && op == boxinit.OpStop {
		usage := b.measure().Usage.CPU
		_ = b.remove(ctx) // it has ended, and what is left of it is told by the next Remove
		if usage > 0 {
			l.mu.Lock()
			l.used += usage
			l.mu.Unlock()
		}
	}
	if err != nil {
		if op == boxinit.OpStop {
			// It may have stopped though nobody heard of it.
			goCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goTime)
			defer cancel()
			_ = b.save(goCtx, boxinit.OpGo, boxinit.Room{}, nil) // a box that is gone does not go on
		}
		_ = m.remove() // an unfinished one is of no use, and is known by that
		return nil, err
	}
	return m, nil
}

// goTime bounds how long a box may take to go on that could not be saved: what
// it is at may be a large write.
const goTime = time.Minute

// remove ends it all. Twice is fine.
func (l *life) remove(ctx context.Context) error {
	l.mu.Lock()
	l.removed = true
	b := l.box
	l.mu.Unlock()
	// A box that is just being saved ends too, and then so does the saving.
	err := b.remove(ctx)
	l.turn.Lock()
	defer l.turn.Unlock()
	l.mu.Lock()
	b, saved := l.box, l.saved
	l.saved = nil
	l.mu.Unlock()
	if saved != nil {
		if e := saved.remove(); err == nil {
			err = e
		}
	}
	if e := b.remove(ctx); err == nil { // one that was made meanwhile
		err = e
	}
	l.mu.Lock()
	if l.gone = err == nil; l.gone {
		closeAll(l.start.supplies)
		l.start.supplies = nil
	}
	l.mu.Unlock()
	return err
}

// inspectTime bounds what a box's init answers at once.
const inspectTime = 5 * time.Second

// maxInspection bounds the answer, in bytes: refusals, most of all.
const maxInspection = 16 << 20

// inspect asks a box with a kernel of its own what its init knows.
func (b *box) inspect(ctx context.Context) (boxinit.Inspection, error) {
	var i boxinit.Inspection
	f, err := b.ask(boxinit.OpInspect, nil)
	if err != nil {
		return i, err
	}
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return i, err
	}
	defer conn.Close()
	until := time.Now().Add(inspectTime)
	if t, ok := ctx.Deadline(); ok && t.Before(until) {
		until = t
	}
	_ = conn.SetDeadline(until) // a socket takes one
	if err := json.NewDecoder(io.LimitReader(conn, maxInspection)).Decode(&i); err != nil {
		return i, fmt.Errorf("the box's init does not answer: %w: %w", err, paddock.Unavailable)
	}
	i.PIDs = max(i.PIDs, 0)
	if len(i.Refusals) > maxRefusals {
		i.Refusals = i.Refusals[len(i.Refusals)-maxRefusals:]
	}
	return i, nil
}

// maxRefusals is how many of them paddock.Status holds.
const maxRefusals = 1000

var _ boxOwner = (*life)(nil)

// closeAll closes files whose content is safe already, or of no use.
func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// paused tells whether it is, or is about to be.
func (l *life) paused() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.saved != nil || l.going
}

// image is what it was paused to; nil while a box runs.
func (l *life) image() *checkpoint {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.saved
}

// bound has a kernel of the box's own bound its processes.
func (b *box) bound(n int) error {
	f, err := b.ask(boxinit.OpBound, binary.LittleEndian.AppendUint32(nil, uint32(n)))
	if err != nil {
		return fmt.Errorf("bound the processes: %w", err)
	}
	defer f.Close()
	ctx, cancel := context.WithTimeout(context.Background(), boundTime)
	defer cancel()
	return b.report(ctx, f)
}

// boundTime is how long a box's init may take to change a limit: longer than it
// waits itself for what is in a kernel of the box's own.
const boundTime = 3 * time.Minute
