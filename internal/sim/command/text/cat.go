package text

import (
	"bytes"
	"io"
	"strconv"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

var catSpec = command.Spec{
	Name: "cat", Synopsis: "[OPTION]... [FILE]...",
	About: "Concatenate FILE(s) to standard output. With no FILE, or when FILE is -, read standard input.",
	Options: []command.Option{
		{Short: 'b', Long: "number-nonblank", Help: "number nonempty output lines, overrides -n"},
		{Short: 'n', Long: "number", Help: "number all output lines"},
		{Short: 's', Long: "squeeze-blank", Help: "suppress repeated empty output lines"},
		{Short: 'v', Long: "show-nonprinting", Help: "use ^ and M- notation, except for LFD and TAB"},
		{Short: 'E', Long: "show-ends", Help: "display $ at end of each line"},
		{Short: 'T', Long: "show-tabs", Help: "display TAB characters as ^I"},
		{Short: 'A', Long: "show-all", Help: "equivalent to -vET"},
		{Short: 'e', Help: "equivalent to -vE"},
		{Short: 't', Help: "equivalent to -vT"},
		{Short: 'u', Help: "(ignored)"},
	},
}

// A cat is the state of what was shown so far, over all files.
type cat struct {
	number, nonblank, squeeze, ends, tabs, visible bool

	w      *command.Writer
	line   int
	inside bool // of a line
	blank  int  // empty lines in a row
	cr     bool // a \r that was held back
}

func runCat(t *kernel.Task) int {
	a, status, ok := catSpec.Parse(t)
	if !ok {
		return status
	}
	all := a.Has("A")
	c := &cat{
		number: a.Has("n") || a.Has("b"), nonblank: a.Has("b"), squeeze: a.Has("s"),
		ends:    all || a.Has("E") || a.Has("e"),
		tabs:    all || a.Has("T") || a.Has("t"),
		visible: all || a.Has("v") || a.Has("e") || a.Has("t"),
		w:       command.Stdout(t),
	}
	plain := !c.number && !c.squeeze && !c.ends && !c.tabs && !c.visible
	for _, name := range command.InputNames(a.Operands) {
		if !(command.ReadErrors{}).One(t, name, func(name string, r *command.Reader) {
			switch {
			case ownOutput(t, r):
				t.Errorf("%s: input file is output file", command.QuoteFile(name))
				status = 1
			case plain:
				for b, ok := r.Piece(); ok; b, ok = r.Piece() {
					c.w.Direct(b)
				}
			default:
				for b, ok := r.Piece(); ok; b, ok = r.Piece() {
					c.show(b)
				}
			}
		}) {
			status = 1
		}
	}
	if c.cr {
		c.w.Byte('\r')
	}
	return status
}

// ownOutput reports whether r has something to read that the task writes.
func ownOutput(t *kernel.Task, r *command.Reader) bool {
	out := t.FD(1)
	if out == nil {
		return false
	}
	f, ok := r.Desc().VFS()
	if !ok {
		return false
	}
	o, ok := out.VFS()
	if !ok || o.Ino() != f.Ino() || o.Ino() == 0 {
		return false
	}
	i, err := f.Info()
	if err != nil || !i.IsRegular() {
		return false
	}
	at, err := f.Seek(0, io.SeekCurrent)
	return err == nil && at < i.Size
}

func (c *cat) show(b []byte) {
	if c.cr {
		c.cr = false
		if b[0] == '\n' {
			c.w.String("^M")
		} else {
			c.w.Byte('\r')
		}
	}
	for len(b) > 0 {
		if !c.inside && !c.begin(b[0] == '\n') {
			b = b[1:]
			continue
		}
		i := bytes.IndexByte(b, '\n')
		part := b
		if i >= 0 {
			part = b[:i]
		}
		c.part(part, i >= 0)
		if i < 0 {
			return
		}
		if c.ends {
			c.w.Byte('$')
		}
		c.w.Byte('\n')
		c.inside = false
		b = b[i+1:]
	}
}

// begin begins a line, unless it is an empty one that is left out.
func (c *cat) begin(empty bool) bool {
	if empty {
		c.blank++
		if c.squeeze && c.blank > 1 {
			return false
		}
	} else {
		c.blank = 0
	}
	c.inside = true
	if c.number && !(empty && c.nonblank) {
		c.line++
		b := c.w.Space()
		for n := c.line; n < 100000; n *= 10 {
			b = append(b, ' ')
		}
		c.w.Bytes(append(strconv.AppendInt(b, int64(c.line), 10), '\t'))
	}
	return true
}

// part shows a part of a line; last says that a newline follows.
func (c *cat) part(b []byte, last bool) {
	if c.ends && !c.visible && len(b) > 0 && b[len(b)-1] == '\r' {
		b = b[:len(b)-1]
		if last {
			defer c.w.String("^M")
		} else {
			c.cr = true
		}
	}
	if !c.visible && !c.tabs {
		c.w.Bytes(b)
		return
	}
	start := 0
	for i, x := range b {
		if x >= ' ' && x < 127 || x == '\t' && !c.tabs || x != '\t' && !c.visible {
			continue
		}
		c.w.Bytes(b[start:i])
		start = i + 1
		out := c.w.Space()
		if x >= 128 {
			out = append(out, "M-"...)
			x -= 128
		}
		switch {
		case x < ' ':
			out = append(out, '^', x+64)
		case x == 127:
			out = append(out, "^?"...)
		default:
			out = append(out, x)
		}
		c.w.Bytes(out)
	}
	c.w.Bytes(b[start:])
}
