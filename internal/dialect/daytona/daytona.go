package daytona

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
	"github.com/paddock-sandbox/paddock/internal/interpreter"
)

// Options configure a handler.
type Options struct {
	// Caller identifies the owner of a key. For an unknown key it returns [paddock.Denied].
	Caller func(ctx context.Context, key string) (dialect.Caller, error)

	// Signer returns the owner of a key that signed a URL, by the key's ID. If that key may not write any more, it
	// returns [paddock.Denied]. Nil means that no URLs of files are signed.
	Signer func(ctx context.Context, tenant, who string) (dialect.Caller, error)

	// Mark returns a context that tells drivers who calls. Nil marks nothing.
	Mark func(ctx context.Context, r *http.Request, tenant, who string) context.Context

	// Enter counts a request of a tenant. It returns [paddock.Exhausted] if there are too many, and
	// [paddock.Unavailable] if the server accepts no more. Nil counts nothing.
	Enter func(ctx context.Context, tenant string) (dialect.Place, error)

	// Buffer returns a buffer for the content of a file on its way, which counts until done is called. Nil makes one.
	Buffer func(tenant string) (buf []byte, done func(), err error)

	// Room returns the room for results of a tenant's cells. Nil counts them by sandbox alone.
	Room func(tenant string) *interpreter.Room

	// Ports leads to ports of sandboxes from outside. Nil means that there is no way.
	Ports Ports

	// Store keeps records of sandboxes.
	Store dialect.Store

	// Disk is the disk of sandboxes that ask for none, in bytes. Zero is the tier's default.
	Disk int64

	// Wall returns the wall-clock time. Nil is time.Now.
	Wall func() time.Time

	// Log gets warnings and errors. Nil discards them.
	Log *slog.Logger
}

// Version is the version of Daytona's clients whose wire this is.
const Version = "0.226.1"

// A Handler answers requests of Daytona's clients.
type Handler struct {
	o   Options
	log *slog.Logger
	mux *http.ServeMux

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	closed bool
	boxes  map[paddock.ID]*box // guarded by mu
	ptys   map[ptyKey]*pty     // guarded by mu
	names  map[named]bool      // being given to something new; guarded by mu
}

// A named is a name of a tenant's sandbox or snapshot.
type named struct{ kind, tenant, name string }

// New loads the records of the store.
func New(ctx context.Context, o Options) (*Handler, error) {
	if o.Caller == nil || o.Store == nil {
		return nil, fmt.Errorf("daytona: Caller and Store are needed: %w", paddock.Invalid)
	}
	if o.Mark == nil {
		o.Mark = func(ctx context.Context, _ *http.Request, _, _ string) context.Context { return ctx }
	}
	if o.Enter == nil {
		o.Enter = func(context.Context, string) (dialect.Place, error) { return dialect.Boundless{}, nil }
	}
	if o.Buffer == nil {
		o.Buffer = func(string) ([]byte, func(), error) { return make([]byte, 64<<10), func() {}, nil }
	}
	if o.Wall == nil {
		o.Wall = time.Now
	}
	h := &Handler{o: o, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), boxes: map[paddock.ID]*box{}, ptys: map[ptyKey]*pty{}, names: map[named]bool{}}
	if err := h.load(ctx); err != nil {
		return nil, err
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.mux = h.routes()
	return h, nil
}

// Close cuts what streams, and waits. Sandboxes stay.
func (h *Handler) Close() error {
	h.mu.Lock()
	h.closed = true
	boxes := slices.Collect(maps.Values(h.boxes))
	h.mu.Unlock()
	h.cancel()
	errs := make([]error, len(boxes))
	for i, b := range boxes {
		errs[i] = b.leave()
	}
	h.wg.Wait()
	return errors.Join(errs...)
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

// reserve keeps a name for something new until release is called, so that two parallel requests do not give it to two. It
// tells how many names of its kind the tenant has reserved, this one included.
func (h *Handler) reserve(n named) (count int, release func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.names[n] {
		return 0, nil, refuse(http.StatusConflict, paddock.Exists, "%s with name %s is being made already", n.kind, dialect.Printable(n.name))
	}
	h.names[n] = true
	for other := range h.names {
		if other.kind == n.kind && other.tenant == n.tenant {
			count++
		}
	}
	return count, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.names, n)
	}, nil
}

// now returns the time by the wall clock.
func (h *Handler) now() time.Time { return h.o.Wall().Round(0).UTC() }

// Paths below which requests are this handler's.
const (
	control = "/api/"
	toolbox = "/toolbox/"
)

// Takes reports whether a request is for this handler, by its path.
func (h *Handler) Takes(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, control) || strings.HasPrefix(r.URL.Path, toolbox)
}

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	dialect.Bounded(w, r)
	h.mux.ServeHTTP(w, r)
}
