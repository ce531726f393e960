package microvm_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/container"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/microvmtest"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/monitor"
	"github.com/paddock-sandbox/paddock/internal/egress/gateway"
)

func open(state string) (paddock.Driver, error) {
	guest, err := microvmtest.Guest()
	if err != nil {
		return nil, err
	}
	return microvm.New(microvm.Options{State: state, Data: microvmtest.Data(), Environ: os.Environ(), Guest: guest, Hosts: drivertest.Hosts()})
}

func TestMain(m *testing.M) {
	if container.Main(microvm.Kernel()) || monitor.Main() || gateway.Main() {
		return
	}
	if err := microvmtest.Build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	drivertest.Main(m, open)
}

func TestPromises(t *testing.T) {
	microvmtest.Need(t)
	drivertest.Run(t, drivertest.Harness{New: open, Base: paddock.Spec{AllowMissing: drivertest.Weak(t, open), Limits: paddock.Limits{Memory: 512 << 20}}})
}

// TestPromisesAsUser runs this package's tests again as an unprivileged user.
func TestPromisesAsUser(t *testing.T) {
	microvmtest.Need(t)
	drivertest.AsUser(t, "^TestPromises$")
}

func BenchmarkDriver(b *testing.B) { drivertest.Bench(b, drivertest.Harness{New: open}) }
