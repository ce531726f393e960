//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// System calls that read their strings from our memory, so that a second thread can change
// them.

func openRaw(p []byte, flags int, mode uintptr) (int, error) {
	cwd := unix.AT_FDCWD
	return tryFD(syscall.Syscall6(unix.SYS_OPENAT, uintptr(cwd), uintptr(unsafe.Pointer(&p[0])), uintptr(flags), mode, 0, 0))
}

func mkdirRaw(p []byte) error {
	cwd := unix.AT_FDCWD
	return try0(syscall.Syscall(unix.SYS_MKDIRAT, uintptr(cwd), uintptr(unsafe.Pointer(&p[0])), 0o755))
}

func renameRaw(from, to []byte) error {
	cwd := unix.AT_FDCWD
	return try0(syscall.Syscall6(unix.SYS_RENAMEAT2, uintptr(cwd), uintptr(unsafe.Pointer(&from[0])), uintptr(cwd), uintptr(unsafe.Pointer(&to[0])), 0, 0))
}

// cloneFlags makes a child with flags. The child only exits.
func cloneFlags(flags uintptr) error {
	runtime.LockOSThread()
	// As with vfork, the child borrows our stack and exits at once, without Go code that
	// could grow it.
	pid, err := childExits(unix.SYS_CLONE, flags|uintptr(unix.SIGCHLD), 0)
	return reap(pid, err)
}

func clone3Flags(flags uintptr) error {
	runtime.LockOSThread()
	args := struct{ flags, pidfd, childTID, parentTID, exitSignal, stack, stackSize, tls, setTID, setTIDSize, cgroup uint64 }{
		flags: uint64(flags), exitSignal: uint64(unix.SIGCHLD),
	}
	pid, err := childExits(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args))
	runtime.KeepAlive(&args)
	return reap(pid, err)
}

// childExits makes the call. If it returns 0, this is the child, which exits.
//
//go:nosplit
//go:norace
func childExits(nr, a, b uintptr) (uintptr, syscall.Errno) {
	pid, _, err := syscall.RawSyscall6(nr, a, b, 0, 0, 0, 0)
	if pid == 0 && err == 0 {
		for {
			_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	return pid, err
}

func reap(pid uintptr, err syscall.Errno) error {
	if err != 0 {
		return err
	}
	var ws unix.WaitStatus
	_, _ = unix.Wait4(int(pid), &ws, unix.WALL, nil)
	return nil
}

// forkedCall makes one call in a child with one thread, and returns the result.
func forkedCall(nr, arg uintptr) protocol.Try {
	runtime.LockOSThread()
	pid, err := childCalls(nr, arg)
	if err != 0 {
		return refused(err)
	}
	var ws unix.WaitStatus
	if _, err := unix.Wait4(int(pid), &ws, 0, nil); err != nil {
		return refused(err)
	}
	if ws.Signaled() {
		return protocol.Try{Outcome: protocol.Denied, Errno: signalName(ws.Signal()), Detail: "the child was killed"}
	}
	if ws.ExitStatus() != 0 {
		return refused(syscall.Errno(ws.ExitStatus()))
	}
	return reached("the call succeeded")
}

//go:nosplit
//go:norace
func childCalls(nr, arg uintptr) (uintptr, syscall.Errno) {
	pid, _, err := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if pid == 0 && err == 0 {
		_, _, e := syscall.RawSyscall(nr, arg, 0, 0)
		for {
			_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(e), 0, 0)
		}
	}
	return pid, err
}

func briefFromEnv() (*protocol.Brief, error) {
	b := new(protocol.Brief)
	if err := json.Unmarshal([]byte(os.Getenv(protocol.BriefEnv)), b); err != nil {
		return nil, fmt.Errorf("read brief: %w", err)
	}
	return b, nil
}

func printHandle(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want a path")
	}
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, args[0], 0)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(protocol.Canary{Handle: h.Bytes(), HType: int(h.Type())})
}

// pausedChild makes a task that waits for a signal forever.
func pausedChild() error {
	runtime.LockOSThread()
	_, err := childWaits()
	if err != 0 {
		return err
	}
	return nil
}

//go:nosplit
//go:norace
func childWaits() (uintptr, syscall.Errno) {
	pid, _, err := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if pid == 0 && err == 0 {
		for {
			_, _, _ = syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
		}
	}
	return pid, err
}

// reapAll kills every child.
func reapAll() {
	for _, pid := range processes() {
		var st unix.WaitStatus
		if p, err := unix.Wait4(pid, &st, unix.WNOHANG, nil); err == nil && p == 0 {
			_ = unix.Kill(pid, unix.SIGKILL)
			_, _ = unix.Wait4(pid, &st, 0, nil)
		}
	}
}

// execveat executes the program in fd.
func execveat(fd int, args []string) error {
	argv, err := syscall.SlicePtrFromStrings(args)
	if err != nil {
		return err
	}
	envv, err := syscall.SlicePtrFromStrings(os.Environ())
	if err != nil {
		return err
	}
	empty, err := unix.BytePtrFromString("")
	if err != nil {
		return err
	}
	return try0(syscall.Syscall6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(empty)),
		uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&envv[0])), unix.AT_EMPTY_PATH, 0))
}
