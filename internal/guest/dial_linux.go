package guest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// dialTime bounds a connection to a port of this very machine.
const dialTime = 10 * time.Second

// dialPort connects to what listens on a port of this machine.
func (s *Server) dialPort(ctx context.Context, port uint32) (*net.TCPConn, error) {
	if port < 1 || port > 65535 {
		return nil, fmt.Errorf("%d is not a port, which is a number from 1 to 65535: %w", port, paddock.Invalid)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	var first error
	for _, to := range []syscall.Sockaddr{
		&syscall.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}},
		&syscall.SockaddrInet6{Port: int(port), Addr: [16]byte{15: 1}},
	} {
		conn, err := s.connect(ctx, to)
		if err == nil {
			return conn, nil
		}
		if first == nil {
			first = err
		}
	}
	switch {
	case errors.Is(first, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("nothing listens there: %w", paddock.NotFound)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("what listens there does not accept: %w", paddock.Timeout)
	case errors.Is(first, syscall.ENETUNREACH), errors.Is(first, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("the sandbox has no loopback interface: %w", paddock.Unavailable)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("%w: %w", first, paddock.Unavailable)
}

// connect makes one connection. The net package's dialer cannot be told where
// to make its socket.
func (s *Server) connect(ctx context.Context, to syscall.Sockaddr) (*net.TCPConn, error) {
	family := syscall.AF_INET
	if _, six := to.(*syscall.SockaddrInet6); six {
		family = syscall.AF_INET6
	}
	fd, err := s.o.Socket(family)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	f := os.NewFile(uintptr(fd), "port")
	defer f.Close()
	if err := syscall.Connect(fd, to); err != nil && !errors.Is(err, syscall.EINPROGRESS) {
		return nil, os.NewSyscallError("connect", err)
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = f.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	var failed error
	err = raw.Write(func(uintptr) bool {
		if _, e := syscall.Getpeername(fd); e == nil {
			return true
		}
		var code int
		if code, failed = syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_ERROR); failed == nil && code != 0 {
			failed = syscall.Errno(code)
		}
		return failed != nil
	})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	case failed != nil:
		return nil, os.NewSyscallError("connect", failed)
	}
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

func newSocket(family int) (int, error) {
	return syscall.Socket(family, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
}
