package tenant_test

import (
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store/storetest"
	"github.com/paddock-sandbox/paddock/internal/wrap/tenant"
)

// whole is the driver of the user who owns everything.
func whole(t *testing.T, r rig) paddock.Driver {
	t.Helper()
	ts, err := tenant.New(r.f, tenant.Options{Store: r.s, Place: "here", Whole: true})
	must(t, err)
	return ts.Driver("acme")
}

func names(t *testing.T, d paddock.Driver) (all []string) {
	t.Helper()
	list, err := d.List(t.Context())
	must(t, err)
	for _, st := range list {
		if _, shown := st.Labels[tenant.Label]; shown {
			t.Errorf("%s shows its mark", st.ID)
		}
		all = append(all, string(st.ID))
	}
	return all
}

func TestWhoOwnsTheDriverReachesEverySandboxOfIt(t *testing.T) {
	r := build(t, storetest.SQLite(), unbounded())
	d, ctx := whole(t, r), t.Context()
	_, err := d.Create(ctx, paddock.Spec{ID: "mine"})
	must(t, err)
	mark := map[string]string{tenant.Label: "another.x", "a": "b"}
	r.stranger("theirs", mark)
	if got := names(t, d); len(got) != 2 {
		t.Errorf("listed %q", got)
	}
	sb, err := d.Open(ctx, "theirs")
	must(t, err)
	must(t, sb.Update(ctx, paddock.Update{Labels: map[string]string{"c": "d"}}))
	if st := r.f.boxes["theirs"].st; st.Labels[tenant.Label] != "another.x" || st.Labels["c"] != "d" {
		t.Errorf("its own server would not know it again: %v", st.Labels)
	}
	must(t, sb.Remove(ctx))
	if got := names(t, d); len(got) != 1 {
		t.Errorf("listed %q", got)
	}
}

func TestWhatTheOwnerRemovedElsewhereIsInNobodysWay(t *testing.T) {
	r := build(t, storetest.SQLite(), unbounded())
	d, ctx := whole(t, r), t.Context()
	for _, again := range []func() error{
		func() error { _, err := d.Create(ctx, paddock.Spec{ID: "one"}); return err },
		func() error { // another server's is opened under the name
			r.stranger("one", nil)
			_, err := d.Open(ctx, "one")
			return err
		},
	} {
		r.f.set(func() { delete(r.f.boxes, "one") })
		_, err := d.Create(ctx, paddock.Spec{ID: "one"})
		must(t, err)
		r.f.set(func() { delete(r.f.boxes, "one") })
		must(t, again())
	}
	r.f.set(func() { clear(r.f.boxes) })
	_, err := d.Create(ctx, paddock.Spec{ID: "gone"})
	must(t, err)
	r.f.set(func() { clear(r.f.boxes) })
	ts, err := tenant.New(r.f, tenant.Options{Store: r.s, Place: "here", Whole: true})
	must(t, err)
	_, err = ts.Adopt(ctx)
	must(t, err)
	if got := names(t, ts.Driver("acme")); len(got) != 0 {
		t.Errorf("told as lost: %q", got)
	}
}
