package sys

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A call that is answered with a descriptor gets that one and no other, also
// while the thread that answers is sent signals, as a runtime does.
func TestADescriptorIsGivenInOnePiece(t *testing.T) {
	const calls = 4000
	name := filepath.Join(t.TempDir(), "file")
	path, err := unix.BytePtrFromString(name)
	if err != nil {
		t.Fatal(err)
	}
	opened := make(chan int, 1)
	ready := make(chan *os.File, 1)
	go func() { // the thread ends with its filter
		runtime.LockOSThread()
		defer close(opened)
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			t.Error(err)
			close(ready)
			return
		}
		f, err := SeccompListen([]unix.SockFilter{
			{Code: 0x20, K: 0}, // the number
			{Code: 0x15, K: unix.SYS_MKDIRAT, Jt: 0, Jf: 1}, // a call that nothing else here makes
			{Code: 0x06, K: 0x7fc00000},                     // is for the listener
			{Code: 0x06, K: 0x7fff0000},                     // the others are for the kernel
		})
		if err != nil {
			t.Error(err)
			close(ready)
			return
		}
		ready <- f
		at := unix.AT_FDCWD
		for range calls {
			fd, _, e := unix.Syscall(unix.SYS_MKDIRAT, uintptr(at), uintptr(unsafe.Pointer(path)), 0)
			if e != 0 {
				t.Errorf("it ends with %v", e)
				return
			}
			opened <- int(fd)
		}
	}()
	listener, ok := <-ready
	if !ok {
		t.FailNow()
	}
	defer listener.Close()
	given, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer given.Close()

	answers := make(chan int, 1) // the thread that answers
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		answers <- unix.Gettid()
		fd := int(listener.Fd())
		for {
			var n Notif
			if err := n.Receive(fd); err != nil {
				return
			}
			if err := NotifGive(fd, n.ID, int(given.Fd()), true); err != nil && !errors.Is(err, syscall.ENOENT) {
				t.Errorf("give: %v", err)
				_ = NotifAnswer(fd, n.ID, 0, syscall.EMFILE)
			}
		}
	}()
	tid := <-answers
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Tgkill(os.Getpid(), tid, unix.SIGURG)
			}
		}
	}()
	var want unix.Stat_t
	if err := unix.Fstat(int(given.Fd()), &want); err != nil {
		t.Fatal(err)
	}
	n := 0
	for fd := range opened {
		n++
		var got unix.Stat_t
		if err := unix.Fstat(fd, &got); err != nil || got.Ino != want.Ino || got.Dev != want.Dev {
			t.Fatalf("call %d of %d got descriptor %d, which is another file (%v)", n, calls, fd, err)
		}
		Close(fd)
	}
	if n != calls {
		t.Errorf("%d calls of %d were answered", n, calls)
	}
}
