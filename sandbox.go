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

	// Born returns the status that Create captured. It makes no call. It reports false for
	// a sandbox that Open found, and if the driver captured no status. The caller may
	// change the returned status. See [FirstStatus].
	Born() (Status, bool)

	// Status returns the state, tier, limits and usage so far, and how each control is
	// enforced.
	Status(ctx context.Context) (Status, error)

	// Start runs a command. It returns when the program was executed, or a [*StartError] if
	// it cannot be executed. The process outlives ctx.
	Start(ctx context.Context, cmd Cmd) (Process, error)

	// Attach copies the output of a process to out: first the kept output from out.From,
	// then live output. The process may have ended if its output is still kept. For any
	// other process Attach returns [NotFound].
	Attach(ctx context.Context, pid PID, out Output) (Process, error)

	// Processes lists the processes that Start started: all running ones, and the ended
	// ones whose output is still kept.
	Processes(ctx context.Context) ([]ProcessInfo, error)

	// FS returns the sandbox's files, with the rights of its user.
	FS() FS

	// Dial connects to a TCP port on which a process inside listens.
	Dial(ctx context.Context, port int) (net.Conn, error)

	// Update changes policy, limits and labels while the sandbox runs. It applies the whole
	// change or none of it.
	Update(ctx context.Context, u Update) error

	// Snapshot saves the sandbox's files, or its files and memory.
	Snapshot(ctx context.Context, o SnapshotOptions) (SnapshotID, error)

	// Pause stops all processes inside and keeps their state. A second Pause does nothing.
	// Pending calls about files end with [Conflict] or [Unavailable]. The output of
	// processes goes on after Resume.
	Pause(ctx context.Context) error

	// Resume continues a paused sandbox. Resuming a running sandbox does nothing.
	Resume(ctx context.Context) error

	// Remove destroys the sandbox and everything in it. Removing a sandbox that does not
	// exist is not an error, so callers may retry. Pending calls return [Unavailable].
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

// A State is the state of a sandbox.
type State string

const (
	// Ready means that the sandbox can run commands, because one has run.
	Ready State = "ready"
	// Paused means that the sandbox keeps its files and processes and runs nothing.
	Paused State = "paused"
	// Dead means that the boundary process died. Only Remove works. Status.Reason has the
	// cause.
	Dead State = "dead"
)

// Status describes a sandbox at one moment.
type Status struct {
	ID       ID                `json:"id"`
	Tier     Tier              `json:"tier"`
	State    State             `json:"state"`
	Reason   string            `json:"reason,omitempty"` // why the state is Dead, or what of the status is missing
	Created  time.Time         `json:"created"`
	User     string            `json:"user"`
	Dir      string            `json:"dir"`
	Limits   Limits            `json:"limits"` // with defaults filled in
	Labels   map[string]string `json:"labels,omitempty"`
	Usage    Usage             `json:"usage"`
	Traffic  *Traffic          `json:"traffic,omitempty"` // nil if nothing counts it
	Enforced []Finding         `json:"enforced"`          // every control, with its strength
	Refused  []Refusal         `json:"refused,omitempty"` // refused operations, newest last, at most 1,000
	Undo     *Recording        `json:"undo,omitempty"`    // nil if no steps are recorded
	Monitor  *Monitoring       `json:"monitor,omitempty"` // nil without a monitor

	// PassedOver lists the tiers that were tried first and could not make the sandbox, if the spec
	// left the tier to [Auto]. Only the sandbox that Create returned knows them.
	PassedOver []PassedOver `json:"passed_over,omitempty"`
}

// A PassedOver tier was stronger than the one that made a sandbox, and could not make it.
type PassedOver struct {
	Tier  Tier   `json:"tier"`
	Cause string `json:"cause"`
}

// A Recording says what is recorded of the steps of a sandbox.
type Recording struct {
	Mode    UndoMode `json:"mode"`
	Without []string `json:"without,omitempty"` // what is not recorded, in words
	Failed  string   `json:"failed,omitempty"`  // why nothing is recorded any more
}

// Clone returns a copy that shares no memory with the status.
func (s Status) Clone() Status {
	s.Labels, s.Enforced, s.Refused, s.PassedOver = maps.Clone(s.Labels), slices.Clone(s.Enforced), slices.Clone(s.Refused), slices.Clone(s.PassedOver)
	if s.Traffic != nil {
		t := *s.Traffic
		s.Traffic = &t
	}
	if s.Undo != nil {
		u := *s.Undo
		u.Without = slices.Clone(u.Without)
		s.Undo = &u
	}
	s.Monitor = s.Monitor.clone()
	return s
}

// Usage is the resource usage so far, of a sandbox or of one process with its children. A
// field that the tier cannot measure is -1.
type Usage struct {
	Wall       time.Duration `json:"wall"`
	CPU        time.Duration `json:"cpu"`         // user and system
	Memory     int64         `json:"memory"`      // bytes now; 0 for an ended process
	MemoryPeak int64         `json:"memory_peak"` // bytes
	PIDs       int           `json:"pids"`        // processes and threads now
}

// Traffic is the number of bytes that a sandbox has exchanged with the network: the
// payload of its connections and datagrams, without packet headers. It never decreases
// while the sandbox exists. It is counted outside the sandbox.
type Traffic struct {
	In  int64 `json:"in"`  // from the network
	Out int64 `json:"out"` // to the network
}

// Plus returns the sum. A sum that overflows is math.MaxInt64.
func (t Traffic) Plus(o Traffic) Traffic {
	return Traffic{most(t.In, o.In), most(t.Out, o.Out)}
}

func most(a, b int64) int64 {
	if sum := max(a, 0) + max(b, 0); sum >= 0 {
		return sum
	}
	return math.MaxInt64
}

// A Refusal is an operation that the guest tried and that was refused.
type Refusal struct {
	Time   time.Time `json:"time"`
	What   string    `json:"what"`   // the operation: "write", "rename", "connect"
	Target string    `json:"target"` // the path or address; untrusted, because it comes from the guest
	Rule   string    `json:"rule"`   // the rule that decided
	Remedy string    `json:"remedy,omitempty"`
	Count  int       `json:"count"` // number of equal refusals
}

// A SnapshotID names a snapshot.
type SnapshotID string

// SnapshotOptions are the options of [Sandbox.Snapshot].
type SnapshotOptions struct {
	Memory bool   `json:"memory,omitempty"` // also save processes and memory
	Name   string `json:"name,omitempty"`
}
