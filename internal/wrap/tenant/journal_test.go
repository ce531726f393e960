package tenant_test

import (
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/step/steptest"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/store/storetest"
	"github.com/paddock-sandbox/paddock/internal/wrap/tenant"
)

// A tenant that holds on to the journal of a sandbox that it removed does not get that of another tenant's, which has the
// name now.
func TestAJournalEndsWithItsSandbox(t *testing.T) {
	s := storetest.Open(t, filepath.Join(t.TempDir(), "state", "paddock.db"))
	for _, name := range []string{"acme", "other"} {
		must(t, s.AddTenant(t.Context(), store.Tenant{ID: name, Quota: unbounded()}))
	}
	inner, err := sim.New(sim.Options{})
	must(t, err)
	set, err := tenant.New(steptest.Journaled(inner), tenant.Options{Store: s, Place: "here"})
	must(t, err)
	t.Cleanup(func() { must(t, set.Close()) })
	ctx := t.Context()
	sb, err := set.Driver("acme").Create(ctx, paddock.Spec{ID: "one"})
	must(t, err)
	j, err := paddock.JournalOf(sb)
	must(t, err)
	if list, err := j.Steps(ctx, paddock.StepFilter{}); err != nil || len(list) == 0 {
		t.Fatalf("its own steps are %+v, %v", list, err)
	}
	_, err = set.Driver("other").Open(ctx, "one")
	wantKind(t, err, paddock.NotFound)
	must(t, sb.Remove(ctx))
	_, err = set.Driver("other").Create(ctx, paddock.Spec{ID: "one"})
	must(t, err)
	_, begun := j.Begin(ctx, "cell", nil)
	_, listed := j.Steps(ctx, paddock.StepFilter{})
	_, read := j.Step(ctx, 10)
	_, diffed := j.Diff(ctx, 10, 20, nil)
	_, undone := j.Undo(ctx, paddock.Undo{To: 1})
	for _, err := range []error{begun, listed, read, diffed, undone} {
		wantKind(t, err, paddock.NotFound)
	}
}

// The name of a sandbox that is gone says nothing of whose it was, so only the user who owns the whole driver gets its steps.
func TestThePastIsForTheOwnerOfTheDriverAlone(t *testing.T) {
	for _, whole := range []bool{false, true} {
		s := storetest.Open(t, filepath.Join(t.TempDir(), "state", "paddock.db"))
		must(t, s.AddTenant(t.Context(), store.Tenant{ID: "acme", Quota: unbounded()}))
		inner, err := sim.New(sim.Options{})
		must(t, err)
		set, err := tenant.New(steptest.Journaled(inner), tenant.Options{Store: s, Place: "here", Whole: whole})
		must(t, err)
		t.Cleanup(func() { must(t, set.Close()) })
		ctx, d := t.Context(), set.Driver("acme")
		sb, err := d.Create(ctx, paddock.Spec{ID: "one"})
		must(t, err)
		_, err = paddock.PastJournal(ctx, d, "one")
		wantKind(t, err, paddock.NotFound) // it is there
		must(t, sb.Remove(ctx))
		j, err := paddock.PastJournal(ctx, d, "one")
		if !whole {
			wantKind(t, err, paddock.NotFound)
			continue
		}
		must(t, err)
		if list, err := j.Steps(ctx, paddock.StepFilter{}); err != nil || len(list) == 0 {
			t.Errorf("the steps of the past are %+v, %v", list, err)
		}
	}
}
