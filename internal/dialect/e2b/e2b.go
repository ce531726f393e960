package e2b

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
	"github.com/paddock-sandbox/paddock/internal/ingress"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// A Pull describes an image to pull, and for whom.
type Pull struct {
	Tenant, Image      string
	Username, Password string       // for the registry; empty pulls without a login
	Private            bool         // the registry may have a private address
	Say                func(string) // gets progress messages
}

// An Image is an image that was pulled for a tenant.
type Image struct {
	ID  string
	Dir string   // of its files, which must not be changed
	Env []string // NAME=VALUE
}

// Images pulls and keeps images, separately for each tenant.
type Images interface {
	Pull(ctx context.Context, p Pull) (Image, error)
	// Sweep removes a tenant's images that are not in use.
	Sweep(tenant string, used func(id string) bool) error
}

// Options configure a handler.
type Options struct {
	// Caller identifies the owner of a key. For an unknown key it returns [paddock.Denied].
	Caller func(ctx context.Context, key string) (dialect.Caller, error)

	// Live reports whether a tenant's key, by its ID, may still write: URLs for uploads end with
	// the key that asked for them.
	Live func(ctx context.Context, tenant, key string) (bool, error)

	// Tenant returns the driver of a tenant, for calls that present a sandbox's token
	// instead of a key.
	Tenant func(ctx context.Context, tenant string) (lifetime.Lessor, error)

	// Mark returns a context that tells drivers who calls. Nil marks nothing.
	Mark func(ctx context.Context, r *http.Request, tenant, who string) context.Context

	// Enter counts a request of a tenant, with a key, a sandbox's token or a link. It
	// returns [paddock.Exhausted] if there are too many, and [paddock.Unavailable] if the
	// server accepts no more. Nil counts nothing.
	Enter func(ctx context.Context, tenant string) (dialect.Place, error)

	// Store keeps the state of sandboxes and templates.
	Store dialect.Store

	// Secret is the key from which sandbox IDs are derived, so that a repeated request gets
	// the same ID. If it is empty, a random secret is used. Then a request repeated after a
	// restart makes another sandbox.
	Secret []byte

	// Disk is the disk of sandboxes whose template and request ask for none, in bytes. Zero is
	// the tier's default.
	Disk int64

	// Uploads is a private directory for files that builds copy.
	Uploads string

	// Images has the images that builds start from. If it is nil, such builds are refused.
	Images Images

	// Base is the image of the template base. It must not be removed while the handler
	// exists. Nil selects this machine's system.
	Base *Image

	// Envd makes the handler of the agent's port of each sandbox, and Code the handler of
	// the code interpreter's port. If Code is nil, that port is a port of the guest.
	Envd func(Inside) (Port, error)
	Code func(Inside) (Port, error)

	// Ready lists the tiers for which a pool keeps sandboxes of the spec [Ready], with sudo
	// if the tier has it. Their sandboxes are created without a name, so that one of the
	// pool can be taken.
	Ready []paddock.Tier

	// Ports carries requests to listeners inside. Share it with other users of ports, so
	// that the same bounds apply to all. Nil makes a private one.
	Ports *ingress.Proxy

	// Domain is the domain below which PORT-ID leads to sandboxes, with a port number if it
	// is not the default. Empty if there is none. It is sent to clients.
	Domain string

	// Wall returns the wall-clock time, which the lease terms must use too. Nil is
	// time.Now.
	Wall func() time.Time

	// Log gets warnings and errors. Nil discards them.
	Log *slog.Logger
}

// Version is the version of E2B's agent whose behaviour sandboxes have.
const Version = "0.6.13"

// A Handler answers requests of E2B's clients.
type Handler struct {
	o   Options
	log *slog.Logger
	mux *http.ServeMux

	ports *ingress.Proxy

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup
	rung   chan struct{} // has an element if the next end may be sooner
	key    [32]byte      // signs the URLs that this process gives out
	secret []byte        // derives sandbox IDs
	left   []loose       // left by an earlier handler

	mu        sync.Mutex
	closed    bool                 // guarded by mu
	boxes     map[paddock.ID]*box  // guarded by mu
	templates map[string]*template // guarded by mu; by ID
	builds    map[string]*build    // guarded by mu; by ID
	queue     []*build             // guarded by mu; builds that wait for others, oldest first
	intakes   map[string]*intake   // guarded by mu; by tenant
	idle      map[string]time.Time // guarded by mu; since when images are unused, by tenant and ID
}

// New loads the sandboxes and templates of the store. It starts goroutines, which Close
// ends.
func New(ctx context.Context, o Options) (*Handler, error) {
	if o.Caller == nil || o.Live == nil || o.Tenant == nil || o.Store == nil || o.Envd == nil {
		return nil, fmt.Errorf("e2b: Caller, Live, Tenant, Store and Envd are needed: %w", paddock.Invalid)
	}
	if o.Mark == nil {
		o.Mark = func(ctx context.Context, _ *http.Request, _, _ string) context.Context { return ctx }
	}
	if o.Wall == nil {
		o.Wall = time.Now
	}
	if o.Enter == nil {
		o.Enter = func(context.Context, string) (dialect.Place, error) { return dialect.Boundless{}, nil }
	}
	h := &Handler{
		o: o, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), boxes: map[paddock.ID]*box{}, templates: map[string]*template{},
		builds: map[string]*build{}, intakes: map[string]*intake{}, idle: map[string]time.Time{}, rung: make(chan struct{}, 1),
	}
	_, _ = rand.Read(h.key[:]) // it never fails
	if h.secret = o.Secret; len(h.secret) == 0 {
		h.secret = append([]byte("id "), h.key[:]...)
	}
	if err := h.load(ctx); err != nil {
		return nil, err
	}
	if h.ports = o.Ports; h.ports == nil {
		h.ports = &ingress.Proxy{Log: h.log}
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.mux = h.routes()
	h.wg.Go(func() { h.adopt(h.ctx) })
	h.wg.Go(h.watch)
	h.wg.Go(func() { h.each(sampleEvery, newSampler(h).start) })
	h.wg.Go(func() { h.each(sweepEvery, h.sweepImages) })
	return h, nil
}

// Close cuts every stream, ends builds in progress and waits. Sandboxes stay.
func (h *Handler) Close() error {
	h.mu.Lock()
	again := h.closed
	h.closed = true
	boxes := make([]*box, 0, len(h.boxes))
	for _, b := range h.boxes {
		boxes = append(boxes, b)
	}
	h.mu.Unlock()
	if again {
		return nil
	}
	h.cancel()
	var cuts sync.WaitGroup
	for _, b := range boxes {
		cuts.Go(b.cut) // at once, because a sandbox may be slow to let go, and now each is waited for
	}
	cuts.Wait()
	h.wg.Wait()
	h.ports.Close()
	return nil
}

// spawn runs f in a goroutine that Close waits for. It reports false, and runs nothing, after Close.
func (h *Handler) spawn(f func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.wg.Go(f)
	return true
}

// each calls f again and again, until Close. f may take long.
func (h *Handler) each(period time.Duration, f func(now time.Time)) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-h.ctx.Done():
			return
		case <-tick.C:
			f(time.Now())
		}
	}
}

// watch cuts expired sandboxes. It waits for no sandbox, because one could delay the end of
// all others.
func (h *Handler) watch() {
	tick := time.NewTicker(forgetEvery)
	defer tick.Stop()
	due := time.NewTimer(time.Hour)
	defer due.Stop()
	for {
		due.Reset(h.expire(h.ctx, time.Now()))
		select {
		case <-h.ctx.Done():
			return
		case <-tick.C:
			h.forgetBuilds(time.Now())
		case <-due.C:
		case <-h.rung:
		}
	}
}

// ring wakes watch.
func (h *Handler) ring() {
	select {
	case h.rung <- struct{}{}:
	default:
	}
}
