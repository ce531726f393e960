// Package envd answers E2B's in-box API (their port 49983) for one sandbox:
// processes, files, watches. Nothing of E2B runs in the sandbox: every request is
// translated into calls of a [paddock.Sandbox].
//
// Two parties are hostile. The client sends any bytes: each message, list, name and
// header is capped here, and what it asks for is done with the rights of the
// sandbox's user, by the sandbox. The guest answers with any names, sizes and
// links: they are data of answers; a link is followed by asking the sandbox what
// it says, never on the host. A token that is set guards everything but /health,
// in constant time; files may be had with a signature made of it.
//
// What is other than in E2B's agent:
//   - the user is the sandbox's own one, whatever it is called inside; another one,
//     also root, runs commands where the tier has [paddock.CanUsers], and reads and
//     writes no files;
//   - a time that is over kills the command's process group, and not one process;
//   - metadata of files is kept by the Box, by name, and not in extended attributes:
//     it goes with the Box, and what commands set there is not told;
//   - files are sent packed only to who takes nothing else but gzip;
//   - a watch that is too slow loses events; of a watcher the newest 10,000 are kept,
//     of all of a Box about 8 MiB, and one that is not asked for 10 minutes ends; so
//     much is kept of metadata, too; how much of the disk is used is told as 0.
//
// Output waits for who reads it, as a pipe does: a Box holds a bounded number of
// pieces for each reader, and a reader that takes nothing for a minute is cut off.
package envd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b/envd/envdpb"
)

// Version is the release of E2B's agent that a Box answers like.
const Version = "0.6.13"

// Options say whose API it is.
type Options struct {
	Sandbox paddock.Sandbox // needed
	Tier    paddock.Tier    // named where something cannot be; empty is not known

	// Token must be shown by every request but /health; empty lets everyone in.
	Token string

	// Env is added to the environment of every process, below what a request
	// brings; it is what /envs answers.
	Env map[string]string

	SandboxID, TemplateID string // told to processes

	// User is one more name of the sandbox's own user, beside "user" and the one
	// that it has inside.
	User string
	// Dir is where processes start and relative names begin; empty is the home.
	Dir string

	// Room is where what is held of requests counts with those of other sandboxes; nil
	// is for themselves.
	Room Room

	// Gone answers a request that came when the sandbox was no more. Without it
	// the answer is 502 in E2B's words.
	Gone func(http.ResponseWriter, *http.Request)

	Log *slog.Logger // nil discards
}

// A Room bounds bytes that are held of the requests of several sandboxes.
type Room interface {
	// Take counts n bytes more, and answers whether there was room for them.
	Take(n int64) bool
	Give(n int64)
}

// A Box is the API of one sandbox. It can be used by many requests at once.
type Box struct {
	o   Options
	mux *http.ServeMux

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	tasks  tasks

	place     place
	processes table
	watchers  watchers
	metadata  metadata
	metrics   metrics
	held      atomic.Int64     // bytes of requests
	listing   chan struct{}    // has one while a directory is listed
	now       func() time.Time // time.Now, but in tests
}

// New makes a Box. It does not touch the sandbox.
func New(o Options) (*Box, error) {
	if o.Sandbox == nil {
		return nil, fmt.Errorf("a sandbox is needed: %w", paddock.Invalid)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Dir != "" && !strings.HasPrefix(o.Dir, "/") {
		return nil, fmt.Errorf("directory %q is not absolute: %w", o.Dir, paddock.Invalid)
	}
	o.Env = maps.Clone(o.Env)
	b := &Box{o: o, now: time.Now, listing: make(chan struct{}, 1)}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.processes.init()
	b.watchers.init()
	b.mux = b.routes()
	return b, nil
}

// Close ends every stream and waits for what runs here. Processes in the sandbox
// go on. Closing twice is fine.
func (b *Box) Close() error {
	b.tasks.close()
	b.cancel()
	b.processes.release()
	b.watchers.close()
	b.tasks.wait()
	return nil
}

func (b *Box) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, service := range []func() (string, http.Handler){
		func() (string, http.Handler) {
			return envdpb.NewProcessHandler(processService{b}, b.callOptions()...)
		},
		func() (string, http.Handler) {
			return envdpb.NewFilesystemHandler(fileService{b}, b.callOptions()...)
		},
	} {
		at, handler := service()
		mux.Handle(at, b.counted(handler))
	}
	mux.HandleFunc("GET /health", b.health)
	mux.HandleFunc("GET /envs", b.envs)
	mux.HandleFunc("GET /metrics", b.measured)
	mux.HandleFunc("GET /files", b.download)
	mux.HandleFunc("POST /files", b.upload)
	mux.HandleFunc("POST /files/compose", b.compose)
	return mux
}

// ServeHTTP answers a request. Where the sandbox is no more it calls
// [Options.Gone]; where an answer was under way by then, it is cut.
func (b *Box) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !b.tasks.begin() {
		b.gone(w, r)
		return
	}
	out := &answer{ResponseWriter: w, end: b.ctx, alone: r.ProtoMajor == 1}
	defer b.tasks.end()
	defer out.release()
	defer func() {
		switch e := recover(); {
		case e == nil:
		case e == errGone && !out.begun.Load(): //nolint:errorlint // a panic's value, not an error that came from somewhere
			out.leave()
			b.gone(w, r)
		case e == errGone: //nolint:errorlint // the same
			panic(http.ErrAbortHandler)
		default:
			panic(e)
		}
	}()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	stop := context.AfterFunc(b.ctx, cancel)
	defer stop()
	stopReading := context.AfterFunc(b.ctx, out.cut)
	defer stopReading()
	b.answer(out, r.WithContext(ctx))
}

func (b *Box) answer(w *answer, r *http.Request) {
	if _, pattern := b.mux.Handler(r); pattern == "" {
		turnAway(w, r, missing("there is nothing at "+clean(r.URL.Path)))
		return
	}
	if err := b.authorize(r); err != nil {
		turnAway(w, r, err)
		return
	}
	b.mux.ServeHTTP(w, r)
}

// health says that the sandbox lives: their clients ask it to tell a sandbox that
// was killed from a connection that broke.
func (b *Box) health(w http.ResponseWriter, r *http.Request) {
	if b.isGone(r.Context()) {
		panic(errGone)
	}
	if a, ok := w.(*answer); ok { // one that says that it lives is no stream of its
		a.whole()
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
}

func (b *Box) envs(w http.ResponseWriter, _ *http.Request) {
	env := b.o.Env
	if env == nil {
		env = map[string]string{}
	}
	writeJSON(w, http.StatusOK, env)
}

// errGone ends a request whose sandbox is no more. It is a panic, since only
// ServeHTTP knows whether there is still an answer to be given.
var errGone = errors.New("the sandbox is gone")

// isGone asks whether the sandbox is no more.
func (b *Box) isGone(ctx context.Context) bool {
	st, err := b.o.Sandbox.Status(ctx)
	if err == nil {
		return st.State == paddock.Dead
	}
	if ctx.Err() != nil {
		return false
	}
	kind := paddock.KindOf(err)
	return kind == paddock.NotFound || kind == paddock.Unavailable
}

// alive ends the request where err comes from a sandbox that is no more.
func (b *Box) alive(ctx context.Context, err error) {
	switch paddock.KindOf(err) {
	case paddock.Unavailable, paddock.NotFound, paddock.Canceled, paddock.Internal:
	default:
		return
	}
	if b.ctx.Err() != nil || b.isGone(context.WithoutCancel(ctx)) {
		panic(errGone)
	}
}

// gone is the answer of a proxy that has no such sandbox.
func (b *Box) gone(w http.ResponseWriter, r *http.Request) {
	if b.o.Gone != nil {
		b.o.Gone(w, r)
		return
	}
	writeJSON(w, http.StatusBadGateway, map[string]any{
		"sandboxId": b.o.SandboxID, "message": "The sandbox was not found", "code": http.StatusBadGateway,
	})
}

// tasks counts what runs, so that Close can wait for it.
type tasks struct {
	mu     sync.Mutex
	closed bool // guarded by mu
	wg     sync.WaitGroup
}

// begin is false after close.
func (t *tasks) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.wg.Add(1)
	return true
}

func (t *tasks) end() { t.wg.Done() }

func (t *tasks) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
}

func (t *tasks) wait() { t.wg.Wait() }
