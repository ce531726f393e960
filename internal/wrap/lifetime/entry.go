package lifetime

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// An entry is the driver's state of one sandbox.
type entry struct {
	id paddock.ID
	d  *Driver

	// turn is held to change the state or the record of the sandbox.
	turn chan struct{}

	mu       sync.Mutex
	rec      Record              // guarded by mu; as stored
	made     time.Time           // guarded by mu; creation, monotonic
	end      time.Time           // guarded by mu; deadline, monotonic
	last     time.Time           // guarded by mu; end of the longest life, monotonic; zero is never
	sooner   time.Time           // guarded by mu; end after a jump of the wall clock made it earlier
	unsure   bool                // guarded by mu; end is from a wall clock that may be wrong, and has not passed
	shift    bool                // guarded by mu; the record must be adjusted to the wall clock
	renewed  time.Time           // guarded by mu
	active   time.Time           // guarded by mu; end of the last activity
	calls    int                 // guarded by mu; calls in progress
	attached map[paddock.PID]int // guarded by mu; callers attached to each process
	pending  bool                // guarded by mu; the action in the record was not carried out yet
	pausing  chan struct{}       // guarded by mu; closed at the end of the pause
	waking   *waking             // guarded by mu
	gone     bool                // guarded by mu; it was removed
	slow     bool                // guarded by mu; it took long to tell what runs in it, the last time
	settled  time.Time           // guarded by mu; end of the grace period, before which nothing is due
	own      attempts            // guarded by mu; at actions that the host carries out alone
	asked    attempts            // guarded by mu; at actions that need the sandbox
	unpaused unpaused            // guarded by mu; failures of the stored pause
	account  account             // guarded by mu; what it uses of its budget
	acting   bool                // guarded by mu; an action is in progress
	people   context.Context     // guarded by mu; ends while the end of the sandbox's time waits for the turn
	hurry    context.CancelFunc  // guarded by mu; ends people

	due   time.Time // guarded by Driver.mu; not later than the next action
	index int       // guarded by Driver.mu; index in the heap, or -1
}

// Attempts are consecutive failures of actions. Those that need the sandbox, which may make them fail, delay none that
// the host carries out alone.
type attempts struct {
	failures int
	failure  error     // the last one
	again    time.Time // time of the next attempt
}

// failed notes a failure.
func (a *attempts) failed(err error) {
	a.again = time.Now().Add(min(longestPause, firstPause<<min(a.failures, 10)))
	a.failures++
	a.failure = err
}

// succeeded notes a success.
func (a *attempts) succeeded() { a.failures, a.failure = 0, nil }

// trouble returns the attempts to tell callers of, which may have no failure. mu is held.
func (e *entry) trouble() attempts {
	if e.own.failure != nil {
		return e.own
	}
	return e.asked
}

// A waking is a resume that callers may wait for.
type waking struct {
	done chan struct{}
	err  error // set before done is closed
}

func newEntry(d *Driver, rec Record) *entry {
	now := time.Now()
	e := &entry{id: rec.ID, d: d, turn: make(chan struct{}, 1), rec: rec, made: now, renewed: now, active: now, index: -1}
	e.people, e.hurry = context.WithCancel(context.Background())
	e.account = newAccount(rec.Spent)
	return e
}

// take waits for the entry's turn.
func (e *entry) take(ctx context.Context) error {
	select {
	case e.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("sandbox %s: wait for the running operation: %w", e.id, stopped(ctx))
	}
}

func (e *entry) leave() { <-e.turn }

// errOver is why a pause or a resume that somebody asked for was given up.
var errOver = errors.New("its time is over, and it is about to be paused or removed")

// wished returns the context of a pause or a resume that somebody asked for. Code inside can make it hang, and many can
// wait for it. So it ends when the sandbox's time does, which waits for none of them.
func (e *entry) wished(ctx context.Context) (context.Context, context.CancelFunc) {
	e.mu.Lock()
	people := e.people
	e.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(people, func() { cancel(errOver) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// takeWished is take for what has a context of wished.
func (e *entry) takeWished(ctx context.Context) error {
	if err := e.take(ctx); err != nil {
		return err
	}
	e.mu.Lock()
	due := e.ends(time.Now()) || e.people.Err() != nil
	e.mu.Unlock()
	if due {
		e.leave()
		return fmt.Errorf("sandbox %s: %w: %w", e.id, errOver, paddock.Conflict)
	}
	return nil
}

// cutShort returns the error of a driver's call that has a context of wished.
func (e *entry) cutShort(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errOver) {
		return fmt.Errorf("sandbox %s: %w", e.id, stopped(ctx))
	}
	return err
}

// press ends the pauses and resumes that somebody asked for, if an end is due.
func (e *entry) press() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ends(time.Now()) {
		e.hurry()
	}
}

// relent undoes press, when the end has its turn.
func (e *entry) relent() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.people.Err() != nil {
		e.people, e.hurry = context.WithCancel(context.Background())
	}
}

// stopped adds a kind to the error of a context.
func stopped(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errOver) {
		return fmt.Errorf("%w: %w", errOver, paddock.Conflict)
	}
	kind := paddock.Canceled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		kind = paddock.Timeout
	}
	return fmt.Errorf("%w: %w", kind, ctx.Err())
}

// begin counts a call as activity until done is called. With wake, the call needs a running
// sandbox.
func (e *entry) begin(ctx context.Context, wake bool) (done func(), err error) {
	for {
		wait, err := e.enter(wake)
		if err != nil {
			return nil, err
		}
		if wait == nil {
			return sync.OnceFunc(e.exit), nil
		}
		select {
		case <-wait.done:
			if wait.err != nil {
				return nil, fmt.Errorf("wake sandbox %s: %w", e.id, wait.err)
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("wait until sandbox %s runs: %w", e.id, stopped(ctx))
		}
	}
}

// enter counts a call, or returns the resume to wait for.
func (e *entry) enter(wake bool) (*waking, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.over(); err != nil {
		return nil, err
	}
	if e.pausing != nil {
		return &waking{done: e.pausing}, nil
	}
	if !wake {
		e.calls++
		return nil, nil
	}
	if err := e.unpaid(); err != nil {
		return nil, err
	}
	switch e.rec.Paused {
	case ByBudget: // and nobody knew what it used
		return nil, fmt.Errorf("sandbox %s was paused because %s; resume it: %w", e.id, e.spent(), paddock.Conflict)
	case ByIdle:
		if e.rec.Terms.Wake {
			return e.wake()
		}
		return nil, fmt.Errorf("sandbox %s was paused because it was idle for %v; resume it: %w", e.id, e.rec.Terms.IdlePause, paddock.Conflict)
	case ByDeadline:
		return nil, fmt.Errorf("sandbox %s was paused %s; extend it: %w", e.id, e.rec.words(ByDeadline), paddock.Conflict)
	case ByLease:
		return nil, fmt.Errorf("sandbox %s was paused %s; renew it: %w", e.id, e.rec.words(ByLease), paddock.Conflict)
	}
	e.calls++
	return nil, nil
}

// over returns an error if the sandbox no longer accepts calls. mu is held.
func (e *entry) over() error {
	if why := e.rec.Ending; why != "" && why != ByPerson {
		what := "is being removed"
		if e.gone {
			what = "was removed"
		}
		return fmt.Errorf("sandbox %s %s %s: %w", e.id, what, e.rec.words(why), paddock.Unavailable)
	}
	return nil
}

// exit ends a call that enter counted.
func (e *entry) exit() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls--
	e.active = time.Now()
}

// attach counts callers that are attached to a process.
func (e *entry) attach(pid paddock.PID, n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.attached == nil {
		e.attached = make(map[paddock.PID]int)
	}
	if e.attached[pid] += n; e.attached[pid] <= 0 {
		delete(e.attached, pid)
	}
	e.active = time.Now()
}

// wake starts a resume unless one is in progress. mu is held.
func (e *entry) wake() (*waking, error) {
	if e.waking != nil {
		return e.waking, nil
	}
	w := &waking{done: make(chan struct{})}
	if !e.d.spawn(func(ctx context.Context) {
		err := e.resume(ctx)
		e.mu.Lock()
		defer e.mu.Unlock()
		w.err, e.waking = err, nil
		close(w.done)
	}) {
		return nil, errClosed()
	}
	e.waking = w
	return w, nil
}

// resume resumes a sandbox that was paused because it was idle.
func (e *entry) resume(ctx context.Context) error {
	ctx, done := e.wished(ctx)
	defer done()
	bound, cancel := context.WithTimeout(ctx, actTime)
	defer cancel()
	if err := e.takeWished(bound); err != nil {
		return err
	}
	defer e.leave()
	e.mu.Lock()
	paused, err := e.rec.Paused, e.over()
	e.mu.Unlock()
	if err != nil || paused != ByIdle {
		return err // the waiting callers check again
	}
	sb, err := e.d.inner.Open(bound, e.id)
	if err == nil {
		err = wake(bound, sb)
	}
	if err != nil {
		return e.cutShort(bound, err)
	}
	e.runs(ctx)
	return nil
}

// runs notes that the sandbox runs. The turn is held. If the record cannot be stored, a
// restarted driver takes the sandbox for paused and resumes it at the next call, which does
// no harm.
func (e *entry) runs(ctx context.Context) {
	e.mu.Lock()
	e.active, e.renewed = time.Now(), time.Now()
	paused := e.rec.Paused
	e.pending, e.unpaused = false, unpaused{}
	e.account.reopen()
	e.account.meter.Still()
	e.own.succeeded()
	e.asked.succeeded()
	e.mu.Unlock()
	if paused == "" {
		return
	}
	if err := e.save(ctx, func(r *Record) { r.Paused, r.Active = "", time.Time{} }); err != nil {
		e.d.log.Warn("the state of a running sandbox could not be stored", "id", e.id, "err", err)
		e.mu.Lock()
		e.rec.Paused, e.rec.Active = "", time.Time{}
		e.mu.Unlock()
	}
	e.d.schedule(e)
}

// save stores a changed record. The turn is held. After a conflict, the entry has the
// stored record.
func (e *entry) save(ctx context.Context, change func(*Record)) error {
	e.mu.Lock()
	rec := e.rec
	e.restate(&rec)
	if rec.Terms.Budget.Bounds() {
		rec.Spent, e.account.noted = e.account.meter, time.Now()
	}
	e.mu.Unlock()
	change(&rec)
	rec.Written = e.d.clock.now()
	version, err := e.d.store.Save(ctx, rec)
	if errors.Is(err, paddock.Conflict) {
		return errors.Join(err, e.reload(ctx))
	}
	if err != nil {
		return fmt.Errorf("store the lifetime of sandbox %s: %w", e.id, err)
	}
	rec.Version = version
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rec, e.shift = rec, false
	return nil
}

// restate adjusts a record to the wall clock: the creation, and the deadline unless it is
// by that clock. mu is held.
func (e *entry) restate(rec *Record) {
	if e.unsure {
		return
	}
	now := e.d.clock.now()
	if !rec.Wall && !e.end.IsZero() {
		rec.Deadline = now.Add(time.Until(e.end))
	}
	if created := now.Add(-time.Since(e.made)); created.Sub(rec.Created).Abs() >= leap {
		rec.Created = created
	}
}

// reload loads the record that another server wrote.
func (e *entry) reload(ctx context.Context) error {
	rec, err := e.d.store.Get(ctx, e.id)
	if errors.Is(err, paddock.NotFound) {
		rec = Record{ID: e.id, Created: e.d.clock.now()} // it has no terms any more
	} else if err != nil {
		return fmt.Errorf("read the lifetime of sandbox %s: %w", e.id, err)
	}
	e.mu.Lock()
	e.rec = rec
	e.reckon()
	e.mu.Unlock()
	e.d.schedule(e)
	return nil
}

// reckon converts the record's deadline to the monotonic clock. mu is held.
func (e *entry) reckon() {
	e.end, e.sooner = time.Time{}, time.Time{}
	if e.rec.Deadline.IsZero() {
		e.last = time.Time{}
		return
	}
	now, left := time.Now(), e.d.clock.left(e.rec, e.rec.Deadline)
	e.end = now.Add(left)
	if longest := e.d.o.Longest; longest > 0 && e.last.IsZero() {
		if !e.rec.Wall { // the deadline was adjusted to the wall clock, but the creation not by older servers
			left = max(left, e.d.clock.left(e.rec, e.rec.Created.Add(longest)))
		} else {
			left = e.d.clock.left(e.rec, e.rec.Created.Add(longest))
		}
		e.last = now.Add(left)
	}
}

// found sets the times of an entry from an earlier process. Nothing is due before the end
// of the grace period. mu is held, or the entry is not shared yet.
func (e *entry) found() {
	e.reckon()
	now, grace := time.Now(), e.d.o.Grace
	e.settled = now.Add(grace)
	e.made = now.Add(-max(0, e.d.clock.now().Sub(e.rec.Created)))
	e.unsure = !e.end.IsZero() && e.end.Before(e.settled)
	e.pending = e.rec.Ending != "" || e.rec.Paused != "" && e.rec.Paused != ByPerson
	if e.rec.Paused != "" && !e.rec.Active.IsZero() {
		e.active = now.Add(-max(0, e.d.clock.now().Sub(e.rec.Active)))
	}
}

// jump sets the times again after the wall clock has jumped.
func (e *entry) jump() {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.end.IsZero() || e.gone:
	case e.unsure && time.Since(e.d.clock.base) > graces*e.d.o.Grace: // the clock does not settle
	case e.unsure:
		e.found()
	case e.rec.Wall:
		grace := time.Now().Add(e.d.o.Grace)
		e.sooner = time.Now().Add(e.rec.Deadline.Sub(e.d.clock.now()))
		if e.sooner.Before(grace) {
			e.sooner = grace
		}
	default:
		e.shift = true
	}
}

// A task is an action on a sandbox.
type task uint8

const (
	nothing task = iota
	finish       // carry out the removal in the record
	restate      // store the adjusted record
	expire       // the longest life is over, whatever the terms
	deadline
	lapse
	idleRemove
	giveUp // the pause in the record failed for too long: remove the sandbox
	repause
	overBudget
	idlePause
)

// ends reports whether the end of the sandbox's time is due. mu is held.
func (e *entry) ends(now time.Time) bool {
	switch what, _ := e.next(now); what {
	case finish, expire, deadline, lapse, giveUp:
		return true
	case nothing, restate, idleRemove, repause, overBudget, idlePause:
	}
	return false
}

// next returns the next action, and when to ask again, or zero for never. mu is held. An end stands before a pause in
// the record that was not carried out, because the sandbox can make that fail for ever.
func (e *entry) next(now time.Time) (task, time.Time) {
	if e.gone {
		return nothing, time.Time{}
	}
	soonest := time.Duration(math.MaxInt64)
	due := func(a *attempts, at time.Time) bool {
		for _, earliest := range []time.Time{e.settled, a.again} {
			if at.Before(earliest) {
				at = earliest
			}
		}
		soonest = min(soonest, at.Sub(now))
		return !at.After(now)
	}
	t := e.rec.Terms
	paused := e.rec.Paused
	end := e.end
	if !e.sooner.IsZero() && e.sooner.Before(end) {
		end = e.sooner
	}
	quiet := e.active
	if e.calls > 0 {
		quiet = now
	}
	ending, idling := &e.own, &e.own
	if t.OnEnd == Pause {
		ending = &e.asked
	}
	if paused == "" {
		idling = &e.asked
	}
	final := paused == ByDeadline || paused == ByLease
	over := e.unpaused.over()
	switch {
	case e.rec.Ending != "":
		if e.pending && due(&e.own, time.Time{}) {
			return finish, now
		}
	case e.shift && due(&e.own, time.Time{}):
		return restate, now
	case !e.last.IsZero() && due(&e.own, e.last):
		return expire, now
	case !end.IsZero() && paused != ByDeadline && due(ending, end):
		return deadline, now
	case t.KeepAlive > 0 && !final && due(ending, e.renewed.Add(t.KeepAlive)):
		return lapse, now
	case t.IdleRemove > 0 && due(idling, quiet.Add(t.IdleRemove)):
		return idleRemove, now
	case e.pending && (final || paused == ByBudget) && !over.IsZero() && due(&e.own, over):
		return giveUp, now
	case e.overspent() && e.asked.tries(now, &soonest):
		return overBudget, now
	case e.pending && due(&e.asked, time.Time{}):
		return repause, now
	case t.IdlePause > 0 && paused == "" && due(&e.asked, quiet.Add(t.IdlePause)):
		return idlePause, now
	}
	if soonest == math.MaxInt64 {
		return nothing, time.Time{}
	}
	return nothing, now.Add(soonest)
}
