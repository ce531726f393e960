package paddock

import (
	"context"
	"maps"
	"math"
	"net"
	"slices"
	"time"
)

// A Sandbox is one isolated computer.
type Sandbox interface {
	ID() ID

	// Born returns the status that Create captured. It makes no call. It reports
	// false for a sandbox that Open found, and where the driver captured none.
	// The caller may change what it gets. See [FirstStatus].
	Born() (Status, bool)

	// Status returns the state, tier, limits and usage so far, and how each
	// control is enforced.
	Status(ctx context.Context) (Status, error)

	// Start runs a command. It returns when the program was executed. A program
	// that cannot be executed is a [*StartError]. The process outlives ctx.
	Start(ctx context.Context, cmd Cmd) (Process, error)

	// Attach copies the output of a process to out: the kept output from
	// out.From, then live output. The process runs, or has ended and its output
	// is still kept; any other is [NotFound].
	Attach(ctx context.Context, pid PID, out Output) (Process, error)

	// Processes lists the processes that Start started: all running ones, and
	// the ended ones whose output is still kept.
	Processes(ctx context.Context) ([]ProcessInfo, error)

	// FS returns the sandbox's files, with the rights of its user.
	FS() FS

	// Dial connects to a TCP port that listens inside.
	Dial(ctx context.Context, port int) (net.Conn, error)

	// Update changes policy, limits and labels of a sandbox while it runs. It
	// makes the whole change or none.
	Update(ctx context.Context, u Update) error

	// Snapshot saves the sandbox's files, or files and memory.
	Snapshot(ctx context.Context, o SnapshotOptions) (SnapshotID, error)

	// Pause stops everything inside; nothing is lost. Pausing twice is fine.
	Pause(ctx context.Context) error

	// Resume undoes Pause. Resuming what runs is fine.
	Resume(ctx context.Context) error

	// Remove destroys the sandbox and everything in it. Removing one that is
	// gone is not an error, so callers may retry. Calls under way end with
	// [Unavailable].
	Remove(ctx context.Context) error
}

// An ID names a sandbox: 1 to 63 lower-case letters, digits and dashes,
// beginning and ending with a letter or digit (a DNS label).
type ID string

// Valid reports whether the ID is well-formed.
func (id ID) Valid() bool {
	if len(id) == 0 || len(id) > 63 || id[0] == '-' || id[len(id)-1] == '-' {
		return false
	}
	for _, c := range []byte(id) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// A State is what a sandbox is doing.
type State string

const (
	// Ready can run commands: one has run.
	Ready State = "ready"
	// Paused keeps everything and runs nothing.
	Paused State = "paused"
	// Dead lost its boundary process; only Remove works. Status.Reason says why.
	Dead State = "dead"
)

// Status is what is known of a sandbox.
type Status struct {
	ID       ID                `json:"id"`
	Tier     Tier              `json:"tier"`
	State    State             `json:"state"`
	Reason   string            `json:"reason,omitempty"` // why it is dead
	Created  time.Time         `json:"created"`
	User     string            `json:"user"`
	Dir      string            `json:"dir"`
	Limits   Limits            `json:"limits"` // with defaults filled in
	Labels   map[string]string `json:"labels,omitempty"`
	Usage    Usage             `json:"usage"`
	Traffic  *Traffic          `json:"traffic,omitempty"` // nil where nobody counts it
	Enforced []Finding         `json:"enforced"`          // every control, and how
	Refused  []Refusal         `json:"refused,omitempty"` // what the guest tried and may not, newest last, at most 1,000
}

// Clone returns a copy that shares no memory with the status.
func (s Status) Clone() Status {
	s.Labels, s.Enforced, s.Refused = maps.Clone(s.Labels), slices.Clone(s.Enforced), slices.Clone(s.Refused)
	if s.Traffic != nil {
		t := *s.Traffic
		s.Traffic = &t
	}
	return s
}

// Usage is what was used so far: of a sandbox, or of one process with its
// children. A field that the tier cannot measure is -1.
type Usage struct {
	Wall       time.Duration `json:"wall"`
	CPU        time.Duration `json:"cpu"`         // user and system
	Memory     int64         `json:"memory"`      // bytes now; for a process that ended, 0
	MemoryPeak int64         `json:"memory_peak"` // bytes
	PIDs       int           `json:"pids"`        // processes and threads now
}

// Traffic is the number of bytes that a sandbox has exchanged with the network: the
// payload of its connections and datagrams, without packet headers. It never decreases
// while the sandbox exists. It is counted outside the sandbox.
type Traffic struct {
	In  int64 `json:"in"`  // from the network
	Out int64 `json:"out"` // to it
}

// Plus returns the sum. A sum that overflows is the largest number.
func (t Traffic) Plus(o Traffic) Traffic {
	return Traffic{most(t.In, o.In), most(t.Out, o.Out)}
}

func most(a, b int64) int64 {
	if sum := max(a, 0) + max(b, 0); sum >= 0 {
		return sum
	}
	return math.MaxInt64
}

// A Refusal is something the guest tried and may not do.
type Refusal struct {
	Time   time.Time `json:"time"`
	What   string    `json:"what"`   // the operation: "write", "rename", "connect"
	Target string    `json:"target"` // the path or address, as data: it comes from the guest
	Rule   string    `json:"rule"`   // what decided
	Remedy string    `json:"remedy,omitempty"`
	Count  int       `json:"count"` // how often the same was refused
}

// A SnapshotID names a snapshot.
type SnapshotID string

// SnapshotOptions says what to keep.
type SnapshotOptions struct {
	Memory bool   `json:"memory,omitempty"` // processes and memory too
	Name   string `json:"name,omitempty"`
}
