package e2b

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/ingress"
	"github.com/paddock-sandbox/paddock/internal/wrap/lease"
)

// A Caller is who makes a request of the control plane.
type Caller struct {
	// Tenant tells callers apart: what is remembered is remembered by it.
	Tenant string
	// Who is written into records of what was done: a key's ID, never a key.
	Who string
	// Driver makes and finds the tenant's sandboxes, and no other's.
	Driver lease.Lessor
	// Check refuses what the caller may not ask for; nil refuses nothing.
	Check func(paddock.Spec) error
	// Private tells that registries of private addresses may be reached for it.
	Private bool
	// ReadOnly may look, and change nothing.
	ReadOnly bool
}

// A Place is one of those that a tenant's requests have, until Leave.
type Place interface {
	// Body counts what is read as held, until Leave; its error is [paddock.Exhausted]
	// where that is too much.
	Body(r io.Reader) io.Reader
	Leave()
}

// A boundless place is one of a handler that was given no bounds.
type boundless struct{}

func (boundless) Body(r io.Reader) io.Reader { return r }
func (boundless) Leave()                     {}

// A Store keeps texts over restarts, by kind, tenant and ID.
type Store interface {
	Keep(ctx context.Context, kind, tenant, id, data string) error
	Forget(ctx context.Context, kind, tenant, id string) error
	Each(ctx context.Context, kind string, f func(tenant, id, data string) error) error
}

// A Pull says what image to give whom.
type Pull struct {
	Tenant, Image      string
	Username, Password string       // of its registry; empty are nobody's
	Private            bool         // its registry may have a private address
	Say                func(string) // is told how far it is
}

// An Image is one that was pulled for a tenant.
type Image struct {
	ID  string
	Dir string   // of its files, which are not changed
	Env []string // NAME=VALUE
}

// Images pulls images and keeps them, each for its tenant alone.
type Images interface {
	Pull(ctx context.Context, p Pull) (Image, error)
	// Sweep removes those of a tenant's that are not in use.
	Sweep(tenant string, used func(id string) bool) error
}

// Options are what a handler needs.
type Options struct {
	// Caller says whose a key is. A key that is nobody's is [paddock.Denied].
	Caller func(ctx context.Context, key string) (Caller, error)

	// Tenant gives the driver of a tenant that has sandboxes here, for calls that
	// show a sandbox's token in place of a key.
	Tenant func(ctx context.Context, tenant string) (lease.Lessor, error)

	// Mark has a context tell drivers who calls; nil marks nothing.
	Mark func(ctx context.Context, r *http.Request, tenant, who string) context.Context

	// Enter counts a request of a tenant's: each with a key, or with a sandbox's token
	// or a link. Its error is [paddock.Exhausted] where there are too many, and
	// [paddock.Unavailable] where no more are taken. Nil counts nothing.
	Enter func(ctx context.Context, tenant string) (Place, error)

	// Store is what is remembered of sandboxes and templates.
	Store Store

	// Secret is what names of sandboxes are made with that a repeated request has again;
	// empty is one of this process, after whose end a repeated request makes another.
	Secret []byte

	// Uploads is a directory of the handler's own, for what builds copy in.
	Uploads string

	// Images has what builds begin with; nil has none, and such builds are refused.
	Images Images

	// Base is the image that the template base begins with, which is not removed while
	// the handler lives; nil is this machine's system.
	Base *Image

	// Envd makes what answers at the agent's port of each sandbox, Code what answers
	// at the code interpreter's; without Code that port is one like any other.
	Envd func(Inside) (Port, error)
	Code func(Inside) (Port, error)

	// Ready are the tiers of which a pool keeps sandboxes of the spec [Ready], with sudo
	// where the tier has it: those are made without a name, so that one that is ready can
	// be taken.
	Ready []paddock.Tier

	// Ports carries requests to what listens inside. Whoever has another way to ports gives
	// that one's, so that both have the same bounds; nil is one of the handler's own.
	Ports *ingress.Proxy

	// Domain is that below which PORT-ID leads to sandboxes, with a port where it is
	// not the usual one; empty where there is none. Clients are told.
	Domain string

	// Wall is what a person's clock says, the one of the keepers too; nil is time.Now.
	Wall func() time.Time

	// Log is told what goes wrong; nil is no one.
	Log *slog.Logger
}

// Version is that of E2B's agent whose behaviour sandboxes have.
const Version = "0.6.13"

// A Handler answers requests of E2B's clients. Make one with [New].
type Handler struct {
	o   Options
	log *slog.Logger
	mux *http.ServeMux

	ports *ingress.Proxy

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup
	rung   chan struct{} // has one where the next end may be sooner
	key    [32]byte      // of URLs that this process hands out
	secret []byte        // of names of sandboxes
	left   []loose       // that an earlier handler left

	mu        sync.Mutex
	closed    bool                 // guarded by mu
	boxes     map[paddock.ID]*box  // guarded by mu
	templates map[string]*template // guarded by mu; by ID
	builds    map[string]*build    // guarded by mu; by ID
	intakes   map[string]intake    // guarded by mu; by tenant
	idle      map[string]time.Time // guarded by mu; since when images are not in use, by tenant and ID
}

// New goes on with the sandboxes and templates that the store knows. It starts
// goroutines, which Close ends.
func New(ctx context.Context, o Options) (*Handler, error) {
	if o.Caller == nil || o.Tenant == nil || o.Store == nil || o.Envd == nil {
		return nil, fmt.Errorf("e2b: Caller, Tenant, Store and Envd are needed: %w", paddock.Invalid)
	}
	if o.Mark == nil {
		o.Mark = func(ctx context.Context, _ *http.Request, _, _ string) context.Context { return ctx }
	}
	if o.Wall == nil {
		o.Wall = time.Now
	}
	if o.Enter == nil {
		o.Enter = func(context.Context, string) (Place, error) { return boundless{}, nil }
	}
	h := &Handler{
		o: o, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), boxes: map[paddock.ID]*box{}, templates: map[string]*template{},
		builds: map[string]*build{}, intakes: map[string]intake{}, idle: map[string]time.Time{}, rung: make(chan struct{}, 1),
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
	return h, nil
}

// Close cuts every stream, ends builds under way and waits. Sandboxes stay.
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
	for _, b := range boxes {
		b.cut()
	}
	h.wg.Wait()
	h.ports.Close()
	return nil
}

// watch samples what sandboxes use, and cuts those whose time is over.
func (h *Handler) watch() {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	due := time.NewTimer(time.Hour)
	defer due.Stop()
	for {
		due.Reset(h.expire(h.ctx, time.Now()))
		select {
		case <-h.ctx.Done():
			return
		case <-tick.C:
			h.sample(h.ctx)
			h.forgetBuilds(time.Now())
			h.sweepImages(time.Now())
		case <-due.C:
		case <-h.rung:
		}
	}
}

// ring has watch look again.
func (h *Handler) ring() {
	select {
	case h.rung <- struct{}{}:
	default:
	}
}
