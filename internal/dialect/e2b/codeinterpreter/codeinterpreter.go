// Package codeinterpreter implements the API of E2B's code interpreter, port 49999 of a sandbox, for
// one sandbox. It only translates: package interpreter runs the cells. No part of it runs
// in the sandbox, so no process listens there.
//
// The message formats are those of E2B's SDKs (npm @e2b/code-interpreter, PyPI
// e2b-code-interpreter), which its tests run. The caller of this package decides which
// sandbox a request is for, and checks access to its ports.
package codeinterpreter

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
	"github.com/paddock-sandbox/paddock/internal/jsonbody"
)

const (
	maxBody    = 16 << 20
	aliveEvery = 5 * time.Second  // interval of alive lines, as E2B's
	stall      = time.Minute      // a client that reads nothing for this long is cut
	bodyTime   = 30 * time.Second // time for a request to arrive
)

// Options configure a Box.
type Options struct {
	// Sandbox is the sandbox in which code runs. It is required, and the Box does not
	// remove it.
	Sandbox paddock.Sandbox

	// Token is the value that /execute requires in X-Access-Token. Empty requires none.
	Token string

	// Env returns the sandbox's own variables, as its creator set them. Nil means none.
	Env func() map[string]string

	// Dir is the working directory of contexts that name none. Empty is the sandbox's.
	Dir string

	// User is the user that runs code. Empty is the sandbox's user.
	User string

	// Room counts results together with those of other sandboxes. Nil counts them alone.
	Room *interpreter.Room

	// Log gets errors that no client sees. Nil discards them.
	Log *slog.Logger
}

// A Box is an http.Handler for one sandbox.
type Box struct {
	o   Options
	in  *interpreter.Interpreter
	mux *http.ServeMux
	log *slog.Logger

	alive time.Duration // the constant, except in tests

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
}

// New makes a Box. It starts nothing in the sandbox until the first cell.
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

// ServeHTTP implements http.Handler.
func (b *Box) ServeHTTP(w http.ResponseWriter, r *http.Request) { b.mux.ServeHTTP(w, r) }

// Close ends the requests in progress. Kernels continue in the sandbox, and a later Box of
// it reuses them. A second Close does nothing.
func (b *Box) Close() error {
	b.cancel()
	return b.in.Close()
}

func (b *Box) health(w http.ResponseWriter, _ *http.Request) { answer(w, "OK") }

// A place describes a context to clients.
type place struct {
	ID       string `json:"id"`
	Language string `json:"language"`
	Dir      string `json:"cwd"`
}

func told(c interpreter.Context) place { return place{c.ID, string(c.Language), c.Dir} }

// list answers with the contexts, the newest last. Two of them exist from the beginning in
// E2B, so they are the first ones, although here a first use makes them.
func (b *Box) list(w http.ResponseWriter, r *http.Request) {
	list := []place{}
	first := map[string]bool{}
	for _, l := range []interpreter.Language{interpreter.Python, interpreter.JavaScript} {
		c, err := b.in.Default(r.Context(), l)
		if err != nil {
			b.refuse(w, err)
			return
		}
		list, first[c.ID] = append(list, told(c)), true
	}
	all, err := b.in.List(r.Context())
	if err != nil {
		b.refuse(w, err)
		return
	}
	for _, c := range all {
		if !first[c.ID] {
			list = append(list, told(c))
		}
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

// language converts E2B's name of a language. An unknown name stays, and is refused later.
func language(s *string) interpreter.Language { return interpreter.Language(text(s)) }

// execute runs a cell and streams its events.
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
	if r.Context().Err() == nil { // the client is connected, and its SDK would not notice a cut stream
		_ = s.send(map[string]any{"type": "error", "name": interpreter.ErrorEnded, "value": err.Error(), "traceback": ""})
		_ = s.send(map[string]any{"type": "end_of_execution"})
	}
}

// A Holder is the body of a request whose memory is bounded together with that of other
// requests. The caller of a Box may make the bodies of its requests holders.
type Holder interface {
	io.ReadCloser
	// Hold counts n more bytes until the request ends: the memory that the decoded body takes
	// beside its text. It fails with [paddock.Exhausted] if that exceeds the bound.
	Hold(n int64) error
}

// body decodes the body of a request.
func (b *Box) body(w http.ResponseWriter, r *http.Request, into any) error {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) // not every server supports it
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	switch {
	case errors.Is(err, paddock.Exhausted): // from the bound on bodies
		return err
	case err != nil:
		return fmt.Errorf("read the request: %w: %w", paddock.Invalid, err)
	}
	if len(data) == 0 {
		return nil
	}
	if h, ok := r.Body.(Holder); ok {
		if err := h.Hold(jsonbody.Cost(data)); err != nil {
			return err
		}
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("the request is not the expected JSON: %w: %w", paddock.Invalid, jsonbody.Explain(err))
	}
	return nil
}

// answer answers with JSON.
func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		return // the client has gone
	}
}

// refuse answers with an error as text.
func (b *Box) refuse(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch kind := paddock.KindOf(err); {
	case errors.Is(err, paddock.Canceled):
		return // the client has gone
	case kind == paddock.Unavailable: // the sandbox is gone, which the SDK recognises by 502
		status = http.StatusBadGateway
	case kind != paddock.Internal:
		status = kind.Translate().HTTP
	default:
		b.log.Warn("the code interpreter failed", "err", err)
	}
	http.Error(w, err.Error(), status)
}
