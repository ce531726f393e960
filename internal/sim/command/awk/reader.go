package awk

import (
	"bytes"
	"io"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// A reader gives the records of a file or of what a command writes.
type reader struct {
	desc  *kernel.Desc // held
	child *kernel.Task // of a command
	to    *sink        // of a coprocess, its other end
	buf   []byte
	r, w  int
	err   error
}

func (m *machine) newReader(d *kernel.Desc) *reader { return &reader{desc: d} }

// drop lets go of the file.
func (r *reader) drop(m *machine) {
	if r.desc != nil {
		r.desc.Drop()
		r.desc = nil
	}
	if r.buf != nil {
		m.t.Shrink(len(r.buf))
		r.buf = nil
	}
	r.r, r.w, r.err = 0, 0, io.EOF
}

// fill reads more behind what is there.
func (r *reader) fill(m *machine) bool {
	if r.err != nil {
		return false
	}
	if r.w == len(r.buf) {
		r.room(m)
	}
	m.t.Step(1)
	n, err := r.desc.File.Read(m.t, r.buf[r.w:])
	r.w += n
	m.t.Step(n >> 3)
	if err != nil {
		r.err = err
	} else if n == 0 {
		r.err = io.EOF
	}
	return n > 0
}

func (r *reader) room(m *machine) {
	if r.r > 0 && (r.r == r.w || r.r >= len(r.buf)/2) && len(r.buf) >= 64<<10 {
		r.w = copy(r.buf, r.buf[r.r:r.w])
		r.r = 0
		return
	}
	size := max(4<<10, 4*len(r.buf))
	if size > 64<<10 {
		size = max(64<<10, 2*len(r.buf))
		m.t.Bound("record", int64(r.w-r.r), m.t.K.Limits.Record)
	}
	m.t.Grow(size - len(r.buf))
	buf := make([]byte, size)
	r.w = copy(buf, r.buf[r.r:r.w])
	r.r = 0
	r.buf = buf
}

// record gives the next record, and the text that ended it. They are valid
// until the next call.
func (r *reader) record(m *machine) (rec, end []byte, ok bool) {
	switch {
	case m.csv:
		return r.csvRecord(m)
	case m.rs == "":
		return r.paragraph(m)
	case len(m.rs) == 1:
		return r.until(m, m.rs[0])
	}
	return r.matched(m)
}

func (r *reader) until(m *machine, c byte) (rec, end []byte, ok bool) {
	if m.ignoreCase && isName(c) && !isDigit(c) {
		return r.matched(m)
	}
	seen := 0
	for {
		if i := bytes.IndexByte(r.buf[r.r+seen:r.w], c); i >= 0 {
			i += r.r + seen
			rec, end = r.buf[r.r:i], r.buf[i:i+1]
			r.r = i + 1
			return rec, end, true
		}
		seen = r.w - r.r
		if !r.fill(m) {
			return r.rest(false)
		}
	}
}

// rest gives what the file ends with.
func (r *reader) rest(newline bool) (rec, end []byte, ok bool) {
	rec = r.buf[r.r:r.w]
	r.r = r.w
	if newline && len(rec) > 0 && rec[len(rec)-1] == '\n' {
		return rec[:len(rec)-1], rec[len(rec)-1:], true
	}
	return rec, nil, len(rec) > 0
}

// paragraph reads up to an empty line.
func (r *reader) paragraph(m *machine) (rec, end []byte, ok bool) {
	for {
		for r.r < r.w && r.buf[r.r] == '\n' {
			r.r++
		}
		if r.r < r.w {
			break
		}
		if !r.fill(m) {
			return nil, nil, false
		}
	}
	seen := 0
	for {
		if i := bytes.Index(r.buf[r.r+seen:r.w], []byte("\n\n")); i >= 0 {
			n := seen + i
			stop := n + 2
			for {
				for r.r+stop < r.w && r.buf[r.r+stop] == '\n' {
					stop++
				}
				if r.r+stop < r.w || !r.fill(m) {
					break
				}
			}
			rec, end = r.buf[r.r:r.r+n], r.buf[r.r+n:r.r+stop]
			r.r += stop
			return rec, end, true
		}
		seen = max(0, r.w-r.r-1)
		if !r.fill(m) {
			return r.rest(true)
		}
	}
}

// matched reads up to a match of RS.
func (r *reader) matched(m *machine) (rec, end []byte, ok bool) {
	re := m.regex(m.rs)
	for {
		held := r.buf[r.r:r.w]
		from := 0
		for from <= len(held) {
			a, b := re.span(m, held, from)
			if a < 0 {
				break
			}
			if a == b {
				from = b + 1
				continue
			}
			if b == len(held) && r.err == nil {
				break // it may go on
			}
			r.r += b
			return held[:a], held[a:b], true
		}
		// Twice as much before the next try, lest that take forever.
		want := 2 * len(held)
		grew := false
		for r.fill(m) {
			grew = true
			if r.w-r.r >= want || r.w-r.r < 64<<10 {
				break
			}
		}
		if !grew {
			if r.err == nil {
				continue
			}
			held = r.buf[r.r:r.w]
			if a, b := re.span(m, held, 0); a >= 0 && a < b {
				r.r += b
				return held[:a], held[a:b], true
			}
			return r.rest(m.rs == "\n\n")
		}
	}
}

// csvRecord reads up to a newline that is not in quotes.
func (r *reader) csvRecord(m *machine) (rec, end []byte, ok bool) {
	seen, quoted := 0, false
	for {
		held := r.buf[r.r:r.w]
		for i := seen; i < len(held); i++ {
			switch held[i] {
			case '"':
				quoted = !quoted
			case '\n':
				if !quoted {
					r.r += i + 1
					rec, end = held[:i], held[i:i+1]
					if i > 0 && held[i-1] == '\r' {
						rec = held[:i-1]
					}
					return rec, end, true
				}
			}
		}
		seen = len(held)
		if !r.fill(m) {
			return r.rest(false)
		}
	}
}
