package serve

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
)

func TestMetricsTellOfShelvesWhereThereAreAny(t *testing.T) {
	for name, warm := range map[string][]string{"none": nil, "two": {"sim=1:3", "auto=2"}} {
		t.Run(name, func(t *testing.T) {
			d, err := sim.New(sim.Options{})
			if err != nil {
				t.Fatal(err)
			}
			simulated := cli.Tier{Name: paddock.Sim, About: "a tier", Open: func(cli.Gear) (paddock.Driver, error) { return nil, errors.New("not asked") }}
			v := invoke(t.TempDir(), nil, []cli.Tier{simulated})
			f := &serveFlags{
				listen: "127.0.0.1:0", store: storeFlags{state: filepath.Join(t.TempDir(), "state")},
				account: accountFlags{host: "a", warm: warm},
			}
			o := &operation{log: slog.New(slog.DiscardHandler)}
			c, err := openAccounts(t.Context(), v.App, d, f, "static", o)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}()
			if (o.from.Pools != nil) != (len(warm) > 0) {
				t.Fatalf("metrics have shelves: %v", o.from.Pools != nil)
			}
			if o.from.Pools == nil {
				return
			}
			counts := o.from.Pools()
			if len(counts) != 2 || counts[0].Target != 1 || counts[1].Target != 2 {
				t.Errorf("%+v", counts)
			}
		})
	}
}

// A host's driver tells of its tiers what they can.
type capable struct {
	paddock.Driver
	can map[paddock.Tier][]paddock.Capability
}

func (c capable) Info(_ context.Context, tier paddock.Tier) (paddock.Info, error) {
	can, ok := c.can[tier]
	if !ok {
		return paddock.Info{}, paddock.Unsupported
	}
	return paddock.Info{Capabilities: can}, nil
}

func TestATierIsAskedOnceForSudoWhateverItsShelves(t *testing.T) {
	asked := 0
	sudo := askOnce(func(tier paddock.Tier) (bool, error) {
		if asked++; asked == 1 {
			return false, paddock.Unavailable
		}
		return tier == paddock.GVisor, nil
	})
	if _, err := sudo(paddock.GVisor); !errors.Is(err, paddock.Unavailable) {
		t.Errorf("what failed: %v", err)
	}
	for range 2 {
		for tier, want := range map[paddock.Tier]bool{paddock.GVisor: true, paddock.Jail: false} {
			if has, err := sudo(tier); err != nil || has != want {
				t.Errorf("%s: %v, %v", tier, has, err)
			}
		}
	}
	if asked != 3 {
		t.Errorf("asked %d times", asked)
	}
}

func TestWhatIsReadyForE2BsClientsHasSudoWhereItsTierHas(t *testing.T) {
	open := func(cli.Gear) (paddock.Driver, error) { return nil, errors.New("not asked") }
	v := invoke(t.TempDir(), nil, []cli.Tier{{Name: paddock.GVisor, About: "a tier", Open: open}, {Name: paddock.Jail, About: "a tier", Open: open}})
	sudo := []paddock.Capability{paddock.CanSudo}
	for _, c := range []struct {
		what string
		can  map[paddock.Tier][]paddock.Capability
		want bool
	}{
		{"e2b=1", map[paddock.Tier][]paddock.Capability{paddock.Auto: sudo}, true},
		{"e2b=1", map[paddock.Tier][]paddock.Capability{paddock.Auto: nil, paddock.GVisor: sudo}, false},
		{"e2b=1", nil, false},
		{"e2b:gvisor=1", map[paddock.Tier][]paddock.Capability{paddock.Auto: nil, paddock.GVisor: sudo}, true},
		{"e2b:jail=1", map[paddock.Tier][]paddock.Capability{paddock.Auto: sudo, paddock.Jail: nil}, false},
	} {
		all, err := shelves(v.App, []string{c.what}, func(tier paddock.Tier) (bool, error) { return hasSudo(t.Context(), capable{can: c.can}, tier) })
		if err != nil || len(all) != 1 || all[0].Spec.Sudo != c.want {
			t.Errorf("%s: %+v, %v; want sudo %v", c.what, all, err, c.want)
		}
	}
}
