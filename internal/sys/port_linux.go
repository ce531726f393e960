package sys

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Port is a virtio-serial port of a virtual machine, seen from inside. The host may open, close
// and reopen its end; each time is a new session.
//
// There may be only one poller of a port, in one process. On Linux 6.1, a call of poll takes the
// device's interrupt away from a reader that already waits, which then waits for ever.
type Port struct {
	file *os.File
	raw  syscall.RawConn
}

// portClass is where the kernel tells of ports.
const portClass = "/sys/class/virtio-ports"

// OpenPort opens the port of that name. If there is none, the error is [fs.ErrNotExist]. Ports
// appear a little later than their driver.
func OpenPort(name string) (*Port, error) {
	entries, err := os.ReadDir(portClass)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		said, err := os.ReadFile(filepath.Join(portClass, e.Name(), "name"))
		if err != nil || strings.TrimSpace(string(said)) != name {
			continue
		}
		path := "/dev/" + e.Name()
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
		return portOf(fd, name)
	}
	return nil, &os.PathError{Op: "open port", Path: name, Err: unix.ENOENT}
}

// NewPort makes a port of a file. The port owns the file from then on.
func NewPort(f *os.File) (*Port, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("port: %w", err)
	}
	f.Close()
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("port: %w", err)
	}
	return portOf(fd, f.Name())
}

func portOf(fd int, name string) (*Port, error) {
	f := os.NewFile(uintptr(fd), name)
	raw, err := f.SyscallConn()
	if err == nil {
		err = f.SetDeadline(time.Time{}) // which only what can be waited for has
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("port %s: %w", name, err), f.Close())
	}
	return &Port{f, raw}, nil
}

// Read reads available bytes, and waits if there are none. While the host's end is closed, the
// error is io.EOF.
func (p *Port) Read(b []byte) (n int, err error) {
	var failed error
	err = p.raw.Read(func(fd uintptr) bool {
		failed = again(func() (err error) { n, err = readMany(int(fd), b); return err })
		return failed != unix.EAGAIN
	})
	switch {
	case err != nil:
		return 0, err
	case failed != nil:
		return 0, &os.PathError{Op: "read", Path: p.file.Name(), Err: failed}
	case n == 0 && len(b) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// portBuffer is how much the kernel takes from the host at a time, and gives with one
// read.
const portBuffer = 4096

// readMany reads several of the kernel's buffers in one call, as far as they are full.
func readMany(fd int, b []byte) (int, error) {
	if len(b) <= portBuffer {
		return unix.Read(fd, b)
	}
	parts := make([][]byte, 0, 16)
	for len(b) > 0 && len(parts) < cap(parts) {
		n := min(len(b), portBuffer)
		parts = append(parts, b[:n])
		b = b[n:]
	}
	return unix.Readv(fd, parts)
}

// Write writes all of b. While the host's end is closed, the error is EPIPE.
func (p *Port) Write(b []byte) (written int, err error) {
	for written < len(b) {
		var (
			n      int
			failed error
		)
		err := p.raw.Write(func(fd uintptr) bool {
			failed = again(func() (err error) { n, err = unix.Write(int(fd), b[written:]); return err })
			if failed == unix.EAGAIN && hungUp(fd) {
				failed = unix.EPIPE
			}
			return failed != unix.EAGAIN
		})
		if err != nil {
			return written, err
		}
		if failed != nil {
			return written, &os.PathError{Op: "write", Path: p.file.Name(), Err: failed}
		}
		written += n
	}
	return written, nil
}

// WaitOpen waits until the host's end is open, or until ctx ends. The caller must not write
// meanwhile.
func (p *Port) WaitOpen(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = p.file.SetWriteDeadline(past()) })
	// The port can be written to from then on: that is what tells it.
	err := p.raw.Write(func(fd uintptr) bool { return !hungUp(fd) })
	if !stop() {
		err = errors.Join(ctx.Err(), p.file.SetWriteDeadline(time.Time{}))
	}
	return err
}

// Interrupt makes all present and later calls that wait on the port fail, until Resume.
func (p *Port) Interrupt() { _ = p.file.SetDeadline(past()) }

// Resume undoes Interrupt.
func (p *Port) Resume() { _ = p.file.SetDeadline(time.Time{}) }

// File returns a duplicate of the port's descriptor, for another process.
func (p *Port) File() (*os.File, error) { return Duplicate(p.file) }

// Close closes this end.
func (p *Port) Close() error { return p.file.Close() }

func past() time.Time { return time.Unix(1, 0) }

// hungUp tells whether the other end is closed.
func hungUp(fd uintptr) bool {
	fds := []unix.PollFd{{Fd: int32(fd)}}
	err := again(func() error { _, err := unix.Poll(fds, 0); return err })
	return err == nil && fds[0].Revents&unix.POLLHUP != 0
}
