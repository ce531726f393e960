package steptest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Journaled returns a driver whose sandboxes have a [Fake] each, for tests of what stands around drivers.
func Journaled(d paddock.Driver) paddock.Driver {
	return &journaled{Driver: d, fakes: map[paddock.ID]*Fake{}}
}

type journaled struct {
	paddock.Driver
	mu    sync.Mutex
	fakes map[paddock.ID]*Fake
}

func (d *journaled) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	spec.Undo = paddock.UndoOff
	sb, err := d.Driver.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fakes[sb.ID()] = NewFake()
	return &journaledSandbox{sb, d.fakes[sb.ID()]}, nil
}

func (d *journaled) Open(ctx context.Context, id paddock.ID) (paddock.Sandbox, error) {
	sb, err := d.Driver.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return &journaledSandbox{sb, d.fakes[id]}, nil
}

// PastJournal implements paddock.Historian.
func (d *journaled) PastJournal(ctx context.Context, id paddock.ID) (paddock.Journal, error) {
	d.mu.Lock()
	f := d.fakes[id]
	d.mu.Unlock()
	if f == nil {
		return nil, fmt.Errorf("sandbox %s: %w", id, paddock.NotFound)
	}
	if _, err := d.Driver.Open(ctx, id); err == nil {
		return nil, fmt.Errorf("sandbox %s is there: %w", id, paddock.NotFound)
	}
	return f, nil
}

type journaledSandbox struct {
	paddock.Sandbox
	f *Fake
}

func (s *journaledSandbox) Journal() paddock.Journal { return s.f }

// A Fake is a journal that knows some steps, and notes what it is asked.
type Fake struct {
	mu    sync.Mutex
	steps []paddock.Step
	asked []string
}

// NewFake returns a journal with three steps, some of whose texts are no UTF-8.
func NewFake() *Fake {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	f := &Fake{}
	cpu, peak := time.Second, int64(1<<20)
	used := []*paddock.StepUse{nil, {CPU: &cpu}, {CPU: &cpu, MemoryPeak: &peak, Traffic: &paddock.Traffic{In: 1}}}
	for n := int64(1); n <= 3; n++ {
		f.steps = append(f.steps, paddock.Step{
			Number: 10 * n, Kind: "run", Command: []string{"touch", "a\xff"}, Begin: at, End: at.Add(time.Second), Exit: int(n - 2), Changed: 2, Missed: 1,
			Undoes: []int64{n}, Incomplete: n == 2, Digest: "abc", Refused: []string{"write \xfe: rule"}, Hosts: []string{"example.com"}, Secrets: []string{"TOKEN"}, Use: used[n-1],
			Changes: []paddock.StepChange{{What: "created", Path: "/work/a\xff"}, {What: "moved", Path: "/b", From: "/c", Why: "large"}},
			Left:    []paddock.StepLeft{{Path: "/work/node_modules", Why: "rebuilt"}},
		})
	}
	return f
}

// Asked returns what the journal was asked.
func (f *Fake) Asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

func (f *Fake) notef(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, fmt.Sprintf(format, args...))
}

// Begin implements paddock.Journal.
func (f *Fake) Begin(_ context.Context, kind string, command []string) (end func(exit int), err error) {
	f.notef("begin %s %q", kind, command)
	return func(exit int) { f.notef("end %d", exit) }, nil
}

// Steps implements paddock.Journal.
func (f *Fake) Steps(_ context.Context, q paddock.StepFilter) ([]paddock.Step, error) {
	f.notef("steps %d %d", q.Before, q.Last)
	var list []paddock.Step
	for _, s := range f.steps {
		if q.Before == 0 || s.Number < q.Before {
			s.Changes, s.Left = nil, nil
			list = append(list, s)
		}
	}
	if q.Last > 0 && len(list) > q.Last {
		list = list[len(list)-q.Last:]
	}
	return list, nil
}

// Step implements paddock.Journal.
func (f *Fake) Step(_ context.Context, number int64) (paddock.Step, error) {
	f.notef("step %d", number)
	for _, s := range f.steps {
		if s.Number == number {
			return s, nil
		}
	}
	return paddock.Step{}, fmt.Errorf("step %d: %w", number, paddock.NotFound)
}

// Diff implements paddock.Journal.
func (f *Fake) Diff(_ context.Context, first, last int64, paths []string) ([]paddock.StepDiff, error) {
	f.notef("diff %d %d %q", first, last, paths)
	return []paddock.StepDiff{
		{Path: "/a\xff", From: "/b", Kinds: []string{"moved", "mode"}, BeforeMode: 0o644, AfterMode: 0o755, Text: "+\xff\n"},
		{Path: "/c", Kinds: []string{"removed"}, BeforeMode: 0o600, Binary: true, Why: "large"},
	}, nil
}

// Undo implements paddock.Journal.
func (f *Fake) Undo(_ context.Context, u paddock.Undo) (paddock.Undone, error) {
	f.notef("undo %d %d %q", u.Steps, u.To, u.Paths)
	return paddock.Undone{
		Step: 40, Restored: []paddock.UndonePath{{Step: 10, Path: "/a\xff", Note: "its owner is another"}},
		Conflicts: []paddock.UndonePath{{Step: 10, Path: "/b", Why: "it was changed", Remedy: "look"}}, More: 7,
	}, nil
}
