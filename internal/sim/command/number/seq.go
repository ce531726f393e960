package number

import (
	"bytes"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

var seqSpec = &command.Spec{
	Name: "seq", Synopsis: "[OPTION]... [FIRST [INCREMENT]] LAST", Ordered: true,
	About: "Print numbers from FIRST to LAST, in steps of INCREMENT.",
	Options: []command.Option{
		{Short: 'f', Long: "format", Arg: command.Required, Name: "FORMAT", Help: "use printf style floating-point FORMAT"},
		{Short: 's', Long: "separator", Arg: command.Required, Name: "STRING", Help: "use STRING to separate numbers (default: \\n)"},
		{Short: 'w', Long: "equal-width", Help: "equalize width by padding with leading zeroes"},
	},
}

// unknown is a precision that the argument does not tell.
const unknown = math.MaxInt32

// A bound is an argument of seq.
type bound struct {
	f         *big.Float
	width     int // of its text, in plain notation
	precision int // digits behind the point
	text      string
}

// A sequence is what is to be shown.
type sequence struct {
	t                 *kernel.Task
	w                 *command.Writer
	first, step, last bound
	separator         string
	equal             bool
}

func runSeq(t *kernel.Task) int {
	a, status, ok := seqSpec.ParseArgs(t, seqArgs(t.Args[1:]))
	if !ok {
		return status
	}
	s := &sequence{t: t, separator: "\n", equal: a.Has("w"), w: command.Stdout(t)}
	if v, ok := a.Value("s"); ok {
		s.separator = v
	}
	format, formatted := a.Value("f")
	if status := command.CheckCount(t, seqSpec, a.Operands, 1, 3); status != 0 {
		return status
	}
	var d *directive
	var before, after string
	if formatted {
		d, before, after, status = seqFormat(t, format)
		if status != 0 {
			return status
		}
		if s.equal {
			return seqSpec.Usage(t, "format string may not be specified when printing equal width strings")
		}
	}
	one := bound{f: big.NewFloat(1).SetPrec(command.FloatPrecision), width: 1, text: "1"}
	s.first, s.step = one, one
	places := []*bound{&s.last}
	switch len(a.Operands) {
	case 2:
		places = []*bound{&s.first, &s.last}
	case 3:
		places = []*bound{&s.first, &s.step, &s.last}
	}
	for i, text := range a.Operands {
		b, status := seqBound(t, text)
		if status != 0 {
			return status
		}
		*places[i] = b
	}
	if s.step.f.Sign() == 0 {
		return seqSpec.Usage(t, "invalid Zero increment value: %s", command.Quote(a.Operands[1]))
	}
	if d == nil {
		if s.integers() {
			return 0
		}
		if d = s.format(); s.decimals(d) {
			return 0
		}
	}
	s.floats(d, before, after)
	return 0
}

// seqArgs marks where the operands begin: a negative number is one.
func seqArgs(args []string) []string {
	i := 0
	for ; i < len(args); i++ {
		arg := args[i]
		if len(arg) < 2 || arg[0] != '-' || arg == "--" || arg[1] == '.' || arg[1] >= '0' && arg[1] <= '9' {
			break
		}
		switch {
		case strings.HasPrefix(arg, "--"):
			name := arg[2:]
			if strings.HasPrefix("format", name) || strings.HasPrefix("separator", name) {
				i++
			}
		case arg[len(arg)-1] == 'f' || arg[len(arg)-1] == 's':
			// The last of a group, unless an earlier one takes the rest.
			if !strings.ContainsAny(arg[1:len(arg)-1], "fs") {
				i++
			}
		}
	}
	i = min(i, len(args))
	if i == len(args) || args[i] == "--" {
		return args
	}
	return append(append(append([]string(nil), args[:i]...), "--"), args[i:]...)
}

func seqBound(t *kernel.Task, text string) (bound, int) {
	f, nan, ok := command.ParseFloat(text)
	if nan {
		return bound{}, seqSpec.Usage(t, "invalid %s argument: %s", command.Quote("not-a-number"), command.Quote(text))
	}
	if !ok {
		return bound{}, seqSpec.Usage(t, "invalid floating point argument: %s", command.Quote(text))
	}
	s := strings.TrimLeft(text, " \t\n\v\f\r+")
	b := bound{f: f, precision: unknown, text: s}
	point := strings.IndexByte(s, '.')
	if point < 0 && strings.IndexByte(s, 'p') < 0 {
		b.precision = 0
	}
	if strings.ContainsAny(s, "xX") || f.IsInf() {
		return b, 0
	}
	b.measure(s, point)
	return b, 0
}

// measure finds how long the number is in plain notation.
func (b *bound) measure(s string, point int) {
	b.width = len(s)
	fraction := 0
	if point >= 0 {
		fraction = strings.IndexAny(s[point+1:], "eE")
		if fraction < 0 {
			fraction = len(s) - point - 1
		}
		b.precision = fraction
		switch {
		case fraction == 0:
			b.width--
		case point == 0 || s[point-1] < '0' || s[point-1] > '9':
			b.width++
		}
	}
	e := strings.IndexAny(s, "eE")
	if e < 0 {
		return
	}
	x, _ := strconv.Atoi(s[e+1:]) // Float has seen that it is a small one
	b.width -= len(s) - e
	if x < 0 {
		b.precision -= x
		if point < 0 || e == point+1 {
			b.width++
		}
		x = -x
	} else {
		b.precision -= min(b.precision, x)
		if point >= 0 && b.precision == 0 && fraction > 0 {
			b.width--
		}
		x -= min(fraction, x)
	}
	b.width += x
}

// seqFormat reads the one directive of a format, and what stands around it.
func seqFormat(t *kernel.Task, format string) (d *directive, before, after string, status int) {
	quoted := command.Quote(format)
	literal := func(s string) (text, rest string) {
		var b strings.Builder
		for s != "" {
			if s[0] == '%' {
				if len(s) < 2 || s[1] != '%' {
					break
				}
				s = s[1:]
			}
			b.WriteByte(s[0])
			s = s[1:]
		}
		return b.String(), s
	}
	before, rest := literal(format)
	if rest == "" {
		return nil, "", "", seqFail(t, "format %s has no %% directive", quoted)
	}
	d, rest = parseDirective(rest[1:])
	rest = strings.TrimPrefix(rest, "L")
	switch {
	case rest == "":
		return nil, "", "", seqFail(t, "format %s ends in %%", quoted)
	case strings.IndexByte("efgaEFGA", rest[0]) < 0:
		return nil, "", "", seqFail(t, "format %s has unknown %%%c directive", quoted, rest[0])
	}
	d.verb = rest[0]
	after, rest = literal(rest[1:])
	if rest != "" {
		return nil, "", "", seqFail(t, "format %s has too many %% directives", quoted)
	}
	return d, before, after, 0
}

func seqFail(t *kernel.Task, format string, args ...any) int {
	t.Errorf(format, args...)
	return 1
}

// widest is the greatest width or precision of a directive.
const widest = 1 << 20

// parseDirective reads flags, width and precision.
func parseDirective(s string) (*directive, string) {
	d := &directive{precision: -1}
	for s != "" {
		switch s[0] {
		case '-':
			d.minus = true
		case '+':
			d.plus = true
		case ' ':
			d.space = true
		case '#':
			d.alt = true
		case '0':
			d.zero = true
		case '\'':
			d.group = true
		default:
			goto width
		}
		s = s[1:]
	}
width:
	number := func() int {
		n := 0
		for s != "" && s[0] >= '0' && s[0] <= '9' {
			n = min(n*10+int(s[0]-'0'), widest)
			s = s[1:]
		}
		return n
	}
	d.width = number()
	if strings.HasPrefix(s, ".") {
		s = s[1:]
		d.precision = number()
	}
	return d, s
}

// format chooses how numbers are shown.
func (s *sequence) format() *directive {
	p := max(s.first.precision, s.step.precision)
	if p == unknown || s.last.precision == unknown || p > widest {
		return &directive{precision: -1, verb: 'g'}
	}
	d := &directive{precision: p, verb: 'f'}
	if s.equal {
		first := s.first.width + p - s.first.precision
		last := s.last.width + p - s.last.precision
		if s.last.precision > 0 && p == 0 {
			last--
		}
		if s.last.precision == 0 && p > 0 {
			last++
		}
		if s.first.precision == 0 && p > 0 {
			first++
		}
		d.zero, d.width = true, min(max(first, last), widest)
	}
	return d
}

func digitsOnly(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// integers shows the sequence if it is one of integers.
func (s *sequence) integers() bool {
	const limit = 1 << 62
	var n [3]int64
	small := true
	for i, b := range []*bound{&s.first, &s.step, &s.last} {
		if b.precision != 0 {
			return false
		}
		if !b.f.IsInt() && !(i == 2 && b.f.IsInf()) || b.f.Signbit() && b.f.Sign() == 0 {
			return false
		}
		var exact big.Accuracy
		n[i], exact = b.f.Int64()
		if n[i] > limit || n[i] < -limit || exact != big.Exact {
			small = false
		}
	}
	if !small {
		return s.large()
	}
	first, step, last := n[0], n[1], n[2]
	width := 0
	if s.equal {
		width = min(max(s.first.width, s.last.width), widest)
	}
	if step > 0 && first > last || step < 0 && first < last {
		return true
	}
	if width == 0 && first >= 0 && step > 0 && step < 10 && len(s.separator) == 1 {
		s.count(first, byte(step), last)
		return true
	}
	b := make([]byte, 0, 40<<10)
	for x := first; ; {
		if width > 0 {
			b = padded(b, x, width)
		} else {
			b = strconv.AppendInt(b, x, 10)
		}
		s.t.Step(8)
		x += step
		if step > 0 && x > last || step < 0 && x < last {
			break
		}
		b = append(b, s.separator...)
		if len(b) > 32<<10 {
			s.w.Bytes(b)
			b = b[:0]
		}
	}
	s.w.Bytes(append(b, '\n'))
	return true
}

// count shows numbers by adding to the digits of the one before.
func (s *sequence) count(first int64, step byte, last int64) {
	var text [24]byte
	left := uint64(last-first) / uint64(step)
	digits := strconv.AppendInt(text[:0], first, 10)
	number := text[:] // the digits stand at its end
	from := len(number) - 1 - len(digits)
	copy(number[from:], digits)
	end := len(number) - 1
	number[end] = s.separator[0]
	b := make([]byte, 0, 33<<10)
	for {
		b = append(b, number[from:]...)
		if left == 0 {
			break
		}
		left--
		i := end - 1
		for number[i] += step; number[i] > '9'; {
			number[i] -= 10
			if i == from {
				from--
				number[from] = '0'
			}
			i--
			number[i]++
		}
		if len(b) > 32<<10 {
			s.t.Step(len(b) >> 3)
			s.w.Bytes(b)
			b = b[:0]
		}
	}
	b[len(b)-1] = '\n'
	s.w.Bytes(b)
}

// decimals shows a sequence of short decimals on one side of zero, where
// calculating with whole numbers gives what a long double would.
func (s *sequence) decimals(d *directive) bool {
	const most = 15
	places := max(s.first.precision, s.step.precision, s.last.precision)
	if d.verb != 'f' || places > most {
		return false
	}
	var n [3]int64
	for i, b := range []*bound{&s.first, &s.step, &s.last} {
		r, ok := new(big.Rat).SetString(b.text)
		if b.f.IsInf() || b.f.Signbit() && b.f.Sign() == 0 || !ok || strings.ContainsAny(b.text, "eEpPxX_/") || len(b.text) > most+3 {
			return false
		}
		r.Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(places)), nil)))
		if !r.IsInt() || !r.Num().IsInt64() || r.Num().BitLen() > 52 {
			return false
		}
		n[i] = r.Num().Int64()
	}
	first, step, last := n[0], n[1], n[2]
	if first <= 0 && last >= 0 || first >= 0 && last <= 0 && first+last != 0 || step == 0 {
		if first < 0 || last < 0 {
			return false
		}
	}
	cut := int64(1) // from places to those that are shown
	for range places - d.precision {
		cut *= 10
	}
	unit := int64(1)
	for range d.precision {
		unit *= 10
	}
	if step > 0 && first > last || step < 0 && first < last {
		return true
	}
	b := make([]byte, 0, 33<<10)
	for x := first; ; {
		v := x / cut
		start := len(b)
		if v < 0 {
			b = append(b, '-')
			v = -v
		}
		whole := len(b)
		b = strconv.AppendInt(b, v/unit, 10)
		if pad := d.width - (len(b) - start) - d.precision - min(1, d.precision); d.zero && pad > 0 {
			b = slices.Insert(b, whole, bytes.Repeat([]byte{'0'}, pad)...)
		}
		if d.precision > 0 {
			b = append(b, '.')
			at := len(b)
			b = strconv.AppendInt(b, unit+v%unit, 10)
			b[at] = '.'
			b = append(b[:at-1], b[at:]...)
		}
		s.t.Step(1)
		x += step
		if step > 0 && x > last || step < 0 && x < last {
			break
		}
		b = append(b, s.separator...)
		if len(b) > 32<<10 {
			s.w.Bytes(b)
			b = b[:0]
		}
	}
	s.w.Bytes(append(b, '\n'))
	return true
}

func padded(b []byte, x int64, width int) []byte {
	if x < 0 {
		b = append(b, '-')
		x = -x
		width--
	}
	text := strconv.FormatInt(x, 10)
	for range width - len(text) {
		b = append(b, '0')
	}
	return append(b, text...)
}

// large shows a sequence of integers of any size, which are all digits.
func (s *sequence) large() bool {
	if !digitsOnly(s.first.text) || !digitsOnly(s.step.text) || !digitsOnly(s.last.text) && !s.last.f.IsInf() || s.last.f.Signbit() || s.equal {
		return false
	}
	x, _ := new(big.Int).SetString(s.first.text, 10)
	step, _ := new(big.Int).SetString(s.step.text, 10)
	last, finite := new(big.Int).SetString(s.last.text, 10)
	if finite && x.Cmp(last) > 0 {
		return true
	}
	var b []byte
	for {
		b = x.Append(b[:0], 10)
		s.t.Step(1 + len(b)>>4)
		x.Add(x, step)
		if finite && x.Cmp(last) > 0 {
			break
		}
		s.w.Bytes(b)
		s.w.String(s.separator)
	}
	s.w.Line(b, '\n')
	return true
}

// floats shows the sequence as the C library would calculate it.
func (s *sequence) floats(d *directive, before, after string) {
	first, step, last := s.first.f, s.step.f, s.last.f
	over := func(x *big.Float) bool {
		if step.Sign() < 0 {
			return x.Cmp(last) < 0
		}
		return last.Cmp(x) < 0
	}
	if over(first) {
		return
	}
	if first.IsInf() || step.IsInf() {
		s.infinite(d, before, after)
		return
	}
	x := new(big.Float).SetPrec(command.FloatPrecision).Set(first)
	index := new(big.Float).SetPrec(command.FloatPrecision)
	beyond := false
	var b, previous []byte
	for i := int64(1); ; i++ {
		previous = append(previous[:0], b...)
		b = d.append(b[:0], x)
		s.t.Step(8 + len(b)>>4)
		s.w.String(before)
		s.w.Bytes(b)
		s.w.String(after)
		if beyond {
			break
		}
		x.Mul(index.SetInt64(i), step)
		x.Add(first, x)
		if beyond = over(x); beyond {
			// What prints as the last number is the last number.
			previous = append(previous[:0], b...)
			b = d.append(b[:0], x)
			f, _, ok := command.ParseFloat(strings.TrimLeft(string(b), " "))
			if !ok || f.Cmp(last) != 0 || string(previous) == string(b) {
				break
			}
		}
		s.w.String(s.separator)
	}
	s.w.Byte('\n')
}

// infinite shows a sequence that begins or goes on without end.
func (s *sequence) infinite(d *directive, before, after string) {
	x := s.first.f
	text := before + string(d.append(nil, x)) + after
	if !x.IsInf() {
		s.w.String(text)
		if !s.last.f.IsInf() {
			s.w.Byte('\n')
			return
		}
		s.w.String(s.separator)
		text = before + string(d.append(nil, s.step.f)) + after
	}
	for {
		s.t.Step(8)
		s.w.String(text)
		s.w.String(s.separator)
	}
}
