package tenant_test

import (
	"context"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/store/storetest"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
	"github.com/paddock-sandbox/paddock/internal/wrap/tenant"
)

// timed is a set of tenants around a driver with terms, around the fake.
func timed(t *testing.T, quota store.Quota, longest time.Duration) rig {
	t.Helper()
	r := build(t, storetest.SQLite(), quota)
	d, err := lifetime.New(t.Context(), r.f, lifetime.Options{Of: tenant.Marked(r.s.ID()), Longest: longest})
	must(t, err)
	if r.Set, err = tenant.New(d, tenant.Options{Store: r.s, Place: "here", Now: r.c.now, Meter: r.m}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, r.Close()) })
	return r
}

func (r rig) lessor(t *testing.T, who string) lifetime.Lessor {
	t.Helper()
	k, ok := paddock.As[lifetime.Lessor](r.Driver(who))
	if !ok {
		t.Fatal("no terms are passed on")
	}
	return k
}

func TestNoTermsArePassedOnWhereThereAreNone(t *testing.T) {
	r := build(t, storetest.SQLite(), unbounded())
	if _, ok := paddock.As[lifetime.Lessor](r.Driver("acme")); ok {
		t.Error("a lessor of nothing")
	}
}

func TestATenantHasTheTermsOfItsSandboxesAndOfNoOthers(t *testing.T) {
	r := timed(t, unbounded(), 3*time.Hour)
	ctx := t.Context()
	k := r.lessor(t, "acme")
	sb, err := k.CreateWith(ctx, paddock.Spec{ID: "one"}, lifetime.Terms{Lifetime: time.Hour, KeepAlive: time.Minute})
	must(t, err)
	must(t, k.Extend(ctx, "one", time.Hour))
	must(t, k.Renew(ctx, "one"))
	l, err := k.Terms(ctx, "one")
	if left := time.Until(l.Ends); err != nil || l.Terms.Lifetime != time.Hour || left < time.Hour || left > 2*time.Hour {
		t.Errorf("%+v, %v", l, err)
	}
	wantKind(t, k.Extend(ctx, "one", 2*time.Hour), paddock.Denied)
	must(t, k.Change(ctx, "one", lifetime.Terms{IdleRemove: time.Hour}))
	if l, err := k.Terms(ctx, "one"); err != nil || l.Terms != (lifetime.Terms{IdleRemove: time.Hour}) || time.Until(l.Ends) > 3*time.Hour {
		t.Errorf("%+v, %v", l, err)
	}
	if st, err := sb.Status(ctx); err != nil || len(st.Labels) != 0 {
		t.Errorf("%+v, %v", st, err)
	}

	other := r.lessor(t, "other")
	for _, id := range []paddock.ID{"one", "never"} {
		_, err := other.Terms(ctx, id)
		for what, err := range map[string]error{
			"terms": err, "change": other.Change(ctx, id, lifetime.Terms{}), "extend": other.Extend(ctx, id, time.Hour), "renew": other.Renew(ctx, id),
		} {
			if wantKind(t, err, paddock.NotFound); err.Error() != "sandbox "+string(id)+": not found" {
				t.Errorf("%s: told apart: %v", what, err)
			}
		}
	}
	if l, err := k.Terms(ctx, "one"); err != nil || l.Terms != (lifetime.Terms{IdleRemove: time.Hour}) {
		t.Errorf("changed by another: %+v, %v", l, err)
	}
}

func TestASandboxWithTermsIsWithinTheQuotaToo(t *testing.T) {
	q := unbounded()
	q.Sandboxes = 1
	r := timed(t, q, 0)
	k := r.lessor(t, "acme")
	_, err := k.CreateWith(t.Context(), paddock.Spec{}, lifetime.Terms{Lifetime: time.Hour})
	must(t, err)
	_, err = k.CreateWith(t.Context(), paddock.Spec{}, lifetime.Terms{Lifetime: time.Hour})
	wantKind(t, err, paddock.Exhausted)
	_, err = k.CreateWith(t.Context(), paddock.Spec{Labels: map[string]string{tenant.Label: "x"}}, lifetime.Terms{})
	wantKind(t, err, paddock.Invalid)
}

func TestTermsThatAreRefusedLeaveNothing(t *testing.T) {
	r := timed(t, unbounded(), 0)
	_, err := r.lessor(t, "acme").CreateWith(t.Context(), paddock.Spec{ID: "one"}, lifetime.Terms{Lifetime: 1})
	wantKind(t, err, paddock.Invalid)
	if have, err := r.s.Total(t.Context(), "acme"); err != nil || have.Sandboxes != 0 || len(r.f.boxes) != 0 {
		t.Errorf("%+v, %v, %v", have, r.f.boxes, err)
	}
}

// A slow lessor stops in Change until it is let go on.
type slow struct {
	*lifetime.Driver
	reached, proceed chan struct{}
}

func (s slow) Change(ctx context.Context, id paddock.ID, t lifetime.Terms) error {
	close(s.reached)
	<-s.proceed
	return s.Driver.Change(ctx, id, t)
}

func TestTermsThatAreUnderWayMeetNoLaterSandboxOfTheName(t *testing.T) {
	r := build(t, storetest.SQLite(), unbounded())
	inner, err := lifetime.New(t.Context(), r.f, lifetime.Options{})
	must(t, err)
	s := slow{inner, make(chan struct{}), make(chan struct{})}
	r.Set, err = tenant.New(s, tenant.Options{Store: r.s, Place: "here"})
	must(t, err)
	t.Cleanup(func() { must(t, r.Close()) })
	ctx := t.Context()
	sb := r.create(t, "acme", paddock.Spec{ID: "one"})
	changed := make(chan error, 1)
	go func() { changed <- r.lessor(t, "acme").Change(ctx, "one", lifetime.Terms{Lifetime: time.Hour}) }()
	<-s.reached
	must(t, sb.Remove(ctx))

	impatient, cancel := context.WithCancel(ctx)
	cancel()
	_, err = r.Driver("other").Create(impatient, paddock.Spec{ID: "one"})
	wantKind(t, err, paddock.Canceled)
	close(s.proceed)
	wantKind(t, <-changed, paddock.NotFound)
	r.create(t, "other", paddock.Spec{ID: "one"})
	if l, err := r.lessor(t, "other").Terms(ctx, "one"); err != nil || l.Terms != (lifetime.Terms{}) {
		t.Errorf("%+v, %v", l, err)
	}
}
