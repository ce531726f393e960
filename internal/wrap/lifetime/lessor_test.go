package lifetime_test

import (
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// A clear wrapper can be passed by, and a plain one cannot.
type clear struct{ paddock.Driver }

func (c clear) Unwrap() paddock.Driver { return c.Driver }

type plain struct{ paddock.Driver }

func TestALessorIsFoundWhereThereIsOneAlone(t *testing.T) {
	d, err := lifetime.New(t.Context(), newFake(), lifetime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	for name, around := range map[string]paddock.Driver{"the driver itself": d, "a clear wrapper": clear{d}} {
		if k, ok := paddock.As[lifetime.Lessor](around); !ok || k != lifetime.Lessor(d) {
			t.Errorf("%s: %v, %v", name, k, ok)
		}
	}
	if _, ok := paddock.As[lifetime.Lessor](plain{d}); ok {
		t.Error("a wrapper that passes nothing on")
	}
	if _, ok := paddock.As[lifetime.Lessor](newFake()); ok {
		t.Error("a driver without terms")
	}
}

func TestNoTermsOutliveTheLongestLife(t *testing.T) {
	longest := lifetime.Options{Longest: hour}
	inBubble(t, map[string]func(t *testing.T){
		"what asks to be paused at its end is removed": func(t *testing.T) {
			r := set(t, longest)
			r.create(t, "a", lifetime.Terms{OnEnd: lifetime.Pause, Lifetime: 2 * hour})
			pass(hour - second)
			r.want(t, "a", paddock.Ready)
			pass(second)
			r.want(t, "a", "")
			if r.f.paused != 0 {
				t.Error("paused for a moment")
			}
		},
		"what was paused at a sooner end is removed then": func(t *testing.T) {
			r := set(t, longest)
			r.create(t, "a", lifetime.Terms{OnEnd: lifetime.Pause, Lifetime: minute})
			pass(minute)
			r.want(t, "a", paddock.Paused)
			pass(hour - minute - second)
			r.want(t, "a", paddock.Paused)
			pass(second)
			r.want(t, "a", "")
			_, err := r.Open(t.Context(), "a")
			wantKind(t, "open", err, paddock.NotFound, "removed at its deadline of 2000-01-01T01:00:00Z")
		},
		"other terms move nothing": func(t *testing.T) {
			r := set(t, longest)
			r.create(t, "a", lifetime.Terms{})
			pass(hour / 2)
			if err := r.Change(t.Context(), "a", lifetime.Terms{OnEnd: lifetime.Pause, KeepAlive: 10 * hour}); err != nil {
				t.Fatal(err)
			}
			r.wall.jump(-10 * hour)
			if err := r.Change(t.Context(), "a", lifetime.Terms{Lifetime: 3 * hour}); err != nil {
				t.Fatal(err)
			}
			pass(hour/2 - second)
			r.want(t, "a", paddock.Ready)
			pass(second)
			r.want(t, "a", "")
		},
		"a restart moves nothing": func(t *testing.T) {
			r := set(t, longest)
			r.create(t, "a", lifetime.Terms{OnEnd: lifetime.Pause, Lifetime: minute})
			pass(minute)
			r.restart(t, hour/2, longest)
			pass(hour/2 - minute - second)
			r.want(t, "a", paddock.Paused)
			pass(second)
			r.want(t, "a", "")
		},
	})
}
