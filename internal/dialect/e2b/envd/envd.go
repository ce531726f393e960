// Package envd implements the API of E2B's agent, port 49983 of a sandbox, for one sandbox:
// processes, files and watches. No part of E2B runs in the sandbox: every request becomes
// calls of a [paddock.Sandbox].
//
// Both sides are hostile. A client may send any bytes, so each message, list, name and
// header is bounded here. The sandbox does what the client asks for, with the rights of the
// sandbox's user. A guest may answer with any names, sizes and links. They are only data of
// answers. Links are resolved by asking the sandbox for their targets, never on the host. A
// token, if set, protects everything except /health, and is compared in constant time.
// Files can also be read and written with a signature made from the token.
//
// Differences from E2B's agent:
//   - The user is the sandbox's own, whatever its name inside. Another user, including root,
//     runs commands if the tier has [paddock.CanUsers]. Commands of that user also serve its
//     requests for files.
//   - A timeout kills the command's process group, not one process.
//   - Input whose call ends before the process reads it is dropped, except for at most 32 KiB.
//   - File metadata is kept by the Box, by name, and not in extended attributes. It ends with
//     the Box, and attributes that commands set are not reported.
//   - Files are sent with gzip only to a client that accepts nothing else.
//   - A slow watch loses events. The newest 10,000 events of a watcher are kept, and about 8
//     MiB for all watchers of a Box. A watcher without a request for 10 minutes ends.
//   - About 8 MiB of file metadata is kept for a Box.
//   - The used disk space is reported as 0.
//
// A process waits for the reader of its output, as with a pipe. A Box holds a bounded
// number of pieces for each reader. A reader that accepts nothing for a minute is cut off.
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

// Version is the version of E2B's agent that a Box imitates.
const Version = "0.6.13"

// Options configure a Box.
type Options struct {
	Sandbox paddock.Sandbox // required
	Tier    paddock.Tier    // for error messages; empty is unknown

	// Token is required by every request except /health. Empty requires none.
	Token string

	// Env is added to the environment of every process. Variables of the request override
	// it. /envs returns it.
	Env map[string]string

	SandboxID, TemplateID string // variables of every process

	// User is another name of the sandbox's own user, besides "user" and its name inside.
	User string
	// Dir is the directory of processes and of relative names. Empty is the home directory.
	Dir string

	// Room counts the bytes held of requests together with those of other sandboxes, and
	// Answers those of answers that are not sent yet. Nil counts them alone.
	Room, Answers Room

	// Buffer returns a buffer for the content of a file on its way to a client, and counts it
	// until done is called. Nil makes one, and counts none.
	Buffer func() (buf []byte, done func(), err error)

	// Ahead counts what sandboxes may send ahead of what clients take, of followed processes
	// and watched directories, together with that of other sandboxes. Nil sets no bound.
	Ahead Room

	// Gone answers a request for a sandbox that does not exist any more. Nil answers with
	// E2B's 502.
	Gone func(http.ResponseWriter, *http.Request)

	Log *slog.Logger // nil discards
}

// A Room bounds bytes that are held for several sandboxes.
type Room interface {
	// Take counts n more bytes, and reports whether there was room for them.
	Take(n int64) bool
	Give(n int64)
}

// A Box is the API of one sandbox. It is safe for concurrent use.
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
	held      atomic.Int64     // bytes held of requests
	answers   atomic.Int64     // bytes held of answers
	listing   chan struct{}    // has an element while a directory is listed, and the list is sent
	now       func() time.Time // time.Now, except in tests
}

// New makes a Box. It makes no call to the sandbox.
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

// Close ends every stream and waits for all goroutines. Processes in the sandbox continue.
// A second Close does nothing.
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
	mux.Handle("POST /files/compose", b.counted(http.HandlerFunc(b.compose)))
	return mux
}

// ServeHTTP implements http.Handler. If the sandbox is gone, it calls [Options.Gone], or
// cuts an answer that has begun.
func (b *Box) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !b.tasks.begin() {
		b.gone(w, r)
		return
	}
	out := &answer{ResponseWriter: w, b: b, alone: r.ProtoMajor == 1}
	defer b.tasks.end()
	defer out.release()
	defer out.sent()
	defer func() {
		switch e := recover(); {
		case e == nil:
		case e == errGone && !out.begun.Load(): //nolint:errorlint // the value of a panic, not a wrapped error
			out.leave()
			b.gone(w, r)
		case e == errGone: //nolint:errorlint // the same
			panic(http.ErrAbortHandler)
		default:
			panic(e)
		}
	}()
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), answerKey{}, out))
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

// health reports that the sandbox exists. E2B's clients call it to distinguish a killed
// sandbox from a broken connection.
func (b *Box) health(w http.ResponseWriter, r *http.Request) {
	if b.isGone(r.Context()) {
		panic(errGone)
	}
	if a, ok := w.(*answer); ok { // close does not cut this answer, because it is no stream
		a.whole()
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
}

func (b *Box) envs(w http.ResponseWriter, r *http.Request) {
	size, env := 0, b.o.Env
	if env == nil {
		env = map[string]string{}
	}
	for name, value := range env {
		size += len(name) + len(value)
	}
	if err := answering(r.Context()).hold(size); err != nil {
		fail(w, err)
		return
	}
	writeJSON(w, http.StatusOK, env)
}

// errGone ends a request whose sandbox is gone. It is the value of a panic, because only
// ServeHTTP knows whether an answer can still be sent.
var errGone = errors.New("the sandbox is gone")

// isGone reports whether the sandbox is gone.
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

// alive ends the request if err is from a sandbox that is gone.
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

// gone answers as a proxy that does not know the sandbox.
func (b *Box) gone(w http.ResponseWriter, r *http.Request) {
	if b.o.Gone != nil {
		b.o.Gone(w, r)
		return
	}
	writeJSON(w, http.StatusBadGateway, map[string]any{
		"sandboxId": b.o.SandboxID, "message": "The sandbox was not found", "code": http.StatusBadGateway,
	})
}

// tasks counts running requests, so that Close can wait for them.
type tasks struct {
	mu     sync.Mutex
	closed bool // guarded by mu
	wg     sync.WaitGroup
}

// begin counts a task. It reports false after close.
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
