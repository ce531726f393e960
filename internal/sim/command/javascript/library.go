package javascript

import (
	"embed"
	"sync"

	"github.com/paddock-sandbox/paddock/internal/sim/command/javascript/quickjs"
)

//go:embed lib/*.js
var sources embed.FS

// A library is the part of node that is written in JavaScript. It is compiled
// once, and shared by all engines.
type library struct {
	mu       sync.Mutex
	compiled map[string][]byte // guarded by mu
}

// run evaluates a source of the library.
func (l *library) run(e *quickjs.Engine, name string) (quickjs.Value, error) {
	l.mu.Lock()
	code, ok := l.compiled[name]
	l.mu.Unlock()
	if ok {
		return e.Run(code)
	}
	source, err := sources.ReadFile("lib/" + name + ".js")
	if err != nil {
		return quickjs.Undefined(), &quickjs.Thrown{Message: "No such built-in module: " + name, Code: "ERR_UNKNOWN_BUILTIN_MODULE"}
	}
	if code, err = e.Bytecode(string(source), "lib:"+name); err != nil {
		return quickjs.Undefined(), err
	}
	l.mu.Lock()
	l.compiled[name] = code
	l.mu.Unlock()
	return e.Run(code)
}
