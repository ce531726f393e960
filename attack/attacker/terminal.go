//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// injected is the text that P14 types into a terminal.
const injected = "#injected\n"

// push types into a terminal as a user would.
func push(fd int, cmd uintptr) error {
	for i := range len(injected) {
		c := injected[i]
		if err := try0(syscall.Syscall(unix.SYS_IOCTL, uintptr(fd), cmd, uintptr(unsafe.Pointer(&c)))); err != nil {
			return err
		}
	}
	return nil
}

// terminals lists all accessible terminals: our descriptors, and devices.
func terminals() []string {
	out := []string{"/dev/tty", "/dev/console", "/dev/tty0", "/dev/tty1", "/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2"}
	for _, n := range names("/dev/pts") {
		if n != "ptmx" {
			out = append(out, "/dev/pts/"+n)
		}
	}
	for _, pid := range processes() {
		for fd := range 3 {
			out = append(out, fmt.Sprintf("/proc/%d/fd/%d", pid, fd))
		}
	}
	return out
}

// terminalInput is P14.
func terminalInput() []probe {
	everywhere := func(cmd uintptr) func(*protocol.Brief) protocol.Try {
		return func(*protocol.Brief) protocol.Try {
			return each(terminals(), func(name string) protocol.Try {
				fd, err := unix.Open(name, unix.O_RDWR|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
				if err != nil {
					return refused(err)
				}
				defer unix.Close(fd)
				if err := push(fd, cmd); err != nil {
					return refused(err)
				}
				return reached("typed into it")
			})
		}
	}
	onFDs := func(cmd uintptr) func(*protocol.Brief) protocol.Try {
		return func(*protocol.Brief) protocol.Try {
			last := refused(unix.ENOTTY)
			for fd := range 256 {
				err := push(fd, cmd)
				if err == nil {
					return reached("typed into descriptor %d", fd)
				}
				if errnoName(err) != "EBADF" && errnoName(err) != "ENOTTY" {
					last = refused(err)
				}
			}
			return last
		}
	}
	return []probe{
		{"TIOCSTI on every terminal", everywhere(unix.TIOCSTI)},
		{"TIOCSTI on every descriptor", onFDs(unix.TIOCSTI)},
		{"TIOCSTI with high bits", onFDs(unix.TIOCSTI | 1<<32)},
		{"TIOCLINUX paste", func(*protocol.Brief) protocol.Try {
			return each(terminals(), func(name string) protocol.Try {
				fd, err := unix.Open(name, unix.O_RDWR|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
				if err != nil {
					return refused(err)
				}
				defer unix.Close(fd)
				c := byte(3) // TIOCL_PASTESEL
				return done(try0(syscall.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCLINUX, uintptr(unsafe.Pointer(&c)))), "pasted")
			})
		}},
		{"TIOCCONS", func(*protocol.Brief) protocol.Try {
			return done(try0(syscall.Syscall(unix.SYS_IOCTL, 0, unix.TIOCCONS, 0)), "took the console")
		}},
	}
}

// controllingTerminal is P15.
func controllingTerminal() []probe {
	return []probe{
		{"/dev/tty", func(*protocol.Brief) protocol.Try {
			fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NONBLOCK, 0)
			if err != nil {
				return refused(err)
			}
			defer unix.Close(fd)
			if _, err := unix.Write(fd, []byte("\r")); err != nil {
				return refused(err)
			}
			return reached("wrote to the caller's terminal")
		}},
		{"steal one", func(b *protocol.Brief) protocol.Try {
			if b.Unconfined {
				return absent("the harness's own terminal would be taken")
			}
			_, _ = unix.Setsid()
			return each(terminals(), func(name string) protocol.Try {
				fd, err := unix.Open(name, unix.O_RDWR|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
				if err != nil {
					return refused(err)
				}
				defer unix.Close(fd)
				return done(unix.IoctlSetInt(fd, unix.TIOCSCTTY, 1), "took a terminal")
			})
		}},
		{"session of the caller", func(*protocol.Brief) protocol.Try {
			stat, err := os.ReadFile("/proc/self/stat")
			if err != nil {
				return refused(err)
			}
			var pid, ppid, pgrp, sid, tty int
			var comm, st string
			if _, err := fmt.Sscanf(string(stat), "%d %s %s %d %d %d %d", &pid, &comm, &st, &ppid, &pgrp, &sid, &tty); err != nil {
				return refused(err)
			}
			if tty != 0 {
				return reached("terminal %s is ours", strconv.Itoa(tty))
			}
			return refused(unix.ENXIO)
		}},
	}
}

// terminalOutput is P27: bytes that a terminal would interpret.
func terminalOutput() []probe {
	return []probe{{"print", func(*protocol.Brief) protocol.Try {
		// Set the title, copy to the clipboard (OSC 52), ask for an answer (DSR), switch
		// the screen, and an 8-bit CSI.
		_, err := os.Stderr.WriteString("\x1b]0;owned\x07\x1b]52;c;b3duZWQ=\x07\x1b[6n\x1b[?1049h\u009b31m\rplain text\n")
		if err != nil {
			return refused(err)
		}
		return inside("printed")
	}}}
}
