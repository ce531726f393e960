package box

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/protect"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// Journal implements paddock.Journaled.
func (s *Sandbox) Journal() paddock.Journal {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.about.Undo == nil {
		return nil
	}
	return &journal{id: s.id, driver: s.driver, s: s, how: s.about.Undo}
}

// PastJournal implements paddock.Historian. The rules about names of the sandbox are gone with it, so an undo keeps to the
// built-in ones.
func (d *Driver) PastJournal(ctx context.Context, id paddock.ID) (paddock.Journal, error) {
	switch {
	case !id.Valid():
		return nil, fmt.Errorf("sandbox %.64q: 1 to 63 lower-case letters, digits and dashes: %w", string(id), paddock.Invalid)
	case d.site.o.Steps == "":
		return nil, fmt.Errorf("this driver has no journal of steps: %w", paddock.Unsupported)
	}
	j := &journal{id: id, driver: d, how: &recording{Journal: d.site.o.Steps, Tier: d.tier.Name}}
	err := j.with(ctx, func(kept *step.Journal) error {
		list, err := kept.List(ctx, step.Filter{Sandbox: string(id), Lean: true, Last: 1})
		if len(list) == 1 && list[0].Life != "" && list[0].Tier == d.tier.Name {
			j.how.Life = list[0].Life
			return nil
		}
		return cmp.Or(err, error(paddock.NotFound))
	})
	if err != nil {
		return nil, err
	}
	return j, nil
}

// A journal is that of one sandbox. It shows the records of this sandbox alone, by the paths that the sandbox sees.
type journal struct {
	id     paddock.ID
	driver *Driver
	s      *Sandbox // nil if it is gone
	how    *recording
}

// Begin implements paddock.Journal.
func (j *journal) Begin(ctx context.Context, kind string, command []string) (end func(exit int), err error) {
	if j.s == nil {
		return nil, fmt.Errorf("sandbox %s: %w", j.id, paddock.NotFound)
	}
	if _, err := j.s.running(ctx); err != nil {
		return nil, err
	}
	ended, err := j.s.step(ctx, kind, command)
	if err != nil {
		return nil, err
	}
	return func(exit int) {
		if exit == paddock.UnknownExit {
			ended(context.Background(), nil)
			return
		}
		ended(context.Background(), &paddock.Exit{Cause: paddock.Exited, Code: exit})
	}, nil
}

// with opens the journal of this user for one call, with records of the steps that were cut off.
func (j *journal) with(ctx context.Context, do func(*step.Journal) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("sandbox %s: %w", j.id, err)
		}
	}()
	leave, err := j.driver.reading.enter(ctx, j.how.Life) // records may be large, and many callers may ask
	if err != nil {
		return err
	}
	defer leave()
	kept, err := step.Open(j.how.Journal, step.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kept.Close()) }()
	_, _ = kept.Recover(ctx) // of the records that can be made; the others stay as they are
	return do(kept)
}

// mine selects the records of the sandbox.
func (j *journal) mine() step.Filter { return step.Filter{Life: j.how.Life, Lean: true} }

// Steps implements paddock.Journal.
func (j *journal) Steps(ctx context.Context, f paddock.StepFilter) (list []paddock.Step, err error) {
	if f.Before < 0 || f.Last < 0 {
		return nil, fmt.Errorf("steps before %d, at most %d: %w", f.Before, f.Last, paddock.Invalid)
	}
	err = j.with(ctx, func(kept *step.Journal) error {
		mine := j.mine()
		mine.Last = cmp.Or(min(f.Last, paddock.MaxStepChanges), paddock.MaxStepChanges)
		if f.Before == 1 {
			return nil
		}
		mine.To = max(f.Before-1, 0)
		records, err := kept.List(ctx, mine)
		if records == nil && err != nil {
			return err
		}
		for i := range records { // those that can be read
			s := stepOf(&records[i])
			s.Command, s.Refused, s.Hosts, s.Secrets = beginning(s.Command), nil, nil, nil
			list = append(list, s)
		}
		return nil
	})
	return list, err
}

// listedCommand bounds the command of a step in a list, in bytes.
const listedCommand = 2 << 10

// beginning returns the beginning of a command.
func beginning(words []string) (list []string) {
	left := listedCommand
	for _, w := range words {
		if len(w)+1 > left {
			return append(list, w[:max(0, left-1)]+"…")
		}
		list = append(list, w)
		left -= len(w) + 1
	}
	return list
}

// Step implements paddock.Journal.
func (j *journal) Step(ctx context.Context, number int64) (s paddock.Step, err error) {
	err = j.with(ctx, func(kept *step.Journal) error {
		r, err := j.read(ctx, kept, number)
		if err == nil {
			s = stepOf(r)
		}
		return err
	})
	return s, err
}

// read reads a record of the sandbox. That of another one is not there.
func (j *journal) read(ctx context.Context, kept *step.Journal, number int64) (*step.Record, error) {
	r, err := kept.Read(ctx, number)
	if err == nil && r.Life != j.how.Life {
		return nil, fmt.Errorf("step %d: %w", number, paddock.NotFound)
	}
	return r, err
}

// A room is what one answer may still have.
type room struct{ entries, bytes int }

func newRoom() *room { return &room{paddock.MaxStepChanges, paddock.MaxStepText} }

// take takes the room of an entry with texts, if there is enough.
func (r *room) take(texts ...string) bool {
	n := 64 // around the texts
	for _, t := range texts {
		n += len(t)
	}
	if r.entries == 0 || n > r.bytes {
		return false
	}
	r.entries--
	r.bytes -= n
	return true
}

// stepOf returns a record as the sandbox's user sees it.
func stepOf(r *step.Record) paddock.Step {
	s := paddock.Step{
		Number: r.Number, Kind: r.Kind, Begin: r.Begin, End: r.End, Exit: r.Exit, Changed: r.Changed, Missed: r.Missed,
		Undoes: r.Undoes, Incomplete: r.Incomplete, Digest: r.Digest, Hosts: r.Hosts, Secrets: r.Secrets,
		Use: r.Use,
	}
	for _, word := range r.Command {
		s.Command = append(s.Command, string(word))
	}
	for _, f := range r.Refused {
		s.Refused = append(s.Refused, f.Words())
	}
	room := newRoom()
	for i := range r.Changes {
		c := &r.Changes[i]
		x := paddock.StepChange{What: "changed", Path: inside(r, c.Root, c.Path), Why: c.Why}
		switch {
		case c.Moved:
			x.What, x.From = "moved", inside(r, c.FromRoot, c.From)
		case !c.Before.Exists():
			x.What = "created"
		case !c.After.Exists():
			x.What = "removed"
		}
		if !room.take(x.Path, x.From, x.Why) {
			break
		}
		s.Changes = append(s.Changes, x)
	}
	room = newRoom()
	for _, l := range r.Left {
		x := paddock.StepLeft{Path: inside(r, l.Root, l.Path), Why: l.Why}
		if !room.take(x.Path, x.Why) {
			break
		}
		s.Left = append(s.Left, x)
	}
	return s
}

// inside returns the path in the sandbox of a path below a root of a record.
func inside(r *step.Record, root int, name step.Text) string {
	if root < 0 || root >= len(r.Roots) {
		return ""
	}
	return path.Join("/", string(r.Roots[root].Target), string(name))
}

// Diff implements paddock.Journal.
func (j *journal) Diff(ctx context.Context, first, last int64, paths []string) (list []paddock.StepDiff, err error) {
	if first < 1 || last < first {
		return nil, fmt.Errorf("steps %d to %d: %w", first, last, paddock.Invalid)
	}
	if err := named(paths); err != nil {
		return nil, fmt.Errorf("sandbox %s: %w", j.id, err)
	}
	err = j.with(ctx, func(kept *step.Journal) error {
		f := j.mine()
		f.From, f.To = first, last
		records, err := kept.List(ctx, f)
		if err != nil {
			return err
		}
		roots := rootsOf(records)
		names, err := roots.outside(ctx, paths)
		if err != nil {
			return err
		}
		all, err := kept.DiffOf(ctx, f, names)
		if err != nil {
			return err
		}
		room := newRoom()
		for i := range all {
			d := &all[i]
			x := paddock.StepDiff{
				Path: roots.target(d.Root, d.Path), BeforeMode: d.Before.Mode, AfterMode: d.After.Mode,
				Binary: d.Binary, Text: d.Text, Why: d.Why,
			}
			if d.From != "" {
				x.From = roots.target(d.FromRoot, d.From)
			}
			for _, k := range d.Kinds {
				x.Kinds = append(x.Kinds, string(k))
			}
			if !room.take(x.Path, x.From, x.Text, x.Why) {
				return fmt.Errorf("%d paths differ, too many for one answer; name paths: %w", len(all), paddock.Exhausted)
			}
			list = append(list, x)
		}
		return nil
	})
	return list, err
}

// Undo implements paddock.Journal.
func (j *journal) Undo(ctx context.Context, u paddock.Undo) (done paddock.Undone, err error) {
	if err := named(u.Paths); err != nil {
		return done, fmt.Errorf("sandbox %s: %w", j.id, err)
	}
	if len(u.Steps) > maxUndoSteps {
		return done, fmt.Errorf("%d steps; at most %d can be named: %w", len(u.Steps), maxUndoSteps, paddock.Invalid)
	}
	err = j.with(ctx, func(kept *step.Journal) error {
		set, err := protect.New(j.how.Protect, j.how.Unprotect)
		if err != nil {
			return err
		}
		q := step.Request{Steps: u.Steps, To: u.To, Only: j.mine(), Protect: set, Sandbox: string(j.id), Life: j.how.Life, Tier: j.how.Tier}
		records, err := j.requested(ctx, kept, u)
		if err != nil {
			return err
		}
		roots := rootsOf(records)
		if q.Paths, err = roots.outside(ctx, u.Paths); err != nil {
			return err
		}
		result, err := kept.Undo(ctx, q)
		err = roots.told(err)
		if result == nil {
			return cmp.Or(err, error(paddock.Internal))
		}
		done.Step = result.Step
		room := newRoom()
		add := func(list *[]paddock.UndonePath, p paddock.UndonePath) {
			if !room.take(p.Path, p.Note, p.Why, p.Remedy) {
				done.More++
				return
			}
			*list = append(*list, p)
		}
		for _, c := range result.Conflicts {
			add(&done.Conflicts, paddock.UndonePath{Step: c.Step, Path: roots.target(c.Root, c.Path), Why: roots.words(c.Why), Remedy: c.Remedy})
		}
		for _, r := range result.Restored {
			add(&done.Restored, paddock.UndonePath{Step: r.Step, Path: roots.target(r.Root, r.Path), Note: r.Note})
		}
		return err
	})
	return done, err
}

// maxUndoSteps bounds the steps that one undo names.
const maxUndoSteps = 1000

// requested reads the records that an undo is about.
func (j *journal) requested(ctx context.Context, kept *step.Journal, u paddock.Undo) ([]step.Record, error) {
	if len(u.Steps) == 0 {
		f := j.mine()
		f.From = u.To
		return kept.List(ctx, f)
	}
	var records []step.Record
	for _, n := range u.Steps {
		r, err := kept.Head(ctx, n)
		if err == nil && r.Life != j.how.Life { // that of another one is not there
			err = fmt.Errorf("step %d: %w", n, paddock.NotFound)
		}
		if err != nil {
			return nil, err
		}
		records = append(records, *r)
	}
	return records, nil
}
