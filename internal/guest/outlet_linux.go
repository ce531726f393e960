package guest

import (
	"os"
	"sync"
	"syscall"
)

// outlets are the streams of a process's output, read by one goroutine.
//
// They share a poll descriptor of their own, because the kernel gives what is
// ready in the order in which it became so. The runtime's poller turns that
// order around, and of two goroutines nobody knows which is first. So the
// order of standard output and standard error is right unless a process
// returns to the first before the agent has run.
type outlets struct {
	list []*outlet
	poll *os.File // epoll
}

// An outlet is one stream.
type outlet struct {
	f *os.File

	mu    sync.Mutex // held for a read that does not wait
	taken int64      // guarded by mu; bytes read
	kept  int64      // guarded by mu; bytes handed on
	rest  int64      // guarded by mu; kept when all that the process wrote itself is here
	ended bool       // guarded by mu
}

// open takes over standard output and standard error, or one file for both.
func (o *outlets) open(files ...*os.File) error {
	for _, f := range files {
		o.list = append(o.list, &outlet{f: f})
	}
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create", err)
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		_ = syscall.Close(fd)
		return os.NewSyscallError("fcntl", err)
	}
	o.poll = os.NewFile(uintptr(fd), "epoll")
	for i, out := range o.list {
		if err := o.control(syscall.EPOLL_CTL_ADD, i, out); err != nil {
			return err
		}
	}
	return nil
}

func (o *outlets) control(op, i int, out *outlet) error {
	poll, err := o.poll.SyscallConn()
	if err != nil {
		return err
	}
	file, err := out.f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = poll.Control(func(epfd uintptr) {
		err := file.Control(func(fd uintptr) {
			failed = syscall.EpollCtl(int(epfd), op, int(fd), &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(i)})
		})
		if failed == nil {
			failed = err
		}
	})
	if failed != nil {
		return os.NewSyscallError("epoll_ctl", failed)
	}
	return err
}

// copy hands on everything until the end of all streams or close, and closes
// the files. It holds a buffer only while there is something to read.
func (o *outlets) copy(buffer func() *[]byte, buffers *sync.Pool, keep func(stderr bool, b []byte)) {
	defer o.closeFiles()
	defer o.close()
	conn, err := o.poll.SyscallConn()
	if err != nil {
		return
	}
	for left := len(o.list); left > 0; {
		var ready [2]syscall.EpollEvent
		n := 0
		if err := conn.Read(func(fd uintptr) bool {
			n, _ = syscall.EpollWait(int(fd), ready[:], 0) // interrupted is -1: again
			return n != 0
		}); err != nil {
			return
		}
		for _, event := range ready[:max(n, 0)] {
			at := int(event.Fd)
			out := o.list[at]
			b := buffer()
			n, more := out.read(*b)
			if n > 0 {
				keep(at == 1, (*b)[:n])
				out.handedOn(n)
			}
			buffers.Put(b)
			if !more {
				_ = o.control(syscall.EPOLL_CTL_DEL, at, out)
				_ = out.f.Close()
				left--
			}
		}
	}
}

// close ends copy. What writes to the streams then is told by the kernel.
func (o *outlets) close() {
	if o.poll != nil {
		_ = o.poll.Close()
	}
}

func (o *outlets) closeFiles() {
	for _, out := range o.list {
		_ = out.f.Close()
	}
}

// read takes what is there.
func (out *outlet) read(b []byte) (n int, more bool) {
	out.mu.Lock()
	defer out.mu.Unlock()
	conn, err := out.f.SyscallConn()
	if err == nil {
		failed := conn.Control(func(fd uintptr) {
			n, err = syscall.Read(int(fd), b)
		})
		if failed != nil {
			err = failed
		}
	}
	if err == syscall.EAGAIN || err == syscall.EINTR {
		return 0, true
	}
	// A terminal whose other side is closed answers EIO.
	if err != nil || n <= 0 {
		out.ended = true
		return 0, false
	}
	out.taken += int64(n)
	return n, true
}

func (out *outlet) handedOn(n int) {
	out.mu.Lock()
	defer out.mu.Unlock()
	out.kept += int64(n)
}

// expectRest notes how much is under way when the process ends.
func (o *outlets) expectRest() {
	for _, out := range o.list {
		out.mu.Lock()
		out.rest = out.taken
		if conn, err := out.f.SyscallConn(); err == nil {
			_ = conn.Control(func(fd uintptr) { out.rest += int64(unread(fd)) })
		}
		out.mu.Unlock()
	}
}

// haveRest tells whether that has arrived.
func (o *outlets) haveRest() bool {
	for _, out := range o.list {
		out.mu.Lock()
		have := out.ended || out.kept >= out.rest
		out.mu.Unlock()
		if !have {
			return false
		}
	}
	return true
}
