package sys

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// InForeground reports whether a file is the terminal of this process, and this process may now
// read from it and change it.
func InForeground(f *os.File) bool {
	if !IsTerminal(f) {
		return false
	}
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// IsTerminal reports whether a file is a terminal.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// TerminalLike makes a terminal with the settings and the size of another one. The runtime's poller
// waits for reads of master.
func TerminalLike(f *os.File) (master, slave *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, &os.PathError{Op: "open", Path: "/dev/ptmx", Err: err}
	}
	master = os.NewFile(uintptr(fd), "/dev/ptmx")
	defer func() {
		if err != nil {
			master.Close()
		}
	}()
	number, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, nil, fmt.Errorf("number of a terminal: %w", err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, fmt.Errorf("unlock a terminal: %w", err)
	}
	slave, err = os.OpenFile("/dev/pts/"+strconv.FormatUint(uint64(number), 10), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	termios, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err == nil {
		err = unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, termios)
	}
	if err != nil {
		slave.Close()
		return nil, nil, fmt.Errorf("settings of a terminal: %w", err)
	}
	return master, slave, ResizeLike(slave, f)
}

// ResizeLike gives a terminal the size of another one.
func ResizeLike(to, from *os.File) error {
	size, err := unix.IoctlGetWinsize(int(from.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return fmt.Errorf("size of a terminal: %w", err)
	}
	fd, err := Descriptor(to)
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, size)
	}
	if err != nil {
		return fmt.Errorf("set size of a terminal: %w", err)
	}
	return nil
}

// RawTerminal makes a terminal pass on every key unchanged, until restore is called.
func RawTerminal(f *os.File) (restore func(), err error) {
	fd := int(f.Fd())
	was, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, fmt.Errorf("settings of a terminal: %w", err)
	}
	raw := *was
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &raw); err != nil {
		return nil, fmt.Errorf("set a terminal: %w", err)
	}
	return func() { _ = unix.IoctlSetTermios(fd, unix.TCSETSW, was) }, nil
}

// BindFile mounts a file over another one, read-only. The calling thread must have the right to
// mount.
func BindFile(from, to string) error {
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return &os.PathError{Op: "mount", Path: to, Err: err}
	}
	if err := unix.Mount("none", to, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
		return &os.PathError{Op: "make read-only", Path: to, Err: err}
	}
	return nil
}
