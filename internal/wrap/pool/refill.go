package pool

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
)

const (
	// patience is how long Creates that wait for the driver delay the worker.
	patience = time.Second

	// The refill waits after a sandbox was taken, so that the first command does not
	// compete with it: half the duration of the last creation, within these bounds. If at
	// least half of the shelf is left, the wait counts from the last taking.
	leastStart = 100 * time.Millisecond
	mostStart  = 500 * time.Millisecond

	// makeTime and removeTime bound calls to a driver that hangs.
	makeTime   = 2 * time.Minute
	removeTime = time.Minute

	firstPause   = time.Second
	longestPause = time.Minute
	tries        = 10
)

// A retry counts failures.
type retry struct {
	failures int
	next     time.Time // time of the next attempt
}

func (r *retry) failed() {
	pause := min(longestPause, firstPause<<min(r.failures, 10))
	r.failures++
	r.next = time.Now().Add(pause)
}

// work works until ctx ends, one action at a time.
func (p *Pool) work(ctx context.Context) {
	for ctx.Err() == nil {
		do, pause, changed := p.next(time.Now())
		if do != nil {
			do(ctx)
			continue
		}
		timer := time.NewTimer(pause)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// next returns the next action. If there is none, it returns how long that holds, and a
// channel for changes.
func (p *Pool) next(now time.Time) (do func(context.Context), pause time.Duration, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pause = math.MaxInt64
	due := func(at time.Time) bool {
		if !at.After(now) {
			return true
		}
		pause = min(pause, at.Sub(now))
		return false
	}
	for _, s := range p.stocks {
		p.tidy(s, now, due)
	}
	for _, d := range p.doomed {
		if d.retry.failures < tries && due(d.retry.next) {
			return func(ctx context.Context) { p.remove(ctx, d) }, 0, nil
		}
	}
	s := p.emptiest(due)
	if s != nil && p.waiting > 0 {
		if p.held.IsZero() {
			p.held = now
		}
		if !due(p.held.Add(patience)) {
			return nil, pause, p.changed
		}
	}
	p.held = time.Time{}
	if s == nil {
		return nil, pause, p.changed
	}
	return func(ctx context.Context) { p.fill(ctx, s) }, 0, nil
}

// emptiest returns the shelf that needs a sandbox most. mu is held.
func (p *Pool) emptiest(due func(time.Time) bool) *stock {
	var found *stock
	for _, s := range p.stocks {
		since := s.short
		if len(s.ready)*2 >= s.target {
			since = s.taken
		}
		if len(s.ready) >= s.target || s.lost != nil || !due(s.retry.next) || !due(since.Add(s.headStart())) {
			continue
		}
		if found == nil || len(s.ready)*found.target < len(found.ready)*s.target {
			found = s
		}
	}
	return found
}

// headStart returns the wait after a taking. mu is held.
func (s *stock) headStart() time.Duration { return min(max(leastStart, s.took/2), mostStart) }

// fill makes a sandbox for a shelf. The pool chooses the ID, so that List can leave it out
// from the beginning.
func (p *Pool) fill(ctx context.Context, s *stock) {
	spec := normal(s.spec)
	spec.Labels = p.labels(s)
	spec.ID = paddock.ID("pool-" + strings.ToLower(rand.Text()))
	p.mu.Lock()
	p.hidden[spec.ID] = true
	p.mu.Unlock()
	bound, cancel := context.WithTimeout(ctx, makeTime)
	defer cancel()
	began := time.Now()
	sb, err := p.d.Create(bound, spec)
	made, took := err == nil, time.Since(began)
	if made && len(s.warm) > 0 {
		err = run(bound, sb, s.warm)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		s.ready = append(s.ready, kept{sb, time.Now()})
		s.took = took
		s.count.Made++
		s.retry = retry{}
		p.tell()
		return
	case made:
		p.doomed = append(p.doomed, &doomed{sandbox: sb})
	default:
		p.unhide(spec.ID)
	}
	if ctx.Err() != nil {
		return // the pool is closed
	}
	s.count.Failed++
	s.retry.failed()
	// These errors are permanent.
	if s.retry.failures >= tries || errors.Is(err, paddock.Invalid) || errors.Is(err, paddock.Unsupported) {
		s.lost = err
		p.log.Error("sandboxes cannot be made ahead of time; a shelf is given up", "shelf", slices.Index(p.stocks, s), "failures", s.retry.failures, "err", err)
	} else {
		p.log.Warn("a sandbox could not be made ahead of time", "shelf", slices.Index(p.stocks, s), "failures", s.retry.failures, "again", s.retry.next, "err", err)
	}
	p.tell()
}

// run runs the warm-up program of a shelf.
func run(ctx context.Context, sb paddock.Sandbox, args []string) error {
	proc, err := sb.Start(ctx, paddock.Cmd{Args: args})
	if err != nil {
		return fmt.Errorf("warm sandbox %s by %q: %w", sb.ID(), args, err)
	}
	exit, err := proc.Wait(ctx)
	if err == nil && exit.Code != 0 {
		kind := paddock.Invalid // permanent
		if exit.Cause != paddock.Exited {
			kind = paddock.Unavailable
		}
		err = fmt.Errorf("it ended with %d (%s) %s: %w", exit.Code, exit.Cause, exit.Reason, kind)
	}
	if err == nil {
		// Status is called at the handover. The second call is faster, also on a tier with
		// its own kernel.
		_, err = sb.Status(ctx)
	}
	if err != nil {
		return fmt.Errorf("warm sandbox %s by %q: %w", sb.ID(), args, err)
	}
	return nil
}

// A doomed is a sandbox to be removed.
type doomed struct {
	sandbox paddock.Sandbox
	retry   retry // guarded by Pool.mu
}

func (d *doomed) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, removeTime)
	defer cancel()
	if err := d.sandbox.Remove(ctx); err != nil {
		return fmt.Errorf("remove sandbox %s: %w", d.sandbox.ID(), err)
	}
	return nil
}

// remove removes a sandbox in the worker. If that fails, the sandbox stays hidden, and
// Close tries again.
func (p *Pool) remove(ctx context.Context, d *doomed) {
	err := d.remove(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.doomed = slices.DeleteFunc(p.doomed, func(other *doomed) bool { return other == d })
		p.unhide(d.sandbox.ID())
		return
	}
	d.retry.failed()
	if ctx.Err() == nil {
		p.log.Error("a ready sandbox could not be removed", "failures", d.retry.failures, "err", err)
	}
}
