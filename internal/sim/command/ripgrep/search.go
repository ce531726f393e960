package ripgrep

import (
	"bytes"
	"encoding/binary"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
)

// A searcher is what concerns the file that is searched. All of it is held.
type searcher struct {
	buf []byte

	name    string
	text    []byte // what is looked at
	eol     byte
	nul     int  // where the first zero byte is, or -1
	edge    int  // up to where lines are printed then
	opaque  bool // what is behind it is not printed
	noticed bool // there was something to print
	line    int64
	lined   int // up to where the lines are counted
	last    int // the end of what was printed
	pending int // lines of context that are due
	blocks  int64
	begun   bool
	printed bool // anything, in any file
	own     stats
	regs    []int
	found   bool // some file was listed that has no match
}

// pieceSize is how much is read at a time; in so much of the start of a file
// a zero byte makes it binary.
const pieceSize = 64 << 10

func (f *finder) close() { f.t.Shrink(cap(f.buf)) }

// load reads a whole file. Where a binary file is left out, it reads no more
// than shows that it is one: ok is false.
func (f *finder) load(r io.Reader, named bool) (ok bool, err error) {
	n := 0
	for {
		if len(f.buf)-n < pieceSize {
			f.buf = command.Room(f.t, f.buf, 2*pieceSize)
			f.buf = f.buf[:cap(f.buf)]
		}
		k, err := r.Read(f.buf[n : n+pieceSize])
		f.t.Step(1 + k>>7)
		if n == 0 && !named && !f.o.text && !f.o.binary && !f.o.nul && bytes.IndexByte(f.buf[:k], 0) >= 0 && !wide(f.buf[:k]) {
			return false, nil
		}
		n += k
		if err == io.EOF {
			f.text = f.decoded(f.buf[:n])
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// wide says whether a text begins as UTF-16 does.
func wide(b []byte) bool {
	return bytes.HasPrefix(b, []byte{0xff, 0xfe}) || bytes.HasPrefix(b, []byte{0xfe, 0xff})
}

// decoded takes away what tells the encoding, and makes UTF-8 of UTF-16.
func (f *finder) decoded(b []byte) []byte {
	if !wide(b) {
		return bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if b[0] == 0xfe {
		order = binary.BigEndian
	}
	b = b[2:]
	units := make([]uint16, len(b)/2)
	f.t.Grow(6 * len(units))
	defer f.t.Shrink(6 * len(units))
	for i := range units {
		units[i] = order.Uint16(b[2*i:])
	}
	return []byte(string(utf16.Decode(units)))
}

// search searches one file, and prints what is to be said of it.
func (f *finder) search(name string, r io.Reader, named bool) {
	o := f.o
	ok, err := f.load(r, named)
	if err != nil {
		f.fail(name, err)
		return
	}
	f.own = stats{searches: 1, searched: int64(len(f.text))}
	if !ok {
		if !f.o.json {
			f.total.add(f.own)
		}
		return
	}
	f.name, f.eol = name, '\n'
	if o.nul {
		f.eol = 0
	}
	f.line, f.lined, f.last, f.pending, f.blocks, f.begun = 0, 0, 0, 0, 0, false
	f.nul, f.opaque, f.noticed = -1, false, false
	if !o.text && !o.nul {
		f.nul = bytes.IndexByte(f.text, 0)
	}
	if f.nul >= 0 {
		f.binary(named)
	}
	f.scan()
	f.finish()
}

// binary prepares a text with zero bytes: where the file was named they end
// lines, and others end at the first one.
func (f *finder) binary(named bool) {
	f.edge = f.nul
	if !f.mapped() {
		f.edge = f.piece()
	}
	if !named && !f.o.binary {
		f.text = f.text[:f.edge]
		return
	}
	f.opaque = true
	for b := f.text; ; {
		i := bytes.IndexByte(b, 0)
		if i < 0 {
			return
		}
		b[i] = '\n'
		b = b[i+1:]
	}
}

// mapped says whether rg would have the whole file at once, as where a few
// files are named and no directory.
func (f *finder) mapped() bool {
	const few = 10
	if len(f.o.paths) > few {
		return false
	}
	for _, path := range f.o.paths {
		if path == "-" || f.several(path) {
			return false
		}
	}
	return len(f.o.paths) > 0
}

// piece gives where the piece begins that the first zero byte is in, of whole
// lines that rg reads at a time.
func (f *finder) piece() int {
	for at, n := 0, pieceSize; ; {
		if f.nul < at+n {
			return at
		}
		if i := bytes.LastIndexByte(f.text[at:at+n], f.eol); i >= 0 {
			at, n = at+i+1, pieceSize
		} else {
			n *= 2
		}
	}
}

// scan goes through the text.
func (f *finder) scan() {
	o := f.o
	b := f.text
	for pos := 0; pos < len(b); {
		from, to := f.next(pos)
		f.t.Step(1)
		if o.invert {
			end := from
			if from < 0 {
				end = len(b)
			}
			for pos < end {
				to := f.lineEnd(pos)
				if !f.block(pos, to) {
					return
				}
				pos = to
			}
			if from >= 0 {
				pos = to
			}
			continue
		}
		if from < 0 {
			return
		}
		if !f.block(from, to) {
			return
		}
		if o.stop && to < len(b) {
			if next, _ := f.next(to); next != to {
				return
			}
		}
		pos = to
	}
}

// lineEnd gives the place behind the line that at is in.
func (f *finder) lineEnd(at int) int {
	if i := bytes.IndexByte(f.text[at:], f.eol); i >= 0 {
		return at + i + 1
	}
	return len(f.text)
}

// next gives the next lines that match; from is -1 where there are none.
func (f *finder) next(pos int) (from, to int) {
	b := f.text
	if !f.o.multiline {
		start, end, err := f.re.FindLine(b, pos)
		if err != nil {
			f.broken(err)
			return -1, -1
		}
		if start < 0 {
			return -1, -1
		}
		return start, min(end+1, len(b))
	}
	start, end := f.span(b, pos)
	if start < 0 || start == len(b) && pos < len(b) && b[len(b)-1] == f.eol {
		return -1, -1
	}
	from = bytes.LastIndexByte(b[:start], f.eol) + 1
	to = f.lineEnd(max(start, end-1))
	for end < to {
		again, until := f.span(b, max(end, start+1))
		if again < 0 || again >= to {
			break
		}
		start, end = again, until
		to = max(to, f.lineEnd(max(start, end-1)))
	}
	return from, to
}

func (f *finder) span(b []byte, at int) (start, end int) {
	if at > len(b) {
		return -1, -1
	}
	start, end, err := f.re.Span(b, at)
	f.t.Step(1)
	if err != nil {
		f.broken(err)
		return -1, -1
	}
	return start, end
}

func (f *finder) broken(err error) { f.fail(f.name, err) }

// block counts and prints lines that are selected, and says whether to go on.
func (f *finder) block(from, to int) bool {
	o := f.o
	f.blocks++
	f.matched = true
	f.own.lines++
	if o.multiline && !o.invert {
		f.own.lines += int64(bytes.Count(f.text[from:to-1], []byte{f.eol}))
	}
	switch {
	case o.countMatches || o.json || o.stats:
		f.own.matches += f.matches(from, to)
	default:
		f.own.matches++
	}
	switch {
	case o.quiet || o.files || o.filesWithout:
		return o.stats
	case o.count:
	case o.json:
		f.jsonBlock(from, to)
	case f.opaque && (f.nul < pieceSize || to > f.edge):
		f.noticed = true
		return false
	default:
		f.show(from, to)
	}
	return o.max < 0 || f.blocks < o.max
}

// matches counts those in lines.
func (f *finder) matches(from, to int) int64 {
	if f.o.invert {
		return 0
	}
	n := int64(0)
	f.each(from, to, func(int, int) bool {
		n++
		return true
	})
	return n
}

// each calls do for each match in lines; without the end of the last one.
func (f *finder) each(from, to int, do func(start, end int) bool) {
	b, base, at := f.text[from:f.trimmed(from, to)], from, 0
	if f.o.multiline {
		b, base, at = f.text[:to], 0, from
	}
	for prior := -1; at <= len(b); {
		start, end := f.span(b, at)
		if start < 0 || f.o.multiline && start == len(b) && b[len(b)-1] == f.eol {
			return
		}
		if start == end && start == prior {
			at = end + size(b[end:])
			continue
		}
		if !do(base+start, base+end) {
			return
		}
		at, prior = end, end
		if start == end {
			at += size(b[end:])
		}
	}
}

// size gives the length of the first character, 1 where there is none.
func size(b []byte) int {
	if len(b) == 0 {
		return 1
	}
	_, n := utf8.DecodeRune(b)
	return n
}

// trimmed gives the end of a line's text.
func (f *finder) trimmed(from, to int) int {
	if to > from && f.text[to-1] == f.eol {
		return to - 1
	}
	return to
}
