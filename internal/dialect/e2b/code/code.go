// Package code answers as E2B's code interpreter does on port 49999 of a sandbox,
// for one sandbox. It translates: cells run in package interpreter. Nothing of it
// runs in the sandbox, so nothing listens there.
//
// The shapes are those of E2B's SDKs (npm @e2b/code-interpreter, PyPI
// e2b-code-interpreter), which are its referees. Whoever wires it says which sandbox
// a request is for, and has checked what the sandbox's ports ask for.
package code

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/interpreter"
)

const (
	maxBody    = 16 << 20
	aliveEvery = 5 * time.Second  // of silence; E2B's own
	stall      = time.Minute      // a client that takes nothing for so long is cut
	bodyTime   = 30 * time.Second // in which a request has to arrive
)

// Options is what a Box needs.
type Options struct {
	// Sandbox is where code runs. It must be given, and stays the caller's.
	Sandbox paddock.Sandbox

	// Token is what /execute asks for in X-Access-Token; empty asks for nothing.
	Token string

	// Env gives the sandbox's own variables, as its creator set them; nil is none.
	Env func() map[string]string

	// Dir is where contexts work that name no directory; empty is the sandbox's.
	Dir string

	// User is who code runs as; empty is the sandbox's user.
	User string

	// Room is where results count with those of other sandboxes; nil is for themselves.
	Room *interpreter.Room

	// Log is told what nobody else is; nil is nobody.
	Log *slog.Logger
}

// A Box is an http.Handler for one sandbox.
type Box struct {
	o   Options
	in  *interpreter.Interpreter
	mux *http.ServeMux
	log *slog.Logger

	alive time.Duration // the constant, but for tests

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
}

// New makes a Box. It starts nothing in the sandbox until code is to run there.
func New(o Options) (*Box, error) {
	in, err := interpreter.New(interpreter.Options{Sandbox: o.Sandbox, Env: o.Env, Dir: o.Dir, User: o.User, Room: o.Room, Log: o.Log})
	if err != nil {
		return nil, err
	}
	b := &Box{o: o, in: in, mux: http.NewServeMux(), log: o.Log, alive: aliveEvery}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.mux.HandleFunc("GET /health", b.health)
	b.mux.HandleFunc("POST /execute", b.execute)
	b.mux.HandleFunc("GET /contexts", b.list)
	b.mux.HandleFunc("POST /contexts", b.create)
	b.mux.HandleFunc("DELETE /contexts/{id}", b.remove)
	b.mux.HandleFunc("POST /contexts/{id}/restart", b.restart)
	return b, nil
}

// ServeHTTP answers a request.
func (b *Box) ServeHTTP(w http.ResponseWriter, r *http.Request) { b.mux.ServeHTTP(w, r) }

// Close ends the requests that are under way. Kernels go on in the sandbox; a later
// Box of it joins them again. Closing twice is fine.
func (b *Box) Close() error {
	b.cancel()
	return b.in.Close()
}

func (b *Box) health(w http.ResponseWriter, _ *http.Request) { answer(w, "OK") }

// A place is a context as E2B tells it.
type place struct {
	ID       string `json:"id"`
	Language string `json:"language"`
	Dir      string `json:"cwd"`
}

func told(c interpreter.Context) place { return place{c.ID, string(c.Language), c.Dir} }

// list gives the contexts, of which two are there from the beginning.
func (b *Box) list(w http.ResponseWriter, r *http.Request) {
	list := []place{}
	for _, l := range []interpreter.Language{interpreter.Python, interpreter.JavaScript} {
		if _, err := b.in.Default(r.Context(), l); err != nil {
			b.refuse(w, err)
			return
		}
	}
	all, err := b.in.List(r.Context())
	if err != nil {
		b.refuse(w, err)
		return
	}
	for _, c := range all {
		list = append(list, told(c))
	}
	answer(w, list)
}

func (b *Box) create(w http.ResponseWriter, r *http.Request) {
	var order struct {
		Language *string `json:"language"`
		Dir      *string `json:"cwd"`
	}
	if err := b.body(w, r, &order); err != nil {
		b.refuse(w, err)
		return
	}
	c, err := b.in.Create(r.Context(), interpreter.Spec{Language: language(order.Language), Dir: text(order.Dir)})
	if err != nil {
		b.refuse(w, err)
		return
	}
	answer(w, told(c))
}

func (b *Box) remove(w http.ResponseWriter, r *http.Request) {
	if err := b.in.Remove(r.Context(), r.PathValue("id")); err != nil {
		b.refuse(w, err)
		return
	}
	answer(w, nil)
}

func (b *Box) restart(w http.ResponseWriter, r *http.Request) {
	if err := b.in.Restart(r.Context(), r.PathValue("id")); err != nil {
		b.refuse(w, err)
		return
	}
	answer(w, nil)
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// language gives our name for E2B's: one that we do not know stays as it is, and is
// refused by name.
func language(s *string) interpreter.Language { return interpreter.Language(text(s)) }

// execute runs a cell and streams what happens.
func (b *Box) execute(w http.ResponseWriter, r *http.Request) {
	if b.o.Token != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get("X-Access-Token")), []byte(b.o.Token)) != 1 {
		http.Error(w, "the access token is missing or wrong", http.StatusUnauthorized)
		return
	}
	var order struct {
		Code     string            `json:"code"`
		Context  *string           `json:"context_id"`
		Language *string           `json:"language"`
		Env      map[string]string `json:"env_vars"`
	}
	if err := b.body(w, r, &order); err != nil {
		b.refuse(w, err)
		return
	}
	if text(order.Context) != "" && text(order.Language) != "" {
		http.Error(w, "only one of context_id and language can be given", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(b.ctx, cancel)()
	s := &lines{w: w, c: http.NewResponseController(w)}
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, done := context.WithCancel(ctx)
	defer done()
	wg.Go(func() { s.live(ctx, b.alive, cancel) })
	err := b.in.Run(ctx, interpreter.Cell{Code: order.Code, Context: text(order.Context), Language: language(order.Language), Env: order.Env},
		func(e interpreter.Event) error { return s.send(translate(e)) })
	if err == nil {
		return
	}
	if !s.started() {
		b.refuse(w, err)
		return
	}
	if r.Context().Err() == nil { // the client is there, and its SDK does not notice a stream that is cut
		_ = s.send(map[string]any{"type": "error", "name": interpreter.ErrorEnded, "value": err.Error(), "traceback": ""})
		_ = s.send(map[string]any{"type": "end_of_execution"})
	}
}

// body reads what a request says.
func (b *Box) body(w http.ResponseWriter, r *http.Request, into any) error {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) // not every server has one
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	switch {
	case errors.Is(err, paddock.Exhausted): // of whoever bounds bodies
		return err
	case err != nil:
		return fmt.Errorf("read the request: %w: %w", paddock.Invalid, err)
	}
	if len(data) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("the request is not the JSON that is expected: %w: %w", paddock.Invalid, err)
	}
	return nil
}

// answer sends JSON.
func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		return // a client that has gone misses nothing
	}
}

// refuse answers an error, as text.
func (b *Box) refuse(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch kind := paddock.KindOf(err); {
	case errors.Is(err, paddock.Canceled):
		return // the client has gone
	case kind == paddock.Unavailable: // the sandbox has gone: the SDK tells it from 502
		status = http.StatusBadGateway
	case kind != paddock.Internal:
		status = kind.Translate().HTTP
	default:
		b.log.Warn("the code interpreter failed", "err", err)
	}
	http.Error(w, err.Error(), status)
}
