package auxiliary

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/audit/chain"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/step"
)

const (
	ownJournal = "-" // the value of --steps without a directory

	// maxSteps bounds the steps of a record that are compared.
	maxSteps = 1 << 20

	// stepAge is how long a journal keeps records by default.
	stepAge = 14 * 24 * time.Hour

	undoKind = "undo" // of a step that paddock undo makes, which is no sandbox's
)

// A saidStep is what the record says of a step.
type saidStep struct {
	sandbox, digest string
	at              time.Time
}

// saidSteps collects the steps of a record. Only what a head vouches for counts.
type saidSteps struct {
	signed, now map[int64]saidStep // now has those behind the last head
	sandboxes   map[string]bool    // of which the record tells steps, or the start
	lost        uint64
	err         error // why they cannot be compared
}

func newSaidSteps() *saidSteps {
	return &saidSteps{signed: map[int64]saidStep{}, now: map[int64]saidStep{}, sandboxes: map[string]bool{}}
}

// line takes a line of the record.
func (s *saidSteps) line(l chain.Line) {
	if l.Signed {
		for n, one := range s.now {
			if was, twice := s.signed[n]; twice && was != one && s.err == nil {
				s.err = fmt.Errorf("it tells of step %d twice: %w", n, paddock.Conflict)
			}
			s.signed[n] = one
			s.sandboxes[one.sandbox] = true
		}
		clear(s.now)
		return
	}
	var e audit.Event
	if l.Seq == 1 || json.Unmarshal(l.Text, &e) != nil {
		return
	}
	s.lost = min(s.lost+min(e.Dropped, 1<<53), 1<<53)
	if _, known := s.sandboxes[e.Sandbox]; !known && e.Kind == audit.Started && e.Start != nil {
		s.sandboxes[e.Sandbox] = false
	}
	if e.Kind != audit.Stepped || e.Step == nil {
		return
	}
	if len(s.now)+len(s.signed) >= maxSteps {
		s.err = fmt.Errorf("it has more than %d steps: %w", maxSteps, paddock.Exhausted)
		return
	}
	s.now[e.Step.Number] = saidStep{e.Sandbox, e.Step.Record, e.Time}
}

// A stepProblem is a step that differs.
type stepProblem struct {
	Step    int64  `json:"step"`
	Problem string `json:"problem"` // changed, missing or added
	Why     string `json:"why"`
}

// stepsReport is the comparison of a journal with a record.
type stepsReport struct {
	Compared int           `json:"compared"` // steps that the record tells of
	Wrong    []stepProblem `json:"wrong,omitempty"`
	Expired  int           `json:"expired,omitempty"` // steps that are missing, and so old that the journal has dropped them
	Undos    int           `json:"undos,omitempty"`   // records that say that paddock undo made them, of which no record of events tells
	Notes    []string      `json:"notes,omitempty"`   // what nobody vouches for
}

// state gives the state of the comparison, for the exit status.
func (r *stepsReport) state() chain.State {
	switch {
	case len(r.Wrong) > 0:
		return chain.Wrong
	case r.Expired > 0 || len(r.Notes) > 0:
		return chain.Open
	}
	return chain.Whole
}

func (r *stepsReport) wrongf(n int64, problem, format string, args ...any) {
	r.Wrong = append(r.Wrong, stepProblem{n, problem, fmt.Sprintf(format, args...)})
}

// compareSteps compares the journal in a directory with what a record says. single says that the record is that of one
// run, and so of all its steps.
func compareSteps(ctx context.Context, a *cli.App, dir string, said *saidSteps, single, closed bool) (*stepsReport, error) {
	if said.err != nil {
		return nil, fmt.Errorf("the steps of the record: %w", said.err)
	}
	if dir == ownJournal {
		dir = ""
	} else if _, err := os.Stat(dir); err != nil { // because opening would make it
		kind := paddock.Denied
		if errors.Is(err, fs.ErrNotExist) {
			kind = paddock.NotFound
		}
		return nil, cli.WithHint(fmt.Errorf("--steps=%s: %w: %w", dir, errors.Unwrap(err), kind), "name the directory of a journal, or leave =DIR out for your own")
	}
	j, err := a.OpenJournal(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer j.Close()
	r := &stepsReport{Compared: len(said.signed)}
	if err := r.told(ctx, j, said); err != nil {
		return nil, err
	}
	if err := r.untold(ctx, j, said, single, closed); err != nil {
		return nil, err
	}
	slices.SortFunc(r.Wrong, func(a, b stepProblem) int { return cmp.Compare(a.Step, b.Step) })
	if said.lost > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("the record lost %d events, and ends of steps may be among them", said.lost))
	}
	return r, nil
}

// told looks for each step that the record tells of.
func (r *stepsReport) told(ctx context.Context, j *step.Journal, said *saidSteps) error {
	for n, want := range said.signed {
		rec, err := j.Read(ctx, n)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, paddock.NotFound) && time.Since(want.at) > stepAge:
			r.Expired++
		case errors.Is(err, paddock.NotFound):
			r.wrongf(n, "missing", "the journal has no record of it: it was removed, or made room for newer steps")
		case errors.Is(err, paddock.Invalid), errors.Is(err, paddock.Unsupported):
			r.wrongf(n, "changed", "the journal's record is not as it was written: %v", err)
		case err != nil:
			return cli.WithHint(err, "the journal must be readable")
		case "sha256:"+rec.Digest != want.digest || rec.Sandbox != want.sandbox:
			r.wrongf(n, "changed", "the journal's record has the digest sha256:%s, and had %s when the step ended: it was changed or replaced", rec.Digest, want.digest)
		}
	}
	return nil
}

// untold looks for records of the same sandboxes that the record of events does not have.
func (r *stepsReport) untold(ctx context.Context, j *step.Journal, said *saidSteps, single, closed bool) error {
	list, err := j.List(ctx, step.Filter{})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, rec := range list {
		steps, known := said.sandboxes[rec.Sandbox]
		_, told := said.signed[rec.Number]
		switch {
		case told, !known, !steps && !single: // a server that records no steps
		case rec.Kind == undoKind:
			r.Undos++
		case !closed:
			r.Notes = append(r.Notes, fmt.Sprintf("no signed line tells of step %d: the record of events has no closing head", rec.Number))
		default:
			r.wrongf(rec.Number, "added", "the journal has a record of it, and the record of events has not: it was added, or its recorder was killed")
		}
	}
	if err != nil {
		r.Notes = append(r.Notes, "records that cannot be read: "+cli.OneLineOf(err.Error(), cli.Paragraph))
	}
	return nil
}

// tell prints the comparison for people.
func (r *stepsReport) tell(a *cli.App, name string) error {
	for i, w := range r.Wrong {
		if i == 20 {
			fmt.Fprintf(a.Stderr, "paddock: %s: %d more steps differ; --json lists them\n", cli.OneLine(name), len(r.Wrong)-i)
			break
		}
		fmt.Fprintf(a.Stderr, "paddock: %s: step %d: %s\n", cli.OneLine(name), w.Step, cli.OneLineOf(w.Why, cli.Paragraph))
	}
	if len(r.Wrong) == 0 {
		if err := a.Say("  steps:  %d, each with the record that it had when it ended\n", r.Compared-r.Expired); err != nil {
			return err
		}
	}
	notes := r.Notes
	if r.Expired > 0 {
		notes = append(notes, fmt.Sprintf("%s older than %d days, which the journal does not keep", cli.Plural(r.Expired, "step is", "steps are"), int(stepAge.Hours()/24)))
	}
	if r.Undos > 0 {
		notes = append(notes, cli.Plural(r.Undos, "record says that it is an undo", "records say that they are undos")+": paddock undo runs outside of the sandbox, and no record of events tells of it")
	}
	for _, note := range notes {
		if err := a.Say("  note:   %s\n", note); err != nil {
			return err
		}
	}
	return nil
}
