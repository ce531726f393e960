package lifetime_test

import (
	"context"
	"sync"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/wrap/admission"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
	"github.com/paddock-sandbox/paddock/internal/wrap/pool"
)

// asked counts how often each of its sandboxes is asked how it is.
type asked struct {
	paddock.Driver

	mu    sync.Mutex
	times map[paddock.ID]int // guarded by mu
}

func (a *asked) of(id paddock.ID) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.times[id]
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
	s.a.mu.Lock()
	s.a.times[s.ID()]++
	s.a.mu.Unlock()
	return s.Sandbox.Status(ctx)
}

func TestASandboxIsAskedOnceHowItIsWhenItIsMade(t *testing.T) {
	inner, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a := &asked{Driver: inner, times: make(map[paddock.ID]int)}
	room, err := admission.New(t.Context(), a, admission.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := lifetime.New(t.Context(), room, lifetime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	sb, err := d.Create(t.Context(), paddock.Spec{Labels: map[string]string{"a": "b"}})
	if err != nil {
		t.Fatal(err)
	}
	st, err := paddock.FirstStatus(t.Context(), sb)
	if n := a.of(sb.ID()); err != nil || n != 1 || st.ID != sb.ID() || st.State != paddock.Ready || st.Labels["a"] != "b" {
		t.Errorf("asked %d times: %+v, %v", n, st, err)
	}
	again, err := d.Open(t.Context(), sb.ID())
	if err != nil {
		t.Fatal(err)
	}
	if _, known := again.Born(); known {
		t.Error("one that was opened says how it was before")
	}
}

func TestASandboxThatWasReadyIsAskedOnceMoreWhenItIsTaken(t *testing.T) {
	inner, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a := &asked{Driver: inner, times: make(map[paddock.ID]int)}
	spec := paddock.Spec{Ephemeral: true}
	shelf, err := pool.New(a, pool.Options{Shelves: []pool.Shelf{{Spec: spec, Size: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	room, err := admission.New(t.Context(), shelf, admission.Options{Besides: shelf.Ready})
	if err != nil {
		t.Fatal(err)
	}
	d, err := lifetime.New(t.Context(), room, lifetime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := shelf.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, err := inner.List(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	before := a.of(all[0].ID)
	spec.Labels = map[string]string{"a": "b"}
	sb, err := d.Create(t.Context(), spec)
	if err != nil || sb.ID() != all[0].ID {
		t.Fatalf("%v, %v", sb, err)
	}
	st, err := paddock.FirstStatus(t.Context(), sb)
	if n := a.of(sb.ID()) - before; err != nil || n != 1 || st.Labels["a"] != "b" || !st.Created.After(all[0].Created) {
		t.Errorf("asked %d times: %+v, %v", n, st, err)
	}
}
