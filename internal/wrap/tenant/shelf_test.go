package tenant_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/store/storetest"
	"github.com/paddock-sandbox/paddock/internal/wrap/pool"
	"github.com/paddock-sandbox/paddock/internal/wrap/tenant"
)

// shelved is a set of tenants around a pool around the fake, with one shelf.
func shelved(t *testing.T, quota store.Quota) rig {
	t.Helper()
	r := build(t, storetest.SQLite(), quota)
	r.pool(t)
	return r
}

// pool puts a pool between the set and the fake, as the next server does.
func (r *rig) pool(t *testing.T) {
	t.Helper()
	_, err := pool.Clean(t.Context(), r.f, "mark")
	must(t, err)
	p, err := pool.New(r.f, pool.Options{Mark: "mark", Shelves: []pool.Shelf{{Spec: paddock.Spec{Dir: "/work"}, Size: 2}}})
	must(t, err)
	r.Set, err = tenant.New(p, tenant.Options{Store: r.s, Place: "here", Now: r.c.now, Meter: r.m})
	must(t, err)
	t.Cleanup(func() { must(t, p.Close()) })
	must(t, p.Wait(t.Context()))
}

func TestATenantTakesFromAShelfAndItIsAsAnyOther(t *testing.T) {
	q := unbounded()
	q.Sandboxes = 1
	r := shelved(t, q)
	ctx := t.Context()
	sb := r.create(t, "acme", paddock.Spec{Dir: "/work", Labels: map[string]string{"a": "b"}})
	r.f.mu.Lock()
	made := r.f.boxes[sb.ID()].st
	r.f.mu.Unlock()
	if _, shelf := made.Labels[pool.Label]; shelf || made.Labels["a"] != "b" || made.Labels[tenant.Label] == "" {
		t.Errorf("labels of the driver's: %v", made.Labels)
	}
	st, err := sb.Status(ctx)
	if err != nil || fmt.Sprint(st.Labels) != "map[a:b]" {
		t.Errorf("%+v, %v", st, err)
	}
	if list, err := r.Driver("acme").List(ctx); err != nil || len(list) != 1 || list[0].ID != sb.ID() {
		t.Errorf("%+v, %v", list, err)
	}
	_, err = r.Driver("acme").Create(ctx, paddock.Spec{Dir: "/work"})
	wantKind(t, err, paddock.Exhausted)
	_, err = r.Driver("other").Open(ctx, sb.ID())
	wantKind(t, err, paddock.NotFound)
	must(t, sb.Remove(ctx))
}

func TestNobodySeesWhatIsOnAShelf(t *testing.T) {
	r := shelved(t, unbounded())
	if got := r.ids(t, "acme") + r.ids(t, "other"); got != "" {
		t.Errorf("listed: %s", got)
	}
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	for id := range r.f.boxes {
		r.f.mu.Unlock()
		_, err := r.Driver("acme").Open(t.Context(), id)
		wantKind(t, err, paddock.NotFound)
		r.f.mu.Lock()
	}
}

// A server dies at each call that a Create from a shelf makes of its driver, before
// and after it; what is left is then either whole or gone.
func TestACrashOnTheWayFromAShelfLeavesNothingHalf(t *testing.T) {
	for _, after := range []bool{false, true} {
		r := shelved(t, unbounded())
		ctx, crash := context.WithCancel(t.Context())
		hang := make(chan struct{})
		r.f.set(func() {
			r.f.each = func(_ context.Context, call string) {
				if call != "update" {
					return
				}
				crash() // nothing of this server is done any more, but what is under way
				if !after {
					<-hang
				}
			}
		})
		created := make(chan error, 1)
		go func() { _, err := r.Driver("acme").Create(ctx, paddock.Spec{Dir: "/work"}); created <- err }()
		<-ctx.Done()
		if after {
			<-created
		}
		r.f.set(func() { r.f.each = nil })
		next := r
		_, err := pool.Clean(t.Context(), r.f, "mark")
		must(t, err)
		next = next.again(t)
		if _, err := next.Adopt(t.Context()); err != nil {
			t.Error(err)
		}
		have, err := r.s.Total(t.Context(), "acme")
		r.f.mu.Lock()
		boxes := 0
		for _, b := range r.f.boxes {
			if b.st.Labels[pool.Label] == "" { // of this server that has not died, and fills its shelf
				boxes++
			}
		}
		r.f.mu.Unlock()
		if err != nil || boxes != int(have.Sandboxes) {
			t.Errorf("after %v: %d sandboxes are there, %d are known: %v", after, boxes, have.Sandboxes, err)
		}
		close(hang)
		if !after {
			<-created
		}
	}
}

func TestOfTwoSandboxesOfOneMarkOnlyTheKnownOneStays(t *testing.T) {
	r := build(t, storetest.SQLite(), unbounded())
	sb := r.create(t, "acme", paddock.Spec{})
	r.f.set(func() {
		labels := r.f.boxes[sb.ID()].st.Labels
		r.f.boxes["a-twin"] = &fakeSandbox{f: r.f, st: paddock.Status{ID: "a-twin", State: paddock.Ready, Labels: labels}}
	})
	a, err := r.again(t).Adopt(t.Context())
	if err != nil || fmt.Sprint(a.Kept, a.Removed) != fmt.Sprint([]paddock.ID{sb.ID()}, []paddock.ID{"a-twin"}) {
		t.Errorf("%+v, %v", a, err)
	}
	if got := r.ids(t, "acme"); got != string(sb.ID())+":ready " {
		t.Errorf("listed: %s", got)
	}
}

func TestALabelThatCannotBeSetGivesAnotherSandbox(t *testing.T) {
	r := shelved(t, unbounded())
	r.f.mu.Lock()
	for _, b := range r.f.boxes {
		b.deaf = errors.New("the disk is full")
	}
	r.f.mu.Unlock()
	sb := r.create(t, "acme", paddock.Spec{Dir: "/work"})
	if st, err := sb.Status(t.Context()); err != nil || len(st.Labels) != 0 {
		t.Errorf("%+v, %v", st, err)
	}
	r.f.mu.Lock()
	for _, b := range r.f.boxes {
		b.deaf = nil
	}
	r.f.mu.Unlock()
}

func TestASandboxBeginsForItsTenantWhenItIsGivenAlsoAfterARestart(t *testing.T) {
	r := build(t, storetest.SQLite(), unbounded())
	r.f.set(func() { r.f.named = func(paddock.ID) paddock.ID { return "early" } })
	sb := r.create(t, "acme", paddock.Spec{})
	r.f.set(func() {
		st := &r.f.boxes["early"].st
		st.Created = r.c.now().Add(-time.Hour)
		st.Usage.Wall = time.Hour + time.Minute
	})
	st, err := sb.Status(t.Context())
	if err != nil || !st.Created.Equal(r.c.now()) || st.Usage.Wall != time.Minute {
		t.Errorf("%+v, %v", st, err)
	}
	list, err := r.again(t).Driver("acme").List(t.Context())
	if err != nil || len(list) != 1 || !list[0].Created.Equal(r.c.now()) || list[0].Usage.Wall != time.Minute {
		t.Errorf("%+v, %v", list, err)
	}
}
