//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// canaryOrder is the harness's order on standard input.
type canaryOrder struct {
	Marker, Token    string
	Stream, Datagram string
	InWork           string
	Secret           string
}

// canary is a process of the host. It holds the token in its environment, in shared memory,
// in message queues and in a key, and listens on sockets. It answers each line of its input
// with a line that reports what happened to them.
func canary(args []string) error {
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	var o canaryOrder
	if err := json.Unmarshal(line, &o); err != nil {
		return err
	}
	w := &watched{order: o}
	defer w.close()
	c, err := w.open()
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(c); err != nil {
		return err
	}
	for {
		if _, err := in.ReadBytes('\n'); err != nil {
			return nil
		}
		if err := out.Encode(w.look(c)); err != nil {
			return err
		}
	}
}

// watched is what the canary holds.
type watched struct {
	order   canaryOrder
	closers []func()
	wg      sync.WaitGroup

	mu   sync.Mutex
	seen []string // guarded by mu
}

func (w *watched) notef(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, fmt.Sprintf(format, args...))
}

func (w *watched) open() (protocol.Canary, error) {
	o := w.order
	c := protocol.Canary{PID: os.Getpid(), Stream: o.Stream, Datagram: o.Datagram, InWork: o.InWork, Abstract: o.Marker}
	sig := make(chan os.Signal, 64)
	signal.Notify(sig, unix.SIGWINCH, unix.SIGHUP, unix.SIGUSR1, unix.SIGTERM, unix.SIGCONT)
	w.closers = append(w.closers, func() { signal.Stop(sig); close(sig) })
	w.wg.Go(func() {
		for s := range sig {
			w.notef("the canary process got the signal %v", s)
		}
	})
	for _, name := range []string{o.Stream, o.InWork, "@" + o.Marker} {
		if name == "" {
			continue
		}
		if err := w.listen(name); err != nil {
			return c, err
		}
	}
	for _, name := range []string{o.Datagram, "@" + o.Marker + "-d"} {
		if err := w.receive(name); err != nil {
			return c, err
		}
	}
	err := errors.Join(w.shm(&c), w.msg(&c), w.mqueue(&c))
	w.key(&c)
	if h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, o.Secret, 0); err == nil {
		c.Handle, c.HType = h.Bytes(), int(h.Type())
	}
	return c, err
}

// listen accepts connections and records them. It binds a long name through a short path.
func (w *watched) listen(name string) error {
	l, err := net.Listen("unix", name)
	if err != nil {
		return err
	}
	w.closers = append(w.closers, func() { l.Close() })
	w.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			w.notef("somebody connected to %s", name)
			conn.Close()
		}
	})
	return nil
}

func (w *watched) receive(name string) error {
	p, err := net.ListenPacket("unixgram", name)
	if err != nil {
		return err
	}
	w.closers = append(w.closers, func() { p.Close() })
	w.wg.Go(func() {
		buf := make([]byte, 64)
		for {
			if _, _, err := p.ReadFrom(buf); err != nil {
				return
			}
			w.notef("somebody wrote to %s", name)
		}
	})
	return nil
}

func (w *watched) shm(c *protocol.Canary) error {
	c.ShmKey = 0x50000000 | os.Getpid()
	id, err := unix.SysvShmGet(c.ShmKey, 4096, ipcCreat|0o666)
	if err != nil {
		return fmt.Errorf("shared memory: %w", err)
	}
	c.ShmID = id
	w.closers = append(w.closers, func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	m, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		return fmt.Errorf("shared memory: %w", err)
	}
	copy(m, w.order.Token)
	return unix.SysvShmDetach(m)
}

func (w *watched) msg(c *protocol.Canary) error {
	id, err := tryFD(syscall.Syscall(unix.SYS_MSGGET, uintptr(c.ShmKey), ipcCreat|0o666, 0))
	if err != nil {
		return fmt.Errorf("message queue: %w", err)
	}
	c.MsgID = id
	w.closers = append(w.closers, func() { _, _, _ = syscall.Syscall(unix.SYS_MSGCTL, uintptr(id), 0, 0) })
	msg := struct {
		typ  int64
		text [64]byte
	}{typ: 1}
	n := copy(msg.text[:], w.order.Token)
	if err := try0(syscall.Syscall6(unix.SYS_MSGSND, uintptr(id), uintptr(unsafe.Pointer(&msg)), uintptr(n), 0, 0, 0)); err != nil {
		return fmt.Errorf("message queue: %w", err)
	}
	sem, err := tryFD(syscall.Syscall(unix.SYS_SEMGET, uintptr(c.ShmKey), 1, ipcCreat|0o666))
	if err != nil {
		return fmt.Errorf("semaphore: %w", err)
	}
	c.SemID = sem
	w.closers = append(w.closers, func() { _, _, _ = syscall.Syscall(unix.SYS_SEMCTL, uintptr(sem), 0, 0) })
	return nil
}

func (w *watched) mqueue(c *protocol.Canary) error {
	c.MQueue = w.order.Marker
	p, err := unix.BytePtrFromString(c.MQueue)
	if err != nil {
		return err
	}
	fd, err := tryFD(syscall.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(p)), unix.O_CREAT|unix.O_RDWR, 0o666, 0, 0, 0))
	if err != nil {
		return fmt.Errorf("mqueue: %w", err)
	}
	w.closers = append(w.closers, func() {
		unix.Close(fd)
		_, _, _ = syscall.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(p)), 0, 0)
	})
	return nil
}

// key adds a key to the user keyring, if the kernel has keyrings.
func (w *watched) key(c *protocol.Canary) {
	c.KeyName = w.order.Marker + "-key"
	id, err := unix.AddKey("user", c.KeyName, []byte(w.order.Token), unix.KEY_SPEC_USER_KEYRING)
	if err != nil {
		return
	}
	c.Key = id
	// Readable for every process of this user, as agents leave their keys.
	_ = unix.KeyctlSetperm(id, 0x3f3f0000)
	w.closers = append(w.closers, func() { _, _ = unix.KeyctlInt(unix.KEYCTL_UNLINK, id, unix.KEY_SPEC_USER_KEYRING, 0, 0) })
}

// look returns what happened since the last look.
func (w *watched) look(c protocol.Canary) []string {
	w.mu.Lock()
	seen := append([]string{}, w.seen...)
	w.seen = nil
	w.mu.Unlock()
	m, err := unix.SysvShmAttach(c.ShmID, 0, unix.SHM_RDONLY)
	if err != nil {
		seen = append(seen, "the shared memory is gone")
	} else {
		if !strings.HasPrefix(string(m), w.order.Token) {
			seen = append(seen, "the shared memory was changed")
		}
		_ = unix.SysvShmDetach(m)
	}
	var info struct {
		perm                [48]byte
		stime, rtime, ctime int64
		bytes, count, max   uint64
		lspid, lrpid        int32
		unused              [2]uint64
	}
	if err := try0(syscall.Syscall(unix.SYS_MSGCTL, uintptr(c.MsgID), ipcStat, uintptr(unsafe.Pointer(&info)))); err != nil {
		seen = append(seen, "the message queue is gone")
	} else if info.count != 1 {
		seen = append(seen, fmt.Sprintf("the message queue has %d messages in place of 1", info.count))
	}
	for _, name := range []string{"-planted", "-planted80"} {
		for _, ring := range []int{unix.KEY_SPEC_SESSION_KEYRING, unix.KEY_SPEC_USER_KEYRING, unix.KEY_SPEC_USER_SESSION_KEYRING} {
			id, err := unix.KeyctlSearch(ring, "user", w.order.Marker+name, 0)
			if err == nil {
				seen = append(seen, fmt.Sprintf("a key was planted in keyring %d", ring))
				_, _ = unix.KeyctlInt(unix.KEYCTL_UNLINK, id, ring, 0, 0)
			}
		}
	}
	return seen
}

func (w *watched) close() {
	for i := len(w.closers) - 1; i >= 0; i-- {
		w.closers[i]()
	}
	w.wg.Wait()
}
