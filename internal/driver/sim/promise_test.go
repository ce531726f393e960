package sim_test

import (
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
)

func open(string) (paddock.Driver, error) { return sim.New(sim.Options{}) }

func harness() drivertest.Harness {
	return drivertest.Harness{New: open, Memory: true}
}

func TestPromises(t *testing.T) { drivertest.Run(t, harness()) }

func BenchmarkDriver(b *testing.B) { drivertest.Bench(b, harness()) }

func TestMain(m *testing.M) { drivertest.Main(m, open) }
