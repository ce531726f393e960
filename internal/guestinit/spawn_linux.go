package guestinit

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/kernel"
	"github.com/paddock-sandbox/paddock/internal/seccomp"
)

// A spawner is the thread that starts commands. What it has given up, none of
// them ever has.
type spawner struct {
	calls  chan func()
	count  *count
	user   int                  // commands run as
	filter []kernel.Instruction // of each command, beside what the thread has

	held, each []kernel.Instruction // filter's parts, once it is divided
}

func newSpawner(dir string) (*spawner, error) {
	s := &spawner{
		calls: make(chan func()),
		user:  os.Getuid(),
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
		if err := kernel.TimerSlack(kernel.UsualSlack); err != nil { // the agent's own may be another
			return err
		}
		if err := kernel.DropBounding(); err != nil {
			return err
		}
		if err := kernel.NoNewPrivs(); err != nil {
			return err
		}
		s.filter, err = seccomp.Inside()
		return err
	})
}

// divide has the filter ready for hold.
func (s *spawner) divide() (err error) {
	s.held, s.each, err = seccomp.InsideParts()
	return err
}

// hold puts up on the thread what of the filter of commands it can do without, so that
// each of them is put behind the rest only. In a machine that is emulated a filter
// takes a fifth of a command's start. The filter is divided.
func (s *spawner) hold() error {
	return s.do(func() error {
		err := kernel.SeccompThread(s.held)
		if err == nil {
			s.filter = s.each
		}
		return err
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

// early starts what this program brings itself, before there is a box whose limit
// or user it could have.
func (s *spawner) early(argv0 string, argv []string, attr *guest.ProcAttr) (pid int, err error) {
	err = s.do(func() error {
		pid, err = kernel.Spawn(argv0, argv, &kernel.SpawnAttr{Dir: attr.Dir, Env: attr.Env, Files: attr.Files, User: os.Getuid(), Filter: s.filter})
		return err
	})
	return pid, err
}

// start is guest.Options.StartProcess.
func (s *spawner) start(argv0 string, argv []string, attr *guest.ProcAttr) (pid int, err error) {
	a := &kernel.SpawnAttr{
		Dir: attr.Dir, Env: attr.Env, Files: attr.Files, Terminal: attr.Terminal, User: s.user, Filter: s.filter,
		Group: s.count.procs, Count: s.count.now, Most: int(s.count.most.Load()),
	}
	if u := attr.User; u != nil {
		if err := another(u); err != nil {
			return 0, err
		}
		a.User, a.GID, a.Other = u.UID, u.GID, true
	}
	err = s.do(func() error {
		pid, err = kernel.Spawn(argv0, argv, a)
		return err
	})
	return pid, err
}

// another refuses users whom commands may not be: the agent is one of those, who
// could signal and trace it, and the control groups are theirs.
func another(u *guest.User) error {
	if u.UID < 0 || u.UID >= beyond || u.GID < 0 || u.GID >= beyond {
		return fmt.Errorf("commands as user %d in group %d: %w", u.UID, u.GID, paddock.Unsupported)
	}
	return nil
}

// signal is guest.Options.Signal.
func (s *spawner) signal(u *guest.User, pid int, sig syscall.Signal) error {
	if err := another(u); err != nil {
		return err
	}
	return s.do(func() error { return kernel.SignalAs(u.UID, pid, sig) })
}
