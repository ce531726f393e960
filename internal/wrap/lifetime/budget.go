package lifetime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/allowance"
)

const (
	// weighEvery is the time between two looks at what the sandboxes with a budget use.
	weighEvery = time.Second

	// weighTime bounds a look.
	weighTime = 10 * time.Second

	// blindLooks is how many looks in a row may tell nothing before a sandbox is paused, because nobody knows what it uses.
	blindLooks = 5

	// noteEvery is how often what a sandbox uses is stored. Counters of the tier that go on survive without it.
	noteEvery = 10 * time.Second
)

// An account is what is known of the use of a sandbox with a budget.
type account struct {
	meter   allowance.Meter
	noted   time.Time // when it was stored
	at      time.Time // of the last look
	blind   int       // looks in a row that told nothing
	looking bool
	solvent context.Context    // ends when the sandbox was paused because of its budget
	broke   context.CancelFunc // ends solvent
}

func newAccount(m allowance.Meter) account {
	m.Still()
	a := account{meter: m, noted: time.Now()}
	a.solvent, a.broke = context.WithCancel(context.Background())
	return a
}

// reopen undoes broke.
func (a *account) reopen() {
	if a.blind = 0; a.solvent.Err() != nil {
		a.solvent, a.broke = context.WithCancel(context.Background())
	}
}

// spends reports whether what the sandbox uses counts. A pause that was not carried out may be none. mu is held.
func (e *entry) spends() bool {
	return e.rec.Terms.Budget.Bounds() && !e.gone && e.rec.Ending == "" && (e.rec.Paused == "" || e.pending)
}

// overspent reports whether the sandbox is to be paused because of its budget. mu is held.
func (e *entry) overspent() bool {
	switch e.rec.Paused {
	case ByBudget, ByDeadline, ByLease: // it is, or is about to be
		return false
	case ByPerson, ByIdle:
	}
	return e.spends() && (e.account.blind >= blindLooks || e.exceeded() != allowance.Excess{})
}

// tries reports whether another attempt may be made now, grace period or not: what is used up is so by no clock.
func (a *attempts) tries(now time.Time, soonest *time.Duration) bool {
	if a.again.After(now) {
		*soonest = min(*soonest, a.again.Sub(now))
		return false
	}
	return true
}

// exceeded returns which budget is used up. mu is held.
func (e *entry) exceeded() allowance.Excess { return e.rec.Terms.Budget.Exceeded(e.account.meter.Use) }

// spent says why the sandbox is or will be paused because of its budget. mu is held.
func (e *entry) spent() string {
	if x := e.exceeded(); x != (allowance.Excess{}) {
		return fmt.Sprintf("%s (%s were used)", x.Words(), x.Used)
	}
	if e.account.blind >= blindLooks {
		return "what it uses of its budget cannot be measured any more"
	}
	return "of its budget, which was used up or could not be measured"
}

// unpaid returns an error if the budget is used up, so that nothing may run. mu is held.
func (e *entry) unpaid() error {
	x := e.exceeded()
	if x == (allowance.Excess{}) {
		return nil
	}
	return fmt.Errorf("sandbox %s: %s; raise the budget %s: %w", e.id, e.spent(), x.Name, paddock.Exhausted)
}

// weigher looks at what sandboxes with a budget use, until ctx ends. It waits while there is none.
func (d *Driver) weigher(ctx context.Context) {
	each := hands
	if d.o.Key != nil {
		each = handsEach
	}
	free := newPlaces(hands, each)
	var looks sync.WaitGroup
	defer looks.Wait()
	timer := time.NewTimer(weighEvery)
	defer timer.Stop()
	for {
		some := false
		for _, e := range d.all() {
			due, later := e.weighs()
			if some = some || later; due {
				looks.Go(func() { e.weigh(ctx, free) })
			}
		}
		if some {
			timer.Reset(weighEvery)
		} else {
			timer.Stop()
		}
		select {
		case <-timer.C:
		case <-d.spenders:
		case <-ctx.Done():
			return
		}
	}
}

// weighs reports whether to look at a sandbox now, and whether to do so again later. The caller looks.
func (e *entry) weighs() (due, later bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.spends() {
		return false, false
	}
	due = !e.account.looking && time.Since(e.account.at) >= weighEvery/2 // a look takes a while
	e.account.looking = e.account.looking || due
	return due, true
}

// weigh looks once at what a sandbox uses.
func (e *entry) weigh(ctx context.Context, free *places) {
	t := free.ask(e.key())
	defer free.leave(t)
	select {
	case <-t.ready:
	case <-ctx.Done():
		return
	}
	bound, cancel := context.WithTimeout(ctx, weighTime)
	defer cancel()
	var st paddock.Status
	sb, err := e.d.inner.Open(bound, e.id)
	if err == nil {
		st, err = sb.Status(bound)
	}
	if ctx.Err() != nil {
		return
	}
	e.mu.Lock()
	e.count(&st, err)
	over, late := e.overspent(), time.Since(e.account.noted) >= noteEvery
	e.mu.Unlock()
	switch {
	case over:
		e.d.schedule(e)
	case late:
		e.note(ctx)
	}
}

// count adds what a look has told. mu is held.
func (e *entry) count(st *paddock.Status, err error) {
	a := &e.account
	a.looking, a.at = false, time.Now()
	switch {
	case err == nil && st.State != paddock.Ready: // it uses nothing
		a.meter.Still()
	case err != nil || e.rec.Terms.Budget.Unmeasured(st) != "":
		a.blind++
	default:
		a.blind = 0
		a.meter.Look(st, time.Now())
	}
}

// note stores what a sandbox has used, unless something else is done with its record.
func (e *entry) note(ctx context.Context) {
	bound, cancel := context.WithTimeout(ctx, turnTime)
	defer cancel()
	if e.take(bound) != nil {
		return
	}
	defer e.leave()
	e.mu.Lock()
	ok := e.spends()
	e.mu.Unlock()
	if !ok {
		return
	}
	if err := lost(e.save(bound, func(*Record) {})); err != nil {
		e.d.log.Warn("what a sandbox used could not be stored", "id", e.id, "err", err)
	}
}

// measurable refuses a budget of what nothing measures in a sandbox.
func measurable(b allowance.Budget, st *paddock.Status) error {
	if what := b.Unmeasured(st); what != "" {
		return fmt.Errorf("budget: nothing measures %s in a sandbox of the tier %s here; leave its budget or price out: %w", what, st.Tier, paddock.Unsupported)
	}
	return nil
}

// Raise implements [Lessor]. It raises the budget of a sandbox, or sets it. A sandbox that was paused because of its
// budget resumes. A budget that is used up already is a Conflict.
func (d *Driver) Raise(ctx context.Context, id paddock.ID, by allowance.Raise) error {
	sb, err := d.Open(ctx, id)
	if err != nil {
		return err
	}
	st, err := sb.Status(ctx)
	if err != nil {
		return err
	}
	if err := d.can(ctx, Terms{Budget: allowance.Budget{CPU: 1}}, st.Tier); err != nil {
		return err
	}
	return d.alter(ctx, id, []Why{ByBudget}, func(e *entry, r *Record) error {
		b, err := r.Terms.Budget.Raised(by)
		if err != nil {
			return fmt.Errorf("sandbox %s: %w", id, err)
		}
		if st.State == paddock.Ready { // a paused one is not measured
			if err := measurable(b, &st); err != nil {
				return err
			}
		}
		if x := b.Exceeded(e.account.meter.Use); x != (allowance.Excess{}) {
			return fmt.Errorf("sandbox %s: %s even so, of %s %s were used: %w", id, x.Words(), x.Name, x.Used, paddock.Conflict)
		}
		r.Terms.Budget = b
		return nil
	})
}

// waitFor waits for the end of the process, or until the sandbox is paused because of its budget. That is an error of kind
// Exhausted. The process goes on when the sandbox does.
func (e *entry) waitFor(ctx context.Context, p paddock.Process) (paddock.Exit, error) {
	e.mu.Lock()
	solvent := e.account.solvent
	e.mu.Unlock()
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(solvent, cancel)()
	exit, err := p.Wait(within)
	if err == nil || ctx.Err() != nil || solvent.Err() == nil {
		return exit, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone || e.rec.Ending != "" {
		return exit, err
	}
	return exit, fmt.Errorf("sandbox %s was paused: %s: %w", e.id, e.spent(), paddock.Exhausted)
}

// settleBudget makes a pause at the end of a sandbox's time one because of its budget, if that is used up: to extend or
// renew it is not enough then. The turn is held.
func (e *entry) settleBudget(ctx context.Context) error {
	e.mu.Lock()
	unpaid := e.unpaid()
	e.mu.Unlock()
	if unpaid == nil {
		return nil
	}
	return errors.Join(unpaid, lost(e.save(ctx, func(r *Record) { r.Paused = ByBudget })))
}
