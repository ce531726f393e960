package client

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// A PublicPort is how a port of a sandbox is reached from outside, without a driver.
type PublicPort struct {
	Port   int    `json:"port"`
	Public bool   `json:"public"`        // by anyone; else with a key, or a signed URL
	URL    string `json:"url,omitempty"` // where a browser finds it; empty where the server has no domain for ports
}

// A PortURL lets whoever has it reach a port, until it expires.
type PortURL struct {
	URL     string    `json:"url"`
	Expires time.Time `json:"expires"`
}

// PublicPort tells how a port is reached. A server without tenants is [paddock.Unsupported].
func (d *Driver) PublicPort(ctx context.Context, id paddock.ID, port int) (PublicPort, error) {
	return d.publicPort(ctx, "GET", id, port)
}

// SetPublic lets anyone reach a port, or nobody without a key. The latter ends what
// SignURL gave out before, and cuts connections.
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

// SignURL gives a URL of a port that holds for some time: zero is an hour, and the
// most is seven days. With a path it holds for what is below that alone.
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
		return fmt.Errorf("%s of sandbox %q: not a name: %w", what, string(id), paddock.Invalid)
	}
	if port < 1 || port > 65535 {
		return fmt.Errorf("%s: a port is a number from 1 to 65535: %w", what, paddock.Invalid)
	}
	c.path = "/ports/" + strconv.Itoa(port) + c.path
	return (&sandbox{d: d, id: id}).call(ctx, what+" of sandbox "+string(id), c)
}
