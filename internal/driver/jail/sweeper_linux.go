package jail

import (
	"bufio"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock/internal/kernel"
)

const sweeperArgv0 = "paddock-sweeper"

// sweeperDelay is how long a driver's ephemeral sandboxes live before a sweeper
// is started for them: most commands are over sooner, and need none.
const sweeperDelay = 20 * time.Millisecond

// A sweeper is a process that waits for this one to die, and then removes the
// control groups of its ephemeral sandboxes. Everything else of theirs the
// kernel removes by itself.
type sweeper struct {
	timer *time.Timer

	mu     sync.Mutex
	dirs   []string // guarded by mu: not told to the process yet
	pipe   *os.File // guarded by mu; nil until it runs
	pid    int      // guarded by mu
	closed bool     // guarded by mu
}

func (d *Driver) sweeper() *sweeper {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sweep == nil {
		s := &sweeper{}
		s.timer = time.AfterFunc(sweeperDelay, func() {
			s.start()
			// What drivers that died within that delay have left.
			_, _ = d.host().Sweep(d.keeps)
		})
		d.sweep = s
	}
	return d.sweep
}

// watch adds a control group's directories.
func (s *sweeper) watch(dirs []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirs = append(s.dirs, dirs...)
	s.tell()
}

// tell passes on what the process does not know yet. The caller holds mu.
func (s *sweeper) tell() {
	if s.pipe == nil || len(s.dirs) == 0 {
		return
	}
	// A sweeper that died cannot be helped; the next driver sweeps.
	_, _ = s.pipe.WriteString(strings.Join(s.dirs, "\n") + "\n")
	s.dirs = nil
}

func (s *sweeper) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
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
	s.tell()
}

// close ends the process. Nothing is left for it to do.
func (s *sweeper) close() {
	s.timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	if s.pipe == nil {
		return
	}
	_ = syscall.Kill(s.pid, syscall.SIGKILL)
	s.pipe.Close()
	for {
		if _, err := syscall.Wait4(s.pid, nil, 0, nil); err != syscall.EINTR {
			return
		}
	}
}

// sweeperMain is the process: it reads directories until the driver's process
// is gone, and removes them when their last process has died.
func sweeperMain() {
	_ = kernel.CloseFrom(3)
	var dirs []string
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		dirs = append(dirs, lines.Text())
	}
	// The boxes die with the driver's process; a frozen one must thaw first.
	for range 200 {
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
		time.Sleep(25 * time.Millisecond)
	}
	os.Exit(0)
}
