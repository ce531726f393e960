package step

import (
	"context"
	"fmt"

	"github.com/paddock-sandbox/paddock"
)

// A Journal is a directory of records and of the contents from before. It is safe for concurrent use, also by several
// processes of one user.
type Journal struct{}

// A Recorder records one step. It is safe for concurrent use. End or Abandon must be called.
type Recorder struct{}

var unbuilt = fmt.Errorf("the journal of steps: %w", paddock.Unsupported)

// Open opens the journal in a directory, and creates the directory (0700) if it is missing. It must be out of reach of
// every sandbox.
func Open(dir string, o Options) (*Journal, error) { return nil, unbuilt }

// Close closes the journal. Recorders of it must have ended.
func (j *Journal) Close() error { return unbuilt }

// Begin begins a step: it gives it a number, and opens its roots. It does not read the directories.
func (j *Journal) Begin(ctx context.Context, a About) (*Recorder, error) { return nil, unbuilt }

// Number returns the number of the step, which is unique in its journal.
func (r *Recorder) Number() int64 { return 0 }

// Write notes that the contents of a file, or the mode, owner or times of a file or directory, are about to change. Wait
// for it before the change.
func (r *Recorder) Write(root int, path string) error { return unbuilt }

// Remove notes that a file or an empty directory is about to be removed. Wait for it before the removal.
func (r *Recorder) Remove(root int, path string) error { return unbuilt }

// Create notes that a file of any kind is made where nothing is. It may come after the fact.
func (r *Recorder) Create(root int, path string) error { return unbuilt }

// Link notes that a hard link to a file is made where nothing is. It may come after the fact.
func (r *Recorder) Link(fromRoot int, from string, root int, path string) error { return unbuilt }

// Move notes that a file or directory is renamed. With Free and Exchange it may come after the fact.
func (r *Recorder) Move(fromRoot int, from string, root int, path string, how How) error {
	return unbuilt
}

// End ends the step: it compares what was noted with the disk, and writes the record.
func (r *Recorder) End(ctx context.Context, o Outcome) (*Record, error) { return nil, unbuilt }

// Abandon ends the step without a record, and forgets what was kept. It does nothing after End.
func (r *Recorder) Abandon() error { return unbuilt }

// List returns the records that a filter selects, the oldest first, without Changes and Left. The error tells about
// records that cannot be read; the result holds the others.
func (j *Journal) List(ctx context.Context, f Filter) ([]Record, error) { return nil, unbuilt }

// Read returns a record.
func (j *Journal) Read(ctx context.Context, number int64) (*Record, error) { return nil, unbuilt }

// Recover makes records of the steps whose recorder was killed. They are Incomplete.
func (j *Journal) Recover(ctx context.Context) ([]Record, error) { return nil, unbuilt }

// Trim removes records that are too old, and the oldest ones until the contents fit into Options.Size. It returns the
// numbers of the removed records and how many bytes were freed.
func (j *Journal) Trim(ctx context.Context) (removed []int64, freed int64, err error) {
	return nil, 0, unbuilt
}

// Remove removes a record and its contents. A missing record is not an error.
func (j *Journal) Remove(ctx context.Context, numbers ...int64) error { return unbuilt }

// Undo brings back what was before the steps of a request, the newest step first, where the present is what the step
// left. The undo is recorded as a step, so that it can be undone.
func (j *Journal) Undo(ctx context.Context, q Request) (*Result, error) { return nil, unbuilt }

// Diff tells the differences that the steps from the first number to the last made together, for the given paths of the
// host and what is below them, or for all.
func (j *Journal) Diff(ctx context.Context, first, last int64, paths []string) ([]Difference, error) {
	return nil, unbuilt
}

// Rebuildable reports whether a path of a new or old file lies in a directory that tools rebuild, by its names alone: such
// as node_modules. Some directories count by what they hold.
func Rebuildable(path string) bool { return false }
