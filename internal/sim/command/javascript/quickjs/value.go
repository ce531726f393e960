package quickjs

import (
	"strings"
	"unicode/utf8"
	"unsafe"

	lib "modernc.org/libquickjs"
)

// String returns a value as a string. Halves of surrogate pairs are U+FFFD. A
// value whose conversion throws is empty.
func (e *Engine) String(v Value) string {
	p := lib.XJS_ToCStringLen2(e.tls, e.ctx, e.length, v, 0)
	if p == 0 {
		e.Free(lib.XJS_GetException(e.tls, e.ctx))
		return ""
	}
	n := *(*lib.Size_t)(at(e.length))
	s := string(unsafe.Slice((*byte)(at(p)), int(n)))
	lib.XJS_FreeCString(e.tls, e.ctx, p)
	if utf8.ValidString(s) {
		return s
	}
	return surrogates(s)
}

// surrogates replaces three bytes that encode half of a pair.
func surrogates(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			if s[i] == 0xED && i+2 < len(s) {
				n = 3
			}
			b.WriteString("\uFFFD")
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// Float returns a value as a number; one whose conversion throws is 0.
func (e *Engine) Float(v Value) float64 {
	switch v.Ftag {
	case lib.EJS_TAG_INT, lib.EJS_TAG_BOOL:
		return float64(int32(uint32(v.Fu.Fuint641)))
	case lib.EJS_TAG_FLOAT64:
		return *(*float64)(unsafe.Pointer(&v))
	}
	if lib.XJS_ToFloat64(e.tls, e.ctx, e.length, v) != 0 {
		e.Free(lib.XJS_GetException(e.tls, e.ctx))
		return 0
	}
	return *(*float64)(at(e.length))
}

// Int returns a value as a whole number, cut to what an int of 54 bits holds.
func (e *Engine) Int(v Value) int {
	f := e.Float(v)
	const most = 1 << 53
	switch {
	case f != f:
		return 0
	case f > most:
		return most
	case f < -most:
		return -most
	}
	return int(f)
}

// Bool returns a value as a truth.
func (e *Engine) Bool(v Value) bool { return lib.XJS_ToBool(e.tls, e.ctx, v) > 0 }

// IsNone tells undefined and null.
func IsNone(v Value) bool { return v.Ftag == lib.EJS_TAG_UNDEFINED || v.Ftag == lib.EJS_TAG_NULL }

// IsString tells strings.
func IsString(v Value) bool {
	return v.Ftag == lib.EJS_TAG_STRING || v.Ftag == lib.EJS_TAG_STRING_ROPE
}

// IsFunction tells functions.
func (e *Engine) IsFunction(v Value) bool { return lib.XJS_IsFunction(e.tls, e.ctx, v) != 0 }

// View shows the bytes of an ArrayBuffer, or of a part of one (offset and
// length are given). It is valid until JavaScript runs again.
func (e *Engine) View(buffer Value, offset, length int) []byte {
	p := lib.XJS_GetArrayBuffer(e.tls, e.ctx, e.length, buffer)
	if p == 0 {
		e.Free(lib.XJS_GetException(e.tls, e.ctx)) // where it is no buffer
		return nil
	}
	n := int(*(*lib.Size_t)(at(e.length)))
	if offset < 0 || offset > n {
		return nil
	}
	if length < 0 || length > n-offset {
		length = n - offset
	}
	return unsafe.Slice((*byte)(at(p)), n)[offset : offset+length]
}

// Strings returns an array's elements as strings.
func (e *Engine) Strings(v Value) []string {
	if IsNone(v) {
		return nil
	}
	length := e.Get(v, "length")
	n := min(e.Int(length), 1<<20)
	e.Free(length)
	list := make([]string, 0, max(n, 0))
	for i := range n {
		item := lib.XJS_GetPropertyUint32(e.tls, e.ctx, v, uint32(i))
		list = append(list, e.String(item))
		e.Free(item)
	}
	return list
}

// Promise returns how a promise stands (0 waits, 1 fulfilled, 2 rejected, -1
// none) and with which value.
func (e *Engine) Promise(v Value) (state int, result Value) {
	state = int(lib.XJS_PromiseState(e.tls, e.ctx, v))
	if state != 1 && state != 2 {
		return state, Undefined()
	}
	return state, lib.XJS_PromiseResult(e.tls, e.ctx, v)
}

// ProxyTarget returns what is behind a Proxy, or undefined where there is none.
func (e *Engine) ProxyTarget(v Value) Value {
	if v.Ftag != lib.EJS_TAG_OBJECT || lib.XJS_GetClassID(e.tls, v) != lib.EJS_CLASS_PROXY {
		return Undefined()
	}
	p := lib.XJS_GetOpaque(e.tls, v, lib.EJS_CLASS_PROXY)
	if p == 0 {
		return Undefined()
	}
	return e.Dup((*lib.TJSProxyData)(at(p)).Ftarget)
}

// Values returns an array's elements; each is the caller's.
func (e *Engine) Values(v Value) []Value {
	length := e.Get(v, "length")
	n := min(e.Int(length), 1<<24)
	e.Free(length)
	var list []Value
	for i := range n {
		list = append(list, lib.XJS_GetPropertyUint32(e.tls, e.ctx, v, uint32(i)))
	}
	return list
}

// Error makes the value that a Func throws with this error.
func (e *Engine) Error(err error) Value {
	e.throw(err)
	return lib.XJS_GetException(e.tls, e.ctx)
}
