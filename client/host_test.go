package client_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/server"
)

// A host serves one driver for each state directory, to any number of clients. A client in
// another process finds it by its socket.
type host struct {
	driver func(state string) (paddock.Driver, error)
	listen func(state string) (net.Listener, string, error) // and the address for clients; nil listens on a socket
	tls    *tls.Config                                      // for clients

	mu      sync.Mutex
	servers map[string]*served // guarded by mu; by state directory
}

type served struct {
	address string
	stop    func() error

	clients []*client.Driver // guarded by host.mu
}

// socket returns the path where a client in another process finds the server.
func socket(state string) string { return filepath.Join(state, "s.sock") }

func onSocket(state string) (net.Listener, string, error) {
	l, err := net.Listen("unix", socket(state))
	return l, "unix://" + socket(state), err
}

func onTCP(string) (net.Listener, string, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	return l, "http://" + l.Addr().String(), nil
}

// open returns a client of the server of a state directory. It starts the server if there
// is none.
func (h *host) open(state string) (paddock.Driver, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.servers == nil {
		h.servers = map[string]*served{}
	}
	sv := h.servers[state]
	if sv == nil {
		var err error
		if sv, err = h.serve(state); err != nil {
			return nil, err
		}
		h.servers[state] = sv
	}
	d, err := client.New(client.Options{Address: sv.address, Key: key, TLS: h.tls})
	if err == nil {
		sv.clients = append(sv.clients, d)
	}
	return d, err
}

const key = "key-of-the-tests"

func (h *host) serve(state string) (*served, error) {
	if _, err := os.Lstat(socket(state)); err == nil { // made by the process that started this one
		return &served{address: "unix://" + socket(state)}, nil
	}
	d, err := h.driver(state)
	if err != nil {
		return nil, err
	}
	s, err := server.New(server.Options{Caller: caller(d)})
	if err != nil {
		return nil, err
	}
	listen := h.listen
	if listen == nil {
		listen = onSocket
	}
	l, address, err := listen(state)
	if err != nil {
		return nil, err
	}
	listeners := []net.Listener{l}
	if address != "unix://"+socket(state) { // for a client in another process
		also, _, err := onSocket(state)
		if err != nil {
			return nil, err
		}
		listeners = append(listeners, also)
	}
	web := s.HTTP()
	var wg sync.WaitGroup
	for _, l := range listeners {
		wg.Go(func() { _ = web.Serve(l) }) // always http.ErrServerClosed
	}
	return &served{address: address, stop: func() error {
		err := errors.Join(s.Close(), web.Close(), d.Close())
		wg.Wait()
		return err
	}}, nil
}

// caller accepts one key.
func caller(d paddock.Driver) func(*http.Request) (server.Caller, error) {
	return func(r *http.Request) (server.Caller, error) {
		if r.Header.Get("Authorization") != "Bearer "+key {
			return server.Caller{}, paddock.Denied
		}
		return server.Caller{Name: "test", Driver: d, Trusted: true}, nil
	}
}

// quiet closes idle connections. They are kept for the next call, so they are no leak.
func (h *host) quiet(state string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if sv := h.servers[state]; sv != nil {
		for _, d := range sv.clients {
			d.CloseIdle()
		}
	}
}

// close stops every server.
func (h *host) close(t testing.TB) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, sv := range h.servers {
		if sv.stop != nil {
			if err := sv.stop(); err != nil {
				t.Errorf("stop the server: %v", err)
			}
		}
	}
}

func (h *host) harness(t testing.TB) drivertest.Harness {
	t.Cleanup(func() { h.close(t) })
	return drivertest.Harness{
		New: h.open,
		Leaks: func(t testing.TB, state, name string) drivertest.Counts {
			h.quiet(state)
			return drivertest.Held(t, state, name)
		},
	}
}
