package text

import (
	"bytes"
	"math"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

var headSpec = command.Spec{
	Name: "head", Synopsis: "[OPTION]... [FILE]...",
	About: "Print the first 10 lines of each FILE to standard output.",
	Options: []command.Option{
		{Short: 'c', Long: "bytes", Arg: command.Required, Name: "[-]NUM", Help: "print the first NUM bytes; with a leading '-', all but the last"},
		{Short: 'n', Long: "lines", Arg: command.Required, Name: "[-]NUM", Help: "print the first NUM lines; with a leading '-', all but the last"},
		{Short: 'q', Long: "quiet", Help: "never print headers giving file names"},
		{Short: 'q', Long: "silent"},
		{Short: 'v', Long: "verbose", Help: "always print headers giving file names"},
		{Short: 'z', Long: "zero-terminated", Help: "line delimiter is NUL, not newline"},
	},
}

// slicing is how head and tail complain.
var slicing = command.ReadErrors{Open: "cannot open %s for reading", Read: "error reading %s"}

// A cutting is what head and tail take of a file.
type cutting struct {
	bytes    bool
	opposite bool // head -n -5, tail -n +5
	n        int64
	delim    byte
}

func runHead(t *kernel.Task) int {
	args := t.Args[1:]
	var old []string
	if len(args) > 0 {
		var bad int
		if old, bad = headObsolete(t, args[0]); bad != 0 {
			return bad
		}
		if old != nil {
			args = append(old, args[1:]...)
		}
	}
	a, status, ok := headSpec.ParseArgs(t, args)
	if !ok {
		return status
	}
	c := cutting{n: 10, delim: command.Delimiter(a)}
	names := command.InputNames(a.Operands)
	headers := len(names) > 1
	for _, f := range a.Flags {
		switch f.Key {
		case "c", "n":
			c.bytes = f.Key == "c"
			value, negative := strings.CutPrefix(f.Value, "-")
			c.opposite = negative
			n, err := command.ParseUint(value, command.SizeSuffixes)
			if n > math.MaxInt64 && err == nil {
				n, err = math.MaxInt64, nil
			}
			if err != nil {
				command.BadNumber(t, "invalid number of "+unit(c.bytes), value, err)
				return 1
			}
			c.n = int64(n)
		case "q":
			headers = false
		case "v":
			headers = true
		}
	}
	w := command.Stdout(t)
	first := true
	return slicing.Each(t, names, func(name string, r *command.Reader) {
		if headers {
			header(w, name, &first)
		}
		c.head(t, w, r)
	})
}

func unit(bytes bool) string {
	if bytes {
		return "bytes"
	}
	return "lines"
}

func header(w *command.Writer, name string, first *bool) {
	if !*first {
		w.Byte('\n')
	}
	*first = false
	if name == "-" {
		name = "standard input"
	}
	w.String("==> " + name + " <==\n")
}

// headObsolete reads -5, -5c, -5k and the like, which only the first argument
// can be.
func headObsolete(t *kernel.Task, arg string) (args []string, status int) {
	if len(arg) < 2 || arg[0] != '-' || arg[1] < '0' || arg[1] > '9' {
		return nil, 0
	}
	i := 1
	for i < len(arg) && arg[i] >= '0' && arg[i] <= '9' {
		i++
	}
	number, what, factor := arg[1:i], "-n", ""
	for _, c := range arg[i:] {
		switch c {
		case 'c':
			what, factor = "-c", ""
		case 'b', 'k', 'm':
			what, factor = "-c", string(c)
		case 'l':
			what = "-n"
		case 'q', 'v', 'z':
			args = append(args, "-"+string(c))
		default:
			t.Errorf("invalid trailing option -- %c", c)
			_, _ = t.Write(2, []byte("Try 'head --help' for more information.\n"))
			return nil, 1
		}
	}
	return append(args, what, number+factor), 0
}

func (c *cutting) head(t *kernel.Task, w *command.Writer, r *command.Reader) {
	switch {
	case c.bytes && c.opposite:
		c.butBytes(t, w, r)
	case c.bytes:
		c.headBytes(t, w, r)
	case c.opposite:
		c.butLines(t, w, r)
	default:
		c.lines(w, r)
		r.Return()
	}
}

// headBytes reads no more than it shows: what is left of a pipe is another's.
func (c *cutting) headBytes(t *kernel.Task, w *command.Writer, r *command.Reader) {
	if c.n == 0 {
		return
	}
	size := int(min(c.n, 64<<10))
	t.Grow(size)
	defer t.Shrink(size)
	buf := make([]byte, size)
	for left := c.n; left > 0; {
		n, err := r.Read(buf[:min(left, int64(size))])
		w.Bytes(buf[:n])
		left -= int64(n)
		if err != nil {
			return
		}
	}
}

func (c *cutting) lines(w *command.Writer, r *command.Reader) {
	for left := c.n; left > 0; {
		b, ok := r.Piece()
		if !ok {
			return
		}
		end := 0
		for left > 0 {
			i := bytes.IndexByte(b[end:], c.delim)
			if i < 0 {
				end = len(b)
				break
			}
			end += i + 1
			left--
		}
		r.Unread(len(b) - end)
		w.Bytes(b[:end])
	}
}

// butBytes shows all but the last bytes, which it holds.
func (c *cutting) butBytes(t *kernel.Task, w *command.Writer, r *command.Reader) {
	var held []byte
	for b, ok := r.Piece(); ok; b, ok = r.Piece() {
		if int64(len(b)) >= c.n {
			w.Bytes(held)
			held = held[:0]
		}
		if over := int64(len(held)+len(b)) - c.n; over > 0 {
			k := min(over, int64(len(held)))
			w.Bytes(held[:k])
			held = append(held[:0], held[k:]...)
			w.Bytes(b[:over-k])
			b = b[over-k:]
		}
		held = append(command.Room(t, held, len(b)), b...)
	}
	t.Shrink(cap(held))
}

// butLines shows all but the last lines, which it holds.
func (c *cutting) butLines(t *kernel.Task, w *command.Writer, r *command.Reader) {
	if c.n == 0 {
		for b, ok := r.Piece(); ok; b, ok = r.Piece() {
			w.Bytes(b)
		}
		return
	}
	var held []byte
	start := 0
	var lines int64 // complete ones in held[start:]
	for b, ok := r.Piece(); ok; b, ok = r.Piece() {
		if start > len(held)/2 {
			held = append(held[:0], held[start:]...)
			start = 0
		}
		held = append(command.Room(t, held, len(b)), b...)
		lines += int64(bytes.Count(b, []byte{c.delim}))
		total, from := lines, start
		if held[len(held)-1] != c.delim {
			total++ // a last line without an end is a line too
		}
		for ; total > c.n; total-- {
			start += bytes.IndexByte(held[start:], c.delim) + 1
			lines--
		}
		w.Bytes(held[from:start])
	}
	t.Shrink(cap(held))
}
