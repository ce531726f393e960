package box

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// stepping records the steps of one sandbox in a journal: each command, with what it changes in writable mounts. A change
// belongs to the command that started last and still runs. What changes while none runs is a step of its own.
type stepping struct {
	journal *step.Journal
	sandbox paddock.ID
	tier    paddock.Tier
	held    func(context.Context) ([]boxinit.Change, error)

	turn sync.Mutex // held while a step begins or ends

	mu     sync.Mutex
	roots  []step.Root    // guarded by mu
	number map[int]int    // guarded by mu: the root of a tree
	open   []*openStep    // guarded by mu: oldest first
	lost   error          // guarded by mu: why nothing is recorded any more
	ran    bool           // guarded by mu: a step has ended
	wg     sync.WaitGroup // of the steps whose commands run
}

// An openStep is a step that has not ended.
type openStep struct {
	recorder   *step.Recorder
	background bool
	concurrent map[int64]bool
}

// watch implements what Plan.witness is.
func (s *stepping) watch(trees []WitnessedTree) (Witness, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roots, s.number = nil, map[int]int{}
	for i, t := range trees {
		if t.Source != "" {
			s.number[i] = len(s.roots)
			s.roots = append(s.roots, step.Root{Path: step.Text(t.Source), Target: step.Text(t.Target)})
		}
	}
	if len(s.roots) == 0 {
		return nil, nil // nothing of the host can change
	}
	return s, nil
}

// Change implements Witness.
func (s *stepping) Change(c boxinit.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost != nil {
		return s.lost
	}
	root, ok := s.number[c.Tree]
	to, toOK := s.number[c.ToTree]
	if !ok || c.Kind.Two() && !toOK {
		return fmt.Errorf("a change in the tree %d: %w", c.Tree, paddock.Invalid)
	}
	if c.Path == "" { // the mount itself; only its mode can change
		return nil
	}
	if len(s.open) == 0 {
		if err := s.begin("background", nil, true); err != nil {
			return err
		}
	}
	r := s.open[len(s.open)-1].recorder
	switch c.Kind {
	case boxinit.ChangeContent, boxinit.ChangeMode:
		return r.Write(root, c.Path)
	case boxinit.ChangeRemoved:
		return r.Remove(root, c.Path)
	case boxinit.ChangeMade:
		return r.Create(root, c.Path)
	case boxinit.ChangeLinked:
		return r.Link(root, c.Path, to, c.To)
	case boxinit.ChangeExchanged:
		return r.Move(root, c.Path, to, c.To, step.Exchange)
	}
	return r.Move(root, c.Path, to, c.To, step.Free)
}

// begin begins a step. The caller holds s.mu.
func (s *stepping) begin(kind string, command []string, background bool) error {
	r, err := s.journal.Begin(context.Background(), step.About{
		Sandbox: string(s.sandbox), Tier: s.tier, Kind: kind, Command: command, Roots: s.roots, Start: time.Now(),
	})
	if err != nil {
		s.lost = fmt.Errorf("record a step: %w", err)
		return s.lost
	}
	o := &openStep{recorder: r, background: background, concurrent: map[int64]bool{}}
	for _, other := range s.open {
		o.concurrent[other.recorder.Number()], other.concurrent[r.Number()] = true, true
	}
	s.open = append(s.open, o)
	return nil
}

// command begins the step of a command, and returns what ends it. Files that commands of before have open can change
// without a report, so their contents are saved first.
func (s *stepping) command(ctx context.Context, kind string, command []string) (end func(*paddock.Exit), err error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	idle := len(s.open) > 0 && s.open[0].background
	again := s.ran || len(s.open) > 0
	s.mu.Unlock()
	var held []boxinit.Change
	if again {
		if held, err = s.held(ctx); err != nil {
			return nil, err
		}
	}
	if idle {
		s.finish(s.open[0], nil)
	}
	s.mu.Lock()
	if err := s.begin(kind, command, false); err != nil {
		defer s.mu.Unlock()
		return nil, err
	}
	o := s.open[len(s.open)-1]
	s.mu.Unlock()
	for _, c := range held {
		if err := s.Change(c); err != nil && !errors.Is(err, paddock.Exhausted) {
			s.finish(o, nil)
			return nil, err
		}
	}
	return func(exit *paddock.Exit) {
		s.turn.Lock()
		defer s.turn.Unlock()
		s.finish(o, exit)
	}, nil
}

// finish ends a step.
func (s *stepping) finish(o *openStep, exit *paddock.Exit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := 0
	for ; i < len(s.open) && s.open[i] != o; i++ {
	}
	if i == len(s.open) {
		return
	}
	s.open = append(s.open[:i:i], s.open[i+1:]...)
	s.ran = true
	out := step.Outcome{Exit: statusOf(exit)}
	for n := range o.concurrent {
		out.Concurrent = append(out.Concurrent, n)
	}
	if _, err := o.recorder.End(context.Background(), out); err != nil && s.lost == nil {
		s.lost = fmt.Errorf("record a step: %w", err)
	}
}

// unknownExit is the exit of a step whose command did not end before the step did.
const unknownExit = -1

// statusOf returns an exit as a shell tells it.
func statusOf(exit *paddock.Exit) int {
	if exit == nil {
		return unknownExit
	}
	return exit.Code
}

// close ends all steps. It returns why not all was recorded.
func (s *stepping) close() error {
	s.wg.Wait()
	s.turn.Lock()
	defer s.turn.Unlock()
	for {
		s.mu.Lock()
		if len(s.open) == 0 {
			defer s.mu.Unlock()
			return s.lost
		}
		o := s.open[0]
		s.mu.Unlock()
		s.finish(o, nil)
	}
}

// A recordedProcess is a command whose step is recorded.
type recordedProcess struct {
	paddock.Process
	recorded <-chan struct{} // closed when its step has ended
}

// Wait implements paddock.Process. After it the step is in the journal.
func (p recordedProcess) Wait(ctx context.Context) (paddock.Exit, error) {
	exit, err := p.Process.Wait(ctx)
	if err != nil {
		return exit, err
	}
	select {
	case <-p.recorded:
		return exit, nil
	case <-ctx.Done():
		return exit, fmt.Errorf("wait for the record of a step: %w: %w", ctx.Err(), EndKind(ctx.Err()))
	}
}
