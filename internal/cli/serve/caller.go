package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/server"
	"github.com/paddock-sandbox/paddock/internal/store"
)

// owner is the one caller of a socket, as a tenant of the server's own database, and in
// the record.
const owner = "owner"

// ownPlace is what the machine is called in the database of a socket.
const ownPlace = "here"

// ownPattern matches the databases of sockets in a state directory. Each socket has one of
// its own, because a server may end, pause and count only what was made through it: it
// does not see who uses the other sandboxes.
const ownPattern = "own-*.db"

// ownDatabase gives the file of a socket's database.
func (f *storeFlags) ownDatabase(a *cli.App, address string) (string, error) {
	dir, err := f.dir(a)
	sum := sha256.Sum256([]byte(address))
	return filepath.Join(dir, "own-"+hex.EncodeToString(sum[:8])+".db"), err
}

// openOwner builds what stands between a socket's caller and a driver: lifetimes, usage
// and the record. It owns the driver from here on, and closes it if it fails.
func openOwner(ctx context.Context, a *cli.App, d paddock.Driver, f *serveFlags, address string, o *operation) (_ *accounts, err error) {
	c := &accounts{
		app: a, flags: f, watch: o, log: o.log, shared: d, own: true, host: ownPlace,
		sums: make(chan struct{}, sumsAtOnce), drivers: map[string]paddock.Driver{},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	for _, stage := range []func(context.Context) error{
		func(ctx context.Context) error { return c.openOwn(ctx, address) },
		c.openRecord,
		func(ctx context.Context) (err error) {
			c.shared, err = wrapAll(ctx, c.shared, c.ownerLayers())
			return err
		},
		c.openTenants,
		c.adopt,
	} {
		if err := stage(ctx); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// openOwn opens a socket's database. An earlier server of the socket may still be closing
// it, though it listens no more.
func (c *accounts) openOwn(ctx context.Context, address string) error {
	place, err := c.flags.store.ownDatabase(c.app, address)
	if err != nil {
		return err
	}
	if c.store, err = store.Open(ctx, place); err != nil {
		return cli.WithHint(err, "--state or PADDOCK_STATE names another directory for what the server keeps")
	}
	c.watch.from.Failures = c.store.Failures
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	again := time.NewTicker(drainTime / 100)
	defer again.Stop()
	for c.release == nil {
		c.release, err = c.store.Claim(ctx, c.host)
		if err == nil {
			break
		}
		if !errors.Is(err, paddock.Conflict) {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return err
		}
	}
	return c.addUnbounded(ctx, owner)
}

// ownerCaller gives the caller of each request to a socket that only the server's own
// user can connect to: that user, who has all sandboxes.
func (c *accounts) ownerCaller(*http.Request) (server.Caller, error) {
	d, err := c.driver(owner)
	if err != nil {
		return server.Caller{}, err
	}
	return server.Caller{Name: owner, Who: owner, Driver: d, Trusted: true, Usage: c.used(owner), Images: c.imagesOf(owner, true)}, nil
}

// withUsage opens every database of this user's that counts usage: that of the network
// server, and those of sockets. A named database is the only one.
func (f *storeFlags) withUsage(ctx context.Context, a *cli.App, do func([]*store.Store) error) (err error) {
	first, err := f.open(ctx, a)
	if err != nil {
		return err
	}
	all := []*store.Store{first}
	defer func() {
		for _, s := range all {
			err = errors.Join(err, s.Close())
		}
	}()
	if f.database == "" { // open has read the environment
		dir, err := f.dir(a)
		if err != nil {
			return err
		}
		names, err := fs.Glob(os.DirFS(dir), ownPattern)
		if err != nil {
			return err
		}
		for _, name := range names {
			s, err := store.Open(ctx, filepath.Join(dir, name))
			if err != nil {
				return err
			}
			all = append(all, s)
		}
	}
	return do(all)
}
