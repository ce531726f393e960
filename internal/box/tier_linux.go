package box

import (
	"context"
	"os"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/guestclient"
	"github.com/paddock-sandbox/paddock/internal/image"
)

// A Tier is what a [Driver] needs from one tier: values, and a small interface for each
// stage at which tiers differ. This package calls the stages and never checks which tier it
// has.
type Tier struct {
	Name      paddock.Tier
	Init      func() (*os.File, error) // opens the program of the box's init
	Runtime   *Runtime
	Probe     Probe
	Drafter   Drafter
	Client    Client
	Snapshots Snapshots // nil for a tier that saves nothing

	// Overhead returns the bytes of memory that a box may take on the host beside a memory
	// limit. Nil means none: all that runs around the commands counts as the limit.
	Overhead func(memory int64) int64

	// Form is how the tier needs the files of an image; empty is a directory.
	Form image.Form

	// Root means that root of an image is root: the kernel is the sandbox's own.
	Root bool

	// Overlay means that a directory as a sandbox's root gets a private layer of the host's
	// kernel. Otherwise the tier has such a layer itself, over the whole tree.
	Overlay bool

	// Freezes means that a pause stops the processes where they are. Other tiers write a machine to the disk.
	Freezes bool

	// Suspends means that a paused sandbox has no box, and that its connections end.
	Suspends bool
}

// A Probe detects a tier's features on this host.
type Probe interface {
	// Version returns the name and version of the commands' kernel. Capabilities returns
	// the features besides those of every tier with boxes; grouped means that control
	// groups bound memory.
	Version() string
	Capabilities(grouped bool) []paddock.Capability

	// Controls returns how each control is enforced, except those of [Probe.Limits]. With a
	// spec it returns what holds for that sandbox; with nil, what is possible. With a
	// failure of a trial box, everything that depends on boxes is absent.
	Controls(spec *paddock.Spec, trial *Failure) []paddock.Finding

	// Limits returns how limits are enforced.
	Limits() []paddock.Finding
}

// A Drafter prepares boxes in the process that uses the driver.
type Drafter interface {
	// Draft begins a sandbox. Before anything is made, it refuses what the tier cannot do.
	Draft(spec *paddock.Spec) (Draft, error)

	// Trial begins a box that only shows whether boxes can be made here, and returns its
	// limits. If it is known without a box that none can be made, it returns the failure.
	Trial() (Draft, paddock.Limits, *Failure)
}

// A Draft is a tier's part in one box that is being made. Its functions may be nil.
type Draft struct {
	// Spec is the sandbox's spec, with the additions of a snapshot as its root.
	Spec *paddock.Spec

	// Gateway is the configuration of a resumed box's gateway; nil means a new one.
	Gateway *gatewayclient.Config

	// Supply adds the files for making the box to the plan.
	Supply func(ctx context.Context, p *Plan) error

	// Finish amends the layout, which is otherwise complete.
	Finish func(l *Layout, limits paddock.Limits) error
}

// A Client is a tier's part in a sandbox as its user sees it.
type Client interface {
	// Warm starts a first exchange with the agent while the box is still being made,
	// because the first one is slow. It returns when it is done, when ctx ends or when the
	// connection ends.
	Warm(ctx context.Context, agent *guestclient.Guest)

	// Refusals adds what the box itself knows to a status.
	Refusals(ctx context.Context, s *Sandbox, agent *guestclient.Guest, st *paddock.Status) error

	// Starting is called before each command starts. Amend corrects the result of a command
	// by what only the host knows.
	Starting(ctx context.Context, s *Sandbox)
	Amend(s *Sandbox, start guestclient.Start, exit *paddock.Exit)
}

// Snapshots are the saved sandboxes of a tier.
type Snapshots interface {
	// Remove deletes a snapshot. A missing one is not an error.
	Remove(ctx context.Context, id paddock.SnapshotID) error

	// Taker returns the tier that took a snapshot of files.
	Taker(id paddock.SnapshotID) (paddock.Tier, error)

	// Layer opens the private layer of a snapshot of files, in tar: what was inside wrote it.
	Layer(ctx context.Context, id paddock.SnapshotID) (*os.File, error)

	// Paused reports whether a directory is the saved box of a paused sandbox, and whether the
	// box was saved completely.
	Paused(dir string) (paused, whole bool)

	// Reopen opens the saved box of a paused sandbox in dir: the order of its box, with the
	// files for the next one.
	Reopen(ctx context.Context, dir string) (*Reopened, error)
}

// A Reopened is a saved box that is to be resumed.
type Reopened struct {
	Order Order
	Saved Saved

	// Programs, Files and First are as in Plan. The caller closes First and Files.
	Programs, Files, First boxinit.Files
}

// A Saved is what was saved of a box that ended.
type Saved interface {
	Dir() string
	Remove() error
}

// A Runtime is a tier's part in the process that owns a box. That is the process with the
// driver or a keeper, which finds the runtime by Argv0.
type Runtime struct {
	// Argv0 is the name by which the tier's program detects that it was started as a box's
	// init.
	Argv0 string

	// Capabilities are those of the box's init in addition to those for building a file
	// tree.
	Capabilities []uintptr

	// Receive records the events that arrive on a file until its other end is closed. Nil
	// means that the tier reports none.
	Receive func(events *os.File, sandbox string, sink audit.Sink) error

	// Diagnose returns the cause of a failed start if only the tier knows it. If it or its
	// result is nil, this package looks for the cause. says reports whether the error has
	// one of the words.
	Diagnose func(s *Surroundings, says func(words ...string) bool) *Failure

	// Configure completes the configuration of a box whose first process runs.
	Configure func(b *Box, c *Configuration) error

	Limiter Limiter
	Pauser  Pauser
}

// A Limiter enforces limits of boxes if control groups alone do not.
type Limiter interface {
	// HostLimits returns the limits that the host must enforce for the limits of a box.
	// Zero limits stay zero.
	HostLimits(l *Layout, limits paddock.Limits) paddock.Limits

	// Update changes the limits that are not zero, all or nothing. The box has a control group. When ctx has ended,
	// Update makes no change any more that it has not begun.
	Update(ctx context.Context, b *Box, limits paddock.Limits) error

	// Measure adds the box's own figures to those of the host.
	Measure(ctx context.Context, b *Box, m *Measure)
}

// A Pauser stops and resumes boxes.
type Pauser interface {
	Pause(ctx context.Context, l *Life) error
	Resume(ctx context.Context, l *Life) error
	Snapshot(ctx context.Context, l *Life, o paddock.SnapshotOptions) (paddock.SnapshotID, error)

	// Discard removes a snapshot of the sandbox that nobody was told of.
	Discard(l *Life, id paddock.SnapshotID) error
}
