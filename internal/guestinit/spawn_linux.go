package guestinit

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/seccomp"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A spawner is the thread that starts commands. A command never has a privilege that this
// thread has dropped.
type spawner struct {
	calls  chan func()
	count  *count
	user   int               // user of the commands
	filter []sys.Instruction // of each command, in addition to the thread's filter

	held, each []sys.Instruction // the filter's parts, once it is divided
}

func newSpawner(dir string, root bool) (*spawner, error) {
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
		if err := sys.OwnFiles(); err != nil {
			return err
		}
		sys.Umask(0o022)
		if err := sys.TimerSlack(sys.UsualSlack); err != nil { // the agent's own may differ
			return err
		}
		if root {
			return s.trust()
		}
		if err := sys.DropBounding(); err != nil {
			return err
		}
		if err := sys.NoNewPrivs(); err != nil {
			return err
		}
		s.filter, err = seccomp.Inside()
		return err
	})
}

// trust lets commands of root have capabilities, and programs be set-id. A filter without no_new_privs takes
// CAP_SYS_ADMIN, which the thread will not have. So it installs the whole filter now, and works behind it: it starts
// commands by clone, and nothing that it does besides is refused.
func (s *spawner) trust() error {
	filter, err := seccomp.InsideRoot()
	if err != nil {
		return err
	}
	if err := sys.SeccompThread(filter); err != nil {
		return err
	}
	return sys.KeepBounding(sys.DockerCaps())
}

// divide prepares the filter for hold.
func (s *spawner) divide() (err error) {
	s.held, s.each, err = seccomp.InsideParts()
	return err
}

// hold installs the part of the commands' filter that the thread itself can work with, so
// that only the rest remains to be installed for each command. In an emulated machine
// installing the filter takes a fifth of a command's start. divide must have been called.
func (s *spawner) hold() error {
	return s.do(func() error {
		err := sys.SeccompThread(s.held)
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

// bound sets the resource limits of commands.
func (s *spawner) bound(o *Settings) error {
	if _, err := sys.SetResource(sys.ResourceCore, 0); err != nil {
		return err
	}
	_, err := sys.SetResource(sys.ResourceFiles, uint64(o.Files))
	return err
}

// early starts a program that this program brings along, before there is a box with limits
// and a user.
func (s *spawner) early(argv0 string, argv []string, attr *guest.ProcAttr) (pid int, err error) {
	err = s.do(func() error {
		pid, err = sys.Spawn(argv0, argv, &sys.SpawnAttr{Dir: attr.Dir, Env: attr.Env, Files: attr.Files, User: os.Getuid(), Filter: s.filter})
		return err
	})
	return pid, err
}

// start is guest.Options.StartProcess.
func (s *spawner) start(argv0 string, argv []string, attr *guest.ProcAttr) (pid int, err error) {
	a := &sys.SpawnAttr{
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
		pid, err = sys.Spawn(argv0, argv, a)
		return err
	})
	return pid, err
}

// another rejects user numbers from beyond on. One of them is the agent's, which also owns the
// control groups: a command of that user could signal and trace the agent.
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
	return s.do(func() error { return sys.SignalAs(u.UID, pid, sig) })
}
