package sys

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// A thread's number means its own table, also if the first thread's table has another file there.
func TestADescriptorIsOneOfTheThread(t *testing.T) {
	dir := t.TempDir()
	const number = 700
	open := func(name string) int {
		fd, err := syscall.Open(filepath.Join(dir, name), syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC, 0o600)
		if err == nil {
			err = syscall.Dup3(fd, number, syscall.O_CLOEXEC)
		}
		if err != nil {
			t.Error(err)
		}
		return fd
	}
	defer func() { Close(number) }()
	defer Close(open("process"))
	tid, end, ended := make(chan int), make(chan struct{}), make(chan struct{})
	var other func()
	other = func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its table
		if Leader() {
			go other() // which gets another thread
			<-end
			return
		}
		defer close(ended)
		if err := syscall.Unshare(syscall.CLONE_FILES); err != nil {
			t.Error(err)
		}
		open("thread")
		tid <- syscall.Gettid()
		<-end
	}
	go other()
	thread := <-tid
	defer func() { close(end); <-ended }()
	want, err := os.Stat(filepath.Join(dir, "thread"))
	if err != nil {
		t.Fatal(err)
	}
	fd, err := DescriptorOf(thread, number)
	if err != nil {
		t.Fatal(err)
	}
	got := os.NewFile(uintptr(fd), "got")
	defer got.Close()
	if st, err := got.Stat(); err != nil || !os.SameFile(st, want) {
		t.Errorf("another file: %v", err)
	}
	// Before Linux 6.9 there is only the table of the first thread.
	if _, err := sharedDescriptor(thread, number); !errors.Is(err, syscall.EBADF) {
		t.Errorf("%v, want %v", err, syscall.EBADF)
	}
}
