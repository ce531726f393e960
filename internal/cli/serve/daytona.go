package serve

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/dialect"
	"github.com/paddock-sandbox/paddock/internal/dialect/daytona"
	"github.com/paddock-sandbox/paddock/internal/server"
	"github.com/paddock-sandbox/paddock/internal/server/api"
	"github.com/paddock-sandbox/paddock/internal/store"
)

// openDaytona speaks Daytona's API to the sandboxes of the accounts.
func openDaytona(ctx context.Context, a *cli.App, c *accounts, f *serveFlags, log *slog.Logger, srv *server.Server) (*daytona.Handler, error) {
	return daytona.New(ctx, daytona.Options{
		Caller: c.dialectCaller, Mark: c.mark, Store: store.NotesOf(c.store, c.host, "daytona"), Disk: int64(f.disk), Wall: a.Wall, Log: log,
		Enter: func(ctx context.Context, tenant string) (dialect.Place, error) {
			place, err := srv.Enter(ctx, tenant)
			if err != nil {
				return nil, err
			}
			return place, nil
		},
		Buffer: srv.FileBuffer, Room: srv.ResultRoom, Ports: daytonaPorts{c.access}, Signer: c.signer,
	})
}

// signer says whose a key is that signed a URL, by its ID, if it may still write.
func (c *accounts) signer(ctx context.Context, tenant, who string) (dialect.Caller, error) {
	live, err := c.live(ctx, tenant, who)
	if err == nil && !live {
		err = fmt.Errorf("the key that signed has ended: %w", paddock.Denied)
	}
	if err != nil {
		return dialect.Caller{}, err
	}
	k, err := c.lessor(ctx, tenant)
	return dialect.Caller{Tenant: tenant, Who: who, Driver: k}, err
}

// signedPorts are ports with the words of access control for what is signed.
type signedPorts interface {
	server.Ports
	Sign(ctx context.Context, tenant, key string, id paddock.ID, port int, ask api.Link) (text string, expires time.Time, err error)
	End(ctx context.Context, tenant string, id paddock.ID, port int, text string) error
	Through(w http.ResponseWriter, r *http.Request, id paddock.ID, port int)
}

// daytonaPorts are ports as Daytona's clients name what they ask of them. What opens one is recorded as in the server's
// own API.
type daytonaPorts struct{ ports signedPorts }

func (p daytonaPorts) URL(ctx context.Context, tenant string, id paddock.ID, port int) (string, error) {
	at, err := p.ports.Port(ctx, tenant, id, port)
	return at.URL, err
}

func (p daytonaPorts) Public(ctx context.Context, tenant string, id paddock.ID, public bool) error {
	_, err := recordedPorts{p.ports}.SetPublic(ctx, tenant, id, store.EveryPort, public)
	return err
}

func (p daytonaPorts) Sign(ctx context.Context, tenant, who string, id paddock.ID, port int, life time.Duration) (text string, err error) {
	err = recordPort(ctx, id, "port.url", strconv.Itoa(port), true, func() (err error) {
		text, _, err = p.ports.Sign(ctx, tenant, who, id, port, api.Link{Lifetime: life})
		return err
	})
	return text, err
}

func (p daytonaPorts) End(ctx context.Context, tenant string, id paddock.ID, port int, text string) error {
	return recordPort(ctx, id, "port.url-end", strconv.Itoa(port), false, func() error { return p.ports.End(ctx, tenant, id, port, text) })
}

func (p daytonaPorts) Serve(w http.ResponseWriter, r *http.Request, id paddock.ID, port int) {
	p.ports.Through(w, r, id, port)
}
