package sort

import (
	"bytes"
	"strconv"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// message gives the words for an error.
func message(err error) string { return vfs.Message(err) }

var commSpec = &command.Spec{
	Name: "comm", Synopsis: "[OPTION]... FILE1 FILE2",
	About: "Compare sorted files FILE1 and FILE2 line by line.",
	Options: []command.Option{
		{Short: '1', Help: "suppress column 1 (lines unique to FILE1)"},
		{Short: '2', Help: "suppress column 2 (lines unique to FILE2)"},
		{Short: '3', Help: "suppress column 3 (lines that appear in both files)"},
		{Long: "check-order", Help: "check that the input is correctly sorted, even if all input lines are pairable"},
		{Long: "nocheck-order", Help: "do not check that the input is correctly sorted"},
		{Long: "output-delimiter", Arg: command.Required, Name: "STR", Help: "separate columns with STR"},
		{Long: "total", Help: "output a summary"},
		{Short: 'z', Long: "zero-terminated", Help: "line delimiter is NUL, not newline"},
	},
}

type comm struct {
	t     *kernel.Task
	names []string
	r     [2]*command.Reader
	line  [2][]byte // the next ones
	last  [2][]byte // copies of those before
	more  [2]bool
	any   [2]bool
	told  [2]bool
	check int // 0 is where it matters, 1 always, -1 never
	alone bool
	end   byte
}

func runComm(t *kernel.Task) int {
	a, status, ok := commSpec.Parse(t)
	if !ok {
		return status
	}
	c := &comm{t: t, end: command.Delimiter(a)}
	delim, given := "\t", false
	for _, f := range a.Flags {
		switch f.Key {
		case "check-order":
			c.check = 1
		case "nocheck-order":
			c.check = -1
		case "output-delimiter":
			if given && delim != f.Value {
				t.Errorf("multiple output delimiters specified")
				return 1
			}
			delim, given = f.Value, true
		}
	}
	if given && delim == "" {
		delim = "\x00"
	}
	if status := command.CheckCount(t, commSpec, a.Operands, 2, 2); status != 0 {
		return status
	}
	c.names = a.Operands
	for i, name := range a.Operands {
		if i == 1 && name == "-" && a.Operands[0] == "-" {
			c.r[1] = c.r[0]
			continue
		}
		r, err := command.OpenReader(t, name)
		if err != nil {
			command.FailFile(t, name, err)
			return 1
		}
		defer r.Close()
		c.r[i] = r
	}
	show := [3]bool{!a.Has("1"), !a.Has("2"), !a.Has("3")}
	lead := [3]string{}
	for i := 1; i < 3; i++ {
		lead[i] = lead[i-1]
		if show[i-1] {
			lead[i] += delim
		}
	}
	w := command.Stdout(t)
	var total [3]int64
	c.next(0)
	c.next(1)
	for c.more[0] || c.more[1] {
		column := 2
		switch {
		case !c.more[0]:
			column = 1
		case !c.more[1]:
			column = 0
		default:
			switch order := bytes.Compare(c.line[0], c.line[1]); {
			case order < 0:
				column = 0
			case order > 0:
				column = 1
			}
		}
		total[column]++
		if column < 2 {
			c.alone = true
		}
		if show[column] {
			w.String(lead[column])
			w.Line(c.line[min(column, 1)], c.end)
		}
		if column != 1 {
			c.next(0)
		}
		if column != 0 {
			c.next(1)
		}
	}
	if a.Has("total") {
		for i, n := range total {
			if i > 0 {
				w.String(delim)
			}
			w.String(strconv.FormatInt(n, 10))
		}
		w.String(delim + "total")
		w.Byte(c.end)
	}
	if c.told[0] || c.told[1] {
		t.Errorf("input is not in sorted order")
		return 1
	}
	return 0
}

// next reads a line of a file, and looks whether the order is right.
func (c *comm) next(i int) {
	if c.more[i] || !c.any[i] {
		c.last[i] = append(c.last[i][:0], c.line[i]...)
	}
	first := !c.any[i]
	line, _, ok := c.r[i].Line(c.end)
	c.any[i] = true
	c.more[i] = ok
	if err := c.r[i].Err(); err != nil {
		command.FailFile(c.t, c.names[i], err)
		c.t.Exit(1)
	}
	if !ok {
		return
	}
	c.line[i] = append(c.line[i][:0], line...)
	if first || c.check < 0 || c.check == 0 && !c.alone || c.told[i] {
		return
	}
	if bytes.Compare(c.last[i], c.line[i]) > 0 {
		c.t.Errorf("file %d is not in sorted order", i+1)
		if c.check > 0 {
			c.t.Exit(1)
		}
		c.told[i] = true
	}
}
