package inside

import (
	"runtime"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// A spawner is the thread that starts commands. What it has given up, none of
// them ever has.
type spawner struct {
	calls chan func()
	count *count
}

func newSpawner(dir string) (*spawner, error) {
	s := &spawner{calls: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for call := range s.calls {
			call()
		}
	}()
	return s, s.do(func() (err error) {
		if s.count, err = newCount(dir); err != nil {
			return err
		}
		if err := kernel.OwnFiles(); err != nil {
			return err
		}
		kernel.Umask(0o022)
		if err := kernel.DropBounding(); err != nil {
			return err
		}
		return kernel.NoNewPrivs()
	})
}

// do runs f on the thread.
func (s *spawner) do(f func() error) error {
	done := make(chan error)
	s.calls <- func() { done <- f() }
	return <-done
}

// bound sets what a command may have.
func (s *spawner) bound(o *Settings) error {
	if _, err := kernel.SetResource(kernel.ResourceCore, 0); err != nil {
		return err
	}
	_, err := kernel.SetResource(kernel.ResourceFiles, uint64(o.Files))
	return err
}

// start is guest.Options.StartProcess.
func (s *spawner) start(argv0 string, argv []string, attr *guest.ProcAttr) (pid int, err error) {
	files := make([]uintptr, len(attr.Files))
	for i, f := range attr.Files {
		files[i] = f.Fd()
	}
	sys := &syscall.SysProcAttr{Setsid: true, UseCgroupFD: true, CgroupFD: int(s.count.dir.Fd())}
	if attr.Terminal {
		sys.Setctty, sys.Ctty = true, 0
	}
	err = s.do(func() error {
		pid, err = syscall.ForkExec(argv0, argv, &syscall.ProcAttr{Dir: attr.Dir, Env: attr.Env, Files: files, Sys: sys})
		return err
	})
	runtime.KeepAlive(attr)
	return pid, err
}
