package actionlog

import (
	"context"
	"fmt"
	"strconv"

	"github.com/paddock-sandbox/paddock"
)

// Spec implements paddock.Specified.
func (s *sandbox) Spec(ctx context.Context) (paddock.Spec, error) {
	return paddock.SpecOf(ctx, s.Sandbox)
}

// Journal implements paddock.Journaled.
func (s *sandbox) Journal() paddock.Journal {
	j, err := paddock.JournalOf(s.Sandbox)
	if err != nil {
		return nil
	}
	return journal{j, s.d, s.ID()}
}

// PastJournal implements paddock.Historian. What is asked of the journal is recorded.
func (d *driver) PastJournal(ctx context.Context, id paddock.ID) (paddock.Journal, error) {
	if err := d.ready(); err != nil {
		return nil, err
	}
	j, err := paddock.PastJournal(ctx, d.inner, id)
	if err != nil {
		return nil, err
	}
	return journal{j, d, id}, nil
}

// A journal records what is read of steps, and what is undone. A step that is begun belongs to an action that is recorded.
type journal struct {
	paddock.Journal
	d  *driver
	id paddock.ID
}

func (j journal) do(ctx context.Context, what, target string, call func() error) error {
	return j.d.Do(ctx, j.id, what, target, call)
}

func (j journal) Steps(ctx context.Context, f paddock.StepFilter) (list []paddock.Step, err error) {
	err = j.do(ctx, "step.list", "", func() error {
		list, err = j.Journal.Steps(ctx, f)
		return err
	})
	return list, err
}

func (j journal) Step(ctx context.Context, number int64) (one paddock.Step, err error) {
	err = j.do(ctx, "step.read", strconv.FormatInt(number, 10), func() error {
		one, err = j.Journal.Step(ctx, number)
		return err
	})
	return one, err
}

func (j journal) Diff(ctx context.Context, first, last int64, paths []string) (list []paddock.StepDiff, err error) {
	err = j.do(ctx, "step.diff", fmt.Sprintf("%d..%d", first, last), func() error {
		list, err = j.Journal.Diff(ctx, first, last, paths)
		return err
	})
	return list, err
}

func (j journal) Undo(ctx context.Context, u paddock.Undo) (done paddock.Undone, err error) {
	target := fmt.Sprintf("%d..", u.To)
	if len(u.Steps) > 0 {
		target = fmt.Sprint(u.Steps)
	}
	err = j.do(ctx, "step.undo", target, func() error {
		done, err = j.Journal.Undo(ctx, u)
		return err
	})
	return done, err
}
