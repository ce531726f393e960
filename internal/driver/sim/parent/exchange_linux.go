package parent

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
		kind := paddock.Timeout
		if errors.Is(ctx.Err(), context.Canceled) {
			kind = paddock.Canceled
		}
		return fmt.Errorf("sandbox %s: %w: %w", s.spec.ID, errBusy, kind)
	}
	defer func() { <-s.asking }()
	return s.exchange(exchange)
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

func (s *sandbox) Update(ctx context.Context, u paddock.Update) error {
	if u.Limits != nil {
		if err := description.CheckLimits(*u.Limits); err != nil {
			return err
		}
	}
	undo, err := s.updateNetwork(ctx, u.Policy)
	if err != nil {
		return err
	}
	if u.Policy != nil {
		p := *u.Policy
		p.Network = hidden(p.Network)
		u.Policy = &p
	}
	err = s.ask(ctx, protocol.Order{Op: "update", Update: u}, func() { s.updated(u) })
	if err != nil {
		undo()
	}
	return err
}

// updated notes what the child was told and has not refused.
func (s *sandbox) updated(u paddock.Update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.Limits != nil {
		s.limit(*u.Limits)
	}
	if u.Labels != nil {
		s.labels = maps.Clone(u.Labels)
	}
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
