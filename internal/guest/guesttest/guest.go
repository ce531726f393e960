//go:build linux

// Package guesttest runs a guest agent and its host client in one process, for tests of the packages
// above them.
package guesttest

import (
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/guestclient"
)

// New returns the host's client of a guest that runs in this process, and ends both with the test. If
// o has no environment, commands get this process's PATH and HOME.
func New(t testing.TB, o guest.Options) *guestclient.Guest {
	t.Helper()
	g, _ := Both(t, o, guestclient.Options{})
	return g
}

// Both is New with options for the host's client; it returns the guest's server too.
func Both(t testing.TB, o guest.Options, h guestclient.Options) (*guestclient.Guest, *guest.Server) {
	t.Helper()
	if o.Env == nil {
		o.Env = map[string]string{"PATH": os.Getenv("PATH"), "HOME": os.Getenv("HOME")}
	}
	if o.User == (guest.User{}) {
		o.User = guest.User{Name: "user", UID: os.Getuid(), GID: os.Getgid(), Home: os.Getenv("HOME"), Shell: "/bin/sh"}
	}
	if o.Dir == "" {
		o.Dir = "/"
	}
	s, err := guest.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close guest: %v", err)
		}
	})
	return Join(t, s, h), s
}

// Join returns a new connection to a guest that runs in this process.
func Join(t testing.TB, s *guest.Server, h guestclient.Options) *guestclient.Guest {
	t.Helper()
	host, inside := Pair(t)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(t.Context(), inside)
	}()
	t.Cleanup(func() {
		_ = inside.Close()
		<-served
	})
	g, err := guestclient.New(host, h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// Pair returns the two ends of a connection that uses the kernel's buffers.
func Pair(t testing.TB) (a, b net.Conn) {
	t.Helper()
	fd, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ends := [2]net.Conn{}
	for i := range fd {
		f := os.NewFile(uintptr(fd[i]), "socketpair")
		ends[i], err = net.FileConn(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ends[i].Close() })
	}
	return ends[0], ends[1]
}
