package box

import (
	"bufio"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

const sweeperArgv0 = "paddock-sweeper"

// sweeperDelay is the minimum age of ephemeral sandboxes before a sweeper is started for
// them. Most commands end sooner, and need none. If this process is killed before that, the
// next driver removes the empty control group.
const sweeperDelay = 40 * time.Millisecond

// sweepers starts the process that waits for this one to die, and then removes the control
// groups of its ephemeral sandboxes. The kernel removes everything else. The process only
// runs while there are such sandboxes.
type sweepers struct {
	mu    sync.Mutex
	dirs  map[int][]string // guarded by mu: directories to sweep, by ticket
	next  int              // guarded by mu
	timer *time.Timer      // guarded by mu; nil while no finished sandbox needs a sweeper
	pipe  *os.File         // guarded by mu; nil until it runs
	pid   int              // guarded by mu
}

// watch adds a control group's directories, until the returned function is called. That may
// be called again. No process is started before made is called, because making a sandbox
// needs the processor.
func (s *sweepers) watch(dirs []string) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dirs == nil {
		s.dirs = map[int][]string{}
	}
	ticket := s.next
	s.next++
	s.dirs[ticket] = dirs
	s.tell(dirs)
	return func() { s.forget(ticket) }
}

// made reports that a sandbox with a watched control group was made.
func (s *sweepers) made() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil && len(s.dirs) > 0 {
		s.timer = time.AfterFunc(sweeperDelay, s.start)
	}
}

// tell sends directories to the process, if it runs. The caller holds mu.
func (s *sweepers) tell(dirs []string) {
	if s.pipe != nil {
		// If the sweeper died, the next driver sweeps.
		_, _ = s.pipe.WriteString(strings.Join(dirs, "\n") + "\n")
	}
}

func (s *sweepers) forget(ticket int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.dirs, ticket)
	if len(s.dirs) > 0 || s.timer == nil {
		return
	}
	s.timer.Stop()
	s.timer = nil
	if s.pipe == nil {
		return
	}
	// It has nothing left to do.
	_ = syscall.Kill(s.pid, syscall.SIGKILL)
	s.pipe.Close()
	s.pipe = nil
	for {
		if _, err := syscall.Wait4(s.pid, nil, 0, nil); err != syscall.EINTR {
			return
		}
	}
}

func (s *sweepers) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil || s.pipe != nil {
		return
	}
	r, w, err := os.Pipe()
	if err != nil {
		return
	}
	defer r.Close()
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		w.Close()
		return
	}
	defer null.Close()
	pid, err := syscall.ForkExec("/proc/self/exe", []string{sweeperArgv0}, &syscall.ProcAttr{
		Dir: "/", Files: []uintptr{r.Fd(), null.Fd(), null.Fd()}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		w.Close()
		return
	}
	s.pipe, s.pid = w, pid
	for _, dirs := range s.dirs {
		s.tell(dirs)
	}
}

// sweeperMain is the process. It reads directories until the driver's process ends, and
// removes them when their last process has died.
func sweeperMain() {
	_ = sys.CloseFrom(3)
	var dirs []string
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		dirs = append(dirs, lines.Text())
	}
	// The boxes die with the driver's process, but frozen ones must thaw first.
	for i := range 600 {
		left := dirs[:0]
		for _, dir := range dirs {
			_ = os.WriteFile(dir+"/freezer.state", []byte("THAWED"), 0)
			_ = os.WriteFile(dir+"/cgroup.freeze", []byte("0"), 0)
			_ = os.WriteFile(dir+"/cgroup.kill", []byte("1"), 0)
			if err := syscall.Rmdir(dir); err != nil && err != syscall.ENOENT {
				left = append(left, dir)
			}
		}
		if dirs = left; len(dirs) == 0 {
			break
		}
		<-time.After(time.Duration(min(5+i, 200)) * time.Millisecond)
	}
	os.Exit(0)
}
