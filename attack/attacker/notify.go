//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

const (
	seccompFilter      = 1
	filterNewListener  = 1 << 3
	retUserNotify      = 0x7fc00000
	retAllow           = 0x7fff0000
	notifyRecv         = 0xc0502100
	notifySend         = 0xc0182101
	notifyFlagContinue = 1
)

type notification struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

type notifyResponse struct {
	id    uint64
	val   int64
	err   int32
	flags uint32
}

// listener installs a filter on the calling thread that reports calls of nr.
func listener(nr uint32) (int, error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, err
	}
	prog := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: nr, Jt: 0, Jf: 1},
		{Code: unix.BPF_RET, K: retUserNotify},
		{Code: unix.BPF_RET, K: retAllow},
	}
	f := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	return tryFD(syscall.Syscall(unix.SYS_SECCOMP, seccompFilter, filterNewListener, uintptr(unsafe.Pointer(&f))))
}

// ownListener makes this process the supervisor of one of its threads, and answers
// "continue". If there are two supervisors, the newer one decides.
func ownListener(_ *protocol.Brief, p string) error {
	fds := make(chan int)
	result := make(chan error, 1)
	ready := make(chan struct{})
	go func() {
		runtime.LockOSThread() // never unlocked, because the filter stays with the thread
		fd, err := listener(unix.SYS_OPENAT)
		if err != nil {
			result <- err
			close(fds)
			return
		}
		fds <- fd
		<-ready
		result <- write(unix.Open(p, creat, 0o755))
	}()
	fd, ok := <-fds
	if !ok {
		return <-result
	}
	defer unix.Close(fd)
	answered := make(chan error, 1)
	go func() {
		var n notification
		if err := try0(syscall.Syscall(unix.SYS_IOCTL, uintptr(fd), notifyRecv, uintptr(unsafe.Pointer(&n)))); err != nil {
			answered <- err
			return
		}
		r := notifyResponse{id: n.id, flags: notifyFlagContinue}
		answered <- try0(syscall.Syscall(unix.SYS_IOCTL, uintptr(fd), notifySend, uintptr(unsafe.Pointer(&r))))
	}()
	close(ready)
	if err := <-answered; err != nil {
		return err
	}
	return <-result
}

// coreDump makes the kernel write a file called core into p's directory, without a system
// call that names it.
func coreDump(_ *protocol.Brief, p string) error {
	cmd := exec.Command("/proc/self/exe", "idle")
	cmd.Dir = filepath.Dir(p)
	cmd.Env = append(os.Environ(), "PADDOCK_ATTACK_CORE=1")
	err := cmd.Run()
	core := filepath.Join(filepath.Dir(p), "core")
	if _, e := os.Lstat(core); e == nil {
		// What the name stands for changes p's directory, not p. Report that by a link of
		// the same kind.
		return fmt.Errorf("%w: %s", errCore, core)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return unix.EACCES // it died and left nothing
	}
	return err
}

var errCore = errors.New("a core file was written")

// idle waits for the end of its input. As a core dumper it dies at once.
func idle() error {
	if os.Getenv("PADDOCK_ATTACK_CORE") != "" {
		_ = unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
		lim := unix.Rlimit{Cur: 1 << 30, Max: 1 << 30}
		if err := unix.Setrlimit(unix.RLIMIT_CORE, &lim); err != nil {
			var have unix.Rlimit
			_ = unix.Getrlimit(unix.RLIMIT_CORE, &have)
			have.Cur = have.Max
			_ = unix.Setrlimit(unix.RLIMIT_CORE, &have)
		}
		dieHard()
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// dieHard ends by a signal that dumps core. Go's runtime handles SIGABRT unless its handler
// is removed in the kernel.
func dieHard() {
	// struct kernel_sigaction{handler, flags, restorer, mask}, all default.
	var act [4]uintptr
	_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGABRT), uintptr(unsafe.Pointer(&act)), 0, 8, 0, 0)
	_ = unix.Kill(os.Getpid(), unix.SIGABRT)
	select {}
}
