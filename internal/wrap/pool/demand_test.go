package pool_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/pool"
)

// pass lets a bubble's time pass, and what is to be done then be done.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestDemand(t *testing.T) {
	grows := shelf(1)
	grows.Most = 3
	inBubble(t, map[string]func(t *testing.T){
		"a Create that finds the shelf empty has one more kept, up to the most": func(t *testing.T) {
			r := set(t, &fake{}, grows)
			r.wait(t)
			for range 10 {
				r.create(t, grows.Spec)
			}
			pass(10 * time.Second)
			if c := r.Counts()[0]; c.Ready != 3 || c.Target != 3 || c.Hits != 1 || c.Misses != 9 || c.Made != 4 {
				t.Errorf("%+v", c)
			}
		},
		"each minute without one there is one less, down to the least": func(t *testing.T) {
			r := set(t, &fake{}, grows)
			r.wait(t)
			for range 10 {
				r.create(t, grows.Spec)
			}
			pass(59 * time.Second)
			for _, want := range []int{3, 2, 1, 1} {
				if c := r.Counts()[0]; c.Ready != want || c.Target != want {
					t.Errorf("%+v, want %d", c, want)
				}
				pass(time.Minute)
			}
			if n := len(r.f.left()); n != 11 {
				t.Errorf("%d are left of 10 that callers have and 1 that is ready", n)
			}
		},
		"what is too old is replaced": func(t *testing.T) {
			aged := shelf(2)
			aged.TTL = time.Hour
			r := set(t, &fake{slow: time.Second}, aged)
			r.wait(t)
			old := r.f.left()
			pass(time.Hour)
			r.wait(t)
			left := r.f.left()
			if len(left) != 2 || left[0] == old[0] || left[0] == old[1] || left[1] == old[0] || left[1] == old[1] {
				t.Errorf("%q, then %q", old, left)
			}
			if c := r.Counts()[0]; c.Expired != 2 || c.Made != 4 {
				t.Errorf("%+v", c)
			}
		},
		"what is too old is handed out to nobody, though it cannot be removed": func(t *testing.T) {
			aged := shelf(1)
			aged.TTL = time.Hour
			var made []*fakeSandbox
			r := set(t, &fake{fix: func(sb *fakeSandbox) {
				sb.set(func() { sb.keep = paddock.Unavailable })
				sb.f.set(func() { made = append(made, sb) })
			}}, aged)
			r.wait(t)
			pass(time.Hour - time.Nanosecond)
			<-time.After(time.Nanosecond)
			sb := r.create(t, aged.Spec)
			synctest.Wait() // one more is made in its place
			if sb.ID() == made[0].ID() {
				t.Error("it is too old")
			}
			r.f.set(func() { r.f.fix = nil })
			for _, sb := range made {
				sb.set(func() { sb.keep = nil })
			}
		},
		"failures are counted, and what could not be handed out": func(t *testing.T) {
			r := set(t, &fake{fail: paddock.Exhausted}, shelf(1))
			synctest.Wait()
			r.f.set(func() {
				r.f.fail = nil
				r.f.fix = func(sb *fakeSandbox) { sb.set(func() { sb.state = paddock.Dead }) }
			})
			r.wait(t)
			r.create(t, shelf(1).Spec)
			if c := r.Counts()[0]; c.Failed != 1 || c.Spoiled != 1 || c.Misses != 1 || c.Hits != 0 {
				t.Errorf("%+v", c)
			}
		},
		"who counts the machine's load sees what is ready": func(t *testing.T) {
			s := shelf(2)
			s.Spec.Limits.Memory = 1 << 20
			r := set(t, &fake{}, s)
			r.wait(t)
			if all := r.Ready(); len(all) != 2 || all[1].Limits.Memory != 1<<20 {
				t.Errorf("%+v", all)
			}
		},
		"a shelf that cannot be is refused": func(t *testing.T) {
			for _, s := range []pool.Shelf{
				{Spec: shelf(1).Spec, Size: 2, Most: 1}, {Spec: shelf(1).Spec, Size: 1, TTL: -1}, {Spec: shelf(1).Spec, Size: 1, TTL: time.Millisecond},
			} {
				if _, err := pool.New(&fake{}, pool.Options{Shelves: []pool.Shelf{s}}); !errors.Is(err, paddock.Invalid) {
					t.Errorf("%+v: %v", s, err)
				}
			}
		},
	})
}
