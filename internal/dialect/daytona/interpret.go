package daytona

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
	"github.com/paddock-sandbox/paddock/internal/interpreter"
)

// timedOut is the code with which a WebSocket is closed after a time limit.
const timedOut = websocket.StatusCode(4008)

// interpretTable returns the routes of contexts of Python, which keep their state.
func interpretTable() []route {
	return []route{
		{"GET /process/interpreter/context", (*call).contexts, false},
		{"POST /process/interpreter/context", (*call).makeContext, false},
		{"DELETE /process/interpreter/context/{cid}", (*call).removeContext, false},
		{"GET /process/interpreter/execute", (*call).interpret, false},
	}
}

// interpreter returns the interpreter of the sandbox that the path names.
func (c *call) interpreter() (*interpreter.Interpreter, record, error) {
	b, _, err := c.box()
	if err != nil {
		return nil, record{}, err
	}
	sb, rec, err := c.opened(true)
	if err != nil {
		return nil, rec, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone {
		return nil, rec, noSandbox(string(rec.ID))
	}
	if b.cells == nil {
		o := interpreter.Options{Sandbox: sb, Env: func() map[string]string { return rec.Env }, Dir: rec.Dir, Log: c.h.log}
		if c.h.o.Room != nil {
			o.Room = c.h.o.Room(rec.Tenant)
		}
		if b.cells, err = interpreter.New(o); err != nil {
			return nil, rec, err
		}
	}
	return b.cells, rec, nil
}

// leave ends what a box holds of its interpreter; kernels go on, and the next use joins them.
func (b *box) leave() error {
	b.mu.Lock()
	in := b.cells
	b.cells = nil
	b.mu.Unlock()
	if in == nil {
		return nil
	}
	return in.Close()
}

// A toldContext is a context as clients see it.
type toldContext struct {
	ID        string `json:"id"`
	Language  string `json:"language"`
	Cwd       string `json:"cwd"`
	Active    bool   `json:"active"`
	CreatedAt string `json:"createdAt"`
}

func tellContext(x interpreter.Context) toldContext {
	return toldContext{x.ID, string(x.Language), x.Dir, true, x.Created.Format(time.RFC3339)}
}

func (c *call) contexts() error {
	in, _, err := c.interpreter()
	if err != nil {
		return err
	}
	list, err := in.List(c.ctx)
	if err != nil {
		return err
	}
	all := []toldContext{}
	for _, x := range list {
		if !x.Default {
			all = append(all, tellContext(x))
		}
	}
	return c.json(http.StatusOK, map[string]any{"contexts": all})
}

func (c *call) makeContext() error {
	var q struct {
		Cwd      string `json:"cwd"`
		Language string `json:"language"`
	}
	if err := c.body(&q, true); err != nil {
		return err
	}
	if q.Language != "" && q.Language != string(interpreter.Python) {
		return invalid("language: %q is not python", dialect.Printable(q.Language))
	}
	in, rec, err := c.interpreter()
	if err != nil {
		return err
	}
	x, err := in.Create(c.ctx, interpreter.Spec{Language: interpreter.Python, Dir: rec.absolute(q.Cwd)})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, tellContext(x))
}

func (c *call) removeContext() error {
	in, _, err := c.interpreter()
	if err != nil {
		return err
	}
	if err := in.Remove(c.ctx, c.PathValue("cid")); err != nil {
		if errors.Is(err, paddock.NotFound) {
			return refuse(404, paddock.NotFound, "context %s not found", dialect.Printable(c.PathValue("cid")))
		}
		return err
	}
	return c.json(http.StatusOK, map[string]string{"message": "Context deleted successfully"})
}

// interpret handles GET …/execute: a WebSocket that brings a cell and takes its output.
func (c *call) interpret() error {
	if !strings.EqualFold(c.Header.Get("Upgrade"), "websocket") {
		return invalid("this is a WebSocket")
	}
	in, _, err := c.interpreter()
	if err != nil {
		return err
	}
	ws, err := c.upgrade()
	if err != nil {
		return nil // it has answered
	}
	defer ws.CloseNow() //nolint:errcheck // it is closed by then, or lost
	ws.SetReadLimit(dialect.MaxBody)
	var q struct {
		Code      string            `json:"code"`
		ContextID string            `json:"contextId"`
		Envs      map[string]string `json:"envs"`
		Timeout   *float64          `json:"timeout"`
	}
	if err := c.cell(ws, &q); err != nil {
		_ = ws.Close(websocket.StatusPolicyViolation, short(err.Error())) // or the client has gone
		return nil
	}
	limit, err := timeout(q.Timeout)
	if err != nil {
		_ = ws.Close(websocket.StatusPolicyViolation, short(err.Error()))
		return nil
	}
	cell := interpreter.Cell{Code: q.Code, Context: q.ContextID, Env: q.Envs, Timeout: limit}
	if cell.Context == "" {
		cell.Language = interpreter.Python
	}
	late := false
	ctx := ws.CloseRead(c.ctx)
	err = in.Run(ctx, cell, func(e interpreter.Event) error {
		m := map[string]string{"type": string(e.Kind), "text": e.Text}
		switch e.Kind {
		case interpreter.Stdout, interpreter.Stderr:
		case interpreter.Failed:
			if e.Error.Name == interpreter.ErrorTimeout {
				late = true
				return nil
			}
			m = map[string]string{"type": "error", "name": e.Error.Name, "value": e.Error.Value, "traceback": e.Error.Traceback}
		default:
			return nil
		}
		data, err := json.Marshal(m)
		if err != nil {
			return err
		}
		return send(ctx, ws, websocket.MessageText, data)
	})
	switch {
	case late:
		_ = ws.Close(timedOut, "the time limit of the code")
	case err != nil:
		_ = ws.Close(websocket.StatusInternalError, short(err.Error()))
	default:
		_ = ws.Close(websocket.StatusNormalClosure, "")
	}
	return nil
}

// cell reads the one message that a client sends.
func (c *call) cell(ws *websocket.Conn, v any) error {
	_, data, err := ws.Read(c.ctx)
	if err != nil {
		return err
	}
	if err := c.place.Hold(4 * int64(len(data))); err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return invalid("the message is no cell")
	}
	return nil
}
