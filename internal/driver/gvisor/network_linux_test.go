package gvisor_test

import (
	"testing"

	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/egress/gate"
)

func TestABoxWhoseGatewayIsKilledGoesOnWithoutAWayOut(t *testing.T) {
	drivertest.KilledGateway(t, open, gate.Argv0)
}
