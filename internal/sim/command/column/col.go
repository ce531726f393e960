package column

import (
	"strings"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

var colrmSpec = command.Spec{
	Name: "colrm", Synopsis: "[startcol [endcol]]", About: "Filter out the specified columns.",
	Options: []command.Option{{Short: 'h', Long: "help"}, {Short: 'V', Long: "version"}}, NoHelp: true,
}

func runColrm(t *kernel.Task) int {
	a, status, ok := colrmSpec.Parse(t)
	if !ok {
		return status
	}
	w := command.Stdout(t)
	if a.Has("h") || a.Has("V") {
		w.String("\nUsage:\n colrm [startcol [endcol]]\n\nFilter out the specified columns.\n")
		return 0
	}
	var bounds [2]uint64
	for i, s := range a.Operands[:min(2, len(a.Operands))] {
		n, err := command.ParseUint(s, "")
		if err != nil {
			t.Errorf("%s argument: '%s'", []string{"first", "second"}[i], s)
			return 1
		}
		bounds[i] = n
	}
	first, last := bounds[0], bounds[1]
	return command.EachFile(t, []string{"-"}, func(_ string, r *command.Reader) {
		var column uint64
		var out []byte
		for b, ok := r.Text(); ok; b, ok = r.Text() {
			out = out[:0]
			for len(b) > 0 {
				c, n := utf8.DecodeRune(b)
				char := b[:n]
				b = b[n:]
				width := uint64(1)
				switch {
				case c == '\t':
					width = 8 - column%8
				case c == '\b':
					if first == 0 || column < first || last > 0 && column > last {
						out = append(out, '\b')
					}
					if column > 0 {
						column--
					}
					continue
				case c == '\n':
					column = 0
					out = append(out, '\n')
					continue
				case c != utf8.RuneError || n > 1:
					width = uint64(command.RuneWidth(c))
				}
				before := column
				column += width
				switch {
				case first == 0 || column < first || last > 0 && before >= last && column > last:
					out = append(out, char...)
				default:
					// What of a wide one is not taken out is blanks.
					for x := before + 1; x <= column; x++ {
						if x < first || last > 0 && x > last {
							out = append(out, ' ')
						}
					}
				}
			}
			w.Bytes(out)
			t.Step(1)
		}
	})
}

var colSpec = command.Spec{
	Name: "col", Synopsis: "[options]", About: "Filter out reverse line feeds from standard input.",
	Options: []command.Option{
		{Short: 'b', Long: "no-backspaces", Help: "do not output backspaces"},
		{Short: 'f', Long: "fine", Help: "permit forward half line feeds"},
		{Short: 'p', Long: "pass", Help: "pass unknown control sequences"},
		{Short: 'h', Long: "tabs", Help: "convert spaces to tabs"},
		{Short: 'x', Long: "spaces", Help: "convert tabs to spaces"},
		{Short: 'l', Long: "lines", Arg: command.Required, Name: "num", Help: "(ignored)"},
		{Short: 'H', Long: "help"}, {Short: 'V', Long: "version"},
	},
	NoHelp: true,
}

// A mark is a character at a place of a line.
type mark struct {
	char  rune
	bytes string
	width int
}

// A sheet is what col writes on: lines of places with what was overstruck
// there. Lines count in halves.
type sheet struct {
	t      *kernel.Task
	lines  map[int][]place
	line   int
	column int
	last   int
	first  int
}

type place struct{ marks []mark }

// mostColumns and mostLines bound a sheet.
const (
	mostColumns = 1 << 20
	mostBack    = 1 << 20
)

func runCol(t *kernel.Task) int {
	a, status, ok := colSpec.Parse(t)
	if !ok {
		return status
	}
	w := command.Stdout(t)
	if a.Has("H") || a.Has("V") {
		w.String("\nUsage:\n col [options]\n\nFilter out reverse line feeds from standard input.\n")
		return 0
	}
	if len(a.Operands) > 0 {
		t.Errorf("bad usage")
		_, _ = t.Write(2, []byte("Try 'col --help' for more information.\n"))
		return 1
	}
	single, pass, spaces := a.Has("b"), a.Has("p"), a.Has("x")
	fine := a.Has("f")
	return command.EachFile(t, []string{"-"}, func(_ string, r *command.Reader) {
		s := &sheet{t: t, lines: map[int][]place{}}
		s.read(r, pass, fine)
		s.write(w, single, spaces, fine)
	})
}

func (s *sheet) read(r *command.Reader, pass, fine bool) {
	escape := false
	for b, ok := r.Text(); ok; b, ok = r.Text() {
		for len(b) > 0 {
			c, n := utf8.DecodeRune(b)
			char := string(b[:n])
			b = b[n:]
			s.t.Step(1)
			if escape {
				escape = false
				switch c {
				case 7:
					s.line -= 2
				case 8:
					s.line--
				case 9:
					s.line++
				}
				s.bound()
				continue
			}
			switch c {
			case 27:
				escape = true
			case '\b':
				s.column = max(0, s.column-1)
			case '\r':
				s.column = 0
			case '\n':
				s.line += 2
				s.column = 0
				s.bound()
			case '\t':
				s.column = (s.column | 7) + 1
			case 11:
				s.line -= 2
				s.bound()
			case ' ':
				s.column++
			case 14, 15:
			default:
				width := 1
				if c != utf8.RuneError || n > 1 {
					width = command.RuneWidth(c)
					if !command.IsPrintable(c) && !pass {
						continue
					}
				}
				s.put(mark{c, char, max(1, width)}, fine)
			}
			s.t.Bound("record", int64(s.column), mostColumns)
		}
	}
}

func (s *sheet) bound() {
	s.line = max(s.line, -mostBack)
	s.last = max(s.last, s.line)
	s.first = min(s.first, s.line)
}

// put writes a character. Half lines go to the next whole one unless fine.
func (s *sheet) put(m mark, fine bool) {
	s.t.Grow(48)
	at := s.line
	if !fine {
		at += at & 1
	}
	l := s.lines[at]
	for len(l) <= s.column {
		s.t.Grow(24)
		l = append(l, place{})
	}
	l[s.column].marks = append(l[s.column].marks, m)
	s.lines[at] = l
	s.last, s.first = max(s.last, at), min(s.first, at)
	s.column += m.width
}

// write writes the lines.
func (s *sheet) write(w *command.Writer, single, spaces, fine bool) {
	ends := s.last
	for at := s.first; at <= ends; at++ {
		s.t.Step(1)
		half := at&1 != 0
		if l, ok := s.lines[at]; ok {
			if half && fine {
				w.String("\x1b9\r")
			}
			s.writeLine(w, l, single, spaces)
			if half && fine {
				w.String("\x1b9\r")
				continue
			}
		}
		if !half && at < ends {
			w.Byte('\n')
		}
	}
	if len(s.lines) > 0 && s.last&1 == 0 {
		if _, ok := s.lines[s.last]; ok {
			w.Byte('\n')
		}
	}
}

func (s *sheet) writeLine(w *command.Writer, l []place, single, spaces bool) {
	column := 0
	for at := range l {
		marks := l[at].marks
		if len(marks) == 0 {
			continue
		}
		if at > column {
			gap(w, column, at, spaces)
			column = at
		}
		if single {
			marks = marks[len(marks)-1:]
		}
		for i, m := range marks {
			w.String(m.bytes)
			if i < len(marks)-1 {
				w.String(strings.Repeat("\b", m.width))
			}
		}
		column += marks[len(marks)-1].width
	}
}

// gap goes from one column to another, by tabs if there are no spaces asked
// for.
func gap(w *command.Writer, from, to int, spaces bool) {
	if !spaces && to-from > 1 {
		for next := (from | 7) + 1; next <= to; next = (from | 7) + 1 {
			w.Byte('\t')
			from = next
		}
	}
	w.Repeat(' ', to-from)
}
