package serve

import (
	"context"
	"strconv"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server"
	"github.com/paddock-sandbox/paddock/internal/server/api"
	"github.com/paddock-sandbox/paddock/internal/wrap/actionlog"
)

// recordedPorts records what opens a sandbox to others, as what is done to it
// otherwise: what cannot be recorded is not done, but for what closes a port.
type recordedPorts struct{ server.Ports }

// recorder returns that of the request's caller; nil where nothing is recorded.
func recorder(ctx context.Context) actionlog.Recorder {
	q, _ := server.RequestOf(ctx)
	r, _ := paddock.As[actionlog.Recorder](q.Caller.Driver)
	return r
}

// recordPort does what opens a port of a sandbox to others only if it can be recorded, and what closes one in any case.
func recordPort(ctx context.Context, id paddock.ID, action, target string, opens bool, call func() error) error {
	r := recorder(ctx)
	switch {
	case r == nil:
		return call()
	case opens:
		return r.Do(ctx, id, action, target, call)
	}
	err := call()
	r.Record(ctx, id, action, target, err)
	return err
}

// SetPublic implements server.Ports.
func (p recordedPorts) SetPublic(ctx context.Context, tenant string, id paddock.ID, port int, public bool) (answer api.Port, err error) {
	action := "port.private"
	if public {
		action = "port.public"
	}
	err = recordPort(ctx, id, action, strconv.Itoa(port), public, func() (err error) {
		answer, err = p.Ports.SetPublic(ctx, tenant, id, port, public)
		return err
	})
	return answer, err
}

// Link implements server.Ports.
func (p recordedPorts) Link(ctx context.Context, tenant, key string, id paddock.ID, port int, ask api.Link) (answer api.Linked, err error) {
	err = recordPort(ctx, id, "port.url", strconv.Itoa(port)+ask.Path, true, func() (err error) {
		answer, err = p.Ports.Link(ctx, tenant, key, id, port, ask)
		return err
	})
	return answer, err
}
