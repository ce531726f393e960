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

// SetPublic implements server.Ports.
func (p recordedPorts) SetPublic(ctx context.Context, tenant string, id paddock.ID, port int, public bool) (answer api.Port, err error) {
	r := recorder(ctx)
	call := func() error {
		answer, err = p.Ports.SetPublic(ctx, tenant, id, port, public)
		return err
	}
	switch target := strconv.Itoa(port); {
	case r == nil:
		err = call()
	case public:
		err = r.Do(ctx, id, "port.public", target, call)
	default:
		err = call()
		r.Record(ctx, id, "port.private", target, err)
	}
	return answer, err
}

// Link implements server.Ports.
func (p recordedPorts) Link(ctx context.Context, tenant, key string, id paddock.ID, port int, ask api.Link) (answer api.Linked, err error) {
	r := recorder(ctx)
	call := func() error {
		answer, err = p.Ports.Link(ctx, tenant, key, id, port, ask)
		return err
	}
	if r == nil {
		err = call()
	} else {
		err = r.Do(ctx, id, "port.url", strconv.Itoa(port)+ask.Path, call)
	}
	return answer, err
}
