// Package lifetimetest has the promises of lifetimes around a tier, for the tests of each tier.
package lifetimetest

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/allowance"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// An Open opens a driver with this directory for sandboxes that stay.
type Open func(state string) (paddock.Driver, error)

// Budget promises that a sandbox is paused when its budget is used up, with the reason; that nothing runs in it then, also
// after a restart; and that what ran goes on when the budget is raised. The bound must be more than an idle sandbox uses
// until a command starts.
func Budget(t *testing.T, spec paddock.Spec, bound time.Duration, open Open) {
	t.Helper()
	ctx, state, store := t.Context(), t.TempDir(), &lifetime.Memory{}
	begin := func() *lifetime.Driver {
		t.Helper()
		inner, err := open(state)
		if err != nil {
			t.Fatal(err)
		}
		d, err := lifetime.New(ctx, inner, lifetime.Options{Store: store})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := begin()
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	sb, err := d.CreateWith(ctx, spec, lifetime.Terms{Budget: allowance.Budget{CPU: bound}})
	if errors.Is(err, paddock.Unsupported) && strings.Contains(err.Error(), "nothing measures cpu") {
		t.Logf("control groups are missing, and it is refused: %v", err)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	id := sb.ID()
	defer func() {
		if sb, err := d.Open(context.Background(), id); err != nil || sb.Remove(context.Background()) != nil {
			t.Errorf("remove %s: %v", id, err)
		}
	}()
	p, err := sb.Start(ctx, paddock.Cmd{Args: []string{"sh", "-c", "while :; do :; done"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(ctx); !errors.Is(err, paddock.Exhausted) || !strings.Contains(err.Error(), "its budget of processor time, "+bound.String()+", is used up") {
		t.Fatalf("wait: %v", err)
	}
	p.Release()
	refused(t, sb)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = begin()
	if sb, err = d.Open(ctx, id); err != nil {
		t.Fatal(err)
	}
	refused(t, sb)
	if err := d.Raise(ctx, id, allowance.Raise{Add: allowance.Budget{CPU: time.Hour}}); err != nil {
		t.Fatal(err)
	}
	again, err := sb.Attach(ctx, p.ID(), paddock.Output{})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Signal(ctx, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if exit, err := again.Wait(ctx); err != nil || exit.Cause != paddock.Signaled {
		t.Errorf("%+v, %v", exit, err)
	}
	if l, err := d.Terms(ctx, id); err != nil || l.Paused != "" || l.Over != "" || l.Use.CPU < bound {
		t.Errorf("%+v, %v", l, err)
	}
}

// refused checks that a sandbox is paused because of its budget, and that nothing runs in it.
func refused(t *testing.T, sb paddock.Sandbox) {
	t.Helper()
	st, err := sb.Status(t.Context())
	if err != nil || st.State != paddock.Paused || !strings.Contains(st.Reason, "is used up") {
		t.Errorf("%s, %q, %v", st.State, st.Reason, err)
	}
	if _, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"true"}}); !errors.Is(err, paddock.Exhausted) {
		t.Errorf("start: %v", err)
	}
	if err := sb.Resume(t.Context()); !errors.Is(err, paddock.Exhausted) {
		t.Errorf("resume: %v", err)
	}
}
