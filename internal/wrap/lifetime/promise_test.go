package lifetime_test

import (
	"context"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// The terms are all set, and none of them is over while the suite runs.
func harness() drivertest.Harness {
	terms := lifetime.Terms{Lifetime: 100 * time.Hour, KeepAlive: 90 * time.Hour, IdlePause: 80 * time.Hour, IdleRemove: 85 * time.Hour, Wake: true}
	return drivertest.Harness{Memory: true, Skip: unmeasured(), Subjects: overridden(), New: func(string) (paddock.Driver, error) {
		d, err := sim.New(sim.Options{})
		if err != nil {
			return nil, err
		}
		return lifetime.New(context.Background(), d, lifetime.Options{Default: terms})
	}}
}

// overridden lists the subjects of the promises that this wrapper could break: what
// it does more than to pass on.
func overridden() []string {
	return sample.Subjects("lease", "leak", "timeout", "attach", "watch", "port", "remove", "lifecycle", "status", "update", "pause")
}

func TestPromises(t *testing.T) { drivertest.Run(t, harness()) }

func BenchmarkDriver(b *testing.B) { drivertest.Bench(b, harness()) }

func TestMain(m *testing.M) {
	drivertest.Main(m, func(string) (paddock.Driver, error) { return sim.New(sim.Options{}) })
}
