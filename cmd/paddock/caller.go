package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
	"github.com/paddock-sandbox/paddock/internal/server"
)

// callers say who calls a server. This is the one place that turns requests into
// callers.
type callers struct {
	own     bool   // only the server's own user can connect
	key     string // else: what callers show
	trusted bool   // who shows it may name what is this machine's
}

// of gives the caller of each request: there is one, who has all sandboxes.
func (c callers) of(d paddock.Driver) func(*http.Request) (server.Caller, error) {
	if c.own {
		return func(*http.Request) (server.Caller, error) {
			return server.Caller{Name: "owner", Driver: d, Trusted: true}, nil
		}
	}
	want := sha256.Sum256([]byte(c.key))
	return func(r *http.Request) (server.Caller, error) {
		key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		have := sha256.Sum256([]byte(key)) // of one length, whatever was sent
		if !ok || c.key == "" || subtle.ConstantTimeCompare(have[:], want[:]) != 1 {
			return server.Caller{}, fmt.Errorf("the key is missing, or is not this server's: %w", paddock.Denied)
		}
		return server.Caller{Name: "key", Driver: d, Trusted: c.trusted}, nil
	}
}

// dial gives the driver of a server that can be connected to: a connection that
// breaks later is tried again for a while, but a server that is not there is told at
// once.
func dial(ctx context.Context, s site) (paddock.Driver, error) {
	network, address := "tcp", ""
	if path, ok := strings.CutPrefix(s.Address, "unix:"); ok {
		network, address = "unix", path
	} else if u, err := url.Parse(s.Address); err == nil {
		address = u.Host
		if u.Port() == "" {
			address = net.JoinHostPort(u.Hostname(), u.Scheme) // ports have names, too
		}
	}
	c, err := (&net.Dialer{Timeout: patience}).DialContext(ctx, network, address)
	if err != nil {
		return nil, withHint(fmt.Errorf("%w: %w", err, paddock.Unavailable), "is it there, and is the address right? `paddock serve` starts one; `paddock logout` forgets the one of paddock login")
	}
	c.Close()
	d, err := client.New(client.Options{Address: s.Address, Key: s.Key})
	if err != nil {
		return nil, err
	}
	return d, nil
}
