package microvm_test

import (
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/microvmtest"
	"github.com/paddock-sandbox/paddock/internal/step/steptest"
)

func openRecorded(state, journal string) (paddock.Driver, error) {
	o, err := microvmtest.Options()
	if err != nil {
		return nil, err
	}
	o.State, o.Steps = state, journal
	return microvm.New(o)
}

func TestInfoTellsWhatAMonitorSees(t *testing.T) {
	microvmtest.Need(t)
	steptest.Seen(t, openRecorded, false)
}

func TestWhatCommandsChangeCanBeUndone(t *testing.T) {
	microvmtest.Need(t)
	spec := base(t)
	t.Run("each step", func(t *testing.T) { steptest.Undo(t, spec, openRecorded) })
	t.Run("files that an earlier command has open", func(t *testing.T) { steptest.Held(t, spec, openRecorded) })
	t.Run("files that a process changes after its command", func(t *testing.T) { steptest.Late(t, spec, openRecorded) })
	t.Run("no path that is too long for a record", func(t *testing.T) { steptest.Deep(t, spec, openRecorded) })
	t.Run("no path that the host may not look at", func(t *testing.T) { steptest.Hidden(t, spec, openRecorded) })
	t.Run("beside a single file", func(t *testing.T) { steptest.File(t, spec, openRecorded) })
}

func TestWhatCommandsChangeCanBeUndoneAsUser(t *testing.T) {
	microvmtest.Need(t)
	drivertest.SomeAsUser(t, "^TestWhatCommandsChangeCanBeUndone$", 6)
}

func TestWhatChangesInKeptSandboxesCanBeUndone(t *testing.T) {
	microvmtest.Need(t)
	spec := base(t)
	t.Run("commands, file calls and the background", func(t *testing.T) { steptest.Kept(t, spec, openRecorded) })
	t.Run("when the sandbox is gone", func(t *testing.T) { steptest.Past(t, spec, openRecorded) })
	t.Run("what goes on after a pause", func(t *testing.T) { steptest.Paused(t, spec, openRecorded) })
	t.Run("after its keeper was killed", func(t *testing.T) { steptest.Killed(t, spec, openRecorded) })
	t.Run("refusals", func(t *testing.T) { steptest.Refused(t, spec, openRecorded) })
}

func TestWhatChangesInKeptSandboxesCanBeUndoneAsUser(t *testing.T) {
	microvmtest.Need(t)
	drivertest.SomeAsUser(t, "^TestWhatChangesInKeptSandboxesCanBeUndone$", 4)
}

func TestKeptSandboxesHaveMonitors(t *testing.T) {
	microvmtest.Need(t)
	spec := base(t)
	t.Run("refusals, questions and answers", func(t *testing.T) { steptest.Monitored(t, spec, openRecorded) })
	t.Run("without an answer", func(t *testing.T) { steptest.MonitoredAlone(t, spec, openRecorded) })
	t.Run("a pause", func(t *testing.T) { steptest.MonitoredPause(t, spec, openRecorded) })
	t.Run("what happens meanwhile", func(t *testing.T) { steptest.MonitoredMeanwhile(t, spec, openRecorded) })
}
