package text

import (
	"bytes"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

var cutSpec = command.Spec{
	Name: "cut", Synopsis: "OPTION... [FILE]...",
	About: "Print selected parts of lines from each FILE to standard output.",
	Options: []command.Option{
		{Short: 'b', Long: "bytes", Arg: command.Required, Name: "LIST", Help: "select only these bytes"},
		{Short: 'c', Long: "characters", Arg: command.Required, Name: "LIST", Help: "select only these characters"},
		{Short: 'd', Long: "delimiter", Arg: command.Required, Name: "DELIM", Help: "use DELIM instead of TAB for field delimiter"},
		{Short: 'f', Long: "fields", Arg: command.Required, Name: "LIST", Help: "select only these fields; also print any line that contains no delimiter, unless -s"},
		{Short: 'n', Help: "(ignored)"},
		{Long: "complement", Help: "complement the set of selected bytes, characters or fields"},
		{Short: 's', Long: "only-delimited", Help: "do not print lines not containing delimiters"},
		{Long: "output-delimiter", Arg: command.Required, Name: "STRING", Help: "use STRING as the output delimiter"},
		{Short: 'z', Long: "zero-terminated", Help: "line delimiter is NUL, not newline"},
	},
}

type cutter struct {
	t      *kernel.Task
	list   []command.Span
	fields bool
	strict bool // -s
	delim  byte
	end    byte
	join   string
	joined bool // join was given
	w      *command.Writer
	out    []byte
}

func runCut(t *kernel.Task) int {
	a, status, ok := cutSpec.Parse(t)
	if !ok {
		return status
	}
	c := &cutter{t: t, delim: '\t', end: command.Delimiter(a), strict: a.Has("s"), w: command.Stdout(t)}
	list, kinds := "", 0
	for _, f := range a.Flags {
		switch f.Key {
		case "b", "c", "f":
			c.fields = f.Key == "f"
			list = f.Value
			kinds++
		case "d":
			if len(f.Value) > 1 {
				return cutSpec.Usage(t, "the delimiter must be a single character")
			}
			c.delim = 0
			if f.Value != "" {
				c.delim = f.Value[0]
			}
		case "output-delimiter":
			c.join, c.joined = f.Value, true
			if f.Value == "" {
				c.join = "\x00"
			}
		}
	}
	switch {
	case kinds == 0:
		return cutSpec.Usage(t, "you must specify a list of bytes, characters, or fields")
	case kinds > 1:
		return cutSpec.Usage(t, "only one list may be specified")
	case !c.fields && a.Has("d"):
		return cutSpec.Usage(t, "an input delimiter may be specified only when operating on fields")
	case !c.fields && c.strict:
		return cutSpec.Usage(t, "suppressing non-delimited lines makes sense\n\tonly when operating on fields")
	}
	var err error
	if c.list, err = command.ParseSpans(list, c.fields, false); err != nil {
		return cutSpec.Usage(t, "%s", err)
	}
	if a.Has("complement") {
		c.list = command.ComplementSpans(c.list)
	}
	if !c.joined && c.fields {
		c.join = string([]byte{c.delim})
	}
	return command.EachFile(t, command.InputNames(a.Operands), func(_ string, r *command.Reader) {
		switch {
		case c.fields && c.delim == c.end:
			c.whole(r)
		case c.fields:
			c.lines(r, c.field)
		default:
			c.lines(r, c.bytes)
		}
	})
}

// lines gives every line to do, which appends what is to be shown of it.
func (c *cutter) lines(r *command.Reader, do func(line []byte)) {
	for b, ok := r.Whole(c.end); ok; b, ok = r.Whole(c.end) {
		c.out = c.out[:0]
		for len(b) > 0 {
			i := bytes.IndexByte(b, c.end)
			if i < 0 {
				i = len(b)
			}
			do(b[:i])
			b = b[min(i+1, len(b)):]
			c.t.Step(1)
			if len(c.out) >= 32<<10 {
				c.w.Bytes(c.out)
				c.out = c.out[:0]
			}
		}
		c.w.Bytes(c.out)
	}
}

// passed writes what is to be shown of a line, once it is long.
func (c *cutter) passed(out []byte) []byte {
	if len(out) < 32<<10 {
		return out
	}
	c.t.Step(1 + len(out)>>6)
	c.w.Bytes(out)
	return out[:0]
}

func (c *cutter) bytes(line []byte) {
	out := c.out
	n := uint64(len(line))
	for i, s := range c.list {
		if s.First > n {
			break
		}
		if i > 0 {
			out = append(c.passed(out), c.join...)
		}
		out = append(out, line[s.First-1:min(s.Last, n)]...)
	}
	c.out = append(out, c.end)
}

func (c *cutter) field(line []byte) {
	out := c.out
	i := bytes.IndexByte(line, c.delim)
	if i < 0 {
		if !c.strict {
			c.out = append(append(out, line...), c.end)
		}
		return
	}
	shown := false
	number, spans := uint64(1), c.list
	for len(spans) > 0 {
		if number >= spans[0].First {
			if shown {
				out = append(c.passed(out), c.join...)
			}
			shown = true
			if spans[0].Last == command.OpenEnd && !c.joined {
				out = append(out, line...)
				break
			}
			if i < 0 {
				out = append(out, line...)
			} else {
				out = append(out, line[:i]...)
			}
			if number == spans[0].Last {
				spans = spans[1:]
			}
		}
		if i < 0 {
			break
		}
		line = line[i+1:]
		number++
		i = bytes.IndexByte(line, c.delim)
	}
	c.out = append(out, c.end)
}

// whole takes a file for one record whose fields are its lines.
func (c *cutter) whole(r *command.Reader) {
	shown := false
	spans := c.list
	first, ended, ok := r.Line(c.end)
	if !ok {
		return
	}
	if !ended {
		// There is nothing that could be delimited.
		if !c.strict {
			c.w.Line(first, c.end)
		}
		return
	}
	count := 0
	for number := uint64(1); ok; number++ {
		count++
		if len(spans) > 0 && number >= spans[0].First {
			if shown {
				c.w.String(c.join)
			}
			shown = true
			c.w.Bytes(first)
			if number == spans[0].Last {
				spans = spans[1:]
			}
		}
		first, _, ok = r.Line(c.end)
	}
	if shown || !c.strict || count > 1 {
		c.w.Byte(c.end)
	}
}
