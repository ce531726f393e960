package kernel

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

// A Port is one of a machine's serial ports (virtio-serial), seen from inside.
// Its host opens its end, closes it, and may open it again: one session follows
// another.
//
// Nobody waits in a call on the port itself: to ask by poll what is ready takes
// the device's interrupt away from who waits in a read (Linux 6.1), who then
// waits for ever. So there may be one poller only, in one process.
type Port struct {
	file *os.File
	raw  syscall.RawConn
}

// portClass is where the kernel tells of ports.
const portClass = "/sys/class/virtio-ports"

// OpenPort opens the port of that name. Where there is none it is
// [fs.ErrNotExist]; ports come a little later than their driver.
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

// NewPort makes a port of a file, which becomes the port's.
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

// Read reads what there is, and waits for it where there is nothing. It is
// io.EOF where the host's end is closed.
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

// Write writes all of b. It is EPIPE where the host's end is closed.
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

// WaitOpen waits until the host's end is open, or ctx ends. Nobody may write
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

// Interrupt has everything that waits on the port fail, and what comes, until
// Resume.
func (p *Port) Interrupt() { _ = p.file.SetDeadline(past()) }

// Resume undoes Interrupt.
func (p *Port) Resume() { _ = p.file.SetDeadline(time.Time{}) }

// File gives another descriptor of the port, for another process.
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
