package parent

import (
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/parent/protocol"
)

// A started process is a child. Its descriptors are its starter's.
type started struct {
	PID     int
	Guest   int // a socket to its guest
	Control int // a socket to what the guest is in
	Stderr  int // a pipe, whose reading end does not block: a read can have a deadline
}

// spawn executes a program as a child, in a session of its own and without an environment. It
// is killed when the calling thread ends.
func spawn(program string) (p started, err error) {
	var open, closed []int // closed in case of an error, and in any case
	defer func() {
		if err != nil {
			closed = append(closed, open...)
		}
		for _, fd := range closed {
			_ = syscall.Close(fd)
		}
	}()
	pair := func(make func(*[2]int) error) (ours, theirs int) {
		var fds [2]int
		if err != nil {
			return 0, 0
		}
		if err = make(&fds); err != nil {
			return 0, 0
		}
		open, closed = append(open, fds[0]), append(closed, fds[1])
		return fds[0], fds[1]
	}
	socket := func(fds *[2]int) (err error) {
		*fds, err = syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		return err
	}
	var guest, control, stderr int
	p.Guest, guest = pair(socket)
	p.Control, control = pair(socket)
	p.Stderr, stderr = pair(func(fds *[2]int) error { return syscall.Pipe2(fds[:], syscall.O_CLOEXEC) })
	if err != nil {
		return started{}, err
	}
	// The two ends have flags of their own, so the child's end blocks.
	if err := syscall.SetNonblock(p.Stderr, true); err != nil {
		return started{}, err
	}
	null, err := syscall.Open("/dev/null", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return started{}, err
	}
	closed = append(closed, null)
	p.PID, err = syscall.ForkExec(program, []string{protocol.ChildName}, &syscall.ProcAttr{
		Dir: "/", Env: []string{}, Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
		Files: []uintptr{uintptr(null), uintptr(null), uintptr(stderr), protocol.GuestFD: uintptr(guest), protocol.ControlFD: uintptr(control)},
	})
	return p, err
}
