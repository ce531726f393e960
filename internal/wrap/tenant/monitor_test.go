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

// No tenant answers for another, also not one that holds on to a sandbox whose name another one has now.
func TestQuestionsAreForTheTenantOfTheSandbox(t *testing.T) {
	s := storetest.Open(t, filepath.Join(t.TempDir(), "state", "paddock.db"))
	for _, name := range []string{"acme", "other"} {
		must(t, s.AddTenant(t.Context(), store.Tenant{ID: name, Quota: unbounded()}))
	}
	inner, err := sim.New(sim.Options{})
	must(t, err)
	asking, answers := steptest.Asking(inner)
	set, err := tenant.New(asking, tenant.Options{Store: s, Place: "here"})
	must(t, err)
	t.Cleanup(func() { must(t, set.Close()) })
	ctx := t.Context()
	spec := paddock.Spec{ID: "one", Monitor: &paddock.Monitor{}}
	sb, err := set.Driver("acme").Create(ctx, spec)
	must(t, err)
	if list, err := paddock.MonitorQuestions(ctx, sb, false); err != nil || len(list) != 2 {
		t.Fatalf("its own questions are %+v, %v", list, err)
	}
	must(t, paddock.AnswerMonitor(ctx, sb, "ONE", true))
	_, err = set.Driver("other").Open(ctx, "one")
	wantKind(t, err, paddock.NotFound)
	must(t, sb.Remove(ctx))
	_, err = set.Driver("other").Create(ctx, spec)
	must(t, err)
	_, err = paddock.MonitorQuestions(ctx, sb, false)
	wantKind(t, err, paddock.NotFound)
	wantKind(t, paddock.AnswerMonitor(ctx, sb, "ONE", true), paddock.NotFound)
	if all := answers.All(); len(all) != 1 {
		t.Errorf("the answers are %q", all)
	}
}
