package parent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/description"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/parent/protocol"
)

// Times that bound an exchange over the control socket, and the first one.
const (
	answerTime = 30 * time.Second
	createTime = time.Minute
)

func (s *sandbox) removed() error {
	return fmt.Errorf("sandbox %s was removed: %w", s.spec.ID, paddock.Unavailable)
}

func (s *sandbox) isGone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

// ask sends an order. Before another exchange can begin it calls done, if the child obeyed.
func (s *sandbox) ask(ctx context.Context, o protocol.Order, done func()) error {
	return s.converse(ctx, func() error {
		_, err := s.link.Ask(o)
		if err == nil {
			done()
		}
		return err
	})
}

// converse holds the control socket for an exchange, alone. It waits for other exchanges until ctx
// ends.
func (s *sandbox) converse(ctx context.Context, exchange func() error) error {
	if s.isGone() {
		return s.removed()
	}
	select {
	case s.asking <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("sandbox %s: %w: %w", s.spec.ID, errBusy, endKind(ctx))
	}
	defer func() { <-s.asking }()
	return s.exchange(exchange)
}

// endKind returns the kind of the end of ctx.
func endKind(ctx context.Context) paddock.Kind {
	if errors.Is(ctx.Err(), context.Canceled) {
		return paddock.Canceled
	}
	return paddock.Timeout
}

// exchange bounds an exchange by time, and ends a child whose next answer could be to this order or
// to another one. The caller has an element in asking.
func (s *sandbox) exchange(exchange func() error) error {
	if err := s.control.SetDeadline(time.Now().Add(s.d.answer)); err != nil {
		return fmt.Errorf("sandbox %s: %s: %w", s.spec.ID, s.reason(), paddock.Unavailable)
	}
	err := exchange()
	switch {
	case errors.Is(err, protocol.ErrNonsense), errors.Is(err, protocol.ErrSilent):
		s.lost(err)
		s.kill()
	case errors.Is(err, protocol.ErrEnded):
		select {
		case <-s.ended:
		case <-time.After(patience): // it only says so
			s.lost(errHungUp)
		}
		s.kill()
	}
	return err
}

var (
	errBusy   = errors.New("its process is busy with another request")
	errHungUp = errors.New("it closed its connection and did not end")
)

// lost notes why the child is ended.
func (s *sandbox) lost(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why == "" {
		s.why = "its process was ended: " + err.Error()
	}
}

// Update checks all of a change first, so that an honest child refuses none. The rules of the network
// are the host's alone, and no child has a say in them: it is not asked if nothing else changes inside,
// and if it refuses the rest, they are not undone.
func (s *sandbox) Update(ctx context.Context, u paddock.Update) error {
	if err := s.checkUpdate(ctx, u); err != nil {
		return err
	}
	if !s.concernsChild(u) {
		if err := s.updateNetwork(ctx, u.Policy); err != nil {
			return err
		}
		s.updated(u)
		return nil
	}
	return s.converse(ctx, func() error {
		if err := s.checkUpdate(ctx, u); err != nil { // it may have been paused meanwhile
			return err
		}
		if err := s.updateNetwork(ctx, u.Policy); err != nil {
			return err
		}
		o := protocol.Order{Op: "update", Update: u}
		if u.Policy != nil {
			p := *u.Policy
			p.Network = hidden(p.Network)
			o.Update.Policy = &p
		}
		if err := s.control.SetDeadline(time.Now().Add(s.d.answer)); err != nil {
			return s.link.Failed(err)
		}
		_, err := s.link.Ask(o)
		switch {
		case err == nil:
			s.updated(u)
		case u.Policy != nil && s.out != nil && !errors.Is(err, protocol.ErrSilent) && !errors.Is(err, protocol.ErrEnded):
			// Half of the change is made. Not to undo it, the sandbox ends.
			return fmt.Errorf("it refused a change that the host had checked: %s: %w: %w", protocol.Plain(err.Error()), protocol.ErrNonsense, paddock.Internal)
		}
		return err
	})
}

// checkUpdate returns an error if a change cannot be made.
func (s *sandbox) checkUpdate(ctx context.Context, u paddock.Update) error {
	if s.isGone() {
		return s.removed()
	}
	select {
	case <-s.ended:
		return fmt.Errorf("sandbox %s: %s: %w", s.spec.ID, s.reason(), paddock.Unavailable)
	case <-ctx.Done():
		return fmt.Errorf("sandbox %s: %w: %w", s.spec.ID, ctx.Err(), endKind(ctx))
	default:
	}
	if u.Limits != nil {
		if err := description.CheckLimits(*u.Limits); err != nil {
			return err
		}
	}
	if p := u.Policy; p != nil {
		if err := description.CheckPolicy(*p); err != nil {
			return err
		}
		if err := description.CheckNetwork(p.Network); err != nil {
			return err
		}
		if s.out == nil && p.Network.Mode != paddock.NetworkNone {
			return description.LateNetwork(p.Network)
		}
	}
	if s.isPaused() {
		return fmt.Errorf("sandbox %s is paused: %w", s.spec.ID, paddock.Conflict)
	}
	return nil
}

// concernsChild reports whether the child has to know of a change. It knows neither the rules of the
// network nor the labels that the host shows.
func (s *sandbox) concernsChild(u paddock.Update) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.Limits != nil {
		return true
	}
	if u.Policy == nil {
		return false
	}
	f, g := s.files, u.Policy.Files
	return !slices.Equal(f.DenyRead, g.DenyRead) || !slices.Equal(f.DenyWrite, g.DenyWrite)
}

// updated notes a change that was made.
func (s *sandbox) updated(u paddock.Update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.Limits != nil {
		s.limit(*u.Limits)
	}
	if u.Labels != nil {
		s.labels = maps.Clone(u.Labels)
	}
	if u.Policy != nil {
		s.files = filesOf(*u.Policy)
	}
}

// filesOf returns the rules about files that this tier has.
func filesOf(p paddock.Policy) paddock.FilePolicy {
	return paddock.FilePolicy{DenyRead: slices.Clone(p.Files.DenyRead), DenyWrite: slices.Clone(p.Files.DenyWrite)}
}

func (s *sandbox) Pause(ctx context.Context) error {
	return s.ask(ctx, protocol.Order{Op: "pause"}, func() { s.setPaused(true) })
}

func (s *sandbox) Resume(ctx context.Context) error {
	return s.ask(ctx, protocol.Order{Op: "resume"}, func() { s.setPaused(false) })
}

func (s *sandbox) setPaused(paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = paused
}
