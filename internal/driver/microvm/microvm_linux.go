package microvm

import (
	"context"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/box/guestkernel"
	"github.com/paddock-sandbox/paddock/internal/box/layer"
	"github.com/paddock-sandbox/paddock/internal/guestclient"
)

// argv0 equals supervisor.Argv0, which this package does not import.
const argv0 = "paddock-guest-microvm"

// name identifies machines in checkpoints. The shape has the details.
const name = "QEMU"

// saver reads checkpoints of machines. The memory of one is as large as the machine.
func saver() guestkernel.Saver {
	return guestkernel.Saver{Kernel: name, Memory: memoryOf, Dialect: layer.Dialect{Parents: true, Removed: true}}
}

// New returns a driver. It changes nothing on the host. It does not fail on a host where no
// sandbox can be made: Info and Create report that.
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
		Name: paddock.MicroVM, Init: init, Runtime: Runtime(), Drafter: m, Client: client{}, Snapshots: store, Suspends: true, Overhead: overhead,
		Probe: &guestkernel.Probe{Site: site, Name: m.kernelName, Program: o.Init, Init: init, Words: words()},
	}
	return box.New(site, *m.tier), nil
}

// Runtime returns the tier's part of the process that owns a box, for box.Main.
func Runtime() *box.Runtime {
	return guestkernel.NewRuntime(guestkernel.Options{Argv0: argv0, Limiter: limiter{}, Configure: configure, Saver: saver()})
}

// kernelName returns the name and version of the kernel that commands run on.
func (d *machinist) kernelName() string {
	if about := d.about(); about != "" {
		return about
	}
	return name
}

// A client is the client of guest kernels. In addition, the agent counts OOM kills and
// reports them with each start.
type client struct{ guestkernel.Client }

// Warm implements box.Client. It prepares only this side. A first call into the machine
// would not make later ones faster: it is slow because code runs for the first time, and a
// call about a missing process runs other code than a command.
func (client) Warm(context.Context, *guestclient.Guest) { guestclient.Prepare() }

// Starting implements box.Client.
func (client) Starting(context.Context, *box.Sandbox) {}

// Amend implements box.Client. If the agent did not count OOM kills, their number is
// unknown.
func (c client) Amend(s *box.Sandbox, start guestclient.Start, exit *paddock.Exit) {
	if start.Killed < 0 && exit.Cause != paddock.SandboxGone {
		guestkernel.AmendTime(s, exit)
		return
	}
	c.Client.Amend(s, start, exit)
}
