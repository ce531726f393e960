package parent

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	inside "github.com/paddock-sandbox/paddock/internal/driver/sim/child"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/parent/protocol"
	"github.com/paddock-sandbox/paddock/internal/egress/gateway"
	"github.com/paddock-sandbox/paddock/internal/private"
)

func open(string) (paddock.Driver, error) { return New(Options{Hosts: drivertest.Hosts()}) }

func TestMain(m *testing.M) {
	if inside.Main() || gateway.Main() {
		return
	}
	if part := map[string]func() error{takenName: taken, holderName: hold}[os.Args[0]]; part != nil {
		if err := part(); err != nil {
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

// The kernel of this test has Landlock; the driver is told that it has not.
func TestWithoutLandlockTheTierIsMissingItUntilThatIsAccepted(t *testing.T) {
	d, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	d.walls = protocol.Findings(0)
	info, err := d.Info(t.Context(), paddock.Sim)
	if f, ok := info.Finding(paddock.ControlLandlock); err != nil || info.Available || !ok || f.Strength != paddock.Absent || f.Cause == "" || f.Remedy == "" {
		t.Errorf("%+v, %v", info, err)
	}
	var missing *paddock.MissingError
	if sb, err := d.Create(t.Context(), paddock.Spec{}); !errors.As(err, &missing) || missing.Finding.Control != paddock.ControlLandlock || !errors.Is(err, paddock.Unsupported) {
		t.Fatalf("%v, %v", sb, err)
	}
	sb, err := d.Create(t.Context(), paddock.Spec{AllowMissing: []paddock.Control{paddock.ControlLandlock}})
	if err != nil {
		t.Fatal(err)
	}
	if err := sb.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	for version := 1; version < 8; version++ {
		for _, f := range protocol.Findings(version) {
			if f.Strength != paddock.Full {
				t.Errorf("version %d: %+v", version, f)
			}
		}
	}
}

func TestWhatTheCallerKeepsToItselfIsNotSeen(t *testing.T) {
	drivertest.Private(t, func(_, kept, shown string) (paddock.Driver, error) {
		return New(Options{Private: private.Files{Paths: []string{kept}, Shown: []string{shown}}})
	})
}
