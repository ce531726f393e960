package child

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/parent/protocol"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/sim/command/python"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Main runs the child if this process was started as one, and reports whether it was. It returns
// when the child has ended. A program that uses itself as the child calls Main before anything
// else.
func Main() bool {
	if len(os.Args) == 0 || os.Args[0] != protocol.ChildName {
		return false
	}
	if err := serve(); err != nil {
		fmt.Fprintf(os.Stderr, "paddock: a simulated computer ended: %v\n", err)
		os.Exit(1)
	}
	return true
}

func serve() error {
	// What the caller left open by mistake is no business of a computer.
	if err := sys.CloseFrom(protocol.ControlFD + 1); err != nil {
		return err
	}
	control, err := protocol.FileConn(protocol.ControlFD)
	if err != nil {
		return err
	}
	conn, err := protocol.FileConn(protocol.GuestFD)
	if err != nil {
		return err
	}
	c := &Served{conn: control}
	if c.Driver, err = sim.New(sim.Options{Walls: protocol.Findings(sys.LandlockABI())}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	// What takes a while and needs no order is done while the host writes it.
	go c.Driver.Prepare()
	confined := make(chan struct{})
	in := &inside{}
	go func() {
		// The host's going away ends the sandbox.
		_ = guest.ServeHandler(ctx, conn, in, func(done <-chan struct{}) bool {
			select {
			case <-confined:
				return true
			case <-done:
				return false
			}
		})
		os.Exit(0)
	}()
	var first protocol.Order
	if err := protocol.Receive(control, &first, math.MaxUint32); err != nil {
		return err
	}
	sb, err := c.Create(first)
	if err != nil {
		return protocol.Send(control, protocol.Failure(err))
	}
	in.sb = sb
	close(confined)
	st, err := sb.Status(ctx)
	if err != nil {
		return err
	}
	if err := protocol.Send(control, protocol.Reply{Status: told(st)}); err != nil {
		return err
	}
	go watchMemory(ctx, c.Driver)
	go watchTasks(ctx, c.Driver)
	return c.serve(ctx, sb)
}

// A Served is the child's end of the control socket.
type Served struct {
	conn   net.Conn
	Driver *sim.Driver
	most   int   // processors that Go uses by itself
	data   int64 // bytes of memory that the process can have, which it cannot raise
}

// Create makes the sandbox. It first opens what the sandbox needs of the host, and then gives up
// all other rights of the process.
func (c *Served) Create(o protocol.Order) (paddock.Sandbox, error) {
	setup := sim.Setup{Limits: o.Limits, Python: o.Python, Private: o.Private}
	if o.Spec.Policy.Network.Mode == paddock.NetworkList {
		dialer, err := dialerOf(c.conn)
		if err != nil {
			return nil, fmt.Errorf("the way out: %w", err)
		}
		setup.Way, setup.Roots = dialer.Dial, pool(o.Roots)
	}
	if err := c.Driver.Configure(setup); err != nil {
		return nil, err
	}
	// Before anything of the sandbox is in memory.
	if err := c.bound(o.Spec.Limits); err != nil {
		return nil, fmt.Errorf("bound the process: %w", err)
	}
	if o.Spec.Root.Kind == paddock.RootSnapshot {
		x := protocol.Trusted(c.conn)
		err := c.Driver.Import(o.Spec.Root.Snapshot, o.Spec.Limits, x.Entries())
		if err := errors.Join(err, x.Drain()); err != nil {
			return nil, err
		}
	}
	sb, err := c.Driver.Create(context.Background(), o.Spec)
	if err != nil {
		return nil, err
	}
	if err := confine(o); err != nil {
		return nil, fmt.Errorf("confine the process: %w", err)
	}
	return sb, nil
}

// reserve is the memory that the process can have beyond all that is counted, until it is ended: the
// runtime gives back memory, but not its place, and whoever watches needs time to look.
const reserve = 1 << 30

// slack is the part of sim.Overhead for what a script takes between two looks at the memory of the process. Garbage is
// collected before it is needed.
const slack = 64 << 20

// counted returns the memory of the process with these limits: what its sandbox counts, and sim.Overhead.
func (c *Served) counted(l paddock.Limits) int64 {
	n, _ := c.Driver.HostMemory(paddock.Sim, l)
	return min(n, math.MaxInt64/4)
}

// bound sets the limits of the process, for a sandbox with these. It can have twice the memory that is
// counted: for garbage, and for the engines of libraries.
func (c *Served) bound(l paddock.Limits) error {
	debug.SetMemoryLimit(c.counted(l) - slack)
	c.processors(l)
	for _, r := range []struct {
		what sys.Resource
		n    uint64
	}{
		{sys.ResourceCore, 0}, {sys.ResourceSize, 0}, {sys.ResourceFiles, 4096}, {sys.ResourceSignals, 1024},
		{sys.ResourceData, uint64(2*c.counted(l) + reserve)},
	} {
		n, err := sys.SetResource(r.what, r.n)
		if err != nil {
			return err
		}
		if r.what == sys.ResourceData {
			c.data = int64(min(n, math.MaxInt64))
		}
	}
	return nil
}

// A replacer is a sandbox of package sim.
type replacer interface {
	Replace(l paddock.Limits) error
}

// update changes the sandbox, and with its limits the memory limit of the process. Where that becomes lower,
// garbage is collected first, because it would count as memory of the sandbox. The host tells limits alone, and all
// of them, so that it can take a change back.
func (c *Served) update(ctx context.Context, sb paddock.Sandbox, u paddock.Update) error {
	if u.Limits == nil {
		return sb.Update(ctx, u)
	}
	r, ok := sb.(replacer)
	if !ok || u.Policy != nil || u.Labels != nil {
		return fmt.Errorf("limits with other changes, or of a %T: %w", sb, paddock.Internal)
	}
	before, after := debug.SetMemoryLimit(-1)+slack, c.counted(*u.Limits)
	if most := c.data - sim.Overhead - reserve; after > before && after > most {
		return fmt.Errorf("change limits: memory and disk of this sandbox can together have at most %d bytes; make another sandbox from a snapshot: %w",
			max(0, most-sim.Overhead), paddock.Conflict)
	}
	if after < before {
		debug.SetMemoryLimit(after - slack)
		debug.FreeOSMemory()
	}
	err := r.Replace(*u.Limits)
	if err != nil {
		after = before
	} else {
		c.processors(*u.Limits)
	}
	debug.SetMemoryLimit(after - slack)
	return err
}

// confine gives up what the process does not need. It fails closed.
func confine(o protocol.Order) error {
	var readable []string
	for _, m := range o.Spec.Mounts {
		readable = append(readable, filepath.Clean(m.Source))
	}
	if o.Python != "" && python.Installed(o.Python) {
		real, err := filepath.EvalSymlinks(o.Python) // the caller's own
		if err != nil {
			return fmt.Errorf("python: %w", err)
		}
		readable = append(readable, real)
	}
	if err := sys.NotDumpable(); err != nil {
		return fmt.Errorf("not dumpable: %w", err)
	}
	if err := sys.DropCapabilities(); err != nil {
		return err
	}
	if o.Landlock {
		if err := sys.LandlockProcess(readable); err != nil {
			return err
		}
	}
	return sys.ConfineRuntime()
}

// watchMemory ends what runs when the process holds far more than its sandbox
// counts: libraries have memory of their own. Where that does not help, it ends
// the process: then nothing of the sandbox could run any more.
func watchMemory(ctx context.Context, d *sim.Driver) {
	tick := time.NewTicker(20 * time.Millisecond)
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	var x excess
	for {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
		metrics.Read(sample)
		held := sample[0].Value.Uint64() - sample[1].Value.Uint64()
		over := held > uint64(d.MostMemory()-slack/2)
		if over {
			d.OutOfMemory(int64(min(held, math.MaxInt64)))
			debug.FreeOSMemory()
		}
		if x.lasts(over, d.ProcessorTime()) {
			fmt.Fprintf(os.Stderr, "paddock: out of memory: %d MiB are held, and to end all commands did not help\n", held>>20)
			os.Exit(1)
		}
	}
}

// An excess is how long the process has held too much memory.
type excess struct {
	since time.Duration // processor time of the process; 0 is not now
}

// mostExcess is the processor time in which commands that were to end reach their ends, and garbage is collected.
const mostExcess = 20 * time.Second

// lasts is told at each look whether it is too much, and reports whether that does not end.
func (x *excess) lasts(over bool, ran time.Duration) bool {
	switch {
	case !over:
		x.since = 0
	case x.since == 0:
		x.since = max(ran, 1)
	default:
		return ran-x.since > mostExcess
	}
	return false
}

// watchTasks ends the process when a command was to end and does not stop computing: nothing else
// ends that. The host tells why.
func watchTasks(ctx context.Context, d *sim.Driver) {
	tick := time.NewTicker(time.Second)
	for {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
		if name := d.Stuck(); name != "" {
			fmt.Fprintf(os.Stderr, "paddock: %s %.40q\n", protocol.Stuck, name)
			os.Exit(1)
		}
	}
}

// processors has Go use no more processors than a sandbox may have, whatever its commands do.
func (c *Served) processors(l paddock.Limits) {
	if c.most == 0 {
		c.most = runtime.GOMAXPROCS(0)
	}
	cpus := l.CPUs
	if cpus == 0 {
		cpus = 1
	}
	runtime.GOMAXPROCS(int(min(math.Ceil(cpus), float64(c.most))))
}

// serve answers orders until the host has gone.
func (c *Served) serve(ctx context.Context, sb paddock.Sandbox) error {
	for {
		var o protocol.Order
		err := protocol.Receive(c.conn, &o, math.MaxUint32)
		if err != nil {
			return nil //nolint:nilerr // the host has gone: there is nobody to tell
		}
		if o.Op == "snapshot" {
			err = protocol.SendFiles(c.conn, c.Driver.Export(sb), o.Room)
		} else {
			err = protocol.Send(c.conn, c.answer(ctx, sb, o))
		}
		if err != nil {
			return nil //nolint:nilerr // as above
		}
	}
}

// told returns what the host is told of a status.
func told(st paddock.Status) *protocol.Status {
	return &protocol.Status{
		User: st.User, Dir: st.Dir, Limits: st.Limits, Usage: st.Usage, Refused: gatewayclient.FitRefusals(st.Refused, gatewayclient.InsideMax),
	}
}

func (c *Served) answer(ctx context.Context, sb paddock.Sandbox, o protocol.Order) protocol.Reply {
	var r protocol.Reply
	var err error
	switch o.Op {
	case "status":
		var st paddock.Status
		st, err = sb.Status(ctx)
		r.Status = told(st)
	case "update":
		err = c.update(ctx, sb, o.Update)
	case "pause":
		err = sb.Pause(ctx)
	case "resume":
		err = sb.Resume(ctx)
	default:
		err = fmt.Errorf("order %q: %w", o.Op, paddock.Internal)
	}
	if err != nil {
		return protocol.Failure(err)
	}
	return r
}
