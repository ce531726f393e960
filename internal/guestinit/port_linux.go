package guestinit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/framing"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
	"github.com/paddock-sandbox/paddock/internal/guest/nameserver"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// runOnPort runs the agent in a virtual machine.
func runOnPort() error {
	if err := sys.FollowMounts(); err != nil {
		return err
	}
	if err := ownProc(OwnProc); err != nil {
		return err
	}
	if err := sys.CloseFrom(OrderFD + 1); err != nil {
		return err
	}
	sys.CloseOnExec(StateFD)
	sys.CloseOnExec(OrderFD)
	state := os.NewFile(StateFD, "state")
	port, err := sys.NewPort(os.NewFile(PortFD, "port"))
	if err != nil {
		return err
	}
	a, err := newAgent(OwnGroups, false)
	if err != nil {
		return err
	}
	a.form = OfMachine
	names, err := nameserver.Listen()
	if err != nil {
		return err
	}
	a.serveNames(names)
	if a.probe, err = guest.NewProbe(); err != nil {
		return err
	}
	if err := a.probe.Run(a.spawn.early); err != nil {
		return err
	}
	// One-time work is done before there is a box, and no garbage collection is due at its
	// start, because many boxes may continue from this memory.
	if err := a.spawn.divide(); err != nil {
		return err
	}
	guestpb.Warm()
	runtime.GC()
	if _, err := state.Write([]byte{AgentReady}); err != nil {
		return err
	}
	if err := a.follow(os.NewFile(OrderFD, "order")); err != nil {
		return err
	}
	for {
		if err := port.WaitOpen(context.Background()); err != nil {
			return err
		}
		if _, err := state.Write([]byte{SessionBegins}); err != nil {
			return err
		}
		a.session(port)
		// Discard the remains of a session that broke.
		if _, err := io.Copy(io.Discard, port); err != nil {
			return err
		}
		if _, err := state.Write([]byte{SessionEnded}); err != nil {
			return err
		}
	}
}

// follow waits for an Order and follows it. Nothing of the box runs before.
func (a *agent) follow(f *os.File) error {
	var o Order
	err := framing.Read(f, &o, MaxSettings)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("wait for a box: %w", err)
	}
	if o.UID == nobody() { // the owner of the control groups
		return fmt.Errorf("commands as user %d: %w", o.UID, paddock.Unsupported)
	}
	proc, err := sys.CloneTree(sys.AtCWD, OwnProc, true)
	if err != nil {
		return err
	}
	defer proc.Close()
	// The spawner has its own root directory.
	root := func() error { return sys.EnterRoot(o.Tree) }
	for _, step := range []func() error{
		func() error { return a.spawn.do(root) },
		root,
		func() error {
			at, err := sys.OpenPath(nil, "/proc", false)
			if err != nil {
				return err
			}
			defer at.Close()
			return sys.Attach(proc, at)
		},
		sys.MakePrivate,
		func() error { return sys.Become(o.UID, o.GID) },
		a.giveUp,
		a.spawn.hold,
	} {
		if err := step(); err != nil {
			return fmt.Errorf("become a box's: %w", err)
		}
	}
	a.spawn.user = o.UID
	if o.Sudo {
		a.sudo, err = listenSudo()
	}
	return err
}

// session serves until the host closes its end or sends nonsense.
func (a *agent) session(port *sys.Port) {
	s, err := yamux.Server(&ending{port, Whole{Writer: port}}, sessions())
	if err != nil {
		return // only an invalid configuration fails
	}
	for {
		stream, err := s.AcceptStream()
		if err != nil {
			break
		}
		go a.answer(stream)
	}
	_ = s.Close()
	port.Resume()
}

// sessions returns the configuration of sessions. There is no network between the two ends,
// so nothing is ever late. An end that does not answer was stopped, and will continue.
func sessions() *yamux.Config {
	c := yamux.DefaultConfig()
	c.EnableKeepAlive = false
	c.ConnectionWriteTimeout = time.Hour
	c.StreamCloseTimeout = 0
	c.MaxStreamWindowSize = 1 << 20
	c.LogOutput = io.Discard
	return c
}

// An ending is a port whose Close ends its readers and writers, but not the port.
type ending struct {
	port  *sys.Port
	whole Whole
}

// Read implements io.Reader.
func (e *ending) Read(p []byte) (int, error) { return e.port.Read(p) }

// Write implements io.Writer.
func (e *ending) Write(p []byte) (int, error) { return e.whole.Write(p) }

// Close implements io.Closer.
func (e *ending) Close() error {
	e.port.Interrupt()
	return nil
}

// ownProc mounts the agent's own /proc, in which nothing of the machine can be changed.
// Some files there require no capability, but only user 0, which a command may be.
func ownProc(dir string) error {
	const attrs = sys.NoSUID | sys.NoDev | sys.NoExec
	if err := sys.MountAt("proc", dir, attrs, ""); err != nil {
		return err
	}
	for _, name := range []string{"sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi"} {
		if err := cover(dir+"/"+name, dir+"/"+name, attrs|sys.ReadOnly); err != nil {
			return err
		}
	}
	// As in a box on the host's kernel. None of these is a secret of the host.
	for _, name := range []string{"kcore", "keys", "latency_stats", "timer_list", "sched_debug", "kmsg",
		"kallsyms", "kpagecount", "kpageflags", "vmallocinfo", "slabinfo", "modules", "iomem", "ioports"} {
		if err := cover("/dev/null", dir+"/"+name, attrs|sys.ReadOnly); err != nil {
			return err
		}
	}
	return nil
}

// cover mounts the file at from over the one at to, if that exists.
func cover(from, to string, attrs uint64) error {
	at, err := sys.OpenPath(nil, to, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer at.Close()
	mount, err := sys.CloneTree(sys.AtCWD, from, false)
	if err != nil {
		return err
	}
	defer mount.Close()
	if err := errors.Join(sys.SetMountAttr(mount, attrs, false), sys.Attach(mount, at)); err != nil {
		return fmt.Errorf("cover %s: %w", to, err)
	}
	return nil
}
