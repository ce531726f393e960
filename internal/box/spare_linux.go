package box

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// spareAfter is how long nobody takes a keeper before the missing spare ones are
// started: who made a sandbox has the machine until then.
const spareAfter = 100 * time.Millisecond

// spares are keepers that were started before there is an order for them. To
// start a program of this size takes longer than much of what it then does.
type spareKeepers struct {
	most    int
	program func() (path string, err error) // what a keeper executes

	filling sync.WaitGroup // Add only with mu held, before closed

	mu     sync.Mutex
	idle   []*kernel.Channel // guarded by mu; each ends when it is closed
	timer  *time.Timer       // guarded by mu; nil until one was taken
	closed bool              // guarded by mu
}

// take gives the channel of a keeper that waits for its order, and whether it was
// started before.
func (s *spareKeepers) take() (c *kernel.Channel, spare bool, err error) {
	if s.most == 0 {
		c, err = s.start()
		return c, false, err
	}
	s.mu.Lock()
	switch {
	case s.closed:
		s.mu.Unlock()
		return nil, false, fmt.Errorf("the driver is closed: %w", paddock.Unavailable)
	case s.timer == nil:
		s.timer = time.AfterFunc(spareAfter, s.fill)
	default:
		s.timer.Reset(spareAfter)
	}
	if n := len(s.idle); n > 0 {
		c, s.idle = s.idle[n-1], s.idle[:n-1]
		s.mu.Unlock()
		return c, true, nil
	}
	s.mu.Unlock()
	c, err = s.start()
	return c, false, err
}

// fill starts what is missing. What cannot be started now is started by who needs
// it, and the error is theirs.
func (s *spareKeepers) fill() {
	for s.startOne() {
	}
}

// startOne starts a keeper while nobody waits for it, and tells whether there may
// be more to start.
func (s *spareKeepers) startOne() bool {
	s.mu.Lock()
	if s.closed || len(s.idle) >= s.most {
		s.mu.Unlock()
		return false
	}
	s.filling.Add(1)
	s.mu.Unlock()
	defer s.filling.Done()
	c, err := s.start()
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.idle) >= s.most { // somebody else filled it meanwhile
		_ = c.Close() // which the keeper sees
		return false
	}
	s.idle = append(s.idle, c)
	return true
}

// close ends those that have no order.
func (s *spareKeepers) close() {
	s.mu.Lock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	s.filling.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.idle {
		_ = c.Close() // which the keeper sees
	}
	s.idle = nil
}

// selfProgram is the calling program.
func selfProgram() (string, error) { return "/proc/self/exe", nil }

// start starts a process that waits for its order on the other end of the channel, and
// ends when that is closed before.
func (s *spareKeepers) start() (*kernel.Channel, error) {
	program, err := s.program()
	if err != nil {
		return nil, err
	}
	mine, theirs, err := kernel.NewChannelPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		_ = mine.Close()
		return nil, err
	}
	defer null.Close()
	p, err := os.StartProcess(program, []string{keeperArgv0}, &os.ProcAttr{
		// Its collector is on when its sandbox is there.
		Dir: "/", Env: []string{"GOMAXPROCS=2", "GOGC=off", "GOMEMLIMIT=64MiB"}, Files: []*os.File{null, null, null, theirs}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		_ = mine.Close()
		return nil, fmt.Errorf("start the keeper: %w", err)
	}
	// It is not ours any more: whoever comes after us must be able to wait
	// for nothing. While we live, its end is noticed here.
	go func() { _, _ = p.Wait() }()
	return mine, nil
}
