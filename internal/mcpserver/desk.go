package mcpserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"sync"

	"github.com/paddock-sandbox/paddock"
)

// A Desk is whose sandboxes calls are about: those of one client, or of one request over HTTP.
type Desk struct {
	ctx    context.Context // of the client
	driver Driver
	offer  Offer

	// session says that the desk lasts from call to call, and sandboxes that are not kept end with its driver.
	session bool
	token   string // of the session

	mu    sync.Mutex
	boxes map[paddock.ID]*box // guarded by mu; those that were opened

	closed bool           // guarded by mu; no call begins any more
	calls  sync.WaitGroup // under way; begun under mu

	making sync.Mutex // held while the implicit sandbox is made
	one    *box       // guarded by making
}

func newDesk(ctx context.Context, d Driver, o Offer, session bool) *Desk {
	return &Desk{ctx: ctx, driver: d, offer: o, session: session, token: "session-" + rand.Text(), boxes: map[paddock.ID]*box{}}
}

// enter begins a call. It reports false if the client has gone.
func (d *Desk) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.calls.Add(1)
	return true
}

// end waits for the calls under way, whose context has ended, and lets no other begin.
func (d *Desk) end() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.calls.Wait()
}

// A box is a sandbox that the client may use.
type box struct {
	paddock.Sandbox
	dir    string // working directory of commands
	labels map[string]string

	mu      sync.Mutex
	shell   string         // guarded by mu; empty is not known yet
	refused map[string]int // guarded by mu; what was told, and how often it had happened then
}

// Labels of the sandboxes that are made here.
const (
	labelOf        = "mcp"           // the session, or the offer of one that is kept
	labelDirectory = "mcp-directory" // how it shows the directory
	labelHosts     = "mcp-hosts"     // a list with commas, as it was asked for; absent is all
	labelSecrets   = "mcp-secrets"
)

// mine reports whether the client may use a sandbox. One over HTTP may use what its key may.
func (d *Desk) mine(st paddock.Status) bool {
	if !d.session {
		return true
	}
	of := st.Labels[labelOf]
	return of != "" && (of == d.token || of == d.offer.mark())
}

// open finds the sandbox that a call names. One of somebody else is answered as one that is not there.
func (c *call) open(ctx context.Context, name string) (*box, error) {
	if c.s.o.Single {
		return c.implicit(ctx)
	}
	id := paddock.ID(name)
	if !id.Valid() {
		return nil, fmt.Errorf("%q is no ID of a sandbox; sandbox_list tells which there are: %w", clip(name, 80), paddock.Invalid)
	}
	c.mu.Lock()
	b := c.boxes[id]
	c.mu.Unlock()
	if b != nil {
		return b, nil
	}
	missing := fmt.Errorf("there is no sandbox %s; sandbox_list tells which there are: %w", id, paddock.NotFound)
	sb, err := c.driver.Open(ctx, id)
	if errors.Is(err, paddock.NotFound) {
		return nil, missing
	}
	if err != nil {
		return nil, err
	}
	st, err := sb.Status(ctx)
	if err != nil {
		return nil, err
	}
	if !c.mine(st) {
		return nil, missing
	}
	return c.keep(sb, st), nil
}

// keep has a sandbox at hand for the next call.
func (d *Desk) keep(sb paddock.Sandbox, st paddock.Status) *box {
	b := &box{Sandbox: sb, dir: st.Dir, labels: st.Labels, refused: map[string]int{}}
	b.newly(st.Refused)
	d.mu.Lock()
	defer d.mu.Unlock()
	if have := d.boxes[sb.ID()]; have != nil {
		return have
	}
	d.boxes[sb.ID()] = b
	return b
}

// forget takes a sandbox away that is gone.
func (d *Desk) forget(id paddock.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.boxes, id)
}

// implicit gives the one sandbox, and makes it if there is none or if it has died.
func (c *call) implicit(ctx context.Context) (*box, error) {
	c.making.Lock()
	defer c.making.Unlock()
	if c.one != nil {
		st, err := c.one.Status(ctx)
		gone := errors.Is(err, paddock.NotFound) || err == nil && st.State == paddock.Dead
		if !gone {
			return c.one, err
		}
		if err := c.one.Remove(ctx); err != nil {
			return nil, err
		}
		c.forget(c.one.ID())
		c.one = nil
	}
	var all []string
	for _, secret := range c.offer.Spec.Policy.Network.Secrets {
		all = append(all, secret.Name)
	}
	spec, err := c.offer.spec(wish{directory: shownWrite, secrets: all})
	if err != nil {
		return nil, err
	}
	if c.one, err = c.make(ctx, spec, false); err != nil {
		return nil, err
	}
	return c.one, nil
}

// inside gives the absolute path of a file.
func (b *box) inside(name string) (string, error) {
	switch {
	case name == "":
		return "", fmt.Errorf("the path is empty: %w", paddock.Invalid)
	case path.IsAbs(name):
		return name, nil
	case b.dir == "":
		return "", fmt.Errorf("%s: the sandbox has no working directory; write a path that begins with /: %w", clip(name, 200), paddock.Invalid)
	}
	return path.Join(b.dir, name), nil
}
