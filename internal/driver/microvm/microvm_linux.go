package microvm

import (
	"context"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/box/guestkernel"
	"github.com/paddock-sandbox/paddock/internal/guestclient"
)

// argv0 is supervisor.Argv0, which this package does not import.
const argv0 = "paddock-guest-microvm"

// name is by which checkpoints know a machine; its shape says the rest.
const name = "QEMU"

// saver knows checkpoints of machines. Memory of one is as large as the machine.
func saver() guestkernel.Saver { return guestkernel.Saver{Kernel: name, Memory: memoryOf} }

// New returns a driver. It changes nothing on the host, and does not fail where
// no sandbox can be made: Info and Create tell.
func New(o Options) (*box.Driver, error) {
	site, err := box.NewSite(paddock.MicroVM, o.driver())
	if err != nil {
		return nil, err
	}
	init := site.Open(o.Init)
	store := &guestkernel.Store{Site: site, Saver: saver(), Agent: site.OpenToMount(o.Guest)}
	m := &machinist{supplier: newSupplier(o), site: site, store: store}
	store.Resupply = m.resupply
	m.tier = &box.Tier{
		Name: paddock.MicroVM, Init: init, Runtime: Runtime(), Drafter: m, Client: client{}, Snapshots: store, Suspends: true,
		Probe: &guestkernel.Probe{Site: site, Name: m.kernelName, Program: o.Init, Init: init, Words: words()},
	}
	return box.New(site, *m.tier), nil
}

// Runtime is the tier's part in the process that owns a box, for box.Main.
func Runtime() *box.Runtime {
	return guestkernel.NewRuntime(guestkernel.Options{Argv0: argv0, Limiter: limiter{}, Configure: configure, Saver: saver()})
}

// kernelName is what commands run on, with its version.
func (d *machinist) kernelName() string {
	if about := d.about(); about != "" {
		return about
	}
	return name
}

// A client is that of guest kernels, but that the agent counts what was killed for lack of memory, and
// tells with each start.
type client struct{ guestkernel.Client }

// Warm implements box.Client. In a machine a first call would be as slow as ever: what is slow there is
// code that runs for the first time, and that of a call about a process that is not there is another
// than a command's. So only this side prepares.
func (client) Warm(context.Context, *guestclient.Guest) { guestclient.Prepare() }

// Starting implements box.Client.
func (client) Starting(context.Context, *box.Sandbox) {}

// Amend implements box.Client. An agent that did not count leaves nobody who knows how many there were.
func (c client) Amend(s *box.Sandbox, start guestclient.Start, exit *paddock.Exit) {
	if start.Killed < 0 && exit.Cause != paddock.SandboxGone {
		guestkernel.AmendTime(s, exit)
		return
	}
	c.Client.Amend(s, start, exit)
}
