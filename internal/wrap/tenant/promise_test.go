package tenant_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/store/storetest"
	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
	"github.com/paddock-sandbox/paddock/internal/wrap/tenant"
)

// A tenancy is one tenant's driver that closes the set with itself.
type tenancy struct {
	paddock.Driver
	tenants *tenant.Set
}

func (t tenancy) Close() error { return t.tenants.Close() }

// unbounded is a quota without any bound.
func unbounded() store.Quota {
	return store.Quota{Sandboxes: -1, CPU: -1, Memory: -1, PIDs: -1, Disk: -1, Snapshots: -1, Rate: -1}
}

func harness(t testing.TB) drivertest.Harness {
	place := filepath.Join(t.TempDir(), "state", "paddock.db")
	s := storetest.Open(t, place)
	if err := s.AddTenant(t.Context(), store.Tenant{ID: "acme", Quota: unbounded()}); err != nil {
		t.Fatal(err)
	}
	var places atomic.Int64 // a simulated driver holds its sandboxes itself, so each is a place of its own
	// The store is not the driver's: it opens the file once more where several read at once.
	leaks := func(t testing.TB, state, name string) drivertest.Counts {
		c := drivertest.Held(t, state, name)
		c["descriptor"] = slices.DeleteFunc(c["descriptor"], func(held string) bool { return strings.HasPrefix(held, place) })
		return c
	}
	return drivertest.Harness{Memory: true, Skip: unmeasured(), Subjects: overridden(), Leaks: leaks, New: func(string) (paddock.Driver, error) {
		d, err := sim.New(sim.Options{})
		if err != nil {
			return nil, err
		}
		h, err := tenant.New(d, tenant.Options{Store: s, Place: fmt.Sprint("place-", places.Add(1))})
		if err != nil {
			return nil, err
		}
		return tenancy{h.Driver("acme"), h}, nil
	}}
}

// overridden lists the subjects of the promises that this wrapper could break: what
// it does more than to pass on.
func overridden() []string {
	return sample.Subjects("tenant", "leak", "remove", "lifecycle", "spec", "status", "update", "pause")
}

func TestPromises(t *testing.T) { drivertest.Run(t, harness(t)) }

func BenchmarkDriver(b *testing.B) { drivertest.Bench(b, harness(b)) }

func TestMain(m *testing.M) {
	first, err := sim.New(sim.Options{}) // before the store uses SQLite, whose memory is counted for sandboxes from here on
	if err != nil {
		panic(err)
	}
	if err := first.Close(); err != nil {
		panic(err)
	}
	drivertest.Main(m, func(string) (paddock.Driver, error) { return sim.New(sim.Options{}) })
}
