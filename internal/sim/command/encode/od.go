package encode

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

var odSpec = &command.Spec{
	Name: "od", Synopsis: "[OPTION]... [FILE]...",
	About: "Write an unambiguous representation, octal bytes by default, of FILE to standard output.",
	Options: []command.Option{
		{Short: 'A', Long: "address-radix", Arg: command.Required, Name: "RADIX", Help: "output format for file offsets; RADIX is one of [doxn]"},
		{Long: "endian", Arg: command.Required, Name: "{big|little}", Help: "swap input bytes according the specified order"},
		{Short: 'j', Long: "skip-bytes", Arg: command.Required, Name: "BYTES", Help: "skip BYTES input bytes first"},
		{Short: 'N', Long: "read-bytes", Arg: command.Required, Name: "BYTES", Help: "limit dump to BYTES input bytes"},
		{Short: 'S', Arg: command.Required, Name: "BYTES", Help: "output strings of at least BYTES graphic chars"},
		{Long: "strings", Arg: command.Optional, Name: "BYTES", Help: "output strings of at least BYTES graphic chars; 3 is implied when BYTES is not specified"},
		{Short: 't', Long: "format", Arg: command.Required, Name: "TYPE", Help: "select output format or formats: [acd[SIZE]f[SIZE]o[SIZE]u[SIZE]x[SIZE]][z]"},
		{Short: 'v', Long: "output-duplicates", Help: "do not use * to mark line suppression"},
		{Short: 'w', Long: "width", Arg: command.Optional, Name: "BYTES", Help: "output BYTES bytes per output line; 32 is implied when BYTES is not specified"},
		{Long: "traditional", Help: "accept arguments in third form above"},
		{Short: 'a', Help: "same as -t a"}, {Short: 'b', Help: "same as -t o1"}, {Short: 'c', Help: "same as -t c"},
		{Short: 'd', Help: "same as -t u2"}, {Short: 'f', Help: "same as -t fF"}, {Short: 'i', Help: "same as -t dI"},
		{Short: 'l', Help: "same as -t dL"}, {Short: 'o', Help: "same as -t o2"}, {Short: 's', Help: "same as -t d2"},
		{Short: 'x', Help: "same as -t x2"}, {Short: 'B', Help: "same as -t o2"}, {Short: 'D', Help: "same as -t u4"},
		{Short: 'e', Help: "same as -t fD"}, {Short: 'F', Help: "same as -t fD"}, {Short: 'h', Help: "same as -t x2"},
		{Short: 'H', Help: "same as -t x4"}, {Short: 'I', Help: "same as -t dL"}, {Short: 'L', Help: "same as -t dL"},
		{Short: 'O', Help: "same as -t o4"}, {Short: 'X', Help: "same as -t x4"},
	},
}

// A dumpType is one of the ways in which each line is shown.
type dumpType struct {
	kind  byte // a c d f o u x
	size  int
	width int // of a field
	text  bool
	pad   int // that a whole line needs to be as wide as the others
}

type od struct {
	t          *kernel.Task
	w          *command.Writer
	types      []dumpType
	radix      byte
	skip       int64
	limit      int64 // -1 is none
	block      int
	all        bool
	order      binary.ByteOrder
	strings    int // 0 is none
	pseudo     bool
	pseudoBase int64
	names      []string
	r          *command.Reader
	name       string
	status     int
	out        []byte
}

func runOd(t *kernel.Task) int {
	a, status, ok := odSpec.Parse(t)
	if !ok {
		return status
	}
	o := &od{t: t, w: command.Stdout(t), radix: 'o', limit: -1, order: binary.LittleEndian}
	width, modern := -1, false
	for _, f := range a.Flags {
		switch f.Key {
		case "A":
			modern = true
			if f.Value == "" || strings.IndexByte("doxn", f.Value[0]) < 0 {
				c := byte(0)
				if f.Value != "" {
					c = f.Value[0]
				}
				t.Errorf("invalid output address radix '%c'; it must be one character from [doxn]", c)
				return 1
			}
			o.radix = f.Value[0]
		case "j":
			modern = true
			n, ok := o.number(f, true)
			if !ok {
				return 1
			}
			o.skip = n
		case "N":
			modern = true
			n, ok := o.number(f, true)
			if !ok {
				return 1
			}
			o.limit = n
		case "S", "strings":
			modern = true
			o.strings = 3
			if f.Given {
				n, ok := o.number(f, true)
				if !ok {
					return 1
				}
				o.strings = int(min(n, math.MaxInt32))
				if n == 0 {
					o.strings = -1
				}
			}
		case "t":
			modern = true
			if !o.format(f.Value) {
				return 1
			}
		case "v":
			modern = true
			o.all = true
		case "w":
			modern = true
			width = 32
			if f.Given {
				n, ok := o.number(f, true)
				if !ok {
					return 1
				}
				width = int(min(n, 1<<24))
			}
		case "endian":
			w, err := command.Choice(f.Value, []string{"little", "big"})
			if err != nil {
				return command.BadChoice(t, odSpec, "--endian", f.Value, err, []string{"little", "big"})
			}
			if w == "big" {
				o.order = binary.BigEndian
			}
		case "traditional":
		default:
			o.format(oldType(f.Key[0]))
		}
	}
	o.names = a.Operands
	if !o.offsets(a.Has("traditional"), modern) {
		return 1
	}
	if o.strings != 0 && len(o.types) > 0 {
		t.Errorf("no type may be specified when dumping strings")
		return 1
	}
	if len(o.types) == 0 {
		o.format("o2")
	}
	o.layout(width)
	return o.run()
}

func oldType(c byte) string {
	switch c {
	case 'a':
		return "a"
	case 'b':
		return "o1"
	case 'c':
		return "c"
	case 'd':
		return "u2"
	case 'f':
		return "fF"
	case 'i':
		return "dI"
	case 'l', 'I', 'L':
		return "dL"
	case 's':
		return "d2"
	case 'x', 'h':
		return "x2"
	case 'D':
		return "u4"
	case 'e', 'F':
		return "fD"
	case 'H', 'X':
		return "x4"
	case 'O':
		return "o4"
	}
	return "o2"
}

// number reads a size: decimal, octal after 0, hexadecimal after 0x.
func (o *od) number(f command.Flag, zero bool) (int64, bool) {
	n, err := sized(f.Value, "bEGKkMmPTYZ0")
	what := f.Spelt
	switch {
	case err == command.ErrLarge || err == nil && n > math.MaxInt64:
		o.t.Errorf("%s argument %s too large", what, command.QuoteAlways(f.Value))
		return 0, false
	case err == command.ErrSuffix:
		o.t.Errorf("invalid suffix in %s argument %s", what, command.QuoteAlways(f.Value))
		return 0, false
	case err != nil || n == 0 && !zero:
		o.t.Errorf("invalid %s argument %s", what, command.QuoteAlways(f.Value))
		return 0, false
	}
	return int64(n), true
}

// sized reads a number in the base that its beginning says, with a suffix.
func sized(s, suffixes string) (uint64, error) {
	base, digits := 10, s
	if rest, ok := strings.CutPrefix(strings.ToLower(s), "0x"); ok {
		base, digits = 16, rest
	} else if len(s) > 1 && s[0] == '0' {
		base, digits = 8, s[1:]
	}
	if base == 10 {
		return command.ParseUint(s, suffixes)
	}
	n := 0
	for n < len(digits) {
		if _, err := strconv.ParseUint(digits[n:n+1], base, 8); err != nil {
			break
		}
		n++
	}
	if n == 0 && base == 16 {
		return 0, command.ErrSyntax
	}
	var v uint64
	if n > 0 {
		var err error
		if v, err = strconv.ParseUint(digits[:n], base, 64); err != nil {
			return math.MaxUint64, command.ErrLarge
		}
	}
	if n == len(digits) {
		return v, nil
	}
	rest := s[len(s)-(len(digits)-n):]
	if strings.IndexByte(suffixes, rest[0]) < 0 {
		return v, command.ErrSuffix
	}
	factor, err := command.ParseUint("1"+rest, suffixes)
	if err != nil {
		return factor, err
	}
	if factor != 0 && v > math.MaxUint64/factor {
		return math.MaxUint64, command.ErrLarge
	}
	return v * factor, nil
}

// format reads types.
func (o *od) format(s string) bool {
	whole := s
	for s != "" {
		d := dumpType{kind: s[0]}
		s = s[1:]
		switch d.kind {
		case 'a', 'c':
			d.size, d.width = 1, 3
		case 'd', 'o', 'u', 'x':
			n, rest, ok := size(s, "CSIL", []int{1, 2, 4, 8}, 4)
			if !ok {
				o.t.Errorf("invalid type string %s;\nthis system doesn't provide a %d-byte integral type", command.Quote(whole), n)
				return false
			}
			s, d.size = rest, n
			d.width = map[byte][9]int{
				'd': {1: 4, 2: 6, 4: 11, 8: 20}, 'o': {1: 3, 2: 6, 4: 11, 8: 22}, 'u': {1: 3, 2: 5, 4: 10, 8: 20}, 'x': {1: 2, 2: 4, 4: 8, 8: 16},
			}[d.kind][n]
		case 'f':
			n, rest, ok := size(s, "FDL", []int{4, 8, 16}, 8)
			if !ok {
				o.t.Errorf("invalid type string %s;\nthis system doesn't provide a %d-byte floating point type", command.Quote(whole), n)
				return false
			}
			s, d.size = rest, n
			d.width = map[int]int{4: 15, 8: 24, 16: 29}[n]
		default:
			o.t.Errorf("invalid character '%c' in type string %s", d.kind, command.Quote(whole))
			return false
		}
		if strings.HasPrefix(s, "z") {
			d.text, s = true, s[1:]
		}
		o.types = append(o.types, d)
	}
	return true
}

// size reads the size of a type: a letter, a number of bytes, or nothing.
func size(s, letters string, sizes []int, usual int) (n int, rest string, ok bool) {
	if s == "" {
		return usual, s, true
	}
	if i := strings.IndexByte(letters, s[0]); i >= 0 {
		return sizes[i], s[1:], true
	}
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	if i == 0 {
		return usual, s, true
	}
	n, err := strconv.Atoi(s[:i])
	if err != nil {
		return 0, s, false
	}
	for _, v := range sizes {
		if v == n {
			return n, s[i:], true
		}
	}
	return n, s, false
}

// offsets takes the offset of old from the operands: [FILE] [[+]OFFSET].
func (o *od) offsets(traditional, modern bool) bool {
	if modern && !traditional {
		return true
	}
	n := len(o.names)
	parse := func(s string) (int64, bool) {
		s = strings.TrimPrefix(s, "+")
		if s == "" {
			return 0, false
		}
		base := 8
		factor := int64(1)
		if strings.HasSuffix(s, "b") && !strings.HasPrefix(strings.ToLower(s), "0x") {
			s, factor = s[:len(s)-1], 512
		}
		if strings.HasSuffix(s, ".") {
			s, base = s[:len(s)-1], 10
		} else if rest, ok := strings.CutPrefix(strings.ToLower(s), "0x"); ok {
			s, base = rest, 16
		}
		v, err := strconv.ParseInt(s, base, 64)
		if err != nil || v < 0 || v > math.MaxInt64/factor {
			return 0, false
		}
		return v * factor, true
	}
	switch {
	case n == 1 && (traditional || strings.HasPrefix(o.names[0], "+")):
		if v, ok := parse(o.names[0]); ok {
			o.skip, o.names = v, nil
		}
	case n == 2 && (traditional || strings.HasPrefix(o.names[1], "+") || o.names[1] != "" && o.names[1][0] >= '0' && o.names[1][0] <= '9'):
		if v, ok := parse(o.names[1]); ok {
			if w, ok := parse(o.names[0]); ok && traditional {
				o.skip, o.pseudo, o.pseudoBase, o.names = w, true, v, nil
			} else {
				o.skip, o.names = v, o.names[:1]
			}
		} else if traditional {
			o.t.Errorf("extra operand %s", command.Quote(o.names[1]))
			_, _ = o.t.Write(2, []byte("Try 'od --help' for more information.\n"))
			return false
		}
	case n == 3 && traditional:
		v, ok := parse(o.names[1])
		w, ok2 := parse(o.names[2])
		if ok && ok2 {
			o.skip, o.pseudo, o.pseudoBase, o.names = v, true, w, o.names[:1]
		}
	}
	if traditional && len(o.names) > 1 && n > 1 {
		o.t.Errorf("extra operand %s", command.Quote(o.names[1]))
		o.t.Errorf("compatibility mode supports at most one file")
		_, _ = o.t.Write(2, []byte("Try 'od --help' for more information.\n"))
		return false
	}
	return true
}

// layout finds how long lines are, and pads the types to the same width.
func (o *od) layout(width int) {
	lcm := 1
	for _, d := range o.types {
		g, b := lcm, d.size
		for b > 0 {
			g, b = b, g%b
		}
		lcm = lcm / g * d.size
	}
	switch {
	case width > 0 && width%lcm == 0:
		o.block = width
	case width >= 0:
		o.t.Errorf("warning: invalid width %d; using %d instead", width, lcm)
		o.block = lcm
	case lcm < 16:
		o.block = lcm * (16 / lcm)
	default:
		o.block = lcm
	}
	widest := 0
	for _, d := range o.types {
		widest = max(widest, (d.width+1)*(o.block/d.size))
	}
	for i := range o.types {
		d := &o.types[i]
		d.pad = widest - d.width*(o.block/d.size)
	}
}

// next opens the next file.
func (o *od) next() bool {
	if o.r != nil {
		o.closeFile()
	}
	for len(o.names) > 0 {
		name := o.names[0]
		o.names = o.names[1:]
		r, err := command.OpenReader(o.t, name)
		if err != nil {
			command.FailFile(o.t, name, err)
			o.status = 1
			continue
		}
		o.r, o.name = r, name
		o.t.Step(1)
		return true
	}
	return false
}

func (o *od) closeFile() {
	if err := o.r.Err(); err != nil {
		command.FailFile(o.t, o.name, err)
		o.status = 1
	}
	o.r.Close()
	o.r = nil
}

// read fills b as far as there is something.
func (o *od) read(b []byte) int {
	n := 0
	for n < len(b) && o.r != nil {
		k, err := o.r.Read(b[n:])
		n += k
		if err != nil && !o.next() {
			break
		}
	}
	return n
}

func (o *od) run() int {
	o.names = command.InputNames(o.names)
	defer func() {
		if o.r != nil {
			o.r.Close()
		}
	}()
	o.next()
	for left := o.skip; left > 0; {
		if o.r == nil {
			if o.status == 0 {
				o.t.Errorf("cannot skip past end of combined input")
			}
			return 1
		}
		left -= o.r.Skip(left)
		if left > 0 {
			o.next()
		}
	}
	if o.r == nil {
		return o.status
	}
	if o.strings != 0 {
		o.dumpStrings()
		return o.status
	}
	o.t.Grow(2 * o.block)
	last, now := make([]byte, o.block), make([]byte, o.block)
	at := o.skip
	star, first := false, true
	for {
		want := o.block
		if o.limit >= 0 {
			want = int(min(int64(want), o.limit-(at-o.skip)))
		}
		n := 0
		if want > 0 {
			n = o.read(now[:want])
		}
		o.t.Step(1)
		if n < o.block {
			if n > 0 {
				clear(now[n:])
				o.block0(now, n, at)
			}
			at += int64(n)
			break
		}
		if !o.all && !first && string(now) == string(last) {
			if !star {
				o.w.String("*\n")
				star = true
			}
		} else {
			star = false
			o.block0(now, n, at)
		}
		first = false
		at += int64(n)
		last, now = now, last
	}
	if o.radix != 'n' {
		o.w.Bytes(append(o.address(o.out[:0], at), '\n'))
	}
	return o.status
}

func (o *od) address(b []byte, at int64) []byte {
	put := func(b []byte, at int64) []byte {
		base, width := 8, 7
		switch o.radix {
		case 'd':
			base = 10
		case 'x':
			base, width = 16, 6
		}
		s := strconv.FormatInt(at, base)
		for i := len(s); i < width; i++ {
			b = append(b, '0')
		}
		return append(b, s...)
	}
	if o.radix == 'n' {
		if !o.pseudo {
			return b
		}
	} else {
		b = put(b, at)
	}
	if o.pseudo {
		b = append(b, " ("...)
		b = put(b, at-o.skip+o.pseudoBase)
		b = append(b, ')')
	}
	return b
}

// block0 shows a line of every type. n is how much of b was read.
func (o *od) block0(b []byte, n int, at int64) {
	for i := range o.types {
		d := &o.types[i]
		out := o.out[:0]
		if i == 0 {
			out = o.address(out, at)
		} else {
			width := len(o.address(out, at))
			for range width {
				out = append(out, ' ')
			}
		}
		fields := o.block / d.size
		blank := (o.block - n) / d.size
		pad := d.pad
		for k := fields; k > blank; k-- {
			next := d.pad * (k - 1) / fields
			from := (fields - k) * d.size
			out = d.field(out, b[from:from+d.size], pad-next+d.width, o.order)
			pad = next
		}
		if d.text {
			for range pad + blank*d.width {
				out = append(out, ' ')
			}
			out = append(out, "  >"...)
			for _, c := range b[:n] {
				if c < ' ' || c > '~' {
					c = '.'
				}
				out = append(out, c)
			}
			out = append(out, '<')
		}
		o.w.Bytes(append(out, '\n'))
		o.out = out
	}
}
