package jq

import (
	"errors"
	"fmt"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/regex"
)

type (
	yieldFn func(value) error
	pathFn  func(pathValue) error
)

// An env is a variable, a function, or an argument, and all that were there
// before it.
type env struct {
	up     *env
	v      value
	fn     *function
	arg    *node // a closure of argEnv
	argEnv *env
	label  *int
	mark   uint32
}

func (e *env) at(hops int) *env {
	for ; hops > 0; hops-- {
		e = e.up
	}
	return e
}

// A jqError is an error that a program can catch.
type jqError struct{ v value }

func (e *jqError) Error() string {
	if s, ok := e.v.(string); ok {
		return s
	}
	return "error"
}

// A breakError leaves a label.
type breakError struct{ label *int }

func (e *breakError) Error() string { return "break" }

// A passedError comes from what takes the values of an expression, and is none
// of that expression's errors.
type passedError struct{ err error }

func (e *passedError) Error() string { return e.err.Error() }

// A haltError ends the program.
type haltError struct {
	status int
	v      value
	say    bool
}

func (e *haltError) Error() string { return "halt" }

// errStop ends an expression of which no more values are wanted.
var errStop = errors.New("stop")

func failf(format string, args ...any) error {
	return &jqError{fmt.Sprintf(format, args...)}
}

// A frame is an expression that is being computed. Frames are the roots of
// what is alive.
type frame struct {
	v value
	e *env
}

// A machine runs a program.
type machine struct {
	t *kernel.Task

	frames  []frame
	holds   []value // what natives hold while they run programs
	debt    int     // bytes that may be made before the next look at what is alive
	counted int     // bytes that the task counts for what is alive
	epoch   uint32

	globals  map[string]value
	builtins map[string]*function
	natives  map[string]*native
	modules  *modules
	regexes  map[string]*regex.Regexp
	input    func() (value, error) // errEnd is the end
	file     func() value          // input_filename
	line     func() float64
	now      func() float64
	stderr   func([]byte)
	debug    func(value)
	yq       *weaver // of yq: its documents; nil in jq
	searched int     // steps of searches that are not yet told to the task
	env      value
}

// maxFrames bounds Go's stack.
const maxFrames = 200_000

// push begins an expression.
func (m *machine) push(v value, e *env) {
	m.frames = append(m.frames, frame{v, e})
	if len(m.frames) > maxFrames {
		m.t.Bound("calls", int64(len(m.frames)), maxFrames)
	}
	m.t.Step(round)
}

// round is what an expression costs, in steps.
const round = 8

func (m *machine) pop() {
	n := len(m.frames) - 1
	m.frames[n] = frame{}
	m.frames = m.frames[:n]
}

func (m *machine) hold(v value) { m.holds = append(m.holds, v) }

func (m *machine) release(n int) {
	clear(m.holds[n:])
	m.holds = m.holds[:n]
}

// alloc counts bytes that are made. What is alive of all that was made is
// looked at from time to time, so that the limit of the heap holds for it.
func (m *machine) alloc(n int) {
	m.debt -= n
	if m.debt < 0 {
		m.measure(n)
	}
}

// room makes room for n more bytes of a text, which are counted as made before they are there.
func (m *machine) room(b []byte, n int) []byte {
	need := len(b) + n
	if need <= cap(b) {
		return b
	}
	m.t.Bound("string", int64(need), m.t.K.Limits.String+punctuation)
	size := max(need, min(2*cap(b), cap(b)+cap(b)/2+64<<10), 64)
	m.alloc(size)
	return append(make([]byte, 0, size), b...)
}

// more makes room for one more of what takes so many bytes, in the way of room.
func more[T any](m *machine, list []T, bytes int) []T {
	n := len(list)
	if n < cap(list) {
		return list
	}
	size := n + n/4 + 4
	m.alloc(bytes * size)
	return append(make([]T, 0, size), list...)
}

// least is how much may be made between two looks.
const least = 16 << 20

// measure counts what is alive, and more, which is about to be.
func (m *machine) measure(more int) {
	m.epoch++
	s := sizer{m: m, epoch: m.epoch}
	for _, f := range m.frames {
		s.value(f.v)
		s.env(f.e)
	}
	for _, v := range m.holds {
		s.value(v)
	}
	for _, v := range m.globals {
		s.value(v)
	}
	live := s.bytes + 24*cap(m.frames) + more
	m.t.Step(s.count)
	if live > m.counted {
		m.t.Grow(live - m.counted)
	} else {
		m.t.Shrink(m.counted - live)
	}
	m.counted = live
	m.debt = max(least, live)
	if free := int(m.t.K.Heap().Limit()) / 4; m.debt > free {
		m.debt = max(1<<20, free)
	}
}

// A sizer adds up the bytes of values, each once.
type sizer struct {
	m       *machine
	epoch   uint32
	bytes   int
	count   int
	strings map[string]struct{}
}

func (s *sizer) value(v value) {
	switch v := v.(type) {
	case string:
		s.text(v)
	case *literal:
		s.bytes += 48 + len(v.text)
	case *array:
		if v.mark == s.epoch {
			return
		}
		v.mark = s.epoch
		s.bytes += 80
		for v.newer != nil { // what it is to be undone from holds the rest
			s.value(v.old)
			v = v.newer
			if v.mark == s.epoch {
				return
			}
			v.mark = s.epoch
			s.bytes += 80
		}
		s.bytes += 16 * cap(v.v)
		s.count += len(v.v)
		for _, x := range v.v {
			s.value(x)
		}
	case *object:
		if v.mark == s.epoch {
			return
		}
		v.mark = s.epoch
		s.bytes += 160
		for v.newer != nil {
			s.value(v.old)
			v = v.newer
			if v.mark == s.epoch {
				return
			}
			v.mark = s.epoch
			s.bytes += 160
		}
		s.bytes += 32*cap(v.t.keys) + 40*len(v.t.idx)
		s.count += len(v.t.keys)
		for i, x := range v.t.vals {
			s.value(x)
			if len(v.t.keys[i]) > 64 {
				s.text(v.t.keys[i])
			}
		}
	case float64:
		s.bytes += 8
	}
}

// text counts a string: one of some length once, however often it is there.
func (s *sizer) text(x string) {
	if len(x) < 1024 {
		s.bytes += 16 + len(x)
		return
	}
	if s.strings == nil {
		s.strings = map[string]struct{}{}
	}
	if _, ok := s.strings[x]; !ok {
		s.strings[x] = struct{}{}
		s.bytes += 16 + len(x)
		s.count += len(x) >> 6
	}
}

func (s *sizer) env(e *env) {
	for ; e != nil && e.mark != s.epoch; e = e.up {
		e.mark = s.epoch
		s.bytes += 112
		s.count++
		s.value(e.v)
		if e.argEnv != nil && e.argEnv.mark != s.epoch {
			s.m.t.Step(1)
			s.env(e.argEnv)
		}
	}
}
