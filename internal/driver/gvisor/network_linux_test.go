package gvisor_test

import (
	"testing"

	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/egress/owner"
)

// The gateway of a box that goes on is another one, and knows nothing of what the
// one before carried.
func TestAConnectionOfBeforeAPauseIsOver(t *testing.T) {
	drivertest.HeldOverPause(t, open)
}

func TestABoxWhoseGatewayIsKilledGoesOnWithoutAWayOut(t *testing.T) {
	drivertest.KilledGateway(t, open, owner.Argv0)
}
