package step

import (
	"encoding/json"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/protect"
)

// Options configure a Journal. Zero values are the defaults.
type Options struct {
	Size    int64         // bytes of all contents in the store: 4 GiB
	Age     time.Duration // records and contents that are older are removed by Trim: 14 days
	File    int64         // bytes of the largest file whose contents are kept, without holes: 256 MiB
	Step    int64         // bytes of contents kept for one step: 2 GiB
	Changes int           // paths that one step may have in its record: 200,000
	Log     int64         // bytes of the log of one step: 256 MiB

	Strict bool // of all steps; see About

	// Watch is told of steps while they happen. Nil is nobody.
	Watch Watcher

	// Sync makes what is acknowledged survive a power failure. Without it, it survives the end of the process.
	Sync bool

	together load // most of what one undo or diff takes; of tests
}

// A Watcher is told of steps while they happen.
type Watcher interface {
	// Change is told of a change: before it, if it destroys something that was there before the step, and otherwise before or
	// after it. An error refuses a change before which it is told, which [Refused] recognizes, and has no effect
	// afterwards. While it waits, so do all changes of the sandbox.
	Change(Watched) error

	// Ended is told of a step that has ended and is in the journal. The next step does not begin before it returns.
	Ended(*Record)
}

// A Watched is a change of one path, as it is told.
type Watched struct {
	Root int  // index in the roots of the step
	Path Text // of a move: the new path
	Verb Verb // Created, Removed, Moved, Edited or Unseen
	From Text // of a move
	// FromRoot is the index of the root that From is below.
	FromRoot int

	// Was is where it was when the step began, or a directory that it is in, if that is another place or it is a hard link that
	// the step made: it is told of both names. Empty is none. WasRoot is the index of its root.
	Was     Text
	WasRoot int
	// Old means that it, or a directory that it is in, may be of before the step, whatever the step made around it.
	Old bool
	// Links is how many names a file has, if it has several. The others may not be known. Inode is which file it is.
	Links uint64
	Inode [2]uint64

	Half int  // of an exchange, which is told as two moves: 1 or 2; else zero
	Link bool // of Created: it is a symbolic link
	Done bool // it may have been made already, so an error does not refuse it
}

// An About describes a step that begins.
type About struct {
	Sandbox string
	Life    string // of the sandbox: its ID may be given again; see Filter
	Tier    paddock.Tier
	Kind    string // "run", "file", "cell", "background", "undo"
	Command []string
	Roots   []Root // Path and Target
	Start   time.Time
	Undoes  []int64
	Protect []string // of a review: names that are protected besides the built-in ones

	// Monitor says who judges the command, of a review, as JSON without secrets. It is kept with the proposal, for who
	// applies it.
	Monitor json.RawMessage

	// Strict means that a change that cannot be undone is refused before it is made: calls of the Recorder return
	// [paddock.Exhausted]. Otherwise the record says that it cannot be undone. It does not concern trees that tools
	// rebuild by their names, nor special files.
	Strict bool
}

// An Outcome is how a step ended.
type Outcome struct {
	Exit       int
	Refused    []Refusal
	Hosts      []string
	Secrets    []string
	Concurrent []int64
	Use        *paddock.StepUse // nil if nothing was measured
}

// A How says how a name is moved.
type How uint8

const (
	// Free means that nothing is at the new name (RENAME_NOREPLACE). The report may come after the fact.
	Free How = iota
	// Replace means that what is at the new name, if anything, goes away. Wait for the recorder before it.
	Replace
	// Exchange means RENAME_EXCHANGE. Wait for the recorder before it, because afterwards nobody could tell which is which.
	Exchange
)

// A Filter selects records. The zero Filter selects all.
type Filter struct {
	Sandbox   string
	Life      string    // steps of the one sandbox that has this name in the journal, and undos of them
	Directory string    // of the host: steps with a root that is this directory, in it, or around it
	Since     time.Time // steps that ended since
	From, To  int64     // numbers, both inclusive; zero is no bound
	Last      int       // at most so many, the newest
	Lean      bool      // without Refused, Hosts and Secrets, which may be large
}

// A Request says what is to be undone.
type Request struct {
	Steps []int64 // these steps
	To    int64   // if Steps is empty: all steps of Sandbox or Directory since the one with this number, and that one
	Only  Filter  // which steps: with To those that it selects, and none of Steps may be another

	// Paths limits the undo to these paths of the host (absolute) and what is below them. Empty means all.
	Paths []string

	// Protect has the names that undo treats as the host's own. Nil is the built-in set.
	Protect *protect.Set

	Sandbox string // for the record of the undo
	Life    string // as well
	Tier    paddock.Tier
	Command []string
}

// A Place is a path that an undo looked at.
type Place struct {
	Step int64 // whose change it is
	Root Text  // directory of the host
	Path Text  // below Root
}

// A Restored is a path that an undo brought back.
type Restored struct {
	Place
	Note string // what is not as it was, or empty
}

// A Conflict is a path that an undo left alone.
type Conflict struct {
	Place
	Why    string // what is in the way
	Remedy string // what the user can do
}

// A Result is what an undo did.
type Result struct {
	Restored  []Restored
	Conflicts []Conflict
	Step      int64 // number of the step that the undo was recorded as; zero if there was nothing to do
}

// A Difference is the change of one path, for people.
type Difference struct {
	Root     Text   // directory of the host
	Path     Text   // below Root
	From     Text   // where it was moved from, or empty
	FromRoot Text   // directory of the host that From is below
	Kinds    []Verb // in the order of the constants; never empty
	Before   State
	After    State
	Binary   bool   // the contents are not text
	Text     string // unified diff of the contents, or empty
	Why      string // why there is no Text although contents changed, or empty
}

// A Verb is a kind of change.
type Verb string

// Verbs of a Difference.
const (
	Created  Verb = "created"
	Removed  Verb = "removed"
	Moved    Verb = "moved"
	Replaced Verb = "replaced" // by a file of another kind
	Edited   Verb = "edited"   // contents, or target of a link
	Mode     Verb = "mode"
)

// Unseen is the Verb of a Watched of which nobody knows what it was.
const Unseen Verb = "unseen"
