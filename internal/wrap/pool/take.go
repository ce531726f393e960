package pool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// takeTime bounds a handover. After that, making a sandbox is faster.
const takeTime = 5 * time.Second

// take hands out a sandbox of a shelf. It returns nil if the driver must make one.
func (p *Pool) take(ctx context.Context, s *stock, labels map[string]string) paddock.Sandbox {
	ctx, cancel := context.WithTimeout(ctx, takeTime)
	defer cancel()
	for ctx.Err() == nil {
		sb := p.pick(s, labels)
		if sb == nil {
			return nil
		}
		given, err := p.hand(ctx, sb, s, labels)
		if err == nil {
			return given
		}
		p.doom(s, sb, err)
		if errors.As(err, new(*labelError)) {
			return nil // the others would not accept the labels either
		}
	}
	return nil
}

// pick takes the oldest sandbox from its shelf. The caller must call hand or doom
// afterwards.
func (p *Pool) pick(s *stock, labels map[string]string) paddock.Sandbox {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.fixed && !maps.Equal(labels, p.labels(s)) {
		return nil
	}
	p.expire(s, time.Now())
	if len(s.ready) == 0 {
		return nil
	}
	sb := s.ready[0].Sandbox
	s.taken = time.Now()
	if len(s.ready) >= s.target {
		s.short = s.taken
	}
	s.ready = slices.Delete(s.ready, 0, 1)
	p.handing.Add(1)
	p.tell()
	return sb
}

// A labelError reports a sandbox that did not accept its caller's labels.
type labelError struct{ err error }

func (e *labelError) Error() string { return "set its labels: " + e.err.Error() }
func (e *labelError) Unwrap() error { return e.err }

// hand hands a sandbox over to its caller.
func (p *Pool) hand(ctx context.Context, sb paddock.Sandbox, s *stock, labels map[string]string) (paddock.Sandbox, error) {
	labelled := make(chan error, 1) // in parallel with Status
	go func() { labelled <- p.label(ctx, sb, s, labels) }()
	st, err := sb.Status(ctx)
	failed := <-labelled
	switch {
	case err != nil:
		return nil, err
	case st.State != paddock.Ready:
		return nil, fmt.Errorf("it is %s (%s): %w", st.State, st.Reason, paddock.Unavailable)
	case failed != nil:
		return nil, &labelError{failed}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fmt.Errorf("the pool is closed: %w", paddock.Unavailable)
	}
	born := &birth{at: time.Now(), wall: st.Usage.Wall}
	delete(p.hidden, sb.ID())
	p.given[sb.ID()] = born
	s.count.Hits++
	p.handing.Done()
	st.Labels = maps.Clone(labels) // by now
	born.amend(&st)
	return &sandbox{Sandbox: sb, p: p, born: born, first: &st}, nil
}

// label sets the caller's labels.
func (p *Pool) label(ctx context.Context, sb paddock.Sandbox, s *stock, labels map[string]string) error {
	if maps.Equal(labels, p.labels(s)) { // never with a mark
		return nil
	}
	u := paddock.Update{Labels: maps.Clone(labels)}
	if u.Labels == nil {
		u.Labels = map[string]string{} // nil would keep the shelf's labels
	}
	return sb.Update(ctx, u)
}

// doom makes the worker remove a sandbox that could not be handed out.
func (p *Pool) doom(s *stock, sb paddock.Sandbox, why error) {
	p.log.Warn("a ready sandbox could not be handed out, and is removed", "id", sb.ID(), "err", why)
	p.mu.Lock()
	defer p.mu.Unlock()
	if errors.As(why, new(*labelError)) && errors.Is(why, paddock.Unsupported) {
		p.fixed = true
	}
	s.count.Spoiled++
	p.doomed = append(p.doomed, &doomed{sandbox: sb})
	p.tell()
	p.handing.Done()
}
