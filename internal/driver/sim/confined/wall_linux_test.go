package confined

import (
	"fmt"
	"os"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	inside "github.com/paddock-sandbox/paddock/internal/driver/sim/child"
	"github.com/paddock-sandbox/paddock/internal/egress/gateway"
)

func open(string) (paddock.Driver, error) { return New(Options{Hosts: drivertest.Hosts()}) }

func TestMain(m *testing.M) {
	if inside.Main() || gateway.Main() {
		return
	}
	if os.Args[0] == takenName {
		if err := taken(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	drivertest.Main(m, open)
}

func harness() drivertest.Harness {
	return drivertest.Harness{New: open}
}

func TestPromises(t *testing.T) { drivertest.Run(t, harness()) }

func BenchmarkDriver(b *testing.B) { drivertest.Bench(b, harness()) }
