package encode

import (
	"encoding/base64"
	"errors"
	"math"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

var baseOptions = []command.Option{
	{Short: 'd', Long: "decode", Help: "decode data"},
	{Short: 'i', Long: "ignore-garbage", Help: "when decoding, ignore non-alphabet characters"},
	{Short: 'w', Long: "wrap", Arg: command.Required, Name: "COLS", Help: "wrap encoded lines after COLS character (default 76); use 0 to disable line wrapping"},
}

var basencOptions = []command.Option{
	{Long: "base64", Help: "same as 'base64' program (RFC4648 section 4)"},
	{Long: "base64url", Help: "file- and url-safe base64 (RFC4648 section 5)"},
	{Long: "base32", Help: "same as 'base32' program (RFC4648 section 6)"},
	{Long: "base32hex", Help: "extended hex alphabet base32 (RFC4648 section 7)"},
	{Long: "base16", Help: "hex encoding (RFC4648 section 8)"},
	{Long: "base2msbf", Help: "bit string with most significant bit (msb) first"},
	{Long: "base2lsbf", Help: "bit string with least significant bit (lsb) first"},
	{Long: "z85", Help: "ascii85-like encoding (ZeroMQ spec:32/Z85)"},
}

// A code is a way to write bytes as characters. in bytes become out
// characters; fewer bytes are filled up with '=' if it pads.
type code struct {
	alphabet string
	in, out  int
	pads     bool
	lsb      bool // bits of a byte begin with the lowest
}

func codeOf(name string) *code {
	switch name {
	case "base64":
		return &code{alphabet: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", in: 3, out: 4, pads: true}
	case "base64url":
		return &code{alphabet: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", in: 3, out: 4, pads: true}
	case "base32":
		return &code{alphabet: "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", in: 5, out: 8, pads: true}
	case "base32hex":
		return &code{alphabet: "0123456789ABCDEFGHIJKLMNOPQRSTUV", in: 5, out: 8, pads: true}
	case "base16":
		return &code{alphabet: "0123456789ABCDEF", in: 1, out: 2}
	case "base2msbf":
		return &code{alphabet: "01", in: 1, out: 8}
	case "base2lsbf":
		return &code{alphabet: "01", in: 1, out: 8, lsb: true}
	case "z85":
		return &code{alphabet: "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#", in: 4, out: 5}
	}
	return nil
}

func runBase(t *kernel.Task) int {
	name := t.Name()
	spec := command.Spec{
		Name: name, Synopsis: "[OPTION]... [FILE]", About: "Encode or decode FILE, or standard input, to standard output.",
		Options: baseOptions,
	}
	var c *code
	if name == "basenc" {
		spec.Options = append(basencOptions[:len(basencOptions):len(basencOptions)], baseOptions...)
	} else {
		c = codeOf(name)
	}
	a, status, ok := spec.Parse(t)
	if !ok {
		return status
	}
	wrap := 76
	for _, f := range a.Flags {
		switch f.Key {
		case "d", "i":
		case "w":
			n, err := command.ParseUint(f.Value, "")
			if err != nil && !errors.Is(err, command.ErrLarge) {
				command.BadNumber(t, "invalid wrap size", f.Value, err)
				return 1
			}
			wrap = int(min(n, math.MaxInt32))
			if err != nil || n > math.MaxInt64 {
				wrap = 0
			}
		default:
			c = codeOf(f.Key)
		}
	}
	if len(a.Operands) > 1 {
		return spec.Usage(t, "extra operand %s", command.Quote(a.Operands[1]))
	}
	if c == nil {
		return spec.Usage(t, "missing encoding type")
	}
	w := command.Stdout(t)
	in := command.InputNames(a.Operands)[0]
	bad := ""
	if !(command.ReadErrors{Read: "read error"}.One(t, in, func(_ string, r *command.Reader) {
		if a.Has("d") {
			if d := (&decoder{code: c, w: w, garbage: a.Has("i")}); !d.run(r) {
				bad = "invalid input"
			}
			return
		}
		bad = c.encode(r, w, wrap)
	})) {
		return 1
	}
	if bad != "" {
		t.Errorf("%s", bad)
		return 1
	}
	return 0
}

// encode writes the whole input, and tells what is wrong with it.
func (c *code) encode(r *command.Reader, w *command.Writer, wrap int) string {
	column := 0
	var out []byte
	for {
		b := r.Next(c.in * 8192)
		if len(b) == 0 {
			break
		}
		if len(b)%c.in != 0 && c.alphabet[0] == '0' && c.in == 4 {
			return "invalid input (length must be multiple of 4 characters)"
		}
		out = c.append(out[:0], b)
		for rest := out; len(rest) > 0; {
			n := len(rest)
			if wrap > 0 {
				n = min(n, wrap-column)
			}
			w.Bytes(rest[:n])
			rest = rest[n:]
			if column += n; column == wrap && wrap > 0 {
				w.Byte('\n')
				column = 0
			}
		}
	}
	if wrap > 0 && column > 0 {
		w.Byte('\n')
	}
	return ""
}

// append encodes groups; only the last may be short.
func (c *code) append(dst, b []byte) []byte {
	switch {
	case c.in == 3:
		enc := base64.StdEncoding
		if c.alphabet[62] == '-' {
			enc = base64.URLEncoding
		}
		return enc.AppendEncode(dst, b)
	case c.lsb:
		for _, x := range b {
			for i := range 8 {
				dst = append(dst, '0'+x>>i&1)
			}
		}
		return dst
	}
	for len(b) > 0 {
		group := b[:min(c.in, len(b))]
		b = b[len(group):]
		var v uint64
		for i := range c.in {
			v <<= 8
			if i < len(group) {
				v |= uint64(group[i])
			}
		}
		digits := c.out
		if len(group) < c.in {
			digits = (len(group)*c.out + c.in - 1) / c.in
		}
		base := uint64(len(c.alphabet))
		at := len(dst)
		for range c.out {
			dst = append(dst, '=')
		}
		for i := c.out - 1; i >= 0; i-- {
			if i < digits {
				dst[at+i] = c.alphabet[v%base]
			}
			v /= base
		}
	}
	return dst
}

// A decoder takes groups of characters apart.
type decoder struct {
	*code

	w       *command.Writer
	garbage bool
	value   [256]int8 // of a character; -1 is none, -2 the padding
	group   []byte    // what is there of the next group
	out     []byte
}

func (d *decoder) run(r *command.Reader) bool {
	for i := range d.value {
		d.value[i] = -1
	}
	for i := range len(d.alphabet) {
		d.value[d.alphabet[i]] = int8(i)
	}
	if d.alphabet[:1] == "0" && d.pads && !d.garbage {
		// GNU's takes the rest of the letters for those of plain base32.
		for c := byte('W'); c <= 'Z'; c++ {
			d.value[c] = int8(c - 'A')
		}
	}
	if d.value['='] == -1 {
		d.value['='] = -2
	}
	for b, ok := r.Piece(); ok; b, ok = r.Piece() {
		d.out = d.out[:0]
		good := d.take(b)
		d.w.Bytes(d.out)
		if !good {
			return false
		}
	}
	if len(d.group) == 0 || r.Err() != nil {
		return true
	}
	d.out = d.out[:0]
	d.partial(d.group)
	d.w.Bytes(d.out)
	return false
}

func (d *decoder) take(b []byte) bool {
	for _, c := range b {
		if c == '\n' || d.garbage && d.value[c] == -1 {
			continue
		}
		d.group = append(d.group, c)
		if len(d.group) == d.code.out {
			good := d.partial(d.group)
			d.group = d.group[:0]
			if !good {
				return false
			}
		}
	}
	return true
}

// partial decodes a group as far as it is right, and tells whether it is
// right to its end.
func (d *decoder) partial(g []byte) bool {
	switch {
	case d.lsb:
		var x byte
		for i, c := range g {
			if d.value[c] < 0 {
				return false
			}
			x |= byte(d.value[c]) << i
		}
		return d.whole(g, x)
	case d.in == 4:
		var v uint64
		for _, c := range g {
			if d.value[c] < 0 {
				return false
			}
			v = v*85 + uint64(d.value[c])
		}
		if len(g) < 5 || v > math.MaxUint32 {
			return false
		}
		d.out = append(d.out, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
		return true
	}
	bits := d.in * 8 / d.code.out
	if d.in == 5 && len(g) < d.code.out {
		return false
	}
	var v uint64
	n := 0
	for i, c := range g {
		x := d.value[c]
		if x == -2 && d.pads {
			return d.padding(g, i)
		}
		if x < 0 {
			return false
		}
		v = v<<bits | uint64(x)
		if n += bits; n >= 8 {
			n -= 8
			d.out = append(d.out, byte(v>>n))
			v &= 1<<n - 1
		}
	}
	return len(g) == d.code.out
}

// whole adds a byte if its group is complete.
func (d *decoder) whole(g []byte, x byte) bool {
	if len(g) < d.code.out {
		return false
	}
	d.out = append(d.out, x)
	return true
}

// padding reports whether a group of i characters may be filled up like that.
func (d *decoder) padding(g []byte, i int) bool {
	if len(g) < d.code.out {
		return false
	}
	for _, c := range g[i:] {
		if c != '=' {
			return false
		}
	}
	if d.in == 3 {
		return i >= 2
	}
	return i == 2 || i == 4 || i == 5 || i == 7
}
