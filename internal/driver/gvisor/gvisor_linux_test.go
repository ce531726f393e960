package gvisor_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor/supervisor"
	"github.com/paddock-sandbox/paddock/internal/egress/gateway"
	"github.com/paddock-sandbox/paddock/internal/image/imagetest"
	"github.com/paddock-sandbox/paddock/internal/private"
	"github.com/paddock-sandbox/paddock/internal/program"
	"github.com/paddock-sandbox/paddock/internal/protect"
	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
)

// data is where all drivers of these tests keep saved state, because a snapshot outlives
// its sandbox and its driver.
var data = filepath.Join(os.TempDir(), fmt.Sprintf("paddock-gvisor-test-%d", os.Geteuid()))

func open(state string) (paddock.Driver, error) {
	return gvisor.New(gvisor.Options{State: state, Data: data, Environ: os.Environ(), Audit: new(events), Hosts: drivertest.Hosts()})
}

func TestMain(m *testing.M) {
	if box.Main(gvisor.Runtime()) || supervisor.Main() || gateway.Main() {
		return
	}
	if os.Getenv(containedVariable) != "" {
		contained()
		return
	}
	if os.Getenv(deedsVariable) != "" {
		if err := deeds(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	if dir := os.Getenv(resumeVariable); dir != "" {
		if err := resumeThere(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	drivertest.Main(m, open)
}

func TestPromises(t *testing.T) {
	t.Cleanup(func() { os.RemoveAll(data) })
	images := imagetest.New(t)
	open := func(state string) (paddock.Driver, error) {
		return gvisor.New(gvisor.Options{State: state, Data: data, Environ: os.Environ(), Audit: new(events), Hosts: drivertest.Hosts(), Images: images})
	}
	drivertest.Run(t, drivertest.Harness{New: open, Base: paddock.Spec{AllowMissing: drivertest.Weak(t, open)}, Turns: 2, Image: images.Image})
}

func TestASandboxWhoseStateDirectoryIsGoneEnds(t *testing.T) { drivertest.StateGone(t, open) }

func TestASandboxWhoseStateDirectoryIsGoneEndsAsUser(t *testing.T) {
	drivertest.SomeAsUser(t, "^TestASandboxWhoseStateDirectoryIsGoneEnds$", 1)
}

func TestNoProtectedNameCanBePlanted(t *testing.T) {
	names, roots := protect.Split()
	drivertest.ProtectedNames(t, open, names, roots)
}

func TestNoMountReachesTheHost(t *testing.T) { drivertest.SharedMounts(t, open) }

func TestASandboxDoesNotRunBeforeTheHost(t *testing.T) { drivertest.Urgent(t, open) }

func TestOfAToolChainNothingIsSeenThatLiesBesideItsPrograms(t *testing.T) {
	drivertest.ToolChains(t, func(state string, environ []string) (paddock.Driver, error) {
		return gvisor.New(gvisor.Options{State: state, Data: t.TempDir(), Cache: program.Cache(os.LookupEnv), Environ: environ})
	})
}

// The tier refuses to deny a name that it cannot deny.
func TestADenialThatCannotBeKeptIsRefused(t *testing.T) {
	d, _ := driver(t)
	for what, files := range map[string]paddock.FilePolicy{
		"reading":            {DenyRead: []string{"/tmp/never"}},
		"reading, not clean": {DenyRead: []string{"/tmp//never/"}},
		"writing":            {DenyWrite: []string{"/tmp/never"}},
	} {
		sb, err := d.Create(t.Context(), paddock.Spec{Ephemeral: true, Policy: paddock.Policy{Files: files}})
		if err == nil {
			_ = sb.Remove(t.Context())
		}
		if paddock.KindOf(err) != paddock.Unsupported {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestPromisesAsUser runs this package's tests again as an unprivileged user. A sample has a sixth of those that
// are not promises of every driver.
func TestPromisesAsUser(t *testing.T) {
	seed := sample.Seed("gvisor as a user")
	tried, left := sample.Part(seed, "own tests", []string{
		"TestWhatCommandsDoIsTold", "TestASandboxThatIsKeptRecordsItself",
		"TestNoCommandMakesNamespacesOrHarmsItsAgent", "TestCommandsUseProcessesAsTheyDoElsewhere", "TestAFullSandboxStartsNothingMore",
		"TestASnapshotOfFilesIsBounded", "TestAFullDiskIsSaved", "TestACommandDoesNotChangeWhoOwnsAFile", "TestALateResumeLosesNothing",
		"TestASandboxThatDiesWhileItIsPausedIsBuried", "TestRemovingASnapshotTakesThatAlone",
		"TestTooLittleMemoryIsSaidToBe", "TestWhereNothingCanBeSavedOnlySavingFails", "TestASandboxMayBeRootsWhoHasNoCapability",
		"TestOfAToolChainNothingIsSeenThatLiesBesideItsPrograms", "TestNoProtectedNameCanBePlanted", "TestWhatTheCallerKeepsToItselfIsNotSeen",
	}, 6)
	for _, name := range left {
		t.Log(sample.LeftOut + name)
	}
	drivertest.SampleAsUser(t, "^(TestPromises|"+strings.Join(tried, "|")+")$", seed)
}

func BenchmarkDriver(b *testing.B) { drivertest.Bench(b, drivertest.Harness{New: open}) }

func TestWhatTheCallerKeepsToItselfIsNotSeen(t *testing.T) {
	drivertest.Private(t, func(state, kept, shown string) (paddock.Driver, error) {
		return gvisor.New(gvisor.Options{State: state, Data: data, Environ: os.Environ(), Private: private.Files{Paths: []string{kept}, Shown: []string{shown}}})
	})
}
