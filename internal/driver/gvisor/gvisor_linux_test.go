package gvisor_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/container"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor/sentry"
)

// data is where all drivers of these tests keep what they save: a snapshot stays
// when its sandbox and its driver are gone.
var data = filepath.Join(os.TempDir(), fmt.Sprintf("paddock-gvisor-test-%d", os.Geteuid()))

func open(state string) (paddock.Driver, error) {
	return gvisor.New(gvisor.Options{State: state, Data: data, Environ: os.Environ(), Audit: new(events)})
}

func TestMain(m *testing.M) {
	if container.Main(gvisor.Kernel()) || sentry.Main() {
		return
	}
	if os.Getenv(deedsVariable) != "" {
		if err := deeds(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	drivertest.Main(m, open)
}

func TestPromises(t *testing.T) {
	t.Cleanup(func() { os.RemoveAll(data) })
	drivertest.Run(t, drivertest.Harness{New: open, Base: paddock.Spec{AllowMissing: drivertest.Weak(t, open)}})
}

// TestPromisesAsUser runs this package's tests again as an unprivileged user.
func TestPromisesAsUser(t *testing.T) {
	drivertest.AsUser(t, "^(TestPromises|TestWhatCommandsDoIsTold|TestASandboxThatIsKeptRecordsItself)$")
}

func BenchmarkDriver(b *testing.B) { drivertest.Bench(b, drivertest.Harness{New: open}) }
