package diff

import (
	"bytes"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// A side is one of the two files that are compared.
type side struct {
	name    string // as it is opened
	label   string // as it is shown
	info    vfs.Info
	missing bool // it counts as empty
	err     error
	text    []byte
	lines   [][]byte // with their newlines, but for the last one
	prefix  int      // lines at the start that are the same in both
	class   []int    // of the lines after the prefix, without what is the same at the end
	changed flags
}

// look describes a file, or standard input.
func (d *differ) look(name string) side {
	s := side{name: name, label: name}
	if name == "-" {
		s.info, s.err = command.StatFD(d.t, 0)
		s.info.Mtime = time.Now()
		return s
	}
	if d.noFollow {
		s.info, s.err = d.t.View.Lstat(name)
	} else {
		s.info, s.err = command.Stat(d.t, name)
	}
	return s
}

// read reads a file into memory.
func (s *side) read(t *kernel.Task) error {
	if s.missing {
		return nil
	}
	b, err := command.ReadAll(t, s.name)
	s.text = b
	return err
}

// binary reports whether a file is no text: it has a NUL near its start.
func (s *side) binary() bool {
	return bytes.IndexByte(s.text[:min(len(s.text), 4096)], 0) >= 0
}

func split(t *kernel.Task, text []byte) [][]byte {
	n := bytes.Count(text, []byte{'\n'}) + 1
	t.Grow(24 * n)
	lines := make([][]byte, 0, n)
	for len(text) > 0 {
		i := bytes.IndexByte(text, '\n')
		if i < 0 {
			return append(lines, text)
		}
		lines = append(lines, text[:i+1:i+1])
		text = text[i+1:]
	}
	return lines
}

// spaces says which white space of a line does not count.
type spaces uint8

const (
	allCount spaces = iota
	tabsExpand
	trailing
	tabsTrailing
	amount
	none
)

// key gives what of a line counts. It is the line itself where all does.
func (d *differ) key(line []byte, buf []byte) []byte {
	if d.spaces == allCount && !d.fold && !d.stripCR {
		return line
	}
	whole := len(line) > 0 && line[len(line)-1] == '\n'
	if whole {
		line = line[:len(line)-1]
	}
	buf = buf[:0]
	switch d.spaces {
	case none:
		for _, c := range line {
			if !space(c) {
				buf = append(buf, c)
			}
		}
	case amount:
		for i := 0; i < len(line); {
			if !space(line[i]) {
				buf = append(buf, line[i])
				i++
				continue
			}
			for i < len(line) && space(line[i]) {
				i++
			}
			if i < len(line) {
				buf = append(buf, ' ')
			}
		}
	case tabsExpand, tabsTrailing:
		col := 0
		for _, c := range line {
			if c == '\t' {
				for n := d.tab - col%d.tab; n > 0; n-- {
					buf = append(buf, ' ')
					col++
				}
				continue
			}
			buf = append(buf, c)
			col++
		}
		if d.spaces == tabsTrailing {
			buf = trimRight(buf)
		}
	case trailing:
		buf = append(buf, trimRight(line)...)
	case allCount:
		buf = append(buf, line...)
	}
	if d.fold {
		lower(buf)
	}
	if whole || d.spaces >= trailing {
		buf = append(buf, '\n')
	}
	return buf
}

func trimRight(b []byte) []byte {
	for len(b) > 0 && space(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

func space(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// lower folds the case of ASCII in place, and of other letters where their
// length stays.
func lower(b []byte) {
	for i := 0; i < len(b); {
		if c := b[i]; c < utf8.RuneSelf {
			if c >= 'A' && c <= 'Z' {
				b[i] = c + 32
			}
			i++
			continue
		}
		_, n := utf8.DecodeRune(b[i:])
		if l := bytes.ToLower(b[i : i+n]); len(l) == n && utf8.Valid(b[i:i+n]) {
			copy(b[i:], l)
		}
		i += n
	}
}

// stripCR takes away carriage returns before newlines.
func stripCR(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")) }

// prepare finds the lines of both files and their classes: lines that count
// as the same have the same number.
func (d *differ) prepare(a, b *side) (classes int) {
	t := d.t
	if d.stripCR {
		a.text, b.text = stripCR(a.text), stripCR(b.text)
	}
	a.lines, b.lines = split(t, a.text), split(t, b.text)
	prefix, suffix := d.ends(a, b)
	a.prefix, b.prefix = prefix, prefix
	table := newClasses(max(len(a.lines), len(b.lines)))
	t.Grow(4 * len(table.slots))
	defer t.Shrink(4 * len(table.slots))
	var buf []byte
	for _, s := range []*side{a, b} {
		own := s.lines[prefix : len(s.lines)-suffix]
		t.Grow(8 * len(own))
		s.class = make([]int, len(own))
		for i, line := range own {
			k := d.key(line, buf)
			passing := len(k) > 0 && &k[0] != &line[0]
			if passing {
				buf = k
			}
			n, fresh := table.find(k, passing)
			if fresh {
				t.Grow(len(k) + 48)
			}
			s.class[i] = n
			t.Step(1 + len(line)>>6)
		}
	}
	return len(table.texts)
}

// ends counts the lines that are the same at the start and at the end, but for
// as many as may be shown around changes.
func (d *differ) ends(a, b *side) (prefix, suffix int) {
	n, m := len(a.lines), len(b.lines)
	for prefix < n && prefix < m && bytes.Equal(a.lines[prefix], b.lines[prefix]) {
		prefix++
	}
	whole := prefix == n && prefix == m
	horizon := max(d.horizon, d.context)
	if !whole {
		prefix = max(0, prefix-horizon)
	}
	for suffix < n-prefix && suffix < m-prefix && bytes.Equal(a.lines[n-1-suffix], b.lines[m-1-suffix]) {
		suffix++
	}
	suffix = max(0, suffix-horizon)
	d.t.Step(prefix + suffix)
	return prefix, suffix
}

// blank reports whether a line counts as blank for -B.
func (d *differ) blank(line []byte) bool {
	line = bytes.TrimSuffix(line, []byte{'\n'})
	if d.spaces >= trailing && d.spaces != tabsExpand {
		return len(trimRight(line)) == 0
	}
	return len(line) == 0
}

// A hunk is a run of changes: lines of both files, from 0, the last ones not
// within.
type hunk struct {
	a0, a1, b0, b1 int
	trivial        bool // -B or -I let it pass
}

// hunks compares the files.
func (d *differ) hunks(a, b *side) []hunk {
	classes := d.prepare(a, b)
	a.changed, b.changed = changes(d.t, a.class, b.class, classes, d.minimal)
	var list []hunk
	i, j := 0, 0
	for i < len(a.class) || j < len(b.class) {
		if !a.changed.at(i) && !b.changed.at(j) {
			i++
			j++
			continue
		}
		h := hunk{a0: i, b0: j}
		for a.changed.at(i) {
			i++
		}
		for b.changed.at(j) {
			j++
		}
		h.a1, h.b1 = i, j
		h.a0, h.a1, h.b0, h.b1 = h.a0+a.prefix, h.a1+a.prefix, h.b0+b.prefix, h.b1+b.prefix
		h.trivial = d.trivial(a, b, h)
		d.t.Grow(40)
		list = append(list, h)
	}
	return list
}

// trivial reports whether all lines of a hunk are blank, or such as -I names.
func (d *differ) trivial(a, b *side, h hunk) bool {
	if !d.ignoreBlank && d.ignore == nil {
		return false
	}
	pass := func(line []byte) bool {
		if d.ignoreBlank && d.blank(line) {
			return true
		}
		if d.ignore == nil {
			return false
		}
		ok, err := d.ignore.Match(bytes.TrimSuffix(line, []byte{'\n'}))
		return ok && err == nil
	}
	for _, line := range a.lines[h.a0:h.a1] {
		if !pass(line) {
			return false
		}
	}
	for _, line := range b.lines[h.b0:h.b1] {
		if !pass(line) {
			return false
		}
	}
	return true
}

// stamp is a file's time in a header.
func (d *differ) stamp(s *side) string {
	m := s.info.Mtime
	if s.missing {
		m = time.Unix(0, 0)
	}
	return m.In(d.zone).Format("2006-01-02 15:04:05.000000000 -0700")
}

// header is a file's line at the top of the output, without the mark.
func (d *differ) header(s *side, n int) string {
	if n < len(d.labels) {
		return d.labels[n]
	}
	return shown(s.label) + "\t" + d.stamp(s)
}

// shown writes a name in a header: quoted as in C if it has odd bytes.
func shown(name string) string {
	odd := strings.ContainsAny(name, "\"\\") && strings.ContainsAny(name, "\n\t\"\\")
	for i := range len(name) {
		if name[i] < ' ' || name[i] == 0x7f {
			odd = true
		}
	}
	if !odd {
		return name
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c >= 7 && c <= 13:
			b.WriteByte('\\')
			b.WriteByte("abtnvfr"[c-7])
		case c < ' ' || c == 0x7f:
			b.WriteString("\\" + string([]byte{'0' + c>>6, '0' + c>>3&7, '0' + c&7}))
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
