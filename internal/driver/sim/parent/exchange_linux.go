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
	errStuck  = errors.New("a command was not ended after its timeout")
	errHungUp = errors.New("it closed its connection and did not end")

	errChanging = errors.New("its rules are being changed by another request")
)

// ended reports whether an exchange failed so that it ends the child.
func ended(err error) bool {
	return errors.Is(err, protocol.ErrNonsense) || errors.Is(err, protocol.ErrSilent) || errors.Is(err, protocol.ErrEnded)
}

// lost notes why the child is ended.
func (s *sandbox) lost(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why == "" {
		s.why = "its process was ended: " + err.Error()
	}
}

// Update first checks all of a change that the host can check. Then the child changes the limits, which it
// may refuse because of what is in use; a child that does so keeps the sandbox as it was. The rest is the
// host's decision. The rules of the network are the host's alone, and no child has a say in them: it is not
// asked if only they and the labels change, and if it refuses rules about files, it is ended.
func (s *sandbox) Update(ctx context.Context, u paddock.Update) error {
	if err := s.update(ctx, u); err != nil {
		return err
	}
	if u.Policy != nil {
		s.mu.Lock()
		p := *u.Policy
		s.policy = &p
		s.mu.Unlock()
	}
	return nil
}

// Spec implements [paddock.Specified].
func (s *sandbox) Spec(context.Context) (paddock.Spec, error) {
	spec := s.spec
	spec.Limits = s.limitsAsked()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.policy != nil {
		spec.Policy = *s.policy
	}
	return spec, nil
}

func (s *sandbox) update(ctx context.Context, u paddock.Update) error {
	if err := s.checkUpdate(ctx, u); err != nil {
		return err
	}
	if u.Limits == nil {
		if inside, err := s.apply(ctx, u, true); err != nil || !inside {
			return err
		}
	}
	return s.converse(ctx, func() error {
		if err := s.checkUpdate(ctx, u); err != nil { // it may have been paused meanwhile
			return err
		}
		before := s.limitsAsked()
		if u.Limits != nil {
			if err := s.relimit(description.Changed(before, *u.Limits)); err != nil {
				return err
			}
		}
		rest := ctx
		if u.Limits != nil { // the child has changed, so the caller's leaving stops nothing any more
			late, done := context.WithTimeout(context.WithoutCancel(ctx), s.d.answer)
			defer done()
			rest = late
		}
		inside, err := s.apply(rest, u, false)
		if err != nil {
			if u.Limits != nil {
				err = s.restore(before, err)
			}
			return err
		}
		if !inside {
			return nil
		}
		return s.tellRules(*u.Policy)
	})
}

// relimit has the child replace its limits by l, which are as they were asked for. The caller has an element in asking.
func (s *sandbox) relimit(l paddock.Limits) error {
	if err := s.order(paddock.Update{Limits: &l}); err != nil {
		return err
	}
	s.mu.Lock()
	s.limit(l)
	cpus := s.limits.CPUs
	s.mu.Unlock()
	s.cpu.limit(cpus)
	return nil
}

// restore takes back a change of limits, whose other part failed with err.
func (s *sandbox) restore(before paddock.Limits, err error) error {
	back := s.relimit(before)
	switch {
	case back == nil:
		return err
	case ended(back):
		return errors.Join(err, back)
	}
	return fmt.Errorf("%w (the limits are the new ones, because more than before is in use)", err)
}

// tellRules tells the child which rules about files apply has noted. A child that refuses them is ended,
// because the rest of the change is made.
func (s *sandbox) tellRules(p paddock.Policy) error {
	p.Network = hidden(p.Network)
	err := s.order(paddock.Update{Policy: &p})
	switch {
	case err == nil:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.telling = false
	case !errors.Is(err, protocol.ErrSilent) && !errors.Is(err, protocol.ErrEnded):
		return fmt.Errorf("it refused a change that the host had checked: %s: %w: %w", protocol.Plain(err.Error()), protocol.ErrNonsense, paddock.Internal)
	}
	return err
}

// order has the child make a part of a change.
func (s *sandbox) order(u paddock.Update) error {
	if err := s.control.SetDeadline(time.Now().Add(s.d.answer)); err != nil {
		return s.link.Failed(err)
	}
	_, err := s.link.Ask(protocol.Order{Op: "update", Update: u})
	return err
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
	return s.refuse()
}

// apply makes the part of a change that is the host's alone, in one step: of two changes at once, one is
// made after the other. It notes the rules about files, and reports whether the child must be told of them.
// With alone it then makes no change. It never waits for the child.
func (s *sandbox) apply(ctx context.Context, u paddock.Update, alone bool) (inside bool, err error) {
	select {
	case s.changing <- struct{}{}:
	case <-ctx.Done():
		return false, fmt.Errorf("sandbox %s: %w: %w", s.spec.ID, errChanging, endKind(ctx))
	}
	defer func() { <-s.changing }()
	inside = u.Policy != nil && !s.hasRules(u.Policy.Files)
	if inside && alone {
		return true, nil
	}
	if err := s.updateNetwork(ctx, u.Policy); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.Labels != nil {
		s.labels = maps.Clone(u.Labels)
	}
	if inside {
		s.files, s.telling = filesOf(*u.Policy), true
	}
	return inside, nil
}

// hasRules reports whether the child has these rules about files.
func (s *sandbox) hasRules(p paddock.FilePolicy) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.telling && slices.Equal(s.files.DenyRead, p.DenyRead) && slices.Equal(s.files.DenyWrite, p.DenyWrite)
}

// filesOf returns the rules about files that this tier has.
func filesOf(p paddock.Policy) paddock.FilePolicy {
	return paddock.FilePolicy{DenyRead: slices.Clone(p.Files.DenyRead), DenyWrite: slices.Clone(p.Files.DenyWrite)}
}

// Pause has the child hold all tasks, and then stops the child: what reaches no checkpoint stands
// still too. What only the child knows is asked before.
func (s *sandbox) Pause(ctx context.Context) error {
	return s.converse(ctx, func() error {
		if s.isPaused() {
			return nil
		}
		if _, err := s.link.Ask(protocol.Order{Op: "pause"}); err != nil {
			return err
		}
		r, err := s.link.Ask(protocol.Order{Op: "status"})
		if ended(err) {
			return err // the child is, or is ended
		}
		s.setPaused(true, r.Status)
		s.cpu.pause(true)
		s.Rest()
		return nil
	})
}

// Resume undoes Pause. A child that does not obey is paused still.
func (s *sandbox) Resume(ctx context.Context) error {
	return s.converse(ctx, func() error {
		s.cpu.pause(false)
		if _, err := s.link.Ask(protocol.Order{Op: "resume"}); err != nil {
			s.cpu.pause(s.isPaused())
			return err
		}
		s.setPaused(false, nil)
		return nil
	})
}

// awake has a child that is paused go on for an exchange, which the caller has begun. Its tasks
// stand still meanwhile, where they can be made to.
func (s *sandbox) awake(exchange func() error) error {
	s.cpu.pause(false)
	defer func() { s.cpu.pause(s.isPaused()) }()
	return exchange()
}

func (s *sandbox) setPaused(paused bool, told *protocol.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused, s.told = paused, told
}

// before returns what a child told before it was paused, and whether it is.
func (s *sandbox) before() (told *protocol.Status, paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told, s.paused
}
