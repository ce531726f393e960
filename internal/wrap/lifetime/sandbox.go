package lifetime

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A sandbox is a sandbox with a lifetime.
type sandbox struct {
	paddock.Sandbox
	e *entry
}

// told replaces the error of a call if the sandbox's time or its budget ended meanwhile.
func (e *entry) told(err error) error {
	if err == nil || !errors.Is(err, paddock.Unavailable) && !errors.Is(err, paddock.NotFound) {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if over := e.over(); over != nil && e.gone {
		return over
	}
	if unpaid := e.unpaid(); unpaid != nil && errors.Is(err, paddock.Unavailable) {
		return unpaid
	}
	return err
}

// amend adds a failed action to a status.
func (e *entry) amend(st *paddock.Status) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.rec.Paused == ByBudget && st.State == paddock.Paused && st.Reason == "" {
		st.Reason = e.spent()
	}
	a := e.trouble()
	if a.failure == nil || st.Reason != "" && st.State == paddock.Dead {
		return
	}
	why := fmt.Sprintf("its terms could not be applied, %d times so far: %v", a.failures, a.failure)
	if st.Reason != "" { // the sandbox itself may have caused it, and must not hide this one
		why += "; " + st.Reason
	}
	st.Reason = why
}

func (s *sandbox) Status(ctx context.Context) (paddock.Status, error) {
	st, err := s.Sandbox.Status(ctx)
	if err != nil {
		return st, s.e.told(err)
	}
	s.e.amend(&st)
	return st, nil
}

func (s *sandbox) Processes(ctx context.Context) ([]paddock.ProcessInfo, error) {
	all, err := s.Sandbox.Processes(ctx)
	return all, s.e.told(err)
}

func (s *sandbox) Start(ctx context.Context, cmd paddock.Cmd) (paddock.Process, error) {
	done, err := s.e.begin(ctx, true)
	if err != nil {
		return nil, err
	}
	defer done()
	p, err := s.Sandbox.Start(ctx, cmd)
	if err != nil {
		return nil, s.e.told(err)
	}
	return s.e.process(p, cmd.Output), nil
}

func (s *sandbox) Attach(ctx context.Context, pid paddock.PID, out paddock.Output) (paddock.Process, error) {
	done, err := s.e.begin(ctx, true)
	if err != nil {
		return nil, err
	}
	defer done()
	p, err := s.Sandbox.Attach(ctx, pid, out)
	if err != nil {
		return nil, s.e.told(err)
	}
	return s.e.process(p, out), nil
}

func (s *sandbox) FS() paddock.FS { return files{s.Sandbox.FS(), s.e} }

// Dial counts as activity until the connection is closed.
func (s *sandbox) Dial(ctx context.Context, port int) (net.Conn, error) {
	done, err := s.e.begin(ctx, true)
	if err != nil {
		return nil, err
	}
	c, err := s.Sandbox.Dial(ctx, port)
	if err != nil {
		done()
		return nil, s.e.told(err)
	}
	return newConn(c, done), nil
}

func (s *sandbox) Update(ctx context.Context, u paddock.Update) error {
	done, err := s.e.begin(ctx, false)
	if err != nil {
		return err
	}
	defer done()
	return s.e.told(s.Sandbox.Update(ctx, u))
}

func (s *sandbox) Snapshot(ctx context.Context, o paddock.SnapshotOptions) (paddock.SnapshotID, error) {
	done, err := s.e.begin(ctx, false)
	if err != nil {
		return "", err
	}
	defer done()
	id, err := s.Sandbox.Snapshot(ctx, o)
	return id, s.e.told(err)
}

// Pause is a pause by a person: no call resumes the sandbox.
func (s *sandbox) Pause(ctx context.Context) error {
	wished, done := s.e.wished(ctx)
	defer done()
	if err := s.e.takeWished(wished); err != nil {
		return err
	}
	defer s.e.leave()
	s.e.mu.Lock()
	paused, err := s.e.rec.Paused, s.e.over()
	active := s.e.d.clock.now().Add(-time.Since(s.e.active))
	s.e.mu.Unlock()
	if err != nil {
		return err
	}
	bound, cancel := context.WithTimeout(wished, actTime) // nobody must wait for longer
	defer cancel()
	if err := s.Sandbox.Pause(bound); err != nil {
		return s.e.cutShort(bound, s.e.told(err))
	}
	defer s.e.d.schedule(s.e)
	s.e.mu.Lock()
	s.e.pending, s.e.unpaused = false, unpaused{}
	s.e.asked.succeeded()
	s.e.mu.Unlock()
	if paused == ByPerson || paused == ByDeadline || paused == ByLease || paused == ByBudget {
		return nil
	}
	return s.e.save(ctx, func(r *Record) { r.Paused, r.Active = ByPerson, active })
}

// Resume resumes a paused sandbox, but not past its deadline. It renews the lease.
func (s *sandbox) Resume(ctx context.Context) error {
	wished, done := s.e.wished(ctx)
	defer done()
	if err := s.e.takeWished(wished); err != nil {
		return err
	}
	defer s.e.leave()
	s.e.mu.Lock()
	rec, err := s.e.rec, s.e.over()
	if err == nil && rec.Paused != ByDeadline { // which says what is to be done first
		err = s.e.unpaid()
	}
	s.e.renewed = time.Now() // and again at its end: the lease must not end meanwhile
	s.e.mu.Unlock()
	if err != nil {
		return err
	}
	if rec.Paused == ByDeadline {
		return fmt.Errorf("sandbox %s was paused %s; extend it: %w", s.e.id, rec.words(ByDeadline), paddock.Conflict)
	}
	bound, cancel := context.WithTimeout(wished, actTime) // as above
	defer cancel()
	if err := s.Sandbox.Resume(bound); err != nil {
		return s.e.cutShort(bound, s.e.told(err))
	}
	s.e.runs(ctx)
	return nil
}

func (s *sandbox) Remove(ctx context.Context) error {
	if err := s.Sandbox.Remove(ctx); err != nil {
		return err
	}
	s.e.mu.Lock()
	gone := s.e.gone
	s.e.mu.Unlock()
	if !gone {
		s.e.drop(ctx)
	}
	return nil
}

// Spec implements paddock.Specified.
func (s *sandbox) Spec(ctx context.Context) (paddock.Spec, error) {
	return paddock.SpecOf(ctx, s.Sandbox)
}

// Journal implements paddock.Journaled. A step that goes on counts as activity. To read the journal, and to undo, does not.
func (s *sandbox) Journal() paddock.Journal {
	j, err := paddock.JournalOf(s.Sandbox)
	if err != nil {
		return nil
	}
	return &journal{j, s.e}
}

type journal struct {
	paddock.Journal
	e *entry
}

func (j *journal) Begin(ctx context.Context, kind string, command []string) (end func(exit int), err error) {
	done, err := j.e.begin(ctx, true)
	if err != nil {
		return nil, err
	}
	ended, err := j.Journal.Begin(ctx, kind, command)
	if err != nil {
		done()
		return nil, j.e.told(err)
	}
	return func(exit int) {
		defer done()
		ended(exit)
	}, nil
}
