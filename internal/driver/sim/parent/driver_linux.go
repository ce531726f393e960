package parent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/description"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/parent/protocol"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/guestclient"
	"github.com/paddock-sandbox/paddock/internal/inventory"
	"github.com/paddock-sandbox/paddock/internal/private"
	"github.com/paddock-sandbox/paddock/internal/program"
	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/snapshot"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Options say how children are made.
type Options struct {
	// Limits bound each computer, as [sim.Options] has them.
	Limits budget.Limits

	// Python is the directory of the Python interpreter, as [sim.Options] has
	// it. Children can read it.
	Python string

	// Snapshots is a directory for snapshots, as [sim.Options] has it. Empty
	// keeps them in a temporary one, which goes with the driver.
	Snapshots string

	// Private lists the caller's files that no sandbox may see.
	Private private.Files

	// Gateway opens the program of the way out (cmd/paddock-gateway). Without it
	// the calling program itself is executed as one: it must call gateway.Main
	// first.
	Gateway func() (*os.File, error)

	// Ask, Hosts, Roots and Audit are those of package way: who is asked where
	// no rule decides, addresses of names, certificates that are trusted besides
	// the system's, and who is told what is decided.
	Ask   func(context.Context, gatewayclient.Question) gatewayclient.Answer
	Judge gatewayclient.Judge // see [gatewayclient.Options]
	Login gatewayclient.Login // see [gatewayclient.Options]
	Hosts map[string][]netip.Addr
	Roots []byte
	Audit audit.Sink

	// Program is what computers run in (cmd/paddock-sim). Without it the calling
	// program itself is executed as one: it must call child.Main first.
	Program program.Program
}

// A Driver makes simulated computers in child processes. Make one with [New].
type Driver struct {
	o      Options
	answer time.Duration // how long a child may take to answer
	walls  []paddock.Finding

	boxes inventory.Set[*sandbox]
	free  *freeing // of what removed snapshots had

	mu        sync.Mutex
	snapshots string // guarded by mu: their directory; empty until one of its own is needed

	program *program.Source // what children execute
}

// New makes a driver.
func New(o Options) (*Driver, error) {
	d := &Driver{o: o, answer: answerTime, snapshots: o.Snapshots, program: o.Program.Source(program.Cache(os.LookupEnv)), walls: protocol.Findings(sys.LandlockABI())}
	d.free = newFreeing(d.collect)
	return d, nil
}

// lacks returns the wall that this host cannot build; nil if there is none.
func (d *Driver) lacks() *paddock.Finding {
	for _, f := range d.walls {
		if f.Strength == paddock.Absent {
			return &f
		}
	}
	return nil
}

// Info implements paddock.Driver.
func (d *Driver) Info(_ context.Context, tier paddock.Tier) (paddock.Info, error) {
	info, err := description.Info(tier, description.Facts{Limits: d.o.Limits, Networked: true, Walls: d.walls})
	if err != nil {
		return info, err
	}
	info.Capabilities = append(info.Capabilities, paddock.CanMonitorNetwork) // the gateway asks, as on each tier
	if d.lacks() != nil {
		info.Available, info.Capabilities = false, nil
	}
	return info, nil
}

// HostMemory implements paddock.MemoryPlanner.
func (d *Driver) HostMemory(tier paddock.Tier, l paddock.Limits) (int64, bool) {
	return description.Planned(d.o.Limits, tier, l)
}

// Create implements paddock.Driver.
func (d *Driver) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("create: %w", paddock.Canceled)
	}
	if spec.ID == "" {
		spec.ID = paddock.ID("sim-" + strings.ToLower(rand.Text()[:16]))
	}
	if f := d.lacks(); f != nil && !slices.Contains(spec.AllowMissing, f.Control) {
		return nil, &paddock.MissingError{Finding: *f}
	}
	if err := description.CheckLimits(spec.Limits); err != nil {
		return nil, err
	}
	out, err := d.wayOut(&spec)
	if err != nil {
		return nil, err
	}
	if err := d.boxes.Reserve(spec.ID); err != nil {
		return nil, err
	}
	var sb *sandbox
	err = d.begins(ctx, &spec, func(files iter.Seq2[snapshot.Entry, error]) (err error) {
		sb, err = d.start(ctx, beginning{spec, files, out})
		return err
	})
	if err != nil {
		if out != nil {
			out.Stop()
		}
		d.boxes.Forget(spec.ID)
		return nil, err
	}
	if err := d.boxes.Add(sb); err != nil {
		sb.kill()
		return nil, err
	}
	return sb, nil
}

// A beginning is what a child makes a sandbox of.
type beginning struct {
	spec  paddock.Spec
	files iter.Seq2[snapshot.Entry, error] // nil is none
	out   *gatewayclient.Gateway           // nil is none
}

// start has a child make the sandbox.
func (d *Driver) start(ctx context.Context, from beginning) (_ *sandbox, err error) {
	spec := from.spec
	if from.out != nil {
		if err := d.startGateway(ctx, from.out); err != nil {
			return nil, err
		}
	}
	c, err := d.child()
	if err != nil {
		return nil, err
	}
	sb := &sandbox{child: c, d: d, spec: spec, asking: make(chan struct{}, 1), changing: make(chan struct{}, 1), link: protocol.Link{Conn: c.control}, out: from.out}
	sb.begin()
	defer func() {
		if err != nil {
			sb.kill()
		}
	}()
	if err = sb.control.SetDeadline(time.Now().Add(createTime)); err != nil {
		return nil, fmt.Errorf("start the computer: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.control.SetDeadline(time.Now()) })
	first := protocol.Order{Op: "create", Spec: within(spec), Limits: d.o.Limits, Python: d.o.Python, Private: d.o.Private.Real(), Landlock: d.lacks() == nil}
	if from.out != nil {
		first.Roots = append(believed(), slices.Concat(d.o.Roots, from.out.Certificate())...)
	}
	if err = protocol.Send(c.control, first); err != nil {
		err = fmt.Errorf("ask: %w: %w", err, paddock.Unavailable)
	}
	if err == nil && from.out != nil {
		err = give(c.control, from.out)
	}
	if err == nil && from.files != nil {
		err = protocol.SendFiles(protocol.Patient{Ctx: ctx, Conn: c.control, Time: createTime, Last: time.Now().Add(snapshotTime)}, from.files, protocol.Unbounded())
	}
	var r protocol.Reply
	if err == nil {
		// What the child's answer need not be waited for. A child that refuses
		// ends, and this with it: its answer says why.
		var ended error
		sb.Guest, ended = guestclient.New(c.conn, guestclient.Options{
			Lifetime: spec.Limits.Lifetime, Gone: sb.reason, Stuck: sb.stuck, Paused: sb.isPaused, Refuse: sb.refuse, Amend: sb.amend,
		})
		if r, err = sb.link.Answer(); err == nil {
			err = ended
		}
		if err == nil && from.out != nil {
			err = from.out.Ready(ctx)
		}
	}
	if !stop() || ctx.Err() != nil {
		err = errors.Join(fmt.Errorf("create: %w", paddock.Canceled), err)
	} else if errors.Is(err, paddock.Unavailable) {
		err = fmt.Errorf("start the computer: %s: %w", sb.reason(), paddock.Internal)
	}
	if err != nil {
		return nil, err
	}
	if r.Status == nil {
		return nil, fmt.Errorf("the child answered nothing: %w", paddock.Internal)
	}
	sb.place(*r.Status)
	if sb.cpu, err = govern(c, sb.known().Limits.CPUs, sb.lost); err != nil {
		return nil, err
	}
	return sb, nil
}

// child starts a child.
func (d *Driver) child() (*child, error) {
	path := "/proc/self/exe"
	if !d.o.Program.Self() {
		if err := d.boxes.Err(); err != nil { // the driver is closed
			return nil, err
		}
		f, err := d.program.Open()
		if err != nil {
			return nil, fmt.Errorf("the program of simulated computers: %w", err)
		}
		defer f.Close()
		path = fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	}
	return begin(path)
}

// Open implements paddock.Driver.
func (d *Driver) Open(_ context.Context, id paddock.ID) (paddock.Sandbox, error) {
	sb, err := d.boxes.Open(id)
	if err != nil {
		return nil, err
	}
	return sb, nil
}

// RemoveSnapshot implements paddock.Driver.
func (d *Driver) RemoveSnapshot(ctx context.Context, id paddock.SnapshotID) (err error) {
	if _, err := d.boxes.List(ctx); err != nil { // the driver is closed
		return fmt.Errorf("remove snapshot %q: %w", string(id), err)
	}
	s, err := d.store(0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err = s.Remove(id); err == nil {
		err = d.free.ask(ctx)
	}
	if err != nil {
		return fmt.Errorf("remove snapshot %q: %w", string(id), err)
	}
	return nil
}

// List implements paddock.Driver.
func (d *Driver) List(ctx context.Context) ([]paddock.Status, error) { return d.boxes.List(ctx) }

// Close removes every sandbox: none outlives this process.
func (d *Driver) Close() error {
	err := d.boxes.Close()
	d.free.close()
	return errors.Join(err, d.program.Close(), d.removeStore())
}

// A sandbox is a child process with a simulated computer.
type sandbox struct {
	*guestclient.Guest
	*child
	d    *Driver
	spec paddock.Spec
	out  *gatewayclient.Gateway // nil is no network
	cpu  *governor              // nil until the child has made the sandbox
	made paddock.Status         // what the host knows and nothing changes
	born time.Time              // made.Created by the clock that nobody sets

	asking chan struct{}  // has an element while a call has the link
	link   protocol.Link  // guarded by asking
	asks   sync.WaitGroup // of exchanges that Status began

	changing chan struct{} // has an element while a call changes what the host alone decides

	mu     sync.Mutex
	limits paddock.Limits     // guarded by mu
	asked  paddock.Limits     // guarded by mu: limits, without the defaults
	most   paddock.Limits     // guarded by mu: the largest of each that it has had
	labels map[string]string  // guarded by mu
	files  paddock.FilePolicy // guarded by mu: what the child was told last
	policy *paddock.Policy    // guarded by mu: that of the last change; nil is that of spec
	usage  paddock.Usage      // guarded by mu: the largest peak that the child told
	paused bool               // guarded by mu
	told   *protocol.Status   // guarded by mu: before it was paused; nil while it is not

	telling bool // guarded by mu: the child has not yet confirmed files

	gone bool   // guarded by mu
	why  string // guarded by mu: why the child was ended by the host; empty is that it was not
}

func (s *sandbox) kill() {
	s.end()
	if s.cpu != nil {
		<-s.cpu.done
	}
	if s.out != nil {
		s.out.Stop()
	}
	if s.Guest != nil {
		_ = s.Close()
	}
}

// stuck ends a child that did not end a command in time.
func (s *sandbox) stuck() {
	s.lost(errStuck)
	s.kill()
}

// amend bounds the processor time that the child tells of a command by that of the child.
func (s *sandbox) amend(_ guestclient.Start, exit *paddock.Exit) {
	exit.Usage.CPU = min(exit.Usage.CPU, s.cpu.used())
}

// refuse returns the error of a call while the sandbox is paused: its child stands still.
func (s *sandbox) refuse() error {
	if s.isPaused() {
		return s.standing()
	}
	return nil
}

func (s *sandbox) standing() error {
	return fmt.Errorf("sandbox %s is paused: %w", s.spec.ID, paddock.Conflict)
}

// patience is how long the end of a child may take to be known.
const patience = 5 * time.Second

// reason says why the child is no longer there.
func (s *sandbox) reason() string {
	s.mu.Lock()
	gone, why := s.gone, s.why
	s.mu.Unlock()
	if gone {
		return "the sandbox was removed"
	}
	if why != "" {
		return why
	}
	select {
	case <-s.ended:
	case <-time.After(patience):
		return "its process does not answer"
	}
	text := s.last.String()
	switch {
	case strings.Contains(text, protocol.Stuck):
		return "its process was ended: " + protocol.Plain(line(text, protocol.Stuck))
	case strings.Contains(text, "out of memory"), strings.Contains(text, "cannot allocate memory"):
		return "its process ran out of memory that no limit had counted"
	case strings.Contains(text, "stack overflow"), strings.Contains(text, "stack exceeds"):
		return "its process nested deeper than a limit had counted"
	case strings.Contains(text, "panic:"), strings.Contains(text, "fatal error:"):
		return "its process failed: " + protocol.Plain(line(text, "panic:", "fatal error:"))
	}
	return "its process ended: " + s.state.String()
}

// line returns the rest of a line from the last of some words on that it has, cut.
func line(text string, words ...string) string {
	from := 0
	for _, w := range words {
		from = max(from, strings.Index(text, w))
	}
	text, _, _ = strings.Cut(text[from:], "\n")
	return text[:min(len(text), 200)]
}

func (s *sandbox) isPaused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paused
}

func (s *sandbox) ID() paddock.ID { return s.spec.ID }

// Born is false: Create and Open return the same sandbox.
func (*sandbox) Born() (paddock.Status, bool) { return paddock.Status{}, false }

func (s *sandbox) Remove(context.Context) error {
	s.mu.Lock()
	gone := s.gone
	s.gone = true
	s.mu.Unlock()
	if gone {
		<-s.ended
		return nil
	}
	s.kill()
	s.asks.Wait() // short, because the link is closed
	s.d.boxes.Forget(s.spec.ID)
	return nil
}
