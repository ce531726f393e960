package encode

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

const xxdUsage = `Usage:
       xxd [options] [infile [outfile]]
    or
       xxd -r [-s [-]offset] [-c cols] [-ps] [infile [outfile]]
Options:
    -a          toggle autoskip: A single '*' replaces nul-lines. Default off.
    -b          binary digit dump (incompatible with -ps,-i,-r). Default hex.
    -C          capitalize variable names in C include file style (-i).
    -c cols     format <cols> octets per line. Default 16 (-i: 12, -ps: 30).
    -E          show characters in EBCDIC. Default ASCII.
    -e          little-endian dump (incompatible with -ps,-i,-r).
    -g bytes    number of octets per group in normal output. Default 2 (-e: 4).
    -h          print this summary.
    -i          output in C include file style.
    -l len      stop after <len> octets.
    -n name     set the variable name used in C include output (-i).
    -o off      add <off> to the displayed file position.
    -ps         output in postscript plain hexdump style.
    -r          reverse operation: convert (or patch) hexdump into binary.
    -r -s off   revert with <off> added to file positions found in hexdump.
    -d          show offset in decimal instead of hex.
    -s [+][-]seek  start at <seek> bytes abs. (or +: rel.) infile offset.
    -u          use upper case hex letters.
    -v          show version: "xxd (Paddock)".
`

// An xxd is what was asked for.
type xxd struct {
	t    *kernel.Task
	w    *command.Writer
	kind byte // 0, or b, e, p, i

	skip, capital, ebcdic, decimal, reverse, upper bool
	cols, group                                    int // -1 is the default
	length                                         int64
	offset                                         int64
	seek                                           int64
	relative, backwards                            bool
	name                                           string
}

func runXxd(t *kernel.Task) int {
	x := &xxd{t: t, cols: -1, group: -1, length: -1}
	operands, status, ok := x.options(t.Args[1:])
	if !ok {
		return status
	}
	if status := x.settle(); status != 0 {
		return status
	}
	in := "-"
	if len(operands) > 0 {
		in = operands[0]
	}
	r, err := command.OpenReader(t, in)
	if err != nil {
		t.Errorf("%s: %s", in, reason(err))
		return 2
	}
	defer r.Close()
	x.w = command.StdoutStatus(t, 3)
	var patch *command.Output
	if len(operands) > 1 && operands[1] != "-" {
		flags := linux.O_TRUNC
		if x.reverse {
			flags = 0
		}
		o, err := command.Create(t, operands[1], flags)
		if err != nil {
			t.Errorf("%s: %s", operands[1], reason(err))
			return 3
		}
		defer func() { _ = o.Close() }()
		patch = o
		x.w = command.NewWriter(o, func(err error) {
			t.Errorf("%s", reason(err))
			t.Exit(3)
		})
	}
	switch {
	case x.reverse:
		status = x.revert(r, patch)
	case !x.start(r):
		t.Errorf("Sorry, cannot seek.")
		return 4
	case x.kind == 'i':
		x.include(r, in)
	case x.kind == 'p':
		x.plain(r)
	default:
		x.dump(r)
	}
	if patch != nil {
		x.w.Flush()
	}
	if r.Err() != nil {
		t.Errorf("%s", reason(r.Err()))
		return 2
	}
	return status
}

func (x *xxd) usage() int {
	_, _ = x.t.Write(2, []byte(xxdUsage))
	return 1
}

// options reads options as xxd does, whose names can be cut short and have
// their values glued on.
func (x *xxd) options(args []string) (operands []string, status int, ok bool) {
	for len(args) > 0 {
		arg := args[0]
		if strings.HasPrefix(arg, "--") && len(arg) > 2 {
			arg = arg[1:]
		}
		if len(arg) < 2 || arg[0] != '-' {
			break
		}
		if arg == "--" {
			args = args[1:]
			break
		}
		value := func(name string) (string, bool) {
			rest := arg[2:]
			if rest != "" && !strings.HasPrefix(name, rest) {
				return rest, true
			}
			if len(args) < 2 {
				return "", false
			}
			args = args[1:]
			return args[0], true
		}
		var v string
		given := true
		switch arg[1] {
		case 'a':
			x.skip = !x.skip
		case 'b', 'e', 'i':
			x.kind = arg[1]
		case 'p':
			x.kind = 'p'
		case 'u':
			x.upper = true
		case 'd':
			x.decimal = true
		case 'r':
			x.reverse = true
		case 'E':
			x.ebcdic = true
		case 'C':
			x.capital = true
		case 'v':
			fmt.Fprintf(x.t.Out(), "xxd (Paddock)\n")
			return nil, 0, false
		case 'c':
			if len(arg) > 2 && strings.HasPrefix("apitalize", arg[2:]) {
				x.capital = true
				break
			}
			if v, given = value("ols"); given {
				if x.cols = int(clamp(number(v))); x.cols < 0 {
					x.cols = math.MaxInt32
				}
			}
		case 'g':
			if v, given = value("roupsize"); given {
				x.group = int(clamp(number(v)))
			}
		case 'o':
			if v, given = value("ffset"); given {
				x.offset = number(v)
			}
		case 's':
			name := "kip"
			if strings.HasPrefix(arg, "-se") {
				name = "eek"
			}
			if v, given = value(name); given {
				if strings.HasPrefix(v, "+") {
					x.relative, v = true, v[1:]
				}
				if strings.HasPrefix(v, "-") {
					x.backwards, v = true, v[1:]
				}
				x.seek = number(v)
			}
		case 'l':
			if v, given = value("en"); given {
				x.length = number(v)
			}
		case 'n':
			x.name, given = value("ame")
		default:
			return nil, x.usage(), false
		}
		if !given {
			return nil, x.usage(), false
		}
		args = args[1:]
	}
	if len(args) > 2 {
		return nil, x.usage(), false
	}
	return args, 0, true
}

func clamp(n int64) int64 { return max(math.MinInt32, min(n, math.MaxInt32)) }

// number reads a number as strtol does.
func number(s string) int64 {
	end := 0
	if end < len(s) && (s[end] == '-' || s[end] == '+') {
		end++
	}
	hex := strings.HasPrefix(strings.ToLower(s[end:]), "0x")
	if hex {
		end += 2
	}
	for end < len(s) && (s[end] >= '0' && s[end] <= '9' || hex && isHexDigit(s[end])) {
		end++
	}
	n, err := strconv.ParseInt(s[:end], 0, 64)
	if err != nil {
		n, _ = strconv.ParseInt(s[:end], 10, 64) // what is no number is 0
	}
	return n
}

func (x *xxd) settle() int {
	const most = 256
	if x.cols < 0 || x.cols == 0 && x.kind != 'p' {
		switch x.kind {
		case 'p':
			x.cols = 30
		case 'i':
			x.cols = 12
		case 'b':
			x.cols = 6
		default:
			x.cols = 16
		}
	}
	if x.group < 0 {
		switch x.kind {
		case 'b':
			x.group = 1
		case 'e':
			x.group = 4
		case 'p', 'i':
			x.group = 0
		default:
			x.group = 2
		}
	}
	if (x.cols < 1 || x.kind == 0 || x.kind == 'b' || x.kind == 'e') && x.cols > most || x.cols < 0 {
		x.t.Errorf("invalid number of columns (max. %d).", most)
		return 1
	}
	if x.group < 1 || x.group > x.cols {
		x.group = x.cols
	} else if x.kind == 'e' && x.group&(x.group-1) != 0 {
		x.t.Errorf("number of octets per group must be a power of 2 with -e.")
		return 1
	}
	if x.reverse && x.kind != 0 && x.kind != 'p' {
		x.t.Errorf("Sorry, cannot revert this type of hexdump")
		return -1 & 0xff
	}
	return 0
}

// start goes to where the dump begins.
func (x *xxd) start(r *command.Reader) bool {
	if x.seek == 0 && !x.backwards {
		return true
	}
	if x.backwards {
		f, ok := r.Desc().VFS()
		if !ok {
			return false
		}
		i, err := f.Info()
		if err != nil || x.seek > i.Size {
			return false
		}
		if x.seek > 0 {
			if _, err := f.Seek(-x.seek, 2); err != nil {
				return false
			}
		}
		x.seek = i.Size - x.seek
		return true
	}
	if s, ok := r.Desc().File.(kernel.Seeker); ok {
		_, err := s.Seek(x.seek, 0)
		return err == nil
	}
	return r.Skip(x.seek) == x.seek
}

// next gives up to n bytes, within the length that was asked for.
func (x *xxd) next(r *command.Reader, n int, done int64) []byte {
	if x.length >= 0 {
		n = int(min(int64(n), x.length-done))
	}
	if n <= 0 {
		return nil
	}
	return r.Next(n)
}

func (x *xxd) digits() string {
	if x.upper {
		return "0123456789ABCDEF"
	}
	return "0123456789abcdef"
}

func (x *xxd) plain(r *command.Reader) {
	digits := x.digits()
	cols := x.cols
	var done int64
	var out []byte
	for {
		n := cols
		if n == 0 {
			n = 8192
		}
		b := x.next(r, n, done)
		if len(b) == 0 {
			break
		}
		done += int64(len(b))
		out = out[:0]
		for _, c := range b {
			out = append(out, digits[c>>4], digits[c&15])
		}
		if cols > 0 {
			out = append(out, '\n')
		}
		x.w.Bytes(out)
		x.t.Step(1)
	}
	if cols == 0 {
		x.w.Byte('\n')
	}
}

func (x *xxd) include(r *command.Reader, name string) {
	named := name != "-" || x.name != ""
	if x.name != "" {
		name = x.name
	}
	variable := ""
	if named {
		b := []byte(name)
		for i, c := range b {
			if c|0x20 < 'a' || c|0x20 > 'z' {
				if c < '0' || c > '9' {
					b[i] = '_'
				}
			}
			if x.capital && c >= 'a' && c <= 'z' {
				b[i] = c - 'a' + 'A'
			}
		}
		variable = string(b)
		if b[0] >= '0' && b[0] <= '9' {
			variable = "__" + variable
		}
		x.w.String("unsigned char " + variable + "[] = {\n")
	}
	digits, prefix := x.digits(), "0x"
	if x.upper {
		prefix = "0X"
	}
	var done int64
	for {
		b := x.next(r, 4096, done)
		if len(b) == 0 {
			break
		}
		for _, c := range b {
			switch {
			case done == 0:
				x.w.String("  ")
			case done%int64(x.cols) == 0:
				x.w.String(",\n  ")
			default:
				x.w.String(", ")
			}
			x.w.String(prefix)
			x.w.Byte(digits[c>>4])
			x.w.Byte(digits[c&15])
			done++
		}
	}
	if done > 0 {
		x.w.Byte('\n')
	}
	if named {
		x.w.String("};\n")
		suffix := "_len"
		if x.capital {
			suffix = "_LEN"
		}
		x.w.Printf("unsigned int %s%s = %d;\n", variable, suffix, done)
	}
}

func (x *xxd) dump(r *command.Reader) {
	digits := x.digits()
	per := 2 // characters of a byte
	if x.kind == 'b' {
		per = 8
	}
	width := x.group*per + 1
	var done int64
	var line []byte
	zeros, held := 0, []byte(nil) // lines of zeros in a row, the last of them
	for {
		b := x.next(r, x.cols, done)
		if len(b) == 0 {
			break
		}
		line = line[:0]
		if x.decimal {
			line = fmt.Appendf(line, "%08d:", done+x.seek+x.offset)
		} else {
			line = fmt.Appendf(line, "%08x:", uint64(done+x.seek+x.offset))
		}
		start := len(line) + 1
		text := start + (width*x.cols-1)/x.group + 2
		for len(line) < text+len(b)+2*width {
			line = append(line, ' ')
		}
		zero := true
		for i, c := range b {
			zero = zero && c == 0
			k := i
			if x.kind == 'e' {
				k = i ^ (x.group - 1)
			}
			at := start + k/x.group*width + k%x.group*per
			if per == 8 {
				for bit := range 8 {
					line[at+bit] = '0' + c>>(7-bit)&1
				}
			} else {
				line[at], line[at+1] = digits[c>>4], digits[c&15]
			}
			line[text+i] = x.character(c)
		}
		line = append(line[:text+len(b)], '\n')
		done += int64(len(b))
		x.t.Step(1)
		if !x.skip || !zero {
			x.after(zeros, held)
			zeros = 0
			x.w.Bytes(line)
			continue
		}
		zeros++
		if zeros == 1 {
			x.w.Bytes(line)
		}
		held = append(held[:0], line...)
	}
	if zeros > 1 {
		if zeros > 2 {
			x.w.String("*\n")
		}
		x.w.Bytes(held)
	}
}

// after ends a run of lines of zeros of which the first was shown.
func (x *xxd) after(zeros int, last []byte) {
	switch {
	case zeros == 2:
		x.w.Bytes(last)
	case zeros > 2:
		x.w.String("*\n")
	}
}

// ebcdic has the characters from 0x40 on.
const ebcdic = " ...........<(+|&.........!$*);~-/.........,%_>?.........`:#@'=\"" +
	".abcdefghi.......jklmnopqr^.......stuvwxyz...[...............].." +
	"{ABCDEFGHI......}JKLMNOPQR......\\.STUVWXYZ......0123456789......"

func (x *xxd) character(c byte) byte {
	if x.ebcdic {
		if c < 0x40 {
			return '.'
		}
		return ebcdic[c-0x40]
	}
	if c > 31 && c < 127 {
		return c
	}
	return '.'
}

func hexValue(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}
