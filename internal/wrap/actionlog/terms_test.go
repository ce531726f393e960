package actionlog_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/allowance"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/wrap/actionlog"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

func TestWhatIsDoneWithTermsIsRecorded(t *testing.T) {
	inner, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	leased, err := lifetime.New(t.Context(), inner, lifetime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, failed := &list{}, make(chan struct{})
	d, err := actionlog.New(leased, actionlog.Options{Sink: l, Failed: failed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	k, ok := paddock.As[lifetime.Lessor](d)
	if !ok {
		t.Fatal("no terms are passed on")
	}
	ctx := t.Context()
	if _, err := k.CreateWith(ctx, paddock.Spec{ID: "a"}, lifetime.Terms{Lifetime: time.Hour}); err != nil {
		t.Fatal(err)
	}
	_, _ = k.Terms(ctx, "a") // only looks
	_ = k.Extend(ctx, "a", time.Minute)
	_ = k.Raise(ctx, "a", allowance.Raise{Set: allowance.Budget{CPU: time.Minute}})
	_ = k.Renew(ctx, "a")
	_ = k.Change(ctx, "a", lifetime.Terms{})
	want := []string{"|a|sandbox.create||ok", "|a|sandbox.extend|1m0s|ok", "|a|sandbox.budget|cpu=1m0s|ok", "|a|sandbox.renew||conflict", "|a|sandbox.terms||ok"}
	if got := l.take(); !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	close(failed)
	_, err = k.CreateWith(ctx, paddock.Spec{}, lifetime.Terms{})
	for what, err := range map[string]error{
		"create": err, "change": k.Change(ctx, "a", lifetime.Terms{}), "extend": k.Extend(ctx, "a", time.Hour), "renew": k.Renew(ctx, "a"),
		"raise": k.Raise(ctx, "a", allowance.Raise{Set: allowance.Budget{CPU: time.Minute}}),
	} {
		if !errors.Is(err, paddock.Unavailable) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestNoTermsArePassedOnWhereThereAreNone(t *testing.T) {
	d, _ := set(t, nil)
	if _, ok := paddock.As[lifetime.Lessor](d); ok {
		t.Error("a lessor of nothing")
	}
}
