package pool_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func TestRefill(t *testing.T) {
	other := shelf(1)
	other.Spec.Hostname = "other"
	inBubble(t, map[string]func(t *testing.T){
		"makes one sandbox at a time, for the emptiest shelf": func(t *testing.T) {
			big := shelf(3)
			r := set(t, &fake{slow: time.Second}, big, other)
			r.wait(t)
			if r.f.most != 1 {
				t.Errorf("%d were made at once", r.f.most)
			}
			var hosts []string
			for _, c := range r.f.calls {
				hosts = append(hosts, c.spec.Hostname)
			}
			if !slices.Equal(hosts, []string{"", "other", "", ""}) {
				t.Errorf("made in the order %q", hosts)
			}
		},
		"leaves the machine to those who take while half of a shelf is left": func(t *testing.T) {
			r := set(t, &fake{}, shelf(4))
			r.wait(t)
			made := len(r.f.calls)
			for taken := 1; taken <= 3; taken++ { // each sooner than a head start after the one before
				r.create(t, shelf(4).Spec)
				time.Sleep(80 * time.Millisecond)
				synctest.Wait()
				if more := len(r.f.calls) - made; (more > 0) != (taken == 3) {
					t.Errorf("%d were taken, and %d made", taken, more)
				}
			}
		},
		"runs the shelf's program before a sandbox is ready": func(t *testing.T) {
			warm := shelf(1)
			warm.Warm = []string{"python3", "-c", "pass"}
			var made *fakeSandbox
			r := set(t, &fake{fix: func(sb *fakeSandbox) { made = sb }}, warm)
			r.wait(t)
			if !slices.Equal(made.ran, []string{"python3 -c pass"}) || made.asked == 0 {
				t.Errorf("ran %q, asked how it is %d times", made.ran, made.asked)
			}
		},
		"removes a sandbox whose program fails, and gives the shelf up": func(t *testing.T) {
			warm := shelf(1)
			warm.Warm = []string{"false"}
			r := set(t, &fake{fix: func(sb *fakeSandbox) { sb.code = 1 }}, warm)
			if err := r.Wait(t.Context()); !errors.Is(err, paddock.Invalid) || !strings.Contains(err.Error(), "false") {
				t.Errorf("wait: %v", err)
			}
			synctest.Wait()
			if left := r.f.left(); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		},
		"tries again where the program did not end by itself": func(t *testing.T) {
			warm := shelf(1)
			warm.Warm = []string{"true"}
			n := 0
			r := set(t, &fake{fix: func(sb *fakeSandbox) {
				if n++; n == 1 {
					sb.code, sb.cause = 137, paddock.OutOfMemory
				}
			}}, warm)
			r.wait(t)
			if n != 2 {
				t.Errorf("made %d", n)
			}
		},
		"keeps and hides a sandbox that it can neither warm nor remove": func(t *testing.T) {
			warm := shelf(1)
			warm.Warm = []string{"false"}
			r := set(t, &fake{fix: func(sb *fakeSandbox) { sb.code, sb.keep = 1, paddock.Unavailable }}, warm)
			_ = r.Wait(t.Context())
			list, err := r.List(t.Context())
			if err != nil || len(list) > 0 {
				t.Errorf("%+v, %v", list, err)
			}
			for _, sb := range r.f.boxes { // or Close would fail
				sb.mu.Lock()
				sb.keep = nil
				sb.mu.Unlock()
			}
		},
		"gives who takes a sandbox a head start, a longer one where they are made slowly": func(t *testing.T) {
			for slow, want := range map[time.Duration]time.Duration{
				20 * time.Millisecond:  100 * time.Millisecond,
				600 * time.Millisecond: 300 * time.Millisecond,
				10 * time.Second:       500 * time.Millisecond,
			} {
				r := set(t, &fake{slow: slow}, shelf(1))
				r.wait(t)
				start := time.Now()
				r.create(t, shelf(1).Spec)
				r.wait(t)
				if got := r.f.own(start); got[len(got)-1] != want {
					t.Errorf("made in %v: it began after %v", slow, got[len(got)-1])
				}
			}
		},
		"waits while a Create waits for the driver": func(t *testing.T) {
			r := set(t, &fake{slow: 600 * time.Millisecond}, shelf(1))
			r.wait(t)
			start := time.Now()
			var wg sync.WaitGroup
			wg.Go(func() { r.create(t, other.Spec) })
			synctest.Wait()
			r.create(t, shelf(1).Spec)
			wg.Wait()
			r.wait(t)
			if got := r.f.own(start); got[len(got)-1] != 600*time.Millisecond {
				t.Errorf("it began after %v", got[len(got)-1])
			}
		},
		"makes one each second though Creates never cease": func(t *testing.T) {
			r := set(t, &fake{slow: 2 * time.Second}, shelf(2))
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					for ctx.Err() == nil {
						_, _ = r.Create(ctx, other.Spec)
					}
				})
			}
			synctest.Wait()
			start := time.Now()
			r.wait(t)
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
			cancel()
			wg.Wait()
		},
		"tries again after growing pauses, and says why in the end": func(t *testing.T) {
			start := time.Now()
			broken := errors.New("out of luck")
			r := set(t, &fake{fail: broken}, shelf(1))
			if err := r.Wait(t.Context()); !errors.Is(err, broken) {
				t.Errorf("wait: %v", err)
			}
			var pauses []time.Duration
			own := r.f.own(start)
			for i := range own[1:] {
				pauses = append(pauses, own[i+1]-own[i])
			}
			const s = time.Second
			if want := []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s, 60 * s}; !slices.Equal(pauses, want) {
				t.Errorf("pauses of %v, want %v", pauses, want)
			}
			synctest.Wait()
			if n := strings.Count(r.log.String(), broken.Error()); n != len(own) {
				t.Errorf("%d of %d failures were told: %s", n, len(own), r.log)
			}
			time.Sleep(time.Hour) // a bubble's time
			if n := len(r.f.own(start)); n != len(own) {
				t.Errorf("it was given up, and tried again: %d, then %d", len(own), n)
			}
			// A Create that succeeds shows that it is worth it.
			r.f.set(func() { r.f.fail = nil })
			r.create(t, shelf(1).Spec)
			r.wait(t)
			if sb := r.create(t, shelf(1).Spec); !ready(sb) {
				t.Error("it was not ready")
			}
		},
		"gets over a failure": func(t *testing.T) {
			r := set(t, &fake{fail: paddock.Exhausted}, shelf(2))
			synctest.Wait()
			r.f.set(func() { r.f.fail = nil })
			start := time.Now()
			r.wait(t)
			if took := time.Since(start); took != time.Second {
				t.Errorf("it took %v", took)
			}
		},
		"does not try what cannot be": func(t *testing.T) {
			for _, kind := range []paddock.Kind{paddock.Invalid, paddock.Unsupported} {
				r := set(t, &fake{fail: kind}, shelf(1))
				if err := r.Wait(t.Context()); !errors.Is(err, kind) {
					t.Errorf("wait: %v", err)
				}
				if n := len(r.f.own(time.Now())); n != 1 {
					t.Errorf("%v: tried %d times", kind, n)
				}
			}
		},
		"is not stopped by a shelf that fails": func(t *testing.T) {
			r := set(t, &fake{}, shelf(1), other)
			r.wait(t)
			r.f.set(func() { r.f.fail = paddock.Exhausted })
			r.create2(t, shelf(1).Spec, other.Spec)
			synctest.Wait()
			r.f.set(func() { r.f.fail = nil })
			r.wait(t)
		},
		"a driver that hangs is a failure": func(t *testing.T) {
			r := set(t, &fake{slow: 24 * time.Hour}, shelf(1))
			if err := r.Wait(t.Context()); !errors.Is(err, paddock.Canceled) {
				t.Errorf("wait: %v", err)
			}
		},
	})
}

// create2 takes a ready sandbox of two shelves.
func (r rig) create2(t *testing.T, a, b paddock.Spec) {
	t.Helper()
	if !ready(r.create(t, a)) || !ready(r.create(t, b)) {
		t.Error("not ready")
	}
}

func TestWaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := set(t, &fake{slow: time.Minute}, shelf(1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Wait(ctx); !errors.Is(err, paddock.Timeout) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after its deadline: %v", err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		cancel()
		if err := r.Wait(ctx); !errors.Is(err, paddock.Canceled) {
			t.Errorf("canceled: %v", err)
		}
	})
}

func TestClose(t *testing.T) {
	inBubble(t, map[string]func(t *testing.T){
		"removes what is ready, closes the driver, and may be called again": func(t *testing.T) {
			r := set(t, &fake{}, shelf(3))
			r.wait(t)
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					if err := r.Close(); err != nil || len(r.f.left()) > 0 {
						t.Errorf("%v, and %q are left", err, r.f.left())
					}
				})
			}
			wg.Wait()
			if r.f.closed != 1 {
				t.Errorf("the driver was closed %d times", r.f.closed)
			}
			if _, err := r.Create(t.Context(), shelf(1).Spec); !errors.Is(err, paddock.Unavailable) {
				t.Errorf("create: %v", err)
			}
			if err := r.Wait(t.Context()); !errors.Is(err, paddock.Unavailable) {
				t.Errorf("wait: %v", err)
			}
		},
		"ends a refill under way": func(t *testing.T) {
			r := set(t, &fake{slow: time.Minute}, shelf(1))
			synctest.Wait()
			start := time.Now()
			if err := r.Close(); err != nil || time.Since(start) != 0 || len(r.f.left()) > 0 {
				t.Errorf("%v after %v, and %q are left", err, time.Since(start), r.f.left())
			}
			if r.log.Len() > 0 {
				t.Errorf("that is no failure: %s", r.log)
			}
		},
		"waits for a refill that cannot be ended, and removes its sandbox": func(t *testing.T) {
			r := set(t, &fake{slow: time.Minute, stuck: true}, shelf(1))
			synctest.Wait()
			start := time.Now()
			if err := r.Close(); err != nil || time.Since(start) != time.Minute || len(r.f.left()) > 0 {
				t.Errorf("%v after %v, and %q are left", err, time.Since(start), r.f.left())
			}
		},
		"ends who waits": func(t *testing.T) {
			r := set(t, &fake{slow: time.Minute}, shelf(1))
			var wg sync.WaitGroup
			wg.Go(func() {
				if err := r.Wait(t.Context()); !errors.Is(err, paddock.Unavailable) {
					t.Errorf("wait: %v", err)
				}
			})
			synctest.Wait()
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			wg.Wait()
		},
		"during a Create hands out nothing that stays": func(t *testing.T) {
			r := set(t, &fake{fix: func(sb *fakeSandbox) { sb.set(func() { sb.hang = true }) }}, shelf(1))
			r.wait(t)
			var wg sync.WaitGroup
			wg.Go(func() {
				sb, err := r.Create(t.Context(), shelf(1).Spec)
				if err == nil && ready(sb) {
					t.Errorf("%s was handed out", sb.ID())
				}
			})
			synctest.Wait()
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			wg.Wait()
			for _, id := range r.f.left() {
				if strings.HasPrefix(string(id), "pool-") {
					t.Errorf("%s is left", id)
				}
			}
		},
		"tells what could not be removed": func(t *testing.T) {
			f := &fake{}
			f.fix = func(sb *fakeSandbox) { sb.set(func() { sb.keep = paddock.Internal }) }
			r := unowned(t, f, shelf(2))
			r.wait(t)
			if err := r.Close(); !errors.Is(err, paddock.Internal) || f.closed != 1 {
				t.Errorf("%v; the driver was closed %d times", err, f.closed)
			}
		},
	})
}
