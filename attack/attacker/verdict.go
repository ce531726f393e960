//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// refused returns a try that the sandbox or the kernel refused.
func refused(err error) protocol.Try {
	return protocol.Try{Outcome: protocol.Denied, Errno: errnoName(err), Detail: err.Error()}
}

// reached returns a try that did something forbidden.
func reached(format string, args ...any) protocol.Try {
	return protocol.Try{Outcome: protocol.Reached, Detail: fmt.Sprintf(format, args...)}
}

// inside returns a try that worked and may have stayed inside; the host checks.
func inside(format string, args ...any) protocol.Try {
	return protocol.Try{Outcome: protocol.Inside, Detail: fmt.Sprintf(format, args...)}
}

// absent returns a try that was not possible.
func absent(format string, args ...any) protocol.Try {
	return protocol.Try{Outcome: protocol.Absent, Detail: fmt.Sprintf(format, args...)}
}

// looted returns a try that read something.
func looted(data []byte) protocol.Try {
	if len(data) > 4096 {
		data = data[:4096]
	}
	return protocol.Try{Outcome: protocol.Reached, Detail: fmt.Sprintf("read %d bytes", len(data)), Loot: string(data)}
}

// done returns reached without an error, and refused with one.
func done(err error, what string) protocol.Try {
	if err != nil {
		return refused(err)
	}
	return reached("%s", what)
}

// passed judges a call with arguments that the kernel refuses after the permission check. A
// late error means that the call was allowed.
func passed(err error, late ...syscall.Errno) protocol.Try {
	if err == nil {
		return reached("the call succeeded")
	}
	for _, e := range late {
		if errors.Is(err, e) {
			return reached("past the permission check: %v", err)
		}
	}
	return refused(err)
}

// worst combines tries into the worst one, with everything that was seen.
func worst(tries ...protocol.Try) protocol.Try {
	r := protocol.Sum("", tries)
	for _, t := range tries {
		if r.Verdict == "escaped" && t.Outcome == protocol.Reached {
			return t
		}
	}
	outcome := map[string]string{"not-applicable": protocol.Absent, "denied": protocol.Denied, "contained": protocol.Inside, "escaped": protocol.Reached}
	return protocol.Try{Outcome: outcome[r.Verdict], Errno: r.Errno, Detail: strings.TrimPrefix(r.Detail, ": ")}
}

// each runs f for every item and returns the worst.
func each[T any](items []T, f func(T) protocol.Try) protocol.Try {
	tries := make([]protocol.Try, 0, len(items))
	for _, i := range items {
		t := f(i)
		t.Detail = fmt.Sprintf("%v: %s", i, t.Detail)
		tries = append(tries, t)
	}
	if len(tries) == 0 {
		return absent("nothing to try")
	}
	loot := ""
	for _, t := range tries {
		if t.Loot != "" && len(loot) < 64<<10 {
			loot += t.Loot + "\n"
		}
	}
	w := worst(tries...)
	w.Loot = loot
	return w
}

func errnoName(err error) string {
	var e syscall.Errno
	if !errors.As(err, &e) {
		return "error"
	}
	if n := unix.ErrnoName(e); n != "" {
		return n
	}
	return fmt.Sprintf("errno %d", int(e))
}

// try0 converts the results of a raw system call to an error.
func try0(_, _ uintptr, e syscall.Errno) error {
	if e != 0 {
		return e
	}
	return nil
}

func tryFD(r, _ uintptr, e syscall.Errno) (int, error) {
	if e != 0 {
		return -1, e
	}
	return int(r), nil
}

// readFD reads a descriptor and closes it.
func readFD(fd int, err error) protocol.Try {
	if err != nil {
		return refused(err)
	}
	defer unix.Close(fd)
	buf := make([]byte, 4096)
	n, err := unix.Pread(fd, buf, 0)
	if errors.Is(err, unix.ESPIPE) || errors.Is(err, unix.EINVAL) {
		n, err = unix.Read(fd, buf)
	}
	if err != nil {
		return refused(err)
	}
	return looted(buf[:n])
}

func readName(name string) protocol.Try {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	return readFD(fd, err)
}

// plant writes a file that must not get out.
func plant(name string, flags int) protocol.Try {
	fd, err := unix.Open(name, unix.O_WRONLY|unix.O_CLOEXEC|flags, 0o755)
	if err != nil {
		return refused(err)
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte("planted\n")); err != nil {
		return refused(err)
	}
	return inside("wrote %s", name)
}

func names(dir string) []string {
	ents, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	out := make([]string, 0, len(ents))
	for _, e := range ents {
		out = append(out, e.Name())
	}
	return out
}

// withLoot adds what was read.
func withLoot(t protocol.Try, loot string) protocol.Try {
	if len(loot) > 64<<10 {
		loot = loot[:64<<10]
	}
	t.Loot = loot
	return t
}
