package sqlite

import (
	"errors"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"

	"modernc.org/libc"
	engine "modernc.org/sqlite/lib"
)

// All engines of a process share one allocator, and the engine's own limit is one for all of them: a sandbox could take
// it from the others. So the allocator is one that counts for each connection by itself, as its limit and as memory of
// its sandbox. A connection that is refused memory says "out of memory"; the others know nothing of it.

// An account is what a connection has of memory.
type account struct {
	heap  interface{ Add(n int64) error } // of the sandbox
	limit int64
	used  atomic.Int64
}

// take counts n bytes more, or not.
func (a *account) take(n int64) bool {
	if a.used.Add(n) > a.limit || a.heap.Add(n) != nil {
		a.used.Add(-n)
		return false
	}
	return true
}

func (a *account) give(n int64) {
	a.used.Add(-n)
	_ = a.heap.Add(-n)
}

// An allocator is the engine's. Connections are told apart by their threads, as the engine calls them.
type allocator struct {
	counts   bool     // the engine has it
	accounts sync.Map // *libc.TLS to *account

	methods engine.Tsqlite3_mem_methods
	calls   *calls
}

// calls are the functions that the engine calls, by their addresses.
type calls struct {
	malloc   func(tls *libc.TLS, n int32) uintptr
	free     func(tls *libc.TLS, p uintptr)
	realloc  func(tls *libc.TLS, p uintptr, n int32) uintptr
	size     func(tls *libc.TLS, p uintptr) int32
	roundup  func(tls *libc.TLS, n int32) int32
	init     func(tls *libc.TLS, data uintptr) int32
	shutdown func(tls *libc.TLS, data uintptr)
}

// installed gives the engine its allocator, once. The engine takes it only before it is first used in the process.
var installed = sync.OnceValue(func() *allocator {
	a := &allocator{}
	a.calls = &calls{
		malloc: a.malloc, free: a.free, realloc: a.realloc, size: usable,
		roundup:  func(_ *libc.TLS, n int32) int32 { return (n + 7) &^ 7 },
		init:     func(*libc.TLS, uintptr) int32 { return engine.SQLITE_OK },
		shutdown: func(*libc.TLS, uintptr) {},
	}
	a.methods = engine.Tsqlite3_mem_methods{
		FxMalloc: address(&a.calls.malloc), FxFree: address(&a.calls.free), FxRealloc: address(&a.calls.realloc), FxSize: address(&a.calls.size),
		FxRoundup: address(&a.calls.roundup), FxInit: address(&a.calls.init), FxShutdown: address(&a.calls.shutdown),
	}
	tls := libc.NewTLS()
	defer tls.Close()
	args := libc.NewVaList(reflect.ValueOf(&a.methods).Pointer())
	if args == 0 {
		return a
	}
	defer libc.Xfree(tls, args)
	a.counts = engine.Xsqlite3_config(tls, engine.SQLITE_CONFIG_MALLOC, args) == engine.SQLITE_OK
	runtime.KeepAlive(a)
	return a
})

// address gives what a function is to C code: the value of a variable that holds it.
func address(f any) uintptr {
	return uintptr(reflect.NewAt(reflect.TypeFor[uintptr](), reflect.ValueOf(f).UnsafePointer()).Elem().Uint())
}

// of gives the account of a connection, or nil of what is none of ours.
func (a *allocator) of(tls *libc.TLS) *account {
	if x, ok := a.accounts.Load(tls); ok {
		if y, ok := x.(*account); ok {
			return y
		}
	}
	return nil
}

func usable(_ *libc.TLS, p uintptr) int32 {
	if p == 0 {
		return 0
	}
	return int32(min(libc.UsableSize(p), 1<<31-1))
}

func (a *allocator) malloc(tls *libc.TLS, n int32) uintptr {
	x := a.of(tls)
	if x != nil && !x.take(int64(n)) {
		return 0
	}
	p := libc.Xmalloc(tls, uint64(n))
	if x == nil {
		return p
	}
	if p == 0 {
		x.give(int64(n))
		return 0
	}
	if more := int64(usable(tls, p)) - int64(n); !x.take(more) {
		x.give(int64(n))
		libc.Xfree(tls, p)
		return 0
	}
	return p
}

func (a *allocator) free(tls *libc.TLS, p uintptr) {
	x, n := a.of(tls), int64(usable(tls, p))
	libc.Xfree(tls, p)
	if x != nil {
		x.give(n)
	}
}

// realloc does not copy by itself, where the size stays within what there is.
func (a *allocator) realloc(tls *libc.TLS, p uintptr, n int32) uintptr {
	x, had := a.of(tls), int64(usable(tls, p))
	grown := max(0, int64(n)-had)
	if x != nil && !x.take(grown) {
		return 0
	}
	q := libc.Xrealloc(tls, p, uint64(n))
	if x == nil {
		return q
	}
	if q == 0 {
		x.give(grown)
		return 0
	}
	// What it is rounded up to is there now, whether it may be or not.
	more := int64(usable(tls, q)) - had - grown
	x.used.Add(more)
	if x.heap.Add(more) != nil {
		x.used.Add(-more)
	}
	return q
}

// errUncounted is that the engine ran before it could be given its allocator.
var errUncounted = errors.New("the program around this sandbox used SQLite before it made a driver, so that the memory of a database cannot be counted; let it make the driver first")

// perEngine is what a connection has before it is counted.
const perEngine = 128 << 10

// count has the connection's memory counted until stop is called, which comes after its end.
func (c *console) count() error {
	a := installed()
	if !a.counts {
		return errUncounted
	}
	c.t.Grow(perEngine)
	x := &account{heap: c.t.K.Heap(), limit: c.t.K.Limits.SQLHeap}
	return c.conn.Raw(func(conn any) error {
		v := reflect.ValueOf(conn)
		if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
			return errHandle
		}
		f := v.Elem().FieldByName("tls") // of which the driver has no method
		if !f.IsValid() || f.Type() != reflect.TypeFor[*libc.TLS]() || f.IsNil() {
			return errHandle
		}
		tls := (*libc.TLS)(f.UnsafePointer())
		a.accounts.Store(tls, x)
		c.stop = func() {
			a.accounts.Delete(tls)
			_ = x.heap.Add(-x.used.Load())
		}
		return nil
	})
}
