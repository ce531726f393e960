package sys

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Channel carries packets with descriptors over a Unix socket. A wait does not block a thread,
// because the Go runtime's poller waits. One goroutine may receive while another one sends.
type Channel struct {
	file *os.File
	raw  syscall.RawConn
}

// PacketMax is the maximum size of a packet in bytes. The kernel's default socket buffer holds one.
const PacketMax = 160 << 10

// NewChannel makes a channel of fd, a Unix socket of packets. The channel owns fd from then on.
func NewChannel(fd int) (*Channel, error) {
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("channel: %w", err)
	}
	f := os.NewFile(uintptr(fd), "channel")
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("channel: %w", err), f.Close())
	}
	return &Channel{f, raw}, nil
}

// NewChannelOf is NewChannel for a file. The channel owns the file from then on.
func NewChannelOf(f *os.File) (*Channel, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	f.Close()
	if err != nil {
		return nil, fmt.Errorf("channel: %w", err)
	}
	return NewChannel(fd)
}

// ChannelOf makes a channel of a connection of packets, which it takes over.
func ChannelOf(c *net.UnixConn) (*Channel, error) {
	defer func() { _ = c.Close() }()
	f, err := c.File()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return NewChannel(fd)
}

// NewChannelPair returns a channel, and the file of its other end.
func NewChannelPair() (*Channel, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	c, err := NewChannel(fds[0])
	if err != nil {
		unix.Close(fds[1])
		return nil, nil, err
	}
	return c, os.NewFile(uintptr(fds[1]), "channel"), nil
}

// Close closes the channel. Waiting calls fail.
func (c *Channel) Close() error { return c.file.Close() }

// Until makes all calls that wait on the channel fail when ctx ends. The returned function cancels
// this. It returns false if ctx has already ended.
func (c *Channel) Until(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = c.file.SetDeadline(time.Unix(1, 0)) })
}

// Within makes all calls that wait on the channel fail when the time is over.
func (c *Channel) Within(wait time.Duration) error { return c.file.SetDeadline(time.Now().Add(wait)) }

// HangUp tells the peer that no more packets come, and lets calls that wait for its packets fail when the time is over.
func (c *Channel) HangUp(wait time.Duration) {
	_ = c.raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_WR) })
	_ = c.Within(wait)
}

// OnHangUp calls f if the peer hangs up or closes its end before stop is called, or has done so: then before OnHangUp
// returns. Until stop nobody may receive, and no deadline is set. After stop, f has returned or is never called.
func (c *Channel) OnHangUp(f func()) (stop func()) {
	over := false
	look := func(fd uintptr) (known bool) {
		n, _, err := unix.Recvfrom(int(fd), nil, unix.MSG_PEEK|unix.MSG_TRUNC|unix.MSG_DONTWAIT)
		known = err != unix.EAGAIN && err != unix.EINTR
		over = known && (err != nil || n == 0) // otherwise there is another packet
		return known
	}
	if c.raw.Read(func(fd uintptr) bool { look(fd); return true }) == nil && over {
		f()
		return func() {}
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		if c.raw.Read(look) == nil && over {
			f()
		}
	})
	return func() {
		_ = c.file.SetReadDeadline(time.Unix(1, 0))
		watching.Wait()
		_ = c.file.SetReadDeadline(time.Time{})
	}
}

// Finish tells the peer that no more packets come, waits until the peer has closed its end or the
// time is over, and closes the channel. What the peer still sends is dropped.
func (c *Channel) Finish(wait time.Duration) error {
	err := c.raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_WR) })
	if err == nil {
		err = c.file.SetDeadline(time.Now().Add(wait))
	}
	for err == nil {
		var files []*os.File
		_, files, err = c.Receive()
		for _, f := range files {
			_ = f.Close()
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, c.Close())
}

// Send sends a packet with descriptors. The caller still owns the files.
func (c *Channel) Send(data []byte, files ...*os.File) error {
	if len(data) > PacketMax {
		return unix.EMSGSIZE
	}
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	var sent error
	err := c.raw.Write(func(fd uintptr) bool {
		sent = unix.Sendmsg(int(fd), data, rights, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
		return sent != unix.EAGAIN && sent != unix.EINTR
	})
	runtime.KeepAlive(files)
	return errors.Join(err, sent)
}

// Receive waits for a packet. At the end of the channel the error is io.EOF. The caller owns the
// files.
func (c *Channel) Receive() (data []byte, files []*os.File, err error) {
	var got error
	err = c.raw.Read(func(fd uintptr) bool {
		n, _, e := unix.Recvfrom(int(fd), nil, unix.MSG_PEEK|unix.MSG_TRUNC|unix.MSG_DONTWAIT)
		switch {
		case e == unix.EAGAIN || e == unix.EINTR:
			return false
		case e != nil:
			got = e
		case n == 0:
			got = io.EOF
		case n > PacketMax:
			got = unix.EMSGSIZE
		default:
			data, files, got = receive(int(fd), make([]byte, n))
		}
		return true
	})
	return data, files, errors.Join(err, got)
}

func receive(fd int, buf []byte) ([]byte, []*os.File, error) {
	oob := make([]byte, unix.CmsgSpace(253*4)) // SCM_MAX_FD
	n, oobn, flags, _, err := unix.Recvmsg(fd, buf, oob, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
	if err != nil {
		return nil, nil, err
	}
	files, err := filesOf(oob[:oobn])
	if err == nil && flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		err = unix.EMSGSIZE
	}
	if err != nil {
		for _, f := range files {
			f.Close()
		}
		return nil, nil, err
	}
	return buf[:n], files, nil
}

func filesOf(oob []byte) ([]*os.File, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for _, m := range msgs {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			continue // not descriptors
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, nil
}

// A Poller waits for a descriptor that poll supports (a listener, a process) in the runtime's
// poller. A thread that waits in a system call would block a processor for other goroutines until
// the runtime notices.
type Poller struct{ raw syscall.RawConn }

// NewPoller closes f. It returns a non-blocking file to use in place of f, and the poller of that
// file.
func NewPoller(f *os.File) (*os.File, *Poller, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	f.Close()
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, nil, err
	}
	p := os.NewFile(uintptr(fd), f.Name())
	raw, err := p.SyscallConn()
	if err != nil {
		p.Close()
		return nil, nil, err
	}
	return p, &Poller{raw}, nil
}

// Wait waits until the file is readable or closed.
func (p *Poller) Wait() error {
	return p.raw.Read(func(fd uintptr) bool {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		return err != nil && err != unix.EINTR || n > 0
	})
}

// Descriptor returns the descriptor of an open file. Unlike File.Fd, it does not make the file
// blocking.
func Descriptor(f *os.File) (int, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	number := -1
	err = raw.Control(func(fd uintptr) { number = int(fd) })
	return number, err
}
