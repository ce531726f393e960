// Package python is Python on a simulated computer: CPython, compiled for WASI,
// on a WebAssembly engine of Go. Its files are the computer's, with the rights
// of the task, but for /usr, where it sees its own library; it has no sockets
// and starts no programs.
//
// The interpreter is not part of this program: [Install] puts it into a
// directory, compiled, and the programs only read that.
package python

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// Commands lists the programs. The directory is one that [Install] filled;
// where it is empty or was not, they say so.
func Commands(dir string) []command.Command {
	in := &interpreter{dir: dir}
	return []command.Command{{Name: "python3", Aliases: []string{"python"}, Run: in.run}}
}

// An interpreter is what all Pythons of a driver share.
type interpreter struct {
	dir string

	mu      sync.Mutex
	runtime wazero.Runtime        // guarded by mu
	module  wazero.CompiledModule // guarded by mu
	own     map[string]*entry     // guarded by mu
}

// load reads the compiled interpreter, the first time.
func (in *interpreter) load() (wazero.Runtime, wazero.CompiledModule, map[string]*entry, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.module != nil {
		return in.runtime, in.module, in.own, nil
	}
	r, m, err := compile(context.Background(), in.dir)
	if err != nil {
		return nil, nil, nil, err
	}
	own, err := entries(in.dir)
	if err != nil {
		return nil, nil, nil, errors.Join(err, r.Close(context.Background()))
	}
	in.runtime, in.module, in.own = r, m, own
	return r, m, own, nil
}

// pageSize is a page of WebAssembly.
const pageSize = 64 << 10

// maxPages is what no interpreter ever gets more of; the limit of each is its
// allocator's.
const maxPages = 4 << 30 / pageSize / 2

// compile reads and compiles the interpreter, with what earlier times left in
// the directory.
func compile(ctx context.Context, dir string) (wazero.Runtime, wazero.CompiledModule, error) {
	code, err := read(dir)
	if err != nil {
		return nil, nil, err
	}
	cache, err := wazero.NewCompilationCacheWithDir(path.Join(dir, compiledDir))
	if err != nil {
		return nil, nil, fmt.Errorf("compiled interpreter: %w", err)
	}
	// Without what is for debuggers: the map of a trap's place is read in pieces
	// of eight bytes, and takes a second.
	config := wazero.NewRuntimeConfig().WithCompilationCache(cache).WithCloseOnContextDone(true).WithMemoryLimitPages(maxPages).WithDebugInfoEnabled(false)
	r := wazero.NewRuntimeWithConfig(ctx, config)
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, r); err != nil {
		return nil, nil, errors.Join(err, r.Close(ctx))
	}
	m, err := r.CompileModule(ctx, code)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("compile the interpreter: %w", err), r.Close(ctx))
	}
	return r, m, nil
}

// A process is a Python that runs.
type process struct {
	t      *kernel.Task
	cancel context.CancelFunc
	ended  any // the panic that ends the task
	began  time.Time
	own    map[string]*entry // files of the interpreter's own
	memory *memory
}

func (in *interpreter) run(t *kernel.Task) int {
	if in.dir == "" {
		t.Errorf("not set up: run paddock sim setup")
		return 127
	}
	r, m, own, err := in.load()
	if errors.Is(err, errMissing) {
		t.Errorf("not set up: run paddock sim setup")
		return 127
	}
	if err != nil {
		t.Errorf("not set up: %v: run paddock sim setup", err)
		return 127
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p := &process{t: t, cancel: cancel, began: time.Now(), own: own, memory: &memory{t: t, limit: t.K.Limits.PythonHeap}}
	ctx = experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(p.memory.allocate))
	watched := p.watch(ctx)
	module, err := r.InstantiateModule(ctx, m, p.config())
	if module != nil {
		_ = module.Close(ctx) // it has ended
	}
	cancel()
	<-watched
	p.memory.Free()
	if p.ended != nil {
		panic(p.ended)
	}
	t.Check()
	return p.status(err)
}

// status says how the interpreter ended.
func (p *process) status(err error) int {
	var exit *sys.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit.ExitCode())
	case p.memory.refused:
		_ = p.t.Must(&budget.Exceeded{Name: "python_heap", Limit: p.t.K.Limits.PythonHeap})
	}
	// The trap of a stack that is used up, above all.
	words, _, _ := strings.Cut(err.Error(), "\n")
	p.t.Errorf("fatal error: %s", words)
	return 134
}

// watch ends the interpreter when the task is to end, or its time is over. The
// channel is closed when it no longer does.
func (p *process) watch(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if time.Since(p.began) > p.t.K.Limits.ScriptTime {
				p.t.Run.Stop(&budget.Exceeded{Name: "script_time", Limit: int64(p.t.K.Limits.ScriptTime / time.Second)})
			}
			if p.t.Due() {
				p.cancel()
				return
			}
		}
	}()
	return done
}

// guard runs what the interpreter asks of the task. A panic that ends the task
// must not cross the engine, which would take it for its own: it is kept, and
// the interpreter ended.
func (p *process) guard(f func()) (ok bool) {
	if p.ended != nil {
		return false
	}
	defer func() {
		if r := recover(); r != nil {
			p.ended = r
			p.cancel()
			ok = false
		}
	}()
	p.t.Step(16)
	f()
	return true
}

// place is where the interpreter finds what it runs first, and its library,
// and nobody else anything.
const place = "/.paddock-python"

// first is run by the interpreter before the program: it takes away its own
// traces, moves to the working directory, of which WASI knows nothing, and
// sleeps in a way that the engine understands.
const first = `import os, sys
_whole = os.environ.pop("PADDOCK_LIBRARY", "")
sys.path[:] = ["` + place + `" if _whole and p.endswith("/python312.zip") else p for p in sys.path if p != "` + place + `"]
_dir, _path = os.environ.pop("PADDOCK_DIR", ""), os.environ.pop("PADDOCK_PYTHONPATH", None)
if _path is None:
    os.environ.pop("PYTHONPATH", None)
else:
    os.environ["PYTHONPATH"] = _path
try:
    os.chdir(_dir)
    os.environ["PWD"] = _dir
except OSError:
    pass
sys.dont_write_bytecode = True
sys.executable = "/usr/bin/python3"
del _dir, _path, _whole
import time
def sleep(seconds, /):
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    import select
    select.select([], [], [], seconds)
time.sleep = sleep
del sleep
`

func (p *process) config() wazero.ModuleConfig {
	t := p.t
	c := wazero.NewModuleConfig().WithName("").WithArgs(p.args()...).
		WithStdin(stream{p, 0}).WithStdout(stream{p, 1}).WithStderr(stream{p, 2}).
		WithRandSource(rand.Reader).WithNanosleep(p.sleep).WithOsyield(func() { p.guard(func() { t.Step(256) }) }).
		WithWalltime(func() (int64, int32) {
			now := t.K.Now()
			return now.Unix(), int32(now.Nanosecond())
		}, sys.ClockResolution(time.Microsecond)).
		WithNanotime(func() int64 { return int64(time.Since(p.began)) }, sys.ClockResolution(1))
	config, ok := wazero.NewFSConfig().(sysfs.FSConfig)
	if !ok {
		panic("the engine takes no file systems")
	}
	c = c.WithFSConfig(config.WithSysFSMount(&files{p: p}, "/"))
	dir, err := t.View.Getwd()
	if err != nil {
		dir = "/"
	}
	own := ""
	for _, e := range t.Env {
		name, value, _ := strings.Cut(e, "=")
		switch {
		case name == "PYTHONPATH":
			own = value
		case name != "" && !strings.Contains(e, "\x00"):
			c = c.WithEnv(name, value)
		}
	}
	search := place
	if own != "" {
		search += ":" + own
		c = c.WithEnv("PADDOCK_PYTHONPATH", own)
	}
	if p.own[place+"/encodings"] != nil {
		c = c.WithEnv("PADDOCK_LIBRARY", "1")
	}
	return c.WithEnv("PYTHONPATH", search).WithEnv("PADDOCK_DIR", dir)
}

// args gives the arguments, with the program's file by its whole name: it is
// opened before the interpreter knows where it is.
func (p *process) args() []string {
	args := slices.Clone(p.t.Args)
	for i := 1; i < len(args); i++ {
		a := args[i]
		if a == "-c" || a == "-m" || a == "-" {
			break
		}
		if strings.HasPrefix(a, "-") {
			if strings.HasPrefix(a, "-c") || strings.HasPrefix(a, "-m") {
				break
			}
			if a == "-W" || a == "-X" || a == "--check-hash-based-pycs" {
				i++
			}
			// The last of several letters may be a command.
			if len(a) > 2 && a[1] != '-' && (strings.HasSuffix(a, "c") || strings.HasSuffix(a, "m")) {
				break
			}
			continue
		}
		if !strings.HasPrefix(a, "/") {
			if dir, err := p.t.View.Getwd(); err == nil {
				args[i] = path.Join(dir, a)
			}
		}
		break
	}
	return args
}

func (p *process) sleep(ns int64) {
	p.guard(func() { _ = p.t.Sleep(time.Duration(ns)) }) // a caught signal only wakes it
}

// A stream is a standard stream.
type stream struct {
	p  *process
	fd int
}

func (s stream) Read(b []byte) (n int, err error) {
	if !s.p.guard(func() { n, err = s.p.t.Read(s.fd, b) }) {
		return 0, context.Canceled
	}
	return n, err
}

func (s stream) Write(b []byte) (n int, err error) {
	if !s.p.guard(func() { n, err = s.p.t.Write(s.fd, b) }) {
		return 0, context.Canceled
	}
	return n, err
}
