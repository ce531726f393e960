package sqlite

import (
	"errors"

	"modernc.org/libc"
	engine "modernc.org/sqlite/lib"
)

// The engine calls progress after every so many instructions of its machine,
// which count as so many steps.
const (
	instructions = 2000
	steps        = instructions / 8
)

// A handler is what the engine calls.
type handler func(tls *libc.TLS, _ uintptr) int32

// watch has the engine come to a checkpoint of the task again and again while it
// runs, in whatever call: the driver looks at a context only until the first row
// of a query. The connection keeps the handler as long as the console does.
func (c *console) watch() error {
	return c.handle(func(tls *libc.TLS, db uintptr) error {
		f := handler(func(*libc.TLS, uintptr) int32 {
			if c.progress() {
				return 0
			}
			return 1
		})
		c.handler = &f
		engine.Xsqlite3_progress_handler(tls, db, instructions, address(c.handler), 0)
		return nil
	})
}

var errHandle = errors.New("the engine cannot be watched")

// progress is a checkpoint, and reports whether the engine goes on. A panic that
// ends the task must not cross the engine, which holds locks: it is kept.
func (c *console) progress() (on bool) {
	if c.ended != nil {
		return false
	}
	defer func() {
		if r := recover(); r != nil {
			c.ended, on = r, false
		}
	}()
	c.t.Step(steps)
	return c.ctx.Err() == nil
}

// settle ends the task if a checkpoint in the engine was to end it.
func (c *console) settle() {
	if c.ended != nil {
		panic(c.ended)
	}
}
