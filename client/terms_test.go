package client_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

func of(t *testing.T, h *host) *client.Driver {
	t.Helper()
	t.Cleanup(func() { h.close(t) })
	d, err := h.open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c, ok := d.(*client.Driver)
	if !ok {
		t.Fatalf("%T", d)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestTermsGoOverTheNetwork(t *testing.T) {
	c := of(t, &host{driver: func(string) (paddock.Driver, error) {
		d, err := sim.New(sim.Options{})
		if err != nil {
			return nil, err
		}
		return lifetime.New(context.Background(), d, lifetime.Options{})
	}})
	ctx := t.Context()
	want := client.Terms{
		Deadline: time.Now().Add(10 * time.Hour).UTC().Round(time.Second), Lifetime: time.Hour, KeepAlive: time.Minute, OnEnd: client.PauseAtEnd,
		IdlePause: time.Minute, IdleRemove: 2 * time.Minute, Wake: true, IgnoreProcesses: true,
	}
	sb, err := c.CreateWith(ctx, paddock.Spec{ID: "a"}, want)
	if err != nil {
		t.Fatal(err)
	}
	l, err := c.Terms(ctx, sb.ID())
	if err != nil || l.Terms != want || l.Ends.IsZero() || l.Renew.IsZero() || l.Created.IsZero() || l.Paused != "" {
		t.Errorf("%+v, %v", l, err)
	}
	longer, err := c.Extend(ctx, "a", time.Hour)
	if by := longer.Ends.Sub(l.Ends); err != nil || by.Round(time.Minute) != time.Hour {
		t.Errorf("extended by %v: %v", by, err)
	}
	if _, err := c.Renew(ctx, "a"); err != nil {
		t.Error(err)
	}
	if l, err := c.Change(ctx, "a", client.Terms{}); err != nil || l.Terms != (client.Terms{}) || !l.Ends.IsZero() {
		t.Errorf("%+v, %v", l, err)
	}
	if _, err := c.Extend(ctx, "a", time.Hour); !errors.Is(err, paddock.Conflict) {
		t.Errorf("no deadline: %v", err)
	}
	if _, err := c.Terms(ctx, "b"); !errors.Is(err, paddock.NotFound) {
		t.Errorf("not there: %v", err)
	}
	if _, err := c.Terms(ctx, "../a"); !errors.Is(err, paddock.Invalid) {
		t.Errorf("no name: %v", err)
	}
}

func TestWhoWaitsForACommandIsToldOfTheBudget(t *testing.T) {
	c := of(t, &host{driver: func(string) (paddock.Driver, error) {
		d, err := sim.New(sim.Options{})
		if err != nil {
			return nil, err
		}
		return lifetime.New(context.Background(), d, lifetime.Options{})
	}})
	ctx := t.Context()
	sb, err := c.CreateWith(ctx, paddock.Spec{ID: "a"}, client.Terms{Budget: client.Budget{CPU: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := sb.Start(ctx, paddock.Cmd{Args: []string{"sh", "-c", "while :; do sleep 0.01; done"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(ctx); !errors.Is(err, paddock.Exhausted) || !strings.Contains(err.Error(), "its budget of processor time, 1ms, is used up") {
		t.Fatalf("wait: %v", err)
	}
	if st, err := sb.Status(ctx); err != nil || st.State != paddock.Paused || !strings.Contains(st.Reason, "is used up") {
		t.Errorf("%+v, %v", st, err)
	}
	if _, err := sb.Start(ctx, paddock.Cmd{Args: []string{"true"}}); !errors.Is(err, paddock.Exhausted) {
		t.Errorf("start: %v", err)
	}
	l, err := c.Raise(ctx, "a", client.Raise{Add: client.Budget{CPU: time.Hour}})
	if err != nil || l.Paused != "" || l.Spent == nil || l.Spent.CPU < time.Millisecond {
		t.Fatalf("%+v, %v", l, err)
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
}

func TestAServerWithoutTermsMakesNothing(t *testing.T) {
	c := of(t, &host{driver: simulated})
	if _, err := c.CreateWith(t.Context(), paddock.Spec{ID: "a"}, client.Terms{Lifetime: time.Hour}); !errors.Is(err, paddock.Unsupported) {
		t.Errorf("%v", err)
	}
	if _, err := c.Open(t.Context(), "a"); !errors.Is(err, paddock.NotFound) {
		t.Errorf("it was made: %v", err)
	}
}
