package gvisor_test

import (
	"os"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor"
	"github.com/paddock-sandbox/paddock/internal/step/steptest"
)

func openRecorded(state, journal string) (paddock.Driver, error) {
	return gvisor.New(gvisor.Options{State: state, Data: data, Environ: os.Environ(), Steps: journal})
}

func TestInfoTellsWhatAMonitorSees(t *testing.T) {
	steptest.Seen(t, openRecorded, false)
}

func TestWhatCommandsChangeCanBeUndone(t *testing.T) {
	spec := paddock.Spec{AllowMissing: drivertest.Weak(t, open)}
	t.Run("each step", func(t *testing.T) { steptest.Undo(t, spec, openRecorded) })
	t.Run("files that an earlier command has open", func(t *testing.T) { steptest.Held(t, spec, openRecorded) })
	t.Run("files that a process changes after its command", func(t *testing.T) { steptest.Late(t, spec, openRecorded) })
	t.Run("no path that is too long for a record", func(t *testing.T) { steptest.Deep(t, spec, openRecorded) })
	t.Run("no path that the host may not look at", func(t *testing.T) { steptest.Hidden(t, spec, openRecorded) })
	t.Run("beside a single file", func(t *testing.T) { steptest.File(t, spec, openRecorded) })
	t.Run("with an event of each step", func(t *testing.T) {
		steptest.Vouched(t, spec, func(state, journal string, sink audit.Sink) (paddock.Driver, error) {
			return gvisor.New(gvisor.Options{State: state, Data: data, Environ: os.Environ(), Steps: journal, Audit: sink})
		})
	})
}

func TestWhatCommandsChangeCanBeUndoneAsUser(t *testing.T) {
	drivertest.SomeAsUser(t, "^TestWhatCommandsChangeCanBeUndone$", 7)
}

func TestWhatChangesInKeptSandboxesCanBeUndone(t *testing.T) {
	spec := paddock.Spec{AllowMissing: drivertest.Weak(t, open)}
	t.Run("commands, file calls and the background", func(t *testing.T) { steptest.Kept(t, spec, openRecorded) })
	t.Run("when the sandbox is gone", func(t *testing.T) { steptest.Past(t, spec, openRecorded) })
	t.Run("what goes on after a pause", func(t *testing.T) { steptest.Paused(t, spec, openRecorded) })
	t.Run("after its keeper was killed", func(t *testing.T) { steptest.Killed(t, spec, openRecorded) })
	t.Run("refusals", func(t *testing.T) { steptest.Refused(t, spec, openRecorded) })
}

func TestWhatChangesInKeptSandboxesCanBeUndoneAsUser(t *testing.T) {
	drivertest.SomeAsUser(t, "^TestWhatChangesInKeptSandboxesCanBeUndone$", 4)
}

func TestKeptSandboxesHaveMonitors(t *testing.T) {
	spec := paddock.Spec{AllowMissing: drivertest.Weak(t, open)}
	t.Run("refusals, questions and answers", func(t *testing.T) { steptest.Monitored(t, spec, openRecorded) })
	t.Run("without an answer", func(t *testing.T) { steptest.MonitoredAlone(t, spec, openRecorded) })
	t.Run("a pause", func(t *testing.T) { steptest.MonitoredPause(t, spec, openRecorded) })
	t.Run("what happens meanwhile", func(t *testing.T) { steptest.MonitoredMeanwhile(t, spec, openRecorded) })
}

func TestKeptSandboxesHaveMonitorsAsUser(t *testing.T) {
	drivertest.SomeAsUser(t, "^TestKeptSandboxesHaveMonitors$", 4)
}
