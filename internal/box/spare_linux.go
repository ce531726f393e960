package box

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/program"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// spareAfter is the delay after the last take before missing spare keepers are started.
// Until then the machine is free for the sandbox that is being made.
const spareAfter = 100 * time.Millisecond

// spareKeepers are keepers that are started before there is an order for them, because
// starting a program of this size takes longer than much of its later work.
type spareKeepers struct {
	most    int
	program func() (*os.File, error) // opens the program of keepers; nil means the calling program

	filling sync.WaitGroup // Add only with mu held, before closed

	mu     sync.Mutex
	idle   []*startedKeeper // guarded by mu
	timer  *time.Timer      // guarded by mu; nil until one was taken
	closed bool             // guarded by mu
}

// A startedKeeper is one that has no order yet.
type startedKeeper struct {
	channel *sys.Channel // closing it ends the keeper
	process *os.Process
	over    chan struct{} // closed when it was reaped
}

// ended reports whether a keeper is of no use any more, and closes its channel then.
func (k *startedKeeper) ended() bool {
	select {
	case <-k.over:
		_ = k.channel.Close()
		return true
	default:
		return false
	}
}

// end ends a keeper that holds nothing.
func (k *startedKeeper) end() {
	_ = k.channel.Close()
	_ = k.process.Kill() // it may be stopped
}

// take returns the channel of a keeper that waits for its order, and whether it was started
// in advance.
func (s *spareKeepers) take() (c *sys.Channel, spare bool, err error) {
	if s.most == 0 {
		return s.takeNew()
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
		c, s.idle = s.idle[n-1].channel, s.idle[:n-1]
		s.mu.Unlock()
		return c, true, nil
	}
	s.mu.Unlock()
	return s.takeNew()
}

func (s *spareKeepers) takeNew() (c *sys.Channel, spare bool, err error) {
	k, err := s.start()
	if err != nil {
		return nil, false, err
	}
	return k.channel, false, nil
}

// fill starts the missing keepers. After a failure, the next caller of take starts one and
// gets the error.
func (s *spareKeepers) fill() {
	for s.startOne() {
	}
}

// startOne starts a keeper in advance, and reports whether more may be missing.
func (s *spareKeepers) startOne() bool {
	s.mu.Lock()
	s.idle = slices.DeleteFunc(s.idle, (*startedKeeper).ended)
	if s.closed || len(s.idle) >= s.most {
		s.mu.Unlock()
		return false
	}
	s.filling.Add(1)
	s.mu.Unlock()
	defer s.filling.Done()
	k, err := s.start()
	if err != nil {
		return false
	}
	s.mu.Lock()
	wanted := !s.closed && len(s.idle) < s.most // it may have been filled meanwhile
	if wanted {
		s.idle = append(s.idle, k)
	}
	s.mu.Unlock()
	if !wanted {
		k.end()
		<-k.over
	}
	return wanted
}

// close ends the keepers without an order, and waits for their end.
func (s *spareKeepers) close() {
	s.mu.Lock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	s.filling.Wait()
	s.mu.Lock()
	idle := s.idle
	s.idle = nil
	s.mu.Unlock()
	for _, k := range idle {
		k.end()
	}
	for _, k := range idle {
		<-k.over
	}
}

// start starts a process that waits for its order on the other end of the channel, and ends
// if the channel is closed first.
func (s *spareKeepers) start() (*startedKeeper, error) {
	path := "/proc/self/exe"
	if s.program != nil {
		exe, err := s.program()
		if err != nil {
			return nil, fmt.Errorf("the keeper's program: %w", err)
		}
		defer exe.Close()
		if err := program.Intact(exe); err != nil {
			return nil, err
		}
		path = fmt.Sprintf("/proc/self/fd/%d", exe.Fd())
	}
	mine, theirs, err := sys.NewChannelPair()
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
	p, err := os.StartProcess(path, []string{keeperArgv0}, &os.ProcAttr{
		// It enables its garbage collector when its sandbox exists.
		Dir: "/", Env: []string{"GOMAXPROCS=2", "GOGC=off", "GOMEMLIMIT=64MiB"}, Files: []*os.File{null, null, null, theirs}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		_ = mine.Close()
		return nil, fmt.Errorf("start the keeper: %w", err)
	}
	k := &startedKeeper{channel: mine, process: p, over: make(chan struct{})}
	// The keeper may outlive the driver and this process. As long as this process lives it
	// reaps the keeper, which would stay a zombie otherwise. So this goroutine ends with the
	// keeper: close waits for those that have no order, and the others are their sandboxes'.
	go func() {
		defer close(k.over)
		_, _ = p.Wait()
	}()
	return k, nil
}
