package jail

import (
	"os"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/step"
	"github.com/paddock-sandbox/paddock/internal/step/steptest"
)

func openLayered(state string, l *step.Layers) (paddock.Driver, error) {
	return New(Options{State: state, Environ: os.Environ(), Layers: l.Dirs(), Changing: l.Changing})
}

func TestWhatCommandsChangeCanBeReviewed(t *testing.T) {
	spec := paddock.Spec{AllowMissing: drivertest.Weak(t, open)}
	t.Run("all that they do", func(t *testing.T) { steptest.Review(t, spec, openLayered) })
	t.Run("protected names", func(t *testing.T) { steptest.ReviewProtected(t, spec, openLayered) })
	t.Run("git", func(t *testing.T) { steptest.ReviewGit(t, spec, openLayered) })
	t.Run("changes by the user", func(t *testing.T) { steptest.ReviewMeanwhile(t, spec, openLayered) })
}

func TestWhatCommandsChangeCanBeReviewedAsUser(t *testing.T) {
	drivertest.SomeAsUser(t, "^TestWhatCommandsChangeCanBeReviewed$", 4)
}
