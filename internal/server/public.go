package server

import (
	"context"
	"fmt"
	"net/http"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// Ports says who may reach ports of sandboxes from outside. A caller is named as in
// Caller.Name, and has its own sandboxes only: of any other it is NotFound.
type Ports interface {
	// Port tells how a port is reached.
	Port(ctx context.Context, caller string, id paddock.ID, port int) (api.Port, error)

	// SetPublic lets anyone reach it, or only who has a key. The latter ends what
	// Link gave out before.
	SetPublic(ctx context.Context, caller string, id paddock.ID, port int, public bool) (api.Port, error)

	// Link gives a URL that lets whoever has it reach the port, for a time, and no longer than
	// the key that it is asked for with, which is named as in Caller.Who.
	Link(ctx context.Context, caller, key string, id paddock.ID, port int, ask api.Link) (api.Linked, error)
}

// publicPort tells how a port is reached: GET /v1/sandboxes/{id}/ports/{port}/public.
func (q *request) publicPort() error {
	return q.named(func(id paddock.ID, port int) (any, error) {
		return q.s.o.Ports.Port(q.Context(), q.caller.Name, id, port)
	})
}

// openPort lets anyone reach a port: PUT of the same path.
func (q *request) openPort() error { return q.setPublic(true) }

// closePort takes that back: DELETE of the same path.
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

// linkPort signs a URL: POST /v1/sandboxes/{id}/ports/{port}/url.
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

// named does something about the port that the path names.
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
		return fmt.Errorf("this server has no way in for others than its own user; join the port to this machine, as paddock forward does: %w", paddock.Unsupported)
	}
	answer, err := do(id, port)
	if err != nil {
		return err
	}
	return q.json(http.StatusOK, answer)
}
