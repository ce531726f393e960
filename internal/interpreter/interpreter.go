// Package interpreter runs cells of code in contexts that keep their state, as a notebook does, in any sandbox that has
// the language: Python, JavaScript, TypeScript, bash, R and Java. Each context is one process in the sandbox, a kernel.
// This package holds the kernel's program, which needs only the language's standard library.
//
// # The boundary
//
// A kernel runs in the sandbox and is hostile, like everything there. It has one input and two output streams. The
// output is the user's. Between the user's bytes stand messages, each after a random mark made for this kernel
// (frame.go). User code that learns the mark can forge messages: it then lies about itself, to the caller who sent it.
// It must not harm the host. So the host caps, checks and strictly decodes every message, and uses no part of it as a
// path, a command or a format. It kills a kernel that breaks the format. A caller that does not read slows the kernel
// down and never fills memory. A cell that does not end is interrupted, then killed.
package interpreter

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of what callers and kernels may make the host hold.
const (
	maxContexts = 64
	maxCode     = 8 << 20
	maxWaiting  = 64       // cells that wait for one context
	maxHeld     = 64 << 20 // bytes of cells that wait or run, and of their requests to kernels, in all contexts
	maxRoom     = 64 << 20 // bytes of results that are not whole, or not taken, in all contexts
	startTime   = time.Minute
	defaultStop = 5 * time.Second
)

// Options configure an Interpreter.
type Options struct {
	// Sandbox is where kernels run. It is required and stays the caller's.
	Sandbox paddock.Sandbox

	// Env returns variables for each kernel, in addition to the sandbox's own. It is called at each start and may be
	// nil.
	Env func() map[string]string

	// Dir is the working directory of contexts that name none. The default is the sandbox's.
	Dir string

	// User is the user that kernels run as. The default is the sandbox's user.
	User string

	// Stop is the time between the interrupt of a cell and the kill of its kernel. The default is 5 seconds.
	Stop time.Duration

	// Room counts the results of this sandbox together with those of others. It may be nil.
	Room *Room

	// Log receives errors that no caller sees. It may be nil.
	Log *slog.Logger
}

// A Context is a language with its state.
type Context struct {
	ID       string    `json:"id"`
	Language Language  `json:"language"`
	Dir      string    `json:"dir"`     // where its kernel starts
	Default  bool      `json:"default"` // whether cells of its language that name no context run here
	Created  time.Time `json:"created"`
}

// A Spec describes a context to create.
type Spec struct {
	Language Language          `json:"language,omitempty"` // empty is Python
	Dir      string            `json:"dir,omitempty"`      // absolute; empty is Options.Dir
	Env      map[string]string `json:"env,omitempty"`      // of its kernel, over Options.Env
}

// A Cell is code to run.
type Cell struct {
	Code string `json:"code"`

	// Context is the context that it runs in. If empty, it runs in the default context of Language, which is created at
	// its first use. Both together are Invalid.
	Context  string   `json:"context,omitempty"`
	Language Language `json:"language,omitempty"`

	// Env holds variables for this cell alone. They are restored afterwards.
	Env map[string]string `json:"env,omitempty"`

	// Timeout interrupts the cell after this time, and kills its kernel if it does not stop. Zero is no limit.
	Timeout time.Duration `json:"timeout,omitempty"`
}

// variableCost is the memory that a variable takes beside its text, about: a place in a map and two strings.
const variableCost = 128

// size gives the memory that a cell's code and variables take, about.
func (c *Cell) size() int { return len(c.Code) + variableSize(c.Env) }

func variableSize(env map[string]string) int {
	n := 0
	for name, value := range env {
		n += len(name) + len(value) + variableCost
	}
	return n
}

// An Interpreter holds the contexts of one sandbox. It is safe for concurrent use.
type Interpreter struct {
	o   Options
	log *slog.Logger

	room  *budget // of messages in more than one piece, until they are taken
	cells *budget // of cells, until they have ended, and of variables of contexts

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	finding chan struct{} // held by who looks for kernels of an earlier process

	mu       sync.Mutex
	found    bool // guarded by mu; kernels of an earlier process were looked for
	closed   bool // guarded by mu
	contexts map[string]*session
	order    []string // guarded by mu; of contexts, as they were made
}

// New makes an Interpreter. It starts no process: a kernel starts with its first cell, and the first call attaches to the
// kernels of an earlier process.
func New(o Options) (*Interpreter, error) {
	switch {
	case o.Sandbox == nil:
		return nil, fmt.Errorf("interpreter: Options.Sandbox is missing: %w", paddock.Invalid)
	case o.Dir != "" && !path.IsAbs(o.Dir):
		return nil, fmt.Errorf("interpreter: directory %q is not absolute: %w", o.Dir, paddock.Invalid)
	}
	if o.Stop <= 0 {
		o.Stop = defaultStop
	}
	i := &Interpreter{o: o, log: o.Log, room: &budget{most: maxRoom, above: o.Room.budget()}, cells: &budget{most: maxHeld}, contexts: map[string]*session{}, finding: make(chan struct{}, 1)}
	if i.log == nil {
		i.log = slog.New(slog.DiscardHandler)
	}
	i.ctx, i.cancel = context.WithCancel(context.Background())
	return i, nil
}

// Close ends the calls of callers and detaches from the kernels, which keep running: the next Interpreter of the
// sandbox finds them. A second call does nothing.
func (i *Interpreter) Close() error {
	i.mu.Lock()
	i.closed = true
	i.mu.Unlock()
	i.cancel()
	for _, s := range i.sessions() {
		s.release()
	}
	i.wg.Wait()
	return nil
}

// Create makes a context and starts its kernel.
func (i *Interpreter) Create(ctx context.Context, spec Spec) (Context, error) {
	if err := i.find(ctx); err != nil {
		return Context{}, err
	}
	s, err := i.add(ctx, spec, false)
	if err != nil {
		return Context{}, err
	}
	if err := s.ready(ctx); err != nil {
		i.drop(s)
		return Context{}, err
	}
	return s.context, nil
}

// List returns all contexts in the order of their creation.
func (i *Interpreter) List(ctx context.Context) ([]Context, error) {
	if err := i.find(ctx); err != nil {
		return nil, err
	}
	list := []Context{}
	for _, s := range i.sessions() {
		list = append(list, s.context)
	}
	return list, nil
}

// Remove ends a context and its kernel. A running cell ends with an error. The context stays if the kernel could not be
// ended.
func (i *Interpreter) Remove(ctx context.Context, id string) error {
	s, err := i.lookup(ctx, id)
	if err != nil {
		return err
	}
	if !s.gone.CompareAndSwap(false, true) {
		return fmt.Errorf("context %s: it is being removed: %w", id, paddock.NotFound)
	}
	if err := s.kill(ctx); err != nil {
		s.gone.Store(false)
		return err
	}
	i.drop(s)
	return nil
}

// Restart gives a context a new kernel, which loses the state. A running cell ends with an error.
func (i *Interpreter) Restart(ctx context.Context, id string) error {
	s, err := i.lookup(ctx, id)
	if err != nil {
		return err
	}
	if err := s.kill(ctx); err != nil {
		return err
	}
	return s.ready(ctx)
}

// Interrupt stops the running cell of a context as Ctrl-C would, also one that an earlier Interpreter started. It does
// nothing if no cell runs. If the cell does not stop within Options.Stop, its kernel is killed. While a kernel starts,
// the error is Conflict.
func (i *Interpreter) Interrupt(ctx context.Context, id string) error {
	s, err := i.lookup(ctx, id)
	if err != nil {
		return err
	}
	return s.interrupt(ctx)
}

// Run runs a cell and passes its events to tell, in order. It returns when the cell has ended, with nil even if the
// cell failed: that is an event. If tell returns an error, or ctx ends, Run interrupts the cell and returns that error.
func (i *Interpreter) Run(ctx context.Context, c Cell, tell func(Event) error) error {
	switch {
	case c.Context != "" && c.Language != "":
		return fmt.Errorf("a cell names a context or a language, not both: %w", paddock.Invalid)
	case len(c.Code) > maxCode:
		return fmt.Errorf("the code has %d bytes, and may have %d: %w", len(c.Code), maxCode, paddock.Invalid)
	case c.Timeout < 0:
		return fmt.Errorf("the timeout is negative: %w", paddock.Invalid)
	}
	if err := checkText(c.Code, c.Env); err != nil {
		return err
	}
	if err := i.find(ctx); err != nil {
		return err
	}
	var s *session
	var err error
	if c.Context != "" {
		s, err = i.lookup(ctx, c.Context)
	} else {
		s, err = i.add(ctx, Spec{Language: c.Language}, true)
	}
	if err != nil {
		return err
	}
	// A kernel that does not read keeps the request in memory, so it counts from the beginning.
	size := c.size() + languages()[s.context.Language].size(c)
	if !i.cells.take(size) {
		return fmt.Errorf("the cells that wait or run in this sandbox, with their requests to kernels, would have more than %d bytes: %w", maxHeld, paddock.Exhausted)
	}
	defer i.cells.give(size)
	r, ok := paddock.As[Recorder](i.o.Sandbox)
	if !ok {
		return s.run(ctx, c, tell)
	}
	return r.RecordCell(ctx, s.context.ID, string(s.context.Language), c.Code, func() (failed bool, err error) {
		err = s.run(ctx, c, func(e Event) error {
			failed = failed || e.Kind == Failed
			return tell(e)
		})
		return failed, err
	})
}

// A Recorder is a sandbox that keeps an audit log of its use. RecordCell runs a cell and records its context, language
// and code, and how it ended. A cell that cannot be recorded is not run.
type Recorder interface {
	RecordCell(ctx context.Context, id, language, code string, run func() (failed bool, err error)) error
}

// Default returns the default context of a language, and creates it if it is missing. Its kernel starts with its first
// cell.
func (i *Interpreter) Default(ctx context.Context, l Language) (Context, error) {
	if err := i.find(ctx); err != nil {
		return Context{}, err
	}
	s, err := i.add(ctx, Spec{Language: l}, true)
	if err != nil {
		return Context{}, err
	}
	return s.context, nil
}

// add makes a session, or finds the default one.
func (i *Interpreter) add(ctx context.Context, spec Spec, byDefault bool) (*session, error) {
	l, err := ParseLanguage(string(spec.Language))
	if err != nil {
		return nil, err
	}
	if spec.Dir != "" && !path.IsAbs(spec.Dir) {
		return nil, fmt.Errorf("directory %q is not absolute: %w", spec.Dir, paddock.Invalid)
	}
	if err := checkText(spec.Dir, spec.Env); err != nil {
		return nil, err
	}
	dir := spec.Dir
	if dir == "" {
		if dir, err = i.dir(ctx); err != nil {
			return nil, err
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if byDefault {
		for _, s := range i.contexts {
			if s.context.Default && s.context.Language == l {
				return s, nil
			}
		}
	}
	switch {
	case i.closed:
		return nil, fmt.Errorf("the interpreter is closed: %w", paddock.Unavailable)
	case len(i.contexts) >= maxContexts:
		return nil, fmt.Errorf("there are %d contexts already: %w", maxContexts, paddock.Exhausted)
	}
	size := variableSize(spec.Env)
	if !i.cells.take(size) {
		return nil, fmt.Errorf("the variables of contexts and the cells in this sandbox would have more than %d bytes: %w", maxHeld, paddock.Exhausted)
	}
	s := i.session(Context{ID: random(), Language: l, Dir: dir, Default: byDefault, Created: time.Now().UTC()}, maps.Clone(spec.Env))
	i.keep(s)
	return s, nil
}

// dir gives the directory of contexts that name none.
func (i *Interpreter) dir(ctx context.Context) (string, error) {
	if i.o.Dir != "" {
		return i.o.Dir, nil
	}
	st, err := i.o.Sandbox.Status(ctx)
	if err != nil {
		return "", err
	}
	return st.Dir, nil
}

// keep needs mu.
func (i *Interpreter) keep(s *session) {
	i.contexts[s.context.ID] = s
	i.order = append(i.order, s.context.ID)
}

func (i *Interpreter) drop(s *session) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.contexts[s.context.ID] == s {
		i.cells.give(variableSize(s.env))
	}
	delete(i.contexts, s.context.ID)
	i.order = slices.DeleteFunc(i.order, func(id string) bool { return id == s.context.ID })
	s.gone.Store(true)
}

func (i *Interpreter) sessions() []*session {
	i.mu.Lock()
	defer i.mu.Unlock()
	list := make([]*session, 0, len(i.order))
	for _, id := range i.order {
		list = append(list, i.contexts[id])
	}
	return list
}

func (i *Interpreter) lookup(ctx context.Context, id string) (*session, error) {
	if err := i.find(ctx); err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if s := i.contexts[id]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("context %q: %w", id, paddock.NotFound)
}

// find looks once for kernels that an earlier process started in the sandbox.
func (i *Interpreter) find(ctx context.Context) error {
	select {
	case i.finding <- struct{}{}:
		defer func() { <-i.finding }()
	case <-ctx.Done():
		return fmt.Errorf("find the contexts: %w", errors.Join(paddock.Canceled, ctx.Err()))
	}
	i.mu.Lock()
	found, closed := i.found, i.closed
	i.mu.Unlock()
	switch {
	case closed:
		return fmt.Errorf("the interpreter is closed: %w", paddock.Unavailable)
	case found:
		return nil
	}
	all, err := i.o.Sandbox.Processes(ctx)
	if err != nil {
		return fmt.Errorf("find the contexts: %w", err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.found = true
	for _, p := range all {
		tag, ok := parseTag(p.Args)
		if !ok || p.Exit != nil || len(i.contexts) >= maxContexts || i.contexts[tag.id] != nil {
			continue
		}
		s := i.session(Context{ID: tag.id, Language: tag.language, Dir: p.Dir, Default: tag.byDefault, Created: p.Started.UTC()}, nil)
		s.left = &leftover{pid: p.PID, mark: tag.mark, from: p.Next}
		i.keep(s)
	}
	return nil
}

// random gives 16 bytes of chance in hexadecimal digits.
func random() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
