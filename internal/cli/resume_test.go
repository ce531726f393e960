package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// A leasing driver has lifetimes as a server has, for its clients.
type leasing struct{ *lifetime.Driver }

func (d leasing) CreateWith(ctx context.Context, spec paddock.Spec, t client.Terms) (paddock.Sandbox, error) {
	return d.Driver.CreateWith(ctx, spec, lifetime.Terms{Lifetime: t.Lifetime, Budget: t.Budget})
}

func (d leasing) Terms(ctx context.Context, id paddock.ID) (client.Lease, error) {
	l, err := d.Driver.Terms(ctx, id)
	told := client.Lease{Terms: client.Terms{Budget: l.Terms.Budget}, Paused: string(l.Paused)}
	if l.Terms.Budget.Bounds() {
		told.Spent = &client.Spent{Use: l.Use, Over: l.Over, Cost: l.Terms.Budget.CostInWords(l.Use)}
	}
	return told, err
}

func (leasing) Extend(context.Context, paddock.ID, time.Duration) (client.Lease, error) {
	return client.Lease{}, paddock.Unsupported
}

func (leasing) Renew(context.Context, paddock.ID) (client.Lease, error) {
	return client.Lease{}, paddock.Unsupported
}

func (d leasing) Raise(ctx context.Context, id paddock.ID, by client.Raise) (client.Lease, error) {
	if err := d.Driver.Raise(ctx, id, by); err != nil {
		return client.Lease{}, err
	}
	return d.Terms(ctx, id)
}

func TestABudgetThatIsUsedUpIsToldWithWhatToType(t *testing.T) {
	r := newRack(t)
	leased, err := lifetime.New(t.Context(), lent{r.d}, lifetime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := leased.Close(); err != nil {
			t.Error(err)
		}
	}()
	r.d = leasing{leased}
	id := r.do(t, "create", "--tier", "sim", "--budget", "cpu=1ms")
	said := r.fail(t, 124, "exec", id, "--", "sh", "-c", "while :; do sleep 0.01; done")
	for _, want := range []string{"its budget of processor time, 1ms, is used up", "hint: go on: paddock resume --budget cpu=+10m " + id + "; then join the command again: paddock attach " + id + " "} {
		if !strings.Contains(said, want) {
			t.Errorf("%q does not say %q", said, want)
		}
	}
	for _, row := range []struct {
		status int
		want   string
		args   []string
	}{
		{124, "hint: go on: paddock resume --budget cpu=+10m " + id + "\n", []string{"exec", "-d", id, "--", "true"}},
		{125, "hint: paddock resume --budget cpu=+10m " + id + "\n", []string{"resume", id}},
		{125, "even so", []string{"resume", "--budget", "cpu=1us", id}},
		{125, "there is none of network to add to", []string{"resume", "--budget", "network=+1M", id}},
		{125, "cannot be its value", []string{"resume", "--budget", "cpu=++1s", id}},
		{0, "is paused: its budget of processor time, 1ms, is used up", []string{"ls"}},
	} {
		if said := r.fail(t, row.status, row.args...); !strings.Contains(said, row.want) {
			t.Errorf("%q: %q, want %q", row.args, said, row.want)
		}
	}
	r.do(t, "resume", "--budget", "cpu=+1h", id)
	r.do(t, "exec", id, "--", "true")
	if told := r.do(t, "inspect", id); !strings.Contains(told, "1h0m0.001s of processor time; ") {
		t.Error(told)
	}
}
