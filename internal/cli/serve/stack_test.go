package serve

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/metric"
	"github.com/paddock-sandbox/paddock/internal/wrap/actionlog"
	"github.com/paddock-sandbox/paddock/internal/wrap/infocache"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// An inmost driver, and each of its sandboxes, has a method by which a test tells that
// it was reached.
type inmost struct{ paddock.Driver }

type reached interface{ Reached() }

func (inmost) Reached() {}

func (d inmost) HostMemory(tier paddock.Tier, l paddock.Limits) (int64, bool) {
	return paddock.HostMemory(d.Driver, tier, l)
}

func (d inmost) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	sb, err := d.Driver.Create(ctx, spec)
	return inmostSandbox{sb}, err
}

func (d inmost) Open(ctx context.Context, id paddock.ID) (paddock.Sandbox, error) {
	sb, err := d.Driver.Open(ctx, id)
	return inmostSandbox{sb}, err
}

type inmostSandbox struct{ paddock.Sandbox }

func (inmostSandbox) Reached() {}

func newInmost(t *testing.T) paddock.Driver {
	t.Helper()
	d, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return inmost{d}
}

// wholeStack opens the accounts of a server that has every layer.
func wholeStack(t *testing.T) *accounts {
	t.Helper()
	dir := t.TempDir()
	f := &serveFlags{
		listen: "127.0.0.1:0", store: storeFlags{state: filepath.Join(dir, "state")},
		account: accountFlags{host: "a", warm: []string{"auto=1"}, audit: filepath.Join(dir, "audit")},
	}
	o := &operation{log: slog.New(slog.DiscardHandler), set: metric.New(metric.Build{})}
	c, err := openAccounts(t.Context(), invoke(dir, nil, nil).App, o.driver(newInmost(t), paddock.Sim), f, "static", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestNothingReachesPastALayerThatHasToSeeEachCall(t *testing.T) {
	c := wholeStack(t)
	for name, row := range map[string]struct {
		layer
		driver, sandbox bool // may be passed by: the driver, a sandbox that it made
	}{
		"call": {layer: layer{"call", func(_ context.Context, d paddock.Driver) (paddock.Driver, error) {
			return c.watch.driver(d, paddock.Sim), nil
		}}, driver: true, sandbox: true},
		"infocache": {layer: layer{"infocache", func(_ context.Context, d paddock.Driver) (paddock.Driver, error) {
			return infocache.New(d, paddock.Sim), nil
		}}, sandbox: true},
		"verdict": {driver: true, sandbox: true}, // they change no call that goes by them
		"monitor": {driver: true, sandbox: true},

		"pool":   {sandbox: true}, // of one that was never on a shelf there is nothing to see
		"metric": {driver: true, sandbox: true},
		"lease":  {}, "admission": {}, "tenant": {}, "actionlog": {},
	} {
		t.Run(name, func(t *testing.T) {
			for _, l := range append(c.sharedLayers(), c.tenantLayers(developer)...) {
				if l.name == name {
					row.layer = l
				}
			}
			d, err := row.wrap(t.Context(), newInmost(t))
			if err != nil {
				t.Fatal(err)
			}
			if name != "tenant" { // which is the accounts' own
				defer d.Close()
			}
			sb, err := d.Create(t.Context(), paddock.Spec{ID: paddock.ID("of-" + name)})
			if err != nil {
				t.Fatal(err)
			}
			// Below the tenants each layer passes on what counts as memory of the host.
			limits := paddock.Limits{Memory: 1 << 20, Disk: 1 << 30}
			if got, known := paddock.HostMemory(d, paddock.Sim, limits); name != "tenant" && name != "actionlog" && (!known || got != 1<<20+1<<30+sim.Overhead) {
				t.Errorf("it takes %d bytes of memory, known %v", got, known)
			}
			opened, err := d.Open(t.Context(), sb.ID())
			if err != nil {
				t.Fatal(err)
			}
			for what, found := range map[string]struct {
				in  any
				may bool
			}{"the driver": {d, row.driver}, "a sandbox": {sb, row.sandbox}, "an opened sandbox": {opened, row.sandbox}} {
				if _, ok := paddock.As[reached](found.in); ok != found.may {
					t.Errorf("%s: what is inside is reached: %v, want %v", what, ok, found.may)
				}
			}
		})
	}
	if n := len(c.sharedLayers()) + len(c.tenantLayers(developer)); n != 8 {
		t.Errorf("a server has %d layers: each has a row above", n)
	}
}

func TestATenantHasTermsAndARecordAndNothingOfTheDriversBelow(t *testing.T) {
	c := wholeStack(t)
	if _, ok := paddock.As[reached](c.shared); ok {
		t.Error("the shared driver leads to a tier")
	}
	if _, known := paddock.HostMemory(c.shared, paddock.Sim, paddock.Limits{}); !known {
		t.Error("the tenants' quotas do not know what memory a sandbox takes")
	}
	d, err := c.driver(developer)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := paddock.As[reached](d); ok {
		t.Error("a tenant's driver leads to a tier")
	}
	if _, ok := paddock.As[*lifetime.Driver](d); ok {
		t.Error("a tenant's driver leads to the terms of all tenants")
	}
	if _, ok := paddock.As[lifetime.Lessor](d); !ok {
		t.Error("a tenant's driver has no terms")
	}
	if _, ok := paddock.As[actionlog.Recorder](d); !ok {
		t.Error("a tenant's driver has no record")
	}
}
