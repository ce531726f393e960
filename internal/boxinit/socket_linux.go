package boxinit

import (
	"crypto/rand"
	"errors"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/sys"
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

// listen is always made here, so that no program listens while another call binds the socket: a bound
// file in a mount is there until it is hidden, and the host could connect to it.
//
// The kernel lets nobody take a socket of a program that may only be executed. It listens by itself, and
// nobody knows when. From then on no socket is bound in a mount.
func (c *call) listen() reply {
	fd, err := c.descriptor(c.fd(0))
	if errors.Is(err, syscall.EPERM) {
		c.unseen = true
		return goOn
	}
	if err != nil {
		return fails(err)
	}
	defer sys.Close(fd)
	return result(syscall.Listen(fd, c.fd(1)))
}

// bindHidden binds a socket whose file is to be at a place in a mount, where the host cannot connect to it.
// The place's directory is dirPart, seen from start.
func (c *call) bindHidden(fd int, addr []byte, start int, p *place, dirPart string, mask uint32) error {
	if c.unseen {
		private, name, err := c.private()
		if err != nil {
			return err
		}
		defer sys.Close(private)
		if _, err := sys.StatAt(p.dir, p.base); err == nil {
			return syscall.EADDRINUSE
		}
		if err := sys.BindUnix(fd, private, name); err != nil {
			return err
		}
		return c.hide(fd, private, name, p, mask)
	}
	// The file may have any mode, because nobody listens, and it has no name for long.
	var err error
	if c.keepsAddress(start, dirPart, p.full, false) {
		err = sys.BindBelow(fd, addr, start, p.dir, 0)
	} else {
		err = sys.BindUnix(fd, p.dir, p.base)
	}
	if err != nil {
		return err
	}
	return c.hide(fd, p.dir, p.base, p, mask)
}

// private opens a directory of the box's own, and returns a name that nothing has there.
func (b *broker) private() (dir int, name string, err error) {
	for _, w := range b.writable {
		if !b.ours(w) {
			continue
		}
		if dir, err := sys.ResolvePlain(w); err == nil {
			return dir, ".paddock-" + rand.Text(), nil
		}
	}
	return -1, "", syscall.EACCES
}

// hide replaces the socket file that was just bound, name in dir, by one at the place that nobody has bound.
// The program does not listen yet, so nobody could have connected.
func (b *broker) hide(fd, dir int, name string, p *place, mask uint32) (err error) {
	s := mountSocket{bound: -1, file: -1}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	b.mu.Lock()
	full := len(b.sockets) >= mountSocketsMax && !b.forget()
	b.mu.Unlock()
	s.bound, err = sys.OpenSocketFile(dir, name)
	if errors.Is(err, syscall.ENOTSOCK) { // somebody else's, who has removed the socket
		return err
	}
	// Another sandbox may have moved a socket of the host's here, and this box must not connect to that.
	if err == nil && !sys.Silent(fd, s.bound) {
		return syscall.ENOTSOCK
	}
	// The bound file goes also where no descriptor is left to open it.
	if err := errors.Join(err, sys.UnlinkAt(dir, name)); err != nil {
		return err
	}
	if full {
		return syscall.ENOSPC
	}
	if err := sys.Mknodat(p.dir, p.base, sys.TypeSocket|0o777&^mask); err != nil {
		return err
	}
	if s.file, err = sys.OpenSocketFile(p.dir, p.base); err != nil {
		return err
	}
	st, err := sys.StatAt(s.file, "")
	if err != nil {
		return err
	}
	s.dev, s.ino = st.Dev, st.Ino
	b.made(p)
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
		if st, err := sys.StatAt(s.file, ""); err == nil && st.Links > 0 {
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
			sys.Close(fd)
		}
	}
}

// hidden opens the bound file of a socket of this box in a mount. It returns -1 if file is none.
func (b *broker) hidden(file int) int {
	st, err := sys.StatAt(file, "")
	if err != nil || st.Mode&sys.TypeMask != sys.TypeSocket {
		return -1
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.sockets {
		if s.dev == st.Dev && s.ino == st.Ino {
			fd, err := sys.DuplicateFD(s.bound)
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
	if p := c.fd(protocolOfPair); c.fd(0) != sys.FamilyUnix || p != 0 && p != sys.FamilyUnix {
		return reply{err: syscall.EPROTONOSUPPORT}
	}
	if kind&^(syscall.SOCK_DGRAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC) != 0 {
		return reply{err: syscall.EINVAL}
	}
	// The memory is opened before the call is known to wait still. So it is the caller's, whoever has
	// its number later.
	memory, err := sys.OpenMemory(c.tid)
	if err != nil { // not dumpable
		return reply{err: syscall.EPROTONOSUPPORT}
	}
	defer memory.Close()
	if !sys.NotifValid(c.listener, c.id) {
		return reply{err: syscall.ESRCH}
	}
	if err := memory.Check(c.args[3], 8); err != nil {
		return reply{err: syscall.EFAULT}
	}
	ends, err := sys.PacketsOf(kind & syscall.SOCK_NONBLOCK)
	if err != nil {
		return fails(err)
	}
	defer sys.Close(ends[0])
	defer sys.Close(ends[1])
	var given [2]int32
	for i, fd := range ends {
		n, err := sys.NotifAdd(c.listener, c.id, fd, kind&syscall.SOCK_CLOEXEC != 0)
		if err != nil {
			return reply{err: syscall.EMFILE}
		}
		given[i] = int32(n)
	}
	return result(memory.WriteNumbers(c.args[3], given[:]))
}
