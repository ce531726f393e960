package script

import (
	"embed"
	"sync"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/script/engine"
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
func (l *library) run(e *engine.Engine, name string) (engine.Value, error) {
	l.mu.Lock()
	code, ok := l.compiled[name]
	l.mu.Unlock()
	if ok {
		return e.Run(code)
	}
	source, err := sources.ReadFile("lib/" + name + ".js")
	if err != nil {
		return engine.Undefined(), &engine.Thrown{Message: "No such built-in module: " + name, Code: "ERR_UNKNOWN_BUILTIN_MODULE"}
	}
	if code, err = e.Bytecode(string(source), "lib:"+name); err != nil {
		return engine.Undefined(), err
	}
	l.mu.Lock()
	l.compiled[name] = code
	l.mu.Unlock()
	return e.Run(code)
}
