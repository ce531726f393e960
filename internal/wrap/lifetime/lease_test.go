package lifetime_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

const (
	second = time.Second
	minute = time.Minute
	hour   = time.Hour
)

func start(ctx context.Context, sb paddock.Sandbox) error {
	_, err := sb.Start(ctx, paddock.Cmd{Args: []string{"true"}, Output: paddock.Output{Detached: true}})
	return err
}

func stat(ctx context.Context, sb paddock.Sandbox) error {
	_, err := sb.FS().Stat(ctx, "/")
	return err
}

func wantKind(t *testing.T, what string, err error, kind paddock.Kind, words ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: %v, want %v", what, err, kind)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %q does not say %q", what, err, w)
		}
	}
}

func TestDeadline(t *testing.T) {
	inBubble(t, map[string]func(t *testing.T){
		"a sandbox is removed at its deadline, not before, and later calls are told so": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := r.create(t, "a", lifetime.Terms{Lifetime: hour})
			pass(hour - second)
			r.want(t, "a", paddock.Ready)
			pass(second)
			r.want(t, "a", "")
			_, err := r.Open(t.Context(), "a")
			wantKind(t, "open", err, paddock.NotFound, "removed at its deadline of 2000-01-01T01:00:00Z")
			wantKind(t, "start", start(t.Context(), sb), paddock.Unavailable, "removed at its deadline")
			if err := sb.Remove(t.Context()); err != nil {
				t.Errorf("remove: %v", err)
			}
		},
		"the sooner of a moment and a lifetime counts": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.create(t, "a", lifetime.Terms{Lifetime: hour, Deadline: time.Now().Add(minute)})
			r.create(t, "b", lifetime.Terms{Lifetime: minute, Deadline: time.Now().Add(hour)})
			pass(minute)
			r.want(t, "a", "")
			r.want(t, "b", "")
		},
		"without terms a sandbox stays": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.create(t, "a", lifetime.Terms{})
			pass(10000 * hour)
			r.want(t, "a", paddock.Ready)
		},
		"a plain Create has the default's": func(t *testing.T) {
			r := set(t, lifetime.Options{Default: lifetime.Terms{Lifetime: hour}})
			if _, err := r.Create(t.Context(), paddock.Spec{ID: "a"}); err != nil {
				t.Fatal(err)
			}
			pass(hour)
			r.want(t, "a", "")
		},
		"it ends what runs, and what is open": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := r.create(t, "a", lifetime.Terms{Lifetime: minute})
			if err := start(t.Context(), sb); err != nil {
				t.Fatal(err)
			}
			if _, err := sb.FS().Open(t.Context(), "/", paddock.OpenOptions{}); err != nil {
				t.Fatal(err)
			}
			pass(minute)
			r.want(t, "a", "")
		},
		"at a deadline that pauses nothing is lost, and only more time lets it go on": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := r.create(t, "a", lifetime.Terms{Lifetime: hour, OnEnd: lifetime.Pause, IdlePause: 2 * hour, Wake: true})
			pass(hour)
			r.want(t, "a", paddock.Paused)
			wantKind(t, "start", start(t.Context(), sb), paddock.Conflict, "deadline", "extend")
			wantKind(t, "resume", sb.Resume(t.Context()), paddock.Conflict, "extend")
			r.want(t, "a", paddock.Paused)
			if err := r.Extend(t.Context(), "a", hour); err != nil {
				t.Fatal(err)
			}
			r.want(t, "a", paddock.Ready)
			pass(hour)
			r.want(t, "a", paddock.Paused)
		},
		"it is extended from where it is, and no further than the longest": func(t *testing.T) {
			r := set(t, lifetime.Options{Longest: 3 * hour})
			r.create(t, "a", lifetime.Terms{Lifetime: hour})
			pass(minute)
			if err := r.Extend(t.Context(), "a", hour); err != nil {
				t.Fatal(err)
			}
			wantKind(t, "too far", r.Extend(t.Context(), "a", 2*hour), paddock.Denied, "3h0m0s")
			wantKind(t, "backwards", r.Extend(t.Context(), "a", -hour), paddock.Invalid)
			pass(2*hour - minute - second)
			r.want(t, "a", paddock.Ready)
			pass(second)
			r.want(t, "a", "")
			r.create(t, "b", lifetime.Terms{})
			pass(3 * hour)
			r.want(t, "b", "")
		},
		"other terms replace all of them": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.create(t, "a", lifetime.Terms{Lifetime: hour, KeepAlive: minute})
			if err := r.Change(t.Context(), "a", lifetime.Terms{Lifetime: 2 * hour}); err != nil {
				t.Fatal(err)
			}
			pass(2*hour - second)
			r.want(t, "a", paddock.Ready)
			pass(second)
			r.want(t, "a", "")
			wantKind(t, "extend", r.Extend(t.Context(), "b", hour), paddock.NotFound)
		},
		"a thousand sandboxes end in their order": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			for i := range 1000 {
				r.create(t, paddock.ID(fmt.Sprintf("b-%d", i)), lifetime.Terms{Lifetime: time.Duration(1000-i) * minute})
			}
			pass(500*minute + second)
			n := 0
			r.f.set(func() { n = len(r.f.boxes) })
			if n != 500 || r.state("b-499") == "" || r.state("b-500") != "" {
				t.Errorf("%d are left", n)
			}
		},
	})
}

func TestTermsThatCannotBeKeptAreRefusedBeforehand(t *testing.T) {
	inBubble(t, map[string]func(t *testing.T){
		"wrong ones": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			for _, terms := range []lifetime.Terms{
				{Lifetime: -1}, {IdlePause: time.Millisecond}, {OnEnd: "explode"}, {Wake: true},
				{IdlePause: hour, IdleRemove: minute}, {Deadline: time.Now().Add(-second)},
			} {
				_, err := r.CreateWith(t.Context(), paddock.Spec{ID: "a"}, terms)
				wantKind(t, fmt.Sprint(terms), err, paddock.Invalid)
			}
			r.want(t, "a", "")
		},
		"pauses where the tier has none": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.f.cannot = true
			for _, terms := range []lifetime.Terms{{IdlePause: hour}, {Lifetime: hour, OnEnd: lifetime.Pause}} {
				_, err := r.CreateWith(t.Context(), paddock.Spec{ID: "a"}, terms)
				wantKind(t, fmt.Sprint(terms), err, paddock.Unsupported, "fake")
			}
			r.create(t, "a", lifetime.Terms{IdleRemove: hour})
			if _, err := lifetime.New(t.Context(), r.f, lifetime.Options{Default: lifetime.Terms{IdlePause: hour}}); !errors.Is(err, paddock.Unsupported) {
				t.Errorf("as the default: %v", err)
			}
		},
	})
}

func TestIdle(t *testing.T) {
	inBubble(t, map[string]func(t *testing.T){
		"what is idle is paused, woken by a call, and removed when it was idle long enough": func(t *testing.T) {
			ended := make(chan lifetime.Why, 10)
			r := set(t, lifetime.Options{Ended: func(why lifetime.Why) { ended <- why }})
			sb := r.create(t, "a", lifetime.Terms{IdlePause: minute, IdleRemove: hour, Wake: true})
			pass(50 * second)
			if err := stat(t.Context(), sb); err != nil {
				t.Fatal(err)
			}
			pass(59 * second)
			r.want(t, "a", paddock.Ready)
			pass(second)
			r.want(t, "a", paddock.Paused)
			if err := stat(t.Context(), sb); err != nil {
				t.Errorf("it did not wake: %v", err)
			}
			r.want(t, "a", paddock.Ready)
			pass(hour - second)
			r.want(t, "a", paddock.Paused)
			pass(second)
			r.want(t, "a", "")
			_, err := r.Open(t.Context(), "a")
			wantKind(t, "open", err, paddock.NotFound, "idle for 1h0m0s")
			if why := <-ended; why != lifetime.ByIdle || len(ended) > 0 {
				t.Errorf("told %q, and %d more", why, len(ended))
			}
		},
		"looking from outside is no activity, and wakes nothing": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := r.create(t, "a", lifetime.Terms{IdlePause: minute, Wake: true})
			for range 3 {
				pass(30 * second)
				_, _ = sb.Status(t.Context())
				_, _ = sb.Processes(t.Context())
				_, _ = r.List(t.Context())
				_, _ = r.Open(t.Context(), "a")
			}
			r.want(t, "a", paddock.Paused)
			r.f.set(func() {
				if r.f.paused != 1 || r.f.resumed != 0 {
					t.Errorf("paused %d times, resumed %d times", r.f.paused, r.f.resumed)
				}
			})
		},
		"what its monitor has paused is woken by nobody": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := r.create(t, "a", lifetime.Terms{IdlePause: minute, Wake: true})
			r.f.set(func() {
				b := r.f.boxes["a"]
				b.state, b.uses = paddock.Paused, func(st *paddock.Status) { st.Monitor = &paddock.Monitoring{Paused: "it was bad"} }
			})
			pass(hour) // it is idle too, which a call would end
			wantKind(t, "start", start(t.Context(), sb), paddock.Conflict, "it was bad")
			r.want(t, "a", paddock.Paused)
			r.f.set(func() {
				if r.f.resumed != 0 {
					t.Errorf("resumed %d times", r.f.resumed)
				}
			})
			if err := sb.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.f.set(func() { r.f.boxes["a"].uses = nil })
			r.want(t, "a", paddock.Ready)
		},
		"a file that is open keeps it awake": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := r.create(t, "a", lifetime.Terms{IdlePause: minute})
			f, err := sb.FS().Open(t.Context(), "/", paddock.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			pass(hour)
			r.want(t, "a", paddock.Ready)
			f.Close()
			f.Close() // which counts once
			pass(minute - second)
			r.want(t, "a", paddock.Ready)
			pass(second)
			r.want(t, "a", paddock.Paused)
		},
		"a process that runs keeps it awake, from its end on it is idle": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := r.create(t, "a", lifetime.Terms{IdlePause: minute})
			if err := start(t.Context(), sb); err != nil {
				t.Fatal(err)
			}
			pass(hour + 30*second)
			r.want(t, "a", paddock.Ready)
			r.f.end("a", 0)
			pass(59 * second)
			r.want(t, "a", paddock.Ready)
			pass(second)
			r.want(t, "a", paddock.Paused)
		},
		"a process that is to be ignored does not, unless someone is attached": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := r.create(t, "a", lifetime.Terms{IdlePause: minute, IgnoreProcesses: true})
			p, err := sb.Start(t.Context(), paddock.Cmd{})
			if err != nil {
				t.Fatal(err)
			}
			pass(hour)
			r.want(t, "a", paddock.Ready)
			p.Release()
			pass(minute)
			r.want(t, "a", paddock.Paused)
		},
		"without wake a call says what to do": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := r.create(t, "a", lifetime.Terms{IdlePause: minute})
			pass(minute)
			wantKind(t, "start", start(t.Context(), sb), paddock.Conflict, "resume")
			if err := sb.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := start(t.Context(), sb); err != nil {
				t.Error(err)
			}
		},
		"what a person paused stays paused": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := r.create(t, "a", lifetime.Terms{IdlePause: minute, Wake: true})
			if err := sb.Pause(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantKind(t, "start", start(t.Context(), sb), paddock.Conflict)
			pass(hour)
			wantKind(t, "start", start(t.Context(), sb), paddock.Conflict)
			r.want(t, "a", paddock.Paused)
			if err := sb.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
			pass(minute)
			r.want(t, "a", paddock.Paused)
			// And a person's pause of what was idle is a person's.
			if err := sb.Pause(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantKind(t, "start", start(t.Context(), sb), paddock.Conflict)
		},
	})
}

func TestInputThatWaitsUntilTheSandboxRunsIsGivenUp(t *testing.T) {
	for name, up := range map[string]func(p paddock.Process){
		"by the release of its process": func(p paddock.Process) { p.Release() },
		"by its end":                    func(p paddock.Process) { _ = p.Input().Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := set(t, lifetime.Options{})
				sb := r.create(t, "a", lifetime.Terms{IdlePause: minute, Wake: true, IgnoreProcesses: true})
				p, err := sb.Start(t.Context(), paddock.Cmd{Output: paddock.Output{Detached: true}})
				if err != nil {
					t.Fatal(err)
				}
				pass(2 * minute)
				r.want(t, "a", paddock.Paused)
				r.f.set(func() { r.f.boxes["a"].sticky = 4 * minute })
				began := time.Now()
				given := make(chan error, 1)
				go func() {
					_, err := p.Input().Write([]byte("x"))
					given <- err
				}()
				synctest.Wait()
				up(p)
				if err := <-given; paddock.KindOf(err) != paddock.Canceled || time.Since(began) > 0 {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
			})
		})
	}
}

func TestWake(t *testing.T) {
	inBubble(t, map[string]func(t *testing.T){
		"many callers wake it once, and all of them go on": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := r.create(t, "a", lifetime.Terms{IdlePause: minute, Wake: true})
			pass(minute)
			r.f.set(func() { r.f.slow = 5 * second })
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					if err := stat(t.Context(), sb); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			r.f.set(func() {
				if r.f.resumed != 1 {
					t.Errorf("resumed %d times", r.f.resumed)
				}
			})
		},
		"a caller that goes away does not end it for others": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := r.create(t, "a", lifetime.Terms{IdlePause: minute, Wake: true})
			pass(minute)
			r.f.set(func() { r.f.slow = 5 * second })
			ctx, cancel := context.WithTimeout(t.Context(), second)
			defer cancel()
			var wg sync.WaitGroup
			wg.Go(func() { wantKind(t, "who went", stat(ctx, sb), paddock.Timeout) })
			synctest.Wait()
			wg.Go(func() {
				if err := stat(t.Context(), sb); err != nil {
					t.Error(err)
				}
			})
			wg.Wait()
		},
		"a failure is told to who waits, and the next call tries again": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := r.create(t, "a", lifetime.Terms{IdlePause: minute, Wake: true})
			pass(minute)
			r.f.set(func() { r.f.fail = fmt.Errorf("no room: %w", paddock.Exhausted) })
			wantKind(t, "stat", stat(t.Context(), sb), paddock.Exhausted, "wake", "no room")
			r.f.set(func() { r.f.fail = nil })
			if err := stat(t.Context(), sb); err != nil {
				t.Error(err)
			}
		},
		"a call during the pause waits for it, and wakes": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := r.create(t, "a", lifetime.Terms{IdlePause: minute, Wake: true})
			r.f.set(func() { r.f.slow = 5 * second })
			pass(minute + second)
			began := time.Now()
			if err := stat(t.Context(), sb); err != nil || time.Since(began) != 9*second {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		},
	})
}

func TestKeepAlive(t *testing.T) {
	inBubble(t, map[string]func(t *testing.T){
		"what is renewed stays, what is not is removed": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := r.create(t, "a", lifetime.Terms{KeepAlive: minute})
			for range 10 {
				pass(59 * second)
				if err := r.Renew(t.Context(), "a"); err != nil {
					t.Fatal(err)
				}
			}
			pass(30 * second)
			if err := stat(t.Context(), sb); err != nil { // which is no renewal
				t.Fatal(err)
			}
			pass(30 * second)
			r.want(t, "a", "")
			wantKind(t, "renew", r.Renew(t.Context(), "a"), paddock.NotFound, "not renewed within 1m0s")
			r.create(t, "b", lifetime.Terms{})
			wantKind(t, "renew", r.Renew(t.Context(), "b"), paddock.Conflict)
		},
		"what was paused for it goes on when it is renewed": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := r.create(t, "a", lifetime.Terms{KeepAlive: minute, OnEnd: lifetime.Pause})
			pass(minute)
			r.want(t, "a", paddock.Paused)
			wantKind(t, "start", start(t.Context(), sb), paddock.Conflict, "renew")
			if err := r.Renew(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			r.want(t, "a", paddock.Ready)
			pass(minute)
			r.want(t, "a", paddock.Paused)
			if err := sb.Resume(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.want(t, "a", paddock.Ready)
		},
	})
}

func TestFailure(t *testing.T) {
	inBubble(t, map[string]func(t *testing.T){
		"what cannot be removed is tried again after growing pauses, told in the status, and takes no calls": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := r.create(t, "a", lifetime.Terms{Lifetime: minute})
			r.f.set(func() { r.f.fail = errors.New("out of luck") })
			pass(minute)
			st, err := sb.Status(t.Context())
			if err != nil || !strings.Contains(st.Reason, "out of luck") {
				t.Errorf("status: %q, %v", st.Reason, err)
			}
			wantKind(t, "start", start(t.Context(), sb), paddock.Unavailable, "is being removed at its deadline")
			pass(hour)
			tried := 0
			r.f.set(func() { tried = r.f.removed })
			if tried < 50 || tried > 70 {
				t.Errorf("tried %d times in an hour", tried)
			}
			if !strings.Contains(r.log.String(), "out of luck") {
				t.Errorf("nobody was told: %s", r.log)
			}
			r.f.set(func() { r.f.fail = nil })
			pass(minute)
			r.want(t, "a", "")
		},
		"a driver that hangs delays no others": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			for i := range 3 {
				r.create(t, paddock.ID(fmt.Sprintf("a-%d", i)), lifetime.Terms{Lifetime: minute})
			}
			r.create(t, "b", lifetime.Terms{Lifetime: minute + second})
			r.f.set(func() { r.f.slow = 24 * hour })
			pass(minute)
			r.f.set(func() { r.f.slow = 0 })
			pass(second)
			r.want(t, "b", "")
			r.want(t, "a-0", paddock.Ready)
			pass(10 * minute)
			r.want(t, "a-0", "")
		},
		"sandboxes that answer nothing delay neither the end of others, nor their own, nor for long what others are asked": func(t *testing.T) {
			r := set(t, lifetime.Options{Longest: hour})
			for i := range 30 {
				id := paddock.ID(fmt.Sprintf("mute-%d", i))
				r.create(t, id, lifetime.Terms{IdlePause: second})
				r.f.set(func() { r.f.boxes[id].mute = true })
			}
			pass(2 * second)
			r.create(t, "ends", lifetime.Terms{Lifetime: minute})
			r.create(t, "lapses", lifetime.Terms{KeepAlive: minute})
			pass(minute)
			r.want(t, "ends", "")
			r.want(t, "lapses", "")
			pass(hour) // which is the longest life
			r.want(t, "mute-0", "")
			r.want(t, "mute-29", "")
		},
		"sandboxes that did not answer are asked again without delay for those that do": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			for i := range 8 {
				id := paddock.ID(fmt.Sprintf("mute-%d", i))
				r.create(t, id, lifetime.Terms{IdlePause: second})
				r.f.set(func() { r.f.boxes[id].mute = true })
			}
			pass(6 * minute) // each has failed once
			r.create(t, "a", lifetime.Terms{IdlePause: second})
			pass(3 * second)
			r.want(t, "a", paddock.Paused)
		},
		"sandboxes that answer late, and rightly, do not delay the pause of others": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			for i := range 40 {
				sb := r.create(t, paddock.ID(fmt.Sprintf("late-%d", i)), lifetime.Terms{IdlePause: second})
				if err := start(t.Context(), sb); err != nil { // it runs, so the sandbox is never paused
					t.Fatal(err)
				}
				r.f.set(func() { r.f.boxes[sb.ID()].late = 29 * second })
			}
			pass(2 * second)
			r.create(t, "first", lifetime.Terms{IdlePause: second})
			pass(minute)
			r.want(t, "first", paddock.Paused)
			r.create(t, "later", lifetime.Terms{IdlePause: second})
			pass(3 * second)
			r.want(t, "later", paddock.Paused)
			r.want(t, "late-0", paddock.Ready)
			r.f.set(func() { r.f.boxes["late-0"].late = 0 })
			r.f.end("late-0", 0)
			pass(5 * minute)
			r.want(t, "late-0", paddock.Paused)
		},
		"sandboxes of one key that are slow to pause delay those of another no longer than one pause": func(t *testing.T) {
			key := ""
			r := set(t, lifetime.Options{Key: func(context.Context, paddock.Spec) string { return key }})
			for _, key = range []string{"one", "two"} {
				for i := range 40 {
					id := paddock.ID(fmt.Sprintf("%s-%d", key, i))
					r.create(t, id, lifetime.Terms{IdlePause: second})
					r.f.set(func() { r.f.boxes[id].drag = 4 * minute })
				}
				if key == "one" {
					pass(2 * second)
					r.create(t, "of-one", lifetime.Terms{IdlePause: second})
					key = "victim"
					r.create(t, "beside-one", lifetime.Terms{IdlePause: second})
					pass(2 * second)
					r.want(t, "beside-one", paddock.Paused)
					r.want(t, "of-one", paddock.Ready)
				}
			}
			pass(2 * second) // now each place is taken
			key = "victim"
			r.create(t, "beside-both", lifetime.Terms{IdlePause: second})
			pass(4 * minute)
			r.want(t, "beside-both", paddock.Paused)
			r.restart(t, second, lifetime.Options{Key: func(context.Context, paddock.Spec) string { return "" }})
			pass(minute + 2*second) // the grace period, and then each place is taken again
			r.create(t, "beside-none", lifetime.Terms{IdlePause: second})
			pass(4 * minute)
			r.want(t, "beside-none", paddock.Paused)
		},
		"who holds a sandbox again and again does not keep it from its end": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := r.create(t, "a", lifetime.Terms{Lifetime: minute})
			r.f.set(func() { r.f.slow = 10 * second })
			var wg sync.WaitGroup
			ctx, cancel := context.WithCancel(t.Context())
			for range 4 {
				wg.Go(func() {
					for ctx.Err() == nil && sb.Pause(ctx) == nil && sb.Resume(ctx) == nil {
					}
				})
			}
			pass(5 * minute)
			r.want(t, "a", "")
			cancel()
			wg.Wait()
		},
		"a pause that hangs keeps a sandbox from its end for no longer than a call may take": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			sb := r.create(t, "a", lifetime.Terms{Lifetime: minute})
			r.f.set(func() { r.f.slow = 24 * hour })
			var wg sync.WaitGroup
			wg.Go(func() { _ = sb.Pause(context.Background()) })
			pass(second)
			r.f.set(func() { r.f.slow = 0 })
			pass(6 * minute)
			r.want(t, "a", "")
			wg.Wait()
		},
		"close ends what is under way, and may be called again": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.create(t, "a", lifetime.Terms{Lifetime: minute})
			sb := r.create(t, "b", lifetime.Terms{IdlePause: second, Wake: true})
			pass(2 * second)
			r.f.set(func() { r.f.slow = 24 * hour })
			var wg sync.WaitGroup
			wg.Go(func() { wantKind(t, "stat", stat(context.Background(), sb), paddock.Canceled) })
			pass(minute)
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			wg.Wait()
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			r.f.set(func() { r.f.slow = 0 })
		},
		"a sandbox whose terms cannot be written down is not made": func(t *testing.T) {
			r := set(t, lifetime.Options{Store: broken{}})
			_, err := r.CreateWith(t.Context(), paddock.Spec{ID: "a"}, lifetime.Terms{})
			wantKind(t, "create", err, paddock.Unavailable, "disk")
			r.want(t, "a", "")
		},
		"a sandbox that someone else removed is forgotten": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.create(t, "a", lifetime.Terms{IdlePause: minute})
			r.f.set(func() { delete(r.f.boxes, "a") })
			pass(hour)
			if all, _ := r.store.Load(t.Context()); len(all) > 0 {
				t.Errorf("%+v", all)
			}
		},
		"a name is free again, and what had it is not taken for the new one": func(t *testing.T) {
			r := set(t, lifetime.Options{})
			r.create(t, "a", lifetime.Terms{Lifetime: minute})
			pass(minute)
			sb := r.create(t, "a", lifetime.Terms{})
			if err := start(t.Context(), sb); err != nil {
				t.Error(err)
			}
			if err := sb.Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			_, err := r.Open(t.Context(), "a")
			if !errors.Is(err, paddock.NotFound) || strings.Contains(err.Error(), "deadline") {
				t.Errorf("open: %v", err)
			}
		},
	})
}

// A broken store keeps nothing.
type broken struct{}

func (broken) Load(context.Context) ([]lifetime.Record, error) { return nil, nil }
func (broken) Get(context.Context, paddock.ID) (lifetime.Record, error) {
	return lifetime.Record{}, paddock.NotFound
}

func (broken) Save(context.Context, lifetime.Record) (int64, error) {
	return 0, fmt.Errorf("the disk is full: %w", paddock.Unavailable)
}
func (broken) Delete(context.Context, paddock.ID, int64) error { return nil }
