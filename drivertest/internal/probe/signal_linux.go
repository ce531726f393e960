package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"unsafe"
)

// Numbers that package syscall does not have. They are those of every architecture.
const (
	pidfdSendSignal = 424
	pidfdOpen       = 434
	pidfdThread     = syscall.O_EXCL

	setOwner       = 8  // F_SETOWN
	setSignal      = 10 // F_SETSIG
	setOwnerEx     = 15 // F_SETOWN_EX
	ownerIsThread  = 0
	ownerIsProcess = 1
)

// signalAll sends each signal to a process and its threads in every way that Linux has. No way may be
// allowed, so no error counts.
func signalAll(process string) error {
	pid, err := strconv.Atoi(process)
	if err != nil {
		return err
	}
	targets := []int{pid}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, t := range tasks {
		if tid, err := strconv.Atoi(filepath.Base(t)); err == nil && tid != pid {
			targets = append(targets, tid)
		}
	}
	for sig := 1; sig <= 64; sig++ {
		for _, tid := range targets {
			send(pid, tid, sig)
		}
	}
	_, err = fmt.Println("tried")
	return err
}

func send(pid, tid, sig int) {
	call := func(nr uintptr, args ...int) int {
		var a [6]uintptr
		for i, v := range args {
			a[i] = uintptr(v)
		}
		r, _, e := syscall.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
		if e != 0 {
			return -1
		}
		return int(r)
	}
	_ = call(syscall.SYS_KILL, tid, sig)
	_ = call(syscall.SYS_TKILL, tid, sig)
	_ = call(syscall.SYS_TGKILL, pid, tid, sig)

	// With the code of a queued signal, which looks less like one of a process than others do.
	var info [128]byte
	binary.NativeEndian.PutUint32(info[0:], uint32(sig))
	binary.NativeEndian.PutUint32(info[8:], ^uint32(0)) // SI_QUEUE
	at := uintptr(unsafe.Pointer(&info))
	_, _, _ = syscall.Syscall(syscall.SYS_RT_SIGQUEUEINFO, uintptr(tid), uintptr(sig), at)
	_, _, _ = syscall.Syscall6(syscall.SYS_RT_TGSIGQUEUEINFO, uintptr(pid), uintptr(tid), uintptr(sig), at, 0, 0)
	for _, flags := range []int{0, pidfdThread} {
		if fd := call(pidfdOpen, tid, flags); fd >= 0 {
			_ = call(pidfdSendSignal, fd, sig)
			_, _, _ = syscall.Syscall6(pidfdSendSignal, uintptr(fd), uintptr(sig), at, 0, 0, 0)
			_ = syscall.Close(fd)
		}
	}
	byFile(tid, sig)
}

// byFile has the kernel send a signal when a pipe can be read.
func byFile(tid, sig int) {
	for _, owner := range [][2]int32{{-1, 0}, {ownerIsThread, int32(tid)}, {ownerIsProcess, int32(tid)}} {
		r, w, err := os.Pipe()
		if err != nil {
			continue
		}
		_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, r.Fd(), setSignal, uintptr(sig))
		if owner[0] < 0 {
			_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, r.Fd(), setOwner, uintptr(tid))
		} else {
			_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, r.Fd(), setOwnerEx, uintptr(unsafe.Pointer(&owner)))
		}
		_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, r.Fd(), syscall.F_SETFL, syscall.O_ASYNC)
		_, _ = w.WriteString("x")
		_ = r.Close()
		_ = w.Close()
	}
}
