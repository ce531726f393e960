package box

import (
	"fmt"
	"net"
	"os"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/cgroup"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A Plan is everything that is needed to make a box.
type Plan struct {
	Name    string
	Spec    *paddock.Spec  // as asked for; nil is not known. A later change of limits and policy is in it
	Root    paddock.Root   // of the spec
	User    string         // of the spec
	Policy  paddock.Policy // of the spec; of the network only the mode
	Layout  *Layout
	Limits  paddock.Limits
	Gateway *gatewayclient.Gateway // nil for a box without rules for its network
	Runtime *Runtime
	Audit   audit.Sink // receives the events of the runtime; nil means not recorded
	Groups  bool       // control groups enforce limits; otherwise a watchdog does

	// Programs stay open as long as the driver or the keeper. Files belong to the sandbox,
	// and are closed when it is removed. First is only for the first box, and closed when
	// that is made.
	Programs, Files, First boxinit.Files

	// executed are opened for each box anew, because a box that was taken over may have
	// changed their files. A keeper makes one box, and gets them in Programs.
	executed []executed

	host *cgroup.Host

	refusedKeys *refusedKeys // of all boxes of the sandbox; nil without key agents

	// unrecorded is closed when events cannot be written any more, which ends the box. Nil
	// means never.
	unrecorded <-chan struct{}

	// finish completes the layout while the guest program starts; nil if it is complete.
	finish func() error

	// follower is told of decisions about the network and of requests to key agents that were refused, besides Audit. It may
	// be nil.
	follower audit.Sink

	// witness returns who is told of the changes of a box. It is nil if nobody wants to know.
	witness func([]WitnessedTree) (Witness, error)

	// made is called with the box when its first process runs. connected gets the
	// connection, which answers nothing before the box is ready. Both may be nil.
	made      func(*Box)
	connected func(net.Conn)
}

// An executed program is one that the owner of a box executes.
type executed struct {
	name string // in Plan.Programs
	open func() (*os.File, error)
}

// withExecuted returns a plan's programs with those that are executed for one box. The caller closes
// opened when the box is made.
func withExecuted(list []executed, others *boxinit.Files) (programs boxinit.Files, opened []*os.File, err error) {
	for _, e := range list {
		f, err := e.open()
		if err != nil {
			CloseAll(opened)
			return boxinit.Files{}, nil, err
		}
		programs.Add(e.name, f)
		opened = append(opened, f)
	}
	programs.Append(others)
	return programs, opened, nil
}

// OrderOf describes how the boxes of a plan are made, for a keeper or for resuming a saved
// box.
func OrderOf(p *Plan) *Order {
	return &Order{Argv0: p.Runtime.Argv0, Spec: p.Spec, Root: p.Root, User: p.User, Policy: p.Policy, Layout: p.Layout.Planned(), Limits: p.Limits, Groups: p.Groups}
}

// Names of programs in Plan.Programs. A tier adds its own.
const (
	FileInit    = "init"    // the program of the box's init
	fileGateway = "gateway" // the program of the gateway
)

// Tables are the names of the files that travel with an order. The receiver rebuilds the
// tables of a plan from them.
type Tables struct {
	Programs []string `json:"programs,omitempty"`
	Files    []string `json:"files,omitempty"`
	First    []string `json:"first,omitempty"`
	Found    bool     `json:"found,omitempty"` // the last file is the lock of the saved box that is resumed

	// Places are the paths of programs by name, because descriptors do not carry paths.
	Places map[string]string `json:"places,omitempty"`
}

// tablesOf lists the files of a plan, in the order in which Tables.fill expects them. The lock of
// the sandbox's directory comes after them.
func tablesOf(programs, own, first *boxinit.Files) (Tables, []*os.File) {
	t := Tables{Programs: programs.Names(), Files: own.Names(), First: first.Names(), Places: map[string]string{}}
	var files []*os.File
	for i, f := range programs.All() {
		t.Places[t.Programs[i]] = f.Name()
	}
	for _, table := range []*boxinit.Files{programs, own, first} {
		files = append(files, table.All()...)
	}
	return t, files
}

// fill adds the files that came with an order to a plan, and returns the locks, that of the
// sandbox's directory first.
func (t *Tables) fill(p *Plan, files []*os.File) (locks []*os.File, err error) {
	n := len(t.Programs) + len(t.Files) + len(t.First) + 1
	if t.Found {
		n++
	}
	if len(files) != n {
		CloseAll(files)
		return nil, fmt.Errorf("%d descriptors came with an order for %d: %w", len(files), n, paddock.Internal)
	}
	for i, f := range files[:len(t.Programs)] {
		name := t.Programs[i]
		p.Programs.Add(name, sys.Named(f, t.Places[name]))
	}
	files = files[len(t.Programs):]
	for i, f := range files[:len(t.Files)] {
		p.Files.Add(t.Files[i], f)
	}
	files = files[len(t.Files):]
	for i, f := range files[:len(t.First)] {
		p.First.Add(t.First[i], f)
	}
	return files[len(t.First):], nil
}
