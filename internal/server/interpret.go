package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/interpreter"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// Bounds of the interpreters held for a caller. Dropping an interpreter does not end its
// kernels, and the next interpreter reuses them.
const (
	maxInterpreters = 1000
	interpreterIdle = 10 * time.Minute
)

// Bounds of the bytes of incomplete or undelivered results, for one caller and for all.
const (
	maxResults = 128 << 20
	allResults = 512 << 20

	// resultFloor is what a caller may hold even if others use up allResults: one result of the
	// largest size.
	resultFloor = 8 << 20
)

// ResultRoom returns the room for results of cells that a caller runs through another API.
func (s *Server) ResultRoom(caller string) *interpreter.Room { return s.accountOf(caller).results }

// An interpreting is an interpreter of one sandbox, with its use count.
type interpreting struct {
	in    *interpreter.Interpreter
	sb    paddock.Sandbox
	users int       // guarded by account.mu
	used  time.Time // guarded by account.mu
}

// interpreter calls do with the interpreter of the sandbox that the path names. It drops
// the interpreter if the sandbox is gone.
func (q *request) interpreter(do func(*interpreter.Interpreter) error) error {
	it, err := q.enterInterpreter()
	if err != nil {
		return err
	}
	err = do(it.in)
	stale := false
	if errors.Is(err, paddock.Unavailable) || errors.Is(err, paddock.NotFound) { // context or sandbox is gone
		_, gone := it.sb.Status(q.Context())
		stale = gone != nil
	}
	return errors.Join(err, q.leaveInterpreter(it, stale))
}

func (q *request) enterInterpreter() (*interpreting, error) {
	sb, err := q.sandbox()
	if err != nil {
		return nil, err
	}
	key := handleKey{q.caller.Driver, sb.ID()}
	a := q.account
	a.mu.Lock()
	defer a.mu.Unlock()
	it := a.interpreters[key]
	if it == nil {
		if len(a.interpreters) >= maxInterpreters {
			return nil, fmt.Errorf("contexts in too many sandboxes (%d): %w", maxInterpreters, paddock.Exhausted)
		}
		in, err := interpreter.New(interpreter.Options{Sandbox: sb, Room: a.results, Log: q.s.log})
		if err != nil {
			return nil, err
		}
		it = &interpreting{in: in, sb: sb}
		a.interpreters[key] = it
	}
	it.users++
	return it, nil
}

func (q *request) leaveInterpreter(it *interpreting, stale bool) error {
	a, key := q.account, handleKey{q.caller.Driver, it.sb.ID()}
	a.mu.Lock()
	it.users--
	it.used = time.Now()
	if stale && a.interpreters[key] == it {
		delete(a.interpreters, key)
	}
	a.mu.Unlock()
	if stale {
		return it.in.Close()
	}
	return nil
}

// idle removes and returns the interpreters that were not used for a while.
func (a *account) idle(now time.Time) []*interpreting {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []*interpreting
	for key, it := range a.interpreters {
		if it.users == 0 && now.Sub(it.used) > interpreterIdle {
			delete(a.interpreters, key)
			list = append(list, it)
		}
	}
	return list
}

// contexts handles GET /v1/sandboxes/{id}/contexts.
func (q *request) contexts() error {
	return q.interpreter(func(in *interpreter.Interpreter) error {
		list, err := in.List(q.Context())
		if err != nil {
			return err
		}
		out := api.Contexts{Contexts: []api.Context{}}
		for _, c := range list {
			out.Contexts = append(out.Contexts, fromContext(c))
		}
		return q.json(http.StatusOK, out)
	})
}

func fromContext(c interpreter.Context) api.Context {
	return api.Context{ID: c.ID, Language: string(c.Language), Dir: c.Dir, Default: c.Default, Created: c.Created}
}

// createContext handles POST /v1/sandboxes/{id}/contexts.
func (q *request) createContext() error {
	if err := q.s.fresh(); err != nil {
		return err
	}
	var c api.NewContext
	if err := q.body(&c); err != nil {
		return err
	}
	return q.interpreter(func(in *interpreter.Interpreter) error {
		made, err := in.Create(q.Context(), interpreter.Spec{Language: interpreter.Language(c.Language), Dir: c.Dir, Env: c.Env})
		if err != nil {
			return err
		}
		return q.json(http.StatusCreated, fromContext(made))
	})
}

// toContext runs an operation on the context that the path names.
func (q *request) toContext(do func(*interpreter.Interpreter, context.Context, string) error) error {
	return q.interpreter(func(in *interpreter.Interpreter) error {
		if err := do(in, q.Context(), q.PathValue("context")); err != nil {
			return err
		}
		return q.none()
	})
}

// removeContext handles DELETE /v1/sandboxes/{id}/contexts/{context}.
func (q *request) removeContext() error { return q.toContext((*interpreter.Interpreter).Remove) }

// restartContext handles POST /v1/sandboxes/{id}/contexts/{context}/restart.
func (q *request) restartContext() error { return q.toContext((*interpreter.Interpreter).Restart) }

// interruptContext handles POST /v1/sandboxes/{id}/contexts/{context}/interrupt.
func (q *request) interruptContext() error { return q.toContext((*interpreter.Interpreter).Interrupt) }

// interpret handles POST /v1/sandboxes/{id}/interpret. The answer is the events of the
// cell, up to its end. If the client goes away, the cell is interrupted.
func (q *request) interpret() error {
	if err := q.s.fresh(); err != nil {
		return err
	}
	var c api.Cell
	if err := q.body(&c); err != nil {
		return err
	}
	return q.interpreter(func(in *interpreter.Interpreter) error {
		ctx, cancel := context.WithCancel(q.Context())
		defer cancel()
		defer context.AfterFunc(q.s.ctx, cancel)()
		lines := &cellLines{q: q}
		var wg sync.WaitGroup
		wg.Go(func() { lines.live(ctx, cancel) })
		cell := interpreter.Cell{Code: c.Code, Context: c.Context, Language: interpreter.Language(c.Language), Env: c.Env, Timeout: c.Timeout}
		err := in.Run(ctx, cell, func(e interpreter.Event) error { return lines.send(e) })
		cancel()
		wg.Wait()
		if err == nil || !lines.begun() {
			return err
		}
		if q.Context().Err() == nil {
			told := api.FromError(err)
			_ = lines.send(api.CellEvent{Type: "fail", Fail: &told}) // ignore an error: the client has gone
		}
		return nil
	})
}

// cellLines writes the events of a cell.
type cellLines struct {
	q    *request
	mu   sync.Mutex
	out  *lines    // guarded by mu; nil before the first event
	last time.Time // guarded by mu
}

func (l *cellLines) begun() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out != nil
}

func (l *cellLines) send(v any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out == nil {
		out := l.q.lines()
		out.counted = true // as a result
		l.out = &out
	}
	l.last = time.Now()
	return l.out.send(v)
}

// live sends alive lines once the answer has begun, until ctx ends.
func (l *cellLines) live(ctx context.Context, gone func()) {
	tick := time.NewTicker(aliveEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			l.mu.Lock()
			quiet := l.out != nil && now.Sub(l.last) >= aliveEvery/2
			l.mu.Unlock()
			if quiet && l.send(api.CellEvent{Type: "alive"}) != nil {
				gone()
				return
			}
		}
	}
}
