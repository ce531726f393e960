package client

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// A PublicPort describes how a port of a sandbox is reached from outside without a driver.
type PublicPort struct {
	Port   int    `json:"port"`
	Public bool   `json:"public"`        // anyone may connect; otherwise a key or a signed URL is needed
	URL    string `json:"url,omitempty"` // the port's URL; empty if the server has no domain for ports
}

// A PortURL gives access to a port to everyone who has it, until it expires.
type PortURL struct {
	URL     string    `json:"url"`
	Expires time.Time `json:"expires"`
}

// PublicPort returns how a port is reached. It returns [paddock.Unsupported] if the server
// has no tenants.
func (d *Driver) PublicPort(ctx context.Context, id paddock.ID, port int) (PublicPort, error) {
	return d.publicPort(ctx, "GET", id, port)
}

// SetPublic makes a port public, or private again. Making it private revokes the URLs of
// SignURL and cuts open connections.
func (d *Driver) SetPublic(ctx context.Context, id paddock.ID, port int, public bool) (PublicPort, error) {
	if public {
		return d.publicPort(ctx, "PUT", id, port)
	}
	return d.publicPort(ctx, "DELETE", id, port)
}

func (d *Driver) publicPort(ctx context.Context, method string, id paddock.ID, port int) (PublicPort, error) {
	var answer api.Port
	if err := d.ofPort(ctx, id, port, call{method: method, path: "/public", answer: &answer, repeat: true}); err != nil {
		return PublicPort{}, err
	}
	return PublicPort(answer), nil
}

// SignURL returns a URL of a port that is valid for a time. A zero lifetime is an hour, and
// the maximum is seven days. With a path, the URL is valid only for that path and
// everything below it.
func (d *Driver) SignURL(ctx context.Context, id paddock.ID, port int, lifetime time.Duration, path string) (PortURL, error) {
	var answer api.Linked
	err := d.ofPort(ctx, id, port, call{method: "POST", path: "/url", body: api.Link{Lifetime: lifetime, Path: path}, answer: &answer, repeat: true})
	if err != nil {
		return PortURL{}, err
	}
	return PortURL(answer), nil
}

func (d *Driver) ofPort(ctx context.Context, id paddock.ID, port int, c call) error {
	what := "port " + strconv.Itoa(port)
	if !id.Valid() {
		return fmt.Errorf("%s of sandbox %q: invalid name: %w", what, string(id), paddock.Invalid)
	}
	if port < 1 || port > 65535 {
		return fmt.Errorf("%s: a port is a number from 1 to 65535: %w", what, paddock.Invalid)
	}
	c.path = "/ports/" + strconv.Itoa(port) + c.path
	return (&sandbox{d: d, id: id}).call(ctx, what+" of sandbox "+string(id), c)
}
