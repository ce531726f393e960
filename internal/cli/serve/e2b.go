package serve

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/dialect"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b/codeinterpreter"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b/envd"
	"github.com/paddock-sandbox/paddock/internal/ingress"
	"github.com/paddock-sandbox/paddock/internal/server"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// openE2B speaks E2B's API to the sandboxes of the accounts.
func openE2B(ctx context.Context, a *cli.App, c *accounts, f *serveFlags, address string, log *slog.Logger, api *server.Server) (*e2b.Handler, error) {
	uploads, err := f.store.uploads(a)
	if err != nil {
		return nil, err
	}
	images := imageStore{c.watch.images.d}
	base, err := baseImage(ctx, images, f.base, log)
	if err != nil {
		return nil, err
	}
	secret, err := c.store.Secret(ctx, "e2b-names")
	if err != nil {
		return nil, err
	}
	_, domain, _ := strings.Cut(f.way.base(address), "://")
	var ports *ingress.Proxy // those of access: a tenant has no two shares
	if c.access != nil {
		ports = c.access.Proxy()
	}
	return e2b.New(ctx, e2b.Options{
		Ports: ports, Domain: domain, Secret: secret, Ready: c.ready, Disk: int64(f.disk),
		Enter: func(ctx context.Context, tenant string) (dialect.Place, error) {
			place, err := api.Enter(ctx, tenant)
			if err != nil {
				return nil, err
			}
			return place, nil
		},
		Caller: c.dialectCaller, Live: c.live, Tenant: c.lessor, Mark: c.mark, Store: store.NotesOf(c.store, c.host, "e2b"), Uploads: uploads, Images: images, Base: base, Wall: a.Wall, Envd: e2bAgent(api), Code: e2bCode(api), Log: log,
	})
}

// uploads is the directory of what builds of templates copy in.
func (f *storeFlags) uploads(a *cli.App) (string, error) {
	dir, err := stateDir(a, f.state)
	if err == nil && dir == "" {
		if dir, err = a.Data(); err == nil {
			dir = filepath.Join(dir, "server")
		}
	}
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "e2b")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("--state: %w: %w", err, paddock.Denied)
	}
	return dir, nil
}

// lessor is a tenant's driver, whose sandboxes have terms.
func (c *accounts) lessor(_ context.Context, tenant string) (lifetime.Lessor, error) {
	d, err := c.driver(tenant)
	if err != nil {
		return nil, err
	}
	k, ok := paddock.As[lifetime.Lessor](d)
	if !ok {
		return nil, fmt.Errorf("sandboxes of this server have no terms: %w", paddock.Unsupported)
	}
	return k, nil
}

// dialectCaller says whose a key is, in the words of dialects.
func (c *accounts) dialectCaller(ctx context.Context, text string) (dialect.Caller, error) {
	who, err := c.holder(ctx, text)
	if err != nil {
		return dialect.Caller{}, err
	}
	k, err := c.lessor(ctx, who.Name)
	if err != nil {
		return dialect.Caller{}, err
	}
	return dialect.Caller{Tenant: who.Name, Who: who.Who, Driver: k, Check: who.Refuse, Private: who.Trusted, ReadOnly: who.ReadOnly}, nil
}

// mark has admission and the record see who calls.
func (c *accounts) mark(ctx context.Context, r *http.Request, tenant, who string) context.Context {
	in, _ := server.RequestOf(r.Context()) // it has an ID where it came by way of the server
	d, _ := c.driver(tenant)               // it records; who calls was found with it
	return server.MarkRequest(ctx, server.Request{ID: in.ID, From: r.RemoteAddr, Caller: server.Caller{Name: tenant, Who: who, Driver: d}})
}

// e2bAgent answers at the port of E2B's agent.
func e2bAgent(api *server.Server) func(e2b.Inside) (e2b.Port, error) {
	return func(in e2b.Inside) (e2b.Port, error) {
		return envd.New(envd.Options{
			Sandbox: in.Sandbox, Tier: in.Tier, Token: in.Token, Env: in.Env, SandboxID: in.SandboxID, TemplateID: in.TemplateID,
			User: in.User, Dir: in.Dir, Room: api.InputRoom(in.Tenant), Answers: api.AnswerRoom(in.Tenant), Ahead: api.AheadRoom(in.Tenant), Log: in.Log,
			Buffer: func() ([]byte, func(), error) { return api.FileBuffer(in.Tenant) },
		})
	}
}

// e2bCode answers at the port of E2B's code interpreter.
func e2bCode(api *server.Server) func(e2b.Inside) (e2b.Port, error) {
	return func(in e2b.Inside) (e2b.Port, error) {
		return codeinterpreter.New(codeinterpreter.Options{
			Sandbox: in.Sandbox, Token: in.Token, Env: func() map[string]string { return in.Env }, Dir: in.Dir,
			Room: api.ResultRoom(in.Tenant), Log: in.Log,
		})
	}
}
