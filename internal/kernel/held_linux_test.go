package kernel

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// startHeld starts a shell that makes a file, and holds it.
func startHeld(t *testing.T) (pid int, file string) {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	file = filepath.Join(t.TempDir(), "ran")
	pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", "echo > " + file}, &syscall.ProcAttr{
		Dir: "/", Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Ptrace: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	return pid, file
}

func reap(t *testing.T, pid int) syscall.WaitStatus {
	t.Helper()
	var status syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(pid, &status, 0, nil); err == nil {
			return status
		} else if !errors.Is(err, syscall.EINTR) {
			t.Fatal(err)
		}
	}
}

func TestAHeldProcessHasDoneNothingAndGoesOn(t *testing.T) {
	pid, file := startHeld(t)
	called := false
	if err := WhileHeld(pid, func() error {
		called = true
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("it has run: %v", err)
		}
		return nil
	}); err != nil || !called {
		t.Fatal(err, called)
	}
	if status := reap(t, pid); !status.Exited() || status.ExitStatus() != 0 {
		t.Errorf("%#x", status)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

func TestAHeldProcessThatIsNotWantedNeverRuns(t *testing.T) {
	pid, file := startHeld(t)
	if err := WhileHeld(pid, func() error { return unix.EAGAIN }); !errors.Is(err, unix.EAGAIN) {
		t.Error(err)
	}
	if _, err := syscall.Wait4(pid, nil, 0, nil); !errors.Is(err, syscall.ECHILD) {
		t.Errorf("it is not reaped: %v", err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it has run: %v", err)
	}
}

func TestAHeldProcessThatWasKilledStaysToBeReaped(t *testing.T) {
	pid, _ := startHeld(t)
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// It is gone for certain, and not reaped.
	if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if err := WhileHeld(pid, func() error { t.Error("it is not held"); return nil }); err != nil {
		t.Error(err)
	}
	if status := reap(t, pid); status.Signal() != syscall.SIGKILL {
		t.Errorf("%#x", status)
	}
}

func TestASignalBeforeTheTrapIsNotLost(t *testing.T) {
	pid, file := startHeld(t)
	reap(t, pid) // the trap
	for _, step := range []func() error{
		func() error { return unix.Kill(pid, unix.SIGUSR1) },
		func() error { return ptrace(unix.PTRACE_CONT, pid, 0) },
		func() error { return unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil) },
		func() error { return unix.Kill(pid, unix.SIGTRAP) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	held := false
	if err := WhileHeld(pid, func() error { held = true; return nil }); err != nil || !held {
		t.Fatal(err, held)
	}
	if status := reap(t, pid); status.Signal() != syscall.SIGUSR1 {
		t.Errorf("%#x", status)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it ran before the signal came: %v", err)
	}
}
