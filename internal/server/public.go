package server

import (
	"context"
	"fmt"
	"net/http"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// Ports defines who may reach ports of sandboxes from outside. caller is Caller.Name. It
// returns NotFound for a sandbox of another caller.
type Ports interface {
	// Port returns how a port is reached.
	Port(ctx context.Context, caller string, id paddock.ID, port int) (api.Port, error)

	// SetPublic makes a port public, or private again. Making it private revokes the URLs
	// of Link.
	SetPublic(ctx context.Context, caller string, id paddock.ID, port int, public bool) (api.Port, error)

	// Link returns a URL that gives everyone who has it access to the port. It expires
	// after its lifetime, or with the key that asked for it. key is Caller.Who.
	Link(ctx context.Context, caller, key string, id paddock.ID, port int, ask api.Link) (api.Linked, error)
}

// publicPort handles GET /v1/sandboxes/{id}/ports/{port}/public.
func (q *request) publicPort() error {
	return q.named(func(id paddock.ID, port int) (any, error) {
		return q.s.o.Ports.Port(q.Context(), q.caller.Name, id, port)
	})
}

// openPort handles PUT of the same path. It makes the port public.
func (q *request) openPort() error { return q.setPublic(true) }

// closePort handles DELETE of the same path. It makes the port private.
func (q *request) closePort() error { return q.setPublic(false) }

func (q *request) setPublic(public bool) error {
	return q.named(func(id paddock.ID, port int) (any, error) {
		answer, err := q.s.o.Ports.SetPublic(q.Context(), q.caller.Name, id, port, public)
		if err == nil {
			q.s.log.Info("port", "id", q.id, "caller", q.caller.Name, "who", q.caller.Who, "sandbox", id, "port", port, "public", public)
		}
		return answer, err
	})
}

// linkPort handles POST /v1/sandboxes/{id}/ports/{port}/url.
func (q *request) linkPort() error {
	var ask api.Link
	if err := q.body(&ask); err != nil {
		return err
	}
	return q.named(func(id paddock.ID, port int) (any, error) {
		answer, err := q.s.o.Ports.Link(q.Context(), q.caller.Name, q.caller.Who, id, port, ask)
		if err == nil {
			q.s.log.Info("port", "id", q.id, "caller", q.caller.Name, "who", q.caller.Who, "sandbox", id, "port", port, "until", answer.Expires)
		}
		return answer, err
	})
}

// named runs an operation on the port that the path names, and answers with its result.
func (q *request) named(do func(id paddock.ID, port int) (any, error)) error {
	id, err := q.sandboxID()
	if err != nil {
		return err
	}
	port, err := q.portNumber()
	if err != nil {
		return err
	}
	if q.s.o.Ports == nil {
		return fmt.Errorf("this server serves only its own user; use paddock forward to reach the port: %w", paddock.Unsupported)
	}
	answer, err := do(id, port)
	if err != nil {
		return err
	}
	return q.json(http.StatusOK, answer)
}
