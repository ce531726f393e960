package jq

import (
	"errors"
	"fmt"
	"io"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// errEnd is that there is no more input.
var errEnd = errors.New("no more inputs")

// An inputError is input that cannot be read as JSON.
type inputError struct{ msg string }

func (e *inputError) Error() string { return e.msg }

// A feed gives the values of files, one after the other.
type feed struct {
	m     *machine
	t     *kernel.Task
	names []string
	next  int
	name  string // of the file at hand, as messages have it
	in    *command.Input
	buf   []byte
	r, w  int
	over  bool // the file at hand is at its end
	ended bool // nothing comes behind buf, from any file
	bad   bool // a file could not be opened
	keys  map[string]string
	stack unread

	raw, slurp, stream bool
	done               bool
	pending            []value // events of --stream, or what was slurped
	lines              float64 // newlines that were read
	seq                bool
}

func (f *feed) close() {
	if f.in != nil {
		_ = f.in.Close()
		f.in = nil
	}
	if f.buf != nil {
		f.t.Shrink(len(f.buf))
		f.buf = nil
	}
	f.r, f.w = 0, 0
}

// open goes on to the next file.
func (f *feed) open() bool {
	f.close()
	return f.follow()
}

// follow goes on to the next file and keeps what is left in buf.
func (f *feed) follow() bool {
	for {
		if f.next >= len(f.names) {
			return false
		}
		name := f.names[f.next]
		f.next++
		in, err := command.Open(f.t, name)
		if err == nil {
			if i, ierr := in.Desc().File.Info(); ierr == nil && i.IsDir() {
				_ = in.Close()
				f.t.Errorf("error: Could not open %s: it's a directory", name)
				f.bad = true
				continue
			}
		}
		if err != nil {
			f.t.Errorf("error: Could not open %s: %s", name, vfs.Message(err))
			f.bad = true
			continue
		}
		if f.in != nil {
			_ = f.in.Close()
		}
		f.in, f.name, f.over, f.lines = in, name, false, 0
		if name == "-" {
			f.name = "<stdin>"
		}
		return true
	}
}

// fill reads more behind what is there: to jq, all files are one text. False is
// the end of the last file.
func (f *feed) fill() bool {
	if f.ended {
		return false
	}
	if f.w == len(f.buf) {
		size := max(8<<10, 2*len(f.buf))
		if v, ok := f.in.Desc().VFS(); ok && f.buf == nil {
			if i, err := v.Info(); err == nil && i.IsRegular() && i.Size < f.t.K.Limits.Input {
				size = max(512, int(i.Size)+1)
			}
		}
		if f.r > 0 && f.r >= len(f.buf)/2 {
			size = len(f.buf)
		}
		f.t.Bound("input", int64(size), 2*f.t.K.Limits.Input)
		if size > len(f.buf) {
			f.t.Grow(size - len(f.buf))
			b := make([]byte, size)
			f.w = copy(b, f.buf[f.r:f.w])
			f.buf = b
		} else {
			f.w = copy(f.buf, f.buf[f.r:f.w])
		}
		f.r = 0
	}
	for {
		if f.over && !f.follow() {
			f.ended = true
			return false
		}
		n, err := f.in.Read(f.buf[f.w:])
		for _, c := range f.buf[f.w : f.w+n] {
			if c == '\n' {
				f.lines++
			}
		}
		f.w += n
		if err != nil || n == 0 {
			f.over = true
			if err != nil && !errors.Is(err, io.EOF) {
				f.t.Errorf("error: Could not read %s: %s", f.name, vfs.Message(err))
				f.bad = true
			}
		}
		if n > 0 {
			return true
		}
	}
}

// value gives the next value.
func (f *feed) value() (value, error) {
	for {
		if len(f.pending) > 0 {
			v := f.pending[0]
			f.pending = f.pending[1:]
			return v, nil
		}
		if f.done {
			return nil, errEnd
		}
		switch {
		case f.slurp:
			f.done = true
			return f.all()
		case f.raw:
			return f.line()
		case f.stream:
			v, err := f.read()
			if err != nil {
				return nil, err
			}
			f.events(v)
		default:
			return f.read()
		}
	}
}

// read reads one JSON value.
func (f *feed) read() (value, error) {
	for {
		if f.in == nil && !f.open() {
			f.done = true
			return nil, errEnd
		}
		tried := 0
		for {
			d := decoder{m: f.m, b: f.buf[f.r:f.w], last: f.ended, keys: f.keys, stack: &f.stack}
			f.stack.drop(0, 0)
			d.space()
			if d.at == len(d.b) {
				f.r += d.at
				if f.fill() {
					continue
				}
				break
			}
			if tried > 64<<10 && len(d.b) < 2*tried && !f.ended {
				f.fill()
				continue
			}
			v, err := d.value()
			f.keys = d.keys
			if err == nil {
				f.r += d.at
				return v, nil
			}
			if errors.Is(err, errMore) {
				tried = len(d.b)
				f.fill()
				continue
			}
			f.m.t.Step(len(d.b) >> 6)
			line, column := d.position()
			f.done = true
			if d.at >= len(d.b) {
				return nil, &inputError{fmt.Sprintf("%s at EOF at line %d, column %d", err, line, column)}
			}
			return nil, &inputError{fmt.Sprintf("%s at line %d, column %d", err, line, column)}
		}
		f.close()
	}
}

// line reads a line as a string.
func (f *feed) line() (value, error) {
	for {
		if f.in == nil && !f.open() {
			f.done = true
			return nil, errEnd
		}
		seen := 0
		for {
			b := f.buf[f.r:f.w]
			for i := seen; i < len(b); i++ {
				if b[i] == '\n' {
					f.r += i + 1
					f.m.alloc(16 + i)
					return clean(b[:i]), nil
				}
			}
			seen = len(b)
			f.m.t.Bound("record", int64(seen), f.m.t.K.Limits.Record)
			if !f.fill() {
				break
			}
		}
		b := f.buf[f.r:f.w]
		f.r = f.w
		s := clean(b)
		if len(b) > 0 {
			f.m.alloc(16 + len(s))
			f.close()
			return s, nil
		}
		f.close()
	}
}

// all reads everything into one value: an array, or a string of raw input.
func (f *feed) all() (value, error) {
	if f.raw {
		var b []byte
		for f.open() {
			for f.fill() {
			}
			b = append(b, f.buf[f.r:f.w]...)
			f.m.alloc(f.w - f.r)
			f.m.t.Bound("string", int64(len(b)), f.m.t.K.Limits.String)
		}
		return clean(b), nil
	}
	a := &array{v: []value{}, depth: 1}
	at := len(f.m.holds)
	f.m.hold(a)
	defer f.m.release(at)
	for {
		v, err := f.read()
		if errors.Is(err, errEnd) {
			break
		}
		if err != nil {
			return nil, err
		}
		if f.stream {
			f.events(v)
			a.v = append(a.v, f.pending...)
			f.pending = nil
		} else {
			a.v = append(a.v, v)
		}
		f.m.alloc(24)
		a.depth = max(a.depth, depthOf(v)+1)
	}
	return a, nil
}

// events gives a value as --stream does.
func (f *feed) events(v value) {
	f.walk(v, nil, true)
}

func (f *feed) walk(v value, path []value, top bool) {
	m := f.m
	leaf := func(x value, p []value) {
		f.pending = append(f.pending, m.list([]value{m.list(append([]value(nil), p...)), x}))
	}
	m.t.Step(1)
	var last value
	n := 0
	switch x := v.(type) {
	case *array:
		n = x.len()
		for i, y := range x.own() {
			last = float64(i)
			f.walk(y, append(path, last), false)
		}
	case *object:
		n = x.len()
		t := x.own()
		for i, k := range t.keys {
			last = k
			f.walk(t.vals[i], append(path, last), false)
		}
	}
	if n == 0 {
		leaf(v, path)
		return
	}
	f.pending = append(f.pending, m.list([]value{m.list(append(append([]value(nil), path...), last))}))
	_ = top
}

// decodeAll reads all values of a text.
func (m *machine) decodeAll(b []byte) ([]value, error) {
	var list []value
	d := &decoder{m: m, b: b, last: true}
	for {
		d.space()
		if d.at >= len(d.b) {
			return list, nil
		}
		v, err := d.value()
		if err != nil {
			line, column := d.position()
			return nil, fmt.Errorf("%w at line %d, column %d", err, line, column)
		}
		list = append(list, v)
	}
}
