package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/shell"
)

// A Session is a shell that runs one script after another and keeps its state
// in between: variables, functions, the working directory, descriptors, jobs.
// Each script has the limits of a run to itself. A script that reaches one, or
// its timeout, or calls exit, ends the session; the box and its files stay.
//
// Scripts run one at a time: a call waits for those before it.
type Session struct {
	b *box
	p *process

	turn sync.Mutex // held by the call whose script runs

	mu   sync.Mutex
	next *call // guarded by mu: for the shell to take
	over bool  // guarded by mu: no more are coming

	ready chan struct{} // holds one: there is a call, or no more
}

// A Script is what a session runs.
type Script struct {
	Text           string
	Stdin          io.Reader // nil is empty
	Stdout, Stderr io.Writer // nil discards; written by the shell itself: a writer that waits makes it wait
	Timeout        time.Duration
}

// A call is a script on its way.
type call struct {
	Script
	run  *kernel.Run
	last bool // the shell ends with it
	code int
	done chan struct{}

	turn    sync.Mutex // held by whoever writes to Stdout or Stderr
	holding holding    // of Stdout and Stderr
}

// OpenSession starts a session in a sandbox of this driver. Of cmd, Env, Dir
// and User count.
func OpenSession(ctx context.Context, sb paddock.Sandbox, cmd paddock.Cmd) (*Session, error) {
	b, ok := sb.(*box)
	if !ok {
		return nil, fmt.Errorf("a session in a sandbox of another driver: %w", paddock.Unsupported)
	}
	if err := b.enter(); err != nil {
		return nil, err
	}
	defer b.gate.RUnlock()
	if ctx.Err() != nil {
		return nil, ended(ctx, "session")
	}
	p, _, err := b.prepare(paddock.Cmd{Args: []string{"bash"}, Env: cmd.Env, Dir: cmd.Dir, User: cmd.User})
	if err != nil {
		return nil, err
	}
	p.run.End() // it is that of the shell between scripts, which may take any time
	s := &Session{b: b, p: p, ready: make(chan struct{}, 1)}
	b.mu.Lock()
	b.processes[p.ID()] = p
	b.mu.Unlock()
	p.task.GoThen(s.serve, p.finish)
	return s, nil
}

// serve is the shell's task.
func (s *Session) serve(t *kernel.Task) int {
	sh := shell.New(t, shell.Options{Name: "bash"})
	var streams []*kernel.Desc // of the last script
	defer func() { letGo(streams) }()
	for {
		if err := t.AwaitIO(s.ready); err != nil {
			t.Caught() // a signal that the shell handles when it runs the next script
			continue
		}
		s.mu.Lock()
		c, over := s.next, s.over
		s.next = nil
		s.mu.Unlock()
		if over {
			t.SetRun(s.b.kernel.NewRun()) // the EXIT trap has limits too
			return sh.End()
		}
		if c == nil {
			continue
		}
		t.SetRun(c.run)
		letGo(streams)
		streams = c.streams()
		connect(t, streams)
		c.code = sh.RunString(c.Text)
		if c.last || sh.Exited() {
			c.last = true
			c.code = sh.End()
			close(c.done)
			return c.code
		}
		connect(t, streams) // what the script put there instead gets its end
		t.SetRun(s.p.run)
		close(c.done)
	}
}

// streams makes the three streams of a script.
func (c *call) streams() []*kernel.Desc {
	out := &outlet{to: c.Stdout, turn: &c.turn, holding: &c.holding}
	err := &outlet{to: c.Stderr, turn: &c.turn, holding: &c.holding}
	c.holding.hold()
	c.holding.hold()
	list := make([]*kernel.Desc, 0, 3)
	for _, f := range []kernel.File{&inlet{from: c.Stdin}, out, err} {
		list = append(list, kernel.NewDesc(f, "pipe").Hold())
	}
	return list
}

func letGo(streams []*kernel.Desc) {
	for _, d := range streams {
		d.Drop()
	}
}

// connect gives the shell the streams of a script.
func connect(t *kernel.Task, streams []*kernel.Desc) {
	for fd, d := range streams {
		_ = t.SetFD(fd, d, false) // 0 to 2 are always within the limit
	}
}

// Run runs a script in a new shell, as [Session.Run] does, and ends the shell:
// the status is that of its end.
func Run(ctx context.Context, sb paddock.Sandbox, script Script) (exit paddock.Exit, err error) {
	s, err := OpenSession(ctx, sb, paddock.Cmd{})
	if err != nil {
		return paddock.Exit{}, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.runScript(ctx, script, true)
}

// Run runs a script to its end and says how it ended. The end of ctx ends the
// script, and the session with it.
func (s *Session) Run(ctx context.Context, script Script) (paddock.Exit, error) {
	return s.runScript(ctx, script, false)
}

func (s *Session) runScript(ctx context.Context, script Script, last bool) (paddock.Exit, error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if err := s.b.enter(); err != nil {
		return paddock.Exit{}, err
	}
	s.b.gate.RUnlock()
	if s.p.hasEnded() {
		return paddock.Exit{}, s.gone()
	}
	c := &call{Script: script, run: s.b.kernel.NewRun(), last: last, done: make(chan struct{})}
	began := time.Now()
	if script.Timeout > 0 {
		c.run.Within(script.Timeout)
		timer := time.AfterFunc(script.Timeout, func() { c.run.Stop(&timedOut{script.Timeout}) })
		defer timer.Stop()
	}
	s.mu.Lock()
	s.next = c
	s.mu.Unlock()
	s.wake()
	select {
	case <-c.done:
	case <-s.p.done:
	case <-ctx.Done():
		c.run.Stop(fmt.Errorf("its caller gave it up: %w", paddock.Canceled))
		<-s.p.done
		return paddock.Exit{}, ended(ctx, "run")
	}
	over := s.finished(c)
	c.holding.settle(c.run, ctx.Done(), !over)
	select {
	case <-c.done:
		return paddock.Exit{Code: c.code, Cause: paddock.Exited, Usage: paddock.Usage{
			Wall: time.Since(began), CPU: c.run.Busy(), MemoryPeak: s.b.kernel.Heap().Peak(),
		}}, nil
	default:
	}
	return s.p.exit, nil
}

// finished tells, after a script, whether the shell has ended with it, and
// waits for that.
func (s *Session) finished(c *call) bool {
	select {
	case <-c.done:
		if !c.last {
			return false
		}
	default:
	}
	<-s.p.done
	return true
}

func (s *Session) gone() error {
	why := s.p.exit.Reason
	if why == "" {
		why = "its shell has ended"
	}
	return fmt.Errorf("the session is over: %s: %w", why, paddock.Unavailable)
}

func (s *Session) wake() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// Close ends the session, as the end of its input would: the EXIT trap runs.
func (s *Session) Close() error {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.wake()
	<-s.p.done
	return nil
}
