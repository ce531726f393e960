package agent_test

import (
	"context"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/agent"
	"github.com/paddock-sandbox/paddock/internal/guest"
)

// pair gives the host's side of a guest that runs in this very process, at the
// other end of a pair of sockets, as the tiers use them.
func pair(tb testing.TB, o guest.Options, ao agent.Options) *agent.Guest {
	tb.Helper()
	host, inside := sockets(tb)
	s, err := guest.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background(), inside) }()
	g, err := agent.New(host, ao)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = g.Close()
		<-served
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return g
}

// sockets gives two connected stream sockets.
func sockets(tb testing.TB) (net.Conn, net.Conn) {
	tb.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		tb.Fatal(err)
	}
	var conns [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		if conns[i], err = net.FileConn(f); err != nil {
			tb.Fatal(err)
		}
		f.Close()
	}
	return conns[0], conns[1]
}
