package client_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/step/steptest"
)

func TestAJournalOfAServerAnswersAsThatOfTheDriver(t *testing.T) {
	h := &host{driver: func(state string) (paddock.Driver, error) {
		d, err := simulated(state)
		return steptest.Journaled(d), err
	}}
	t.Cleanup(func() { h.close(t) })
	d, err := h.open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	sb, err := d.Create(t.Context(), paddock.Spec{Undo: paddock.UndoOn})
	if err != nil {
		t.Fatal(err)
	}
	there, err := paddock.JournalOf(sb)
	if err != nil {
		t.Fatal(err)
	}
	here := steptest.NewFake()
	ctx := t.Context()
	same := func(what string, got any, gotErr error, want any, wantErr error) {
		t.Helper()
		if !reflect.DeepEqual(got, want) || paddock.KindOf(gotErr) != paddock.KindOf(wantErr) || (gotErr == nil) != (wantErr == nil) {
			t.Errorf("%s: %+v, %v; want %+v, %v", what, got, gotErr, want, wantErr)
		}
	}
	for _, f := range []paddock.StepFilter{{}, {Last: 2}, {Before: 30}, {Before: 30, Last: 1}, {Before: 10}} {
		got, gotErr := there.Steps(ctx, f)
		want, wantErr := here.Steps(ctx, f)
		same("steps", got, gotErr, want, wantErr)
	}
	for _, n := range []int64{10, 20, 21} {
		got, gotErr := there.Step(ctx, n)
		want, wantErr := here.Step(ctx, n)
		same("step", got, gotErr, want, wantErr)
	}
	got, gotErr := there.Diff(ctx, 10, 20, []string{"/a\xff", "/b"})
	want, wantErr := here.Diff(ctx, 10, 20, nil)
	same("diff", got, gotErr, want, wantErr)
	done, gotErr := there.Undo(ctx, paddock.Undo{Steps: []int64{10}, Paths: []string{"/a\xff"}})
	wanted, wantErr := here.Undo(ctx, paddock.Undo{})
	same("undo", done, gotErr, wanted, wantErr)
	if _, err := there.Begin(ctx, "cell", nil); !errors.Is(err, paddock.Unsupported) {
		t.Errorf("begin: %v", err)
	}

	if _, err := paddock.PastJournal(ctx, d, "nobody"); !errors.Is(err, paddock.NotFound) {
		t.Errorf("the past of nobody: %v", err)
	}
	if err := sb.Remove(ctx); err != nil {
		t.Fatal(err)
	}
	past, err := paddock.PastJournal(ctx, d, sb.ID())
	if err != nil {
		t.Fatal(err)
	}
	gotSteps, gotErr := past.Steps(ctx, paddock.StepFilter{})
	wantSteps, wantErr := here.Steps(ctx, paddock.StepFilter{})
	same("steps of the past", gotSteps, gotErr, wantSteps, wantErr)
	done, gotErr = past.Undo(ctx, paddock.Undo{To: 10})
	same("undo of the past", done, gotErr, wanted, nil)
}
