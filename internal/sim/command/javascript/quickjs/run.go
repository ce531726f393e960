package quickjs

import (
	"slices"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
)

// Mode says what a source is.
type Mode int32

// What a source is.
const (
	Script Mode = lib.MJS_EVAL_TYPE_GLOBAL
	Async  Mode = lib.MJS_EVAL_TYPE_GLOBAL | lib.MJS_EVAL_FLAG_ASYNC // a script with await; its value is a promise of {value}
	Module Mode = lib.MJS_EVAL_TYPE_MODULE                           // its value is a promise
)

// Eval runs a source. The error is an [*Exception].
func (e *Engine) Eval(source, name string, m Mode) (Value, error) {
	return e.run(func() Value {
		return lib.XJS_Eval(e.tls, e.ctx, e.cString(0, source), lib.Size_t(len(source)), e.cString(1, name), int32(m))
	})
}

// EvalModule runs a source as a module of that name, with what [Options] of
// Load gives as import.meta. Its value is a promise.
func (e *Engine) EvalModule(source, name string, meta map[string]any) (Value, error) {
	return e.run(func() Value {
		v := lib.XJS_Eval(e.tls, e.ctx, e.cString(0, source), lib.Size_t(len(source)), e.cString(1, name), int32(Module)|lib.MJS_EVAL_FLAG_COMPILE_ONLY)
		if v.Ftag == lib.EJS_TAG_EXCEPTION {
			return v
		}
		e.describe(v, meta)
		// The modules that it imports are resolved and loaded here.
		if lib.XJS_ResolveModule(e.tls, e.ctx, v) < 0 {
			e.Free(v)
			return exception()
		}
		return lib.XJS_EvalFunction(e.tls, e.ctx, v)
	})
}

// Compile only compiles a source. The error is an [*Exception].
func (e *Engine) Compile(source, name string, module bool) error {
	flags := int32(Script)
	if module {
		flags = int32(Module)
	}
	v, err := e.run(func() Value {
		return lib.XJS_Eval(e.tls, e.ctx, e.cString(0, source), lib.Size_t(len(source)), e.cString(1, name), flags|lib.MJS_EVAL_FLAG_COMPILE_ONLY)
	})
	if err == nil {
		e.Free(v)
	}
	return err
}

// IsModule reports whether a source begins as a module does.
func (e *Engine) IsModule(source string) bool {
	return lib.XJS_DetectModule(e.tls, e.cString(0, source), lib.Size_t(len(source))) != 0
}

// Call calls a function, with arguments as [Engine.Make] makes them; a Value
// among them stays the caller's.
func (e *Engine) Call(f, this Value, args ...any) (Value, error) {
	values := make([]Value, len(args))
	for i, a := range args {
		if v, ok := a.(Value); ok {
			values[i] = e.Dup(v)
		} else {
			values[i] = e.Make(a)
		}
	}
	defer func() {
		for _, v := range values {
			e.Free(v)
		}
	}()
	return e.run(func() Value {
		if len(values) == 0 {
			return lib.XJS_Call(e.tls, e.ctx, f, this, 0, 0)
		}
		size := len(values) * int(unsafe.Sizeof(Value{}))
		p := e.tls.Alloc(size)
		defer e.tls.Free(size)
		copy(unsafe.Slice((*Value)(at(p)), len(values)), values)
		return lib.XJS_Call(e.tls, e.ctx, f, this, int32(len(values)), p)
	})
}

// run calls the engine. A panic that stopped the JavaScript goes on from the
// outermost call.
func (e *Engine) run(f func() Value) (Value, error) {
	e.depth++
	v := f()
	e.depth--
	if e.ended != nil && e.depth == 0 {
		panic(e.ended)
	}
	if v.Ftag != lib.EJS_TAG_EXCEPTION {
		return v, nil
	}
	return v, &Exception{lib.XJS_GetException(e.tls, e.ctx)}
}

// Job runs one thing that a promise has to do. None is false.
func (e *Engine) Job() (bool, error) {
	if lib.XJS_IsJobPending(e.tls, e.rt) == 0 {
		return false, nil
	}
	_, err := e.run(func() Value {
		if lib.XJS_ExecutePendingJob(e.tls, e.rt, e.length) < 0 {
			return exception()
		}
		return Undefined()
	})
	return true, err
}

func (e *Engine) normalize(_ *libc.TLS, _, base, name, _ uintptr) (r uintptr) {
	b, n := libc.GoString(base), libc.GoString(name)
	ok := e.guard(func() {
		full, err := e.o.Resolve(b, n)
		if err != nil {
			e.throw(err)
			return
		}
		if r = lib.Xjs_malloc(e.tls, e.ctx, lib.Size_t(len(full)+1)); r == 0 {
			return
		}
		c := unsafe.Slice((*byte)(at(r)), len(full)+1)
		copy(c, full)
		c[len(full)] = 0
	})
	if !ok {
		return 0
	}
	return r
}

func (e *Engine) load(_ *libc.TLS, _, name, _ uintptr) (m uintptr) {
	n := libc.GoString(name)
	ok := e.guard(func() {
		source, meta, err := e.o.Load(n)
		if err != nil {
			e.throw(err)
			return
		}
		v := lib.XJS_Eval(e.tls, e.ctx, e.cString(0, source), lib.Size_t(len(source)), e.cString(1, n), int32(Module)|lib.MJS_EVAL_FLAG_COMPILE_ONLY)
		if v.Ftag == lib.EJS_TAG_EXCEPTION {
			return
		}
		e.describe(v, meta)
		m = *(*uintptr)(unsafe.Pointer(&v))
		e.Free(v) // the context holds its modules
	})
	if !ok {
		return 0
	}
	return m
}

// describe fills in import.meta; it takes the values.
func (e *Engine) describe(module Value, meta map[string]any) {
	o := lib.XJS_GetImportMeta(e.tls, e.ctx, *(*uintptr)(unsafe.Pointer(&module)))
	if o.Ftag == lib.EJS_TAG_EXCEPTION {
		e.Free(lib.XJS_GetException(e.tls, e.ctx))
		return
	}
	names := make([]string, 0, len(meta))
	for name := range meta {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		e.Set(o, name, e.Make(meta[name]))
	}
	e.Free(o)
}

func (e *Engine) rejected(_ *libc.TLS, _ uintptr, promise, reason Value, handled int32, _ uintptr) {
	if e.ended == nil {
		e.o.Rejected(promise, reason, handled != 0)
	}
}

// Bytecode compiles a script to what [Engine.Run] takes, in any engine of this
// program.
func (e *Engine) Bytecode(source, name string) ([]byte, error) {
	v, err := e.run(func() Value {
		return lib.XJS_Eval(e.tls, e.ctx, e.cString(0, source), lib.Size_t(len(source)), e.cString(1, name), int32(Script)|lib.MJS_EVAL_FLAG_COMPILE_ONLY)
	})
	if err != nil {
		return nil, err
	}
	defer e.Free(v)
	p := lib.XJS_WriteObject(e.tls, e.ctx, e.length, v, lib.MJS_WRITE_OBJ_BYTECODE)
	if p == 0 {
		return nil, &Exception{lib.XJS_GetException(e.tls, e.ctx)}
	}
	n := int(*(*lib.Size_t)(at(e.length)))
	b := append([]byte(nil), unsafe.Slice((*byte)(at(p)), n)...)
	lib.Xjs_free(e.tls, e.ctx, p)
	return b, nil
}

// Run runs bytecode, which must come from [Engine.Bytecode]: it is not checked.
func (e *Engine) Run(bytecode []byte) (Value, error) {
	return e.run(func() Value {
		v := lib.XJS_ReadObject(e.tls, e.ctx, e.cString(0, unsafe.String(&bytecode[0], len(bytecode))), lib.Size_t(len(bytecode)), lib.MJS_READ_OBJ_BYTECODE)
		if v.Ftag == lib.EJS_TAG_EXCEPTION {
			return v
		}
		return lib.XJS_EvalFunction(e.tls, e.ctx, v)
	})
}
