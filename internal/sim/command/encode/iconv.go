package encode

import (
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

var iconvSpec = command.Spec{
	Name: "iconv", Synopsis: "[OPTION...] [FILE...]", Exit: 64, NoTry: true,
	About: "Convert encoding of given files from one encoding to another.",
	Options: []command.Option{
		{Short: 'f', Long: "from-code", Arg: command.Required, Name: "NAME", Help: "encoding of original text"},
		{Short: 't', Long: "to-code", Arg: command.Required, Name: "NAME", Help: "encoding for output"},
		{Short: 'l', Long: "list", Help: "list all known coded character sets"},
		{Short: 'c', Help: "omit invalid characters from output"},
		{Short: 'o', Long: "output", Arg: command.Required, Name: "FILE", Help: "output file"},
		{Short: 's', Long: "silent", Help: "suppress warnings"},
		{Long: "verbose", Help: "print progress information"},
	},
}

// A conversion is iconv at work.
type conversion struct {
	t        *kernel.Task
	w        *command.Writer
	from, to *charset
	translit bool
	skip     bool // -c: what cannot be converted is left out
	ignore   bool // //IGNORE: the same, and the status says so

	bom     bool // the mark at the beginning was looked for
	big     bool // what it said
	marked  bool // one was written
	pending []byte
	out     []byte
	lost    bool
}

func runIconv(t *kernel.Task) int {
	a, status, ok := iconvSpec.Parse(t)
	if !ok {
		if status != 0 {
			_, _ = t.Write(2, []byte("Try `iconv --help' or `iconv --usage' for more information.\n"))
		}
		return status
	}
	if a.Has("l") {
		w := command.Stdout(t)
		for _, name := range charsetNames() {
			w.String(name + "//\n")
		}
		return 0
	}
	c := &conversion{t: t, skip: a.Has("c")}
	from, to := "UTF-8", "UTF-8"
	if v, ok := a.Value("f"); ok && v != "" {
		from = v
	}
	if v, ok := a.Value("t"); ok && v != "" {
		to = v
	}
	name, flags, _ := strings.Cut(to, "//")
	for _, flag := range strings.FieldsFunc(strings.ToUpper(flags), func(r rune) bool { return r == ',' || r == '/' }) {
		c.translit = c.translit || flag == "TRANSLIT"
		c.ignore = c.ignore || flag == "IGNORE"
	}
	from, _, _ = strings.Cut(from, "//")
	c.from, c.to = charsetOf(from), charsetOf(name)
	switch {
	case c.from == nil && c.to == nil:
		t.Errorf("conversions from `%s' and to `%s' are not supported\nTry `iconv --help' or `iconv --usage' for more information.", from, to)
		return 1
	case c.from == nil:
		t.Errorf("conversion from `%s' is not supported\nTry `iconv --help' or `iconv --usage' for more information.", from)
		return 1
	case c.to == nil:
		t.Errorf("conversion to `%s' is not supported\nTry `iconv --help' or `iconv --usage' for more information.", to)
		return 1
	}
	output, written := a.Value("o")
	if !written || output == "-" {
		c.w = command.Stdout(t)
		return c.files(command.InputNames(a.Operands))
	}
	// The file may be one of those that are read.
	var held []byte
	c.w = command.NewWriter(sink(func(b []byte) {
		t.Bound("input", int64(len(held)+len(b)), t.K.Limits.Input)
		t.Grow(len(b))
		held = append(held, b...)
	}), func(error) {})
	status = c.files(command.InputNames(a.Operands))
	c.w.Flush()
	o, err := command.Create(t, output, linux.O_TRUNC)
	if err != nil {
		t.Errorf("unable to open output file: %s", reason(err))
		return 1
	}
	defer func() { _ = o.Close() }()
	if _, err := o.Write(held); err != nil {
		t.Errorf("error while writing the output: %s", reason(err))
		return 1
	}
	return status
}

// A sink is a function as a writer.
type sink func([]byte)

func (s sink) Write(b []byte) (int, error) {
	s(b)
	return len(b), nil
}

func (c *conversion) files(names []string) int {
	status := 0
	for _, name := range names {
		ok := false
		r, err := command.OpenReader(c.t, name)
		if err != nil {
			c.t.Errorf("cannot open input file `%s': %s", name, reason(err))
			status = 1
			continue
		}
		func() {
			defer r.Close()
			ok = c.run(r)
			if err := r.Err(); err != nil {
				c.t.Errorf("unable to read input: %s", reason(err))
				ok = false
			}
		}()
		if !ok {
			return 1
		}
	}
	return status
}

// run converts a file. The complaint has the position in it.
func (c *conversion) run(r *command.Reader) bool {
	var done int64
	c.pending = c.pending[:0]
	for b, ok := r.Piece(); ok; b, ok = r.Piece() {
		c.pending = append(c.pending, b...)
		n, good := c.convert(c.pending)
		c.w.Bytes(c.out)
		if !good {
			c.t.Errorf("cannot convert")
			return false
		}
		if n < 0 {
			c.t.Errorf("illegal input sequence at position %d", done+int64(-n-1))
			return false
		}
		done += int64(n)
		c.pending = append(c.pending[:0], c.pending[n:]...)
		c.t.Step(n)
	}
	if len(c.pending) > 0 {
		c.t.Errorf("incomplete character or shift sequence at end of buffer")
		return false
	}
	if c.lost {
		c.t.Errorf("illegal input sequence at position %d", done)
		return false
	}
	return true
}

// convert converts as much as is complete into c.out, and tells how much that
// was: -n-1 is that what follows n bytes is wrong.
func (c *conversion) convert(b []byte) (int, bool) {
	c.out = c.out[:0]
	i := 0
	for i < len(b) {
		ch, n := c.decode(b[i:])
		if n == 0 {
			return i, true
		}
		if ch == skipped {
			i += n
			continue
		}
		if ch < 0 {
			if c.skip || c.ignore {
				c.lost = c.lost || c.ignore && !c.skip
				i += n
				continue
			}
			return -i - 1, true
		}
		if c.to.mark && !c.marked {
			c.marked = true
			c.out = c.to.encode(c.out, 0xfeff)
		}
		if out := c.to.encode(c.out, ch); out != nil {
			c.out = out
		} else if !c.substitute(ch) {
			switch {
			case c.skip:
			case c.ignore:
				c.lost = true
			default:
				return -i - 1, true
			}
		}
		i += n
	}
	return i, true
}

// skipped stands for a byte order mark.
const skipped rune = -2

// decode takes a character: n is 0 if it is not complete, ch negative if it is
// none, and n bytes can be left out then.
func (c *conversion) decode(b []byte) (ch rune, n int) {
	s := c.from
	if s.mark && !c.bom {
		if len(b) < s.unit {
			return 0, 0
		}
		c.bom = true
		first := s.word(b, false)
		switch {
		case s.unit == 2 && first == 0xfeff || s.unit == 4 && first == 0xfeff:
			c.big = false
			return skipped, s.unit
		case s.unit == 2 && first == 0xfffe || s.unit == 4 && first == 0xfffe0000:
			c.big = true
			return skipped, s.unit
		}
	}
	return s.decode(b, s.big || s.mark && c.big)
}

// substitute writes something that looks like ch.
func (c *conversion) substitute(ch rune) bool {
	if !c.translit {
		return false
	}
	for _, text := range likenesses(ch) {
		out := c.out
		ok := true
		for _, x := range text {
			if out = c.to.encode(out, x); out == nil {
				ok = false
				break
			}
		}
		if ok {
			c.out = out
			return true
		}
	}
	if out := c.to.encode(c.out, '?'); out != nil {
		c.out = out
		return true
	}
	return false
}
