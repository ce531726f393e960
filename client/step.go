package client

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// Journal implements paddock.Journaled. The server tells whether it records the steps of the sandbox.
func (s *sandbox) Journal() paddock.Journal { return journal{s} }

// PastJournal implements paddock.Historian. Only a server with one user answers for sandboxes that are gone.
func (d *Driver) PastJournal(ctx context.Context, id paddock.ID) (paddock.Journal, error) {
	if !id.Valid() {
		return nil, fmt.Errorf("steps of sandbox %q: invalid name: %w", string(id), paddock.Invalid)
	}
	j := journal{&sandbox{d: d, id: id}}
	if _, err := j.Steps(ctx, paddock.StepFilter{Last: 1}); err != nil {
		return nil, err
	}
	return j, nil
}

type journal struct{ s *sandbox }

// Begin returns Unsupported: a server records what its clients ask for by itself.
func (j journal) Begin(context.Context, string, []string) (end func(exit int), err error) {
	return nil, fmt.Errorf("begin a step of a sandbox of a server: %w", paddock.Unsupported)
}

// pageOfSteps is the largest page of the server.
const pageOfSteps = 500

func (j journal) Steps(ctx context.Context, f paddock.StepFilter) ([]paddock.Step, error) {
	if f.Before < 0 || f.Last < 0 {
		return nil, fmt.Errorf("steps before %d, at most %d: %w", f.Before, f.Last, paddock.Invalid)
	}
	var list []paddock.Step // the newest first
	for before := f.Before; f.Last == 0 || len(list) < f.Last; {
		n := pageOfSteps
		if f.Last > 0 {
			n = min(n, f.Last-len(list))
		}
		query := url.Values{"limit": {strconv.Itoa(n)}}
		if before > 0 {
			query.Set("before", strconv.FormatInt(before, 10))
		}
		var page api.Steps
		if err := j.s.call(ctx, "steps", call{method: "GET", path: "/steps", query: query, answer: &page, repeat: true}); err != nil {
			return nil, err
		}
		for _, x := range slices.Backward(page.Steps) {
			list = append(list, x.Step())
		}
		if page.Before <= 0 || before > 0 && page.Before >= before || len(page.Steps) == 0 {
			break
		}
		before = page.Before
	}
	slices.Reverse(list)
	return list, nil
}

func (j journal) Step(ctx context.Context, number int64) (paddock.Step, error) {
	var x api.Step
	err := j.s.call(ctx, "step", call{method: "GET", path: stepPath(number), answer: &x, repeat: true})
	if err != nil {
		return paddock.Step{}, err
	}
	return x.Step(), nil
}

func stepPath(number int64) string { return "/steps/" + strconv.FormatInt(number, 10) }

func (j journal) Diff(ctx context.Context, first, last int64, paths []string) ([]paddock.StepDiff, error) {
	if first < 1 || last < first {
		return nil, fmt.Errorf("steps %d to %d: %w", first, last, paddock.Invalid)
	}
	query := url.Values{"to": {strconv.FormatInt(last, 10)}, "path": paths}
	var answer api.StepDiffs
	if err := j.s.call(ctx, "diff", call{method: "GET", path: stepPath(first) + "/diff", query: query, answer: &answer, repeat: true}); err != nil {
		return nil, err
	}
	var list []paddock.StepDiff
	for _, d := range answer.Differences {
		list = append(list, d.Diff())
	}
	return list, nil
}

// Undo is not repeated if the connection breaks: an undo of what was undone finds conflicts.
func (j journal) Undo(ctx context.Context, u paddock.Undo) (paddock.Undone, error) {
	var done api.Undone
	asked := api.Undo{Steps: u.Steps, To: u.To, Paths: api.Pack(u.Paths)}
	if err := j.s.call(ctx, "undo", call{method: "POST", path: "/undo", body: asked, answer: &done}); err != nil {
		return paddock.Undone{}, err
	}
	return done.Undone(), nil
}
