package microvm_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/microvmtest"
	"github.com/paddock-sandbox/paddock/internal/egress/gateway"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/image/imagetest"
	"github.com/paddock-sandbox/paddock/internal/private"
	"github.com/paddock-sandbox/paddock/internal/protect"
	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
)

func open(state string) (paddock.Driver, error) { return openWith(state, nil) }

// openWith opens a driver that has images.
func openWith(state string, images image.Source) (paddock.Driver, error) {
	o, err := microvmtest.Options()
	if err != nil {
		return nil, err
	}
	o.State, o.Hosts, o.Images = state, drivertest.Hosts(), images
	return microvm.New(o)
}

func TestMain(m *testing.M) {
	if box.Main(microvm.Runtime()) || gateway.Main() {
		return
	}
	if err := microvmtest.Build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	drivertest.Main(m, open)
}

// base is the start of every spec. All machines have the same memory, because it is a part
// of the template.
func base(t *testing.T) paddock.Spec {
	t.Helper()
	return paddock.Spec{AllowMissing: drivertest.Weak(t, open), Limits: paddock.Limits{Memory: 512 << 20}}
}

func TestPromises(t *testing.T) {
	microvmtest.Need(t)
	images := imagetest.New(t)
	open := func(state string) (paddock.Driver, error) { return openWith(state, images) }
	drivertest.Run(t, drivertest.Harness{New: open, Base: base(t), Sample: sample.Seed("microvm"), Turns: 3, Image: images.Image})
}

func TestNoMountReachesTheHost(t *testing.T) {
	microvmtest.Need(t)
	drivertest.SharedMounts(t, open)
}

func TestNoProtectedNameCanBePlanted(t *testing.T) {
	microvmtest.Need(t)
	sample.Turn(t, "machines", 3)
	names, roots := protect.Split()
	drivertest.ProtectedNames(t, open, names, roots)
}

func TestOfAToolChainNothingIsSeenThatLiesBesideItsPrograms(t *testing.T) {
	microvmtest.Need(t)
	sample.Turn(t, "machines", 3)
	drivertest.ToolChains(t, func(state string, environ []string) (paddock.Driver, error) {
		o, err := microvmtest.Options()
		if err != nil {
			return nil, err
		}
		o.State, o.Environ = state, environ
		return microvm.New(o)
	})
}

// TestPromisesAsUser runs this package's tests again as an unprivileged user.
func TestPromisesAsUser(t *testing.T) {
	microvmtest.Need(t)
	drivertest.SampleAsUser(t, "^TestPromises$", sample.Seed("microvm as a user"))
}

func BenchmarkDriver(b *testing.B) { drivertest.Bench(b, drivertest.Harness{New: open}) }

func TestWhatTheCallerKeepsToItselfIsNotSeen(t *testing.T) {
	sample.Turn(t, "machines", 3)
	drivertest.Private(t, func(state, kept, shown string) (paddock.Driver, error) {
		o, err := microvmtest.Options()
		if err != nil {
			return nil, err
		}
		o.State, o.Private = state, private.Files{Paths: []string{kept}, Shown: []string{shown}}
		return microvm.New(o)
	})
}
