package gvisor

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/box/guestkernel"
	"github.com/paddock-sandbox/paddock/internal/box/layer"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor/procevent"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/program"
)

// Argv0 equals sentry.Argv0, which this package may not import.
const Argv0 = "paddock-guest-gvisor"

// name is the name of the kernel that commands run on.
const name = "gVisor " + Version

// saver reads checkpoints of this version of gVisor.
func saver() guestkernel.Saver {
	return guestkernel.Saver{Kernel: name, Dialect: layer.Dialect{TextLists: true, Parents: true, Removed: true}, Attributes: func(key string) bool {
		return strings.HasPrefix(key, "user.") || strings.HasPrefix(key, "system.posix_acl_")
	}}
}

// New returns a driver. It changes nothing on the host. It does not fail on a host where no
// sandbox can be made: Info and Create report that.
func New(o Options) (*box.Driver, error) {
	return NewWith(o.driver(), o.Init, Runtime())
}

// NewWith is New for tests whose boxes have an init program of their own, which r names.
func NewWith(o box.Options, carried program.Program, r *box.Runtime) (*box.Driver, error) {
	site, err := box.NewSite(paddock.GVisor, o)
	if err != nil {
		return nil, err
	}
	init := site.Open(carried)
	store := &guestkernel.Store{Site: site, Saver: saver(), Agent: site.OpenToMount(o.Guest)}
	return box.New(site, box.Tier{
		Name: paddock.GVisor, Init: init, Runtime: r, Drafter: drafter{store}, Client: guestkernel.Client{}, Snapshots: store, Suspends: true, Form: image.FormEROFS, Root: true,
		Probe: &guestkernel.Probe{Site: site, Name: func() string { return name }, Program: carried, Init: init, Audits: true, Watches: true, Root: true},
	}), nil
}

// Runtime returns the tier's part of the process that owns a box, for box.Main.
func Runtime() *box.Runtime { return RuntimeOf(Argv0) }

// RuntimeOf is Runtime for an init program with another name.
func RuntimeOf(argv0 string) *box.Runtime {
	return guestkernel.NewRuntime(guestkernel.Options{
		Argv0: argv0, Receive: receive, Diagnose: diagnose, Limiter: guestkernel.Limiter{}, Configure: guestkernel.ShowAgent, Saver: saver(),
	})
}

// receive records the process events that gVisor reports.
func receive(events *os.File, sandbox string, sink audit.Sink) error {
	return procevent.Receive(events, procevent.Options{Sandbox: sandbox, Sink: sink, Now: time.Now})
}

// A drafter prepares boxes. A box of this tier shows only the agent's program to gVisor.
type drafter struct{ store *guestkernel.Store }

// Draft implements box.Drafter.
func (d drafter) Draft(spec *paddock.Spec) (box.Draft, error) {
	if err := guestkernel.Refuse(spec, true); err != nil {
		return box.Draft{}, err
	}
	return d.store.Draft(spec, nil, nil)
}

// Trial implements box.Drafter.
func (d drafter) Trial() (box.Draft, paddock.Limits, *box.Failure) {
	return d.store.Bare(&paddock.Spec{}, nil, nil), box.Defaults(), nil
}

// diagnose returns the cause if gVisor cannot start, for example because its processes may
// not trace those of commands.
func diagnose(s *box.Surroundings, says func(words ...string) bool) *box.Failure {
	switch {
	case s.Read("/proc/sys/kernel/yama/ptrace_scope") == "3" && says("gVisor", "guard"):
		return &box.Failure{Control: paddock.ControlKernel, Cause: "no process may trace another one (kernel.yama.ptrace_scope is 3), and gVisor intercepts system calls by tracing (systrap)",
			Remedy: "set kernel.yama.ptrace_scope to 2 or less where the system sets it (see /etc/sysctl.d), and restart the machine, because the kernel does not let 3 be lowered"}
	case says("built with cgo"):
		return &box.Failure{Control: paddock.ControlKernel, Cause: "this program was built with cgo, and then gVisor cannot drop its capabilities in time",
			Remedy: "build it with CGO_ENABLED=0, as make build does"}
	case says("gVisor") && !says("memory limit") && !errors.Is(s.Trace, syscall.ESRCH):
		return &box.Failure{Control: paddock.ControlKernel,
			Cause:  fmt.Sprintf("a process may not trace its child (ptrace: %v), and gVisor intercepts system calls by tracing (systrap)", s.Trace),
			Remedy: s.Contained("allow ptrace in the system-call filter that this process is behind")}
	}
	return nil
}
