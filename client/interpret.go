package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// What the server's interpreter takes and tells; docs/server/interpreter.md says what each
// field means.
type (
	// Cell is what the interpreter is given to run.
	Cell = api.Cell
	// NewContext asks for a place where cells keep their state.
	NewContext = api.NewContext
	// Context is such a place.
	Context = api.Context
	// CellEvent is one thing that a cell tells while it runs.
	CellEvent = api.CellEvent
	// CellResult is a value that a cell shows, in one form or several.
	CellResult = api.CellResult
	// CellError is what a cell ended with.
	CellError = api.CellError
)

// maxLine bounds one event.
const maxLine = 64 << 20

// Interpret runs a cell in a sandbox, and tells what happens in order. It answers
// when the cell has ended, with nil also where the cell failed: that is an event. If
// tell answers an error, or ctx ends, the cell is interrupted.
func (d *Driver) Interpret(ctx context.Context, id paddock.ID, c Cell, tell func(CellEvent) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // which ends the answer, where it is not over
	res, err := d.post(ctx, "/v1/sandboxes/"+string(id)+"/interpret", c)
	if err != nil {
		return fmt.Errorf("interpret: %w", err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var e CellEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("interpret: an event that is no JSON: %w", paddock.Internal)
		}
		switch e.Type {
		case "alive":
			continue
		case "fail":
			if e.Fail == nil {
				e.Fail = &api.Error{}
			}
			return fmt.Errorf("interpret: %w", e.Fail.Err())
		}
		if err := tell(e); err != nil {
			return err
		}
		if e.Type == "end" {
			drain(res.Body)
			return nil
		}
	}
	err = lines.Err()
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	if errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("interpret: an event is too long: %w", paddock.Exhausted)
	}
	return fmt.Errorf("interpret: %w", d.lost(ctx, err))
}

// CreateContext makes a context and starts its kernel.
func (d *Driver) CreateContext(ctx context.Context, id paddock.ID, c NewContext) (Context, error) {
	var made Context
	err := d.call(ctx, call{method: "POST", path: contexts(id, "", ""), body: c, answer: &made})
	return made, about("create a context", err)
}

// Contexts lists those of a sandbox, in the order in which they were made.
func (d *Driver) Contexts(ctx context.Context, id paddock.ID) ([]Context, error) {
	var list api.Contexts
	err := d.call(ctx, call{method: "GET", path: contexts(id, "", ""), answer: &list, repeat: true})
	return list.Contexts, about("contexts", err)
}

// RemoveContext ends a context, with a cell that runs in it.
func (d *Driver) RemoveContext(ctx context.Context, id paddock.ID, context string) error {
	return about("remove a context", d.call(ctx, call{method: "DELETE", path: contexts(id, context, "")}))
}

// RestartContext gives a context a new kernel, which has no state.
func (d *Driver) RestartContext(ctx context.Context, id paddock.ID, context string) error {
	return about("restart a context", d.call(ctx, call{method: "POST", path: contexts(id, context, "/restart")}))
}

// InterruptContext stops the cell that runs in a context, if one does.
func (d *Driver) InterruptContext(ctx context.Context, id paddock.ID, context string) error {
	return about("interrupt a context", d.call(ctx, call{method: "POST", path: contexts(id, context, "/interrupt"), repeat: true}))
}

func contexts(id paddock.ID, context, rest string) string {
	path := "/v1/sandboxes/" + string(id) + "/contexts"
	if context != "" {
		path += "/" + url.PathEscape(context)
	}
	return path + rest
}

func about(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
