package ripgrep

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

const (
	plain     = "\033[0m"
	pathMark  = plain + "\033[35m"
	lineMark  = plain + "\033[32m"
	matchMark = plain + "\033[1m\033[31m"
)

// finish prints what is to be said of a file as a whole.
func (f *finder) finish() {
	o := f.o
	hit := f.blocks > 0
	if hit {
		f.own.withMatch = 1
	}
	switch {
	case o.quiet:
	case o.filesWithout && !hit, o.files && hit:
		f.paintPath()
		f.endName()
	case o.files || o.filesWithout:
	case o.count && f.nul >= 0 && !f.opaque && (o.max < 0 || f.blocks < o.max): // it is binary, and was not named
	case o.count && (hit || o.zero):
		if o.named {
			f.paintPath()
			if o.nulNames {
				f.out.Byte(0)
			} else {
				f.out.Byte(':')
			}
		}
		n := f.blocks
		if o.countMatches {
			n = f.own.matches
		}
		f.out.Bytes(strconv.AppendInt(f.out.Space(), n, 10))
		f.out.Byte(f.eol)
	case o.json:
		f.jsonEnd()
	default:
		f.rest()
	}
	if o.filesWithout {
		f.found = f.found || !hit
		f.matched = f.found
	}
	if !o.json || f.begun {
		f.total.add(f.own)
	}
	if o.flushed {
		f.out.Flush()
	}
}

// rest prints the context after the last match, and what else is to be said.
func (f *finder) rest() {
	o := f.o
	if f.noticed {
		if o.named {
			f.paintPath()
			f.out.String(": ")
		}
		f.out.Printf("binary file matches (found \"\\0\" byte around offset %d)\n", f.nul)
		f.printed = true
		return
	}
	if o.passthru {
		f.context(len(f.text))
	} else if f.pending > 0 {
		f.due(len(f.text))
	}
	if f.nul >= 0 && !f.opaque && f.begun && (o.max < 0 || f.blocks < o.max) {
		if o.named {
			f.paintPath()
			f.out.String(": ")
		}
		f.out.Printf("WARNING: stopped searching binary file after match (found \"\\0\" byte around offset %d)\n", f.nul)
	}
}

func (f *finder) paintPath() { f.paint(pathMark, f.name) }

func (f *finder) paint(mark, text string) {
	if f.o.colour {
		f.out.String(mark)
		f.out.String(text)
		f.out.String(plain)
		return
	}
	f.out.String(text)
}

// begin prints what stands before the first line of a file.
func (f *finder) begin() {
	if f.begun {
		return
	}
	f.begun = true
	o := f.o
	if o.heading && o.named {
		if f.printed {
			f.out.Byte('\n')
		}
		f.paintPath()
		f.endName()
	} else if f.printed && o.separated && o.before+o.after > 0 {
		f.gap()
	}
	f.printed = true
}

func (f *finder) gap() {
	f.out.String(f.o.separator)
	f.out.Byte('\n')
}

// show prints lines that are selected, and the context before them.
func (f *finder) show(from, to int) {
	o := f.o
	if o.passthru {
		f.context(from)
	} else {
		if f.pending > 0 {
			f.due(from)
		}
		at := from
		for range o.before {
			if at <= f.last {
				break
			}
			at = bytes.LastIndexByte(f.text[f.last:at-1], f.eol) + 1 + f.last
		}
		if f.begun && at > f.last && o.separated {
			f.gap()
		}
		f.begin()
		for at < from {
			end := f.lineEnd(at)
			f.row(at, end, o.contextMark, 0)
			at = end
		}
	}
	f.begin()
	f.selected(from, to)
	f.last = to
	f.pending = o.after
}

// context prints all lines up to a place as context.
func (f *finder) context(to int) {
	for at := f.last; at < to; {
		f.begin()
		end := f.lineEnd(at)
		f.row(at, end, f.o.contextMark, 0)
		at = end
		f.last = end
	}
}

// due prints the context that is due up to a place.
func (f *finder) due(to int) {
	for at := f.last; f.pending > 0 && at < to; f.pending-- {
		end := f.lineEnd(at)
		f.row(at, end, f.o.contextMark, 0)
		at = end
		f.last = end
	}
}

// selected prints lines that are selected.
func (f *finder) selected(from, to int) {
	o := f.o
	switch {
	case o.invert:
		f.whole(from, to)
	case o.only:
		f.each(from, to, func(start, end int) bool {
			f.part(start, end)
			return true
		})
	case o.replace != nil:
		f.replaced(from, to)
	case o.vimgrep:
		f.each(from, to, func(start, _ int) bool {
			at := bytes.LastIndexByte(f.text[:start], f.eol) + 1
			f.row(at, f.lineEnd(at), o.matchMark, start-at+1)
			return true
		})
	default:
		f.whole(from, to)
	}
}

// whole prints lines as they are.
func (f *finder) whole(from, to int) {
	for at := from; at < to; {
		end := f.lineEnd(at)
		column := 0
		if f.o.column && !f.o.invert {
			column = 1
			f.each(from, to, func(start, _ int) bool {
				column = max(start-at, 0) + 1
				return start < at
			})
		}
		f.row(at, end, f.o.matchMark, column)
		at = end
	}
}

// part prints a match by itself, line by line.
func (f *finder) part(start, end int) {
	line := bytes.LastIndexByte(f.text[:start], f.eol) + 1
	for at := start; ; {
		stop := min(f.lineEnd(min(at, len(f.text))), end)
		text := f.text[at:stop]
		if n := len(text); n > 0 && text[n-1] == f.eol {
			text = text[:n-1]
		}
		f.head(at, f.lineEnd(at), at, f.o.matchMark, max(at-line, 0)+1)
		switch {
		case f.o.replace != nil:
			with := f.expand(nil, start, end)
			f.paintMatch(with)
			f.t.Shrink(kernel.Cost(with))
		default:
			f.paintMatch(text)
		}
		f.out.Byte(f.eol)
		if at = stop; at >= end || f.o.replace != nil {
			return
		}
		line = at
	}
}

func (f *finder) paintMatch(text []byte) {
	if f.o.colour {
		f.out.String(matchMark)
		f.out.Bytes(text)
		f.out.String(plain)
		return
	}
	f.out.Bytes(text)
}

// replaced prints lines with their matches replaced.
func (f *finder) replaced(from, to int) {
	var out []byte
	done, column, matches := from, 0, 0
	f.each(from, to, func(start, end int) bool {
		if column == 0 {
			column = start - (bytes.LastIndexByte(f.text[:start], f.eol) + 1) + 1
		}
		out = append(f.room(out, start-done), f.text[done:start]...)
		out = f.expand(out, start, end)
		done = end
		matches++
		return true
	})
	out = append(f.room(out, to-done), f.text[done:to]...)
	defer f.t.Shrink(kernel.Cost(out))
	if n := len(out); n > 0 && out[n-1] == f.eol {
		out = out[:n-1]
	}
	f.head(from, f.lineEnd(from), from, f.o.matchMark, column)
	f.out.Bytes(f.cut(out, matches))
	f.out.Byte(f.eol)
}

// room pays for n more bytes of what is to be printed.
func (f *finder) room(b []byte, n int) []byte {
	return kernel.Room(f.t, "record", f.t.K.Limits.Record, b, n)
}

// expand appends what is put in place of a match to a text that is from room, or nil.
func (f *finder) expand(out []byte, start, end int) []byte {
	text := *f.o.replace
	regs, err := f.re.FindAt(f.text[:end], start, f.regs)
	if err != nil || regs == nil {
		regs = append(f.regs[:0], start, end)
	}
	f.regs = regs
	for i := 0; i < len(text); i++ {
		if text[i] != '$' || i+1 == len(text) {
			out = append(f.room(out, 1), text[i])
			continue
		}
		if text[i+1] == '$' {
			out = append(f.room(out, 1), '$')
			i++
			continue
		}
		name, n := reference(text[i+1:])
		if n == 0 {
			out = append(f.room(out, 1), '$')
			continue
		}
		i += n
		if g := f.group(name); g >= 0 && 2*g+1 < len(regs) && regs[2*g] >= 0 {
			out = append(f.room(out, regs[2*g+1]-regs[2*g]), f.text[regs[2*g]:regs[2*g+1]]...)
		}
	}
	return out
}

// reference reads the name of a group: {name} or the longest one there is.
func reference(s string) (name string, n int) {
	if s[0] == '{' {
		for i := 1; i < len(s); i++ {
			if s[i] == '}' {
				return s[1:i], i + 1
			}
		}
		return "", 0
	}
	for n < len(s) && (s[n] == '_' || s[n] >= '0' && s[n] <= '9' || s[n]|0x20 >= 'a' && s[n]|0x20 <= 'z') {
		n++
	}
	return s[:n], n
}

func (f *finder) group(name string) int {
	if g, err := strconv.Atoi(name); err == nil {
		return g
	}
	for i, n := range f.re.Names() {
		if n == name && n != "" {
			return i + 1
		}
	}
	return -1
}

// head prints what stands before a line: from and to are those of the line,
// and start is where the part of it that is printed begins.
func (f *finder) head(from, to, start int, mark string, column int) {
	o := f.o
	if o.named && !o.heading {
		f.paintPath()
		if o.nulNames {
			f.out.Byte(0)
		} else {
			f.out.String(mark)
		}
	}
	if o.numbers {
		if f.lined < to {
			f.line += int64(bytes.Count(f.text[f.lined:to], []byte{f.eol}))
			if f.text[to-1] != f.eol {
				f.line++
			}
			f.lined = to
		}
		n := f.line
		if to < f.lined {
			n -= int64(bytes.Count(f.text[to:f.lined], []byte{f.eol}))
		}
		f.field(n, mark, true)
	}
	if o.column && column > 0 {
		f.field(int64(column), mark, false)
	}
	if o.offset {
		at := from
		if o.only {
			at = start
		}
		f.field(int64(at), mark, false)
	}
}

func (f *finder) field(n int64, mark string, line bool) {
	switch {
	case f.o.colour && line:
		f.paint(lineMark, strconv.FormatInt(n, 10))
	case f.o.colour:
		f.paint(plain, strconv.FormatInt(n, 10))
	default:
		f.out.Bytes(strconv.AppendInt(f.out.Space(), n, 10))
	}
	f.out.String(mark)
}

// row prints a line.
func (f *finder) row(from, to int, mark string, column int) {
	f.head(from, to, from, mark, column)
	text := f.text[from:f.trimmed(from, to)]
	if f.o.trim {
		text = bytes.TrimLeft(text, " \t\n\v\f\r")
	}
	if short := f.cut(text, 0); len(short) != len(text) || f.o.columns > 0 && len(text) > f.o.columns {
		f.out.Bytes(short)
	} else if f.o.colour && mark == f.o.matchMark && !f.o.invert {
		f.coloured(from, to, len(text))
	} else {
		f.out.Bytes(text)
	}
	f.out.Byte(f.eol)
}

// cut shortens a line that is longer than -M says. It may have matches.
func (f *finder) cut(text []byte, matches int) []byte {
	o := f.o
	if o.columns <= 0 || len(text) <= o.columns {
		return text
	}
	if !o.preview {
		if matches == 0 {
			return []byte("[Omitted long matching line]")
		}
		return fmt.Appendf(nil, "[Omitted long line with %d matches]", matches)
	}
	end := o.columns
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Appendf(nil, "%s [... omitted end of long line]", text[:end])
}

// coloured prints the last length bytes of a line with its matches marked.
func (f *finder) coloured(from, to, length int) {
	end := f.trimmed(from, to)
	done := end - length
	f.each(from, to, func(a, b int) bool {
		a, b = max(a, done), min(b, end)
		if a >= b {
			return a < end
		}
		f.out.Bytes(f.text[done:a])
		f.paintMatch(f.text[a:b])
		done = b
		return true
	})
	f.out.Bytes(f.text[done:end])
}
