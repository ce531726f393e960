package boxinit

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// This file judges calls that act on what the box shares with the host without changing it: locks, for
// which others wait, and watches, which tell what others do. Both need no right but to read.

// flock locks a file that the guest may change. Programs on the host lock files that everybody may
// read, and a lock of the guest's on one would stop them for as long as the guest likes.
//
// The lock is always taken here, on the open file that was judged. It belongs to that file, so it is the
// caller's as well.
func (c *call) flock() reply {
	fd, err := c.descriptor(c.fd(0))
	if err != nil {
		return fails(err)
	}
	if full, ok := c.lockable(fd); !ok {
		sys.Close(fd)
		c.refuse("lock", full, "files that may only be read")
		return reply{err: syscall.EOPNOTSUPP} // as on a file system without locks, which programs expect
	}
	operation := c.fd(1)
	err = sys.Lock(fd, operation)
	if !errors.Is(err, syscall.EWOULDBLOCK) || operation&sys.LockNow != 0 {
		sys.Close(fd)
		return result(err)
	}
	if !c.later(fd, func() (reply, bool) {
		err := sys.Lock(fd, operation)
		return result(err), !errors.Is(err, syscall.EWOULDBLOCK)
	}) {
		c.tooMany("lock", fd)
		return reply{err: syscall.ENOLCK}
	}
	return reply{late: true}
}

// openFIFO opens a FIFO that nobody reads for writing, as soon as somebody does.
func (c *call) openFIFO(p *place, flags int) reply {
	const nobody = syscall.ENXIO
	fifo, err := sys.Openat(p.dir, p.base, sys.OpenPathOnly, 0)
	if err != nil {
		return fails(err)
	}
	if st, err := sys.StatAt(fifo, ""); err != nil || st.Mode&sys.TypeMask != sys.TypeFIFO {
		sys.Close(fifo)
		return reply{err: nobody} // somebody has put another file there
	}
	if !c.later(fifo, func() (reply, bool) {
		fd, err := sys.ReopenFor(fifo, flags&(syscall.O_ACCMODE|syscall.O_APPEND)|syscall.O_NONBLOCK)
		if err == nil {
			if err = sys.Blocking(fd); err == nil {
				return reply{open: true, fd: fd, keep: flags&syscall.O_CLOEXEC == 0}, true
			}
			sys.Close(fd)
		}
		return fails(err), !errors.Is(err, nobody)
	}) {
		c.tooMany("write", fifo)
		return reply{err: nobody}
	}
	return reply{late: true}
}

// later answers a call when try can, which it asks again and again. It closes fd before that: the caller may close the file
// to give a lock up. It is false if too many calls wait.
func (c *call) later(fd int, try func() (reply, bool)) bool {
	select {
	case c.waiting <- struct{}{}:
	default:
		return false
	}
	go func() {
		defer c.caught()
		defer func() { <-c.waiting }()
		r := c.await(try)
		sys.Close(fd)
		c.send(r)
	}()
	return true
}

// tooMany tells that a call with an open file cannot wait, and closes the file.
func (c *call) tooMany(operation string, fd int) {
	full, err := c.where(fd)
	sys.Close(fd)
	if err != nil {
		full = "a file without a path"
	}
	c.refuse(operation, full, fmt.Sprintf("at most %d calls wait for locks and readers of FIFOs", waitingMax))
}

// await waits until try has an answer, or the caller dies or has a signal to handle. The kernel does not interrupt a call
// that the broker has taken up.
func (c *call) await(try func() (reply, bool)) reply {
	const most = 20 * time.Millisecond
	for pause := time.Millisecond; ; pause = min(2*pause, most) {
		<-time.After(pause)
		if !sys.NotifValid(c.listener, c.id) {
			return reply{err: syscall.EINTR} // nobody gets it
		}
		if r, ok := try(); ok {
			return r
		}
		yes, certain, err := sys.Interrupted(c.tid)
		switch {
		case err != nil, yes && !certain:
			return reply{err: syscall.EINTR} // also to a handler with SA_RESTART: docs/LIMITS.md
		case yes:
			return reply{err: sys.Restart}
		}
	}
}

// lockable reports whether the guest may lock an open file, and where that file is.
func (c *call) lockable(fd int) (full string, ok bool) {
	st, err := sys.StatAt(fd, "")
	if err != nil {
		return "", false
	}
	full, err = c.where(fd)
	if err != nil {
		return "", false
	}
	switch kind := st.Mode & sys.TypeMask; {
	case kind == sys.TypeChar || kind == sys.TypeBlock: // the host's devices
		return full, false
	case kind == sys.TypeRegular && strings.HasPrefix(full, "/memfd:"), kind == sys.TypeFIFO && strings.HasPrefix(full, "pipe:"):
		return full, true // the guest's own, without a name
	}
	return full, c.locks(full)
}

// locks reports whether the guest may lock what is at a path. Outside of the host's file trees everything
// is the box's own.
func (b *broker) locks(path string) bool {
	if b.changes(path) {
		return true
	}
	return strings.HasPrefix(path, "/") && !slices.ContainsFunc(b.hosts, func(h string) bool { return below(path, h) })
}

// watch watches a file for the caller, if it is the box's own or in a mount that the caller of the
// sandbox named. A watch on a file of the system would tell which programs run on the host, and when.
//
// The watch is always added here, for the file that was judged.
func (c *call) watch() reply {
	mask := uint32(c.args[2])
	path, err := sys.ReadString(c.tid, c.args[1], pathMax)
	if err != nil {
		return fails(err)
	}
	instance, err := c.descriptor(c.fd(0))
	if err != nil {
		return fails(err)
	}
	defer sys.Close(instance)
	file, err := c.watched(path, mask)
	if err != nil {
		return fails(err)
	}
	defer sys.Close(file)
	st, err := sys.StatAt(file, "")
	if err != nil {
		return fails(err)
	}
	full, err := c.where(file)
	if err != nil {
		return fails(err)
	}
	kind := st.Mode & sys.TypeMask
	if kind == sys.TypeChar || kind == sys.TypeBlock || !c.watchable(full) {
		c.refuse("watch", full, "files of the host that no mount names")
		return reply{err: syscall.EACCES}
	}
	n, err := sys.WatchFile(instance, file, mask)
	if err != nil {
		return fails(err)
	}
	return reply{num: n}
}

// watched opens the file that a call names to watch it.
func (c *call) watched(path string, mask uint32) (int, error) {
	if n, ok := strings.CutPrefix(path, "/proc/self/fd/"); ok {
		if fd, err := strconv.Atoi(n); err == nil && fd >= 0 {
			return c.selfDescriptor(fd)
		}
	}
	start := sys.AtCWD
	if !strings.HasPrefix(path, "/") {
		var err error
		if start, err = sys.DirOf(c.tid, sys.AtCWD); err != nil {
			return -1, err
		}
		defer sys.Close(start)
	}
	if !sys.NotifValid(c.listener, c.id) {
		return -1, syscall.ESRCH
	}
	if sys.WatchFollows(mask) {
		return sys.ResolveFile(start, path)
	}
	return sys.ResolveLink(start, path)
}

// watchable reports whether the guest may watch what is at a path. Outside of the host's file trees
// everything is the box's own.
func (b *broker) watchable(path string) bool {
	if b.changes(path) {
		return true
	}
	longest, ok := 0, strings.HasPrefix(path, "/")
	for _, h := range b.hosts {
		if below(path, h) && len(h) > longest {
			longest, ok = len(h), slices.Contains(b.named, h)
		}
	}
	return ok
}
