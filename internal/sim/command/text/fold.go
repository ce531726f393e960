package text

import (
	"bytes"
	"math"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

var foldSpec = command.Spec{
	Name: "fold", Synopsis: "[OPTION]... [FILE]...",
	About: "Wrap input lines in each FILE, writing to standard output.",
	Options: []command.Option{
		{Short: 'b', Long: "bytes", Help: "count bytes rather than columns"},
		{Short: 's', Long: "spaces", Help: "break at spaces"},
		{Short: 'w', Long: "width", Arg: command.Required, Name: "WIDTH", Help: "use WIDTH columns instead of 80"},
		{Short: '0', Arg: command.Optional}, {Short: '1', Arg: command.Optional}, {Short: '2', Arg: command.Optional}, {Short: '3', Arg: command.Optional}, {Short: '4', Arg: command.Optional},
		{Short: '5', Arg: command.Optional}, {Short: '6', Arg: command.Optional}, {Short: '7', Arg: command.Optional}, {Short: '8', Arg: command.Optional}, {Short: '9', Arg: command.Optional},
	},
}

// A folder breaks lines. out is the line that is being made.
type folder struct {
	t      *kernel.Task
	w      *command.Writer
	bytes  bool
	spaces bool
	width  int
	out    []byte
	column int
}

func runFold(t *kernel.Task) int {
	a, status, ok := foldSpec.Parse(t)
	if !ok {
		return status
	}
	f := &folder{t: t, w: command.Stdout(t), bytes: a.Has("b"), spaces: a.Has("s"), width: 80}
	for _, o := range a.Flags {
		text := o.Value
		if o.Key >= "0" && o.Key <= "9" {
			text = o.Key + o.Value
		} else if o.Key != "w" {
			continue
		}
		n, err := command.ParseUintWithin(text, "", 1, math.MaxUint64-8-1)
		if err != nil {
			command.BadNumber(t, "invalid number of columns", text, err)
			return 1
		}
		f.width = int(min(n, math.MaxInt64))
	}
	return command.EachFile(t, command.InputNames(a.Operands), func(_ string, r *command.Reader) {
		f.column, f.out = 0, f.out[:0]
		for b, ok := r.Piece(); ok; b, ok = r.Piece() {
			f.fold(b)
		}
		f.w.Bytes(f.out)
		f.out = f.out[:0]
	})
}

func (f *folder) advance(column int, c byte) int {
	if f.bytes {
		return column + 1
	}
	switch c {
	case '\b':
		return max(0, column-1)
	case '\r':
		return 0
	case '\t':
		return column + 8 - column%8
	}
	return column + 1
}

func (f *folder) fold(b []byte) {
	for _, c := range b {
		if c == '\n' {
			f.w.Bytes(append(f.out, '\n'))
			f.column, f.out = 0, f.out[:0]
			f.t.Step(1)
			continue
		}
		for {
			f.column = f.advance(f.column, c)
			if f.column <= f.width || len(f.out) == 0 && !f.spaces {
				break
			}
			if len(f.out) == 0 {
				break
			}
			f.wrap()
		}
		f.out = append(f.out, c)
		if len(f.out) > 1<<16 {
			f.t.Bound("record", int64(len(f.out)), f.t.K.Limits.Record)
		}
	}
}

// wrap writes the line so far, or up to its last blank.
func (f *folder) wrap() {
	f.t.Step(1)
	end := len(f.out)
	if f.spaces {
		if i := bytes.LastIndexAny(f.out, " \t"); i >= 0 {
			end = i + 1
		}
	}
	f.w.Line(f.out[:end], '\n')
	f.out = append(f.out[:0], f.out[end:]...)
	f.column = 0
	for _, c := range f.out {
		f.column = f.advance(f.column, c)
	}
}

var nlSpec = command.Spec{
	Name: "nl", Synopsis: "[OPTION]... [FILE]...",
	About: "Write each FILE to standard output, with line numbers added.",
	Options: []command.Option{
		{Short: 'b', Long: "body-numbering", Arg: command.Required, Name: "STYLE", Help: "use STYLE for numbering body lines: a, t, n, pBRE"},
		{Short: 'd', Long: "section-delimiter", Arg: command.Required, Name: "CC", Help: "use CC for logical page delimiters"},
		{Short: 'f', Long: "footer-numbering", Arg: command.Required, Name: "STYLE", Help: "use STYLE for numbering footer lines"},
		{Short: 'h', Long: "header-numbering", Arg: command.Required, Name: "STYLE", Help: "use STYLE for numbering header lines"},
		{Short: 'i', Long: "line-increment", Arg: command.Required, Name: "NUMBER", Help: "line number increment at each line"},
		{Short: 'l', Long: "join-blank-lines", Arg: command.Required, Name: "NUMBER", Help: "group of NUMBER empty lines counted as one"},
		{Short: 'n', Long: "number-format", Arg: command.Required, Name: "FORMAT", Help: "insert line numbers according to FORMAT: ln, rn, rz"},
		{Short: 'p', Long: "no-renumber", Help: "do not reset line numbers for each section"},
		{Short: 's', Long: "number-separator", Arg: command.Required, Name: "STRING", Help: "add STRING after (possible) line number"},
		{Short: 'v', Long: "starting-line-number", Arg: command.Required, Name: "NUMBER", Help: "first line number for each section"},
		{Short: 'w', Long: "number-width", Arg: command.Required, Name: "NUMBER", Help: "use NUMBER columns for line numbers"},
	},
}
