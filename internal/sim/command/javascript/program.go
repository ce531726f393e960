package javascript

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/command/javascript/quickjs"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// modules lists what a script finds by name alone.
func modules() []string {
	return []string{
		"assert", "assert/strict", "async_hooks", "buffer", "child_process", "console", "crypto", "events", "fs", "fs/promises", "module", "os",
		"path", "path/posix", "path/win32", "perf_hooks", "process", "querystring", "readline", "readline/promises", "stream", "stream/promises",
		"string_decoder", "timers", "timers/promises", "url", "util", "util/types", "vm", "zlib",
	}
}

// A program is a run of JavaScript.
type program struct {
	t     *kernel.Task
	e     *quickjs.Engine
	tools Caller
	lib   *library
	began time.Time
	hooks map[string]quickjs.Value

	wake     chan struct{}
	children map[int]*child
	nextID   int
	hashes   []*digest
	caught   []linux.Signal
	packages map[string]*packageFile
	typed    map[string]bool // modules that are known to be ES modules
}

// An exit ends the program from wherever JavaScript is.
type exit struct{ code int }

func run(t *kernel.Task, tools Caller, lib *library) (code int) {
	in, status, done := parse(t)
	if done {
		return status
	}
	p := &program{
		t: t, tools: tools, lib: lib, began: time.Now(), hooks: map[string]quickjs.Value{}, wake: make(chan struct{}, 1), children: map[int]*child{},
		packages: map[string]*packageFile{}, typed: map[string]bool{},
	}
	e, err := quickjs.New(quickjs.Options{
		Heap: t.K.Limits.ScriptHeap, Take: func(n int64) bool { return t.K.Heap().Add(n) == nil }, Check: p.check,
		Resolve: p.resolveImport, Load: p.loadImport, Rejected: p.rejected,
	})
	if err != nil {
		_ = t.Must(&budget.Exceeded{Name: "heap", Limit: t.K.Heap().Limit()})
		t.Errorf("%v", err)
		return 1
	}
	p.e = e
	defer e.Close()
	defer p.forgetChildren()
	defer t.EndAfter("script_time", t.K.Limits.ScriptTime)() // a function of the engine may take long
	defer func() {
		switch r := recover().(type) {
		case nil:
		case exit:
			code = r.code
		default:
			panic(r)
		}
	}()
	return p.main(in)
}

// forgetChildren gives back what children wrote that nobody took.
func (p *program) forgetChildren() {
	for _, c := range p.children {
		for _, out := range c.out {
			if out != nil {
				out.Free()
			}
		}
	}
}

// stepsPerCheck is about how much the engine does between two checks.
const stepsPerCheck = 5000

// check is called again and again while JavaScript runs.
func (p *program) check() {
	l := &p.t.K.Limits
	if p.e != nil {
		switch own, taken := p.e.OutOfHeap(); {
		case own:
			_ = p.t.Must(&budget.Exceeded{Name: "script_heap", Limit: l.ScriptHeap})
		case taken:
			_ = p.t.Must(&budget.Exceeded{Name: "heap", Limit: p.t.K.Heap().Limit()})
		}
	}
	if time.Since(p.began) > l.ScriptTime {
		_ = p.t.Must(&budget.Exceeded{Name: "script_time", Limit: int64(l.ScriptTime / time.Second)})
	}
	p.t.Step(stepsPerCheck)
}

// main runs what was asked for, and then what that leaves to do.
func (p *program) main(in invocation) int {
	if status, ok := p.boot(in); !ok {
		return status
	}
	for _, name := range in.require {
		p.call("require", name)
	}
	if !in.inline && in.file == "-" {
		if d := p.t.FD(0); d != nil {
			if _, terminal := d.File.(kernel.Terminal); terminal {
				p.t.Errorf("the interactive mode is not supported in this sandbox")
				return 9
			}
		}
		b, err := p.readAll("-", 0, p.t.K.Limits.Source)
		if err != nil {
			p.t.Fail("stdin", err)
			return 1
		}
		in.code, in.inline = string(b), true
	}
	if in.check {
		return p.checkSyntax(in)
	}
	var promise quickjs.Value
	switch {
	case in.inline:
		promise = p.inline(in)
	default:
		promise = p.do(func() (quickjs.Value, error) {
			file, err := p.find(in.file, p.cwd(), "Cannot find module '"+p.absolute(in.file)+"'")
			if err != nil {
				return quickjs.Undefined(), err
			}
			return p.file(file)
		})
	}
	p.loop()
	if state, _ := p.e.Promise(promise); state == 0 {
		p.call("leaveNow")
		_, _ = p.t.Write(2, []byte("Warning: Detected unsettled top-level await\n"))
		return 13
	}
	p.call("leave")
	return 0
}

// boot evaluates the first part of the library.
func (p *program) boot(in invocation) (status int, ok bool) {
	f, err := p.lib.run(p.e, "boot")
	if err != nil {
		return p.broken(err), false
	}
	text, err := json.Marshal(p.info(in))
	if err != nil {
		p.t.Errorf("%v", err)
		return 1, false
	}
	global := p.e.Global()
	defer p.e.Free(global)
	parser := p.e.Get(global, "JSON")
	parse := p.e.Get(parser, "parse")
	info, err := p.e.Call(parse, parser, string(text))
	if err != nil {
		return p.broken(err), false
	}
	p.e.Free(parse)
	p.e.Free(parser)
	hooks, err := p.e.Call(f, quickjs.Undefined(), p.host(), info)
	if err != nil {
		return p.broken(err), false
	}
	for _, name := range []string{
		"tick", "unhandled", "fatal", "rejection", "leave", "load", "wait", "timer", "immediates", "immediate", "poll", "signal",
		"beforeExit", "names", "expose", "show", "script", "require", "leaveNow",
	} {
		p.hooks[name] = p.e.Get(hooks, name)
	}
	return 0, true
}

// broken tells of an error in the library's own start.
func (p *program) broken(err error) int {
	p.check()
	var x *quickjs.Exception
	if errors.As(err, &x) {
		stack := p.e.Get(x.Value, "stack")
		err = fmt.Errorf("%s\n%s", p.e.String(x.Value), p.e.String(stack))
	}
	p.t.Errorf("%v", err)
	return 1
}

func (p *program) info(in invocation) map[string]any {
	t := p.t
	argv := []string{"/usr/bin/" + t.Name()}
	if !in.inline && in.file != "-" {
		argv = append(argv, p.absolute(in.file))
	} else if in.file == "-" && len(in.args) > 0 {
		argv = append(argv, "-")
	}
	env := map[string]string{}
	for _, e := range t.Env {
		name, value, _ := strings.Cut(e, "=")
		env[name] = value
	}
	return map[string]any{
		"builtins": modules(), "name": t.Name(), "version": Version, "engine": "2026-06-04", "pid": t.PID, "ppid": t.PPID,
		"argv": append(argv, in.args...), "env": env, "uid": t.View.UID, "gid": t.View.GID, "tools": p.tools != nil, "heap": t.K.Limits.ScriptHeap,
	}
}

// absolute names a file of the computer from its root.
func (p *program) absolute(name string) string {
	if strings.HasPrefix(name, "/") {
		return path.Clean(name)
	}
	return path.Join(p.cwd(), name)
}

func (p *program) cwd() string {
	dir, err := p.t.View.Getwd()
	if err != nil {
		return "/"
	}
	return dir
}

// inline runs code of the command line or of standard input.
func (p *program) inline(in invocation) quickjs.Value {
	name := "[eval]"
	if in.file == "-" {
		name = "[stdin]"
	}
	code := withoutShebang(in.code)
	if in.module || p.e.IsModule(code) {
		at := p.absolute("[eval1]")
		return p.do(func() (quickjs.Value, error) { return p.e.EvalModule(code, at, meta(at)) })
	}
	p.call("script", name)
	v := p.do(func() (quickjs.Value, error) {
		v, err := p.e.Eval(code, name, quickjs.Script)
		if err != nil && strings.Contains(code, "await") && p.isSyntax(err) {
			return p.e.Eval(code, name, quickjs.Async)
		}
		return v, err
	})
	if in.print {
		if state, _ := p.e.Promise(v); state >= 0 && strings.Contains(code, "await") {
			p.settle(v)
			_, result := p.e.Promise(v)
			v = p.e.Get(result, "value")
		}
		p.call("show", v)
	}
	return v
}

// settle runs what there is to do until a promise stands.
func (p *program) settle(v quickjs.Value) {
	p.drain()
	for {
		if state, _ := p.e.Promise(v); state != 0 || !p.turn() {
			return
		}
	}
}

func (p *program) isSyntax(err error) bool {
	var x *quickjs.Exception
	if !errors.As(err, &x) {
		return false
	}
	name := p.e.Get(x.Value, "name")
	defer p.e.Free(name)
	return p.e.String(name) == "SyntaxError"
}

// do runs a piece of JavaScript; what it throws is nobody's.
func (p *program) do(f func() (quickjs.Value, error)) quickjs.Value {
	v, err := f()
	if err != nil {
		p.check()
		p.fatal(p.thrown(err))
		return quickjs.Undefined()
	}
	return v
}

// thrown gives an error as a value.
func (p *program) thrown(err error) quickjs.Value {
	var x *quickjs.Exception
	if errors.As(err, &x) {
		return x.Value
	}
	return p.e.Error(err)
}

// call calls a hook of the library.
func (p *program) call(hook string, args ...any) quickjs.Value {
	return p.do(func() (quickjs.Value, error) { return p.e.Call(p.hooks[hook], quickjs.Undefined(), args...) })
}

func (p *program) fatal(v quickjs.Value) {
	if _, err := p.e.Call(p.hooks["fatal"], quickjs.Undefined(), v); err != nil {
		p.check()
		panic(exit{7})
	}
}

func (p *program) rejected(promise, reason quickjs.Value, handled bool) {
	_, _ = p.e.Call(p.hooks["rejection"], quickjs.Undefined(), promise, reason, handled) // it only notes
}

// drain runs what is to run before anything else: ticks and promises.
func (p *program) drain() {
	for {
		ran := false
		for p.e.Bool(p.call("tick")) {
			ran = true
		}
		for {
			more, err := p.e.Job()
			if err != nil {
				p.check()
				p.fatal(p.thrown(err))
			}
			if !more {
				break
			}
			ran = true
		}
		if !ran {
			break
		}
	}
	p.call("unhandled")
}

// loop runs until there is nothing to do.
func (p *program) loop() {
	p.drain()
	for p.turn() {
	}
}

// turn is one round. False is that there is nothing to do, and never will be.
func (p *program) turn() bool {
	p.check()
	p.signals()
	for p.e.Bool(p.call("timer")) {
		p.drain()
	}
	polled := p.e.Bool(p.call("poll"))
	if polled {
		p.drain()
	}
	now := p.call("immediates")
	for _, i := range p.e.Values(now) {
		p.call("immediate", i)
		p.e.Free(i)
		p.drain()
	}
	p.e.Free(now)
	wait := p.e.Float(p.call("wait"))
	if wait == -2 {
		p.call("beforeExit")
		p.drain()
		wait = p.e.Float(p.call("wait"))
	}
	if wait == -2 {
		return false
	}
	if wait != 0 && !polled { // there may be more to poll
		p.await(wait)
	}
	return true
}

// await waits for some milliseconds, or for something to happen.
func (p *program) await(ms float64) {
	until := p.began.Add(p.t.K.Limits.ScriptTime + time.Millisecond)
	if ms > 0 {
		if at := time.Now().Add(time.Duration(ms*float64(time.Millisecond)) + 50*time.Microsecond); at.Before(until) {
			until = at
		}
	}
	if err := p.t.Await(p.wake, until); err != nil && err != linux.ETIMEDOUT && err != linux.EINTR {
		p.t.Exit(1) // standard output is gone
	}
}

func (p *program) signals() {
	for sig := p.t.Caught(); sig != 0; sig = p.t.Caught() {
		p.caught = append(p.caught, sig)
	}
	for len(p.caught) > 0 {
		sig := p.caught[0]
		p.caught = p.caught[1:]
		p.call("signal", int(sig))
		p.drain()
	}
}

func (p *program) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// checkSyntax only compiles.
func (p *program) checkSyntax(in invocation) int {
	code, name := in.code, "[stdin]"
	if !in.inline || in.file != "" && in.file != "-" {
		name = p.absolute(in.file)
		b, err := p.readAll(name, 0, p.t.K.Limits.Source)
		if err != nil {
			p.t.Fail(name, err)
			return 1
		}
		code = string(b)
	}
	code = withoutShebang(code)
	if err := p.e.Compile(code, name, in.module || strings.HasSuffix(name, ".mjs") || p.e.IsModule(code)); err != nil {
		p.fatal(p.thrown(err))
		return 1
	}
	return 0
}

// readAll reads a file, or a descriptor of the task, to its end. The bytes are
// not counted: the caller hands them on at once.
func (p *program) readAll(name string, flags int, limit int64) ([]byte, error) {
	var d *kernel.Desc
	if name == "-" {
		if d = p.t.FD(0); d == nil {
			return nil, linux.EBADF
		}
		d.Hold()
	} else {
		opened, err := p.t.Open(name, flags, 0)
		if err != nil {
			return nil, err
		}
		d = opened.Hold()
	}
	defer d.Drop()
	return p.readDesc(d, limit)
}

func (p *program) readDesc(d *kernel.Desc, limit int64) ([]byte, error) {
	size := 4096
	if i, err := d.File.Info(); err == nil {
		switch {
		case i.IsDir():
			return nil, linux.EISDIR
		case i.IsRegular():
			p.t.Bound("input", i.Size, limit)
			size = int(i.Size) + 1
		}
	}
	b := command.Room(p.t, nil, size)
	defer func() { p.t.Shrink(cap(b)) }()
	for {
		p.t.Bound("input", int64(len(b)), limit)
		b = command.Room(p.t, b, 1)
		p.t.Step(1)
		n, err := d.File.Read(p.t, b[len(b):cap(b)])
		b = b[:len(b)+n]
		if n == 0 && err == nil || err == io.EOF {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
