package box

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/jsonbody"
	"github.com/paddock-sandbox/paddock/internal/step"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A Life is a sandbox as its owner sees it: the running box or, while none runs, what was
// saved of it. The runtime's [Pauser] decides which of both a paused sandbox is.
type Life struct {
	plan      Plan         // how its boxes are made; its files stay open
	tier      paddock.Tier // of its boxes
	data      string       // directory for saved boxes
	files     string       // directory of snapshots of files
	ephemeral bool         // what is saved goes when this process ends
	watching  step.Watcher // is told of its steps; may be nil
	made      time.Time    // when the first box was made

	saving func(dir string) error // called before a box is saved; may be nil
	steps  *stepping              // nil if no steps are recorded
	guard  *guard                 // nil without a monitor

	turn chan struct{} // of capacity 1: has an element while a box is made, removed, saved or changed

	mu      sync.Mutex
	current *Box          // guarded by mu; the last box that was made
	saved   Saved         // guarded by mu; nil while a box runs
	going   bool          // guarded by mu; it is being saved
	removed bool          // guarded by mu; or is being removed
	gone    bool          // guarded by mu; nothing of it is left
	used    time.Duration // guarded by mu; processor time of earlier boxes
}

// take waits for the turn until ctx ends. A caller that has left gets none, so that nothing is changed that nobody
// knows of. done gives it back.
func (l *Life) take(ctx context.Context) (done func(), err error) {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("the sandbox is busy with another request: %w: %w", ctx.Err(), EndKind(ctx.Err()))
	}
	if err := ctx.Err(); err != nil {
		<-l.turn
		return nil, fmt.Errorf("%w: %w", err, EndKind(err))
	}
	return func() { <-l.turn }, nil
}

// Plan returns how its boxes are made. The caller must not change it.
func (l *Life) Plan() *Plan { return &l.plan }

// Data returns the directory where boxes are saved.
func (l *Life) Data() string { return l.data }

// Files returns the directory of snapshots of files.
func (l *Life) Files() string { return l.files }

// Tier returns the tier of its boxes.
func (l *Life) Tier() paddock.Tier { return l.tier }

// Saving must be called with the directory in which a box is about to be saved to pause the sandbox,
// before anything but the directory is there.
func (l *Life) Saving(dir string) error {
	if l.saving == nil {
		return nil // what is saved goes when this process ends
	}
	return l.saving(dir)
}

// Ephemeral reports whether saved boxes are useless after this process ends.
func (l *Life) Ephemeral() bool { return l.ephemeral }

// begin makes the first box, and returns the connection to its agent.
func (l *Life) begin(ctx context.Context) (net.Conn, error) {
	if len(l.plan.Policy.KeyAgents) > 0 {
		l.plan.refusedKeys = &refusedKeys{}
	}
	told := l.plan.made
	l.plan.made = func(b *Box) {
		l.mu.Lock()
		l.current = b
		l.mu.Unlock()
		if told != nil {
			told(b)
		}
	}
	l.made = time.Now()
	b, conn, err := Make(ctx, l.plan)
	l.plan.made, l.plan.connected, l.plan.finish = told, nil, nil // the layout is complete
	l.plan.First.Close()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current, l.made = b, b.created
	return conn, nil
}

// Box returns the last box that was made.
func (l *Life) Box() *Box {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current
}

func (l *Life) connect(context.Context) (net.Conn, *statusBoard, error) {
	f, err := l.Box().connect()
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	conn, err := net.FileConn(f)
	return conn, nil, err
}

// there returns an error once the sandbox was removed.
func (l *Life) there() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return fmt.Errorf("the sandbox was removed: %w", paddock.Unavailable)
	}
	return nil
}

// Standing implements boxOwner.
func (l *Life) Standing(context.Context) (Standing, error) {
	if err := l.there(); err != nil {
		return Standing{}, err
	}
	if l.suspended() {
		return Standing{State: paddock.Paused}, nil
	}
	return l.Box().Standing(), nil
}

func (l *Life) kills(context.Context) (int64, error) {
	if err := l.there(); err != nil {
		return 0, err
	}
	return l.Box().kills()
}

// Measure implements boxOwner.
func (l *Life) Measure(ctx context.Context) (Measure, error) {
	if err := l.there(); err != nil {
		return Measure{}, err
	}
	m := l.Box().Measure()
	if !l.suspended() { // it would answer late
		l.plan.Runtime.Limiter.Measure(ctx, l.Box(), &m)
	}
	m.Usage.Wall, m.Traffic, m.Unrecorded = time.Since(l.made), l.traffic(), l.steps.words()
	m.Monitor = l.guard.tell()
	if m.State == paddock.Dead {
		m.Refused = l.refused()
	}
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

// refused returns what was refused in a box that has ended, and on its way out, as far as it
// fits into one packet beside the rest of a measure.
func (l *Life) refused() []paddock.Refusal {
	list := gatewayclient.JoinRefusals(l.Box().refused(), l.plan.refusedKeys.all())
	if l.plan.Gateway != nil {
		list = gatewayclient.JoinRefusals(list, l.plan.Gateway.State().Refused)
	}
	return boxinit.Fit(list, gatewayclient.InsideMax)
}

// traffic returns the traffic through the gateway; nil means it is not counted.
func (l *Life) traffic() *paddock.Traffic {
	t := paddock.Traffic{}
	switch {
	case l.plan.Gateway != nil:
		t = l.plan.Gateway.Traffic()
	case l.plan.Policy.Network.Mode != paddock.NetworkNone:
		return nil // the host's network, which has no separate counts
	}
	return &t
}

// update makes a change or not, and returns when it is made or never will be. That also holds if ctx ends.
func (l *Life) update(ctx context.Context, u paddock.Update) error {
	if err := l.there(); err != nil || u.Limits == nil && u.Policy == nil {
		return err
	}
	done, err := l.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	l.mu.Lock()
	saved := l.saved
	l.mu.Unlock()
	if saved != nil {
		return fmt.Errorf("the sandbox is paused: %w", paddock.Conflict)
	}
	undo := func() {}
	if u.Policy != nil {
		var err error
		if undo, err = l.police(ctx, *u.Policy); err != nil {
			return err
		}
	}
	if u.Limits != nil {
		if err := l.Box().update(ctx, *u.Limits); err != nil {
			undo()
			return err
		}
		// A later box must have them, too.
		l.plan.Limits = l.Box().Limits()
	}
	l.asked(u)
	return nil
}

// asked notes a change in the spec.
func (l *Life) asked(u paddock.Update) {
	if l.plan.Spec == nil {
		return
	}
	s := *l.plan.Spec // the other one may be in use
	if p := u.Policy; p != nil {
		s.Policy.Network = p.Network
	}
	if n := u.Limits; n != nil {
		o := &s.Limits
		o.Memory, o.CPUs, o.PIDs = cmp.Or(n.Memory, o.Memory), cmp.Or(n.CPUs, o.CPUs), cmp.Or(n.PIDs, o.PIDs)
		o.Disk, o.Files, o.IO = cmp.Or(n.Disk, o.Disk), cmp.Or(n.Files, o.Files), cmp.Or(n.IO, o.IO)
	}
	l.plan.Spec = &s
}

// spec implements boxOwner.
func (l *Life) spec(ctx context.Context) (paddock.Spec, error) {
	if err := l.there(); err != nil {
		return paddock.Spec{}, err
	}
	done, err := l.take(ctx)
	if err != nil {
		return paddock.Spec{}, err
	}
	defer done()
	if l.plan.Spec == nil {
		return paddock.Spec{}, fmt.Errorf("it is not known: an earlier version made the sandbox, or its environment is too large: %w", paddock.Unsupported)
	}
	return *l.plan.Spec, nil
}

// police changes the rules of the gateway, the only part of a policy that can change. It
// returns a function that undoes the change.
func (l *Life) police(ctx context.Context, p paddock.Policy) (undo func(), err error) {
	was, mode := l.plan.Policy, l.plan.Policy.Network.Mode
	f, g := was.Files, p.Files
	switch {
	case !slices.Equal(f.DenyRead, g.DenyRead) || !slices.Equal(f.DenyWrite, g.DenyWrite) || !slices.Equal(f.Protect, g.Protect) || !slices.Equal(f.Unprotect, g.Unprotect):
		return nil, fmt.Errorf("the rules about files cannot be changed while the sandbox lives: they are a part of its tree: %w", paddock.Unsupported)
	case !slices.EqualFunc(was.KeyAgents, p.KeyAgents, func(a, b paddock.KeyAgent) bool {
		return a.Kind == b.Kind && a.Socket == b.Socket && slices.Equal(a.Keys, b.Keys)
	}):
		return nil, fmt.Errorf("the key agents of a sandbox cannot be changed while it lives: %w", paddock.Unsupported)
	case !slices.Equal(was.Audit, p.Audit):
		return nil, fmt.Errorf("what is recorded cannot be changed while the sandbox lives: %w", paddock.Unsupported)
	case mode == paddock.NetworkList && p.Network.Mode == paddock.NetworkNone: // the link stays, and the gateway allows nothing
	case mode == paddock.NetworkList && mode != p.Network.Mode:
		return nil, fmt.Errorf("the sandbox has a gateway, and cannot get the network %q while it lives: %w", string(p.Network.Mode), paddock.Unsupported)
	case mode != p.Network.Mode:
		return nil, fmt.Errorf("the sandbox was made with another network, %q, and has no link for rules; make another sandbox, with a list, which may be empty: %w", string(mode), paddock.Unsupported)
	}
	if l.plan.Gateway == nil {
		return func() {}, nil
	}
	if undo, err = l.plan.Gateway.Update(ctx, p.Network); err == nil {
		l.guard.hide(p.Network.Secrets)
	}
	return undo, err
}

func (l *Life) egress(ctx context.Context) (gatewayclient.State, error) {
	var st gatewayclient.State
	if l.plan.Gateway != nil {
		l.plan.Gateway.Settle(ctx) // the answer to a refused client may come before its event
		st = l.plan.Gateway.State()
	}
	st.Refused = gatewayclient.JoinRefusals(st.Refused, l.plan.refusedKeys.all())
	return st, nil
}

// Inspect implements boxOwner.
func (l *Life) Inspect(ctx context.Context) (boxinit.Inspection, error) { return l.Box().Inspect(ctx) }

func (l *Life) pause(ctx context.Context) error {
	if err := l.there(); err != nil {
		return err
	}
	l.guard.silence("the sandbox was being paused")
	err := l.plan.Runtime.Pauser.Pause(ctx, l)
	if err != nil {
		l.guard.speak()
	}
	return err
}

func (l *Life) resume(ctx context.Context) error {
	if err := l.there(); err != nil {
		return err
	}
	undo := l.guard.resuming() // before anything runs
	err := l.plan.Runtime.Pauser.Resume(ctx, l)
	if err != nil {
		undo()
	}
	return err
}

// questions implements boxOwner.
func (l *Life) questions(ctx context.Context, wait bool) ([]paddock.MonitorQuestion, error) {
	return l.guard.questions(ctx, wait)
}

// reply implements boxOwner.
func (l *Life) reply(_ context.Context, question string, allow bool) error {
	return l.guard.reply(question, allow)
}

func (l *Life) snapshot(ctx context.Context, o paddock.SnapshotOptions) (paddock.SnapshotID, error) {
	if l.guard.busy() { // what waits for an answer would be waited for
		return "", fmt.Errorf("a question of the monitor waits: answer it first: %w", paddock.Conflict)
	}
	done, err := l.take(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	return l.plan.Runtime.Pauser.Snapshot(ctx, l, o)
}

// discard removes a snapshot that nobody was told of.
func (l *Life) discard(id paddock.SnapshotID) error { return l.plan.Runtime.Pauser.Discard(l, id) }

// Suspend replaces the running box by what save returns. A sandbox that is suspended
// already stays as it is. If save succeeds, the box has been removed.
func (l *Life) Suspend(ctx context.Context, save func(context.Context, *Box) (Saved, error)) error {
	done, err := l.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	l.mu.Lock()
	again := l.saved != nil
	b := l.current
	l.going = !again
	l.mu.Unlock()
	if again {
		return nil
	}
	m, err := save(ctx, b)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.going = false
	if err != nil {
		return err
	}
	l.saved = m
	return nil // the caller stores it: only this process knows of it, or the keeper writes it
}

// Retire removes a box that was saved, and adds its processor time to the sandbox's.
func (l *Life) Retire(ctx context.Context, b *Box) {
	usage := b.Measure().Usage.CPU
	_ = b.Remove(ctx) // it has ended, and the next Remove reports what is left
	if usage > 0 {
		l.mu.Lock()
		l.used += usage
		l.mu.Unlock()
	}
}

// Continue makes a box from what was saved of the previous one, with the files that reopen
// returns. A running sandbox stays unchanged. After an error, what was saved stays.
func (l *Life) Continue(ctx context.Context, reopen func(Saved) (boxinit.Files, error)) error {
	done, err := l.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	l.mu.Lock()
	saved, removed := l.saved, l.removed
	l.mu.Unlock()
	switch {
	case removed:
		return fmt.Errorf("the sandbox was removed: %w", paddock.Unavailable)
	case saved == nil:
		return nil
	}
	p := l.plan
	if p.First, err = reopen(saved); err != nil {
		return err
	}
	b, conn, err := Make(ctx, p)
	p.First.Close()
	if err != nil {
		return err
	}
	conn.Close() // users of the agent ask for another one
	l.mu.Lock()
	l.current, l.saved = b, nil
	l.mu.Unlock()
	return saved.Remove()
}

// remove removes everything. It may be called again.
func (l *Life) remove(ctx context.Context) error {
	l.guard.leave()
	l.mu.Lock()
	l.removed = true
	b := l.current
	l.mu.Unlock()
	// A box that is being saved also ends, and then the saving ends.
	err := b.Remove(ctx)
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	l.mu.Lock()
	b, saved := l.current, l.saved
	l.saved = nil
	l.mu.Unlock()
	if saved != nil {
		if e := saved.Remove(); err == nil {
			err = e
		}
	}
	if e := b.Remove(ctx); err == nil { // one that was made meanwhile
		err = e
	}
	l.mu.Lock()
	if l.gone = err == nil; l.gone {
		l.plan.Files.Close()
	}
	gone := l.gone
	l.mu.Unlock()
	if gone {
		l.steps.close()
		l.guard.close()
	}
	return err
}

// inspectTime bounds the answer of a box's init, which should be immediate.
const inspectTime = 5 * time.Second

// maxInspection bounds the answer, in bytes, and what it takes when it is decoded; most of it are
// refusals.
const maxInspection = 16 << 20

// Inspect asks the box's init for what only it knows. Only the init of a guest kernel
// answers.
func (b *Box) Inspect(ctx context.Context) (boxinit.Inspection, error) {
	var i boxinit.Inspection
	f, err := b.Ask(boxinit.OpInspect, nil)
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
	_ = conn.SetDeadline(until) // sockets support deadlines
	var text json.RawMessage    // first, because a guest kernel that was taken over can write what decodes to gigabytes
	err = json.NewDecoder(io.LimitReader(conn, maxInspection)).Decode(&text)
	if err == nil && jsonbody.Cost(text) > maxInspection {
		err = errors.New("its answer is too large")
	}
	if err == nil {
		err = json.Unmarshal(text, &i)
	}
	if err != nil {
		return i, fmt.Errorf("the box's init does not answer: %w: %w", err, paddock.Unavailable)
	}
	i.PIDs = max(i.PIDs, 0)
	if len(i.Refusals) > maxRefusals {
		i.Refusals = i.Refusals[len(i.Refusals)-maxRefusals:]
	}
	return i, nil
}

// maxRefusals is the maximum number of refusals in paddock.Status.
const maxRefusals = 1000

var _ boxOwner = (*Life)(nil)

// CloseAll closes files whose content is already safe, or not needed.
func CloseAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// suspended reports whether the box was saved and has ended, or is about to be.
func (l *Life) suspended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.saved != nil || l.going
}

// image returns what the box was saved to; nil while one runs.
func (l *Life) image() Saved {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.saved
}

// Report waits for the answer of the box's init.
func (b *Box) Report(ctx context.Context, f *os.File) error {
	conn, err := net.FileConn(f)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer b.afterEnd(func() { _ = conn.SetDeadline(time.Now().Add(lastTime)) })()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	var r boxinit.Report
	err = json.NewDecoder(io.LimitReader(conn, sys.PacketMax)).Decode(&r)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ctx.Err(), EndKind(ctx.Err()))
	case err != nil:
		return fmt.Errorf("the box's init did not answer: %w: %w", err, paddock.Unavailable)
	case !r.Ready:
		return &ToldError{boxinit.Words(r.Error, boxinit.MaxWords), kindOfRunning(r.Kind)}
	}
	return nil
}

// kindOfRunning returns the kind of an error that a running box reports. What took over its init chooses it, so it is
// none by which callers learn that the sandbox is not there, is there already, or has no keeper, or that they gave up.
func kindOfRunning(k paddock.Kind) paddock.Kind {
	switch k {
	case paddock.Invalid, paddock.Denied, paddock.Unsupported, paddock.Exhausted, paddock.Timeout, paddock.Conflict:
		return k
	default:
		return paddock.Internal
	}
}

// kindOfNew is kindOfRunning for a box that is being made. The memory of a snapshot may have been taken over before.
func kindOfNew(k paddock.Kind) paddock.Kind {
	switch k {
	case paddock.NotFound: // what the spec names
		return paddock.Invalid
	case paddock.Unavailable:
		return paddock.Unavailable
	default:
	}
	if told := kindOfRunning(k); told != paddock.Internal {
		return told
	}
	return paddock.Unsupported
}
