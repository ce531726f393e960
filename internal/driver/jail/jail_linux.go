package jail

import (
	"context"
	"fmt"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/guestclient"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// New returns a driver. It changes nothing on the host, and does not fail if no sandbox can
// be made; Info and Create report that.
func New(o Options) (*box.Driver, error) {
	site, err := box.NewSite(paddock.Jail, o.driver())
	if err != nil {
		return nil, err
	}
	return box.New(site, box.Tier{
		Name: paddock.Jail, Init: site.Open(o.Guest), Runtime: Runtime(),
		Probe: probe{site}, Drafter: drafter{snapshots{site}}, Client: client{}, Snapshots: snapshots{site}, Overlay: true, Freezes: true,
	}), nil
}

// Runtime is the tier's part in the process that owns a box, for box.Main. The init of a jail is the
// agent itself, and commands are its children.
func Runtime() *box.Runtime {
	return &box.Runtime{Argv0: boxinit.Argv0, Capabilities: sys.BrokerCaps(), Configure: configure, Limiter: limiter{}, Pauser: pauser{}}
}

// configure sends the box's init the files that it begins with, and the device with which it makes its link. For a root
// caller the init runs as a user who may not open the device itself.
func configure(b *box.Box, c *box.Configuration) error {
	c.Files.Append(&b.Plan().First)
	if l := c.Layout; !l.Config.Link || !l.ID.Root {
		return nil
	}
	tun, err := sys.OpenTUNOf(c.PID())
	if err != nil {
		return fmt.Errorf("make the link: %w", err)
	}
	c.Own(tun)
	c.Files.Add(boxinit.FileTUN, tun)
	return nil
}

// A limiter leaves limits to the control group, except that of processes, which commands
// also inherit.
type limiter struct{}

// HostLimits implements box.Limiter. The agent's threads are counted in addition to the
// limit of commands. Room for its spare threads is only added if that cannot help commands,
// which inherit a limit of their own: the control group cannot tell whose a process is.
func (limiter) HostLimits(layout *box.Layout, l paddock.Limits) paddock.Limits {
	if l.PIDs > 0 {
		inherited := layout.Config.PIDs - boxinit.AgentThreads - boxinit.SpareThreads
		if l.PIDs += boxinit.AgentThreads; l.PIDs >= inherited+boxinit.AgentThreads {
			l.PIDs += boxinit.SpareThreads
		}
	}
	return l
}

// Update implements box.Limiter.
func (limiter) Update(_ context.Context, b *box.Box, l paddock.Limits) error {
	if first := b.Plan().Limits.PIDs; l.PIDs > first {
		return fmt.Errorf("change limits: commands inherit the limit of %d processes that the sandbox was made with, so it cannot be raised above: %w", first, paddock.Unsupported)
	}
	return b.UpdateGroup(l)
}

// Measure implements box.Limiter. The host sees everything.
func (limiter) Measure(context.Context, *box.Box, *box.Measure) {}

// A pauser freezes the processes of a box in place.
type pauser struct{}

// Times of attempts to freeze a box: the first one, which later ones double, and the longest.
const (
	freezeTime    = 250 * time.Millisecond
	freezeLongest = 8 * time.Second
)

// Pause implements box.Pauser. The kernel does not freeze a command that waits for the broker, which is frozen too. So an attempt
// that takes long is given up, the broker answers, and the next attempt may find none that waits.
func (pauser) Pause(ctx context.Context, l *box.Life) error {
	for attempt := freezeTime; ; attempt = min(2*attempt, freezeLongest) {
		bound, cancel := context.WithTimeout(ctx, attempt)
		err := l.Box().Freeze(bound)
		given := bound.Err() != nil
		cancel()
		if err == nil || !given || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(attempt / 10): // the broker's
		case <-ctx.Done():
			return err
		}
	}
}

// Resume implements box.Pauser.
func (pauser) Resume(_ context.Context, l *box.Life) error { return l.Box().Thaw() }

// A client corrects the agent's reports by the counts of the host's kernel.
type client struct{}

// Warm implements box.Client.
func (client) Warm(ctx context.Context, agent *guestclient.Guest) { agent.Warm(ctx) }

// Refusals implements box.Client. The agent is also the broker, and has recorded what it
// refused.
func (client) Refusals(ctx context.Context, _ *box.Sandbox, agent *guestclient.Guest, st *paddock.Status) (err error) {
	st.Refused, err = agent.Refusals(ctx)
	return err
}

// Starting implements box.Client.
func (client) Starting(ctx context.Context, s *box.Sandbox) { s.SampleKills(ctx) }

// Amend implements box.Client.
func (client) Amend(s *box.Sandbox, start guestclient.Start, exit *paddock.Exit) {
	if exit.Cause != paddock.SandboxGone {
		s.AmendMemory(start, exit, box.MemoryRule{})
	}
}
