package inside

import (
	"os"
	"runtime"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/container/filter"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// A spawner is the thread that starts commands. What it has given up, none of
// them ever has.
type spawner struct {
	calls chan func()
	count *count
	who   *syscall.Credential // commands run as
}

func newSpawner(dir string) (*spawner, error) {
	s := &spawner{
		calls: make(chan func()),
		who:   &syscall.Credential{Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid()), NoSetGroups: true},
	}
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
		if err := kernel.NoNewPrivs(); err != nil {
			return err
		}
		program, err := filter.Inside()
		if err != nil {
			return err
		}
		return kernel.SeccompThread(program)
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
//
// A command is put into its group before its first instruction, while this thread
// holds it by tracing. It could be made in there, but only by clone3, which the
// thread's filter refuses, as it must: what clone3 is asked for is in memory, where
// no filter sees it.
func (s *spawner) start(argv0 string, argv []string, attr *guest.ProcAttr) (pid int, err error) {
	files := make([]uintptr, len(attr.Files))
	for i, f := range attr.Files {
		files[i] = f.Fd()
	}
	sys := &syscall.SysProcAttr{Setsid: true, Ptrace: true, Credential: s.who}
	if attr.Terminal {
		sys.Setctty, sys.Ctty = true, 0
	}
	err = s.do(func() error {
		pid, err = syscall.ForkExec(argv0, argv, &syscall.ProcAttr{Dir: attr.Dir, Env: attr.Env, Files: files, Sys: sys})
		if err != nil {
			return err
		}
		return kernel.WhileHeld(pid, func() error { return s.count.enter(pid) })
	})
	runtime.KeepAlive(attr)
	return pid, err
}
