package jail

import (
	"os"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime/lifetimetest"
)

func TestASandboxIsPausedWhenItsBudgetIsUsedUp(t *testing.T) {
	lifetimetest.Budget(t, paddock.Spec{AllowMissing: drivertest.Weak(t, open)}, 300*time.Millisecond, func(state string) (paddock.Driver, error) {
		return New(Options{State: state, Environ: os.Environ()})
	})
}
