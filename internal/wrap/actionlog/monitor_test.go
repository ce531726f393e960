package actionlog_test

import (
	"context"
	"slices"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/step/steptest"
	"github.com/paddock-sandbox/paddock/internal/wrap/actionlog"
)

func TestAnswersToAMonitorAreRecorded(t *testing.T) {
	inner, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := &list{}
	failed := make(chan struct{})
	asking, answers := steptest.Asking(inner)
	d, err := actionlog.New(asking, actionlog.Options{Sink: l, Caller: caller, Failed: failed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx := context.WithValue(t.Context(), callerKey{}, "alice")
	sb, err := d.Create(ctx, paddock.Spec{ID: "one", Monitor: &paddock.Monitor{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := paddock.AnswerMonitor(ctx, sb, "ONE", true); err != nil {
		t.Fatal(err)
	}
	if err := paddock.AnswerMonitor(ctx, sb, "ONE", false); paddock.KindOf(err) != paddock.NotFound {
		t.Fatal(err)
	}
	close(failed)
	if err := paddock.AnswerMonitor(ctx, sb, "TWO", true); paddock.KindOf(err) != paddock.Unavailable {
		t.Errorf("an answer that cannot be recorded: %v", err)
	}
	if all := answers.All(); len(all) != 1 {
		t.Errorf("the answers are %q", all)
	}
	got := l.take()
	want := []string{"alice|one|monitor.allow|ONE: write-ci: edited .github/workflows/ci.yml|ok", "alice|one|monitor.deny|ONE|" + paddock.NotFound.Error()}
	if !slices.Equal(got[max(0, len(got)-2):], want) {
		t.Errorf("recorded %q, not %q at the end", got, want)
	}
}
