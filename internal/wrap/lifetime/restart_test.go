package lifetime_test

import (
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

func TestRestart(t *testing.T) {
	inBubble(t, map[string]func(t *testing.T){
		"a restarted server goes on with the same deadlines": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.create(t, "a", lifetime.Terms{Lifetime: hour})
			pass(10 * minute)
			r.restart(t, 20*minute, lifetime.Options{})
			pass(30*minute - second)
			r.want(t, "a", paddock.Ready)
			pass(second)
			r.want(t, "a", "")
		},
		"a deadline that passed meanwhile is carried out when the grace is over": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.create(t, "a", lifetime.Terms{Lifetime: hour})
			r.create(t, "b", lifetime.Terms{Lifetime: hour, OnEnd: lifetime.Pause})
			r.restart(t, 10*hour, lifetime.Options{})
			pass(minute - second)
			r.want(t, "a", paddock.Ready)
			pass(second)
			r.want(t, "a", "")
			r.want(t, "b", paddock.Paused)
		},
		"why a sandbox was removed can be asked of the next server, for a day": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.create(t, "a", lifetime.Terms{Lifetime: minute})
			pass(minute)
			r.restart(t, hour, lifetime.Options{})
			_, err := r.Open(t.Context(), "a")
			wantKind(t, "open", err, paddock.NotFound, "deadline")
			r.restart(t, 24*hour, lifetime.Options{})
			r.create(t, "b", lifetime.Terms{Lifetime: minute})
			pass(2 * minute)
			all, err := r.store.Load(t.Context())
			if err != nil || len(all) != 1 || all[0].ID != "b" {
				t.Errorf("%+v, %v", all, err)
			}
		},
		"a removal that was begun is finished, and one that was done is told": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.create(t, "a", lifetime.Terms{Lifetime: minute})
			r.create(t, "b", lifetime.Terms{Lifetime: minute})
			r.f.set(func() { r.f.slow = hour })
			pass(minute)
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			r.f.set(func() { r.f.slow = 0; delete(r.f.boxes, "b") })
			r.start(t, lifetime.Options{})
			pass(minute)
			r.want(t, "a", "")
			for _, id := range []paddock.ID{"a", "b"} {
				_, err := r.Open(t.Context(), id)
				wantKind(t, "open", err, paddock.NotFound, "deadline")
			}
		},
		"what was paused for being idle wakes after a restart, and its idle time goes on": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.create(t, "a", lifetime.Terms{IdlePause: minute, IdleRemove: hour, Wake: true})
			r.create(t, "b", lifetime.Terms{IdlePause: minute, IdleRemove: hour, Wake: true})
			pass(2 * minute)
			r.restart(t, 30*minute, lifetime.Options{})
			sb, err := r.Open(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			if err := stat(t.Context(), sb); err != nil {
				t.Error(err)
			}
			pass(28*minute - second)
			r.want(t, "b", paddock.Paused)
			pass(second)
			r.want(t, "b", "")
			r.want(t, "a", paddock.Paused)
		},
		"what a person paused is not woken after a restart": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := r.create(t, "a", lifetime.Terms{IdlePause: minute, Wake: true})
			if err := sb.Pause(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.restart(t, hour, lifetime.Options{})
			if sb, _ = r.Open(t.Context(), "a"); sb != nil {
				wantKind(t, "stat", stat(t.Context(), sb), paddock.Conflict)
			}
		},
		"a lease has all of its time again": func(t *testing.T) {
			r := set(t, lifetime.Options{Grace: second})
			r.create(t, "a", lifetime.Terms{KeepAlive: minute})
			r.restart(t, hour, lifetime.Options{Grace: second})
			pass(59 * second)
			r.want(t, "a", paddock.Ready)
			pass(second)
			r.want(t, "a", "")
		},
		"sandboxes without a record have the default's terms from then on, and records without a sandbox go": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.create(t, "gone", lifetime.Terms{Lifetime: 100 * hour})
			r.f.set(func() { delete(r.f.boxes, "gone") })
			if _, err := r.f.Create(t.Context(), paddock.Spec{ID: "a"}); err != nil {
				t.Fatal(err)
			}
			o := lifetime.Options{Default: lifetime.Terms{Lifetime: hour}}
			r.restart(t, 10*hour, o)
			if all, err := r.store.Load(t.Context()); err != nil || len(all) != 0 {
				t.Errorf("%+v, %v", all, err)
			}
			pass(hour - second)
			r.want(t, "a", paddock.Ready)
			pass(second)
			r.want(t, "a", "")
		},
		"what is not of the server has no terms, whatever is written down of its name": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.create(t, "was-ours", lifetime.Terms{Lifetime: hour})
			r.create(t, "kept-ours", lifetime.Terms{Lifetime: 100 * hour})
			for _, id := range []paddock.ID{"plain", "ours"} {
				if _, err := r.f.Create(t.Context(), paddock.Spec{ID: id}); err != nil {
					t.Fatal(err)
				}
			}
			o := lifetime.Options{Default: lifetime.Terms{Lifetime: hour}, Of: func(st paddock.Status) bool { return st.ID == "ours" || st.ID == "kept-ours" }}
			r.restart(t, 0, o)
			if _, err := r.f.Create(t.Context(), paddock.Spec{ID: "later"}); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Open(t.Context(), "later"); err != nil {
				t.Fatal(err)
			}
			pass(10 * hour)
			for id, want := range map[paddock.ID]paddock.State{"plain": paddock.Ready, "later": paddock.Ready, "was-ours": paddock.Ready, "kept-ours": paddock.Ready, "ours": ""} {
				r.want(t, id, want)
			}
		},
		"of two servers on one store one ends it, and what the other changed counts": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.create(t, "a", lifetime.Terms{Lifetime: hour})
			r.create(t, "b", lifetime.Terms{Lifetime: hour})
			other := &rig{f: r.f, store: r.store, wall: r.wall, log: &syncBuffer{}}
			other.start(t, lifetime.Options{})
			defer other.Close()
			if err := other.Extend(t.Context(), "a", hour); err != nil {
				t.Fatal(err)
			}
			pass(hour)
			r.want(t, "a", paddock.Ready)
			r.want(t, "b", "")
			r.f.set(func() {
				if r.f.removed != 1 {
					t.Errorf("removed %d times", r.f.removed)
				}
			})
			pass(hour)
			r.want(t, "a", "")
		},
	})
}

func TestClockJumps(t *testing.T) {
	inBubble(t, map[string]func(t *testing.T){
		"forwards or backwards, a lifetime, a lease and idle time stay what they are": func(t *testing.T) {
			for _, by := range []time.Duration{1000 * hour, -1000 * hour} {
				r := set(t, lifetime.Options{})
				r.create(t, "a", lifetime.Terms{Lifetime: hour})
				r.create(t, "b", lifetime.Terms{KeepAlive: hour})
				r.create(t, "c", lifetime.Terms{IdleRemove: hour})
				pass(minute)
				r.wall.jump(by)
				pass(59*minute - second)
				for _, id := range []paddock.ID{"a", "b", "c"} {
					r.want(t, id, paddock.Ready)
				}
				pass(second)
				for _, id := range []paddock.ID{"a", "b", "c"} {
					r.want(t, id, "")
				}
			}
		},
		"a timeout counts from when it was given, whatever the clock does before and after": func(t *testing.T) {
			for _, by := range []time.Duration{1000 * hour, -1000 * hour} {
				r := set(t, lifetime.Options{Longest: 100 * hour})
				r.create(t, "a", lifetime.Terms{Timeout: hour})
				r.create(t, "b", lifetime.Terms{Lifetime: hour})
				pass(minute)
				r.wall.jump(by)
				pass(minute)
				for id, terms := range map[paddock.ID]lifetime.Terms{"a": {Timeout: hour, OnEnd: lifetime.Pause}, "b": {Lifetime: hour}} {
					if err := r.Change(t.Context(), id, terms); err != nil {
						t.Fatal(err)
					}
				}
				if l, err := r.Terms(t.Context(), "a"); err != nil || !l.Ends.Equal(r.wall.now().Add(hour)) {
					t.Errorf("it ends at %v, %v", l.Ends, err)
				}
				pass(58*minute - second)
				r.want(t, "b", paddock.Ready)
				pass(second)
				r.want(t, "b", "")
				pass(2*minute - second)
				r.want(t, "a", paddock.Ready)
				pass(second)
				r.want(t, "a", paddock.Paused)
				if err := r.Extend(t.Context(), "a", hour); err != nil {
					t.Fatal(err)
				}
				pass(minute)
				r.restart(t, 9*minute, lifetime.Options{Longest: 100 * hour})
				if l, err := r.Terms(t.Context(), "a"); err != nil || !l.Ends.Equal(r.wall.now().Add(50*minute)) {
					t.Errorf("after a restart it ends at %v, %v; now is %v", l.Ends, err, r.wall.now())
				}
				pass(50*minute - second)
				r.want(t, "a", paddock.Ready)
				pass(second)
				r.want(t, "a", paddock.Paused)
			}
		},
		"what has a grace ends when that is over, and tells so": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.create(t, "a", lifetime.Terms{Timeout: hour})
			r.restart(t, 2*hour, lifetime.Options{})
			if l, err := r.Terms(t.Context(), "a"); err != nil || !l.Ends.Equal(r.wall.now().Add(minute)) {
				t.Errorf("it ends at %v, %v; now is %v", l.Ends, err, r.wall.now())
			}
		},
		"the record of a lifetime follows, for the next server": func(t *testing.T) {
			for _, by := range []time.Duration{1000 * hour, -1000 * hour} {
				r := set(t, lifetime.Options{})
				r.create(t, "a", lifetime.Terms{Lifetime: hour})
				pass(minute)
				r.wall.jump(by)
				pass(minute)
				r.restart(t, 8*minute, lifetime.Options{})
				pass(50*minute - second)
				r.want(t, "a", paddock.Ready)
				pass(second)
				r.want(t, "a", "")
			}
		},
		"a moment that a jump brings near comes after a grace, and not if the clock is set right": func(t *testing.T) {
			r := set(t, lifetime.Options{Grace: 5 * minute})
			r.create(t, "a", lifetime.Terms{Deadline: time.Now().Add(hour)})
			pass(minute)
			r.wall.jump(100 * hour)
			pass(3 * minute)
			r.want(t, "a", paddock.Ready)
			r.wall.jump(-100 * hour)
			pass(56*minute - second)
			r.want(t, "a", paddock.Ready)
			pass(second)
			r.want(t, "a", "")
			r.create(t, "b", lifetime.Terms{Deadline: time.Now().Add(hour)})
			r.wall.jump(100 * hour)
			pass(6 * minute)
			r.want(t, "b", "")
		},
		"a jump back keeps nothing longer": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.create(t, "a", lifetime.Terms{Deadline: time.Now().Add(hour)})
			pass(minute)
			r.wall.jump(-1000 * hour)
			pass(59 * minute)
			r.want(t, "a", "")
		},
		"a server that starts with a clock that is ahead ends nothing if that is set right in the grace": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.create(t, "a", lifetime.Terms{Lifetime: hour})
			r.create(t, "b", lifetime.Terms{Deadline: time.Now().Add(hour)})
			r.wall.jump(1000 * hour)
			r.restart(t, second, lifetime.Options{})
			pass(second)
			r.wall.jump(-1000 * hour)
			pass(50 * minute)
			r.want(t, "a", paddock.Ready)
			r.want(t, "b", paddock.Ready)
			pass(10 * minute)
			r.want(t, "a", "")
			r.want(t, "b", "")
		},
		"one that starts with a clock that is behind keeps nothing longer than was left": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.create(t, "a", lifetime.Terms{Lifetime: hour})
			r.create(t, "b", lifetime.Terms{Deadline: time.Now().Add(hour)})
			r.wall.jump(-1000 * hour)
			r.restart(t, second, lifetime.Options{})
			pass(hour - second)
			r.want(t, "a", paddock.Ready)
			pass(2 * second)
			r.want(t, "a", "")
			r.want(t, "b", "")
		},
	})
}
