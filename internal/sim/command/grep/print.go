package grep

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// colours are the parts of GREP_COLORS, as what stands between "\033[" and "m".
type colours struct {
	match, context    string // what matches, in selected lines and in others
	selected, other   string // whole lines
	file, line, byte_ string
	separator         string
	inverted          bool // -v swaps lines and context
	plain             bool // without clearing to the end of the line
}

func (c *colours) read(t *kernel.Task) {
	*c = colours{match: "01;31", context: "01;31", file: "35", line: "32", byte_: "32", separator: "36"}
	if old := t.Getenv("GREP_COLOR"); old != "" {
		t.Errorf("warning: GREP_COLOR='%s' is deprecated; use GREP_COLORS='mt=%s'", old, old)
		c.match, c.context = old, old
	}
	for part := range strings.SplitSeq(t.Getenv("GREP_COLORS"), ":") {
		name, value, _ := strings.Cut(part, "=")
		if strings.Trim(value, "0123456789;") != "" {
			return
		}
		switch name {
		case "mt":
			c.match, c.context = value, value
		case "ms":
			c.match = value
		case "mc":
			c.context = value
		case "sl":
			c.selected = value
		case "cx":
			c.other = value
		case "fn":
			c.file = value
		case "ln":
			c.line = value
		case "bn":
			c.byte_ = value
		case "se":
			c.separator = value
		case "rv":
			c.inverted = true
		case "ne":
			c.plain = true
		}
	}
}

func (s *search) begin(colour string) {
	if s.o.colour && colour != "" {
		s.out.String("\033[")
		s.out.String(colour)
		s.clear()
	}
}

func (s *search) clear() {
	if s.o.colours.plain {
		s.out.String("m")
	} else {
		s.out.String("m\033[K")
	}
}

func (s *search) reset(colour string) {
	if s.o.colour && colour != "" {
		s.out.String("\033[")
		s.clear()
	}
}

// paint prints a text in a colour.
func (s *search) paint(colour, text string) {
	s.begin(colour)
	s.out.String(text)
	s.reset(colour)
}

func (s *search) mark(sep byte) {
	if !s.o.colour {
		s.out.Byte(sep)
		return
	}
	s.begin(s.o.colours.separator)
	s.out.Byte(sep)
	s.reset(s.o.colours.separator)
}

// fileName prints the name before a line.
func (s *search) fileName(sep byte) {
	if !s.named {
		return
	}
	s.paint(s.o.colours.file, s.name)
	if s.o.nulNames {
		s.out.Byte(0)
	} else {
		s.mark(sep)
	}
}

func appendInt(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }

func (s *search) number(n int64, colour string, sep byte) {
	b := s.out.Space()
	if s.o.tab {
		for limit, k := int64(10), 1; k < s.width; k++ {
			if n < limit {
				b = append(b, ' ')
			}
			limit *= 10
		}
	}
	b = appendInt(b, n)
	if s.o.colour {
		s.paint(colour, string(b))
	} else {
		s.out.Bytes(b)
	}
	s.mark(sep)
}

// head prints what stands before a line or a part of it. It is false where
// that is not text, and then nothing of it is printed.
func (s *search) head(from, to, next int, sep byte) bool {
	o := s.o
	if o.binary != binaryText && !o.bytes && !utf8.Valid(s.buf[from:to]) {
		s.spoilt, s.pending = o.binary == binaryNamed, 0
		return false
	}
	s.fileName(sep)
	if o.numbers {
		if s.counted < next {
			s.lines += int64(bytes.Count(s.buf[s.counted:next], []byte{s.eol}))
			s.counted = next
		}
		s.number(s.lines, o.colours.line, sep)
	}
	if o.offsets {
		s.number(s.base+int64(from), o.colours.byte_, sep)
	}
	if o.tab && (s.named || o.numbers || o.offsets) && to > from {
		s.out.Byte('\t')
	}
	return true
}

// print prints a line, whose end to is behind its eol.
func (s *search) print(from, to int, sep byte) {
	o := s.o
	matching := (sep == ':') != o.invert
	switch {
	case s.mute:
		return
	case o.only:
		if matching && !s.parts(from, to, sep) {
			return
		}
	case !s.head(from, to-1, to, sep):
		return
	case o.colour:
		s.coloured(from, to, sep, matching)
	default:
		s.out.Bytes(s.buf[from:to])
	}
	s.last = to
	if o.lineFlushed {
		s.out.Flush()
	}
}

// parts prints what matches. It is false where that is not text.
func (s *search) parts(from, to int, sep byte) bool {
	c := &s.o.colours
	colour := c.match
	if sep != ':' {
		colour = c.context
	}
	line := s.buf[from : to-1]
	for at := 0; at < len(line); {
		start, end, err := s.re.Span(line, at)
		if err != nil || start < 0 || start >= len(line) {
			return true
		}
		s.t.Step(1)
		if start == end {
			at = start + size(line[start:])
			continue
		}
		if !s.head(from+start, from+end, to, sep) {
			return false
		}
		s.begin(colour)
		s.out.Bytes(line[start:end])
		s.reset(colour)
		s.out.Byte(s.eol)
		at = end
	}
	return true
}

// size gives the length of a character.
func size(b []byte) int {
	_, n := utf8.DecodeRune(b)
	return n
}

// coloured prints a line with its matches marked.
func (s *search) coloured(from, to int, sep byte, matching bool) {
	c := &s.o.colours
	whole, colour := c.other, c.context
	if (sep == ':') != (s.o.invert && c.inverted) {
		whole = c.selected
	}
	if sep == ':' {
		colour = c.match
	}
	line := s.buf[from : to-1]
	done := 0
	if matching && colour != "" {
		for at := 0; at < len(line); {
			start, end, err := s.re.Span(line, at)
			if err != nil || start < 0 || start >= len(line) {
				break
			}
			s.t.Step(1)
			if start == end {
				at = start + size(line[start:])
				continue
			}
			s.begin(whole)
			s.out.Bytes(line[done:start])
			s.begin(colour)
			s.out.Bytes(line[start:end])
			s.reset(colour)
			at, done = end, end
		}
	}
	if whole != "" {
		rest := line[done:]
		if n := len(rest); n > 0 && rest[n-1] == '\r' {
			rest = rest[:n-1]
		}
		if len(rest) > 0 {
			s.begin(whole)
			s.out.Bytes(rest)
			s.reset(whole)
			done += len(rest)
		}
	}
	s.out.Bytes(s.buf[from+done : to])
}
