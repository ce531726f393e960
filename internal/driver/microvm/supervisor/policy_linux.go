package supervisor

import (
	"fmt"
	"os"
	"sync"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A policy has the files outside its tree that QEMU may open, by name.
type policy struct {
	mu    sync.Mutex
	files map[string]*os.File // guarded by mu
}

// add gives a file a name.
func (p *policy) add(path string, f *os.File) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.files == nil {
		p.files = map[string]*os.File{}
	}
	p.files[path] = f
}

// drop takes all files back from a started QEMU, which has read them or keeps them open. It closes them except for one
// that is still needed.
func (p *policy) drop(needed *os.File) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.files {
		if f != needed {
			f.Close()
		}
	}
	p.files = nil
}

// reads reports whether the policy gives files that QEMU only reads.
func (p *policy) reads() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.files[kernelPath] != nil || p.files[initrdPath] != nil
}

// A verdict is the decision on a system call.
type verdict struct {
	file *os.File // returned as a new descriptor
	pass bool     // the kernel executes the call
}

// open decides on opening a file. For reading, QEMU may open any file of its tree. If the
// name changes after the decision, it still leads to a file of that tree. p.mu is held.
func (p *policy) open(path string, flags int) verdict {
	if f := p.files[path]; f != nil {
		return verdict{file: f}
	}
	return verdict{pass: flags&changes == 0}
}

// changes is the set of open flags that can change a file.
const changes = syscall.O_ACCMODE | syscall.O_CREAT | syscall.O_TRUNC | sys.OpenTmpfile

// pathMax is the maximum length of a path in bytes.
const pathMax = 4096

// serve answers the system calls that QEMU's filter reports, until no process with the
// filter is left.
func (p *policy) serve(listener *os.File) error {
	f, poller, err := sys.NewPoller(listener)
	if err != nil {
		return err
	}
	fd, err := sys.Descriptor(f)
	if err != nil {
		return err
	}
	go func() {
		defer f.Close()
		started := false
		for poller.Wait() == nil {
			var n sys.Notif
			switch err := n.Receive(fd); {
			case err == syscall.ENOENT: //nolint:errorlint // the bare number: the caller has died
			case err != nil:
				return // no call is answered any more, so none is executed
			case uint32(n.NR) == sys.Numbers()["execve"]:
				if started {
					_ = sys.NotifAnswer(fd, n.ID, 0, syscall.EPERM)
					continue
				}
				started = true // the stub executes QEMU
				_ = sys.NotifContinue(fd, n.ID)
			default:
				p.answer(fd, n)
			}
		}
	}()
	return nil
}

// answer answers a call that opens a file. It ignores a caller that was killed.
func (p *policy) answer(listener int, n sys.Notif) {
	refuse := func(e syscall.Errno) { _ = sys.NotifAnswer(listener, n.ID, 0, e) }
	name, flags := n.Args[1], int(uint32(n.Args[2]))
	if nr, ok := sys.Numbers()["open"]; ok && nr == uint32(n.NR) {
		name, flags = n.Args[0], int(uint32(n.Args[1]))
	}
	path, err := sys.ReadString(int(n.PID), name, pathMax)
	if err != nil || n.PID == 0 || !sys.NotifValid(listener, n.ID) {
		refuse(syscall.EACCES)
		return
	}
	p.mu.Lock() // until the file is given, it stays open
	defer p.mu.Unlock()
	v := p.open(path, flags)
	switch {
	case v.file != nil:
		if err := give(listener, n.ID, v.file, flags&syscall.O_CLOEXEC != 0); err != nil {
			refuse(syscall.EACCES)
		}
	case v.pass:
		_ = sys.NotifContinue(listener, n.ID)
	default:
		refuse(syscall.EACCES)
	}
}

// give returns a file with offset 0. It opens the file again if possible, because others
// may share the descriptor.
func give(listener int, id uint64, f *os.File, cloexec bool) error {
	fd, err := sys.Descriptor(f)
	if err != nil {
		return err
	}
	if st, err := f.Stat(); err == nil && st.Mode().IsRegular() {
		if anew, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil {
			defer anew.Close()
			if fd, err = sys.Descriptor(anew); err != nil {
				return err
			}
		} else if _, err := f.Seek(0, 0); err != nil {
			return err
		}
	}
	return sys.NotifGive(listener, id, fd, cloexec)
}
