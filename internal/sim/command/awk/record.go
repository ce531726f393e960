package awk

import (
	"strings"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// setRecord makes b the record. It is valid until its reader reads on.
func (m *machine) setRecord(b []byte) {
	m.rec, m.made, m.lineIs = b, false, maybe
	m.split, m.dirty = false, false
	m.how = m.fsHow
}

// setLine makes s the record.
func (m *machine) setLine(s string) {
	m.keep(len(s))
	m.line, m.made, m.lineIs = s, true, maybe
	m.rec = nil
	m.split, m.dirty = false, false
	m.how = m.fsHow
}

// keep counts the record, where it is not small.
func (m *machine) keep(n int) {
	if len(m.line) >= large {
		m.count(-len(m.line))
	}
	if n >= large {
		m.count(n)
	}
}

// record gives the record as a string.
func (m *machine) record() string {
	if m.dirty {
		m.join()
	}
	if !m.made {
		m.keep(len(m.rec))
		m.line, m.made = string(m.rec), true
		m.rec = nil
	}
	return m.line
}

// ensure splits the record into fields, if that has not been done.
func (m *machine) ensure() {
	if m.split {
		return
	}
	m.split = true
	s := m.record()
	clear(m.fields)
	m.fields = m.how.split(m, s, m.fields[:0])
	m.nf = len(m.fields)
	m.countFields()
}

// countFields bounds the fields; few are not counted.
func (m *machine) countFields() {
	if len(m.fields) > 1<<10 {
		m.t.Bound("array", int64(len(m.fields)), m.t.K.Limits.Array)
		m.t.Step(len(m.fields) >> 3)
		m.fresh(32 * len(m.fields))
	}
}

func (m *machine) field(i int) value {
	if i == 0 {
		return value{s: m.record(), k: m.lineIs}
	}
	m.ensure()
	if i > m.nf {
		return value{k: maybe}
	}
	return m.fields[i-1]
}

// fieldIndex reads the operand of $.
func (m *machine) fieldIndex(n float64) int {
	if n < 0 {
		m.fatal("attempt to access field %d", int64(n))
	}
	return int(min(n, 1<<31))
}

func (m *machine) setField(i int, v value) {
	if i == 0 {
		m.setLine(m.str(v))
		if v.k == text {
			m.lineIs = text
		}
		return
	}
	m.ensure()
	if i > m.nf {
		m.setCount(i)
	}
	if v.k == number {
		v = value{m.numStr(v.n), v.n, numeric}
	}
	m.fields[i-1] = v
	m.fresh(len(v.s))
	m.dirty = true
}

// setCount makes n the number of fields.
func (m *machine) setCount(n int) {
	m.t.Bound("array", int64(n), m.t.K.Limits.Array)
	if n < m.nf {
		clear(m.fields[n:])
	}
	if n > cap(m.fields) {
		m.fields = append(make([]value, 0, n+n/4), m.fields...)
	}
	m.fields = m.fields[:n]
	for i := m.nf; i < n; i++ {
		m.fields[i] = value{k: maybe}
	}
	m.nf = n
	m.countFields()
}

func (m *machine) setNF(n float64) {
	m.ensure()
	if n < 0 {
		m.fatal("NF set to negative value")
	}
	m.setCount(m.fieldIndex(n))
	m.dirty = true
}

// join makes the record of the fields.
func (m *machine) join() {
	m.dirty = false
	size := max(0, m.nf-1) * len(m.ofs)
	for i := range m.fields {
		size += len(m.fields[i].s)
	}
	m.t.Bound("string", int64(size), m.t.K.Limits.String)
	m.t.Step(size >> 6)
	b := m.room(m.buf[:0], size)
	for i := range m.fields {
		if i > 0 {
			b = append(m.room(b, len(m.ofs)), m.ofs...)
		}
		s := m.str(m.fields[i])
		b = append(m.room(b, len(s)), s...)
	}
	m.buf = b
	m.keep(len(m.buf))
	m.line, m.made, m.lineIs = string(m.buf), true, maybe
	m.rec = nil
	m.trim()
}

// room pays for n more bytes of scratch space.
func (m *machine) room(b []byte, n int) []byte {
	return kernel.Room(m.t, "string", m.t.K.Limits.String, b, n)
}

// trim lets go of scratch space that has become large.
func (m *machine) trim() {
	if cap(m.buf) > 1<<20 {
		m.t.Shrink(kernel.Cost(m.buf))
		m.buf = nil
	}
	if cap(m.subject) > 1<<20 {
		m.t.Shrink(kernel.Cost(m.subject))
		m.subject = nil
	}
}

type splitKind uint8

const (
	byBlanks splitKind = iota
	byByte
	byRegex
	byChar    // every character is a field
	byWidth   // FIELDWIDTHS
	byContent // FPAT
	byCSV
)

// A splitter says how a text is split into fields.
type splitter struct {
	kind   splitKind
	c      byte
	re     *matcher
	widths []width
}

// A width is a field of FIELDWIDTHS. A negative n is all the rest.
type width struct{ skip, n int }

func (m *machine) setFS(fs string) {
	m.fs = fs
	m.fsHow = m.splitterOf(fs)
	m.fsSplit = m.fsHow
	if m.csv {
		m.fsHow = splitter{kind: byCSV}
	}
	m.put(m.globals[vPROCINFO].arr, "FS", str("FS"))
}

// splitterOf reads a field separator.
func (m *machine) splitterOf(fs string) splitter {
	switch {
	case fs == " ":
		return splitter{}
	case fs == "":
		return splitter{kind: byChar}
	case fs == "\\":
		return splitter{kind: byByte, c: '\\'}
	case len(fs) == 1:
		return splitter{kind: byByte, c: fs[0]}
	}
	return splitter{kind: byRegex, re: m.regex(fs)}
}

// setWidths reads FIELDWIDTHS.
func (m *machine) setWidths(s string) {
	h := splitter{kind: byWidth}
	for _, f := range strings.Fields(s) {
		var w width
		if a, b, ok := strings.Cut(f, ":"); ok {
			w.skip, f = int(min(1<<30, max(0, toNumber(a)))), b
		}
		if f == "*" {
			w.n = -1
		} else if w.n = int(min(1<<30, toNumber(f))); w.n < 0 {
			m.fatal("invalid FIELDWIDTHS value: `%s'", s)
		}
		h.widths = append(h.widths, w)
	}
	m.fsHow = h
	m.put(m.globals[vPROCINFO].arr, "FS", str("FIELDWIDTHS"))
}

// split appends the fields of s.
func (h *splitter) split(m *machine, s string, dst []value) []value {
	switch h.kind {
	case byBlanks:
		return m.splitBlanks(s, dst)
	case byByte:
		if s == "" {
			return dst
		}
		for {
			i := strings.IndexByte(s, h.c)
			if m.rs == "" && h.c != '\n' {
				if j := strings.IndexByte(s, '\n'); j >= 0 && (i < 0 || j < i) {
					i = j
				}
			}
			if i < 0 {
				return append(dst, input(s))
			}
			dst = m.more(append(dst, input(s[:i])))
			s = s[i+1:]
		}
	case byChar:
		for len(s) > 0 {
			n := m.charLen(s)
			dst = m.more(append(dst, input(s[:n])))
			s = s[n:]
		}
		return dst
	case byWidth:
		return h.splitWidths(m, s, dst)
	case byContent:
		return h.splitContent(m, s, dst)
	case byCSV:
		return m.splitCSV(s, dst)
	}
	return h.splitRegex(m, s, dst, nil)
}

// more bounds a list of fields that grows: a byte may make a value of many. It is counted until the statement ends.
func (m *machine) more(list []value) []value {
	if len(list)&0x3fff == 0 {
		m.t.Step(len(list))
		m.t.Bound("array", int64(len(list)), m.t.K.Limits.Array)
		size := 0x4000 * valueSize
		m.t.Grow(size)
		m.pending += size
	}
	return list
}

// valueSize is what a value takes, in a list that grows.
const valueSize = 40

func (m *machine) splitBlanks(s string, dst []value) []value {
	i := 0
	for {
		for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n') {
			i++
		}
		if i == len(s) {
			return dst
		}
		from := i
		for i < len(s) && s[i] != ' ' && s[i] != '\t' && s[i] != '\n' {
			i++
		}
		dst = m.more(append(dst, value{s: s[from:i], k: maybe}))
	}
}

// splitRegex splits at matches that are not empty, and tells sep of each.
func (h *splitter) splitRegex(m *machine, s string, dst []value, sep func(string)) []value {
	if s == "" {
		return dst
	}
	b := m.bytesOf(s)
	begin, from := 0, 0
	for from <= len(b) {
		x, y := h.re.span(m, b, from)
		if m.rs == "" && sep == nil {
			if j := strings.IndexByte(s[begin:], '\n'); j >= 0 && (x < 0 || begin+j < x) {
				x, y = begin+j, begin+j+1
			}
		}
		if x < 0 {
			break
		}
		if x == y {
			from = y + 1
			continue
		}
		dst = m.more(append(dst, input(s[begin:x])))
		if sep != nil {
			sep(s[x:y])
		}
		begin, from = y, y
	}
	return append(dst, input(s[begin:]))
}

func (h *splitter) splitWidths(m *machine, s string, dst []value) []value {
	for _, w := range h.widths {
		s = s[m.offset(s, w.skip):]
		if s == "" {
			break
		}
		n := len(s)
		if w.n >= 0 {
			n = m.offset(s, w.n)
		}
		dst = append(dst, input(s[:n]))
		s = s[n:]
	}
	return dst
}

// splitContent takes what matches FPAT as fields.
func (h *splitter) splitContent(m *machine, s string, dst []value) []value {
	return h.content(m, s, dst, nil)
}

// content tells where each field stands.
func (h *splitter) content(m *machine, s string, dst []value, tell func(x, y int)) []value {
	if s == "" {
		return dst
	}
	b := m.bytesOf(s)
	from, after := 0, -1
	for from <= len(b) {
		x, y := h.re.span(m, b, from)
		if x < 0 {
			break
		}
		if x == y && x == after {
			from = y + 1 // an empty match right behind a field is none
			after = -1
			continue
		}
		dst = m.more(append(dst, input(s[x:y])))
		if tell != nil {
			tell(x, y)
		}
		after = y
		from = y
		if x == y {
			from++
		}
	}
	return dst
}

// splitCSV reads fields between commas, as --csv has them.
func (m *machine) splitCSV(s string, dst []value) []value {
	if s == "" {
		return dst
	}
	for {
		if !strings.HasPrefix(s, `"`) {
			i := strings.IndexByte(s, ',')
			if i < 0 {
				return append(dst, input(s))
			}
			dst = m.more(append(dst, input(s[:i])))
			s = s[i+1:]
			continue
		}
		var b strings.Builder // no longer than s
		s = s[1:]
		for {
			i := strings.IndexByte(s, '"')
			if i < 0 {
				b.WriteString(s)
				s = ""
				break
			}
			b.WriteString(s[:i])
			s = s[i+1:]
			if !strings.HasPrefix(s, `"`) {
				break
			}
			b.WriteByte('"')
			s = s[1:]
		}
		i := strings.IndexByte(s, ',')
		if i < 0 {
			b.WriteString(s)
			return append(dst, input(b.String()))
		}
		b.WriteString(s[:i])
		dst = m.more(append(dst, input(b.String())))
		s = s[i+1:]
	}
}

// bytesOf gives a string as bytes, valid until the next call.
func (m *machine) bytesOf(s string) []byte {
	m.subject = append(kernel.Room(m.t, "record", max(m.t.K.Limits.Record, m.t.K.Limits.String), m.subject[:0], len(s)), s...)
	return m.subject
}

// charLen tells how long the character is that s begins with.
func (m *machine) charLen(s string) int {
	if m.bytes || s[0] < utf8.RuneSelf {
		return 1
	}
	_, n := utf8.DecodeRuneInString(s)
	return n
}

// offset tells where the n-th character of s begins.
func (m *machine) offset(s string, n int) int {
	if m.bytes || ascii(s) {
		return min(n, len(s))
	}
	i := 0
	for ; n > 0 && i < len(s); n-- {
		i += m.charLen(s[i:])
	}
	return i
}

// chars counts characters.
func (m *machine) chars(s string) int {
	if m.bytes || ascii(s) {
		return len(s)
	}
	return utf8.RuneCountInString(s)
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
