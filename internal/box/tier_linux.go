package box

import (
	"context"
	"os"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/egress/owner"
	"github.com/paddock-sandbox/paddock/internal/guestclient"
)

// A Tier is what a [Driver] asks of one tier: values, and a small interface for each stage at
// which tiers differ. This package calls the stages and never asks which tier it has.
type Tier struct {
	Name      paddock.Tier
	Init      func() (*os.File, error) // opens the program of the box's init
	Runtime   *Runtime
	Probe     Probe
	Drafter   Drafter
	Client    Client
	Snapshots Snapshots // nil is a tier that saves nothing

	// Overlay says that a directory which is a sandbox's root gets a private layer of the host's
	// kernel. Without it the tier keeps such a layer by itself, over the whole tree.
	Overlay bool

	// Suspends says that a sandbox which is paused has no box, and that its connections end.
	Suspends bool
}

// A Probe finds out what a tier has on this host.
type Probe interface {
	// Version names what commands run on. Capabilities returns what can be asked of the tier beside
	// what every tier of boxes does; grouped says that control groups bound memory.
	Version() string
	Capabilities(grouped bool) []paddock.Capability

	// Controls returns how each control is enforced, but for those of [Probe.Limits]. A spec has it
	// say what holds for that sandbox; nil is what can be had. A failure of a trial box makes
	// absent what depends on boxes.
	Controls(spec *paddock.Spec, trial *Failure) []paddock.Finding

	// Limits returns how limits are enforced.
	Limits() []paddock.Finding
}

// A Drafter prepares boxes, in the process that uses the driver.
type Drafter interface {
	// Draft refuses what the tier cannot do, before anything is made, and begins a sandbox.
	Draft(spec *paddock.Spec) (Draft, error)

	// Trial begins a box that only shows whether boxes can be made here, and returns its limits.
	// Where it is known without one that none can, it says why.
	Trial() (Draft, paddock.Limits, *Failure)
}

// A Draft is a tier's part in one box that is to be made. Its functions may be nil.
type Draft struct {
	// Spec is the sandbox, with what a snapshot that it begins with adds.
	Spec *paddock.Spec

	// Gateway is that of the saved box that goes on; nil is a new one.
	Gateway *owner.Config

	// Supply adds the files that the box is made with to the plan.
	Supply func(ctx context.Context, p *Plan) error

	// Finish amends the layout, which is complete otherwise.
	Finish func(l *Layout, limits paddock.Limits) error
}

// A Client is a tier's part in a sandbox as its user has it.
type Client interface {
	// Warm begins a first exchange with the agent while the box is still being made, because the
	// first one is the slow one. It ends with ctx or with the connection, and returns then.
	Warm(ctx context.Context, agent *guestclient.Guest)

	// Refusals completes a status with what the box itself knows.
	Refusals(ctx context.Context, s *Sandbox, agent *guestclient.Guest, st *paddock.Status) error

	// Starting is called before each command starts; Amend corrects how one ended by what only the
	// host knows.
	Starting(ctx context.Context, s *Sandbox)
	Amend(s *Sandbox, start guestclient.Start, exit *paddock.Exit)
}

// Snapshots are what a tier has saved of sandboxes.
type Snapshots interface {
	// Remove deletes a snapshot. One that is gone is fine.
	Remove(id paddock.SnapshotID) error

	// Reopen opens what a paused sandbox was saved to, in dir: the order by which its box was made,
	// with the files that the next one is made with.
	Reopen(ctx context.Context, dir string) (*Reopened, error)
}

// A Reopened is a saved box that is to go on.
type Reopened struct {
	Order Order
	Saved Saved

	// Programs, Files and First are as in Plan. First and Files are the caller's to close.
	Programs, Files, First boxinit.Files
}

// A Saved is what was saved of a box that ended.
type Saved interface {
	Dir() string
	Remove() error
}

// A Runtime is a tier's part in the process that owns a box: the one that uses the driver, or a
// keeper, which finds it by Argv0.
type Runtime struct {
	// Argv0 is the name by which the tier's program knows that it was started as a box's init.
	Argv0 string

	// Capabilities are those that the box's init is started with besides what it takes to build
	// a file tree.
	Capabilities []uintptr

	// Receive records the events that come on a file until its other end is closed. Nil is a tier
	// that reports none.
	Receive func(events *os.File, sandbox string, sink audit.Sink) error

	// Diagnose names the cause of a failed start where only the tier knows it; nil or a nil result
	// leaves that to this package. Says reports whether the error has one of the words.
	Diagnose func(s *Surroundings, says func(words ...string) bool) *Failure

	// Configure completes the configuration of a box whose first process runs.
	Configure func(b *Box, c *Configuration) error

	Limiter Limiter
	Pauser  Pauser
}

// A Limiter enforces limits of boxes where control groups alone do not.
type Limiter interface {
	// HostLimits returns what the host has to enforce for the limits of a box. Limits that are zero
	// stay zero.
	HostLimits(l *Layout, limits paddock.Limits) paddock.Limits

	// Update changes the limits that are not zero, all or nothing. The box has a control group.
	Update(ctx context.Context, b *Box, limits paddock.Limits) error

	// Measure adds what the box itself reports to what the host has measured.
	Measure(ctx context.Context, b *Box, m *Measure)
}

// A Pauser stops boxes and has them go on.
type Pauser interface {
	Pause(ctx context.Context, l *Life) error
	Resume(ctx context.Context, l *Life) error
	Snapshot(ctx context.Context, l *Life, o paddock.SnapshotOptions) (paddock.SnapshotID, error)
}
