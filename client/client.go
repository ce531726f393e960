// Package client is a paddock.Driver whose sandboxes are a server's.
//
//	d, err := client.New(client.Options{Address: "https://paddock.example.com", Key: key})
//
// Everything that a driver on this machine promises holds: kinds of errors
// survive, a process outlives the call and the connection, and nothing of its
// output or input is lost or doubled when a connection is cut. A process that is
// attached waits for its client, up to a minute while there is no connection.
package client

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// Options says where the server is, and who calls.
type Options struct {
	// Address is "https://host:port", "http://host:port" or "unix:///path". It
	// must be given. A key over http goes in clear text.
	Address string

	// Key is sent with each request; empty is none.
	Key string

	// TLS says whom to trust, and as whom to appear. Nil is the system's
	// certificates.
	TLS *tls.Config

	// Patience is how long a connection that was cut is tried again. Zero is 30
	// seconds.
	Patience time.Duration
}

// A Driver is a server's, over the network. Close ends all that it has under
// way, and removes its ephemeral sandboxes.
type Driver struct {
	o    Options
	base *url.URL
	http *http.Client
	dial dialer

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // its goroutines

	mu     sync.Mutex
	closed bool                  // guarded by mu
	lease  *lease                // guarded by mu; nil until there is something ephemeral
	live   map[*process]struct{} // guarded by mu; those that are followed
}

var _ paddock.Driver = (*Driver)(nil)

// New makes a driver. It does not connect: the first call does.
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
	d := &Driver{o: o}
	if err := d.reach(base); err != nil {
		return nil, err
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d, nil
}

// token gives a name that nobody guesses.
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
	if tier != paddock.Auto && info.Tier != tier { // a server that does not know the parameter
		return paddock.Info{}, fmt.Errorf("info: the server answers for tier %q, not %q: %w", clip(string(info.Tier)), clip(string(tier)), paddock.Unsupported)
	}
	return info, nil
}

// Create implements paddock.Driver. A creation that is given up is taken back.
func (d *Driver) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	return d.make(ctx, spec, nil)
}

// make makes a sandbox; without terms they are the server's.
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

// named refuses a name of the server's that is none: it becomes a part of paths
// and is shown to people.
func named(what, name string) error {
	if !paddock.ID(name).Valid() {
		return fmt.Errorf("the server's name %q of a %s is none: %w", clip(name), what, paddock.Internal)
	}
	return nil
}

func clip(text string) string { return text[:min(len(text), 100)] }

// takeBack sees to it that nothing is left of a creation whose answer nobody got.
func (d *Driver) takeBack(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), d.o.Patience)
	defer cancel()
	// If the server cannot be told, it gives the creation up by itself.
	_ = d.call(ctx, call{method: "DELETE", path: "/v1/creations/" + name})
}

// Open implements paddock.Driver.
func (d *Driver) Open(ctx context.Context, id paddock.ID) (paddock.Sandbox, error) {
	if !id.Valid() {
		return nil, fmt.Errorf("open sandbox %q: not a name: %w", string(id), paddock.Invalid)
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
		return fmt.Errorf("remove snapshot %q: not a name: %w", string(id), paddock.Invalid)
	}
	err := d.call(ctx, call{method: "DELETE", path: "/v1/snapshots/" + url.PathEscape(string(id)), repeat: true})
	if err != nil {
		return fmt.Errorf("remove snapshot %q: %w", string(id), err)
	}
	return nil
}

// open tells whether the driver is.
func (d *Driver) open() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fmt.Errorf("the driver is closed: %w", paddock.Unavailable)
	}
	return nil
}

// Close implements paddock.Driver. It waits until the server has removed what is
// ephemeral.
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
