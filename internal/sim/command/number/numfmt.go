package number

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

var numfmtSpec = &command.Spec{
	Name: "numfmt", Synopsis: "[OPTION]... [NUMBER]...",
	About: "Reformat NUMBER(s), or the numbers from standard input if none are specified.",
	Options: []command.Option{
		{Long: "debug", Help: "print warnings about invalid input"},
		{Short: 'd', Long: "delimiter", Arg: command.Required, Name: "X", Help: "use X instead of whitespace for field delimiter"},
		{Long: "field", Arg: command.Required, Name: "FIELDS", Help: "replace the numbers in these input fields (default=1)"},
		{Long: "format", Arg: command.Required, Name: "FORMAT", Help: "use printf style floating-point FORMAT"},
		{Long: "from", Arg: command.Required, Name: "UNIT", Help: "auto-scale input numbers to UNITs: none, auto, si, iec, iec-i"},
		{Long: "from-unit", Arg: command.Required, Name: "N", Help: "specify the input unit size (instead of the default 1)"},
		{Long: "grouping", Help: "use locale-defined grouping of digits (none here)"},
		{Long: "header", Arg: command.Optional, Name: "N", Help: "print (without converting) the first N header lines"},
		{Long: "invalid", Arg: command.Required, Name: "MODE", Help: "failure mode for invalid numbers: abort (default), fail, warn, ignore"},
		{Long: "padding", Arg: command.Required, Name: "N", Help: "pad the output to N characters; negative N will left-align"},
		{Long: "round", Arg: command.Required, Name: "METHOD", Help: "use METHOD for rounding when scaling: up, down, from-zero (default), towards-zero, nearest"},
		{Long: "suffix", Arg: command.Required, Name: "SUFFIX", Help: "add SUFFIX to output numbers, and accept optional SUFFIX in input numbers"},
		{Long: "to", Arg: command.Required, Name: "UNIT", Help: "auto-scale output numbers to UNITs"},
		{Long: "to-unit", Arg: command.Required, Name: "N", Help: "the output unit size (instead of the default 1)"},
		{Short: 'z', Long: "zero-terminated", Help: "line delimiter is NUL, not newline"},
	},
}

// How many digits a long double shows, and how many it may have.
const (
	mostUnscaled = 18
	mostDigits   = 27
)

type numfmt struct {
	t                *kernel.Task
	w                *command.Writer
	from, to         string
	fromUnit, toUnit uint64
	round            string
	suffix           string
	padding          int // negative is left-aligned
	auto             bool
	zeros            int
	grouping         bool
	precision        int // of the format; -1 is none
	before, after    string
	fields           []command.Span
	delim            int // -1 is blanks
	end              byte
	invalid          string
	debug            bool
	failed           bool
	width            int // to pad this number to
	left             bool
}

func runNumfmt(t *kernel.Task) int {
	a, status, ok := numfmtSpec.Parse(t)
	if !ok {
		return status
	}
	n := &numfmt{t: t, w: command.Stdout(t), from: "none", to: "none", fromUnit: 1, toUnit: 1, round: "from-zero", precision: -1, delim: -1, end: command.Delimiter(a), invalid: "abort", fields: []command.Span{{First: 1, Last: 1}}}
	header, status := n.options(a)
	if status != 0 {
		return status
	}
	if len(a.Operands) > 0 {
		for _, s := range a.Operands {
			n.line(s, true)
		}
	} else if !(command.ReadErrors{Read: "error reading input"}).One(t, "-", func(_ string, r *command.Reader) {
		for i := uint64(0); ; i++ {
			line, ended, ok := r.Line(n.end)
			if !ok {
				return
			}
			if i < header {
				n.w.Bytes(line)
				n.w.Byte(n.end)
				continue
			}
			n.line(string(line), ended)
		}
	}) {
		return 1
	}
	if n.failed && (n.invalid == "fail" || n.invalid == "abort") {
		return 2
	}
	return 0
}

func (n *numfmt) options(a *command.Args) (header uint64, status int) {
	t := n.t
	format, formatted, fielded := "", false, false
	units := []string{"none", "auto", "si", "iec", "iec-i"}
	choice := func(f *command.Flag, to *string, list []string) bool {
		w, err := command.Choice(f.Value, list)
		if err != nil {
			command.BadChoice(t, numfmtSpec, "--"+f.Key, f.Value, err, list)
			return false
		}
		*to = w
		return true
	}
	for i := range a.Flags {
		f := &a.Flags[i]
		ok := true
		switch f.Key {
		case "debug":
			n.debug = true
		case "d":
			if len(f.Value) > 1 {
				t.Errorf("the delimiter must be a single character")
				return 0, 1
			}
			n.delim = 0
			if f.Value != "" {
				n.delim = int(f.Value[0])
			}
		case "field":
			if fielded {
				t.Errorf("multiple field specifications")
				return 0, 1
			}
			fielded = true
			list, err := command.ParseSpans(f.Value, true, true)
			if err != nil {
				return 0, numfmtSpec.Usage(t, "%s", err)
			}
			n.fields = list
		case "format":
			format, formatted = f.Value, true
		case "from":
			ok = choice(f, &n.from, units)
		case "to":
			ok = choice(f, &n.to, []string{"none", "si", "iec", "iec-i"})
		case "from-unit", "to-unit":
			v, good := unitSize(f.Value)
			if !good {
				t.Errorf("invalid unit size: %s", command.Quote(f.Value))
				return 0, 1
			}
			if f.Key == "from-unit" {
				n.fromUnit = v
			} else {
				n.toUnit = v
			}
		case "grouping":
			n.grouping = true
		case "header":
			header = 1
			if f.Given {
				v, err := command.ParseUint(f.Value, "")
				if err != nil || v == 0 {
					t.Errorf("invalid header value %s", command.Quote(f.Value))
					return 0, 1
				}
				header = v
			}
		case "invalid":
			ok = choice(f, &n.invalid, []string{"abort", "fail", "warn", "ignore"})
		case "padding":
			v, err := command.ParseInt(f.Value, "", -widest, widest)
			if err != nil || v == 0 {
				t.Errorf("invalid padding value %s", command.Quote(f.Value))
				return 0, 1
			}
			n.padding = int(v)
		case "round":
			ok = choice(f, &n.round, []string{"up", "down", "from-zero", "towards-zero", "nearest"})
		case "suffix":
			n.suffix = f.Value
		}
		if !ok {
			return 0, 1
		}
	}
	if formatted && n.grouping {
		t.Errorf("--grouping cannot be combined with --format")
		return 0, 1
	}
	if n.debug && n.from == "none" && n.to == "none" && !n.grouping && n.padding == 0 && !formatted {
		t.Errorf("no conversion option specified")
	}
	if formatted {
		if err := n.parseFormat(format); err != nil {
			t.Errorf("%s", err)
			return 0, 1
		}
	}
	if n.grouping && n.to != "none" {
		t.Errorf("grouping cannot be combined with --to")
		return 0, 1
	}
	n.auto = n.padding == 0 && n.delim < 0
	return header, 0
}

// unitSize reads 512, 4K (4000) or 4Ki (4096).
func unitSize(s string) (uint64, bool) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	rest := s[i:]
	var v uint64
	var err error
	switch {
	case rest == "":
		v, err = command.ParseUint(s, "")
	case len(rest) == 1 && rest != "i":
		v, err = command.ParseUint(s+"B", "KMGTPEZY0")
	case len(rest) == 2 && rest[1] == 'i':
		v, err = command.ParseUint(s+"B", "KMGTPEZY0")
	default:
		return 0, false
	}
	return v, err == nil && v > 0
}

// parseFormat reads %[0]['][-][N][.N]f with text around it.
func (n *numfmt) parseFormat(format string) error {
	quoted := command.Quote(format)
	i, width := 0, ""
	for ; ; i++ {
		if i >= len(format) {
			return fmt.Errorf("format %s has no %% directive", quoted)
		}
		if format[i] == '%' {
			if i+1 < len(format) && format[i+1] == '%' {
				n.before += "%"
				i++
				continue
			}
			break
		}
		n.before += format[i : i+1]
	}
	rest := format[i+1:]
	zero := false
	for rest != "" && (rest[0] == ' ' || rest[0] == '\'' || rest[0] == '0') {
		switch rest[0] {
		case '\'':
			n.grouping = true
		case '0':
			zero = true
		}
		rest = rest[1:]
	}
	k := 0
	for k < len(rest) && (rest[k] >= '0' && rest[k] <= '9' || k == 0 && rest[k] == '-') {
		k++
	}
	width, rest = rest[:k], rest[k:]
	if width != "" && width != "-" {
		v, err := command.ParseInt(width, "", -widest, widest)
		if err != nil {
			return fmt.Errorf("invalid format %s (width overflow)", quoted)
		}
		if n.debug && n.padding != 0 && v != 0 {
			n.t.Errorf("--format padding overriding --padding")
		}
		switch {
		case v < 0:
			n.padding = int(v)
		case zero:
			n.zeros = int(v)
		case v > 0:
			n.padding = int(v)
		}
	}
	if rest == "" {
		return fmt.Errorf("format %s ends in %%", quoted)
	}
	if rest[0] == '.' {
		rest = rest[1:]
		k = 0
		for k < len(rest) && rest[k] >= '0' && rest[k] <= '9' {
			k++
		}
		n.precision = 0
		if k > 0 {
			v, err := strconv.Atoi(rest[:k])
			if err != nil || v > widest {
				return fmt.Errorf("invalid precision in format %s", quoted)
			}
			n.precision = v
		} else if rest != "" && (rest[0] == '-' || rest[0] == '+' || rest[0] == ' ' || rest[0] == '\t') {
			return fmt.Errorf("invalid precision in format %s", quoted)
		}
		rest = rest[k:]
	}
	if rest == "" || rest[0] != 'f' {
		return fmt.Errorf("invalid format %s, directive must be %%[0]['][-][N][.][N]f", quoted)
	}
	for rest = rest[1:]; rest != ""; rest = rest[1:] {
		if rest[0] == '%' {
			if len(rest) < 2 || rest[1] != '%' {
				return fmt.Errorf("format %s has too many %% directives", quoted)
			}
			n.after += "%" // both signs stay, unlike before the directive
			rest = rest[1:]
		}
		n.after += rest[:1]
	}
	return nil
}

// line converts the fields of a line.
func (n *numfmt) line(s string, ended bool) {
	for number := uint64(1); ; number++ {
		end := 0
		if n.delim >= 0 {
			if end = strings.IndexByte(s, byte(n.delim)); end < 0 {
				end = len(s)
			}
		} else {
			for end < len(s) && (s[end] == ' ' || s[end] == '\t' || s[end] == '\n') {
				end++
			}
			for end < len(s) && s[end] != ' ' && s[end] != '\t' && s[end] != '\n' {
				end++
			}
		}
		n.t.Step(256 + end)
		n.field(s[:end], number)
		if end == len(s) {
			break
		}
		if n.delim >= 0 {
			n.w.Byte(byte(n.delim))
		} else {
			n.w.Byte(' ')
		}
		s = s[end+1:]
	}
	if ended {
		n.w.Byte(n.end)
	}
}

func (n *numfmt) field(s string, number uint64) {
	wanted := false
	for _, r := range n.fields {
		wanted = wanted || number >= r.First && number <= r.Last
	}
	if !wanted {
		n.w.String(s)
		return
	}
	text, err := n.convert(s, number)
	if err == nil {
		n.w.String(text)
		return
	}
	n.failed = true
	if n.invalid != "ignore" {
		n.t.Errorf("%s", err)
	}
	if n.invalid == "abort" {
		n.t.Exit(2)
	}
	n.w.String(s)
}

func (n *numfmt) convert(s string, number uint64) (string, error) {
	text := s
	if n.suffix != "" && len(text) > len(n.suffix) {
		text = strings.TrimSuffix(text, n.suffix)
	}
	p := strings.TrimLeft(text, " \t")
	n.width, n.left = n.padding, false
	if n.padding < 0 {
		n.width, n.left = -n.padding, true
	}
	if n.auto && n.padding == 0 {
		n.width = 0
		if len(p) < len(text) || number > 1 {
			n.width = len(text)
		}
	}
	v, precision, err := n.parse(p)
	if err != nil {
		return "", err
	}
	if n.fromUnit != 1 || n.toUnit != 1 {
		v.Mul(v, long(0).SetUint64(n.fromUnit))
		v.Quo(v, long(0).SetUint64(n.toUnit))
	}
	return n.format(v, precision)
}

func long(f float64) *big.Float { return new(big.Float).SetPrec(command.FloatPrecision).SetFloat64(f) }

// power10 gives a power of ten as a long double has it.
func power10(n int) *big.Float {
	v, ten := long(1), long(10)
	for range min(n, 5000) {
		v.Mul(v, ten)
	}
	return v
}

// parse reads a number with its suffix.
func (n *numfmt) parse(s string) (v *big.Float, precision int, err error) {
	quoted := command.Quote(s)
	rest, negative := strings.CutPrefix(s, "-")
	digits := func() string {
		i := 0
		for i < len(rest) && rest[i] >= '0' && rest[i] <= '9' {
			i++
		}
		d := rest[:i]
		rest = rest[i:]
		return d
	}
	whole := digits()
	if whole == "" && !strings.HasPrefix(rest, ".") {
		return nil, 0, fmt.Errorf("invalid number: %s", quoted)
	}
	if len(strings.TrimLeft(whole, "0")) > mostDigits {
		return nil, 0, fmt.Errorf("value too large to be converted: %s", quoted)
	}
	fraction := ""
	if strings.HasPrefix(rest, ".") {
		rest = rest[1:]
		if fraction = digits(); fraction == "" {
			return nil, 0, fmt.Errorf("invalid number: %s", quoted)
		}
		if len(strings.TrimLeft(fraction, "0")) > mostDigits {
			return nil, 0, fmt.Errorf("value too large to be converted: %s", quoted)
		}
		precision = len(fraction)
	}
	v = accumulate(whole)
	if fraction != "" {
		f := accumulate(fraction)
		v.Add(v, f.Quo(f, power10(len(fraction))))
	}
	if negative {
		v.Neg(v)
	}
	if rest != "" {
		if v, rest, err = n.scale(v, rest, quoted); err != nil {
			return nil, 0, err
		}
		precision = 0
	}
	if rest != "" {
		return nil, 0, fmt.Errorf("invalid suffix in input %s: %s", quoted, command.Quote(rest))
	}
	return v, precision, nil
}

// accumulate makes a number of digits one by one, as a long double rounds it.
func accumulate(digits string) *big.Float {
	v, ten := long(0), long(10)
	for i := range len(digits) {
		v.Mul(v, ten)
		v.Add(v, long(float64(digits[i]-'0')))
	}
	return v
}

func (n *numfmt) scale(v *big.Float, rest, quoted string) (*big.Float, string, error) {
	rest = strings.TrimLeft(rest, " \t")
	power := -1
	if rest != "" {
		power = strings.IndexByte("KMGTPEZY", rest[0]) + 1
	}
	if power <= 0 {
		return nil, "", fmt.Errorf("invalid suffix in input: %s", quoted)
	}
	if n.from == "none" {
		return nil, "", fmt.Errorf("rejecting suffix in input: %s (consider using --from)", quoted)
	}
	rest = rest[1:]
	base := 1000.0
	switch n.from {
	case "iec", "iec-i":
		base = 1024
	case "auto":
		if strings.HasPrefix(rest, "i") {
			base, rest = 1024, rest[1:]
		}
	}
	if n.from == "iec-i" {
		if !strings.HasPrefix(rest, "i") {
			return nil, "", fmt.Errorf("missing 'i' suffix in input: %s (e.g Ki/Mi/Gi)", quoted)
		}
		rest = rest[1:]
	}
	factor := long(1)
	for range power {
		factor.Mul(factor, long(base))
	}
	return v.Mul(v, factor), rest, nil
}
