package gvisor_test

import (
	"os"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor"
	"github.com/paddock-sandbox/paddock/internal/step"
	"github.com/paddock-sandbox/paddock/internal/step/steptest"
)

func openRecorded(state string, j *step.Journal) (paddock.Driver, error) {
	return gvisor.New(gvisor.Options{State: state, Data: data, Environ: os.Environ(), Steps: j})
}

func TestWhatCommandsChangeCanBeUndone(t *testing.T) {
	spec := paddock.Spec{AllowMissing: drivertest.Weak(t, open)}
	t.Run("each step", func(t *testing.T) { steptest.Undo(t, spec, openRecorded) })
	t.Run("files that an earlier command has open", func(t *testing.T) { steptest.Held(t, spec, openRecorded) })
	t.Run("files that a process changes after its command", func(t *testing.T) { steptest.Late(t, spec, openRecorded) })
	t.Run("beside a single file", func(t *testing.T) { steptest.File(t, spec, openRecorded) })
	t.Run("with an event of each step", func(t *testing.T) {
		steptest.Vouched(t, spec, func(state string, j *step.Journal, sink audit.Sink) (paddock.Driver, error) {
			return gvisor.New(gvisor.Options{State: state, Data: data, Environ: os.Environ(), Steps: j, Audit: sink})
		})
	})
}

func TestWhatCommandsChangeCanBeUndoneAsUser(t *testing.T) {
	drivertest.SomeAsUser(t, "^TestWhatCommandsChangeCanBeUndone$", 5)
}
