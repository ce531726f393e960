package diff

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

var cmpSpec = &command.Spec{
	Name: "cmp", Synopsis: "[OPTION]... FILE1 [FILE2 [SKIP1 [SKIP2]]]", Exit: 2, NoTry: true, About: "Compare two files byte by byte.",
	Options: []command.Option{
		{Short: 'b', Long: "print-bytes", Help: "print differing bytes"},
		{Short: 'i', Long: "ignore-initial", Arg: command.Required, Name: "SKIP1:SKIP2", Help: "skip first SKIP1 bytes of FILE1 and first SKIP2 bytes of FILE2"},
		{Short: 'l', Long: "verbose", Help: "output byte numbers and differing byte values"},
		{Short: 'n', Long: "bytes", Arg: command.Required, Name: "LIMIT", Help: "compare at most LIMIT bytes"},
		{Short: 's', Long: "quiet", Help: "suppress all normal output"},
		{Long: "silent", Help: "same as -s"},
	},
}

// A comparison is a run of cmp.
type comparison struct {
	t                    *kernel.Task
	show, verbose, quiet bool
	skip                 [2]int64
	limit                int64
	names                [2]string
}

func runCmp(t *kernel.Task) int {
	a, status, ok := cmpSpec.Parse(t)
	if !ok {
		if status != 0 {
			return tryHelp(t)
		}
		return 0
	}
	c := &comparison{t: t, show: a.Has("b"), verbose: a.Has("l"), quiet: a.Has("s") || a.Has("silent"), limit: math.MaxInt64}
	if c.verbose && c.quiet {
		return usage(t, "options -l and -s are incompatible")
	}
	size := func(s, what string) (int64, bool) {
		n, err := command.ParseInt(s, "kKMGTPEZY0", 0, math.MaxInt64)
		if err != nil && n != math.MaxInt64 {
			usage(t, "invalid %s value '%s'", what, s)
			return 0, false
		}
		return n, true
	}
	if s, given := a.Value("i"); given {
		x, y, two := strings.Cut(s, ":")
		if c.skip[0], ok = size(x, "--ignore-initial"); !ok {
			return 2
		}
		if c.skip[1] = c.skip[0]; two {
			if c.skip[1], ok = size(y, "--ignore-initial"); !ok {
				return 2
			}
		}
	}
	if s, given := a.Value("n"); given {
		if c.limit, ok = size(s, "--bytes"); !ok {
			return 2
		}
	}
	files := a.Operands
	switch {
	case len(files) == 0:
		return usage(t, "missing operand after '%s'", t.Args[len(t.Args)-1])
	case len(files) > 4:
		return usage(t, "extra operand '%s'", files[4])
	case len(files) == 1:
		files = append(files, "-")
	}
	c.names = [2]string{files[0], files[1]}
	for i, s := range files[2:] {
		n, ok := size(s, "SKIP")
		if !ok {
			return 2
		}
		c.skip[i] = max(c.skip[i], n)
	}
	return c.run()
}

func (c *comparison) run() int {
	var r [2]*command.Reader
	for i, name := range c.names {
		in, err := command.OpenReader(c.t, name)
		if err != nil {
			if !c.quiet {
				c.t.Errorf("%s: %s", name, reason(err))
			}
			return 2
		}
		defer in.Close()
		r[i] = in
	}
	if c.names[0] == c.names[1] && c.skip[0] == c.skip[1] {
		return 0
	}
	for i := range r {
		r[i].Skip(c.skip[i])
	}
	return c.compare(r[0], r[1])
}

func (c *comparison) compare(x, y *command.Reader) int {
	t := c.t
	const piece = 16 << 10
	at, line := int64(0), int64(1)
	differs := false
	w := command.StdoutStatus(t, 2)
	width := 0
	last := byte('\n') // of what came before: where a line begins
	for at < c.limit {
		n := int(min(piece, c.limit-at))
		a, b := x.Next(n), y.Next(n)
		for i, r := range []*command.Reader{x, y} {
			if err := r.Err(); err != nil {
				t.Errorf("%s: %s", c.names[i], reason(err))
				return 2
			}
		}
		k := min(len(a), len(b))
		if !bytes.Equal(a[:k], b[:k]) {
			if c.quiet {
				return 1
			}
			for i := range k {
				if a[i] == b[i] {
					continue
				}
				if !c.verbose {
					line += int64(bytes.Count(a[:i], []byte{'\n'}))
					c.first(w, at+int64(i)+1, line, a[i], b[i])
					return 1
				}
				if width == 0 {
					width = c.width(x, y)
				}
				differs = true
				if c.show {
					w.Printf("%*d %3o %-4s %3o %s\n", width, at+int64(i)+1, a[i], visible(a[i]), b[i], visible(b[i]))
				} else {
					w.Printf("%*d %3o %3o\n", width, at+int64(i)+1, a[i], b[i])
				}
			}
		}
		t.Step(k>>6 + 1)
		line += int64(bytes.Count(a[:k], []byte{'\n'}))
		if k > 0 {
			last = a[k-1]
		}
		at += int64(k)
		if len(a) != len(b) {
			if c.quiet {
				return 1
			}
			name := c.names[0]
			if len(b) < len(a) {
				name = c.names[1]
			}
			c.short(name, at, line, last)
			return 1
		}
		if k < n {
			break
		}
	}
	if differs {
		return 1
	}
	return 0
}

func (c *comparison) first(w *command.Writer, at, line int64, a, b byte) {
	if c.show {
		w.Printf("%s %s differ: byte %d, line %d is %3o %s %3o %s\n", c.names[0], c.names[1], at, line, a, visible(a), b, visible(b))
		return
	}
	w.Printf("%s %s differ: byte %d, line %d\n", c.names[0], c.names[1], at, line)
}

// short says that a file ended before the other.
func (c *comparison) short(name string, at, line int64, last byte) {
	switch {
	case at == 0:
		c.t.Errorf("EOF on %s which is empty", name)
	case c.verbose:
		c.t.Errorf("EOF on %s after byte %d", name, at)
	case last == '\n':
		c.t.Errorf("EOF on %s after byte %d, line %d", name, at, line-1)
	default:
		c.t.Errorf("EOF on %s after byte %d, in line %d", name, at, line)
	}
}

// width is how many digits the numbers of bytes have at most.
func (c *comparison) width(x, y *command.Reader) int {
	most := int64(math.MaxInt64)
	for i, r := range []*command.Reader{x, y} {
		if info, err := r.Desc().File.Info(); err == nil && info.IsRegular() {
			most = min(most, info.Size-c.skip[i])
		}
	}
	most = min(most, c.limit)
	return len(fmt.Sprint(most))
}

// visible writes a byte as cat -v does.
func visible(c byte) string {
	s := ""
	if c >= 128 {
		s = "M-"
		c -= 128
	}
	switch {
	case c < ' ':
		return s + "^" + string(rune(c+64))
	case c == 127:
		return s + "^?"
	}
	return s + string(rune(c))
}
