package text

import (
	"errors"
	"math"
	"strconv"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/regex"
)

// A style says which lines of a section get a number.
type style struct {
	kind byte // a, t, n, p
	re   *regex.Regexp
}

// A numberer is what nl does. The sections are header, body and footer.
type numberer struct {
	t       *kernel.Task
	w       *command.Writer
	styles  [3]style
	section int
	delims  [3]string // of header, body and footer

	line, first, step int64
	over              bool // the next number is too large
	join, blank       int64
	width             int
	format            string
	separator         string
	renumber          bool
}

func runNl(t *kernel.Task) int {
	a, status, ok := nlSpec.Parse(t)
	if !ok {
		return status
	}
	n := &numberer{
		t: t, w: command.Stdout(t), first: 1, step: 1, join: 1, width: 6, format: "rn", separator: "\t", renumber: !a.Has("p"),
		styles: [3]style{{kind: 'n'}, {kind: 't'}, {kind: 'n'}}, section: 1,
	}
	delim := `\:`
	bad := false
	for _, f := range a.Flags {
		switch f.Key {
		case "h":
			bad = !n.style(0, "header", f.Value) || bad
		case "b":
			bad = !n.style(1, "body", f.Value) || bad
		case "f":
			bad = !n.style(2, "footer", f.Value) || bad
		case "d":
			delim = f.Value
			if len(delim) == 1 {
				delim += ":"
			}
		case "v":
			n.number(f.Value, "invalid starting line number", math.MinInt64, &n.first)
		case "i":
			n.number(f.Value, "invalid line number increment", math.MinInt64, &n.step)
		case "l":
			n.number(f.Value, "invalid line number of blank lines", 1, &n.join)
		case "w":
			var w int64
			n.bounded(f.Value, "invalid line number field width", 1, math.MaxInt32, &w)
			n.width = int(w)
		case "s":
			n.separator = f.Value
		case "n":
			switch f.Value {
			case "ln", "rn", "rz":
				n.format = f.Value
			default:
				t.Errorf("invalid line numbering format: %s", command.Quote(f.Value))
				bad = true
			}
		}
	}
	if bad {
		_, _ = t.Write(2, []byte("Try 'nl --help' for more information.\n"))
		return 1
	}
	n.delims = [3]string{delim + delim + delim, delim + delim, delim}
	n.line = n.first
	return command.EachFile(t, command.InputNames(a.Operands), func(_ string, r *command.Reader) {
		for {
			line, _, ok := r.Line('\n')
			if !ok {
				return
			}
			n.show(line)
		}
	})
}

func (n *numberer) number(s, what string, least int64, to *int64) {
	n.bounded(s, what, least, math.MaxInt64, to)
}

func (n *numberer) bounded(s, what string, least, most int64, to *int64) {
	v, err := command.ParseInt(s, "", least, most)
	if err != nil {
		command.BadNumber(n.t, what, s, err)
		n.t.Exit(1)
	}
	*to = v
}

func (n *numberer) style(section int, name, s string) bool {
	switch {
	case s == "a" || s == "t" || s == "n":
		n.styles[section] = style{kind: s[0]}
		return true
	case s != "" && s[0] == 'p':
		re, err := command.CompileRegex(n.t, s[1:], regex.Options{Flavour: regex.Expr, NoSub: true})
		if err != nil {
			n.t.Errorf("%s", err)
			n.t.Exit(1)
		}
		n.styles[section] = style{'p', re}
		return true
	}
	n.t.Errorf("invalid %s numbering style: %s", name, command.Quote(s))
	return false
}

func (n *numberer) show(line []byte) {
	if len(line) >= 2 {
		for i, d := range n.delims {
			if d != "" && string(line) == d {
				n.section = i
				if n.renumber {
					n.line, n.over = n.first, false
				}
				n.w.Byte('\n')
				return
			}
		}
	}
	numbered := false
	switch s := &n.styles[n.section]; s.kind {
	case 'a':
		if n.join > 1 {
			n.blank++
			if numbered = len(line) > 0 || n.blank == n.join; numbered {
				n.blank = 0
			}
		} else {
			numbered = true
		}
	case 't':
		numbered = len(line) > 0
	case 'p':
		ok, err := s.re.Match(line)
		if err != nil {
			n.t.Errorf("error in regular expression search")
			n.t.Exit(1)
		}
		numbered = ok
	}
	if numbered {
		n.prefix()
	} else {
		n.w.Repeat(' ', n.width+len(n.separator))
	}
	n.w.Line(line, '\n')
}

func (n *numberer) prefix() {
	if n.over {
		n.t.Errorf("line number overflow")
		n.t.Exit(1)
	}
	digits := strconv.FormatInt(n.line, 10)
	pad := n.width - len(digits)
	switch n.format {
	case "ln":
		n.w.String(digits)
		n.w.Repeat(' ', pad)
	case "rz":
		if n.line < 0 {
			n.w.Byte('-')
			digits = digits[1:]
		}
		n.w.Repeat('0', pad)
		n.w.String(digits)
	default:
		n.w.Repeat(' ', pad)
		n.w.String(digits)
	}
	n.w.String(n.separator)
	next, err := add(n.line, n.step)
	n.line, n.over = next, err != nil
}

var errOverflow = errors.New("overflow")

func add(a, b int64) (int64, error) {
	c := a + b
	if (c > a) != (b > 0) && b != 0 {
		return 0, errOverflow
	}
	return c, nil
}
