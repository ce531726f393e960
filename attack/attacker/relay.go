//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// relay runs a program in a session of its own with a terminal, for the
// harness. It is host code.
//
//	attacker terminal [-show] [-user UID] [-lonely] program…
//
// With -show the program's output goes to the terminal, and what arrives there
// to our output; without, only its input is the terminal. With -lonely we are
// process 1 of namespaces that we furnish first.
func relay(args []string) error {
	show, lonely, uid := false, false, -1
	for len(args) > 0 && args[0][0] == '-' {
		switch args[0] {
		case "-show":
			show = true
		case "-lonely":
			lonely = true
		case "-user":
			n, err := strconv.Atoi(args[1])
			if err != nil {
				return err
			}
			uid, args = n, args[1:]
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return errors.New("want a program")
	}
	if lonely {
		if err := furnish(); err != nil {
			return fmt.Errorf("furnish namespaces: %w", err)
		}
	}
	main, side, err := openTerminal()
	if err != nil {
		return err
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = side, os.Stdout, os.Stderr
	if show {
		cmd.Stdout, cmd.Stderr = side, side
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if uid >= 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
		if err := side.Chown(uid, uid); err != nil {
			return err
		}
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := side.Close(); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		to := io.Discard
		if show {
			to = os.Stdout
		}
		_, _ = io.Copy(to, main) // ends with an error when the other side is closed
	}()
	err = cmd.Wait()
	if show {
		<-done
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(max(exit.ExitCode(), 1))
	}
	return err
}

func openTerminal() (*os.File, *os.File, error) {
	main, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	n, err := unix.IoctlGetInt(int(main.Fd()), unix.TIOCGPTN)
	if err != nil {
		return nil, nil, err
	}
	unlock := int32(0)
	if err := try0(syscall.Syscall(unix.SYS_IOCTL, main.Fd(), unix.TIOCSPTLCK, uintptr(unsafe.Pointer(&unlock)))); err != nil {
		return nil, nil, err
	}
	side, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	return main, side, err
}

// furnish makes new namespaces harmless: what is written to the system's
// directories goes to memory, and /proc shows only what is here.
func furnish() error {
	if os.Getpid() != 1 {
		return errors.New("not process 1 of a namespace")
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", "/mnt", "tmpfs", 0, ""); err != nil {
		return err
	}
	for i, d := range []string{"/etc", "/usr", "/var", "/root", "/opt", "/boot", "/srv", "/run"} {
		up, wk := fmt.Sprintf("/mnt/up%d", i), fmt.Sprintf("/mnt/wk%d", i)
		if err := errors.Join(os.Mkdir(up, 0o755), os.Mkdir(wk, 0o755)); err != nil {
			return err
		}
		if err := unix.Mount("overlay", d, "overlay", 0, "lowerdir="+d+",upperdir="+up+",workdir="+wk); err != nil {
			return fmt.Errorf("%s: %w", d, err)
		}
		if d == "/var" {
			if err := os.MkdirAll("/var/tmp", 0o777|os.ModeSticky); err != nil {
				return err
			}
		}
	}
	if err := unix.Mount("tmpfs", "/dev/shm", "tmpfs", 0, ""); err != nil {
		return err
	}
	return unix.Mount("proc", "/proc", "proc", 0, "")
}
