package sim_test

import (
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
)

func open(string) (paddock.Driver, error) { return sim.New(sim.Options{}) }

func harness() drivertest.Harness {
	return drivertest.Harness{New: open, Skip: map[string]string{
		"1 GB goes in and comes back in constant memory": "files are held in memory: that is what the limit of the disk bounds",
	}}
}

func TestPromises(t *testing.T) { drivertest.Run(t, harness()) }

func BenchmarkDriver(b *testing.B) { drivertest.Bench(b, harness()) }

func TestMain(m *testing.M) { drivertest.Main(m, open) }
