package guest

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"github.com/creack/pty"

	"github.com/paddock-sandbox/paddock"
)

// openTerminal makes a terminal of a size: the agent's side and the command's.
func openTerminal(size *paddock.Size) (master, slave *os.File, err error) {
	made, slave, err := pty.Open()
	if err != nil {
		return nil, nil, fmt.Errorf("open terminal: %w", err)
	}
	// The package leaves the descriptor in blocking mode, which would hold a
	// thread per terminal: take another one.
	defer made.Close()
	master, err = pollable(made)
	if err != nil {
		_ = slave.Close()
		return nil, nil, fmt.Errorf("open terminal: %w", err)
	}
	if err := resize(master, size); err != nil {
		_ = slave.Close()
		_ = master.Close()
		return nil, nil, err
	}
	return master, slave, nil
}

// pollable gives another descriptor of f, in non-blocking mode.
func pollable(f *os.File) (*os.File, error) {
	fd, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_DUPFD_CLOEXEC, 0)
	if errno != 0 {
		return nil, os.NewSyscallError("fcntl", errno)
	}
	if err := syscall.SetNonblock(int(fd), true); err != nil {
		_ = syscall.Close(int(fd))
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(fd, f.Name()), nil
}

func resize(f *os.File, size *paddock.Size) error {
	w := struct{ rows, cols, x, y uint16 }{rows: size.Rows, cols: size.Cols}
	if err := control(f, syscall.TIOCSWINSZ, unsafe.Pointer(&w)); err != nil {
		return fmt.Errorf("set size of terminal: %w", err)
	}
	return nil
}

// control is ioctl without taking f out of non-blocking mode.
func control(f *os.File, request uintptr, arg unsafe.Pointer) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var errno syscall.Errno
	if err := conn.Control(func(fd uintptr) {
		_, _, errno = syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(arg))
	}); err != nil {
		return err
	}
	if errno != 0 {
		return os.NewSyscallError("ioctl", errno)
	}
	return nil
}

// unread gives how many bytes wait in a pipe or terminal.
func unread(fd uintptr) int {
	var n int32
	const fionread = 0x541b
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, fionread, uintptr(unsafe.Pointer(&n))); errno != 0 {
		return 0
	}
	return int(max(n, 0))
}

// pipe makes a pipe whose end for the agent does not block and whose end for
// the command does. The end that reads is for outlets, which wait in their own
// way, so it is not made known to the runtime's.
func pipe(writes bool) (agent, command *os.File, err error) {
	var fd [2]int
	if err := syscall.Pipe2(fd[:], syscall.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	ours, theirs := fd[0], fd[1]
	if !writes {
		agent = os.NewFile(uintptr(ours), "pipe")
	} else {
		ours, theirs = theirs, ours
	}
	if err := syscall.SetNonblock(ours, true); err != nil {
		_ = syscall.Close(fd[0])
		_ = syscall.Close(fd[1])
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	if writes {
		agent = os.NewFile(uintptr(ours), "pipe")
	}
	return agent, os.NewFile(uintptr(theirs), "pipe"), nil
}
