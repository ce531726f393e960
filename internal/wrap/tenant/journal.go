package tenant

import (
	"context"
	"errors"

	"github.com/paddock-sandbox/paddock"
)

// Spec implements paddock.Specified.
func (s *sandbox) Spec(ctx context.Context) (paddock.Spec, error) {
	if err := s.there(ctx); err != nil {
		return paddock.Spec{}, err
	}
	spec, err := paddock.SpecOf(ctx, s.Sandbox)
	spec.Labels = plain(paddock.Status{Labels: spec.Labels}).Labels
	return spec, err
}

// Journal implements paddock.Journaled. The shared driver's journal has the steps of this sandbox alone. Each call first
// looks whether the sandbox is still this tenant's.
func (s *sandbox) Journal() paddock.Journal {
	j, err := paddock.JournalOf(s.Sandbox)
	if err != nil {
		return nil
	}
	return &journal{s, j}
}

// PastJournal implements paddock.Historian. Records tell no tenant, and the name of a sandbox that is gone may have been
// another one's, so only the user who owns the driver has them.
func (d *driver) PastJournal(ctx context.Context, id paddock.ID) (paddock.Journal, error) {
	if err := d.alive(); err != nil {
		return nil, err
	}
	if !d.ts.o.Whole {
		return nil, missing("sandbox", string(id))
	}
	_, err := d.ts.o.Store.Sandbox(ctx, d.tenant, id)
	if err == nil { // it is there, or it is being made
		return nil, missing("past sandbox", string(id))
	}
	if !errors.Is(err, paddock.NotFound) {
		return nil, err
	}
	return paddock.PastJournal(ctx, d.ts.d, id)
}

type journal struct {
	s *sandbox
	j paddock.Journal
}

func (j *journal) Begin(ctx context.Context, kind string, command []string) (end func(exit int), err error) {
	if err := j.s.there(ctx); err != nil {
		return nil, err
	}
	return j.j.Begin(ctx, kind, command)
}

func (j *journal) Steps(ctx context.Context, f paddock.StepFilter) ([]paddock.Step, error) {
	if err := j.s.there(ctx); err != nil {
		return nil, err
	}
	return j.j.Steps(ctx, f)
}

func (j *journal) Step(ctx context.Context, number int64) (paddock.Step, error) {
	if err := j.s.there(ctx); err != nil {
		return paddock.Step{}, err
	}
	return j.j.Step(ctx, number)
}

func (j *journal) Diff(ctx context.Context, first, last int64, paths []string) ([]paddock.StepDiff, error) {
	if err := j.s.there(ctx); err != nil {
		return nil, err
	}
	return j.j.Diff(ctx, first, last, paths)
}

func (j *journal) Undo(ctx context.Context, u paddock.Undo) (paddock.Undone, error) {
	if err := j.s.there(ctx); err != nil {
		return paddock.Undone{}, err
	}
	return j.j.Undo(ctx, u)
}
