package box

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
)

// checkUndo rejects a spec whose steps cannot be recorded.
func (d *Driver) checkUndo(spec *paddock.Spec) error {
	switch spec.Undo {
	case paddock.UndoOff:
		return nil
	case paddock.UndoOn, paddock.UndoStrict:
	default:
		return fmt.Errorf("undo %.64q: it is %s, %s or empty: %w", string(spec.Undo), paddock.UndoOn, paddock.UndoStrict, paddock.Invalid)
	}
	if d.site.o.Steps == "" {
		return fmt.Errorf("undo: this driver has no journal of steps: %w", paddock.Unsupported)
	}
	if i := slices.IndexFunc(spec.Mounts, singleFile); i >= 0 && spec.Undo == paddock.UndoStrict {
		return fmt.Errorf("undo %s: %s is a single file, whose changes cannot be recorded; mount the directory that it is in, or use undo %s: %w",
			paddock.UndoStrict, spec.Mounts[i].Source, paddock.UndoOn, paddock.Unsupported)
	}
	return nil
}

// singleFile reports whether a mount is a file that commands may change.
func singleFile(m paddock.Mount) bool {
	st, err := os.Stat(m.Source)
	return m.Write && !m.Cache && err == nil && !st.IsDir()
}

// recording returns how the steps of a sandbox with this spec are recorded; nil is not at all.
func (d *Driver) recording(spec *paddock.Spec) *recording {
	if spec.Undo == paddock.UndoOff {
		return nil
	}
	r := &recording{
		Journal: d.site.o.Steps, Mode: spec.Undo, Tier: d.tier.Name, Life: rand.Text(),
		Protect: spec.Policy.Files.Protect, Unprotect: spec.Policy.Files.Unprotect,
		Without: []string{"what is not in a writable mount"},
	}
	for _, m := range spec.Mounts {
		target := filepath.Clean(cmp.Or(m.Target, m.Source))
		switch {
		case singleFile(m):
			r.Without = append(r.Without, target+", which is a single file")
		case m.Write && m.Cache:
			r.Without = append(r.Without, target+", which is a cache")
		}
	}
	return r
}

// tell returns what a status says about a recording.
func (r *recording) tell(failed string) *paddock.Recording {
	if r == nil {
		return nil
	}
	return &paddock.Recording{Mode: r.Mode, Without: slices.Clone(r.Without), Failed: cmp.Or(failed, r.Failed)}
}

// words says why nothing is recorded any more, if so.
func (s *stepping) words() string {
	if s == nil {
		return ""
	}
	if err := s.failed(); err != nil {
		return boxinit.Words(err.Error(), boxinit.MaxWords)
	}
	return ""
}

// record begins to record the boxes of a life. Without a recording it does nothing.
func (l *Life) record(id paddock.ID, how *recording, commands bool) (err error) {
	if how == nil {
		return nil
	}
	held := func(ctx context.Context) ([]boxinit.Change, error) { return l.Box().held(ctx) }
	if l.steps, err = newStepping(id, how, held, commands, l.watching); err != nil {
		return err
	}
	if l.guard != nil {
		l.steps.commence, l.steps.keeping = l.guard.begin, l.guard.held.Store
	}
	l.plan.witness, l.plan.follower = l.steps.watch, &l.steps.seen
	if l.plan.Gateway != nil {
		l.plan.Gateway.Follow(&l.steps.seen)
	}
	l.steps.refused = func() []paddock.Refusal { return l.Box().refusedSoFar() }
	l.steps.reading = l.reading
	l.steps.settle = func(ctx context.Context) {
		if l.plan.Gateway != nil {
			l.plan.Gateway.Settle(ctx) // the answer to a client may come before its event
		}
	}
	return nil
}

// step implements boxOwner.
func (l *Life) step(ctx context.Context, kind string, command []string) (end endStep, err error) {
	if l.steps == nil {
		return nil, fmt.Errorf("no steps are recorded: %w", paddock.Unsupported)
	}
	return l.judged(ctx, kind, command, false)
}

// judged begins the step of a command, if the monitor lets it start. cut means that not the whole command is known.
func (l *Life) judged(ctx context.Context, kind string, command []string, cut bool) (end endStep, err error) {
	if err := l.guard.command(ctx, kind, command, cut); err != nil {
		return nil, err
	}
	return l.steps.command(ctx, kind, command)
}

// follow implements boxOwner. The end of the recording waits for f, which the end of the box ends.
func (l *Life) follow(f func(context.Context)) bool {
	l.steps.wg.Go(func() { f(context.Background()) })
	return true
}

// Unrecorded returns why not everything was recorded that commands changed. It is nil if it was, or was not to be, or if
// another process records it, which its status tells of.
func (s *Sandbox) Unrecorded() error {
	if l, ok := s.owner.(*Life); ok && l.steps != nil {
		return l.steps.failed()
	}
	return nil
}

// records reports whether the steps of the sandbox are recorded.
func (s *Sandbox) records() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.about.Undo != nil
}

// step begins a step of a sandbox that records them.
func (s *Sandbox) step(ctx context.Context, kind string, command []string) (end endStep, err error) {
	if end, err = s.owner.step(ctx, kind, command); err != nil {
		return nil, fmt.Errorf("sandbox %s: record a step: %w", s.id, err)
	}
	return end, nil
}
