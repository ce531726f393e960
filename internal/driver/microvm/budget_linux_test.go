package microvm_test

import (
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/microvmtest"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime/lifetimetest"
)

func TestASandboxIsPausedWhenItsBudgetIsUsedUp(t *testing.T) {
	microvmtest.Need(t)
	lifetimetest.Budget(t, base(t), 20*time.Second, func(state string) (paddock.Driver, error) { return openRecorded(state, "") })
}
