package wall

import (
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
)

func open(string) (paddock.Driver, error) { return New(Options{}) }

func TestMain(m *testing.M) {
	if Main() {
		return
	}
	drivertest.Main(m, open)
}

func harness() drivertest.Harness {
	return drivertest.Harness{New: open}
}

func TestPromises(t *testing.T) { drivertest.Run(t, harness()) }

func BenchmarkDriver(b *testing.B) { drivertest.Bench(b, harness()) }
