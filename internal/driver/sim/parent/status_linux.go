package parent

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"path"
	"slices"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/description"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/parent/protocol"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
)

// A list is of many users, so a status waits for a child only for a short time.
const (
	busyTime = time.Second     // for other exchanges to end, which may take minutes
	soonTime = 4 * time.Second // for these and the answer; less than a list waits for all
)

// begin notes what the host knows of a new sandbox by itself.
func (s *sandbox) begin() {
	s.born = time.Now()
	s.made = paddock.Status{ID: s.spec.ID, Tier: paddock.Sim, Created: s.born.Round(0), Enforced: description.Controls(s.d.walls)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit(s.spec.Limits)
	s.labels = maps.Clone(s.spec.Labels)
	s.files = filesOf(s.spec.Policy)
}

// place notes the user and the directory, whose names depend on accounts and mounts that the child
// looked up. It may have read a hostile snapshot before it answered.
func (s *sandbox) place(told protocol.Status) {
	s.made.User = protocol.Plain(told.User)
	is := func(m paddock.Mount) bool { return path.Clean(cmp.Or(m.Target, m.Source)) == told.Dir }
	switch {
	case s.spec.Dir != "":
		s.made.Dir = path.Clean(s.spec.Dir)
	case slices.ContainsFunc(s.spec.Mounts, is):
		s.made.Dir = told.Dir
	default:
		s.made.Dir = protocol.Plain(told.Dir)
	}
}

// limit sets the limits. The caller holds mu.
func (s *sandbox) limit(l paddock.Limits) {
	s.asked = l
	s.limits, _ = description.Limits(s.d.o.Limits, l)
	m := &s.most
	m.Memory, m.Disk = max(m.Memory, s.limits.Memory), max(m.Disk, s.limits.Disk)
	m.CPUs, m.PIDs = max(m.CPUs, s.limits.CPUs), max(m.PIDs, s.limits.PIDs)
}

// limitsAsked returns the limits as they were asked for, without the defaults.
func (s *sandbox) limitsAsked() paddock.Limits {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// largest returns the largest limits that the sandbox has had.
func (s *sandbox) largest() paddock.Limits {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

// Status returns what the host knows. Refusals, and the use of memory, come from the child, which may
// be hostile: it can hide them, which the status then says, and what it tells is
// bounded. It cannot make the status fail, and delays it only for a short time.
func (s *sandbox) Status(ctx context.Context) (paddock.Status, error) {
	if s.out != nil {
		s.out.Settle(ctx)
	}
	told, err := s.inside(ctx)
	if s.isGone() {
		return paddock.Status{}, s.removed()
	}
	st := s.known()
	select {
	case <-s.ended:
		st.State, st.Reason = paddock.Dead, s.reason()
	default:
		if err == nil {
			s.believe(&st, told)
		} else {
			st.Reason = protocol.Plain("what was used and what was refused inside is not known: " + err.Error())
		}
	}
	s.network(&st)
	return st, nil
}

// known returns the status without what only the child knows.
func (s *sandbox) known() paddock.Status {
	st := s.made.Clone()
	s.mu.Lock()
	defer s.mu.Unlock()
	st.State, st.Limits, st.Labels = paddock.Ready, s.limits, maps.Clone(s.labels)
	if s.paused {
		st.State = paddock.Paused
	}
	st.Usage = paddock.Usage{Wall: time.Since(s.born), CPU: -1, Memory: -1, MemoryPeak: -1, PIDs: -1}
	if s.cpu != nil {
		st.Usage.CPU = s.cpu.used()
	}
	return st
}

// inside asks the child for its status, until ctx ends or the bound of a status. The exchange itself
// goes on, with its own bound, because an answer that nobody reads would be taken for the next one.
// The error may have the child's words, and its kind means nothing.
func (s *sandbox) inside(ctx context.Context) (protocol.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, soonTime)
	defer cancel()
	turn, cancel := context.WithTimeout(ctx, busyTime)
	defer cancel()
	if turn.Err() != nil {
		return protocol.Status{}, errLate
	}
	select {
	case s.asking <- struct{}{}:
	case <-turn.Done():
		return protocol.Status{}, errBusy
	}
	if told, paused := s.before(); paused { // it stands still
		<-s.asking
		if told == nil {
			return protocol.Status{}, errNothing
		}
		return *told, nil
	}
	answer := make(chan protocol.Reply, 1)
	failed := make(chan error, 1)
	if !s.unlessGone(func() {
		s.asks.Go(func() {
			defer func() { <-s.asking }()
			var r protocol.Reply
			err := s.exchange(func() (err error) {
				r, err = s.link.Ask(protocol.Order{Op: "status"})
				return err
			})
			if err == nil && r.Status == nil {
				err = errNothing
			}
			if err != nil {
				failed <- err
				return
			}
			answer <- r
		})
	}) {
		<-s.asking
		return protocol.Status{}, s.removed()
	}
	select {
	case r := <-answer:
		return *r.Status, nil
	case err := <-failed:
		return protocol.Status{}, err
	case <-ctx.Done():
		return protocol.Status{}, errLate
	}
}

var (
	errLate    = errors.New("its process has not answered in time")
	errNothing = errors.New("its process answered nothing")
)

// unlessGone calls begin before a Remove can begin to wait, and reports whether it did.
func (s *sandbox) unlessGone(begin func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return false
	}
	begin()
	return true
}

// believe adds to a status what a child tells, as far as it can be true.
func (s *sandbox) believe(st *paddock.Status, told protocol.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	memory := s.most.Memory + min(s.most.Disk, math.MaxInt64-s.most.Memory) // files are in memory
	u := told.Usage
	// It never falls: a counter that does is taken for one that began again.
	s.usage.MemoryPeak = max(s.usage.MemoryPeak, min(u.MemoryPeak, memory))
	st.Usage.MemoryPeak = s.usage.MemoryPeak
	st.Usage.Memory, st.Usage.PIDs = min(max(u.Memory, 0), memory), min(max(u.PIDs, 0), s.most.PIDs)
	st.Refused = refusals(told.Refused, st.Created, st.Created.Add(st.Usage.Wall))
}

// maxRefused is how many refusals a status has.
const maxRefused = 1000

// refusals returns the newest refusals that a child tells, made safe, with times between two.
func refusals(list []paddock.Refusal, first, last time.Time) []paddock.Refusal {
	if len(list) == 0 {
		return nil
	}
	list = list[max(0, len(list)-maxRefused):]
	safe := make([]paddock.Refusal, len(list))
	for i, r := range list {
		if r.Time.Before(first) {
			r.Time = first
		}
		if r.Time.After(last) {
			r.Time = last
		}
		safe[i] = paddock.Refusal{
			Time: r.Time, What: protocol.Plain(r.What), Target: r.Target[:min(len(r.Target), protocol.MaxText)],
			Rule: protocol.Plain(r.Rule), Remedy: protocol.Plain(r.Remedy), Count: min(max(r.Count, 1), math.MaxInt32),
		}
	}
	return gatewayclient.FitRefusals(safe, gatewayclient.InsideMax)
}
