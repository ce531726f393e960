package serve

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/cli/clitest"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// An asked driver counts the questions for its Info, for each of which a tier may make a sandbox.
type asked struct {
	paddock.Driver
	times atomic.Int64
}

func (d *asked) Info(ctx context.Context, tier paddock.Tier) (paddock.Info, error) {
	d.times.Add(1)
	info, err := d.Driver.Info(ctx, tier)
	info.Capabilities = append(info.Capabilities, paddock.CanPause)
	return info, err
}

func TestATierIsAskedOnceWhatItCanDoHoweverManyCallersAsk(t *testing.T) {
	inner, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := &asked{Driver: inner}
	o := &operation{log: slog.New(slog.DiscardHandler)}
	app := invoke(t.TempDir(), nil, []cli.Tier{clitest.AsTier(d, paddock.Sim)}).App
	tiers, err := openTiers(app, cli.Gear{}, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	f := &serveFlags{listen: "127.0.0.1:0", store: storeFlags{state: filepath.Join(t.TempDir(), "state")}, account: accountFlags{host: "a"}}
	c, err := openAccounts(t.Context(), app, tiers, f, "static", o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	caller, err := c.driver(developer)
	if err != nil {
		t.Fatal(err)
	}
	k, ok := paddock.As[lifetime.Lessor](caller)
	if !ok {
		t.Fatal("a tenant's driver has no terms")
	}
	terms := lifetime.Terms{IdlePause: time.Hour}
	if _, err := k.CreateWith(t.Context(), paddock.Spec{ID: "one", Tier: paddock.Sim}, terms); err != nil {
		t.Fatal(err)
	}
	// It waits for its turn with the others of its tenant, also after a restart.
	if rec, err := store.LeasesOf[lifetime.Record](c.store, c.host).Get(t.Context(), "one"); err != nil || rec.Key != developer {
		t.Errorf("the record has the key %q, %v", rec.Key, err)
	}
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if info, err := caller.Info(t.Context(), paddock.Sim); err != nil || !info.Can(paddock.CanPause) {
				t.Errorf("%+v, %v", info, err)
			}
		})
		all.Go(func() {
			if err := k.Change(t.Context(), "one", terms); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := d.times.Load(); n != 1 {
		t.Errorf("the tier was asked %d times", n)
	}
}
