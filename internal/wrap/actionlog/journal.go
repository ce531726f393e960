package actionlog

import (
	"context"
	"fmt"
	"strconv"

	"github.com/paddock-sandbox/paddock"
)

// Journal implements paddock.Journaled.
func (s *sandbox) Journal() paddock.Journal {
	j, err := paddock.JournalOf(s.Sandbox)
	if err != nil {
		return nil
	}
	return journal{j, s}
}

// A journal records what is read of steps, and what is undone. A step that is begun belongs to an action that is recorded.
type journal struct {
	paddock.Journal
	s *sandbox
}

func (j journal) Steps(ctx context.Context, f paddock.StepFilter) (list []paddock.Step, err error) {
	err = j.s.do(ctx, "step.list", "", func() error {
		list, err = j.Journal.Steps(ctx, f)
		return err
	})
	return list, err
}

func (j journal) Step(ctx context.Context, number int64) (one paddock.Step, err error) {
	err = j.s.do(ctx, "step.read", strconv.FormatInt(number, 10), func() error {
		one, err = j.Journal.Step(ctx, number)
		return err
	})
	return one, err
}

func (j journal) Diff(ctx context.Context, first, last int64, paths []string) (list []paddock.StepDiff, err error) {
	err = j.s.do(ctx, "step.diff", fmt.Sprintf("%d..%d", first, last), func() error {
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
	err = j.s.do(ctx, "step.undo", target, func() error {
		done, err = j.Journal.Undo(ctx, u)
		return err
	})
	return done, err
}
