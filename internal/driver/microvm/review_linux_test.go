package microvm_test

import (
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/microvmtest"
	"github.com/paddock-sandbox/paddock/internal/step"
	"github.com/paddock-sandbox/paddock/internal/step/steptest"
)

func openLayered(state string, l *step.Layers) (paddock.Driver, error) {
	o, err := microvmtest.Options()
	if err != nil {
		return nil, err
	}
	o.State, o.Layers, o.Changing = state, l.Dirs(), l.Changing
	return microvm.New(o)
}

func TestWhatCommandsChangeCanBeReviewed(t *testing.T) {
	microvmtest.Need(t)
	spec := base(t)
	t.Run("all that they do", func(t *testing.T) { steptest.Review(t, spec, openLayered) })
	t.Run("changes by the user", func(t *testing.T) { steptest.ReviewMeanwhile(t, spec, openLayered) })
}

func TestWhatCommandsChangeCanBeReviewedAsUser(t *testing.T) {
	microvmtest.Need(t)
	drivertest.SomeAsUser(t, "^TestWhatCommandsChangeCanBeReviewed$", 2)
}
