package guest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
	"github.com/paddock-sandbox/paddock/internal/outputring"
)

// A Server is the agent. Its methods are safe for many goroutines at once.
type Server struct {
	settled sync.Mutex
	o       Options // Env and Dir are guarded by settled; the rest never changes

	names     names // of users and groups
	processes table
	wg        sync.WaitGroup // everything that runs for a process
	stop      chan struct{}  // ends the reaper
	asides    asides         // transfers past the calls
	sockets   sockets        // on which it listens for the host
	turns     turns
	answerer  *answerer

	probing sync.Mutex
	probed  bool // guarded by probing
}

// New starts an agent. Close ends it.
func New(o Options) (*Server, error) {
	if o.Kept < 0 {
		return nil, fmt.Errorf("keep %d bytes of output: %w", o.Kept, paddock.Invalid)
	}
	if o.Kept == 0 {
		o.Kept = outputring.DefaultKept
	}
	o.Kept = max(o.Kept, 4096)
	if o.StartProcess == nil {
		o.StartProcess = forkExec
	}
	s := &Server{o: o, stop: make(chan struct{}), turns: newTurns()}
	s.answerer = newAnswerer(&handler{s: s}, s.pass)
	s.processes.byPID = map[int]*process{}
	if o.Init {
		s.wg.Go(func() {
			if s.pass(nil) { // until then whoever builds the boundary waits for its own children
				s.reaper(s.stop)
			}
		})
	}
	return s, nil
}

// Settle changes the base environment of commands that start from now on, and the working directory of
// commands that name none.
func (s *Server) Settle(env map[string]string, dir string) {
	s.settled.Lock()
	defer s.settled.Unlock()
	s.o.Env, s.o.Dir = env, dir
}

// Own sets the user that commands run as, if New did not know it. Call it before the gate opens.
func (s *Server) Own(u User) { s.o.User = u }

// settings gives what Settle has changed.
func (s *Server) settings() (env map[string]string, dir string) {
	s.settled.Lock()
	defer s.settled.Unlock()
	return s.o.Env, s.o.Dir
}

// pass waits for the gate. It is false where the agent, or whoever gives done,
// ended before.
func (s *Server) pass(done <-chan struct{}) bool {
	if s.o.Gate == nil {
		return true
	}
	select {
	case <-s.o.Gate:
		return true
	case <-done:
	case <-s.stop:
	}
	return false
}

// Close kills every process that was started and waits until all is gone.
// Closing twice is fine.
func (s *Server) Close() error {
	t := &s.processes
	t.starting.Lock() // nothing is being started now, and nothing will be
	t.mu.Lock()
	again := t.closed
	t.closed = true
	all := make([]*process, 0, len(t.byPID))
	for _, p := range t.byPID {
		all = append(all, p)
	}
	t.mu.Unlock()
	t.starting.Unlock()
	for _, p := range all {
		p.kill()
		p.out.Close()
		p.outlets.close()
	}
	for _, p := range all {
		<-p.ended
	}
	if !again {
		close(s.stop)
	}
	s.wg.Wait()
	return nil
}

// probeTime bounds the command that shows that commands run.
const probeTime = 20 * time.Second

// probe runs a command that does nothing, once. A root without any program
// cannot have one; that its execution was refused for that reason only, inside
// the boundary, is proof enough.
func (s *Server) probe(ctx context.Context) error {
	s.probing.Lock()
	defer s.probing.Unlock()
	if s.probed {
		return nil
	}
	try := [][]string{{"true"}}
	if s.o.User.Shell != "" {
		try = append(try, []string{s.o.User.Shell, "-c", ":"})
	}
	for _, args := range try {
		err := s.run(ctx, args)
		var missing *paddock.StartError
		if errors.As(err, &missing) && missing.Code == 127 {
			continue
		}
		if err != nil {
			return fmt.Errorf("run a first command: %w", err)
		}
		break
	}
	s.probed = true
	return nil
}

// run runs a hidden command to its end.
func (s *Server) run(ctx context.Context, args []string) error {
	r := &guestpb.StartRequest{Timeout: int64(probeTime)}
	for _, a := range args {
		r.Args = append(r.Args, []byte(a))
	}
	c, err := s.command(ctx, r)
	if err != nil {
		return err
	}
	p, _, err := s.start(ctx, c, false, 0, true)
	if err != nil {
		return err
	}
	select {
	case <-p.ended:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if e := p.exited(0); e.GetCause() != guestpb.Cause_CAUSE_EXITED || e.GetCode() != 0 {
		return fmt.Errorf("%s ended with code %d: %w", args[0], e.GetCode(), paddock.Unavailable)
	}
	return nil
}
