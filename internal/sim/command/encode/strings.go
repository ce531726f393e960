package encode

import (
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

var stringsSpec = command.Spec{
	Name: "strings", Synopsis: "[option(s)] [file(s)]",
	About: "Display printable strings in [file(s)] (stdin by default)",
	Options: []command.Option{
		{Short: 'a', Long: "all", Help: "scan the entire file"}, {Short: 'd', Long: "data", Help: "(the entire file, too)"},
		{Short: 'f', Long: "print-file-name", Help: "print the name of the file before each string"},
		{Short: 'n', Long: "bytes", Arg: command.Required, Name: "number", Help: "locate & print any sequence of at least <number> displayable characters (the default is 4)"},
		{Short: 't', Long: "radix", Arg: command.Required, Name: "{o,d,x}", Help: "print the location of the string in base 8, 10 or 16"},
		{Short: 'w', Long: "include-all-whitespace", Help: "include all whitespace as valid string characters"},
		{Short: 'o', Help: "an alias for --radix=o"},
		{Short: 'T', Long: "target", Arg: command.Required, Name: "BFDNAME", Help: "(ignored)"},
		{Short: 'e', Long: "encoding", Arg: command.Required, Name: "{s,S,b,l,B,L}", Help: "select character size and endianness: s = 7-bit, S = 8-bit, {b,l} = 16-bit, {B,L} = 32-bit"},
		{Short: 's', Long: "output-separator", Arg: command.Required, Name: "string", Help: "string used to separate strings in output"},
		{Short: '1'}, {Short: '2'}, {Short: '3'}, {Short: '4'}, {Short: '5'}, {Short: '6'}, {Short: '7'}, {Short: '8'}, {Short: '9'}, {Short: '0'},
		{Short: 'h', Long: "help"}, {Short: 'v', Long: "version"}, {Short: 'V'},
	},
	NoHelp: true,
}

type finder struct {
	t         *kernel.Task
	w         *command.Writer
	least     int
	radix     int // 0 is none
	space     bool
	name      bool
	encoding  byte
	separator string
}

func runStrings(t *kernel.Task) int {
	a, status, ok := stringsSpec.Parse(t)
	if !ok {
		return status
	}
	f := &finder{t: t, w: command.Stdout(t), least: 4, encoding: 's', separator: "\n", name: a.Has("f"), space: a.Has("w")}
	if a.Has("h") || a.Has("v") || a.Has("V") {
		f.w.String("Usage: strings [option(s)] [file(s)]\n Display printable strings in [file(s)] (stdin by default)\n")
		return 0
	}
	digits := ""
	for _, o := range a.Flags {
		switch o.Key {
		case "n":
			n, err := command.ParseUint(o.Value, "")
			if err != nil {
				t.Errorf("invalid integer argument %s", o.Value)
				return 1
			}
			f.least = int(min(n, 1<<31-1))
			if n < 1 {
				t.Errorf("minimum string length is too small: %d", n)
				return 1
			}
		case "t":
			switch o.Value {
			case "o":
				f.radix = 8
			case "d":
				f.radix = 10
			case "x":
				f.radix = 16
			default:
				return stringsUsage(t)
			}
		case "o":
			f.radix = 8
		case "e":
			if len(o.Value) != 1 || strings.IndexByte("sSblBL", o.Value[0]) < 0 {
				return stringsUsage(t)
			}
			f.encoding = o.Value[0]
		case "s":
			f.separator = o.Value
		case "0", "1", "2", "3", "4", "5", "6", "7", "8", "9":
			digits += o.Key
			n, _ := strconv.Atoi(digits) // too many digits are as many as can be
			f.least = n
		}
	}
	if f.least < 1 {
		t.Errorf("minimum string length is too small: %d", f.least)
		return 1
	}
	if len(a.Operands) == 0 {
		if !(command.ReadErrors{}).One(t, "-", func(_ string, r *command.Reader) { f.find("{standard input}", r) }) {
			return 1
		}
		return 0
	}
	status = 0
	for _, name := range a.Operands {
		i, err := t.View.Stat(name)
		switch {
		case name == "-":
		case err != nil:
			_, _ = t.Write(2, []byte("strings: '"+name+"': No such file\n"))
			status = 1
			continue
		case i.IsDir():
			_, _ = t.Write(2, []byte("strings: Warning: '"+name+"' is a directory\n"))
			status = 1
			continue
		}
		status = max(status, command.EachFile(t, []string{name}, func(_ string, r *command.Reader) { f.find(name, r) }))
	}
	return status
}

func stringsUsage(t *kernel.Task) int {
	_, _ = t.Write(2, []byte("Usage: strings [option(s)] [file(s)]\n Display printable strings in [file(s)] (stdin by default)\n"))
	return 1
}

func (f *finder) shows(c uint32) bool {
	switch {
	case c == '\t', c >= ' ' && c < 127:
		return true
	case c > 127 && c < 256:
		return f.encoding == 'S'
	case f.space && (c >= '\n' && c <= '\r'):
		return true
	}
	return false
}

// find shows the strings of a file.
func (f *finder) find(name string, r *command.Reader) {
	size := 1
	switch f.encoding {
	case 'b', 'l':
		size = 2
	case 'B', 'L':
		size = 4
	}
	var held []byte
	var start, at int64
	shown := false
	flush := func() {
		if len(held) > 0 && shown {
			f.w.Bytes(held)
			f.w.String(f.separator)
		}
		held, shown = held[:0], false
	}
	var window []byte
	for b, ok := r.Piece(); ok; b, ok = r.Piece() {
		for _, x := range b {
			f.t.Step(0)
			c := uint32(x)
			if size > 1 {
				window = append(window, x)
				if len(window) < size {
					at++
					continue
				}
				c = f.wide(window)
				if !f.shows(c) {
					// The next one may begin one byte later.
					flush()
					window = append(window[:0], window[1:]...)
					at++
					continue
				}
				window = window[:0]
			} else if !f.shows(c) {
				flush()
				at++
				continue
			}
			if len(held) == 0 && !shown {
				start = at - int64(size) + 1
			}
			if held = append(held, byte(c)); len(held) > 1<<16 {
				f.t.Bound("record", int64(len(held)), f.t.K.Limits.Record)
			}
			at++
			if !shown && len(held) >= f.least {
				shown = true
				f.lead(name, start)
			}
			if shown && len(held) > 4096 {
				f.w.Bytes(held[:len(held)-1])
				held = append(held[:0], held[len(held)-1])
			}
		}
		f.t.Step(len(b) >> 6)
	}
	flush()
}

func (f *finder) wide(b []byte) uint32 {
	var c uint32
	for i := range b {
		k := i
		if f.encoding == 'l' || f.encoding == 'L' {
			k = len(b) - 1 - i
		}
		c = c<<8 | uint32(b[k])
	}
	return c
}

func (f *finder) lead(name string, at int64) {
	if f.name {
		f.w.String(name + ": ")
	}
	if f.radix > 0 {
		s := strconv.FormatInt(at, f.radix)
		f.w.Repeat(' ', 7-len(s))
		f.w.String(s + " ")
	}
}
