package paddock

import (
	"context"
	"fmt"
	"time"
)

// A Journaled is a [Sandbox] that may record its steps. A wrapper that has no Unwrap passes the journal on with its own
// checks.
type Journaled interface {
	// Journal returns the journal of the sandbox. It is nil if none is kept.
	Journal() Journal
}

// JournalOf returns the journal of a sandbox that was made with [Spec.Undo]. Otherwise the error is [Unsupported].
func JournalOf(sb Sandbox) (Journal, error) {
	if j, ok := As[Journaled](sb); ok {
		if kept := j.Journal(); kept != nil {
			return kept, nil
		}
	}
	return nil, fmt.Errorf("the sandbox records no steps: make it with undo: %w", Unsupported)
}

// A Historian is a [Driver] whose journals outlive its sandboxes. A wrapper that has no Unwrap passes them on with its own
// checks.
type Historian interface {
	// PastJournal returns the journal of a sandbox that is gone. If several had the ID, it is that of the one with the newest
	// step. If none has steps, the error is [NotFound]. The sandbox must have been the caller's.
	PastJournal(ctx context.Context, id ID) (Journal, error)
}

// PastJournal asks the outermost layer of d that is a [Historian]. Without one, the error is [Unsupported].
func PastJournal(ctx context.Context, d Driver, id ID) (Journal, error) {
	if h, ok := As[Historian](d); ok {
		return h.PastJournal(ctx, id)
	}
	return nil, fmt.Errorf("steps of sandboxes that are gone: %w", Unsupported)
}

// A Journal has the steps of one sandbox: also if it is paused or dead, and by a [Historian] if it is gone. All paths are
// those inside the sandbox.
type Journal interface {
	// Begin begins a step that is neither a command of Start nor a call of FS, such as a cell of an interpreter. What
	// changes until end is called belongs to it. Call end once, with an exit status or [UnknownExit]. It returns when the
	// step is in the journal. In a sandbox of another process Begin is [Unsupported].
	Begin(ctx context.Context, kind string, command []string) (end func(exit int), err error)

	// Steps lists steps, the oldest first, at most [MaxStepChanges], the newest. They have no lists but Undoes and Command, of
	// which there is the beginning.
	Steps(ctx context.Context, f StepFilter) ([]Step, error)

	// Step returns a step. Its lists are cut off at [MaxStepChanges] and [MaxStepText]; Changed and Missed have the whole
	// numbers.
	Step(ctx context.Context, number int64) (Step, error)

	// Diff returns the differences that the steps from the first number to the last made together, for these paths and what
	// is below them, or for all. More than [MaxStepChanges] or [MaxStepText] are [Exhausted].
	Diff(ctx context.Context, first, last int64, paths []string) ([]StepDiff, error)

	// Undo brings back what was before steps, path by path, where the present is what the step left. It is recorded as a
	// step, whose undo is a redo.
	Undo(ctx context.Context, u Undo) (Undone, error)
}

// UnknownExit is the exit status of a step if nobody knows how its command ended.
const UnknownExit = -1

// Bounds of the lists of one answer about steps: entries, and bytes of their texts.
const (
	MaxStepChanges = 10_000
	MaxStepText    = 16 << 20
)

// A StepFilter selects steps.
type StepFilter struct {
	Before int64 // steps with smaller numbers; zero is all
	Last   int   // at most so many, the newest; zero is all
}

// A Step is what one command, file call or cell did.
type Step struct {
	Number     int64
	Kind       string // "run", "file", "cell", "background" for what changed while none of these ran, "undo"
	Command    []string
	Begin, End time.Time
	Exit       int // or UnknownExit
	Changed    int // number of changed paths
	Missed     int // number of places that cannot be undone
	Undoes     []int64
	Incomplete bool   // its recorder was killed, or could not note everything
	Digest     string // SHA-256 of the record, in hexadecimal

	Use *StepUse // nil if nothing was measured

	Refused []string // what was refused meanwhile, in words
	Hosts   []string // hosts that were reached meanwhile
	Secrets []string // names of secrets that were used meanwhile

	Changes []StepChange
	Left    []StepLeft
}

// A StepUse is what a sandbox used while a step went on, and so what steps at the same time used too. What was not
// measured is nil.
type StepUse struct {
	// CPU is the processor time of everything in the sandbox, and of what isolates it, as the host counted it.
	CPU *time.Duration `json:"cpu,omitempty"`

	// MemoryPeak is the most bytes that one process of the command had, as the sandbox told it.
	MemoryPeak *int64 `json:"memory_peak,omitempty"`

	// Traffic has the bytes from and to the network, as the host counted them.
	Traffic *Traffic `json:"traffic,omitempty"`
}

// A StepChange is a path that a step changed.
type StepChange struct {
	What string // "created", "removed", "moved" or "changed"
	Path string
	From string // where it was, if it was moved
	Why  string // why it cannot be undone, or empty
}

// A StepLeft is a place that cannot be undone.
type StepLeft struct {
	Path string // empty if it is not known
	Why  string
}

// A StepDiff is the difference of one path.
type StepDiff struct {
	Path       string
	From       string   // where it was moved from, or empty
	Kinds      []string // "created", "removed", "moved", "replaced", "edited", "mode"
	BeforeMode uint32   // permission bits; zero if there was nothing
	AfterMode  uint32
	Binary     bool   // the contents are not text
	Text       string // unified diff of the contents, or empty
	Why        string // why there is no Text although contents changed
}

// An Undo says what is to be undone.
type Undo struct {
	Steps []int64  // these steps
	To    int64    // if Steps is empty: this step and all of the sandbox after it
	Paths []string // only these paths and what is below them; empty is all
}

// An Undone is what an undo did. Its lists are cut off at [MaxStepChanges] and [MaxStepText].
type Undone struct {
	Step      int64 // number of the step that the undo is; zero if there was nothing to do
	Restored  []UndonePath
	Conflicts []UndonePath
	More      int // entries that did not fit
}

// An UndonePath is a path that an undo brought back, or left alone.
type UndonePath struct {
	Step   int64 // whose change it is
	Path   string
	Note   string // of one that came back: what is not as it was
	Why    string // of a conflict: what is in the way
	Remedy string // of a conflict
}
