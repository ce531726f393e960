package tiers

import (
	"os"
	"sync"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cgroup"
	"github.com/paddock-sandbox/paddock/internal/cgroup/systemd"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor"
	"github.com/paddock-sandbox/paddock/internal/driver/jail"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/parent"
	"github.com/paddock-sandbox/paddock/internal/program"
)

// Programs are what sandboxes are made with. The zero one is the calling program,
// in each of its parts.
type Programs struct {
	Guest, Gateway, Keeper, GVisor, MicroVM, Sim program.Program

	// Agent is the guest program in a file of its own, which boxes with a guest kernel mount. A box that has the
	// guest program as its init could write that one's file if it were taken over, while no other box executes it.
	Agent program.Program

	scope func() error // moves this process to a scope of systemd's, once
}

// Registry lists the tiers, strongest first.
func Registry(p Programs) []cli.Tier {
	p.scope = sync.OnceValue(func() error {
		runtime, _ := os.LookupEnv("XDG_RUNTIME_DIR")
		return systemd.Scope(systemd.Socket(os.Geteuid(), runtime))
	})
	return []cli.Tier{
		{Name: paddock.MicroVM, About: "a kernel of its own in a virtual machine: for the least trusted code", Open: p.openMicroVM, Weak: untried},
		{Name: paddock.GVisor, About: "a second kernel in software: for untrusted code, without virtualization", Open: p.openGVisor, Audited: true},
		{Name: paddock.Jail, About: "namespaces, Landlock, seccomp and control groups on this machine's kernel: native speed", Open: p.openJail},
		{Name: paddock.Sim, About: "a shell, its tools and a file system in Go: text and files, no programs of this machine", Open: p.openSim, Limited: true},
	}
}

func (p Programs) openSim(g cli.Gear) (paddock.Driver, error) {
	d, err := parent.New(parent.Options{Program: p.Sim, Snapshots: g.Snapshots(), Private: g.Private, Limits: g.Limits, Python: cli.PythonDir(os.LookupEnv), Audit: g.Audit, Ask: g.Ask, Judge: g.Judge, Login: g.Login, Gateway: p.openGateway})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// untried says why auto takes no machine: where machines are emulated they are
// slow, and with KVM nobody has tested them. One is made where it is asked for by
// name.
func untried() string {
	if why := microvm.Emulated(); why != "" {
		return "machines are emulated here, which is slow; --tier microvm makes one: " + why
	}
	return "machines with KVM were never tested in this version; --tier microvm makes one"
}

func (p Programs) openMicroVM(g cli.Gear) (paddock.Driver, error) {
	p.settle(g)
	state, data := g.Kept(paddock.MicroVM)
	d, err := microvm.New(microvm.Options{Spares: g.Spares, Scope: p.scope, State: state, Data: data, Snapshots: g.Snapshots(), Guest: p.Agent, Init: p.MicroVM, Gateway: p.Gateway, Keeper: p.Keeper, Engine: os.Getenv(cli.EngineVariable), Private: g.Private, Environ: os.Environ(), Audit: g.Audit, Ask: g.Ask, Judge: g.Judge, Login: g.Login, Watch: g.Watch, Steps: g.Steps, Layers: g.Layers, Images: g.Images, Changing: g.Changing})
	if err != nil {
		return nil, err
	}
	return d, nil
}

func (p Programs) openGVisor(g cli.Gear) (paddock.Driver, error) {
	p.settle(g)
	state, data := g.Kept(paddock.GVisor)
	d, err := gvisor.New(gvisor.Options{Spares: g.Spares, Scope: p.scope, State: state, Data: data, Snapshots: g.Snapshots(), Guest: p.Agent, Init: p.GVisor, Gateway: p.Gateway, Keeper: p.Keeper, Private: g.Private, Environ: os.Environ(), Audit: g.Audit, Ask: g.Ask, Judge: g.Judge, Login: g.Login, Watch: g.Watch, Steps: g.Steps, Layers: g.Layers, Images: g.Images, Changing: g.Changing})
	if err != nil {
		return nil, err
	}
	return d, nil
}

func (p Programs) openJail(g cli.Gear) (paddock.Driver, error) {
	p.settle(g)
	state, data := g.Kept(paddock.Jail)
	d, err := jail.New(jail.Options{Spares: g.Spares, Scope: p.scope, State: state, Data: data, Snapshots: g.Snapshots(), Guest: p.Guest, Gateway: p.Gateway, Keeper: p.Keeper, Private: g.Private, Environ: os.Environ(), Audit: g.Audit, Ask: g.Ask, Judge: g.Judge, Login: g.Login, Watch: g.Watch, Steps: g.Steps, Layers: g.Layers, Images: g.Images, Changing: g.Changing})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// settle moves a server to where its sandboxes can have limits. A server has children of many kinds, and
// one that is there before would be in the way.
func (p Programs) settle(g cli.Gear) {
	if g.Spares > 0 {
		cgroup.Settle(p.scope)
	}
}

// openGateway opens the program of the way out for a driver that takes a file.
func (p Programs) openGateway() (*os.File, error) {
	if p.Gateway.Self() {
		return os.Open("/proc/self/exe")
	}
	return p.Gateway.Open(program.Cache(os.LookupEnv))
}
