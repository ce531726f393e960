package gvisor_test

import (
	"os"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime/lifetimetest"
)

func TestASandboxIsPausedWhenItsBudgetIsUsedUp(t *testing.T) {
	lifetimetest.Budget(t, paddock.Spec{AllowMissing: drivertest.Weak(t, open)}, 3*time.Second, func(state string) (paddock.Driver, error) {
		return gvisor.New(gvisor.Options{State: state, Data: data, Environ: os.Environ()})
	})
}
