package box

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// stepping records the steps of one sandbox in a journal: each command, with what it changes in writable mounts. A change
// belongs to the command that started last and still runs. What changes while none runs is a step of its own.
type stepping struct {
	journal *step.Journal // nil if it could not be opened, which lost says
	sandbox paddock.ID
	how     *recording
	held    func(context.Context) ([]boxinit.Change, error)
	audit   audit.Sink               // gets an event of each recorded step; nil gets none
	refused func() []paddock.Refusal // what the box's init has refused
	settle  func(context.Context)    // waits for events of the gateway
	reading func() reading           // what the sandbox has used
	watcher step.Watcher             // of the journal; it is told also of what nobody records
	seen    sightings

	// commence is told that a command begins, before anything is noted of its step, and returns what is told that it has ended,
	// when nothing more is. It is nil if nobody wants to know.
	commence func(kind string, command []string) (over func(*paddock.Exit))

	// keeping is told when files are saved that earlier commands have open, and when that is over. It may be nil.
	keeping func(bool)

	turn sync.Mutex // held while a step begins or ends

	lost atomic.Pointer[error] // why nothing is recorded any more: told without mu, which the sandbox can keep busy

	mu     sync.Mutex
	roots  []step.Root    // guarded by mu
	trees  int            // guarded by mu
	number map[int]int    // guarded by mu: the root of a tree
	open   []*openStep    // guarded by mu: oldest first
	ending *openStep      // guarded by mu: it takes changes until the box says that all are told
	ran    bool           // guarded by mu: commands may have files open
	over   bool           // guarded by mu: the sandbox is gone
	wg     sync.WaitGroup // of the steps whose commands run, if this process waits for them
}

// A recording says how the steps of a sandbox are recorded. It stays the same when the sandbox gets another keeper.
type recording struct {
	Journal   string           `json:"journal"` // its directory
	Mode      paddock.UndoMode `json:"mode"`
	Tier      paddock.Tier     `json:"tier"`
	Life      string           `json:"life"` // names the sandbox in the journal, because its ID may be given again
	Protect   []string         `json:"protect,omitempty"`
	Unprotect []string         `json:"unprotect,omitempty"`
	Without   []string         `json:"without,omitempty"` // what is not recorded, in words
	Failed    string           `json:"failed,omitempty"`  // why nothing was recorded any more, of a sandbox that is dead
}

func (r *recording) strict() bool { return r.Mode == paddock.UndoStrict }

// newStepping begins to record a sandbox. A journal that cannot be opened is an error only if everything must be recorded.
// In the sandbox there may be commands already, if it is resumed or has the memory of another one.
func newStepping(id paddock.ID, how *recording, held func(context.Context) ([]boxinit.Change, error), commands bool, w step.Watcher) (*stepping, error) {
	s := &stepping{sandbox: id, how: how, held: held, ran: commands, watcher: w}
	var err error
	if s.journal, err = step.Open(how.Journal, step.Options{Watch: w}); err != nil {
		s.lose(fmt.Errorf("record steps: %w", err))
		if how.strict() {
			return nil, s.failed()
		}
	}
	return s, nil
}

// An openStep is a step that has not ended.
type openStep struct {
	recorder   *step.Recorder
	background bool
	file       bool
	closing    bool // what changes now belongs to another step
	seen       *sighting
	before     reading
	concurrent map[int64]bool
}

// watch implements what Plan.witness is.
func (s *stepping) watch(trees []WitnessedTree) (Witness, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roots, s.number, s.trees = nil, map[int]int{}, len(trees)
	for i, t := range trees {
		if t.Source != "" {
			s.number[i] = len(s.roots)
			s.roots = append(s.roots, step.Root{Path: step.Text(t.Source), Target: step.Text(t.Target)})
		}
	}
	if len(s.roots) == 0 {
		return nil, nil // nothing of the host can change
	}
	return s, nil
}

// Change implements Witness.
func (s *stepping) Change(c boxinit.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Kind == boxinit.ChangeSettled {
		if s.ending != nil {
			s.ending.closing = true
		}
		return nil
	}
	if c.Tree >= s.trees || c.ToTree >= s.trees {
		return fmt.Errorf("a change in the tree %d: %w", max(c.Tree, c.ToTree), paddock.Invalid)
	}
	root, ok := s.number[c.Tree]
	to, toOK := s.number[c.ToTree]
	if !ok || c.Kind.Two() && !toOK || c.Path == "" { // a tree that is not recorded, or the mode of a mount itself
		return nil
	}
	o := s.current()
	if o == nil || s.failed() != nil {
		return s.unrecordedChange(&c, root, to)
	}
	err := told(o.recorder, &c, root, to)
	unknown := err != nil && !step.Refused(err) && c.Kind != boxinit.ChangeFailed
	if kind := paddock.KindOf(err); kind == paddock.Exhausted || kind == paddock.NotFound { // the directory itself is gone
		unknown = false
	}
	switch {
	case unknown && c.Kind.Waits(): // what the host cannot look at is not changed
		return err
	case unknown:
		return s.unseen(o, err.Error(), true)
	case err == nil, s.how.strict(), step.Refused(err):
		return err
	}
	_ = o.recorder.Missed(err.Error()) // if that fails the record is incomplete anyway
	return nil
}

// told tells a recorder of a change, between these roots.
func told(r *step.Recorder, c *boxinit.Change, root, to int) error {
	switch c.Kind {
	case boxinit.ChangeContent:
		return r.Write(root, c.Path)
	case boxinit.ChangeMode:
		return r.Mode(root, c.Path)
	case boxinit.ChangeRemoved:
		return r.Remove(root, c.Path)
	case boxinit.ChangeMade:
		return r.Create(root, c.Path)
	case boxinit.ChangeFailed:
		return r.Failed(root, c.Path)
	case boxinit.ChangeLinked:
		return r.Link(root, c.Path, to, c.To)
	case boxinit.ChangeExchanged:
		return r.Move(root, c.Path, to, c.To, step.Exchange)
	}
	return r.Move(root, c.Path, to, c.To, step.Free)
}

// Missed implements Witness.
func (s *stepping) Missed(why string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.current()
	if o == nil {
		return s.unrecorded()
	}
	if err := o.recorder.Missed(why); err != nil {
		s.lose(fmt.Errorf("record a step: %w", err))
	}
	if s.how.strict() {
		return fmt.Errorf("%s: %w", why, paddock.Exhausted)
	}
	return nil
}

// Unseen implements Witness. What a strict recording does not know, it cannot be without: it ends, and with it all changes.
func (s *stepping) Unseen(why string, made bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.current()
	if o == nil || s.failed() != nil {
		if s.how.strict() {
			return s.failed()
		}
		return step.Tell(s.watcher, step.Watched{Verb: step.Unseen, Done: made})
	}
	return s.unseen(o, why, made)
}

// unseen notes a change that cannot be told for a step. The caller holds s.mu.
func (s *stepping) unseen(o *openStep, why string, made bool) error {
	err := o.recorder.Unseen(why, made)
	if made && s.how.strict() {
		s.lose(fmt.Errorf("record a step: something changed that cannot be told: %s: %w", why, paddock.Conflict))
	}
	return err
}

// unrecordedChange decides about a change that nobody records. The watcher is told of it all the same, of a move as of two
// changes, because nothing is known of what was before. The caller holds s.mu.
func (s *stepping) unrecordedChange(c *boxinit.Change, root, to int) error {
	if s.how.strict() {
		return s.failed()
	}
	if c.Kind == boxinit.ChangeFailed {
		return nil
	}
	verb := map[boxinit.ChangeKind]step.Verb{boxinit.ChangeRemoved: step.Removed, boxinit.ChangeMade: step.Created}[c.Kind]
	if verb == "" {
		verb = step.Edited
	}
	err := step.Tell(s.watcher, step.Watched{Root: root, Path: step.Text(c.Path), Verb: verb, Old: true, Done: !c.Kind.Waits()})
	if c.Kind.Two() {
		_ = step.Tell(s.watcher, step.Watched{Root: to, Path: step.Text(c.To), Verb: step.Edited, Old: true, Done: true}) // it was made already
	}
	return err
}

// current returns the step to which a change belongs now. It begins one if no command runs. Nil means that nothing is
// recorded any more. The caller holds s.mu.
func (s *stepping) current() *openStep {
	for _, o := range slices.Backward(s.open) {
		if !o.closing {
			return o
		}
	}
	if s.failed() != nil || s.over || s.begin("background", nil, true) != nil {
		return nil
	}
	return s.open[len(s.open)-1]
}

// unrecorded decides what a change becomes that nobody records. The caller holds s.mu.
func (s *stepping) unrecorded() error {
	if s.how.strict() {
		return s.failed()
	}
	return nil
}

// failed returns why not everything was recorded, if not. It waits for nothing.
func (s *stepping) failed() error {
	if why := s.lost.Load(); why != nil {
		return *why
	}
	return nil
}

// lose ends the recording, unless it has ended before.
func (s *stepping) lose(why error) { s.lost.CompareAndSwap(nil, &why) }

// begin begins a step. The caller holds s.mu.
func (s *stepping) begin(kind string, command []string, background bool) error {
	if s.over {
		return fmt.Errorf("the sandbox is gone: %w", paddock.Unavailable)
	}
	r, err := s.journal.Begin(context.Background(), step.About{
		Sandbox: string(s.sandbox), Life: s.how.Life, Tier: s.how.Tier, Kind: kind, Command: command, Roots: s.roots, Start: time.Now(),
		Strict: s.how.strict(),
	})
	if err != nil {
		s.lose(fmt.Errorf("record a step: %w", err))
		return s.failed()
	}
	o := &openStep{recorder: r, background: background, file: kind == fileStep, concurrent: map[int64]bool{}}
	for _, other := range s.open {
		o.concurrent[other.recorder.Number()], other.concurrent[r.Number()] = true, true
	}
	o.seen, o.before = s.seen.begin(s.refused()), s.reading()
	s.open = append(s.open, o)
	return nil
}

// command begins the step of a command, and returns what ends it. Files that commands of before have open can change
// without a report, so their contents are saved first.
func (s *stepping) command(ctx context.Context, kind string, command []string) (end endStep, err error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	again := s.ran || len(s.open) > 0
	s.mu.Unlock()
	var held []boxinit.Change
	var unknown error
	if again {
		if held, unknown = s.heldFiles(ctx); unknown != nil && s.how.strict() {
			return nil, unknown
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.open, func(o *openStep) bool { return o.background }); i >= 0 {
		s.finish(s.open[i], nil)
	}
	over := func(*paddock.Exit) {}
	if s.commence != nil {
		over = s.commence(kind, command)
	}
	defer func() {
		if err != nil {
			over(nil)
		}
	}()
	alone := func(_ context.Context, exit *paddock.Exit) { over(exit) } // without a step of its own
	if len(s.roots) == 0 || s.over {
		return alone, nil
	}
	if len(s.open) >= maxOpenSteps && s.failed() == nil {
		return alone, s.crowded(held, unknown)
	}
	if s.failed() == nil {
		_ = s.begin(kind, command, false) // which sets lost
	}
	if s.failed() != nil {
		return alone, s.unrecorded()
	}
	o := s.open[len(s.open)-1]
	if err := s.keep(o, held, unknown); err != nil {
		s.finish(o, nil)
		return nil, fmt.Errorf("a file that an earlier command has open for writing: %w", err)
	}
	return func(_ context.Context, exit *paddock.Exit) { s.ended(o, exit, over) }, nil
}

// heldFiles returns the files that commands have open for writing. An error says that some are not known; the list has the
// others.
func (s *stepping) heldFiles(ctx context.Context) ([]boxinit.Change, error) {
	held, err := s.held(ctx)
	n := len(held)
	held = slices.DeleteFunc(held, func(c boxinit.Change) bool { return c.Path == "" })
	if err == nil && len(held) < n {
		err = fmt.Errorf("a process has a file open for writing that no name in its mount finds: end that process: %w", paddock.Exhausted)
	}
	return held, err
}

// maxOpenSteps bounds the steps of one sandbox that go on at once, because each has a log and contents that are kept.
const maxOpenSteps = 64

// crowded is about a command that begins while too many others run: its changes are those of the newest of them. The caller
// holds s.mu.
func (s *stepping) crowded(held []boxinit.Change, unknown error) error {
	if s.how.strict() {
		return fmt.Errorf("%d commands of the sandbox run, and the steps of more are not recorded: wait for one, or end it: %w", len(s.open), paddock.Exhausted)
	}
	if o := s.current(); o != nil {
		_ = o.recorder.Missed(fmt.Sprintf("more than %d commands ran at once, and what others changed is in this step", maxOpenSteps)) // or it is incomplete
		return s.keep(o, held, unknown)
	}
	return nil
}

// keep saves the files that may change without a report, for the step in which they do. An error is the watcher's, who refuses
// such a change: who has the file open may change it all the same. The caller holds s.mu.
func (s *stepping) keep(o *openStep, held []boxinit.Change, unknown error) (refused error) {
	if s.keeping != nil {
		s.keeping(true)
		defer s.keeping(false)
	}
	if unknown != nil {
		_ = o.recorder.Unseen("it is not known what earlier commands have open: "+unknown.Error(), true) // or it is incomplete anyway
	}
	if len(held) >= boxinit.HeldMax {
		_ = o.recorder.Unseen("earlier commands have too many files open", true) // as above
	}
	for _, c := range held {
		root, ok := s.number[c.Tree]
		if !ok {
			continue
		}
		switch err := o.recorder.Write(root, c.Path); {
		case err == nil, errors.Is(err, paddock.Exhausted):
		case step.Refused(err), step.Elsewhere(err): // it was moved or removed since, which the watcher was told by its names
			_ = o.recorder.Missed(err.Error()) // as above
			if refused == nil && step.Refused(err) {
				refused = err
			}
		default:
			_ = s.unseen(o, err.Error(), true) // as above
		}
	}
	return refused
}

// ended ends the step of a command. Processes that the command has left may have files open: what they still change
// belongs to the next step, in which the contents are saved before this step looks at them for the last time.
func (s *stepping) ended(o *openStep, exit *paddock.Exit, over func(*paddock.Exit)) {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	s.ending = o
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), heldTime)
	defer cancel()
	s.settle(ctx)
	held, err := s.heldFiles(ctx) // and all that the command did is told
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = nil
	if err != nil || len(held) > 0 { // otherwise nothing is left that could change something
		if next := s.current(); next != nil {
			_ = s.keep(next, held, err) // what is open was allowed before, and nothing begins
		}
	}
	s.finish(o, exit)
	over(exit) // before another command begins
}

// finish ends a step. The caller holds s.mu.
func (s *stepping) finish(o *openStep, exit *paddock.Exit) {
	i := slices.Index(s.open, o)
	if i < 0 {
		return
	}
	s.open = slices.Delete(s.open, i, i+1)
	s.ran = true
	out := step.Outcome{Exit: statusOf(exit), Concurrent: slices.Sorted(maps.Keys(o.concurrent)), Use: useOf(o.before, s.reading(), exit)}
	s.seen.end(o.seen, s.refused(), &out)
	r, err := o.recorder.End(context.Background(), out)
	if err == nil && (o.background || o.file) && r.Changed == 0 && r.Missed == 0 {
		err = s.journal.Remove(context.Background(), r.Number)
	} else if err == nil {
		err = s.vouch(r, exit)
	}
	if err != nil {
		s.lose(fmt.Errorf("record a step: %w", err))
	}
}

// unknownExit is the exit of a step whose command did not end before the step did.
const unknownExit = -1

// statusOf returns an exit as a shell tells it.
func statusOf(exit *paddock.Exit) int {
	if exit == nil {
		return unknownExit
	}
	return exit.Code
}

// close ends all steps, and the recording. The sandbox is gone, or its box is, and another process records what comes.
func (s *stepping) close() {
	if s == nil {
		return
	}
	s.wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.open) > 0 {
		s.finish(s.open[0], nil)
	}
	if s.over {
		return
	}
	s.over = true
	if s.journal != nil {
		_ = s.journal.Close() // it was only read and written by name
	}
}

// trim removes old records. Nobody waits for it.
func (s *stepping) trim() error {
	if s == nil {
		return nil
	}
	j, err := step.Open(s.how.Journal, step.Options{})
	if err != nil {
		return err
	}
	_, _, err = j.Trim(context.Background())
	return errors.Join(err, j.Close())
}

// Kinds of steps.
const (
	runStep  = "run"
	fileStep = "file" // a call of the driver's about files
)

// A recordedProcess is a command whose step is recorded.
type recordedProcess struct {
	paddock.Process
	recorded <-chan struct{} // closed when its step has ended
}

// Wait implements paddock.Process. After it the step is in the journal.
func (p recordedProcess) Wait(ctx context.Context) (paddock.Exit, error) {
	exit, err := p.Process.Wait(ctx)
	if err != nil {
		return exit, err
	}
	select {
	case <-p.recorded:
		return exit, nil
	case <-ctx.Done():
		return exit, fmt.Errorf("wait for the record of a step: %w: %w", ctx.Err(), EndKind(ctx.Err()))
	}
}
