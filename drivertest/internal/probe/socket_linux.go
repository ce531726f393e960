package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// addresses listens on a Unix socket, connects to it from a socket that has an address too, and prints
// the addresses that both sides see.
func addresses(server, client string) error {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: server, Net: "unix"})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	defer l.Close()
	fmt.Println("listens at", l.Addr())
	c, err := net.DialUnix("unix", &net.UnixAddr{Name: client, Net: "unix"}, &net.UnixAddr{Name: server, Net: "unix"})
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Println("is at", c.LocalAddr())
	fmt.Println("connected to", c.RemoteAddr())
	s, err := l.Accept()
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Println("accepted", s.RemoteAddr())
	// As clients do that take the address for a path.
	again, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		return err
	}
	return again.Close()
}

// serve listens on a Unix socket, prints that it does, and answers until somebody removes the file that it
// makes.
func serve(path, until string) error {
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(until, nil, 0o600); err != nil {
		return err
	}
	fmt.Println("listening")
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "a guest answers\n")
			c.Close()
		}
	}()
	return untilGone(until)
}

// hasty binds Unix sockets at path, one after the other, while another thread listens on each from before it
// has an address. It makes a file when it has done so.
func hasty(path, after string, rounds int) error {
	for range rounds {
		fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		listening := make(chan struct{})
		var bound atomic.Bool
		go func() {
			defer close(listening)
			for syscall.Listen(fd, 10) != nil && !bound.Load() {
			}
		}()
		err = syscall.Bind(fd, &syscall.SockaddrUnix{Name: path})
		bound.Store(true)
		<-listening
		if err := errors.Join(err, os.Remove(path), syscall.Close(fd)); err != nil {
			return err
		}
	}
	return os.WriteFile(after, nil, 0o600)
}

// ask connects to a Unix socket, and prints what it says.
func ask(path string) error {
	c, err := net.Dial("unix", path)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = io.Copy(os.Stdout, c)
	return err
}

// pair exchanges messages over a pair of datagram sockets, and sends one to the socket at path.
func pair(path string) error {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	for _, text := range []string{"one", "two and more", "three"} {
		if _, err := syscall.Write(fds[0], []byte(text)); err != nil {
			return err
		}
	}
	buf := make([]byte, 64)
	for range 3 {
		n, err := syscall.Read(fds[1], buf)
		if err != nil {
			return err
		}
		fmt.Printf("got %q\n", buf[:n])
	}
	if _, err := syscall.Write(fds[1], []byte("back")); err != nil {
		return err
	}
	n, err := syscall.Read(fds[0], buf)
	if err != nil {
		return err
	}
	fmt.Printf("got %q\n", buf[:n])
	// Whatever becomes of it: the other side looks whether it came.
	_ = syscall.Sendto(fds[0], []byte("by name"), syscall.MSG_DONTWAIT, &syscall.SockaddrUnix{Name: path})
	return nil
}

// undumpable forbids other processes to look into this one, as programs do that hold keys, and then
// does what a program does with files and sockets below dir.
func undumpable(dir, sockets string) error {
	const setDumpable = 4
	if _, _, e := syscall.RawSyscall(syscall.SYS_PRCTL, setDumpable, 0, 0); e != 0 {
		return e
	}
	runtime.LockOSThread()
	d, err := syscall.Open(dir, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	var errs []error
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"make a directory", func() error { return os.Mkdir(at("d"), 0o755) }},
		{"write", func() error { return os.WriteFile(at("d/a"), []byte("a"), 0o644) }},
		{"write by descriptor", func() error { return openAt(d, "b") }},
		{"go there", func() error { return os.Chdir(dir) }},
		{"write in the working directory", func() error { return os.WriteFile("c", []byte("c"), 0o644) }},
		{"rename", func() error { return os.Rename("c", at("d/c")) }},
		{"link", func() error { return os.Link(at("d/a"), at("d/hard")) }},
		{"link by name", func() error { return os.Symlink("a", at("d/soft")) }},
		{"change a mode", func() error { return os.Chmod(at("d/a"), 0o600) }},
		{"change a mode by descriptor", func() error { return fchmod(at("d/a")) }},
		{"shorten", func() error { return os.Truncate(at("d/a"), 0) }},
		{"lock", func() error { return flock(at("d/a")) }},
		{"watch", func() error { return watchOnce(at("d")) }},
		{"remove", func() error { return os.RemoveAll(at("d")) }},
		{"listen and connect", func() error { return addresses(filepath.Join(sockets, "u.sock"), filepath.Join(sockets, "v.sock")) }},
		{"listen and connect here", func() error { return addresses("u.sock", "v.sock") }},
		{"make a datagram socket", udp},
	} {
		if err := step.do(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", step.what, err))
		}
	}
	return errors.Join(errs...)
}

func openAt(dir int, name string) error {
	fd, err := syscall.Openat(dir, name, syscall.O_CREAT|syscall.O_WRONLY|syscall.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	return syscall.Close(fd)
}

func fchmod(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Chmod(0o644)
}

func flock(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

func watchOnce(name string) error {
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	_, err = syscall.InotifyAddWatch(fd, name, syscall.IN_ALL_EVENTS)
	return err
}

func udp() error {
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	return c.Close()
}

// race moves a directory to and fro while it binds Unix sockets through it, and prints how many could
// be bound. dir/here is a directory, and dir/there a link.
func race(dir string, rounds int) error {
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
				_ = exchange(filepath.Join(dir, "here"), filepath.Join(dir, "there"))
			}
		}
	}()
	bound := 0
	for i := range rounds {
		l, err := net.Listen("unix", fmt.Sprintf("%s/here/%d", dir, i))
		if err == nil {
			bound++
			l.Close()
		}
	}
	close(stop)
	<-ended
	fmt.Println("bound", bound)
	return nil
}

// exchange makes two names change places.
func exchange(a, b string) error {
	from, err := syscall.BytePtrFromString(a)
	if err != nil {
		return err
	}
	to, err := syscall.BytePtrFromString(b)
	if err != nil {
		return err
	}
	const cwd = -100
	here := cwd
	_, _, e := syscall.Syscall6(renameat2, uintptr(here), uintptr(unsafe.Pointer(from)), uintptr(here), uintptr(unsafe.Pointer(to)), 2, 0)
	if e != 0 {
		return e
	}
	return nil
}
