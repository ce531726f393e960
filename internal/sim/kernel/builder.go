package kernel

import (
	"reflect"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
)

// Room returns list with room for n more elements. The task pays before anything is made: what it returns is counted by its
// capacity until the caller shrinks the task by [Cost] of it, or the task ends. While the elements are copied, both copies
// are counted, because both are in memory. So list must come from Room, or be nil. More elements than limit end the run.
//
// What a script can multiply is made by Room or a [Builder]: whoever asks for a limit afterwards has taken the memory already.
func Room[T any](t *Task, name budget.Name, limit int64, list []T, n int) []T {
	need := len(list) + n
	t.Bound(name, int64(need), limit)
	if need <= cap(list) {
		return list
	}
	one := int(reflect.TypeFor[T]().Size())
	size := max(need, min(2*cap(list), cap(list)+cap(list)/4+(64<<10)/one), 128/one)
	t.Grow(size * one)
	had := cap(list)
	list = append(make([]T, 0, size), list...)
	t.Shrink(had * one)
	return list
}

// Cost tells what is counted of a list that is from [Room].
func Cost[T any](list []T) int { return cap(list) * int(reflect.TypeFor[T]().Size()) }

// A Builder makes a text, as strings.Builder does, but its task pays for each byte before it is there. What is longer than
// the limit ends the run.
type Builder struct {
	t     *Task
	name  budget.Name
	limit int64
	b     *strings.Builder // nil until something is written
	paid  int              // at least b.Cap()
}

// NewBuilder makes a Builder with a limit. The caller frees it, or takes its text.
func NewBuilder(t *Task, name budget.Name, limit int64) *Builder {
	return &Builder{t: t, name: name, limit: limit}
}

// NewText makes a Builder of a value of a program: its limit is "string".
func NewText(t *Task) *Builder { return NewBuilder(t, "string", t.K.Limits.String) }

// Reserve makes room for n more bytes.
func (b *Builder) Reserve(n int) {
	need := b.Len() + n
	b.t.Bound(b.name, int64(need), b.limit)
	if need <= b.paid && b.b != nil {
		return
	}
	size := max(need, min(2*b.paid, b.paid+b.paid/4+64<<10), 64)
	b.t.Grow(size)
	next := new(strings.Builder)
	next.Grow(size)
	if b.b != nil {
		next.WriteString(b.b.String())
	}
	b.t.Shrink(b.paid)
	b.b, b.paid = next, size
}

// WriteString appends s.
func (b *Builder) WriteString(s string) {
	b.Reserve(len(s))
	b.b.WriteString(s)
}

// Write appends p; it does not fail.
func (b *Builder) Write(p []byte) (int, error) {
	b.Reserve(len(p))
	return b.b.Write(p)
}

// Byte appends c.
func (b *Builder) Byte(c byte) {
	b.Reserve(1)
	b.b.WriteByte(c)
}

// Len is how long the text is.
func (b *Builder) Len() int {
	if b.b == nil {
		return 0
	}
	return b.b.Len()
}

// String shows the text, which stays counted.
func (b *Builder) String() string {
	if b.b == nil {
		return ""
	}
	return b.b.String()
}

// Text gives the text away: from now on the caller counts it. The Builder is empty.
func (b *Builder) Text() string {
	s := b.String()
	b.Free()
	return s
}

// Free gives everything back.
func (b *Builder) Free() {
	b.t.Shrink(b.paid)
	b.b, b.paid = nil, 0
}

// ReplaceAll is strings.ReplaceAll of a value of a program. Its task pays for the result while it is made.
func ReplaceAll(t *Task, s, from, to string) string {
	n := strings.Count(s, from)
	size := len(s)
	if grows := len(to) - len(from); grows > 0 {
		t.Bound("string", int64(n)*int64(grows)+int64(size), t.K.Limits.String) // both are below 2^31
		size += n * grows
	}
	t.Grow(size)
	defer t.Shrink(size)
	return strings.ReplaceAll(s, from, to)
}

// Join is strings.Join of values of a program, as [ReplaceAll] is for a replacement.
func Join(t *Task, parts []string, sep string) string {
	size := int64(len(sep)) * int64(max(0, len(parts)-1))
	for _, s := range parts {
		size += int64(len(s))
	}
	t.Bound("string", size, t.K.Limits.String)
	t.Grow(int(size))
	defer t.Shrink(int(size))
	return strings.Join(parts, sep)
}
