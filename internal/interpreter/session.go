package interpreter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A session is a context with its kernel, if one runs.
type session struct {
	i       *Interpreter
	context Context
	env     map[string]string

	gone    atomic.Bool  // it was removed
	waiting atomic.Int32 // cells that wait for their turn

	turn chan struct{} // held by who runs a cell or starts a kernel
	left *leftover     // guarded by turn; a kernel of an earlier process

	mu   sync.Mutex
	live *kernel // guarded by mu
}

// A leftover is a kernel that an earlier process started.
type leftover struct {
	pid  paddock.PID
	mark string
	from int64
}

func (i *Interpreter) session(c Context, env map[string]string) *session {
	return &session{i: i, context: c, env: env, turn: make(chan struct{}, 1)}
}

// take waits for the session's turn.
func (s *session) take(ctx context.Context) error {
	if s.waiting.Add(1) > maxWaiting {
		s.waiting.Add(-1)
		return fmt.Errorf("context %s: %d cells wait already: %w", s.context.ID, maxWaiting, paddock.Exhausted)
	}
	defer s.waiting.Add(-1)
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ended(ctx)
	case <-s.i.ctx.Done():
		return fmt.Errorf("the interpreter is closed: %w", paddock.Unavailable)
	}
	if s.gone.Load() {
		<-s.turn
		return fmt.Errorf("context %s: it was removed: %w", s.context.ID, paddock.NotFound)
	}
	return nil
}

// ended gives the error of a context that ended.
func ended(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", paddock.Timeout, ctx.Err())
	}
	return fmt.Errorf("%w: %w", paddock.Canceled, ctx.Err())
}

// ready makes sure that a kernel runs.
func (s *session) ready(ctx context.Context) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer func() { <-s.turn }()
	_, err := s.kernel(ctx)
	return err
}

// run runs a cell.
func (s *session) run(ctx context.Context, c Cell, tell func(Event) error) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer func() { <-s.turn }()
	k, err := s.kernel(ctx)
	if err != nil {
		return err
	}
	return k.run(ctx, c, tell)
}

// kernel gives the session's kernel, and starts one where none runs. It needs the
// turn.
func (s *session) kernel(ctx context.Context) (*kernel, error) {
	if k := s.current(); k != nil {
		there, err := s.answers(ctx, k)
		if err != nil {
			return nil, err
		}
		if there {
			return k, nil
		}
		s.forget(k)
	}
	if k, err := s.join(ctx); k != nil || err != nil {
		return k, err
	}
	k, err := s.start(ctx)
	if err != nil {
		return nil, err
	}
	return s.begun(ctx, k)
}

// forget lets go of a kernel that is over. It needs the turn.
func (s *session) forget(k *kernel) {
	if k.lost { // it may live: what was cut is the way to it
		s.left = &leftover{pid: k.p.ID(), mark: k.out.mark, from: -1}
	}
	s.set(nil)
}

// join joins the kernel of an earlier process, if there is one: nil where it has gone.
// One that may live and could not be joined stays where it is, with an error. It needs
// the turn.
func (s *session) join(ctx context.Context) (*kernel, error) {
	if s.left == nil {
		return nil, nil
	}
	k, err := s.rejoin(ctx, s.left)
	switch {
	case ctx.Err() != nil && k == nil:
		return nil, ended(ctx)
	case err != nil:
		return nil, fmt.Errorf("join the kernel of context %s: %w", s.context.ID, err)
	}
	s.left = nil
	if k == nil {
		return nil, nil
	}
	return s.begun(ctx, k)
}

// answers tells whether a kernel is there, between two cells. Over a pause the way to
// one can be lost without a word: one that has been idle is asked, and let go of where
// it does not answer. One that broke the form meanwhile is killed.
func (s *session) answers(ctx context.Context, k *kernel) (bool, error) {
	if k.over() {
		return false, nil
	}
	if time.Since(k.used) < idleTime {
		return true, nil
	}
	c := k.begin(time.Now().UnixNano())
	defer k.end(c)
	k.send(k.l.ping(c.seq))
	err := k.await(ctx, c, answerTime)
	switch {
	case errors.Is(err, errBroken):
		s.i.log.Info("a kernel is killed", "context", s.context.ID, "err", err)
		return false, k.kill(context.WithoutCancel(ctx))
	case err == nil || ctx.Err() != nil:
		return true, nil
	}
	k.p.Release()
	select {
	case <-k.exited:
	case <-ctx.Done():
	}
	return false, nil
}

// begun keeps a kernel, unless its session was removed meanwhile.
func (s *session) begun(ctx context.Context, k *kernel) (*kernel, error) {
	s.set(k)
	if s.gone.Load() {
		return nil, errors.Join(fmt.Errorf("context %s: it was removed: %w", s.context.ID, paddock.NotFound), k.discard(ctx))
	}
	return k, nil
}

func (s *session) current() *kernel {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live
}

func (s *session) set(k *kernel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = k
}

// kill ends the kernel, if one runs, and waits for its end.
func (s *session) kill(ctx context.Context) error {
	if k := s.current(); k != nil {
		return k.kill(ctx)
	}
	select { // none runs: one of an earlier process may, or one is being started
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ended(ctx)
	}
	if left := s.left; left != nil {
		p, err := s.i.o.Sandbox.Attach(ctx, left.pid, paddock.Output{Detached: true})
		if err == nil {
			err = p.Signal(ctx, sigKill)
			p.Release()
		}
		if err := killed(err); err != nil {
			return fmt.Errorf("kill a kernel: %w", err)
		}
		s.left = nil
		return nil
	}
	if k := s.current(); k != nil {
		return k.kill(ctx)
	}
	return nil
}

// killed says whether a signal that ends arrived, or came too late, which is as good.
func killed(err error) error {
	if errors.Is(err, paddock.NotFound) {
		return nil
	}
	return err
}

// interrupt interrupts the cell that runs, if one does. Where the kernel was begun by
// an earlier process, or the way to it was lost, it is joined, which interrupts.
func (s *session) interrupt(ctx context.Context) error {
	k := s.current()
	if k != nil && !k.over() {
		k.want()
		return nil
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	default:
		return fmt.Errorf("context %s: nothing runs, its kernel is being started: %w", s.context.ID, paddock.Conflict)
	}
	if k := s.current(); k != nil && k.over() {
		s.forget(k)
	}
	_, err := s.join(ctx)
	return err
}

func (s *session) release() {
	if k := s.current(); k != nil {
		k.p.Release()
	}
}

// start starts a kernel and waits until it is ready.
func (s *session) start(ctx context.Context) (*kernel, error) {
	l := languages()[s.context.Language]
	sb := s.i.o.Sandbox
	st, err := sb.Status(ctx)
	if err != nil {
		return nil, err
	}
	if st.Tier == paddock.Sim {
		return nil, fmt.Errorf("the tier %s runs no program that could be a kernel: %w", st.Tier, paddock.Unsupported)
	}
	t := tag{language: s.context.Language, id: s.context.ID, mark: random(), byDefault: s.context.Default}
	k := s.newKernel(t.mark)
	first := k.begin(0)
	defer k.end(first)
	env := map[string]string{}
	if s.i.o.Env != nil {
		for name, value := range s.i.o.Env() {
			env[name] = value
		}
	}
	for name, value := range s.env {
		env[name] = value
	}
	cmd := paddock.Cmd{Args: l.command(t), Env: env, Dir: s.context.Dir, User: s.i.o.User, Input: true, Output: k.output(0)}
	p, err := sb.Start(ctx, cmd)
	if err != nil {
		var missing *paddock.StartError
		if errors.As(err, &missing) && missing.Code == 127 {
			return nil, lacks(s.context.Language, l)
		}
		return nil, fmt.Errorf("start a kernel: %w", err)
	}
	k.watch(p)
	k.send(l.source(t.mark))
	if err := k.await(ctx, first, startTime); err != nil {
		why := k.early()
		err = errors.Join(err, k.discard(ctx))
		if exit, ok := k.exit(); ok && exit.Code == 127 {
			return nil, lacks(s.context.Language, l)
		}
		if why != "" {
			err = fmt.Errorf("%w: it said %q", err, why)
		}
		return nil, fmt.Errorf("start a kernel for %s: %w", s.context.Language, err)
	}
	k.kept()
	return k, nil
}

func lacks(name Language, l language) error {
	return fmt.Errorf("%s needs %s, which is not in this sandbox: %w", name, l.needs, paddock.Unsupported)
}

// rejoin attaches to a kernel that runs, and waits until it is between two cells: what
// it runs was begun for nobody who is still there, and is interrupted. One that has gone,
// or had to be killed, is nil.
func (s *session) rejoin(ctx context.Context, left *leftover) (*kernel, error) {
	k := s.newKernel(left.mark)
	first := k.begin(time.Now().UnixNano())
	defer k.end(first)
	from := left.from
	if from < 0 {
		all, err := s.i.o.Sandbox.Processes(ctx)
		if err != nil {
			return nil, err
		}
		for _, info := range all {
			if info.PID == left.pid {
				from = info.Next
			}
		}
	}
	p, err := s.i.o.Sandbox.Attach(ctx, left.pid, k.output(max(from, 0)))
	if errors.Is(err, paddock.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	k.watch(p)
	k.send(k.l.ping(first.seq))
	defer k.kept()
	if err = k.await(ctx, first, min(s.i.o.Stop, answerTime)); err == nil {
		return k, nil
	}
	if !k.over() && !errors.Is(err, errBroken) {
		if err = k.stop(ctx, first, s.i.o.Stop); err == nil {
			return k, nil
		}
	}
	if ctx.Err() != nil || s.i.ctx.Err() != nil { // that is no reason to end it
		p.Release()
		return nil, err
	}
	s.i.log.Info("a kernel could not be joined again", "context", s.context.ID, "err", err)
	return nil, k.discard(ctx)
}
