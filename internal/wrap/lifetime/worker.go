package lifetime

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

const (
	// actTime bounds a call to a driver that hangs.
	actTime = 5 * time.Minute

	// hands is the maximum of concurrent actions of each lane, and handsEach that of one key, if there are keys.
	hands     = 8
	handsEach = hands / 2

	// peek is how long a question waits for a place before it is judged again, because its sandbox may be in
	// use again. With a place it waits only turnTime for its turn, so that it keeps nobody else waiting.
	peek     = 10 * time.Second
	turnTime = time.Second

	// quickTime is how long a sandbox may take to tell what runs in it before it counts as slow.
	quickTime = time.Second

	// look is the interval of checks of the wall clock.
	look = 30 * time.Second

	firstPause   = time.Second
	longestPause = time.Minute
)

// A lane is a kind of actions that wait for each other. A sandbox that does not answer, or late, because its guest is
// hostile or its agent is stopped, takes a place for as long as a call may take. So such places are none of those that
// end sandboxes, and one that failed or was slow to answer takes none of those that were not. In each lane keys take
// turns, because a pause can take as long, and an attacker has as many new sandboxes as its quota allows.
type lane uint8

const (
	noLane    lane = iota
	ends           // the host alone carries them out
	questions      // they ask the sandbox what runs in it, or pause it
	repeats        // the same, after a failure or a slow answer
	lanes
)

// A queue is a heap of entries by due time.
type queue []*entry

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements heap.Interface.
func (q *queue) Push(x any) {
	if e, ok := x.(*entry); ok {
		e.index = len(*q)
		*q = append(*q, e)
	}
}

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	e.index = -1
	return e
}

// schedule makes the worker look at an entry when an action is due.
func (d *Driver) schedule(e *entry) {
	now := time.Now()
	e.mu.Lock()
	what, at := e.next(now)
	if what != nothing {
		at = now
	}
	if e.acting || e.gone {
		at = time.Time{} // the running action schedules it at its end
	}
	spends := e.spends()
	d.mu.Lock()
	defer d.mu.Unlock()
	e.mu.Unlock()
	if spends {
		select {
		case d.spenders <- struct{}{}:
		default: // it is already awake
		}
	}
	if e.index >= 0 {
		heap.Remove(&d.queue, e.index)
	}
	if at.IsZero() || d.closed {
		return
	}
	e.due = at
	heap.Push(&d.queue, e)
	if e.index == 0 {
		select {
		case d.rung <- struct{}{}:
		default: // it is already awake
		}
	}
}

// work carries out due actions until ctx ends.
func (d *Driver) work(ctx context.Context) {
	each := hands
	if d.o.Key != nil {
		each = handsEach
	}
	var free [lanes]*places
	for i := range free {
		free[i] = newPlaces(hands, each)
	}
	timer := time.NewTimer(look)
	defer timer.Stop()
	for {
		if d.clock.jumped() {
			d.log.Warn("the wall clock jumped; deadlines are computed again", "now", d.clock.now())
			for _, e := range d.all() {
				e.jump()
				d.schedule(e)
			}
		}
		e, pause := d.pop(time.Now())
		if e == nil {
			timer.Reset(min(pause, look))
			select {
			case <-d.rung:
			case <-timer.C:
			case <-ctx.Done():
				return
			}
			continue
		}
		d.wg.Go(func() {
			if l, leave := e.enlist(ctx, &free); leave != nil {
				defer leave()
				e.act(ctx, l)
			}
		})
	}
}

// lane returns the lane of the due action, or noLane if none is due. mu is held.
func (e *entry) lane() lane {
	what, _ := e.next(time.Now())
	asks := false
	switch what {
	case nothing:
		return noLane
	case deadline, lapse:
		asks = e.rec.Terms.OnEnd == Pause
	case idleRemove:
		asks = e.rec.Paused == ""
	case repause, overBudget, idlePause:
		asks = true
	case finish, restate, expire, giveUp:
	}
	switch {
	case !asks:
		return ends
	case e.asked.failures > 0 || e.slow:
		return repeats
	}
	return questions
}

// enlist waits until the due action may be carried out: for the entry's turn, and for a place in the action's lane. It
// returns no leave if nothing is due any more, or if ctx ended.
func (e *entry) enlist(ctx context.Context, free *[lanes]*places) (l lane, leave func()) {
	defer e.relent()
	for ctx.Err() == nil {
		e.press()
		e.mu.Lock()
		l = e.lane()
		e.acting = l != noLane
		e.mu.Unlock()
		if l == noLane {
			e.d.schedule(e)
			return l, nil
		}
		if l == ends {
			leave = e.endsNext(ctx, free[l])
		} else {
			leave = e.asksNext(ctx, l, free[l])
		}
		if leave != nil {
			return l, leave
		}
	}
	return l, nil
}

// endsNext takes the turn in the order of those who wait for it, and then a place, which nobody holds who waits for a
// sandbox. It returns nil if ctx ended, or if another lane is the right one by now.
func (e *entry) endsNext(ctx context.Context, free *places) (leave func()) {
	over := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() { e.pressUntil(over) })
	err := e.take(ctx)
	close(over)
	waiting.Wait()
	if err != nil {
		return nil
	}
	t := free.ask(e.key())
	select {
	case <-t.ready:
	case <-ctx.Done():
		free.leave(t)
		e.leave()
		return nil
	}
	return e.confirm(ends, free, t)
}

// pressUntil presses when an end becomes due, because the action that waits may be another one.
func (e *entry) pressUntil(over <-chan struct{}) {
	for {
		patience := time.NewTimer(e.patience())
		select {
		case <-over:
			patience.Stop()
			return
		case <-patience.C:
			e.press()
		}
	}
}

// asksNext takes a place, and then the turn, without which calls go on meanwhile. It returns nil if it does not get the
// turn in time, or if another lane is the right one by now: the sandbox may have reached its end.
func (e *entry) asksNext(ctx context.Context, l lane, free *places) (leave func()) {
	t := free.ask(e.key())
	for waits := true; waits; {
		patience := time.NewTimer(e.patience())
		select {
		case <-t.ready:
			waits = false
		case <-patience.C: // it keeps its position, because else it would never reach a place where many wait
			if e.press(); !e.in(l) {
				free.leave(t)
				return nil
			}
		case <-ctx.Done():
			patience.Stop()
			free.leave(t)
			return nil
		}
		patience.Stop()
	}
	bound, cancel := context.WithTimeout(ctx, turnTime)
	defer cancel()
	if e.take(bound) != nil {
		free.leave(t)
		return nil
	}
	return e.confirm(l, free, t)
}

// key returns the key of the sandbox, with which it waits for a place.
func (e *entry) key() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.rec.Key
}

// in reports whether the due action is one of a lane.
func (e *entry) in(l lane) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lane() == l
}

// patience returns how long a question may wait: not beyond the end of its sandbox.
func (e *entry) patience() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	left := peek
	for _, end := range []time.Time{e.end, e.last, e.sooner} {
		if until := time.Until(end); !end.IsZero() && until > 0 {
			left = min(left, until)
		}
	}
	return left
}

// confirm returns what gives turn and place back. It does so itself, and returns nil, if the due action is not one of
// the lane any more.
func (e *entry) confirm(l lane, free *places, t *ticket) (leave func()) {
	leave = func() { e.leave(); free.leave(t) }
	if !e.in(l) {
		leave()
		return nil
	}
	return leave
}

// pop removes and returns an entry that is due, or returns the time until the next one.
func (d *Driver) pop(now time.Time) (*entry, time.Duration) {
	for {
		d.mu.Lock()
		if len(d.queue) == 0 {
			d.mu.Unlock()
			return nil, look
		}
		e := d.queue[0]
		if pause := e.due.Sub(now); pause > 0 {
			d.mu.Unlock()
			return nil, pause
		}
		heap.Pop(&d.queue)
		d.mu.Unlock()
		e.mu.Lock()
		what, _ := e.next(now)
		act := what != nothing && !e.acting
		e.acting = e.acting || act
		e.mu.Unlock()
		if act {
			return e, 0
		}
		d.schedule(e) // activity has delayed it
	}
}

// act carries out the due action of an entry, and notes the result. The turn and a place of the lane are held.
func (e *entry) act(ctx context.Context, l lane) {
	bound, cancel := context.WithTimeout(ctx, actTime)
	defer cancel()
	err := e.do(bound, l)
	e.mu.Lock()
	e.acting = false
	a := &e.asked
	if l == ends {
		a = &e.own
	}
	if err == nil {
		a.succeeded()
	} else {
		a.failed(err)
	}
	failures, again := a.failures, a.again
	e.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		e.d.log.Error("a sandbox's terms could not be applied", "id", e.id, "failures", failures, "again", again, "err", err)
	}
	e.d.schedule(e)
}

// do carries out the due action, if it is one of the lane. The turn is held.
func (e *entry) do(ctx context.Context, l lane) error {
	e.mu.Lock()
	what, _ := e.next(time.Now())
	if e.lane() != l {
		what = nothing // it is judged again
	}
	onEnd, paused := e.rec.Terms.OnEnd, e.rec.Paused
	e.mu.Unlock()
	switch what {
	case finish:
		return e.remove(ctx)
	case repause:
		return e.pause(ctx)
	case overBudget:
		return e.pauseFor(ctx, ByBudget)
	case giveUp:
		return e.dismiss(ctx, paused)
	case restate:
		return lost(e.save(ctx, func(*Record) {}))
	case expire:
		return e.dismiss(ctx, ByDeadline)
	case deadline:
		return e.finally(ctx, ByDeadline, onEnd)
	case lapse:
		return e.finally(ctx, ByLease, onEnd)
	case idleRemove, idlePause:
		return e.idle(ctx, what, l)
	}
	return nil
}

// lost returns nil if another server was first, because its record counts then.
func lost(err error) error {
	if errors.Is(err, paddock.Conflict) {
		return nil
	}
	return err
}

// finally pauses or removes a sandbox at the end of its time, whatever runs in it.
func (e *entry) finally(ctx context.Context, why Why, onEnd End) error {
	if onEnd == Pause {
		return e.pauseFor(ctx, why)
	}
	return e.dismiss(ctx, why)
}

// idle pauses or removes a sandbox if it is idle. In the lane questions the sandbox must tell in quickTime; a slower one
// is asked again in the lane repeats.
func (e *entry) idle(ctx context.Context, what task, l lane) error {
	e.mu.Lock()
	paused := e.rec.Paused != ""
	e.mu.Unlock()
	if !paused { // in a paused sandbox nothing runs
		began, bound, cancel := time.Now(), ctx, context.CancelFunc(func() {})
		if l == questions {
			bound, cancel = context.WithTimeout(ctx, quickTime)
		}
		last, err := e.busy(bound)
		late := bound.Err() != nil && ctx.Err() == nil
		cancel()
		e.mu.Lock()
		e.slow = time.Since(began) >= quickTime
		if err == nil && last.After(e.active) {
			e.active = last
		}
		e.mu.Unlock()
		switch {
		case err == nil:
		case late && !errors.Is(err, paddock.NotFound):
			return nil // not a failure yet
		default:
			return e.vanished(ctx, err)
		}
	}
	if what == idleRemove {
		return e.dismiss(ctx, ByIdle)
	}
	return e.pauseFor(ctx, ByIdle)
}

// busy returns the last activity of processes, which calls do not show.
func (e *entry) busy(ctx context.Context) (last time.Time, err error) {
	sb, err := e.d.inner.Open(ctx, e.id)
	if err != nil {
		return last, err
	}
	all, err := sb.Processes(ctx)
	if err != nil {
		return last, err
	}
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range all {
		n := e.attached[p.PID]
		if p.Exit != nil {
			delete(e.attached, p.PID) // attachments to an ended process do not count
		}
		if e.rec.Terms.IgnoreProcesses && n == 0 {
			continue
		}
		if p.Exit == nil {
			last = now
		} else if ended := p.Started.Add(max(0, p.Exit.Usage.Wall)); p.Exit.Usage.Wall >= 0 {
			ago := max(0, now.Round(0).Sub(ended))
			if at := now.Add(-ago); at.After(last) {
				last = at
			}
		}
	}
	return last, nil
}

// still reports whether an action is still due by the present state. mu is held.
func (e *entry) still(why Why) bool {
	what, _ := e.next(time.Now())
	switch why {
	case ByDeadline:
		return what == deadline || what == expire || what == giveUp && e.rec.Paused == why
	case ByLease:
		return what == lapse || what == giveUp && e.rec.Paused == why
	case ByBudget:
		return what == overBudget || what == giveUp && e.rec.Paused == why
	case ByIdle:
		return what == idlePause || what == idleRemove
	}
	return false
}

// pauseFor stores a pause and carries it out. Calls that begin meanwhile wait.
func (e *entry) pauseFor(ctx context.Context, why Why) error {
	e.mu.Lock()
	if !e.still(why) {
		e.mu.Unlock()
		return nil
	}
	over := make(chan struct{})
	e.pausing = over
	active := e.d.clock.now().Add(-time.Since(e.active))
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		e.pausing = nil
		e.mu.Unlock()
		close(over)
	}()
	if err := e.save(ctx, func(r *Record) { r.Paused, r.Active = why, active }); err != nil {
		return lost(err)
	}
	e.mu.Lock()
	e.pending, e.unpaused = true, unpaused{}
	e.mu.Unlock()
	err := e.pause(ctx)
	if why == ByBudget { // also if it failed: who waits is told, and nothing new begins
		e.mu.Lock()
		e.account.broke()
		e.mu.Unlock()
	}
	return err
}

// pause carries out a stored pause.
func (e *entry) pause(ctx context.Context) error {
	sb, err := e.d.inner.Open(ctx, e.id)
	by := ofDriver
	if err == nil {
		err = sb.Pause(ctx)
		by = faultOf(err)
	}
	if err != nil {
		e.mu.Lock()
		e.unpaused.failed(by)
		e.mu.Unlock()
		return e.vanished(ctx, fmt.Errorf("pause: %w", err))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pending, e.unpaused = false, unpaused{}
	return nil
}

// faultOf returns whose fault an error of a pause is. A driver says by a method of the error that nothing inside the
// sandbox had a part in it.
func faultOf(err error) fault {
	var says interface{ OfHost() bool }
	if errors.As(err, &says) && says.OfHost() {
		return ofHost
	}
	return ofSandbox
}

// dismiss stores a removal and carries it out. Calls are refused from then on.
func (e *entry) dismiss(ctx context.Context, why Why) error {
	e.mu.Lock()
	ok, paused := e.still(why), e.rec.Paused
	what, _ := e.next(time.Now())
	by := e.unpaused.by
	e.mu.Unlock()
	if !ok {
		return nil
	}
	if err := e.save(ctx, func(r *Record) {
		r.Ending, r.Stubborn, r.Hindered = why, what == giveUp && by == ofSandbox, what == giveUp && by == ofHost
		if what == expire && paused == ByDeadline { // report the end of the longest life as the deadline
			r.Deadline = r.Created.Add(e.d.o.Longest)
		}
	}); err != nil {
		return lost(err)
	}
	e.mu.Lock()
	e.pending = true
	e.mu.Unlock()
	return e.remove(ctx)
}

// remove carries out a stored removal, and keeps the record of its cause.
func (e *entry) remove(ctx context.Context) error {
	sb, err := e.d.inner.Open(ctx, e.id)
	if err == nil {
		err = sb.Remove(ctx)
	}
	if err != nil && !e.missing(ctx, err) {
		return fmt.Errorf("remove: %w", err)
	}
	e.mu.Lock()
	e.gone, e.pending = true, false
	rec := e.rec
	e.mu.Unlock()
	e.d.forget(e)
	rec.Ended = e.d.clock.now()
	version, err := e.d.store.Save(ctx, rec)
	if err != nil { // a restarted driver will notice that the sandbox is gone
		e.d.log.Warn("the removal of a sandbox could not be stored", "id", e.id, "err", err)
	} else {
		rec.Version = version
	}
	e.d.bury(ctx, rec)
	e.d.log.Info("a sandbox was removed", "id", e.id, "why", rec.words(rec.Ending))
	if e.d.o.Ended != nil {
		e.d.o.Ended(rec.Ending)
	}
	return nil
}

// vanished drops the entry if somebody else removed the sandbox. Otherwise it returns err. Only the driver knows that:
// what took over a sandbox may answer each call with NotFound, and would have no end any more.
func (e *entry) vanished(ctx context.Context, err error) error {
	if !e.missing(ctx, err) {
		return err
	}
	e.drop(ctx)
	return nil
}

// missing reports whether err says that the sandbox is gone, and it is.
func (e *entry) missing(ctx context.Context, err error) bool {
	if !errors.Is(err, paddock.NotFound) {
		return false
	}
	_, err = e.d.inner.Open(ctx, e.id)
	return errors.Is(err, paddock.NotFound)
}

// drop drops the entry and the record of a removed sandbox.
func (e *entry) drop(ctx context.Context) {
	e.mu.Lock()
	e.gone = true
	version := e.rec.Version
	e.mu.Unlock()
	e.d.forget(e)
	if err := e.d.store.Delete(ctx, e.id, version); err != nil && !errors.Is(err, paddock.Conflict) {
		e.d.log.Warn("the record of a removed sandbox could not be removed", "id", e.id, "err", err)
	}
}
