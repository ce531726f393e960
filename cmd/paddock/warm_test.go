package main

import (
	"errors"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
)

func TestMetricsTellOfShelvesWhereThereAreAny(t *testing.T) {
	for name, warm := range map[string][]string{"none": nil, "two": {"sim=1:3", "auto=2"}} {
		t.Run(name, func(t *testing.T) {
			d, err := sim.New(sim.Options{})
			if err != nil {
				t.Fatal(err)
			}
			simulated := tier{name: paddock.Sim, about: "a tier", open: func(gear) (paddock.Driver, error) { return nil, errors.New("not asked") }}
			v := invoke(t.TempDir(), nil, []tier{simulated})
			f := &serveFlags{
				listen: "127.0.0.1:0", store: storeFlags{state: filepath.Join(t.TempDir(), "state")},
				account: accountFlags{host: "a", warm: warm},
			}
			o := &operation{log: slog.New(slog.DiscardHandler)}
			c, err := v.app.openAccounts(t.Context(), d, f, "static", o)
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
