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

// Types of the server's interpreter. docs/server/interpreter.md describes their fields.
type (
	// Cell is code for the interpreter to run.
	Cell = api.Cell
	// NewContext describes a context to make.
	NewContext = api.NewContext
	// Context keeps the state of the cells that run in it.
	Context = api.Context
	// CellEvent is an event of a running cell.
	CellEvent = api.CellEvent
	// CellResult is a value that a cell displays, in one or several formats.
	CellResult = api.CellResult
	// CellError is the error that ended a cell.
	CellError = api.CellError
)

// maxLine bounds the size of one event.
const maxLine = 64 << 20

// Interpret runs a cell in a sandbox and calls tell for each event, in order. It returns
// when the cell has ended. It returns nil even if the cell failed, because the failure is
// an event. If tell returns an error, or ctx ends, the cell is interrupted.
func (d *Driver) Interpret(ctx context.Context, id paddock.ID, c Cell, tell func(CellEvent) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the answer if it is still open
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
			return fmt.Errorf("interpret: an event is not valid JSON: %w", paddock.Internal)
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

// Contexts lists the contexts of a sandbox, in the order of creation.
func (d *Driver) Contexts(ctx context.Context, id paddock.ID) ([]Context, error) {
	var list api.Contexts
	err := d.call(ctx, call{method: "GET", path: contexts(id, "", ""), answer: &list, repeat: true})
	return list.Contexts, about("contexts", err)
}

// RemoveContext removes a context and ends a cell that runs in it.
func (d *Driver) RemoveContext(ctx context.Context, id paddock.ID, context string) error {
	return about("remove a context", d.call(ctx, call{method: "DELETE", path: contexts(id, context, "")}))
}

// RestartContext gives a context a new kernel without state.
func (d *Driver) RestartContext(ctx context.Context, id paddock.ID, context string) error {
	return about("restart a context", d.call(ctx, call{method: "POST", path: contexts(id, context, "/restart")}))
}

// InterruptContext interrupts the running cell of a context, if there is one.
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
