package tenant_test

import (
	"fmt"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/store/storetest"
	"github.com/paddock-sandbox/paddock/internal/wrap/tenant"
)

// stranger puts a sandbox that is not the tenant's in the place of one that was.
func (r rig) stranger(id paddock.ID, labels map[string]string) {
	r.f.set(func() {
		r.f.boxes[id] = &fakeSandbox{f: r.f, st: paddock.Status{ID: id, State: paddock.Ready, Labels: labels}}
	})
}

func TestARecordOpensAndRemovesNoOtherOfItsName(t *testing.T) {
	r := build(t, storetest.SQLite(), unbounded())
	ctx := t.Context()
	for _, labels := range []map[string]string{nil, {tenant.Label: r.s.ID() + ".another"}, {tenant.Label: "another.x"}} {
		sb := r.create(t, "acme", paddock.Spec{ID: "one"})
		r.stranger("one", labels)
		_, err := r.Driver("acme").Open(ctx, "one")
		wantKind(t, err, paddock.NotFound)
		if have, err := r.s.Total(ctx, "acme"); err != nil || have.Sandboxes != 0 {
			t.Errorf("the record is still there: %+v, %v", have, err)
		}
		must(t, sb.Remove(ctx))
		if r.f.boxes["one"] == nil {
			t.Error("another was removed")
		}
		r.f.set(func() { delete(r.f.boxes, "one") })
	}
}

func TestClosingRemovesNoOtherOfTheNameOfSomethingEphemeral(t *testing.T) {
	r := build(t, storetest.SQLite(), unbounded())
	r.create(t, "acme", paddock.Spec{ID: "one", Ephemeral: true})
	r.stranger("one", nil)
	must(t, r.Driver("acme").Close())
	if r.f.boxes["one"] == nil {
		t.Error("another was removed")
	}
	if have, err := r.s.Total(t.Context(), "acme"); err != nil || have.Sandboxes != 0 {
		t.Errorf("the record is still there: %+v, %v", have, err)
	}
}

// What was opened before acts on nothing that was made since, even where the driver
// takes names for sandboxes.
func TestWhatWasOpenedBeforeActsOnNoLaterOneOfItsName(t *testing.T) {
	r := build(t, storetest.SQLite(), unbounded())
	ctx := t.Context()
	old := r.create(t, "acme", paddock.Spec{ID: "one"})
	early := r.f.boxes["one"]
	must(t, old.Remove(ctx))
	r.create(t, "acme", paddock.Spec{ID: "one"})
	r.f.set(func() { // the driver goes by the name
		*early = *r.f.boxes["one"]
		r.f.boxes["one"] = early
	})

	wantKind(t, old.Pause(ctx), paddock.NotFound)
	wantKind(t, old.Resume(ctx), paddock.NotFound)
	wantKind(t, old.Update(ctx, paddock.Update{Labels: map[string]string{"a": "b"}}), paddock.NotFound)
	_, err := old.Snapshot(ctx, paddock.SnapshotOptions{})
	wantKind(t, err, paddock.NotFound)
	_, err = old.Status(ctx)
	wantKind(t, err, paddock.NotFound)
	must(t, old.Remove(ctx))
	if got := r.ids(t, "acme"); got != "one:ready " || len(r.f.snaps) != 0 {
		t.Errorf("listed: %s; snapshots: %v", got, r.f.snaps)
	}
}

func TestWhatAnotherPlaceMadeIsLeftAlone(t *testing.T) {
	r := build(t, storetest.SQLite(), unbounded())
	ctx := t.Context()
	r.create(t, "acme", paddock.Spec{ID: "one"})
	half(t, r, "made", true)
	h, err := tenant.New(r.f, tenant.Options{Store: r.s, Place: "renamed"})
	must(t, err)
	a, err := h.Adopt(ctx)
	if err != nil || fmt.Sprint(a.Kept, a.Removed, a.Lost, a.Left) != "[] [] [] [made one]" {
		t.Errorf("%+v, %v", a, err)
	}
	if b, err := r.s.Sandbox(ctx, "acme", "one"); err != nil || b.State != store.Ready {
		t.Errorf("%+v, %v", b, err)
	}
	if got := r.ids(t, "acme"); got != "one:ready " {
		t.Errorf("listed: %s", got)
	}
}

func TestAMarkTellsOfWhichStoreASandboxIs(t *testing.T) {
	r := build(t, storetest.SQLite(), unbounded())
	r.create(t, "acme", paddock.Spec{ID: "one"})
	st := r.f.boxes["one"].st
	if !tenant.Marked(r.s.ID())(st) || tenant.Marked("another")(st) || tenant.Marked("")(st) || tenant.Marked(r.s.ID())(paddock.Status{}) {
		t.Error("told wrongly")
	}
	if tenant.Marked("")(paddock.Status{Labels: map[string]string{tenant.Label: ".x"}}) {
		t.Error("a store without an ID has sandboxes")
	}
}
