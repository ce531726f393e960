package guest

import (
	"os"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// chunk is how much of a file travels in one message.
const chunk = 256 << 10

// A content is an open file. It reads by plain system calls: the descriptor
// does not block, and what would block is an error instead of a hang.
type content struct {
	fd   int
	name string
	left int64 // bytes still wanted; negative is all
}

// open opens what can be read to an end: a regular file, also in /proc, or a
// harmless device such as /dev/zero.
func (f *files) open(name string, offset, length int64) (*content, error) {
	if offset < 0 || length < 0 {
		return nil, invalid("open", name, "negative offset or length")
	}
	p, err := f.find(name, search{follow: true})
	if err != nil {
		return nil, failed("open", name, err)
	}
	defer p.close()
	// Opening has effects on a FIFO's other end and on devices, so the sort of
	// file is looked at before; and again after, because it can be swapped.
	st, err := sys.StatAt(p.fd(), p.base)
	if err == nil {
		err = readable("open", name, st)
	}
	if err != nil {
		return nil, failed("open", name, err)
	}
	fd, err := sys.OpenAt(p.fd(), p.base, syscall.O_RDONLY, 0)
	if err != nil {
		return nil, failed("open", name, err)
	}
	src := &content{fd, name, -1}
	if st, err = sys.StatAt(fd, ""); err == nil {
		err = readable("open", name, st)
	}
	if err == nil && offset > 0 {
		_, err = syscall.Seek(fd, offset, 0)
	}
	if err != nil {
		src.close()
		return nil, failed("open", name, err)
	}
	if length > 0 {
		src.left = length
	}
	return src, nil
}

// status describes what name leads to.
func (f *files) status(name string) (sys.FileStat, error) {
	p, err := f.find(name, search{follow: true})
	if err != nil {
		return sys.FileStat{}, err
	}
	defer p.close()
	return sys.StatAt(p.fd(), p.base)
}

// read fills buf as far as one system call does; 0 is the end.
func (c *content) read(buf []byte) (int, error) {
	if c.left >= 0 && c.left < int64(len(buf)) {
		buf = buf[:c.left]
	}
	if len(buf) == 0 {
		return 0, nil
	}
	for {
		n, err := syscall.Read(c.fd, buf)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return 0, failed("read", c.name, err)
		}
		if c.left >= 0 {
			c.left -= int64(n)
		}
		return n, nil
	}
}

func (c *content) close() { syscall.Close(c.fd) }

func readable(op, name string, st sys.FileStat) error {
	const memory = 1 // major number of null, zero, full, random and urandom
	switch st.Mode & syscall.S_IFMT {
	case syscall.S_IFREG:
		return nil
	case syscall.S_IFDIR:
		return invalid(op, name, "is a directory")
	case syscall.S_IFIFO:
		return invalid(op, name, "is a FIFO, not an ordinary file")
	case syscall.S_IFSOCK:
		return invalid(op, name, "is a socket, not an ordinary file")
	case syscall.S_IFLNK:
		return syscall.ELOOP
	case syscall.S_IFCHR:
		if st.Major == memory {
			switch st.Minor {
			case 3, 5, 7, 8, 9:
				return nil
			}
		}
	}
	return invalid(op, name, "is a device, not an ordinary file")
}

// creation says how a file is made.
type creation struct {
	mode      uint32
	append    bool
	exclusive bool
	parents   bool
}

// create opens a file for writing: it is made, or cut to nothing.
func (f *files) create(name string, c creation) (*os.File, error) {
	mode, err := permission("create", name, c.mode, 0o644)
	if err != nil {
		return nil, err
	}
	if parts := components(name); len(parts) == 0 || parts[len(parts)-1] == "." {
		return nil, invalid("create", name, "the name is that of a directory")
	}
	// Each round looks, asks the guard and acts. It is repeated when what it
	// saw was swapped before it could act.
	for range 100 {
		p, err := f.find(name, search{follow: !c.exclusive, parents: c.parents})
		if err != nil {
			return nil, failed("create", name, err)
		}
		file, swapped, err := f.createAt(p, name, c, mode)
		p.close()
		if !swapped {
			return file, failed("create", name, err)
		}
	}
	return nil, &fileError{"create", name, "it is swapped all the time", paddock.Conflict}
}

func (f *files) createAt(p place, name string, c creation, mode uint32) (_ *os.File, swapped bool, _ error) {
	if p.base == "." {
		return nil, false, syscall.EISDIR
	}
	if err := f.allow("write", p); err != nil {
		return nil, false, err
	}
	st, err := sys.StatAt(p.fd(), p.base)
	switch {
	case err == syscall.ENOENT:
		fd, err := sys.OpenAt(p.fd(), p.base, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL|c.flags(), mode)
		if err != nil {
			return nil, err == syscall.EEXIST && !c.exclusive, err
		}
		return finish(fd, name, func(st sys.FileStat) error {
			if st.Mode&0o777 != mode&0o777 { // the umask took something away
				return syscall.Fchmod(fd, mode)
			}
			return nil
		})
	case err != nil:
		return nil, false, err
	case c.exclusive:
		return nil, false, syscall.EEXIST
	}
	if err := readable("create", name, st); err != nil {
		return nil, err == syscall.ELOOP, err
	}
	fd, err := sys.OpenAt(p.fd(), p.base, syscall.O_WRONLY|c.flags(), 0)
	if err != nil {
		return nil, err == syscall.ENOENT || err == syscall.ELOOP, err
	}
	return finish(fd, name, func(st sys.FileStat) error {
		if err := readable("create", name, st); err != nil {
			return err
		}
		if !c.append && st.Mode&syscall.S_IFMT == syscall.S_IFREG && st.Size > 0 {
			return syscall.Ftruncate(fd, 0)
		}
		return nil
	})
}

// finish gives the opened file if check accepts it, and else closes it.
func finish(fd int, name string, check func(sys.FileStat) error) (*os.File, bool, error) {
	st, err := sys.StatAt(fd, "")
	if err == nil {
		err = check(st)
	}
	if err == nil {
		err = syscall.SetNonblock(fd, false)
	}
	if err != nil {
		syscall.Close(fd)
		return nil, false, err
	}
	return os.NewFile(uintptr(fd), name), false, nil
}

func (c creation) flags() int {
	if c.append {
		return syscall.O_APPEND
	}
	return 0
}

// permission checks the mode that something is to have; zero is usual.
func permission(op, name string, mode, usual uint32) (uint32, error) {
	switch {
	case mode&(syscall.S_ISUID|syscall.S_ISGID) != 0:
		return 0, &fileError{op, name, "set-user-id and set-group-id bits may not be set", paddock.Denied}
	case mode&^0o1777 != 0:
		return 0, invalid(op, name, "the mode holds more than permission bits")
	case mode == 0:
		return usual, nil
	}
	return mode, nil
}
