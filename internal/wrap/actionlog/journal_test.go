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

func TestWhatIsAskedOfThePastIsRecorded(t *testing.T) {
	inner, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := &list{}
	failed := make(chan struct{})
	d, err := actionlog.New(steptest.Journaled(inner), actionlog.Options{Sink: l, Caller: caller, Failed: failed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx := context.WithValue(t.Context(), callerKey{}, "alice")
	sb, err := d.Create(ctx, paddock.Spec{ID: "one"})
	if err != nil {
		t.Fatal(err)
	}
	if err := sb.Remove(ctx); err != nil {
		t.Fatal(err)
	}
	j, err := paddock.PastJournal(ctx, d, "one")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Steps(ctx, paddock.StepFilter{}); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Undo(ctx, paddock.Undo{To: 10}); err != nil {
		t.Fatal(err)
	}
	close(failed)
	if _, err := j.Undo(ctx, paddock.Undo{To: 10}); paddock.KindOf(err) != paddock.Unavailable {
		t.Errorf("what cannot be recorded is done: %v", err)
	}
	if _, err := paddock.PastJournal(ctx, d, "one"); paddock.KindOf(err) != paddock.Unavailable {
		t.Errorf("the past is told where nothing can be recorded: %v", err)
	}
	got := l.take()
	want := []string{"alice|one|step.list||ok", "alice|one|step.undo|10..|ok"}
	if !slices.Equal(got[max(0, len(got)-2):], want) {
		t.Errorf("recorded %q, not %q at the end", got, want)
	}
}
