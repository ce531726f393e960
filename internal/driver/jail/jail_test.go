//go:build linux

package jail

import (
	"os"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/container"
	"github.com/paddock-sandbox/paddock/internal/egress/gate"
	"github.com/paddock-sandbox/paddock/internal/egress/gateway"
)

func open(state string) (paddock.Driver, error) {
	return New(Options{State: state, Environ: os.Environ(), Hosts: drivertest.Hosts()})
}

func TestMain(m *testing.M) {
	if container.Main() || gateway.Main() {
		return
	}
	drivertest.Main(m, open)
}

func TestPromises(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{New: open, Base: paddock.Spec{AllowMissing: drivertest.Weak(t, open)}})
}

func BenchmarkDriver(b *testing.B) { drivertest.Bench(b, drivertest.Harness{New: open}) }

// TestPromisesAsUser runs this package's tests again as an unprivileged user.
func TestPromisesAsUser(t *testing.T) { drivertest.AsUser(t, "^TestPromises$") }

func TestABoxWhoseGatewayIsKilledGoesOnWithoutAWayOut(t *testing.T) {
	drivertest.KilledGateway(t, open, gate.Argv0)
}
