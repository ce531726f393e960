package text

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/regex"
)

var csplitSpec = command.Spec{
	Name: "csplit", Synopsis: "[OPTION]... FILE PATTERN...",
	About: "Output pieces of FILE separated by PATTERN(s) to files 'xx00', 'xx01', ..., and output byte counts of each piece to standard output.",
	Options: []command.Option{
		{Short: 'b', Long: "suffix-format", Arg: command.Required, Name: "FORMAT", Help: "use sprintf FORMAT instead of %02d"},
		{Short: 'f', Long: "prefix", Arg: command.Required, Name: "PREFIX", Help: "use PREFIX instead of 'xx'"},
		{Short: 'k', Long: "keep-files", Help: "do not remove output files on errors"},
		{Long: "suppress-matched", Help: "suppress the lines matching PATTERN"},
		{Short: 'n', Long: "digits", Arg: command.Required, Name: "DIGITS", Help: "use specified number of digits instead of 2"},
		{Short: 's', Long: "quiet", Help: "do not print counts of output file sizes"},
		{Short: 's', Long: "silent"},
		{Short: 'q'},
		{Short: 'z', Long: "elide-empty-files", Help: "suppress empty output files"},
	},
}

// A border is a pattern: a line number, or an expression with an offset.
type border struct {
	text    string
	line    int
	re      *regex.Regexp
	offset  int
	ignore  bool // %expression%: what is before it is left out
	repeat  int
	forever bool
}

// A contextSplitter cuts a text that it holds as a whole. next is the line
// that would be written next, current the one that was looked at last; both
// count from 1.
type contextSplitter struct {
	t        *kernel.Task
	data     []byte
	ends     []int // of the lines, behind their newlines
	next     int
	current  int
	prefix   string
	format   string
	keep     bool
	silent   bool
	elide    bool
	suppress bool

	made    []string
	out     *command.Output
	w       *command.Writer
	written int
	name    string
}

func runCsplit(t *kernel.Task) int {
	a, status, ok := csplitSpec.Parse(t)
	if !ok {
		return status
	}
	s := &contextSplitter{t: t, prefix: "xx", format: "%02d", keep: a.Has("k"), silent: a.Has("s") || a.Has("q"), elide: a.Has("z"), suppress: a.Has("suppress-matched"), next: 1}
	for _, f := range a.Flags {
		switch f.Key {
		case "f":
			s.prefix = f.Value
		case "b":
			format, err := suffixFormat(f.Value)
			if err != nil {
				t.Errorf("%s", err)
				return 1
			}
			s.format = format
		case "n":
			n, err := command.ParseUintWithin(f.Value, "", 0, math.MaxInt32)
			if err != nil {
				command.BadNumber(t, "invalid number", f.Value, err)
				return 1
			}
			s.format = fmt.Sprintf("%%0%dd", min(n, 4096))
		}
	}
	switch len(a.Operands) {
	case 0:
		return csplitSpec.Usage(t, "missing operand")
	case 1:
		return csplitSpec.Usage(t, "missing operand after %s", command.Quote(a.Operands[0]))
	}
	borders, ok := s.parse(a.Operands[1:])
	if !ok {
		return 1
	}
	r, err := command.OpenReader(t, a.Operands[0])
	if err != nil {
		command.ComplainFile(t, "cannot open %s for reading", a.Operands[0], err)
		return 1
	}
	defer r.Close()
	if s.data, err = r.All(); err != nil {
		t.Errorf("read error: %s", reason(err))
		return 1
	}
	n := bytes.Count(s.data, []byte{'\n'}) + 1
	t.Grow(8 * n)
	s.ends = make([]int, 0, n)
	for at := 0; at < len(s.data); {
		i := bytes.IndexByte(s.data[at:], '\n')
		if i < 0 {
			at = len(s.data)
		} else {
			at += i + 1
		}
		s.ends = append(s.ends, at)
	}
	defer func() {
		if s.out != nil {
			_ = s.out.Close()
		}
	}()
	s.run(borders)
	return 0
}

// suffixFormat turns a format of C for one number into one of fmt.
func suffixFormat(s string) (string, error) {
	var b strings.Builder
	found := false
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		if strings.HasPrefix(s[i:], "%%") {
			b.WriteString("%%")
			i++
			continue
		}
		if found {
			return "", errors.New("too many % conversion specifications in suffix")
		}
		found = true
		start := i
		for i++; i < len(s) && strings.IndexByte("-+ #0'.123456789", s[i]) >= 0; i++ {
		}
		if i-start > 8 {
			return "", errors.New("invalid flags in conversion specification: " + s[start:i])
		}
		flags := strings.ReplaceAll(s[start:i], "'", "")
		if i == len(s) {
			return "", errors.New("missing conversion specifier in suffix")
		}
		switch c := s[i]; c {
		case 'd', 'i', 'u':
			b.WriteString(flags + "d")
		case 'o', 'x', 'X':
			b.WriteString(flags + string(rune(c)))
		default:
			return "", fmt.Errorf("invalid conversion specifier in suffix: %c", c)
		}
	}
	if !found {
		return "", errors.New("missing % conversion specification in suffix")
	}
	return b.String(), nil
}

func (s *contextSplitter) parse(args []string) ([]*border, bool) {
	var list []*border
	last := uint64(0)
	for i := 0; i < len(args); i++ {
		text := args[i]
		b := &border{text: text}
		if text != "" && (text[0] == '/' || text[0] == '%') {
			if !s.expression(b) {
				return nil, false
			}
		} else {
			n, err := command.ParseUint(text, "")
			switch {
			case err != nil && !errors.Is(err, command.ErrLarge):
				s.t.Errorf("%s: invalid pattern", command.Quote(text))
				return nil, false
			case n == 0:
				s.t.Errorf("%s: line number must be greater than zero", text)
				return nil, false
			case n < last:
				s.t.Errorf("line number %s is smaller than preceding line number, %d", command.Quote(text), last)
				return nil, false
			case n == last:
				s.t.Errorf("warning: line number %s is the same as preceding line number", command.Quote(text))
			}
			last = n
			b.line = int(min(n, math.MaxInt32))
		}
		if i+1 < len(args) && strings.HasPrefix(args[i+1], "{") {
			i++
			if !s.repeat(b, args[i]) {
				return nil, false
			}
		}
		list = append(list, b)
	}
	return list, true
}

func (s *contextSplitter) expression(b *border) bool {
	delim := b.text[0]
	end := strings.LastIndexByte(b.text, delim)
	if end == 0 {
		s.t.Errorf("%s: closing delimiter '%c' missing", b.text, delim)
		return false
	}
	re, err := command.CompileRegex(s.t, b.text[1:end], regex.Options{Flavour: regex.Expr, NoSub: true})
	if err != nil {
		s.t.Errorf("%s: invalid regular expression: %s", command.Quote(b.text), err)
		return false
	}
	b.re, b.ignore = re, delim == '%'
	if rest := b.text[end+1:]; rest != "" {
		n, err := command.ParseInt(strings.TrimPrefix(rest, "+"), "", math.MinInt32, math.MaxInt32)
		if err != nil {
			s.t.Errorf("%s: integer expected after delimiter", command.Quote(b.text))
			return false
		}
		b.offset = int(n)
	}
	return true
}

func (s *contextSplitter) repeat(b *border, text string) bool {
	if !strings.HasSuffix(text, "}") {
		s.t.Errorf("%s: '}' is required in repeat count", command.Quote(text))
		return false
	}
	n := text[1 : len(text)-1]
	if n == "*" {
		b.forever = true
		return true
	}
	v, err := command.ParseUint(n, "")
	if err != nil && !errors.Is(err, command.ErrLarge) {
		s.t.Errorf("%s}: integer required between '{' and '}'", command.Quote(text[:len(text)-1]))
		return false
	}
	b.repeat = int(min(v, math.MaxInt32))
	return true
}

// line gives a line, with its newline, or nil behind the last.
func (s *contextSplitter) line(n int) []byte {
	if n < 1 || n > len(s.ends) {
		return nil
	}
	start := 0
	if n > 1 {
		start = s.ends[n-2]
	}
	return s.data[start:s.ends[n-1]]
}

func (s *contextSplitter) run(borders []*border) {
	for _, b := range borders {
		for i := 0; b.forever || i <= b.repeat; i++ {
			s.t.Step(1)
			if b.re != nil {
				if s.match(b, i) {
					return
				}
			} else {
				s.count(b, i)
			}
		}
	}
	s.create()
	s.rest()
	s.close()
}

// match writes up to a match; done is that there is none any more, and that is
// fine.
func (s *contextSplitter) match(b *border, repetition int) (done bool) {
	if !b.ignore {
		s.create()
	}
	for {
		s.current++
		line := s.line(s.current)
		if line == nil {
			if b.forever {
				if !b.ignore {
					s.rest()
					s.close()
				}
				return true
			}
			s.t.Errorf("%s: match not found%s", command.Quote(b.text), onRepetition(repetition))
			if !b.ignore {
				s.rest()
				s.close()
			}
			s.fatal()
		}
		s.t.Step(1)
		ok, err := b.re.Match(bytes.TrimSuffix(line, []byte{'\n'}))
		if err != nil {
			s.t.Errorf("error in regular expression search")
			s.fatal()
		}
		if ok {
			break
		}
		if b.offset >= 0 {
			s.take(b.ignore)
		}
	}
	end := s.current + b.offset
	if s.next > end {
		s.t.Errorf("%s: line number out of range", command.Quote(b.text))
		s.fatal()
	}
	for s.next < end {
		if !s.take(b.ignore) {
			s.t.Errorf("%s: line number out of range", command.Quote(b.text))
			s.fatal()
		}
	}
	if !b.ignore {
		s.close()
	}
	if b.offset > 0 {
		s.current = end
	}
	if s.suppress {
		s.take(true)
	}
	return false
}

func onRepetition(n int) string {
	if n == 0 {
		return ""
	}
	return " on repetition " + strconv.Itoa(n)
}

// count writes up to a line by its number.
func (s *contextSplitter) count(b *border, repetition int) {
	end := b.line * (repetition + 1)
	fail := func() {
		s.t.Errorf("%s: line number out of range%s", command.Quote(strconv.Itoa(b.line)), onRepetition(repetition))
		s.fatal()
	}
	s.create()
	if s.suppress && s.next > len(s.ends) {
		fail()
	}
	for s.next < end {
		if !s.take(false) {
			fail()
		}
	}
	s.close()
	if s.suppress {
		s.take(true)
	}
	if !s.suppress && s.next > len(s.ends) {
		fail()
	}
}

// take writes the next line, or passes over it.
func (s *contextSplitter) take(ignore bool) bool {
	line := s.line(s.next)
	if line == nil {
		return false
	}
	s.t.Step(1)
	s.current = max(s.current, s.next)
	s.next++
	if !ignore {
		s.w.Bytes(line)
		s.written += len(line)
	}
	return true
}

func (s *contextSplitter) rest() {
	for s.take(false) {
	}
}

func (s *contextSplitter) create() {
	name := s.prefix + fmt.Sprintf(s.format, len(s.made))
	o, err := command.Create(s.t, name, linux.O_TRUNC)
	if err != nil {
		command.FailFile(s.t, name, err)
		s.fatal()
	}
	s.made = append(s.made, name)
	s.out, s.name, s.written = o, name, 0
	s.w = command.NewWriter(o, func(err error) {
		s.t.Errorf("write error for %s: %s", command.QuoteAlways(name), reason(err))
		s.fatal()
	})
}

func (s *contextSplitter) close() {
	if s.out == nil {
		return
	}
	s.w.Flush()
	_ = s.out.Close()
	s.out = nil
	if s.written == 0 && s.elide {
		s.remove(s.name)
		s.made = s.made[:len(s.made)-1]
		return
	}
	if !s.silent {
		command.Stdout(s.t).Printf("%d\n", s.written)
	}
}

func (s *contextSplitter) remove(name string) {
	if err := s.t.View.Unlink(name); err != nil {
		command.FailFile(s.t, name, err)
	}
}

// fatal ends the task, and takes back the files unless they are to stay.
func (s *contextSplitter) fatal() {
	s.close()
	if !s.keep {
		for _, name := range s.made {
			s.remove(name)
		}
	}
	s.t.Exit(1)
}
