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
	return drivertest.Harness{New: open, Skip: map[string]string{
		"1 GB goes in and comes back in constant memory": "files are held in memory: that is what the limit of the disk bounds",
	}}
}

func TestPromises(t *testing.T) { drivertest.Run(t, harness()) }

func BenchmarkDriver(b *testing.B) { drivertest.Bench(b, harness()) }
