package lifetime_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// restless makes a sandbox whose guest lets every pause fail, as one that is taken over can.
func (r *rig) restless(t *testing.T, terms lifetime.Terms) paddock.Sandbox {
	t.Helper()
	sb := r.create(t, "a", terms)
	r.f.set(func() { r.f.boxes["a"].restless = true })
	return sb
}

// A hostError is one in which the guest has no part, as a driver says.
type hostError struct{ error }

func (hostError) OfHost() bool { return true }

// failsBy has each pause of the sandbox fail by this error, if it is still there; nil has it succeed.
func (r *rig) failsBy(err error) {
	r.f.set(func() {
		if b := r.f.boxes["a"]; b != nil {
			b.restless, b.says = false, err
		}
	})
}

func (r *rig) pausedBy(t *testing.T, want lifetime.Why) {
	t.Helper()
	if l, err := r.Terms(t.Context(), "a"); err != nil || l.Paused != want {
		t.Errorf("paused by %q, want %q, %v", l.Paused, want, err)
	}
}

func TestAPauseThatFailsKeepsNoSandboxFromItsEnd(t *testing.T) {
	inBubble(t, map[string]func(t *testing.T){
		"its deadline": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.restless(t, lifetime.Terms{IdlePause: second, Lifetime: 10 * minute})
			pass(10*minute - second)
			r.want(t, "a", paddock.Ready)
			pass(second)
			r.want(t, "a", "")
		},
		"its lease": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.restless(t, lifetime.Terms{IdlePause: second, KeepAlive: 10 * minute})
			pass(10 * minute)
			r.want(t, "a", "")
		},
		"its idle time": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.restless(t, lifetime.Terms{IdlePause: second, IdleRemove: 10 * minute})
			pass(10 * minute)
			r.want(t, "a", "")
		},
		"the longest life": func(t *testing.T) {
			r := set(t, lifetime.Options{Longest: hour})
			r.restless(t, lifetime.Terms{IdlePause: second})
			pass(hour)
			r.want(t, "a", "")
		},
		"the longest life, after a deadline that pauses": func(t *testing.T) {
			r := set(t, lifetime.Options{Longest: hour})
			r.restless(t, lifetime.Terms{IdlePause: second, Lifetime: 10 * minute, OnEnd: lifetime.Pause})
			pass(hour)
			r.want(t, "a", "")
		},
		"of others on a server that starts again": func(t *testing.T) {
			r := set(t, lifetime.Options{Longest: hour})
			r.restless(t, lifetime.Terms{IdlePause: second, Lifetime: 50 * minute})
			pass(10 * minute)
			r.restart(t, 2*hour, lifetime.Options{Longest: hour})
			pass(minute)
			r.want(t, "a", "")
		},
	})
}

// The kind of an error may be one that the guest chose.
func TestASandboxWhoseGuestSaysThatItIsGoneHasItsEnd(t *testing.T) {
	for name, terms := range map[string]lifetime.Terms{
		"its deadline":                    {Lifetime: 10 * minute},
		"its lease":                       {KeepAlive: 10 * minute},
		"the longest life":                {},
		"a deadline that pauses":          {Lifetime: 9 * minute, OnEnd: lifetime.Pause},
		"a lease that pauses":             {KeepAlive: 9 * minute, OnEnd: lifetime.Pause},
		"its deadline, with idle removal": {IdleRemove: minute, Lifetime: 10 * minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := set(t, lifetime.Options{Longest: 10 * minute})
				terms.IdlePause = second
				r.create(t, "a", terms)
				r.f.set(func() { r.f.boxes["a"].says = fmt.Errorf("no such sandbox: %w", paddock.NotFound) })
				pass(5 * minute)
				r.want(t, "a", paddock.Ready)
				if l, err := r.Terms(t.Context(), "a"); err != nil || l.Failure == "" {
					t.Errorf("nobody is told: %+v, %v", l, err)
				}
				pass(5 * minute)
				r.want(t, "a", "")
			})
		})
	}
}

// Code inside can make each of them take five minutes.
func TestPausesAndResumesThatManyAskForDelayNoEnd(t *testing.T) {
	pause := func(ctx context.Context, _ *rig, sb paddock.Sandbox) error { return sb.Pause(ctx) }
	resume := func(ctx context.Context, _ *rig, sb paddock.Sandbox) error { return sb.Resume(ctx) }
	renew := func(ctx context.Context, r *rig, _ paddock.Sandbox) error { return r.Renew(ctx, "a") }
	extend := func(ctx context.Context, r *rig, _ paddock.Sandbox) error { return r.Extend(ctx, "a", second) }
	call := func(ctx context.Context, _ *rig, sb paddock.Sandbox) error { return stat(ctx, sb) }
	const lives, hangs, many = 30 * minute, 5*minute - second, 100
	for name, c := range map[string]struct {
		terms  lifetime.Terms
		paused bool // before they ask
		asked  time.Duration
		ask    func(context.Context, *rig, paddock.Sandbox) error
	}{
		"pauses, the longest life":                     {lifetime.Terms{}, false, 10 * minute, pause},
		"pauses, a deadline":                           {lifetime.Terms{Lifetime: lives - second}, false, 10 * minute, pause},
		"pauses, a lease":                              {lifetime.Terms{KeepAlive: lives - second}, false, 10 * minute, pause},
		"pauses, the longest life after idle removal":  {lifetime.Terms{IdleRemove: 20 * minute}, true, 10 * minute, pause},
		"resumes, the longest life":                    {lifetime.Terms{}, true, 10 * minute, resume},
		"renewals, the longest life":                   {lifetime.Terms{KeepAlive: minute, OnEnd: lifetime.Pause}, false, lives - 2*minute, renew},
		"calls that wake, the longest life":            {lifetime.Terms{IdlePause: minute, Wake: true}, false, lives - 2*minute, call},
		"extensions of one that is at its end, paused": {lifetime.Terms{Lifetime: minute, OnEnd: lifetime.Pause}, false, lives - 2*minute, extend},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := set(t, lifetime.Options{Longest: lives})
				sb := r.create(t, "a", c.terms)
				if c.paused {
					if err := sb.Pause(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				pass(c.asked)
				r.f.set(func() { r.f.boxes["a"].drag, r.f.boxes["a"].sticky = hangs, hangs })
				var all sync.WaitGroup
				for range many {
					all.Go(func() { _ = c.ask(t.Context(), r, sb) })
				}
				pass(lives - c.asked)
				r.want(t, "a", "")
				all.Wait()
			})
		})
	}
	inBubble(t, map[string]func(t *testing.T){
		"pauses that fail, a pause at the deadline that fails too": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := r.restless(t, lifetime.Terms{Lifetime: lives, OnEnd: lifetime.Pause})
			r.f.set(func() { r.f.boxes["a"].drag = hangs })
			pass(lives - minute)
			var all sync.WaitGroup
			for range many {
				all.Go(func() { _ = sb.Pause(t.Context()) })
			}
			pass(minute + hangs + hour + hangs)
			r.want(t, "a", "")
			all.Wait()
		},
		"who asked is told": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := r.create(t, "a", lifetime.Terms{Lifetime: lives, OnEnd: lifetime.Pause})
			r.f.set(func() { r.f.boxes["a"].drag = hangs })
			pass(lives - minute)
			for range 2 { // that which the driver carries out, and that which waits
				go func() { wantKind(t, "pause", sb.Pause(t.Context()), paddock.Conflict, "its time is over") }()
			}
			pass(minute)
			pass(hangs)
			r.pausedBy(t, lifetime.ByDeadline)
			r.want(t, "a", paddock.Paused)
			if err := r.Extend(t.Context(), "a", hour); err != nil { // and nothing is left of that
				t.Error(err)
			}
			if err := sb.Pause(t.Context()); err != nil {
				t.Error(err)
			}
			if err := sb.Resume(t.Context()); err != nil {
				t.Error(err)
			}
		},
	})
}

func TestAPauseAtTheEndThatFailsForAnHourIsARemoval(t *testing.T) {
	terms := lifetime.Terms{IdlePause: second, Lifetime: 10 * minute, OnEnd: lifetime.Pause, Wake: true}
	inBubble(t, map[string]func(t *testing.T){
		"at the deadline": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := r.restless(t, terms)
			pass(11 * minute)
			r.pausedBy(t, lifetime.ByDeadline) // so that no call wakes it
			wantKind(t, "stat", stat(t.Context(), sb), paddock.Conflict, "extend")
			if st, err := sb.Status(t.Context()); err != nil || !strings.Contains(st.Reason, errRestless.Error()) {
				t.Errorf("status: %q, %v", st.Reason, err)
			}
			pass(58 * minute)
			r.want(t, "a", paddock.Ready)
			pass(2 * minute)
			r.want(t, "a", "")
			_, err := r.Open(t.Context(), "a")
			wantKind(t, "open", err, paddock.NotFound, "at its deadline", "could not be paused for 1h0m0s")
		},
		"after a missed renewal": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.restless(t, lifetime.Terms{KeepAlive: 10 * minute, OnEnd: lifetime.Pause})
			pass(11 * minute)
			r.pausedBy(t, lifetime.ByLease)
			pass(60 * minute)
			r.want(t, "a", "")
			_, err := r.Open(t.Context(), "a")
			wantKind(t, "open", err, paddock.NotFound, "lease was not renewed", "could not be paused")
		},
		"unless it succeeds in time": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.restless(t, terms)
			pass(60 * minute)
			r.f.set(func() { r.f.boxes["a"].restless = false })
			pass(100 * hour)
			r.want(t, "a", paddock.Paused)
		},
		"unless a person pauses it": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := r.restless(t, terms)
			pass(60*minute + 30*second)
			r.f.set(func() { r.f.boxes["a"].restless = false })
			if err := sb.Pause(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.f.set(func() { r.f.boxes["a"].restless = true })
			pass(100 * hour)
			r.want(t, "a", paddock.Paused)
		},
		"unless it gets more time": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.restless(t, terms)
			pass(60 * minute)
			if err := r.Extend(t.Context(), "a", hour); err != nil {
				t.Fatal(err)
			}
			pass(hour - second)
			r.want(t, "a", paddock.Ready)
			pass(59 * minute)
			r.want(t, "a", paddock.Ready)
			pass(2 * minute)
			r.want(t, "a", "")
		},
		"but none of a sandbox that was paused long ago, when a server starts again": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.create(t, "a", terms)
			pass(10 * minute)
			r.want(t, "a", paddock.Paused)
			r.restart(t, 100*hour, lifetime.Options{})
			pass(100 * hour)
			r.want(t, "a", paddock.Paused)
		},
		"but the failures of the host do not count": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.restless(t, terms)
			pass(60 * minute) // of which 50 after its deadline
			r.failsBy(fmt.Errorf("pause: %w", hostError{paddock.Exhausted}))
			pass(23 * hour)
			r.want(t, "a", paddock.Ready)
			r.pausedBy(t, lifetime.ByDeadline)
			r.failsBy(errRestless)
			pass(7 * minute)
			r.want(t, "a", paddock.Ready)
			pass(5 * minute)
			r.want(t, "a", "")
			_, err := r.Open(t.Context(), "a")
			wantKind(t, "open", err, paddock.NotFound, "could not be paused for 1h0m0s")
		},
		"and a failure of the host that it can bring about gives it no more than that time": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.restless(t, terms)
			pass(10 * minute)
			for range 2 {
				r.failsBy(errRestless)
				pass(58 * minute)
				r.failsBy(hostError{paddock.Exhausted})
				pass(2 * minute)
			}
			r.want(t, "a", "")
		},
		"but a day of the host's failures is a removal too": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.restless(t, terms)
			r.failsBy(hostError{paddock.Exhausted})
			pass(10*minute + 24*hour - minute)
			r.want(t, "a", paddock.Ready)
			pass(2 * minute)
			r.want(t, "a", "")
			_, err := r.Open(t.Context(), "a")
			wantKind(t, "open", err, paddock.NotFound, "at its deadline", "this host could not save it for 24h0m0s")
		},
		"unless the host can save it in time": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.restless(t, terms)
			r.failsBy(hostError{paddock.Exhausted})
			pass(24 * hour)
			r.failsBy(nil)
			pass(100 * hour)
			r.want(t, "a", paddock.Paused)
		},
		"nor does a driver that opens no sandbox": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.create(t, "a", terms)
			r.f.set(func() { r.f.shut = paddock.Unavailable })
			pass(100 * hour)
			r.f.set(func() { r.f.shut = nil })
			pass(2 * minute)
			r.want(t, "a", paddock.Paused)
		},
		"and none of a sandbox that is only idle": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.restless(t, lifetime.Terms{IdlePause: second})
			pass(100 * hour)
			r.want(t, "a", paddock.Ready)
		},
	})
}
