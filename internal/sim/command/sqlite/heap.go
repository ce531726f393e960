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
// its sandbox. A connection that is refused memory says "out of memory"; the others know nothing of it. Each block
// says who has paid for it, and whoever frees it gives back to that one. Caches of pages are made apart, because the
// engine, as it is built, takes pages of one connection for another: see cache.go.

// A heap counts the memory of a sandbox.
type heap interface {
	Add(n int64) error
	Owe(n int64)
}

// An account is what a connection has of memory. It ends with its last block.
type account struct {
	number uint64
	heap   heap // of the sandbox
	limit  int64
	used   atomic.Int64
	closed atomic.Bool // so is its connection
}

// take counts n bytes more, or not.
func (a *account) take(n int64) bool {
	if a.used.Add(n) > a.limit || a.heap.Add(n) != nil {
		a.used.Add(-n)
		return false
	}
	return true
}

// owe counts n bytes that are there already, or no longer.
func (a *account) owe(n int64) {
	a.used.Add(n)
	a.heap.Owe(n)
}

// An allocator is the engine's. Connections are told apart by their threads, as the engine calls them.
type allocator struct {
	counts   bool     // the engine has it
	accounts sync.Map // *libc.TLS to *account

	mu     sync.RWMutex
	last   uint64              // guarded by mu
	owners map[uint64]*account // guarded by mu: by number

	methods engine.Tsqlite3_mem_methods
	pages   engine.Tsqlite3_pcache_methods2
	apart   func() error
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
	a := &allocator{owners: map[uint64]*account{}}
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
	a.counts = configure(engine.SQLITE_CONFIG_MALLOC, &a.methods) && configure(engine.SQLITE_CONFIG_GETPCACHE2, &a.pages)
	a.apart = sync.OnceValue(a.part)
	return a
})

// configure sets or asks what holds for the engines of this process.
func configure(what int32, value any) bool {
	tls := libc.NewTLS()
	defer tls.Close()
	args := libc.NewVaList(reflect.ValueOf(value).Pointer())
	if args == 0 {
		return false
	}
	defer libc.Xfree(tls, args)
	defer runtime.KeepAlive(value)
	return engine.Xsqlite3_config(tls, what, args) == engine.SQLITE_OK
}

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

// head is what stands before each block: the number of who has paid for it, or 0. As large, blocks stay aligned.
const head = 8

// open makes an account.
func (a *allocator) open(h heap, limit int64) *account {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last++
	x := &account{number: a.last, heap: h, limit: limit}
	a.owners[x.number] = x
	return x
}

// owner gives who has paid for a block, or nil; mine is asked first.
func (a *allocator) owner(mine *account, block uintptr) *account {
	number := libc.AtomicLoadPUint64(block)
	switch {
	case number == 0:
		return nil
	case mine != nil && mine.number == number:
		return mine
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.owners[number]
}

// give counts n bytes of an account that are there no longer.
func (a *allocator) give(x *account, n int64) {
	left := x.used.Add(-n)
	_ = x.heap.Add(-n) // giving back does not fail
	if left == 0 {
		a.forget(x)
	}
}

// forget ends an account whose connection is closed and that has nothing left.
func (a *allocator) forget(x *account) {
	if x.closed.Load() && x.used.Load() == 0 {
		a.mu.Lock()
		delete(a.owners, x.number)
		a.mu.Unlock()
	}
}

// room is what a block takes, with its head.
func room(block uintptr) int64 { return int64(libc.UsableSize(block)) }

func usable(_ *libc.TLS, p uintptr) int32 {
	if p == 0 {
		return 0
	}
	return int32(min(room(p-head)-head, 1<<31-1))
}

func (a *allocator) malloc(tls *libc.TLS, n int32) uintptr {
	x, size, number := a.of(tls), int64(n)+head, uint64(0)
	if x != nil && !x.take(size) {
		return 0
	}
	block := libc.Xmalloc(tls, uint64(size))
	if block == 0 {
		if x != nil {
			a.give(x, size)
		}
		return 0
	}
	if x != nil {
		if !x.take(room(block) - size) {
			libc.Xfree(tls, block)
			a.give(x, size)
			return 0
		}
		number = x.number
	}
	libc.AtomicStorePUint64(block, number)
	return block + head
}

func (a *allocator) free(tls *libc.TLS, p uintptr) {
	if p == 0 {
		return
	}
	block := p - head
	x, n := a.owner(a.of(tls), block), room(block)
	libc.Xfree(tls, block)
	if x != nil {
		a.give(x, n)
	}
}

// realloc does not copy by itself, where the size stays within what there is. What nobody has paid for is from now on
// the connection's that makes it larger.
func (a *allocator) realloc(tls *libc.TLS, p uintptr, n int32) uintptr {
	block, mine := p-head, a.of(tls)
	x, paid := a.owner(mine, block), room(block)
	if x == nil {
		x, paid = mine, 0
	}
	size := int64(n) + head
	grown := max(0, size-paid)
	if x != nil && !x.take(grown) {
		return 0
	}
	next := libc.Xrealloc(tls, block, uint64(size))
	if next == 0 {
		if x != nil {
			a.give(x, grown)
		}
		return 0
	}
	if x != nil {
		// What it is rounded up to is there now, whether it may be or not.
		x.owe(room(next) - paid - grown)
		libc.AtomicStorePUint64(next, x.number)
	}
	return next + head
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
	if err := a.apart(); err != nil {
		return err
	}
	c.t.Grow(perEngine)
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
		x := a.open(c.t.K.Heap(), c.t.K.Limits.SQLHeap)
		a.accounts.Store(tls, x)
		c.stop = func() {
			a.accounts.Delete(tls)
			x.closed.Store(true)
			a.forget(x)
		}
		return nil
	})
}
