package boxinit

import (
	"errors"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// A mountSocket is a socket that a program has bound in a mount of the host. The file that the host and
// the guest see is another one, which nobody has bound, so no program of the host can connect to it. The
// broker connects programs of the box to the bound file, which has no name any more.
type mountSocket struct {
	file, bound int    // both open with O_PATH
	dev, ino    uint64 // of file, whose number nobody else gets while it is open
}

// mountSocketsMax is the maximum number of such sockets. Each has two open files.
const mountSocketsMax = 128

// hide replaces the socket file that was just bound by one that nobody has bound. The program does not
// listen yet, so nobody could have connected.
func (b *broker) hide(dir int, base string, mask uint32) (err error) {
	s := mountSocket{bound: -1, file: -1}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	b.mu.Lock()
	full := len(b.sockets) >= mountSocketsMax && !b.forget()
	b.mu.Unlock()
	s.bound, err = kernel.OpenSocketFile(dir, base)
	if errors.Is(err, syscall.ENOTSOCK) { // somebody else's, who has removed the socket
		return err
	}
	// The bound file goes also where no descriptor is left to open it.
	if err := errors.Join(err, kernel.UnlinkAt(dir, base)); err != nil {
		return err
	}
	if full {
		return syscall.ENOSPC
	}
	if err := kernel.Mknodat(dir, base, kernel.TypeSocket|0o777&^mask); err != nil {
		return err
	}
	if s.file, err = kernel.OpenSocketFile(dir, base); err != nil {
		return err
	}
	st, err := kernel.StatAt(s.file, "")
	if err != nil {
		return err
	}
	s.dev, s.ino = st.Dev, st.Ino
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sockets = append(b.sockets, s)
	return nil
}

// forget forgets sockets whose files have no name any more, and reports whether there were any. The
// caller holds mu.
func (b *broker) forget() bool {
	var left []mountSocket
	for _, s := range b.sockets {
		if st, err := kernel.StatAt(s.file, ""); err == nil && st.Links > 0 {
			left = append(left, s)
			continue
		}
		s.close()
	}
	some := len(left) < len(b.sockets)
	b.sockets = left
	return some
}

func (s mountSocket) close() {
	for _, fd := range []int{s.file, s.bound} {
		if fd >= 0 {
			kernel.Close(fd)
		}
	}
}

// hidden opens the bound file of a socket of this box in a mount. It returns -1 if file is none.
func (b *broker) hidden(file int) int {
	st, err := kernel.StatAt(file, "")
	if err != nil || st.Mode&kernel.TypeMask != kernel.TypeSocket {
		return -1
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.sockets {
		if s.dev == st.Dev && s.ino == st.Ino {
			fd, err := kernel.DuplicateFD(s.bound)
			if err != nil {
				return -1
			}
			return fd
		}
	}
	return -1
}

// socketpair makes a pair of sequenced packets in place of one of datagrams. Both keep the bounds of
// messages. But a datagram can be sent to any socket file by its path, past connect, and a packet only to
// the other end. A program sees a difference when the other end is closed: it reads an end of file.
func (c *call) socketpair() reply {
	const protocolOfPair = 2
	kind := c.fd(1)
	if p := c.fd(protocolOfPair); c.fd(0) != kernel.FamilyUnix || p != 0 && p != kernel.FamilyUnix {
		return reply{err: syscall.EPROTONOSUPPORT}
	}
	if kind&^(syscall.SOCK_DGRAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC) != 0 {
		return reply{err: syscall.EINVAL}
	}
	// The memory is opened before the call is known to wait still. So it is the caller's, whoever has
	// its number later.
	memory, err := kernel.OpenMemory(c.tid)
	if err != nil { // not dumpable
		return reply{err: syscall.EPROTONOSUPPORT}
	}
	defer memory.Close()
	if !kernel.NotifValid(c.listener, c.id) {
		return reply{err: syscall.ESRCH}
	}
	if err := memory.Check(c.args[3], 8); err != nil {
		return reply{err: syscall.EFAULT}
	}
	ends, err := kernel.PacketsOf(kind & syscall.SOCK_NONBLOCK)
	if err != nil {
		return fails(err)
	}
	defer kernel.Close(ends[0])
	defer kernel.Close(ends[1])
	var given [2]int32
	for i, fd := range ends {
		n, err := kernel.NotifAdd(c.listener, c.id, fd, kind&syscall.SOCK_CLOEXEC != 0)
		if err != nil {
			return reply{err: syscall.EMFILE}
		}
		given[i] = int32(n)
	}
	return result(memory.WriteNumbers(c.args[3], given[:]))
}
