package guest

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"
)

// watch sees to it that p is reaped. As process 1 the agent has one reaper for
// everything; else it must leave children alone that are not its own, and
// waits for each by number, which costs a thread.
func (s *Server) watch(p *process) {
	if s.o.Init {
		return
	}
	s.wg.Go(func() {
		if pid, err := waitID(pPID, p.pid, syscall.WEXITED|syscall.WNOWAIT); err != nil || pid == 0 {
			return
		}
		s.collect(p)
	})
}

// reaper collects every child, known or orphan, until stopped.
func (s *Server) reaper(stop <-chan struct{}) {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	defer signal.Stop(children)
	for {
		s.reapAll()
		select {
		case <-children:
		case <-stop:
			return
		}
	}
}

// reapAll collects all children that have ended. It looks first and reaps
// then, with the lock of starting held, so that a process is known before it
// is collected and StartProcess may wait for a child of its own.
func (s *Server) reapAll() {
	s.processes.starting.Lock()
	defer s.processes.starting.Unlock()
	for {
		pid, err := waitID(pAll, 0, syscall.WEXITED|syscall.WNOHANG|syscall.WNOWAIT)
		if err != nil || pid == 0 {
			return
		}
		if p := s.processes.running(pid); p != nil {
			s.collect(p)
		} else {
			_, _ = syscall.Wait4(pid, nil, 0, nil)
		}
	}
}

// collect reaps a process that has ended.
func (s *Server) collect(p *process) {
	p.reap(func() (status syscall.WaitStatus, usage *syscall.Rusage) {
		usage = &syscall.Rusage{}
		for {
			_, err := syscall.Wait4(p.pid, &status, 0, usage)
			if err != syscall.EINTR {
				return status, usage
			}
		}
	})
}

const (
	pAll = 0
	pPID = 1
)

// waitID gives the number of a child that has ended.
func waitID(kind, id, options int) (int, error) {
	var info [128]byte // siginfo_t; si_pid is at 16 on 64-bit machines
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, uintptr(kind), uintptr(id),
			uintptr(unsafe.Pointer(&info)), uintptr(options), 0, 0)
		switch errno {
		case 0:
			return int(*(*int32)(unsafe.Pointer(&info[16]))), nil
		case syscall.EINTR:
		default:
			return 0, os.NewSyscallError("waitid", errno)
		}
	}
}
