package encode

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

var hexdumpSpec = command.Spec{
	Name: "hexdump", Synopsis: "[options] <file>...",
	About: "Display file contents in hexadecimal, decimal, octal, or ascii.",
	Options: []command.Option{
		{Short: 'b', Long: "one-byte-octal", Help: "one-byte octal display"},
		{Short: 'c', Long: "one-byte-char", Help: "one-byte character display"},
		{Short: 'C', Long: "canonical", Help: "canonical hex+ASCII display"},
		{Short: 'd', Long: "two-bytes-decimal", Help: "two-byte decimal display"},
		{Short: 'o', Long: "two-bytes-octal", Help: "two-byte octal display"},
		{Short: 'x', Long: "two-bytes-hex", Help: "two-byte hexadecimal display"},
		{Short: 'L', Long: "color", Arg: command.Optional, Name: "mode", Help: "(ignored)"},
		{Short: 'e', Long: "format", Arg: command.Required, Name: "format", Help: "format string to be used for displaying data"},
		{Short: 'f', Long: "format-file", Arg: command.Required, Name: "file", Help: "file that contains format strings"},
		{Short: 'n', Long: "length", Arg: command.Required, Name: "length", Help: "interpret only length bytes of input"},
		{Short: 's', Long: "skip", Arg: command.Required, Name: "offset", Help: "skip offset bytes from the beginning"},
		{Short: 'v', Long: "no-squeezing", Help: "output identical lines"},
		{Short: 'h', Long: "help"}, {Short: 'V', Long: "version"},
	},
	NoHelp: true,
}

// A part of a format is text, or a conversion of some bytes.
type part struct {
	text  string // literal, or the directive up to the conversion: "%07.7"
	verb  string // "" is text; "_a" and the like have their second letter in arg
	arg   byte
	bytes int
	space string // literal blanks behind it, which the last repetition leaves out
}

// A unit of a format is repeated.
type unit struct {
	times    int
	explicit bool
	bytes    int // of one repetition
	parts    []part
}

// A format is one line of units; several show the same bytes again.
type format struct {
	units []unit
	bytes int
}

type hexdump struct {
	t       *kernel.Task
	w       *command.Writer
	formats []format
	block   int
	end     string // directive for the address at the end, with its text
	endVerb byte
	endText string
	skip    int64
	length  int64
	all     bool
	names   []string
	r       *command.Reader
	status  int
	opened  int
}

// formatDepth bounds what one format may have.
const formatDepth = 4096

func runHexdump(t *kernel.Task) int {
	a, status, ok := hexdumpSpec.Parse(t)
	if !ok {
		return status
	}
	h := &hexdump{t: t, w: command.Stdout(t), length: -1, all: a.Has("v")}
	if a.Has("h") || a.Has("V") {
		h.w.String("Usage:\n hexdump [options] <file>...\n hd [options] <file>...\n\nDisplay file contents in hexadecimal, decimal, octal, or ascii.\n")
		return 0
	}
	var list []string
	canonical := func() {
		list = append(list, `"%08.8_Ax\n"`, `"%08.8_ax  " 8/1 "%02x " "  " 8/1 "%02x " `, `"  |" 16/1 "%_p" "|\n"`)
	}
	if t.Name() == "hd" {
		canonical()
	}
	for _, f := range a.Flags {
		const at = `"%07.7_Ax\n"`
		switch f.Key {
		case "b":
			list = append(list, at, `"%07.7_ax " 16/1 "%03o " "\n"`)
		case "c":
			list = append(list, at, `"%07.7_ax " 16/1 "%3_c " "\n"`)
		case "C":
			canonical()
		case "d":
			list = append(list, at, `"%07.7_ax " 8/2 "  %05u " "\n"`)
		case "o":
			list = append(list, at, `"%07.7_ax " 8/2 " %06o " "\n"`)
		case "x":
			list = append(list, at, `"%07.7_ax " 8/2 "   %04x " "\n"`)
		case "e":
			list = append(list, f.Value)
		case "f":
			b, err := command.ReadAll(t, f.Value)
			if err != nil {
				t.Errorf("can't read %s: %s", f.Value, reason(err))
				return 1
			}
			for _, line := range strings.Split(string(b), "\n") {
				if s := strings.TrimSpace(line); s != "" && s[0] != '#' {
					list = append(list, s)
				}
			}
		case "n", "s":
			n, err := sized(f.Value, "KkMmGTPEYZb0")
			if err != nil || n > math.MaxInt64 {
				t.Errorf("failed to parse %s: %s", map[string]string{"n": "length", "s": "offset"}[f.Key], command.QuoteAlways(f.Value))
				return 1
			}
			if f.Key == "n" {
				h.length = int64(n)
			} else {
				h.skip = int64(n)
			}
		}
	}
	if len(list) == 0 {
		list = []string{`"%07.7_Ax\n"`, `"%07.7_ax " 8/2 "%04x " "\n"`}
	}
	for _, s := range list {
		if err := h.parse(s); err != nil {
			t.Errorf("%s", err)
			return 1
		}
	}
	h.names = command.InputNames(a.Operands)
	defer func() {
		if h.r != nil {
			h.r.Close()
		}
	}()
	h.settle()
	h.run()
	return h.status
}

// parse reads a format: repetitions/bytes "text", again and again.
func (h *hexdump) parse(s string) error {
	var f format
	bad := errors.New("bad format {" + s + "}")
	rest := s
	for {
		rest = strings.TrimLeft(rest, " \t\n\v\f\r")
		if rest == "" {
			break
		}
		if len(f.units) >= formatDepth || len(h.formats) >= formatDepth {
			return bad
		}
		u := unit{times: 1}
		count := func() int {
			n := 0
			for rest != "" && rest[0] >= '0' && rest[0] <= '9' {
				n = min(n*10+int(rest[0]-'0'), 1<<20)
				rest = rest[1:]
			}
			return n
		}
		if rest[0] >= '0' && rest[0] <= '9' {
			u.times, u.explicit = count(), true
			rest = strings.TrimLeft(rest, " \t")
		}
		size := 0
		if strings.HasPrefix(rest, "/") {
			rest = strings.TrimLeft(rest[1:], " \t")
			if rest == "" || rest[0] < '0' || rest[0] > '9' {
				return bad
			}
			size = count()
			rest = strings.TrimLeft(rest, " \t")
		}
		if !strings.HasPrefix(rest, `"`) {
			return bad
		}
		end := strings.IndexByte(rest[1:], '"')
		if end < 0 {
			return bad
		}
		if err := h.unit(&u, unescapeFormat(rest[1:1+end]), size); err != nil {
			return err
		}
		rest = rest[end+2:]
		if len(u.parts) > 0 {
			f.units = append(f.units, u)
			f.bytes += u.bytes * u.times
			if f.bytes > 1<<20 {
				return bad
			}
		}
	}
	if len(f.units) > 0 {
		h.formats = append(h.formats, f)
	}
	return nil
}

func unescapeFormat(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if k := strings.IndexByte("abtnvfr", s[i]); k >= 0 {
			b.WriteByte("\a\b\t\n\v\f\r"[k])
		} else {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// unit reads the directives of a unit. size is how many bytes each takes, or
// 0 for what is usual.
func (h *hexdump) unit(u *unit, s string, size int) error {
	text := ""
	for s != "" {
		if s[0] != '%' {
			text += s[:1]
			s = s[1:]
			continue
		}
		i := 1
		for i < len(s) && strings.IndexByte(" +-#0123456789.", s[i]) >= 0 {
			i++
		}
		if i == len(s) {
			return errors.New("bad format")
		}
		p := part{text: s[:i], verb: s[i : i+1]}
		precision := -1
		if _, after, ok := strings.Cut(p.text, "."); ok {
			precision, _ = strconv.Atoi(after) // no digits are none
		}
		s = s[i+1:]
		switch p.verb {
		case "c":
			p.bytes = 1
		case "d", "i", "o", "u", "x", "X":
			if p.bytes = size; size == 0 {
				p.bytes = 4
			}
			if p.bytes != 1 && p.bytes != 2 && p.bytes != 4 && p.bytes != 8 {
				return fmt.Errorf("bad byte count for conversion character %s", p.verb)
			}
		case "e", "E", "f", "g", "G":
			if p.bytes = size; size == 0 {
				p.bytes = 8
			}
			if p.bytes != 4 && p.bytes != 8 {
				return fmt.Errorf("bad byte count for conversion character %s", p.verb)
			}
		case "s":
			if p.bytes = precision; precision < 0 {
				p.bytes = size
			}
			if p.bytes <= 0 {
				return errors.New("%s requires a precision or a byte count")
			}
		case "_":
			if s == "" {
				return errors.New("bad conversion character %_")
			}
			p.verb += s[:1]
			s = s[1:]
			switch p.verb[1] {
			case 'A', 'a':
				if s == "" || strings.IndexByte("dox", s[0]) < 0 {
					return fmt.Errorf("bad conversion character %%%s", p.verb)
				}
				p.arg = s[0]
				s = s[1:]
				if p.verb[1] == 'A' {
					h.end, h.endVerb, h.endText = text+p.text, p.arg, s
					return nil
				}
			case 'c', 'p', 'u':
				p.bytes = 1
			default:
				return fmt.Errorf("bad conversion character %%%s", p.verb)
			}
		default:
			return fmt.Errorf("bad conversion character %%%s", p.verb)
		}
		if text != "" {
			u.parts = append(u.parts, part{text: text})
			text = ""
		}
		u.parts = append(u.parts, p)
		u.bytes += p.bytes
		if len(u.parts) > formatDepth {
			return errors.New("bad format")
		}
	}
	if text != "" {
		u.parts = append(u.parts, part{text: text})
	}
	if u.bytes == 0 && size > 0 {
		u.bytes = size
	}
	return nil
}

// settle finds how long a block is, and repeats the last units to fill it.
func (h *hexdump) settle() {
	for _, f := range h.formats {
		h.block = max(h.block, f.bytes)
	}
	for i := range h.formats {
		f := &h.formats[i]
		last := &f.units[len(f.units)-1]
		if f.bytes < h.block && !last.explicit && last.bytes > 0 {
			last.times += (h.block - f.bytes) / last.bytes
		}
		for k := range f.units {
			u := &f.units[k]
			if n := len(u.parts) - 1; u.times > 1 && u.parts[n].verb == "" {
				text := u.parts[n].text
				trimmed := strings.TrimRight(text, " \t\n\v\f\r")
				if len(trimmed) < len(text) {
					u.parts[n].text, u.parts[n].space = trimmed, text[len(trimmed):]
				}
			}
		}
	}
}

func (h *hexdump) next() bool {
	if h.r != nil {
		if err := h.r.Err(); err != nil {
			h.t.Errorf("%s", reason(err))
			h.status = 1
		}
		h.r.Close()
		h.r = nil
	}
	for len(h.names) > 0 {
		name := h.names[0]
		h.names = h.names[1:]
		r, err := command.OpenReader(h.t, name)
		if err != nil {
			h.t.Errorf("%s: %s", name, reason(err))
			h.status = 1
			continue
		}
		h.r = r
		h.opened++
		return true
	}
	if h.opened == 0 {
		h.t.Errorf("all input file arguments failed")
		h.status = 1
	}
	return false
}

func (h *hexdump) run() {
	if h.length == 0 || !h.next() {
		return
	}
	left := h.skip
	for left > 0 && h.r != nil {
		if _, ok := h.r.Desc().File.(kernel.Seeker); !ok {
			h.t.Errorf("stdin: %s", reason(linux.ESPIPE))
			h.t.Exit(1)
		}
		left -= h.r.Skip(left)
		if left > 0 {
			h.next()
		}
	}
	at := h.skip - left
	if h.block == 0 {
		return
	}
	h.t.Grow(2 * h.block)
	last, now := make([]byte, h.block), make([]byte, h.block)
	left = h.length
	star, first := false, true
	for {
		want := h.block
		if left >= 0 {
			want = int(min(int64(want), left))
		}
		n := 0
		for n < want && h.r != nil {
			k, err := h.r.Read(now[n:want])
			n += k
			if err != nil {
				h.next()
			}
		}
		if n == 0 {
			break
		}
		if left >= 0 {
			left -= int64(n)
		}
		clear(now[n:])
		if !h.all && !first && n == h.block && string(now) == string(last) {
			if !star {
				h.w.String("*\n")
				star = true
			}
		} else {
			star = false
			for i := range h.formats {
				h.show(&h.formats[i], now, n, at)
			}
		}
		first = false
		at += int64(n)
		last, now = now, last
		if n < h.block {
			break
		}
	}
	if h.end != "" && at > 0 {
		h.w.String(format1(h.end, at, h.endVerb) + h.endText)
	}
}

func format1(directive string, n int64, verb byte) string {
	return fmt.Sprintf(directive+string(rune(verb)), n)
}

// show shows a block; n is how much of it was read.
func (h *hexdump) show(f *format, b []byte, n int, at int64) {
	pos := 0
	for i := range f.units {
		u := &f.units[i]
		for k := range u.times {
			h.t.Step(1)
			start := pos
			for j := range u.parts {
				p := &u.parts[j]
				switch {
				case p.verb == "":
					h.w.String(p.text)
				case p.verb == "_a":
					h.w.String(format1(p.text, at+int64(pos), p.arg))
				case pos >= n:
					h.w.String(fmt.Sprintf(blankDirective(p.text)+"s", ""))
					pos += p.bytes
				default:
					h.convert(p, b[pos:min(len(b), pos+p.bytes)])
					pos += p.bytes
				}
				if p.space != "" && k < u.times-1 {
					h.w.String(p.space)
				}
			}
			pos = start + u.bytes
		}
	}
}

// blankDirective leaves what a directive for no data can have.
func blankDirective(s string) string {
	s, _, _ = strings.Cut(s, ".")
	return strings.Map(func(c rune) rune {
		if c == '0' || c == '#' || c == '+' || c == ' ' {
			return -1
		}
		return c
	}, s[:1]+strings.TrimLeft(s[1:], "0#+ ")) // a width has no zeros in front
}

func (h *hexdump) convert(p *part, b []byte) {
	switch p.verb {
	case "c":
		h.w.String(fmt.Sprintf(p.text+"s", string(b[:1])))
	case "s":
		s := string(b)
		if i := strings.IndexByte(s, 0); i >= 0 {
			s = s[:i]
		}
		h.w.String(fmt.Sprintf(p.text+"s", s))
	case "_c":
		h.w.String(fmt.Sprintf(p.text+"s", charName(b[0])))
	case "_p":
		c := b[0]
		if c < ' ' || c >= 127 {
			c = '.'
		}
		h.w.String(fmt.Sprintf(p.text+"s", string(rune(c))))
	case "_u":
		name := controlName(b[0])
		switch {
		case b[0] == '\n':
			name = "lf"
		case b[0] >= 127 && b[0] != 127, b[0] > 127:
			name = fmt.Sprintf("%02x", b[0])
		case b[0] == ' ':
			name = " "
		}
		h.w.String(fmt.Sprintf(p.text+"s", name))
	case "e", "E", "f", "g", "G":
		var v float64
		if len(b) == 4 {
			v = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		} else {
			v = math.Float64frombits(binary.LittleEndian.Uint64(b))
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			directive, _, _ := strings.Cut(strings.ReplaceAll(p.text, "0", ""), ".")
			h.w.String(fmt.Sprintf(directive+"s", shortest(v, 6, 64)))
			return
		}
		h.w.String(fmt.Sprintf(withPrecision(p.text)+p.verb, v))
	default:
		var u uint64
		for i := len(b) - 1; i >= 0; i-- {
			u = u<<8 | uint64(b[i])
		}
		directive := p.text
		if u == 0 {
			directive = strings.ReplaceAll(directive, "#", "")
		}
		switch p.verb {
		case "d", "i":
			shift := 64 - 8*len(b)
			h.w.String(fmt.Sprintf(directive+"d", int64(u<<shift)>>shift))
		case "u":
			h.w.String(fmt.Sprintf(directive+"d", u))
		case "o":
			h.w.String(fmt.Sprintf(directive+"o", u))
		default:
			h.w.String(fmt.Sprintf(directive+p.verb, u))
		}
	}
}

func withPrecision(s string) string {
	if strings.IndexByte(s, '.') < 0 {
		return s + ".6"
	}
	return s
}
