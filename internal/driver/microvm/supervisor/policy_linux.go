package supervisor

import (
	"fmt"
	"os"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// A policy is which files QEMU gets that its tree has not, by the names that it
// opens them by.
type policy struct {
	files map[string]*os.File
}

// A verdict is what becomes of a call.
type verdict struct {
	file *os.File // is given, as a new descriptor
	pass bool     // the kernel does it
}

// open decides about a file that is opened. To read, QEMU may open what its tree
// has; what it names may be something else by then, and is of that tree still.
func (p *policy) open(path string, flags int) verdict {
	if f := p.files[path]; f != nil {
		return verdict{file: f}
	}
	return verdict{pass: flags&changes == 0}
}

// changes are the flags of an opening that can change a file.
const changes = syscall.O_ACCMODE | syscall.O_CREAT | syscall.O_TRUNC | kernel.OpenTmpfile

// pathMax is how long a path is at most, in bytes.
const pathMax = 4096

// serve answers the system calls that QEMU's filter reports, until nobody is left
// who could call.
func (p *policy) serve(listener *os.File) error {
	f, poller, err := kernel.NewPoller(listener)
	if err != nil {
		return err
	}
	fd, err := kernel.Descriptor(f)
	if err != nil {
		return err
	}
	go func() {
		defer f.Close()
		started := false
		for poller.Wait() == nil {
			var n kernel.Notif
			switch err := n.Receive(fd); {
			case err == syscall.ENOENT: //nolint:errorlint // it is the number itself: the caller died before we looked
			case err != nil:
				return // no call is answered any more, and so none is done
			case uint32(n.NR) == kernel.Numbers()["execve"]:
				if started {
					_ = kernel.NotifAnswer(fd, n.ID, 0, syscall.EPERM)
					continue
				}
				started = true // the stub executes QEMU
				_ = kernel.NotifContinue(fd, n.ID)
			default:
				p.answer(fd, n)
			}
		}
	}()
	return nil
}

// answer answers a call that opens a file. An answer that finds nobody is for a
// caller that was killed.
func (p *policy) answer(listener int, n kernel.Notif) {
	refuse := func(e syscall.Errno) { _ = kernel.NotifAnswer(listener, n.ID, 0, e) }
	name, flags := n.Args[1], int(uint32(n.Args[2]))
	if nr, ok := kernel.Numbers()["open"]; ok && nr == uint32(n.NR) {
		name, flags = n.Args[0], int(uint32(n.Args[1]))
	}
	path, err := kernel.ReadString(int(n.PID), name, pathMax)
	if err != nil || n.PID == 0 || !kernel.NotifValid(listener, n.ID) {
		refuse(syscall.EACCES)
		return
	}
	v := p.open(path, flags)
	switch {
	case v.file != nil:
		if err := give(listener, n.ID, v.file, flags&syscall.O_CLOEXEC != 0); err != nil {
			refuse(syscall.EACCES)
		}
	case v.pass:
		_ = kernel.NotifContinue(listener, n.ID)
	default:
		refuse(syscall.EACCES)
	}
}

// give gives a file from its beginning on: by a new opening of it, where that can
// be, as others may have the same one.
func give(listener int, id uint64, f *os.File, cloexec bool) error {
	fd, err := kernel.Descriptor(f)
	if err != nil {
		return err
	}
	if st, err := f.Stat(); err == nil && st.Mode().IsRegular() {
		if anew, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil {
			defer anew.Close()
			if fd, err = kernel.Descriptor(anew); err != nil {
				return err
			}
		} else if _, err := f.Seek(0, 0); err != nil {
			return err
		}
	}
	return kernel.NotifGive(listener, id, fd, cloexec)
}
