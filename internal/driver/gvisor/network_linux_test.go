package gvisor_test

import (
	"testing"

	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
)

// The gateway of a resumed box is a new process, and knows no earlier connection.
func TestAConnectionOfBeforeAPauseIsOver(t *testing.T) {
	drivertest.HeldOverPause(t, open)
}

func TestABoxWhoseGatewayIsKilledGoesOnWithoutAWayOut(t *testing.T) {
	drivertest.KilledGateway(t, open, gatewayclient.Argv0)
}
