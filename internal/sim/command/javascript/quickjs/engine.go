// Package quickjs runs JavaScript: QuickJS, translated to Go, with what a
// simulated computer asks of a language engine. Memory is counted and bounded,
// and gone at once when the engine is closed; a function of the owner is called
// again and again while JavaScript runs, and may end it by a panic; so may
// every Go function that JavaScript calls. Such a panic stops the JavaScript,
// without its catch and finally blocks, and goes on where Go called it.
//
// An Engine belongs to one goroutine. A [Value] is counted by reference: one
// that a method returns is the caller's, who gives it to [Engine.Free] or to a
// method that says it takes it; arguments of a [Func] stay the engine's.
package quickjs

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unicode/utf8"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
	"modernc.org/memory"
)

// A Value is a value of JavaScript.
type Value = lib.TJSValue

// A Func is a function of Go that JavaScript calls. What it answers with is
// made a value as [Engine.Make] does it; an error is thrown.
type Func func(args []Value) (any, error)

// Options bound an engine.
type Options struct {
	Heap int64 // bytes

	// Take asks for n more bytes in the name of somebody larger, or gives
	// them back if n is negative; false is a refusal.
	Take func(n int64) bool

	// Check is called again and again while JavaScript runs. It may panic.
	Check func()

	// Resolve names the module that another one imports, and Load gives its
	// source, and the parts of its import.meta, as [Engine.Make] makes them.
	Resolve func(base, name string) (string, error)
	Load    func(name string) (source string, meta map[string]any, err error)

	// Rejected is told of promises that are rejected while nobody listens,
	// and of those that somebody listens to after all.
	Rejected func(promise, reason Value, handled bool)
}

// An Exception is what JavaScript threw. The value is the holder's.
type Exception struct{ Value Value }

func (e *Exception) Error() string { return "an exception of JavaScript" }

// A Thrown error is thrown by a Func: an Error with these properties.
type Thrown struct {
	Class   string // "TypeError"; empty is Error
	Message string
	Code    string // of property code, if not empty
	Errno   int    // of property errno, if not 0
	Syscall string // the same
	Path    string
	Dest    string
}

func (t *Thrown) Error() string { return t.Message }

// An Engine runs JavaScript.
type Engine struct {
	o       Options
	tls     *libc.TLS
	rt, ctx uintptr
	mem     memory.Allocator
	used    int64 // bytes that are allocated
	taken   int64 // bytes that Take gave
	refused error // why an allocation failed
	scratch [2]space
	length  uintptr // of a size_t, for results
	funcs   []Func
	call    uintptr // of dispatch
	fixed   []any   // functions that C code points to
	ended   any     // the panic that stops it
	depth   int     // calls of JavaScript by Go, within each other
}

// A space is memory for C strings.
type space struct {
	p    uintptr
	size int
}

// The bounds by which memory may be refused.
var (
	errHeap  = errors.New("the engine's heap is used up")
	errTaken = errors.New("the computer's heap is used up")
)

// quantum is how much memory is asked for at once.
const quantum = 256 << 10

// New makes an engine.
func New(o Options) (*Engine, error) {
	e := &Engine{o: o, tls: libc.NewTLS()}
	var err error
	if e.length, err = e.mem.UintptrMalloc(64); err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	functions, err := e.mem.UintptrMalloc(int(unsafe.Sizeof(lib.TJSMallocFunctions{})))
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	*(*lib.TJSMallocFunctions)(at(functions)) = lib.TJSMallocFunctions{
		Fjs_malloc:             e.fix(e.malloc),
		Fjs_free:               e.fix(e.free),
		Fjs_realloc:            e.fix(e.realloc),
		Fjs_malloc_usable_size: e.fix(usable),
	}
	if e.rt = lib.XJS_NewRuntime2(e.tls, functions, 0); e.rt != 0 {
		lib.XJS_SetMaxStackSize(e.tls, e.rt, lib.MaxStackSlots)
		lib.XJS_SetCanBlock(e.tls, e.rt, 0)
		e.ctx = lib.XJS_NewContext(e.tls, e.rt)
	}
	if e.ctx == 0 {
		err := e.refused
		e.Close()
		return nil, fmt.Errorf("make an engine: %w", err)
	}
	lib.XJS_SetInterruptHandler(e.tls, e.rt, e.fix(e.interrupt), 0)
	lib.XJS_SetModuleLoaderFunc(e.tls, e.rt, e.fix(e.normalize), e.fix(e.load), 0)
	if o.Rejected != nil {
		lib.XJS_SetHostPromiseRejectionTracker(e.tls, e.rt, e.fix(e.rejected), 0)
	}
	return e, nil
}

// Close returns all memory back. No value may be used any more.
func (e *Engine) Close() {
	_ = e.mem.Close() // unmapping our own pages
	e.tls.Close()
	e.o.Take(-e.taken)
	e.taken, e.rt, e.ctx = 0, 0, 0
	runtime.KeepAlive(e.fixed)
}

// Used returns the bytes that are allocated.
func (e *Engine) Used() int64 { return e.used }

// OutOfHeap reports whether memory was refused: by the engine's own bound, or
// by whoever is behind Take.
func (e *Engine) OutOfHeap() (own, taken bool) { return e.refused == errHeap, e.refused == errTaken }

// at turns an address of memory that is not Go's into a pointer.
func at(p uintptr) unsafe.Pointer { return unsafe.Add(nil, p) }

// fix gives a Go function's address for C code, which calls it as long as the
// engine lives.
func (e *Engine) fix(f any) uintptr {
	e.fixed = append(e.fixed, f)
	return (*[2]uintptr)(unsafe.Pointer(&f))[1]
}

func (e *Engine) malloc(_ *libc.TLS, _ uintptr, size lib.Size_t) uintptr {
	if !e.room(int64(size)) {
		return 0
	}
	p, err := e.mem.UintptrMalloc(int(size))
	if err != nil {
		e.refused = errTaken
		return 0
	}
	e.used += int64(memory.UintptrUsableSize(p))
	return p
}

func (e *Engine) free(_ *libc.TLS, _, p uintptr) {
	if p != 0 {
		e.used -= int64(memory.UintptrUsableSize(p))
		_ = e.mem.UintptrFree(p)
	}
}

func (e *Engine) realloc(tls *libc.TLS, s, p uintptr, size lib.Size_t) uintptr {
	switch {
	case p == 0 && size == 0:
		return 0
	case p == 0:
		return e.malloc(tls, s, size)
	case size == 0:
		e.free(tls, s, p)
		return 0
	}
	old := int64(memory.UintptrUsableSize(p))
	if int64(size) > old && !e.room(int64(size)-old) {
		return 0
	}
	n, err := e.mem.UintptrRealloc(p, int(size))
	if err != nil {
		e.refused = errTaken
		return 0
	}
	e.used += int64(memory.UintptrUsableSize(n)) - old
	return n
}

func usable(_ *libc.TLS, p uintptr) lib.Size_t {
	if p == 0 {
		return 0
	}
	return lib.Size_t(memory.UintptrUsableSize(p))
}

// room reports whether n more bytes may be allocated.
func (e *Engine) room(n int64) bool {
	if n < 0 || e.used+n > e.o.Heap {
		e.refused = errHeap
		return false
	}
	if more := e.used + n - e.taken; more > 0 {
		more = (more + quantum - 1) / quantum * quantum
		if !e.o.Take(more) {
			e.refused = errTaken
			return false
		}
		e.taken += more
	}
	return true
}

// interrupt is asked by the engine every few thousand steps.
func (e *Engine) interrupt(*libc.TLS, uintptr, uintptr) (stop int32) {
	if e.ended != nil {
		return 1
	}
	defer func() {
		if p := recover(); p != nil {
			e.ended, stop = p, 1
		}
	}()
	e.o.Check()
	return 0
}

// guard runs Go code that JavaScript called. A panic is kept, and an exception
// that cannot be caught is thrown in its place.
// It tells whether the JavaScript goes on.
func (e *Engine) guard(f func()) bool {
	func() {
		defer func() {
			if p := recover(); p != nil && e.ended == nil {
				e.ended = p
			}
		}()
		f()
	}()
	if e.ended == nil {
		return true
	}
	e.throw(&Thrown{Message: "ended"})
	lib.XJS_SetUncatchableException(e.tls, e.ctx, 1)
	return false
}

func exception() Value { return Value{Ftag: lib.EJS_TAG_EXCEPTION} }

// Undefined is the value undefined.
func Undefined() Value { return Value{Ftag: lib.EJS_TAG_UNDEFINED} }

// Function makes a function of Go one of JavaScript.
func (e *Engine) Function(name string, arity int, f Func) Value {
	if e.call == 0 {
		e.call = e.fix(e.dispatch)
	}
	e.funcs = append(e.funcs, f)
	return lib.XJS_NewCFunction2(e.tls, e.ctx, e.call, e.cString(0, name), int32(arity), lib.EJS_CFUNC_generic_magic, int32(len(e.funcs)-1))
}

func (e *Engine) dispatch(_ *libc.TLS, _ uintptr, _ Value, argc int32, argv uintptr, magic int32) (r Value) {
	r = exception()
	ok := e.guard(func() {
		v, err := e.funcs[magic](unsafe.Slice((*Value)(at(argv)), int(argc)))
		if err != nil {
			e.throw(err)
			return
		}
		r = e.Make(v)
	})
	if !ok {
		return exception()
	}
	return r
}

// throw makes an error the pending exception.
func (e *Engine) throw(err error) {
	var x *Exception
	if errors.As(err, &x) {
		lib.XJS_Throw(e.tls, e.ctx, x.Value)
		return
	}
	var t *Thrown
	if !errors.As(err, &t) {
		t = &Thrown{Message: err.Error()}
	}
	v := e.newError(t.Class)
	e.hidden(v, "message", e.Text(t.Message))
	if t.Errno != 0 {
		e.Set(v, "errno", e.Make(-t.Errno))
	}
	for _, p := range []struct{ name, value string }{{"code", t.Code}, {"syscall", t.Syscall}, {"path", t.Path}, {"dest", t.Dest}} {
		if p.value != "" {
			e.Set(v, p.name, e.Text(p.value))
		}
	}
	lib.XJS_Throw(e.tls, e.ctx, v)
}

// newError makes an error of a class, which a script may have replaced.
func (e *Engine) newError(class string) Value {
	if class != "" && e.ended == nil {
		global := lib.XJS_GetGlobalObject(e.tls, e.ctx)
		make := e.Get(global, class)
		e.Free(global)
		v, err := e.Call(make, Undefined())
		e.Free(make)
		if err == nil && lib.XJS_IsError(e.tls, e.ctx, v) != 0 {
			return v
		}
	}
	return lib.XJS_NewError(e.tls, e.ctx)
}

func (e *Engine) hidden(o Value, name string, v Value) {
	lib.XJS_DefinePropertyValueStr(e.tls, e.ctx, o, e.cString(0, name), v, lib.MJS_PROP_WRITABLE|lib.MJS_PROP_CONFIGURABLE)
}

// Set sets a property of an object; it takes v.
func (e *Engine) Set(o Value, name string, v Value) {
	lib.XJS_DefinePropertyValueStr(e.tls, e.ctx, o, e.cString(0, name), v, lib.MJS_PROP_C_W_E)
}

// Get returns a property; a getter that throws is undefined.
func (e *Engine) Get(o Value, name string) Value {
	v := lib.XJS_GetPropertyStr(e.tls, e.ctx, o, e.cString(0, name))
	if v.Ftag == lib.EJS_TAG_EXCEPTION {
		e.Free(lib.XJS_GetException(e.tls, e.ctx))
		return Undefined()
	}
	return v
}

// Global returns the global object.
func (e *Engine) Global() Value { return lib.XJS_GetGlobalObject(e.tls, e.ctx) }

// Dup returns one more reference to a value.
func (e *Engine) Dup(v Value) Value { return lib.XDupValue(e.tls, e.ctx, v) }

// Free releases a reference.
func (e *Engine) Free(v Value) { lib.XFreeValue(e.tls, e.ctx, v) }

// cString puts a string where C code finds it, until the next one of the same
// number.
func (e *Engine) cString(i int, s string) uintptr {
	sp := &e.scratch[i]
	if sp.size < len(s)+1 || sp.size > 1<<20 && len(s) < 1<<16 {
		if sp.p != 0 {
			_ = e.mem.UintptrFree(sp.p)
		}
		sp.size = max(256, len(s)+1)
		var err error
		if sp.p, err = e.mem.UintptrMalloc(sp.size); err != nil {
			panic(fmt.Errorf("memory: %w", err))
		}
	}
	b := unsafe.Slice((*byte)(at(sp.p)), len(s)+1)
	copy(b, s)
	b[len(s)] = 0
	return sp.p
}

// Text makes a string. What is not UTF-8 becomes U+FFFD.
func (e *Engine) Text(s string) Value {
	if !utf8.ValidString(s) {
		s = replaced(s)
	}
	return lib.XJS_NewStringLen(e.tls, e.ctx, e.cString(0, s), lib.Size_t(len(s)))
}

// replaced puts U+FFFD in the place of what is not UTF-8, once for each
// longest beginning of a character, as decoders do.
func replaced(s string) string {
	var b strings.Builder
	b.Grow(len(s) + len(s)/8)
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			b.WriteString("\uFFFD")
			s = s[broken(s):]
			continue
		}
		b.WriteString(s[:n])
		s = s[n:]
	}
	return b.String()
}

// broken tells how long the beginning of a character is that s begins with.
func broken(s string) int {
	c := s[0]
	want, low, high := 0, byte(0x80), byte(0xBF)
	switch {
	case c >= 0xC2 && c <= 0xDF:
		want = 1
	case c >= 0xE0 && c <= 0xEF:
		want = 2
		switch c {
		case 0xE0:
			low = 0xA0
		case 0xED:
			high = 0x9F
		}
	case c >= 0xF0 && c <= 0xF4:
		want = 3
		switch c {
		case 0xF0:
			low = 0x90
		case 0xF4:
			high = 0x8F
		}
	}
	n := 1
	for ; n <= want && n < len(s) && s[n] >= low && s[n] <= high; n++ {
		low, high = 0x80, 0xBF
	}
	return n
}

// Bytes makes an ArrayBuffer.
func (e *Engine) Bytes(b []byte) Value {
	if len(b) == 0 {
		return lib.XJS_NewArrayBufferCopy(e.tls, e.ctx, e.length, 0)
	}
	p := e.cString(0, unsafe.String(&b[0], len(b)))
	return lib.XJS_NewArrayBufferCopy(e.tls, e.ctx, p, lib.Size_t(len(b)))
}

// Make makes a value: nil is undefined; a Value is taken; []byte is an
// ArrayBuffer; numbers, booleans, strings and slices of them are what they are.
func (e *Engine) Make(v any) Value {
	switch v := v.(type) {
	case nil:
		return Undefined()
	case Value:
		return v
	case string:
		return e.Text(v)
	case []byte:
		return e.Bytes(v)
	case bool:
		n := 0
		if v {
			n = 1
		}
		return Value{Fu: lib.TJSValueUnion{Fuint641: uint64(n)}, Ftag: lib.EJS_TAG_BOOL}
	case int:
		return e.number(float64(v))
	case int64:
		return e.number(float64(v))
	case float64:
		return e.number(v)
	case []string:
		return list(e, v)
	case []float64:
		return list(e, v)
	case []Value:
		return list(e, v)
	}
	panic(fmt.Sprintf("a %T for JavaScript", v))
}

func list[T any](e *Engine, items []T) Value {
	a := lib.XJS_NewArray(e.tls, e.ctx)
	if a.Ftag == lib.EJS_TAG_EXCEPTION {
		return a
	}
	for i := range items {
		if lib.XJS_DefinePropertyValueUint32(e.tls, e.ctx, a, uint32(i), e.Make(items[i]), lib.MJS_PROP_C_W_E) < 0 {
			e.Free(a)
			return exception()
		}
	}
	return a
}

func (e *Engine) number(f float64) Value {
	if n := int32(f); float64(n) == f && (n != 0 || 1/f > 0) {
		return Value{Fu: lib.TJSValueUnion{Fuint641: uint64(uint32(n))}, Ftag: lib.EJS_TAG_INT}
	}
	v := Value{Ftag: lib.EJS_TAG_FLOAT64}
	*(*float64)(unsafe.Pointer(&v)) = f
	return v
}
