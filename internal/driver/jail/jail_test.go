//go:build linux

package jail

import (
	"context"
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/egress/gateway"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/image/imagetest"
	"github.com/paddock-sandbox/paddock/internal/private"
	"github.com/paddock-sandbox/paddock/internal/program"
	"github.com/paddock-sandbox/paddock/internal/protect"
	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
)

func open(state string) (paddock.Driver, error) {
	return New(Options{State: state, Environ: os.Environ(), Hosts: drivertest.Hosts()})
}

func TestMain(m *testing.M) {
	if box.Main(Runtime()) || gateway.Main() {
		return
	}
	drivertest.Main(m, open)
}

func TestPromises(t *testing.T) {
	images := imagetest.New(t)
	open := func(state string) (paddock.Driver, error) {
		return New(Options{State: state, Environ: os.Environ(), Hosts: drivertest.Hosts(), Images: images})
	}
	drivertest.Run(t, drivertest.Harness{New: open, Base: paddock.Spec{AllowMissing: drivertest.Weak(t, open)}, Turns: 2, Image: images.Image})
}

func BenchmarkDriver(b *testing.B) { drivertest.Bench(b, drivertest.Harness{New: open}) }

// TestPromisesAsUser runs this package's tests again as an unprivileged user.
func TestPromisesAsUser(t *testing.T) {
	drivertest.SampleAsUser(t, "^TestPromises$", sample.Seed("jail as a user"))
}

func TestASandboxWhoseStateDirectoryIsGoneEnds(t *testing.T) { drivertest.StateGone(t, open) }

func TestASandboxWhoseStateDirectoryIsGoneEndsAsUser(t *testing.T) {
	drivertest.SomeAsUser(t, "^TestASandboxWhoseStateDirectoryIsGoneEnds$", 1)
}

func TestNoProtectedNameCanBePlanted(t *testing.T) {
	names, roots := protect.Split()
	drivertest.ProtectedNames(t, open, names, roots)
}

func TestOfAToolChainNothingIsSeenThatLiesBesideItsPrograms(t *testing.T) {
	drivertest.ToolChains(t, func(state string, environ []string) (paddock.Driver, error) {
		return New(Options{State: state, Cache: program.Cache(os.LookupEnv), Environ: environ})
	})
}

func TestNoMountReachesTheHost(t *testing.T) { drivertest.SharedMounts(t, open) }

func TestASandboxDoesNotRunBeforeTheHost(t *testing.T) { drivertest.Urgent(t, open) }

func TestNamesAndToolChainsAsUser(t *testing.T) {
	drivertest.SomeAsUser(t, "^(TestOfAToolChainNothingIsSeenThatLiesBesideItsPrograms|TestNoProtectedNameCanBePlanted)$", 2)
}

func TestABoxWhoseGatewayIsKilledGoesOnWithoutAWayOut(t *testing.T) {
	drivertest.KilledGateway(t, open, gatewayclient.Argv0)
}

func TestASandboxThatIsGoneIsNotTheNextOneOfItsName(t *testing.T) {
	state, weak := t.TempDir(), drivertest.Weak(t, open)
	var drivers [2]paddock.Driver
	for i := range drivers {
		d, err := open(state)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		drivers[i] = d
	}
	create := func() paddock.Sandbox {
		sb, err := drivers[0].Create(t.Context(), paddock.Spec{ID: "name", AllowMissing: weak})
		if err != nil {
			t.Fatal(err)
		}
		return sb
	}
	first := create()
	stale, err := drivers[1].Open(t.Context(), "name")
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := create()
	defer func() {
		if err := second.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	if _, err := stale.Status(t.Context()); !errors.Is(err, paddock.NotFound) {
		t.Errorf("status: %v", err)
	}
	if _, err := stale.Start(t.Context(), paddock.Cmd{Args: []string{"/bin/true"}}); !errors.Is(err, paddock.NotFound) {
		t.Errorf("start: %v", err)
	}
	if err := stale.Remove(t.Context()); err != nil {
		t.Errorf("remove: %v", err)
	}
	if st, err := second.Status(t.Context()); err != nil || st.State != paddock.Ready {
		t.Errorf("the second is %v, %v", st.State, err)
	}
}

// A server opens a sandbox for most calls, and drops it afterwards.
func TestASandboxThatIsOpenedAndDroppedLeavesNothing(t *testing.T) {
	d, err := open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	sb, err := d.Create(t.Context(), paddock.Spec{ID: "opened", AllowMissing: drivertest.Weak(t, open)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sb.Remove(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	use := func(times int) {
		for range times {
			sb, err := d.Open(t.Context(), "opened")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := sb.FS().Stat(t.Context(), "/etc"); err != nil {
				t.Fatal(err)
			}
		}
	}
	use(1)
	files, routines := descriptors(t), runtime.NumGoroutine()
	use(50)
	for end := time.Now().Add(3 * time.Minute); descriptors(t) > files+2 || runtime.NumGoroutine() > routines+2; runtime.GC() {
		if time.Now().After(end) {
			t.Fatalf("%d descriptors and %d goroutines, and before 50 openings %d and %d", descriptors(t), runtime.NumGoroutine(), files, routines)
		}
	}
}

// descriptors counts the open descriptors of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

func TestABoxWhoseInitIsKilledStillTellsWhatWasRefused(t *testing.T) {
	drivertest.KilledInit(t, open, Runtime().Argv0)
}

// The kernel lets nobody look into a program that its user may execute, but not read.
func TestAProgramThatMayOnlyBeExecutedBindsSockets(t *testing.T) {
	drivertest.Unreadable(t, open)
}

func TestWhatTheCallerKeepsToItselfIsNotSeen(t *testing.T) {
	drivertest.Private(t, func(state, kept, shown string) (paddock.Driver, error) {
		return New(Options{State: state, Environ: os.Environ(), Private: private.Files{Paths: []string{kept}, Shown: []string{shown}}})
	})
}

func TestWhatTheCallerKeepsToItselfIsNotSeenAsUser(t *testing.T) {
	drivertest.SomeAsUser(t, "^TestWhatTheCallerKeepsToItselfIsNotSeen$", 1)
}

// A sandbox that began with a snapshot of memory may have run hostile code already, which could delay a status.
func TestTheStatusAtTheCreationIsWhatTheHostKnows(t *testing.T) {
	d, err := open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	sb, err := d.Create(t.Context(), paddock.Spec{Ephemeral: true, AllowMissing: drivertest.Weak(t, open)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sb.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	st, ok := sb.Born()
	if !ok || st.ID != sb.ID() || st.State != paddock.Ready || len(st.Enforced) == 0 {
		t.Errorf("%+v, %v", st, ok)
	}
}
