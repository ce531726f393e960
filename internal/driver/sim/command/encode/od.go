package encode

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/command"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/operand"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/stream"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/proc"
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
	t          *proc.Task
	w          *stream.Writer
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
	r          *stream.Reader
	name       string
	status     int
	out        []byte
}

func runOd(t *proc.Task) int {
	a, status, ok := odSpec.Parse(t)
	if !ok {
		return status
	}
	o := &od{t: t, w: stream.Out(t), radix: 'o', limit: -1, order: binary.LittleEndian}
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
			w, err := operand.Choice(f.Value, []string{"little", "big"})
			if err != nil {
				return operand.Choose(t, odSpec, "--endian", f.Value, err, []string{"little", "big"})
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
	if !o.offsets(a.Has("traditional"), modern, a) {
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
	if len(what) == 2 {
		what = f.Spelt
	}
	switch {
	case err == operand.ErrLarge || err == nil && n > math.MaxInt64:
		o.t.Errorf("%s argument %s too large", what, operand.Always(f.Value))
		return 0, false
	case err == operand.ErrSuffix:
		o.t.Errorf("invalid suffix in %s argument %s", what, operand.Always(f.Value))
		return 0, false
	case err != nil || n == 0 && !zero:
		o.t.Errorf("invalid %s argument %s", what, operand.Always(f.Value))
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
		return operand.Uint(s, suffixes)
	}
	n := 0
	for n < len(digits) {
		if _, err := strconv.ParseUint(digits[n:n+1], base, 8); err != nil {
			break
		}
		n++
	}
	if n == 0 && base == 16 {
		return 0, operand.ErrSyntax
	}
	var v uint64
	if n > 0 {
		var err error
		if v, err = strconv.ParseUint(digits[:n], base, 64); err != nil {
			return math.MaxUint64, operand.ErrLarge
		}
	}
	if n == len(digits) {
		return v, nil
	}
	rest := s[len(s)-(len(digits)-n):]
	if strings.IndexByte(suffixes, rest[0]) < 0 {
		return v, operand.ErrSuffix
	}
	factor, err := operand.Uint("1"+rest, suffixes)
	if err != nil {
		return factor, err
	}
	if factor != 0 && v > math.MaxUint64/factor {
		return math.MaxUint64, operand.ErrLarge
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
				o.t.Errorf("invalid type string %s;\nthis system doesn't provide a %d-byte integral type", operand.Quote(whole), n)
				return false
			}
			s, d.size = rest, n
			d.width = map[byte][9]int{
				'd': {1: 4, 2: 6, 4: 11, 8: 20}, 'o': {1: 3, 2: 6, 4: 11, 8: 22}, 'u': {1: 3, 2: 5, 4: 10, 8: 20}, 'x': {1: 2, 2: 4, 4: 8, 8: 16},
			}[d.kind][n]
		case 'f':
			n, rest, ok := size(s, "FDL", []int{4, 8, 16}, 8)
			if !ok {
				o.t.Errorf("invalid type string %s;\nthis system doesn't provide a %d-byte floating point type", operand.Quote(whole), n)
				return false
			}
			s, d.size = rest, n
			d.width = map[int]int{4: 15, 8: 24, 16: 29}[n]
		default:
			o.t.Errorf("invalid character '%c' in type string %s", d.kind, operand.Quote(whole))
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
func (o *od) offsets(traditional, modern bool, a *command.Args) bool {
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
			o.t.Errorf("extra operand %s", operand.Quote(o.names[1]))
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
		o.t.Errorf("extra operand %s", operand.Quote(o.names[1]))
		o.t.Errorf("compatibility mode supports at most one file")
		_, _ = o.t.Write(2, []byte("Try 'od --help' for more information.\n"))
		return false
	}
	_ = a
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
		r, err := stream.Open(o.t, name)
		if err != nil {
			operand.Fail(o.t, name, err)
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
		operand.Fail(o.t, o.name, err)
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
	o.names = stream.Names(o.names)
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

// field appends one value, right-aligned.
func (d *dumpType) field(out, b []byte, width int, order binary.ByteOrder) []byte {
	var buf [40]byte
	text := buf[:0]
	switch d.kind {
	case 'a':
		text = append(text, controlName(b[0]&0x7f)...)
	case 'c':
		text = append(text, charName(b[0])...)
	case 'f':
		text = append(text, floatText(b, order)...)
	default:
		var u uint64
		switch d.size {
		case 1:
			u = uint64(b[0])
		case 2:
			u = uint64(order.Uint16(b))
		case 4:
			u = uint64(order.Uint32(b))
		case 8:
			u = order.Uint64(b)
		}
		shift := 64 - 8*d.size
		switch d.kind {
		case 'd':
			text = strconv.AppendInt(text, int64(u<<shift)>>shift, 10)
		case 'u':
			text = strconv.AppendUint(text, u, 10)
		case 'o':
			text = zeroes(text, u, 8, d.width)
		case 'x':
			text = zeroes(text, u, 16, d.width)
		}
	}
	for i := len(text); i < width; i++ {
		out = append(out, ' ')
	}
	return append(out, text...)
}

func zeroes(b []byte, u uint64, base, width int) []byte {
	s := strconv.FormatUint(u, base)
	for i := len(s); i < width; i++ {
		b = append(b, '0')
	}
	return append(b, s...)
}

func controlName(c byte) string {
	const names = "nulsohstxetxeotenqackbel bs ht nl vt ff cr so sidledc1dc2dc3dc4naksynetbcan emsubesc fs gs rs us sp"
	switch {
	case c <= ' ':
		return strings.TrimLeft(names[3*int(c):3*int(c)+3], " ")
	case c == 127:
		return "del"
	}
	return string(rune(c))
}

func charName(c byte) string {
	switch {
	case c == 0:
		return `\0`
	case c >= 7 && c <= 13:
		return `\` + "abtnvfr"[c-7:c-6]
	case c >= ' ' && c < 127:
		return string(rune(c))
	}
	return fmt.Sprintf("%03o", c)
}

// floatText writes a floating point number with as many digits as it takes to
// read it back, at least those that always survive.
func floatText(b []byte, order binary.ByteOrder) string {
	switch len(b) {
	case 4:
		f := math.Float32frombits(order.Uint32(b))
		return shortest(float64(f), 6, 32)
	case 8:
		return shortest(math.Float64frombits(order.Uint64(b)), 15, 64)
	}
	return longDouble(b, order)
}

func shortest(f float64, digits, size int) string {
	switch {
	case math.IsNaN(f):
		if math.Signbit(f) {
			return "-nan"
		}
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case f == 0 && math.Signbit(f):
		return "-0"
	}
	if size == 32 && math.Abs(f) < 0x1p-126 || size == 64 && math.Abs(f) < 0x1p-1022 {
		digits = 1
	}
	for ; ; digits++ {
		s := strconv.FormatFloat(f, 'e', digits-1, 64)
		if g, _ := strconv.ParseFloat(s, size); g == f || digits > 40 {
			return general(s, digits)
		}
	}
}

// general makes %g of %e with as many digits.
func general(s string, digits int) string {
	i := strings.IndexByte(s, 'e')
	mantissa, x := s[:i], s[i+1:]
	e, _ := strconv.Atoi(x)
	sign := ""
	if mantissa[0] == '-' {
		sign, mantissa = "-", mantissa[1:]
	}
	all := strings.Replace(mantissa, ".", "", 1)
	if e < -4 || e >= digits {
		frac := strings.TrimRight(all[1:], "0")
		if frac != "" {
			frac = "." + frac
		}
		return fmt.Sprintf("%s%s%se%+03d", sign, all[:1], frac, e)
	}
	if e < 0 {
		return sign + "0." + strings.Repeat("0", -e-1) + strings.TrimRight(all, "0")
	}
	for len(all) <= e {
		all += "0"
	}
	frac := strings.TrimRight(all[e+1:], "0")
	if frac != "" {
		frac = "." + frac
	}
	return sign + all[:e+1] + frac
}

// longDouble shows the 80-bit numbers of x86, in 16 bytes.
func longDouble(b []byte, order binary.ByteOrder) string {
	var le [16]byte
	copy(le[:], b)
	if order.String() == "BigEndian" {
		for i := range le {
			le[i] = b[15-i]
		}
	}
	m := binary.LittleEndian.Uint64(le[:8])
	se := binary.LittleEndian.Uint16(le[8:])
	sign := ""
	if se>>15 != 0 {
		sign = "-"
	}
	e := int(se & 0x7fff)
	switch {
	case e == 0x7fff && m<<1 == 0:
		return sign + "inf"
	case e == 0x7fff, e > 0 && m>>63 == 0:
		return sign + "nan"
	case m == 0:
		return sign + "0"
	}
	digits := 18
	if e == 0 {
		e, digits = 1, 1
	}
	f := new(big.Float).SetPrec(64).SetUint64(m)
	f.SetMantExp(f, e-16383-63)
	for ; ; digits++ {
		s := f.Text('e', digits-1)
		g, _, err := big.ParseFloat(s, 10, uint(bits.Len64(m)), big.ToNearestEven)
		if err != nil || g.Cmp(f) == 0 || digits > 40 {
			return sign + general(s, digits)
		}
	}
}

// dumpStrings shows the strings of graphic characters that a NUL ends.
func (o *od) dumpStrings() {
	at := o.skip
	var held []byte
	least := max(o.strings, 0)
	var c [1]byte
	for o.limit < 0 || at-o.skip < o.limit {
		if o.read(c[:]) == 0 {
			break
		}
		o.t.Step(1)
		at++
		if c[0] >= ' ' && c[0] < 127 {
			held = append(held, c[0])
			o.t.Bound("record", int64(len(held)), o.t.K.Limits.Record)
			continue
		}
		if c[0] == 0 && len(held) >= least {
			o.showString(held, at-1-int64(len(held)))
		}
		held = held[:0]
	}
	if o.limit >= 0 && at-o.skip >= o.limit && len(held) >= least && len(held) > 0 {
		o.showString(held, at-int64(len(held)))
	}
}

func (o *od) showString(b []byte, at int64) {
	if o.radix != 'n' {
		o.w.Bytes(append(o.address(o.out[:0], at), ' '))
	}
	o.w.Bytes(b)
	o.w.Byte('\n')
}
