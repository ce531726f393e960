package lease_test

import (
	"context"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/admission"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/lease"
)

// asked counts how often its sandboxes are asked how they are.
type asked struct {
	paddock.Driver
	times int
}

func (a *asked) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	sb, err := a.Driver.Create(ctx, spec)
	return askedSandbox{sb, a}, err
}

type askedSandbox struct {
	paddock.Sandbox
	a *asked
}

func (s askedSandbox) Status(ctx context.Context) (paddock.Status, error) {
	s.a.times++
	return s.Sandbox.Status(ctx)
}

func TestASandboxIsAskedOnceHowItIsWhenItIsMade(t *testing.T) {
	inner, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a := &asked{Driver: inner}
	room, err := admission.New(t.Context(), a, admission.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := lease.New(t.Context(), room, lease.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	sb, err := d.Create(t.Context(), paddock.Spec{Labels: map[string]string{"a": "b"}})
	if err != nil {
		t.Fatal(err)
	}
	st, err := lease.Born(t.Context(), sb)
	if err != nil || a.times != 1 || st.ID != sb.ID() || st.State != paddock.Ready || st.Labels["a"] != "b" {
		t.Errorf("asked %d times: %+v, %v", a.times, st, err)
	}
	again, err := d.Open(t.Context(), sb.ID())
	if err != nil {
		t.Fatal(err)
	}
	if _, known := again.(lease.Newborn).Born(); known {
		t.Error("one that was opened says how it was before")
	}
}
