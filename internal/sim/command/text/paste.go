package text

import (
	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

var pasteSpec = command.Spec{
	Name: "paste", Synopsis: "[OPTION]... [FILE]...",
	About: "Write lines consisting of the sequentially corresponding lines from each FILE, separated by TABs, to standard output.",
	Options: []command.Option{
		{Short: 'd', Long: "delimiters", Arg: command.Required, Name: "LIST", Help: "reuse characters from LIST instead of TABs"},
		{Short: 's', Long: "serial", Help: "paste one file at a time instead of in parallel"},
		{Short: 'z', Long: "zero-terminated", Help: "line delimiter is NUL, not newline"},
	},
}

// A paster joins lines. A delimiter of -1 is none at all.
type paster struct {
	delims []int
	end    byte
	w      *command.Writer
}

func runPaste(t *kernel.Task) int {
	a, status, ok := pasteSpec.Parse(t)
	if !ok {
		return status
	}
	p := &paster{delims: []int{'\t'}, end: command.Delimiter(a), w: command.Stdout(t)}
	if list, ok := a.Value("d"); ok {
		if p.delims, ok = unescape(list); !ok {
			t.Errorf("delimiter list ends with an unescaped backslash: %s", list)
			return 1
		}
	}
	names := command.InputNames(a.Operands)
	if a.Has("s") {
		return command.EachFile(t, names, func(_ string, r *command.Reader) { p.serial(r) })
	}
	var in []*command.Reader
	defer func() {
		for _, r := range in {
			r.Close()
		}
	}()
	var stdin *command.Reader
	for _, name := range names {
		if name == "-" && stdin != nil {
			in = append(in, stdin)
			continue
		}
		r, err := command.OpenReader(t, name)
		if err != nil {
			command.FailFile(t, name, err)
			return 1
		}
		if name == "-" {
			stdin = r
		}
		in = append(in, r)
	}
	p.parallel(in)
	for i, r := range in {
		if err := r.Err(); err != nil {
			command.FailFile(t, names[i], err)
			status = 1
		}
	}
	return status
}

func unescape(list string) ([]int, bool) {
	if list == "" {
		return []int{-1}, true
	}
	var delims []int
	for i := 0; i < len(list); i++ {
		c := list[i]
		if c != '\\' {
			delims = append(delims, int(c))
			continue
		}
		i++
		if i == len(list) {
			return nil, false
		}
		switch list[i] {
		case '0':
			delims = append(delims, -1)
		case 'b':
			delims = append(delims, '\b')
		case 'f':
			delims = append(delims, '\f')
		case 'n':
			delims = append(delims, '\n')
		case 'r':
			delims = append(delims, '\r')
		case 't':
			delims = append(delims, '\t')
		case 'v':
			delims = append(delims, '\v')
		default:
			delims = append(delims, int(list[i]))
		}
	}
	return delims, true
}

func (p *paster) delim(i int) {
	if c := p.delims[i%len(p.delims)]; c >= 0 {
		p.w.Byte(byte(c))
	}
}

func (p *paster) serial(r *command.Reader) {
	for i := 0; ; i++ {
		line, _, ok := r.Line(p.end)
		if !ok {
			break
		}
		if i > 0 {
			p.delim(i - 1)
		}
		p.w.Bytes(line)
	}
	p.w.Byte(p.end)
}

func (p *paster) parallel(in []*command.Reader) {
	done := make([]bool, len(in))
	for {
		waiting := 0 // delimiters that stand before the next file that has a line
		any := false
		for i, r := range in {
			if !done[i] {
				line, _, ok := r.Line(p.end)
				if ok {
					for ; waiting > 0; waiting-- {
						p.delim(i - waiting)
					}
					any = true
					p.w.Bytes(line)
				} else {
					done[i] = true
				}
			}
			if i < len(in)-1 {
				waiting++
			}
		}
		if !any {
			return
		}
		for n := len(in) - 1; waiting > 0; waiting-- {
			p.delim(n - waiting)
		}
		p.w.Byte(p.end)
	}
}
