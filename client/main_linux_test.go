package client_test

import (
	"os"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/driver/jail"
	"github.com/paddock-sandbox/paddock/internal/egress/gateway"
	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
)

func TestMain(m *testing.M) {
	if box.Main(jail.Runtime()) || gateway.Main() {
		return
	}
	drivertest.Main(m, (&host{driver: jailed}).open)
}

func jailed(state string) (paddock.Driver, error) {
	return jail.New(jail.Options{State: state, Environ: os.Environ(), Hosts: drivertest.Hosts()})
}

func TestPromisesOfTheJail(t *testing.T) {
	h := &host{driver: jailed}
	harness := h.harness(t)
	harness.Base = paddock.Spec{AllowMissing: drivertest.Weak(t, jailed)}
	harness.Sample, harness.Turns = sample.Seed("client over the jail"), 2
	drivertest.Run(t, harness)
}

func TestPromisesOfTheJailAsUser(t *testing.T) {
	if testing.Short() {
		t.Skip("who calls changes the jail and not the client, whose races root's run shows")
	}
	drivertest.SampleAsUser(t, "^TestPromisesOfTheJail$", sample.Seed("client over the jail as a user"))
}
