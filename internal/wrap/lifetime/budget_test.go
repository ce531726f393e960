package lifetime_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/allowance"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// busy uses a processor, 1 KiB of network per second and half a GiB of memory while it is ready. What it uses goes on
// where it was after a pause.
func busy() func(*paddock.Status) {
	var used time.Duration
	last := time.Now()
	return func(st *paddock.Status) {
		if st.State == paddock.Ready {
			used += time.Since(last)
		}
		last = time.Now()
		st.Usage = paddock.Usage{CPU: used, Memory: 1 << 29}
		st.Traffic = &paddock.Traffic{In: 1000 * int64(used/time.Second), Out: 24 * int64(used/time.Second)}
	}
}

func cpu(d time.Duration) lifetime.Terms {
	return lifetime.Terms{Budget: allowance.Budget{CPU: d}}
}

// spender makes a sandbox that is busy.
func spender(t *testing.T, r *rig, terms lifetime.Terms) paddock.Sandbox {
	t.Helper()
	r.f.uses = busy()
	return r.create(t, "a", terms)
}

// run starts a command, waits for its end in a goroutine, and returns what the wait gave.
func run(t *testing.T, sb paddock.Sandbox) <-chan error {
	t.Helper()
	p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	go func() {
		_, err := p.Wait(ctx)
		told <- err
	}()
	return told
}

func more(d time.Duration) allowance.Raise {
	return allowance.Raise{Add: allowance.Budget{CPU: d}}
}

func TestBudget(t *testing.T) {
	inBubble(t, map[string]func(t *testing.T){
		"a sandbox is paused when its budget is used up, and who waits is told why": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := spender(t, r, cpu(minute))
			told := run(t, sb)
			pass(minute - 2*second)
			r.want(t, "a", paddock.Ready)
			pass(4 * second)
			r.want(t, "a", paddock.Paused)
			wantKind(t, "wait", <-told, paddock.Exhausted, "sandbox a was paused: its budget of processor time, 1m0s, is used up (1m")
			st, err := sb.Status(t.Context())
			if err != nil || st.State != paddock.Paused || st.Reason[:45] != "its budget of processor time, 1m0s, is used u" {
				t.Errorf("%+v, %v", st, err)
			}
			if l, err := r.Terms(t.Context(), "a"); err != nil || l.Paused != lifetime.ByBudget || l.Over != "cpu" || l.Use.CPU < minute {
				t.Errorf("%+v, %v", l, err)
			}
		},
		"a command that is being started then is told why": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := spender(t, r, cpu(minute))
			r.f.set(func() { r.f.boxes["a"].begins = 2 * minute })
			wantKind(t, "start", start(t.Context(), sb), paddock.Exhausted, "raise the budget cpu")
		},
		"nothing runs in it until the budget is raised": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := spender(t, r, cpu(minute))
			pass(minute + 2*second)
			wantKind(t, "start", start(t.Context(), sb), paddock.Exhausted, "raise the budget cpu")
			wantKind(t, "stat", stat(t.Context(), sb), paddock.Exhausted)
			wantKind(t, "resume", sb.Resume(t.Context()), paddock.Exhausted)
			wantKind(t, "too little", r.Raise(t.Context(), "a", allowance.Raise{Set: allowance.Budget{CPU: 30 * second}}), paddock.Conflict, "even so")
			wantKind(t, "nothing", r.Raise(t.Context(), "a", allowance.Raise{}), paddock.Invalid)
			r.want(t, "a", paddock.Paused)
			if err := r.Raise(t.Context(), "a", more(minute)); err != nil {
				t.Fatal(err)
			}
			r.want(t, "a", paddock.Ready)
			told := run(t, sb)
			pass(minute - 4*second)
			r.want(t, "a", paddock.Ready)
			pass(6 * second)
			r.want(t, "a", paddock.Paused)
			wantKind(t, "wait", <-told, paddock.Exhausted, "2m0s")
		},
		"the budget and what was used survive a restart": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			spender(t, r, cpu(minute))
			pass(40 * second)
			r.restart(t, 0, lifetime.Options{})
			r.f.set(func() { r.f.boxes["a"].uses = busy() }) // its counters begin again
			pass(15 * second)
			r.want(t, "a", paddock.Ready)
			pass(8 * second) // and no grace period, which is for clocks
			r.want(t, "a", paddock.Paused)
			if l, err := r.Terms(t.Context(), "a"); err != nil || l.Use.CPU < minute || l.Use.CPU > minute+3*second {
				t.Errorf("%+v, %v", l, err)
			}
			r.restart(t, hour, lifetime.Options{})
			sb, err := r.Open(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			wantKind(t, "start", start(t.Context(), sb), paddock.Exhausted)
			wantKind(t, "resume", sb.Resume(t.Context()), paddock.Exhausted)
			if err := r.Raise(t.Context(), "a", more(hour)); err != nil {
				t.Fatal(err)
			}
			r.want(t, "a", paddock.Ready)
		},
		"a sandbox that nobody can measure any more is paused": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := spender(t, r, cpu(hour))
			pass(10 * second)
			r.f.set(func() { r.f.boxes["a"].uses = func(st *paddock.Status) { st.Usage.CPU = -1 } })
			pass(3 * second)
			r.want(t, "a", paddock.Ready)
			pass(4 * second)
			r.want(t, "a", paddock.Paused)
			wantKind(t, "start", start(t.Context(), sb), paddock.Conflict, "cannot be measured any more; resume it")
			r.f.set(func() { r.f.boxes["a"].uses = busy() })
			if err := sb.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
			pass(hour / 2)
			r.want(t, "a", paddock.Ready)
		},
		"bytes of the network and money are counted too": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			spender(t, r, lifetime.Terms{Budget: allowance.Budget{Network: 10 << 10}})
			pass(12 * second)
			r.want(t, "a", paddock.Paused)
			r.f.uses = busy()
			r.create(t, "b", lifetime.Terms{Budget: allowance.Budget{Cost: "10", Prices: allowance.Prices{MemoryGiBSecond: "2"}}})
			pass(9 * second)
			r.want(t, "b", paddock.Ready)
			pass(3 * second)
			r.want(t, "b", paddock.Paused)
			if l, err := r.Terms(t.Context(), "b"); err != nil || l.Over != "cost" {
				t.Errorf("%+v, %v", l, err)
			}
		},
		"a pause that fails for too long is a removal": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := spender(t, r, cpu(minute))
			told := run(t, sb)
			r.f.set(func() { r.f.boxes["a"].restless = true })
			pass(2 * minute)
			wantKind(t, "wait", <-told, paddock.Exhausted)
			wantKind(t, "start", start(t.Context(), sb), paddock.Exhausted)
			r.want(t, "a", paddock.Ready)
			pass(2 * hour)
			r.want(t, "a", "")
			wantKind(t, "start", start(t.Context(), sb), paddock.Unavailable, "because its budget is used up, where it could not be paused")
		},
		"to extend is not to pay": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			terms := cpu(minute)
			terms.Lifetime, terms.OnEnd = hour, lifetime.Pause
			sb := spender(t, r, terms)
			pass(2 * hour)
			wantKind(t, "extend", r.Extend(t.Context(), "a", 10*hour), paddock.Exhausted, "stays paused")
			r.want(t, "a", paddock.Paused)
			wantKind(t, "resume", sb.Resume(t.Context()), paddock.Exhausted)
			if err := r.Raise(t.Context(), "a", more(hour)); err != nil {
				t.Fatal(err)
			}
			r.want(t, "a", paddock.Ready)
		},
		"a budget alone leaves the default terms, and other terms replace them": func(t *testing.T) {
			r := set(t, lifetime.Options{Default: lifetime.Terms{Lifetime: hour}})
			spender(t, r, cpu(10*hour))
			r.create(t, "b", lifetime.Terms{Lifetime: 3 * hour, Budget: allowance.Budget{CPU: 10 * hour}})
			pass(2 * hour)
			r.want(t, "a", "")
			r.want(t, "b", paddock.Ready)
		},
		"what cannot be kept is refused, and nothing is made": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.f.uses = func(st *paddock.Status) { st.Usage.CPU = -1 }
			_, err := r.CreateWith(t.Context(), paddock.Spec{ID: "a"}, cpu(minute))
			wantKind(t, "not measured", err, paddock.Unsupported, "nothing measures cpu")
			r.want(t, "a", "")
			_, err = r.CreateWith(t.Context(), paddock.Spec{ID: "a"}, lifetime.Terms{Budget: allowance.Budget{Cost: "1"}})
			wantKind(t, "no prices", err, paddock.Invalid, "a cost needs prices")
			sb := r.create(t, "b", lifetime.Terms{})
			wantKind(t, "raise", r.Raise(t.Context(), "b", allowance.Raise{Set: allowance.Budget{CPU: minute}}), paddock.Unsupported)
			wantKind(t, "change", r.Change(t.Context(), "b", cpu(minute)), paddock.Unsupported)
			if err := sb.Pause(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.f.cannot = true
			_, err = r.CreateWith(t.Context(), paddock.Spec{ID: "c", Tier: "fake"}, cpu(minute))
			wantKind(t, "no pause", err, paddock.Unsupported, "which a budget needs")
		},
		"without a budget nobody asks what is used": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			asked := 0
			r.f.uses = func(*paddock.Status) { asked++ }
			r.create(t, "a", lifetime.Terms{Lifetime: 10 * hour})
			pass(hour)
			synctest.Wait()
			r.f.set(func() {
				if asked != 0 {
					t.Errorf("%d times", asked)
				}
			})
		},
	})
}
