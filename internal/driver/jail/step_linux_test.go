package jail

import (
	"os"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/step"
	"github.com/paddock-sandbox/paddock/internal/step/steptest"
)

func openRecorded(state string, j *step.Journal) (paddock.Driver, error) {
	return New(Options{State: state, Environ: os.Environ(), Steps: j})
}

func TestWhatCommandsChangeCanBeUndone(t *testing.T) {
	t.Run("each step", func(t *testing.T) {
		steptest.Undo(t, paddock.Spec{AllowMissing: drivertest.Weak(t, open)}, openRecorded)
	})
	t.Run("files that an earlier command has open", func(t *testing.T) {
		steptest.Held(t, paddock.Spec{AllowMissing: drivertest.Weak(t, open)}, openRecorded)
	})
}

func TestWhatCommandsChangeCanBeUndoneAsUser(t *testing.T) {
	drivertest.SomeAsUser(t, "^TestWhatCommandsChangeCanBeUndone$", 2)
}
