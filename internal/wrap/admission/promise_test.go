package admission_test

import (
	"context"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
	"github.com/paddock-sandbox/paddock/internal/wrap/admission"
)

func harness() drivertest.Harness {
	return drivertest.Harness{Memory: true, Skip: unmeasured(), Subjects: overridden(), New: func(state string) (paddock.Driver, error) {
		d, err := sim.New(sim.Options{})
		if err != nil {
			return nil, err
		}
		return admission.New(context.Background(), d, admission.Options{
			Overcommit: 10, Dir: state, Machine: &machine{available: 1 << 40, free: 1 << 40}, Memory: 1 << 40,
		})
	}}
}

// overridden lists the subjects of the promises that this wrapper could break: what
// it does more than to pass on.
func overridden() []string {
	return sample.Subjects("admission", "leak", "limit", "remove", "lifecycle", "spec", "update")
}

func TestPromises(t *testing.T) { drivertest.Run(t, harness()) }

func BenchmarkDriver(b *testing.B) { drivertest.Bench(b, harness()) }

func TestMain(m *testing.M) {
	drivertest.Main(m, func(string) (paddock.Driver, error) { return sim.New(sim.Options{}) })
}
