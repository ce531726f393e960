package lifetime_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// The fake refuses a call in what is paused. With Wake nobody may ever see that,
// however calls, pauses and wakes meet.
func TestNoCallMeetsASandboxThatIsPausedForBeingIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := set(t, lifetime.Options{})
		r.f.set(func() { r.f.slow = 300 * time.Millisecond })
		var wg sync.WaitGroup
		for i := range 4 {
			id := paddock.ID(fmt.Sprintf("a-%d", i))
			sb := r.create(t, id, lifetime.Terms{IdlePause: second, Lifetime: hour, Wake: true})
			for j := range 4 {
				random := rand.New(rand.NewPCG(uint64(i), uint64(j)))
				wg.Go(func() {
					for range 500 {
						<-time.After(time.Duration(random.IntN(6000)) * time.Millisecond)
						var err error
						switch random.IntN(4) {
						case 0:
							err = r.Extend(t.Context(), id, minute)
						case 1:
							_, err = r.Terms(t.Context(), id)
						default:
							err = stat(t.Context(), sb)
						}
						if err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
		}
		wg.Wait()
		r.f.set(func() {
			if r.f.paused < 100 || r.f.resumed < 100 || r.f.removed != 0 {
				t.Errorf("paused %d, resumed %d, removed %d times", r.f.paused, r.f.resumed, r.f.removed)
			}
		})
		r.f.set(func() { r.f.slow = 0 })
	})
}

// Whoever removes first, the other is told no failure, and nothing is left.
func TestAPersonAndADeadlineMayRemoveAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := set(t, lifetime.Options{})
		var wg sync.WaitGroup
		for i := range 200 {
			sb := r.create(t, paddock.ID(fmt.Sprintf("a-%d", i)), lifetime.Terms{Lifetime: minute, IdlePause: 59 * second, Wake: true})
			wg.Go(func() {
				<-time.After(minute - time.Duration(i%3)*second)
				_ = start(t.Context(), sb)
				if err := sb.Remove(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		pass(hour)
		records, err := r.store.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range records {
			if rec.Ended.IsZero() {
				t.Errorf("%+v is left", rec)
			}
		}
		if list, err := r.List(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("%d are left, %v", len(list), err)
		}
	})
}
