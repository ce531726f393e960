package pool_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/pool"
)

// inBubble runs each case with a time of its own. When it ends, no goroutine of
// the pool may be left, or the bubble does not end.
func inBubble(t *testing.T, cases map[string]func(t *testing.T)) {
	for name, test := range cases {
		t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
	}
}

func TestHandOut(t *testing.T) {
	inBubble(t, map[string]func(t *testing.T){
		"a ready sandbox is there at once, and another one takes its place": func(t *testing.T) {
			r := set(t, &fake{slow: time.Minute}, shelf(2))
			for range 5 {
				r.wait(t)
				start := time.Now()
				if sb := r.create(t, shelf(1).Spec); !ready(sb) || time.Since(start) != 0 {
					t.Errorf("%s after %v", sb.ID(), time.Since(start))
				}
			}
		},
		"what is not kept is the driver's, untouched": func(t *testing.T) {
			r := set(t, &fake{slow: time.Minute}, shelf(2))
			r.wait(t)
			spec := shelf(1).Spec
			spec.Env = map[string]string{"A": "b"}
			spec.Mounts = []paddock.Mount{}
			if sb := r.create(t, spec); ready(sb) {
				t.Error("it was ready")
			}
			if last := r.f.calls[len(r.f.calls)-1].spec; last.Env["A"] != "b" || last.Mounts == nil {
				t.Errorf("the driver was asked for %+v", last)
			}
			spec = shelf(1).Spec
			spec.ID = "mine"
			if sb := r.create(t, spec); sb.ID() != "mine" {
				t.Errorf("it is called %s", sb.ID())
			}
		},
		"none is handed out twice": func(t *testing.T) {
			r := set(t, &fake{slow: time.Second}, shelf(8))
			r.wait(t)
			var mu sync.Mutex
			seen := map[paddock.ID]int{}
			var wg sync.WaitGroup
			for range 40 {
				wg.Go(func() {
					for range 5 {
						sb, err := r.Create(t.Context(), shelf(1).Spec)
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						seen[sb.ID()]++
						mu.Unlock()
						if err := sb.Remove(t.Context()); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			for id, n := range seen {
				if n > 1 {
					t.Errorf("%s was handed out %d times", id, n)
				}
			}
			if len(seen) != 200 {
				t.Errorf("%d sandboxes for 200 callers", len(seen))
			}
		},
		"a dead one is removed, and the next is taken": func(t *testing.T) {
			r := set(t, &fake{slow: time.Second}, shelf(2))
			r.wait(t)
			r.f.mu.Lock()
			var old *fakeSandbox
			for _, sb := range r.f.boxes {
				if old == nil || sb.made.Before(old.made) {
					old = sb
				}
			}
			r.f.mu.Unlock()
			old.set(func() { old.state = paddock.Dead })
			if sb := r.create(t, shelf(1).Spec); !ready(sb) || sb.ID() == old.ID() {
				t.Errorf("got %s; %s is dead", sb.ID(), old.ID())
			}
			r.wait(t)
			if slices.Contains(r.f.left(), old.ID()) {
				t.Error("the dead one is still there")
			}
			if !strings.Contains(r.log.String(), string(old.ID())) {
				t.Errorf("nobody was told: %s", r.log)
			}
			spec := paddock.Spec{ID: old.ID()} // its name is free
			r.create(t, spec)
			if _, err := r.Open(t.Context(), spec.ID); err != nil {
				t.Errorf("one of its name is not found: %v", err)
			}
		},
		"where all are dead the driver makes one": func(t *testing.T) {
			r := set(t, &fake{fix: func(sb *fakeSandbox) { sb.set(func() { sb.state = paddock.Dead }) }}, shelf(3))
			r.wait(t)
			if sb := r.create(t, shelf(1).Spec); ready(sb) {
				t.Error("it was ready")
			}
		},
		"one that does not answer is not waited for": func(t *testing.T) {
			r := set(t, &fake{fix: func(sb *fakeSandbox) { sb.set(func() { sb.hang = true }) }}, shelf(3))
			r.wait(t)
			start := time.Now()
			if sb := r.create(t, shelf(1).Spec); ready(sb) || time.Since(start) > 10*time.Second {
				t.Errorf("%s after %v", sb.ID(), time.Since(start))
			}
		},
		"a Create that was given up takes none": func(t *testing.T) {
			r := set(t, &fake{slow: time.Second}, shelf(1))
			r.wait(t)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := r.Create(ctx, shelf(1).Spec); !errors.Is(err, paddock.Canceled) {
				t.Errorf("%v", err)
			}
			if sb := r.create(t, shelf(1).Spec); !ready(sb) {
				t.Error("the ready one is gone")
			}
		},
	})
}

func TestLabels(t *testing.T) {
	const key = "owner"
	kept := shelf(2)
	kept.Spec.Labels = map[string]string{"from": "shelf"}
	asked := kept.Spec
	asked.Labels = map[string]string{key: "me"}
	none := kept.Spec
	none.Labels = nil
	inBubble(t, map[string]func(t *testing.T){
		"are the caller's": func(t *testing.T) {
			r := set(t, &fake{}, kept)
			for _, spec := range []paddock.Spec{kept.Spec, asked, none} {
				r.wait(t)
				if sb := r.create(t, spec); !ready(sb) || !maps.Equal(labels(t, sb), spec.Labels) {
					t.Errorf("%s has %v, want %v", sb.ID(), labels(t, sb), spec.Labels)
				}
			}
		},
		"that cannot be set have the driver make one, and nothing is left": func(t *testing.T) {
			r := set(t, &fake{fix: func(sb *fakeSandbox) { sb.set(func() { sb.deaf = paddock.Internal }) }}, kept)
			r.wait(t)
			before := r.f.left()
			sb := r.create(t, asked)
			if ready(sb) || labels(t, sb)[key] != "me" {
				t.Errorf("%s has %v", sb.ID(), labels(t, sb))
			}
			synctest.Wait()
			gone := slices.DeleteFunc(before, func(id paddock.ID) bool { return slices.Contains(r.f.left(), id) })
			if len(gone) != 1 {
				t.Errorf("%q were removed", gone)
			}
		},
		"of a driver that cannot change them cost one sandbox only": func(t *testing.T) {
			r := set(t, &fake{fix: func(sb *fakeSandbox) { sb.set(func() { sb.deaf = paddock.Unsupported }) }}, kept)
			for range 5 {
				r.wait(t)
				if sb := r.create(t, asked); ready(sb) {
					t.Error("it was ready")
				}
			}
			r.wait(t)
			if own := r.f.own(time.Now()); len(own) != 3 {
				t.Errorf("%d were made ahead of time, want 3", len(own))
			}
			if sb := r.create(t, kept.Spec); !ready(sb) {
				t.Error("with the shelf's own labels it is not ready")
			}
		},
	})
}

func TestNobodySeesAReadySandbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := set(t, &fake{slow: time.Second}, shelf(2))
		look := func(when string, want ...paddock.ID) {
			t.Helper()
			all, err := r.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var got []paddock.ID
			for _, st := range all {
				got = append(got, st.ID)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: listed %q, want %q", when, got, want)
			}
			for _, id := range r.f.left() {
				_, err := r.Open(t.Context(), id)
				if mine := slices.Contains(want, id); mine && err != nil || !mine && !errors.Is(err, paddock.NotFound) {
					t.Errorf("%s: open %s: %v", when, id, err)
				}
			}
		}
		synctest.Wait()
		look("while the first is made")
		r.wait(t)
		look("while they are ready")
		sb := r.create(t, shelf(1).Spec)
		look("after a Create", sb.ID())
		r.wait(t)
		look("after the refill", sb.ID())

		// One that cannot be removed stays where nobody sees it.
		r.f.set(func() {
			for id, box := range r.f.boxes {
				if id != sb.ID() {
					box.set(func() { box.state, box.keep = paddock.Dead, paddock.Internal })
				}
			}
		})
		passed := r.create(t, shelf(1).Spec)
		time.Sleep(time.Hour) // a bubble's time: every retry is over
		look("after dead ones stay", sb.ID(), passed.ID())
		for _, box := range r.f.boxes {
			box.set(func() { box.keep = nil })
		}
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if left := r.f.left(); !slices.Equal(left, slices.Sorted(slices.Values([]paddock.ID{passed.ID(), sb.ID()}))) {
			t.Errorf("after Close there are %q", left)
		}
	})
}

func TestAListUnderWayDoesNotTellOfAReadySandboxThatGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := set(t, &fake{}, shelf(1))
		r.wait(t)
		var old *fakeSandbox
		r.f.set(func() {
			for _, old = range r.f.boxes {
				old.set(func() { old.state = paddock.Dead })
			}
			r.f.seen = func() {
				r.create(t, shelf(1).Spec)
				synctest.Wait()
				if slices.Contains(r.f.left(), old.ID()) {
					t.Error("the dead one is still there")
				}
			}
		})
		if all, err := r.List(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

func TestASandboxBeginsWhenItIsHandedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := set(t, &fake{slow: time.Second}, shelf(1))
		r.wait(t)
		time.Sleep(time.Hour) // a bubble's time
		other := r.create(t, paddock.Spec{})
		begin := time.Now()
		sb := r.create(t, shelf(1).Spec)
		time.Sleep(time.Minute) // a bubble's time
		again, err := r.Open(t.Context(), sb.ID())
		if err != nil {
			t.Fatal(err)
		}
		all, err := r.List(t.Context())
		if err != nil || len(all) != 2 || all[0].ID != other.ID() {
			t.Fatalf("not in the order of the Creates: %+v, %v", all, err)
		}
		for _, status := range []func() (paddock.Status, error){
			func() (paddock.Status, error) { return sb.Status(t.Context()) },
			func() (paddock.Status, error) { return again.Status(t.Context()) },
			func() (paddock.Status, error) { return all[1], nil },
		} {
			st, err := status()
			if err != nil || !st.Created.Equal(begin) || st.Usage.Wall != time.Minute || st.Usage.CPU != -1 {
				t.Errorf("begun %v ago, and there for %v: %v", time.Since(st.Created), st.Usage.Wall, err)
			}
		}
		if err := again.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		// Its name may be used again, by one that has its own age.
		spec := shelf(1).Spec
		spec.ID = sb.ID()
		begin = time.Now()
		r.create(t, spec)
		if again, err = r.Open(t.Context(), sb.ID()); err != nil {
			t.Fatal(err)
		}
		if st, err := again.Status(t.Context()); err != nil || !st.Created.Equal(begin) {
			t.Errorf("begun %v, want %v: %v", st.Created, begin, err)
		}
	})
}

func TestNewRefusesWhatCannotBe(t *testing.T) {
	edit := func(change func(*pool.Shelf)) pool.Shelf {
		s := shelf(1)
		change(&s)
		return s
	}
	for name, shelves := range map[string][]pool.Shelf{
		"no size":            {shelf(0)},
		"a negative size":    {shelf(-1)},
		"an ID":              {edit(func(s *pool.Shelf) { s.Spec.ID = "mine" })},
		"not ephemeral":      {edit(func(s *pool.Shelf) { s.Spec.Ephemeral = false })},
		"the same spec":      {shelf(1), shelf(2)},
		"same but for label": {shelf(1), edit(func(s *pool.Shelf) { s.Spec.Labels = map[string]string{"a": "b"} })},
	} {
		f := &fake{}
		if _, err := pool.New(f, pool.Options{Shelves: shelves}); !errors.Is(err, paddock.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
		if f.closed > 0 {
			t.Errorf("%s: the driver was closed", name)
		}
	}
}
