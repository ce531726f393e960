// Package client implements paddock.Driver by a Paddock server.
//
//	d, err := client.New(client.Options{Address: "https://paddock.example.com", Key: key})
//
// The driver keeps every promise of a local driver. Errors keep their kinds. A process
// outlives the call and the connection. When a connection is cut, no input or output of the
// process is lost or repeated. An attached process waits for its client, for up to a minute
// without a connection.
package client

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// Options select the server and identify the caller.
type Options struct {
	// Address is "https://host:port", "http://host:port" or "unix:///path". It is required.
	// Over http the key is sent unencrypted.
	Address string

	// Key is sent with each request. Empty sends none.
	Key string

	// TLS configures the trusted certificates and the client certificate. Nil trusts the
	// system's certificates.
	TLS *tls.Config

	// Dial connects to the server, in place of the host and port, or the path, of Address. Nil dials those.
	Dial func(ctx context.Context) (net.Conn, error)

	// Patience is how long a broken connection is retried. Zero is 30 seconds.
	Patience time.Duration
}

// A Driver makes sandboxes on a server. Close ends all its calls and removes its ephemeral
// sandboxes.
type Driver struct {
	o    Options
	base *url.URL
	http *http.Client
	dial dialer

	quiet time.Duration // quietTime, except in tests

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // goroutines of the driver

	mu     sync.Mutex
	closed bool                  // guarded by mu
	lease  *lease                // guarded by mu; nil until the first ephemeral sandbox
	live   map[*process]struct{} // guarded by mu; the followed processes
}

var _ paddock.Driver = (*Driver)(nil)

// New makes a driver. It does not connect; the first call does.
func New(o Options) (*Driver, error) {
	base, err := url.Parse(o.Address)
	if err != nil {
		return nil, fmt.Errorf("the server's address: %w: %w", err, paddock.Invalid)
	}
	if o.Patience < 0 {
		return nil, fmt.Errorf("the patience is negative: %w", paddock.Invalid)
	}
	if o.Patience == 0 {
		o.Patience = 30 * time.Second
	}
	d := &Driver{o: o, quiet: quietTime}
	if err := d.reach(base); err != nil {
		return nil, err
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d, nil
}

// token returns an unguessable name.
func token() string { return rand.Text() }

// Info implements paddock.Driver.
func (d *Driver) Info(ctx context.Context, tier paddock.Tier) (paddock.Info, error) {
	path := "/v1/info"
	if tier != paddock.Auto {
		path += "?" + url.Values{"tier": {string(tier)}}.Encode()
	}
	var info paddock.Info
	if err := d.call(ctx, call{method: "GET", path: path, answer: &info, repeat: true}); err != nil {
		return paddock.Info{}, fmt.Errorf("info: %w", err)
	}
	if tier != paddock.Auto && info.Tier != tier { // an older server does not know the parameter
		return paddock.Info{}, fmt.Errorf("info: the server answers for tier %q, not %q: %w", clip(string(info.Tier)), clip(string(tier)), paddock.Unsupported)
	}
	return info, nil
}

// Create implements paddock.Driver. If ctx ends first, the creation is undone.
func (d *Driver) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	return d.make(ctx, spec, nil)
}

// make makes a sandbox. With nil terms, the server's terms apply.
func (d *Driver) make(ctx context.Context, spec paddock.Spec, t *api.Terms) (paddock.Sandbox, error) {
	if err := text(spec); err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	var l *lease
	if spec.Ephemeral {
		var err error
		if l, err = d.hold(ctx); err != nil {
			return nil, fmt.Errorf("create: %w", err)
		}
	}
	st, err := d.create(ctx, api.Create{Spec: spec, Terms: t})
	if l != nil {
		d.made(l, st.ID)
	}
	if err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	return &sandbox{d: d, id: st.ID, born: &st}, nil
}

func (d *Driver) create(ctx context.Context, asked api.Create) (paddock.Status, error) {
	name := token()
	var st paddock.Status
	err := d.call(ctx, call{
		method: "POST", path: "/v1/sandboxes", header: http.Header{api.CreationHeader: {name}},
		body: asked, answer: &st, repeat: true,
	})
	if err == nil {
		err = named("sandbox", string(st.ID))
	}
	if ctx.Err() != nil && err != nil || broken(err) {
		d.takeBack(name)
	}
	if err != nil {
		return paddock.Status{}, err
	}
	return st, nil
}

// named refuses an invalid name from the server, because the name becomes a part of paths
// and is shown to people.
func named(what, name string) error {
	if !paddock.ID(name).Valid() {
		return fmt.Errorf("the server sent an invalid %s name %q: %w", what, clip(name), paddock.Internal)
	}
	return nil
}

func clip(text string) string { return text[:min(len(text), 100)] }

// takeBack undoes a creation whose answer did not arrive.
func (d *Driver) takeBack(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), d.o.Patience)
	defer cancel()
	// On an error, the server undoes the creation by its own timeout.
	_ = d.call(ctx, call{method: "DELETE", path: "/v1/creations/" + name})
}

// Open implements paddock.Driver.
func (d *Driver) Open(ctx context.Context, id paddock.ID) (paddock.Sandbox, error) {
	if !id.Valid() {
		return nil, fmt.Errorf("open sandbox %q: invalid name: %w", string(id), paddock.Invalid)
	}
	sb := &sandbox{d: d, id: id}
	if _, err := sb.Status(ctx); err != nil {
		return nil, fmt.Errorf("open sandbox %s: %w", id, err)
	}
	return sb, nil
}

// List implements paddock.Driver.
func (d *Driver) List(ctx context.Context) ([]paddock.Status, error) {
	var all []paddock.Status
	query := url.Values{"limit": {strconv.Itoa(pageSize)}}
	for {
		var page api.Page
		if err := d.call(ctx, call{method: "GET", path: "/v1/sandboxes", query: query, answer: &page, repeat: true}); err != nil {
			return nil, fmt.Errorf("list sandboxes: %w", err)
		}
		for _, st := range page.Sandboxes {
			if err := named("sandbox", string(st.ID)); err != nil {
				return nil, fmt.Errorf("list sandboxes: %w", err)
			}
		}
		all = append(all, page.Sandboxes...)
		if page.Next == "" {
			return all, nil
		}
		query.Set("cursor", page.Next)
	}
}

const pageSize = 200

// RemoveSnapshot implements paddock.Driver.
func (d *Driver) RemoveSnapshot(ctx context.Context, id paddock.SnapshotID) error {
	if id == "" || id == "." || id == ".." || strings.ContainsAny(string(id), "/\x00") {
		if err := d.open(); err != nil {
			return fmt.Errorf("remove snapshot %q: %w", string(id), err)
		}
		return fmt.Errorf("remove snapshot %q: invalid name: %w", string(id), paddock.Invalid)
	}
	err := d.call(ctx, call{method: "DELETE", path: "/v1/snapshots/" + url.PathEscape(string(id)), repeat: true})
	if err != nil {
		return fmt.Errorf("remove snapshot %q: %w", string(id), err)
	}
	return nil
}

// open returns an error if the driver is closed.
func (d *Driver) open() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fmt.Errorf("the driver is closed: %w", paddock.Unavailable)
	}
	return nil
}

// Close implements paddock.Driver. It waits until the server has removed the ephemeral
// sandboxes.
func (d *Driver) Close() error {
	d.mu.Lock()
	again := d.closed
	d.closed = true
	l := d.lease
	d.mu.Unlock()
	if again {
		return nil
	}
	d.leave()
	err := d.letGo(l)
	d.cancel()
	d.wg.Wait()
	d.http.CloseIdleConnections()
	return err
}
