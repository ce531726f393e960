package kernel

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// WhileHeld calls f while a process stands still before the first instruction of
// its program, and then lets it go. The calling thread has started it, with
// syscall.SysProcAttr.Ptrace, and it is not traced any more afterwards. If f
// fails it is killed and reaped. For one that has ended already f is not called,
// and it stays to be reaped.
func WhileHeld(pid int, f func() error) error {
	early, held, err := awaitTrap(pid)
	if err == nil && held {
		err = f()
	}
	if err != nil {
		_ = unix.Kill(pid, unix.SIGKILL)
		for {
			if _, e := unix.Wait4(pid, nil, 0, nil); !errors.Is(e, unix.EINTR) {
				return err
			}
		}
	}
	if !held {
		return nil
	}
	// Both fail only for one that was killed meanwhile.
	for _, sig := range early {
		_ = unix.Kill(pid, sig)
	}
	_ = ptrace(unix.PTRACE_DETACH, pid, 0)
	return nil
}

// awaitTrap waits for the trap that execution ends in. Signals that come before
// it are held back and told; a process that does nothing but answer to signals is
// given up.
func awaitTrap(pid int) (early []syscall.Signal, held bool, err error) {
	const (
		trapped = 4 // CLD_TRAPPED
		many    = 100
	)
	for range many {
		// The end is for whoever reaps it to collect, so this only looks.
		var info [128]byte // siginfo_t
		if err := waitid(pid, &info); err != nil {
			return early, false, err
		}
		if code := *(*int32)(unsafe.Pointer(&info[8])); code != trapped {
			return early, false, nil
		}
		// waitid would say the signal too, but not in gVisor.
		if err := ptrace(unix.PTRACE_GETSIGINFO, pid, uintptr(unsafe.Pointer(&info))); err != nil {
			if errors.Is(err, unix.ESRCH) {
				continue // it was killed meanwhile
			}
			return early, false, err
		}
		sig := syscall.Signal(*(*int32)(unsafe.Pointer(&info[0])))
		if sig == syscall.SIGTRAP {
			return early, true, nil
		}
		early = append(early, sig)
		if err := ptrace(unix.PTRACE_CONT, pid, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return early, false, err
		}
	}
	return early, false, fmt.Errorf("%d signals before the first instruction: %w", many, unix.EAGAIN)
}

func waitid(pid int, info *[128]byte) error {
	for {
		_, _, e := unix.Syscall6(unix.SYS_WAITID, unix.P_PID, uintptr(pid), uintptr(unsafe.Pointer(info)),
			unix.WEXITED|unix.WNOWAIT, 0, 0)
		switch e {
		case 0:
			return nil
		case unix.EINTR:
		default:
			return os.NewSyscallError("waitid", e)
		}
	}
}

func ptrace(request, pid int, data uintptr) error {
	if _, _, e := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(pid), 0, data, 0, 0); e != 0 {
		return os.NewSyscallError("ptrace", e)
	}
	return nil
}
