package shell

import (
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/expand"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/parse"
)

// unreadable tells of a script that cannot be read on, which ends it.
func (s *Shell) unreadable(p *parse.Parser, err error, outermost bool) {
	var deep *parse.TooDeep
	if errors.As(err, &deep) {
		_ = s.t.Must(&budget.Exceeded{Name: "nesting", Limit: int64(deep.Limit)})
		return
	}
	var e *parse.SyntaxError
	ends := errors.As(err, &e) && e.Ends && outermost
	if !ends {
		s.status = 2
	}
	if e == nil {
		s.line = p.Line()
		s.Warn("%s", message(err))
		return
	}
	old := s.line
	s.line = e.Line
	if e.Msg != "" {
		s.Warn("%s", e.Msg)
	}
	if e.Source != "" {
		s.Warn("`%s'", e.Source)
	}
	s.line = old
	if ends {
		return
	}
	if e.Array {
		s.status = 1
	}
	s.last, s.pipe = s.status, nil
	if s.posixExits() && s.sources > 0 {
		s.exit(2)
	}
}

// readAll reads an open file to its end.
func (s *Shell) readAll(d *kernel.Desc) ([]byte, error) {
	var out []byte
	buf := make([]byte, 32<<10)
	for {
		s.t.Step(1)
		n, err := d.File.Read(s.t, buf)
		out = append(out, buf[:n]...)
		s.t.Bound("source", int64(len(out)), s.t.K.Limits.Source)
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// importFunction defines a function that the environment brought.
func (s *Shell) importFunction(name, value string) {
	if !strings.HasPrefix(value, "() {") {
		return
	}
	p := parse.New([]byte(name+" "+value), s.reading(1))
	l, err := p.Next()
	if err != nil || l == nil || len(l.Items) != 1 {
		return
	}
	f, ok := l.Items[0].(*parse.Func)
	if !ok || f.Name != name {
		return
	}
	s.ownFuncs()
	s.funcs[name] = &function{name: name, body: f.Body, source: "environment", line: f.Line, export: true}
	s.exported++
}

// menu prints the choices of select.
func (s *Shell) menu(items []string) {
	longest := 0
	for _, x := range items {
		longest = max(longest, len([]rune(x)))
	}
	digits := len(strconv.Itoa(len(items)))
	columns, _ := s.vars.Get("COLUMNS")
	width, err := strconv.Atoi(columns)
	if err != nil || width <= 0 {
		width = 80
	}
	cell := digits + 2 + longest + 2
	cols := max(width/cell, 1)
	rows := (len(items) + cols - 1) / cols
	if rows == 1 {
		rows = len(items)
	}
	var b strings.Builder
	for r := range rows {
		pos := 0
		for i := r; i < len(items); i += rows {
			text := strings.Repeat(" ", digits-len(strconv.Itoa(i+1))) + strconv.Itoa(i+1) + ") " + items[i]
			b.WriteString(text)
			if i+rows >= len(items) {
				break
			}
			pos += cell
			for k := len([]rune(text)); k < cell; k++ {
				b.WriteByte(' ')
			}
		}
		b.WriteByte('\n')
	}
	s.errout(b.String())
}

// echoEscapes appends a text with the escapes of echo -e; stop is \c.
func echoEscapes(b []byte, a string) (out []byte, stop bool) {
	for i := 0; i < len(a); i++ {
		if a[i] != '\\' || i+1 == len(a) {
			b = append(b, a[i])
			continue
		}
		i++
		switch c := a[i]; c {
		case 'a':
			b = append(b, 7)
		case 'b':
			b = append(b, 8)
		case 'c':
			return b, true
		case 'e', 'E':
			b = append(b, 27)
		case 'f':
			b = append(b, 12)
		case 'n':
			b = append(b, '\n')
		case 'r':
			b = append(b, '\r')
		case 't':
			b = append(b, '\t')
		case 'v':
			b = append(b, 11)
		case '\\':
			b = append(b, '\\')
		case '0':
			n, k := digits(a[i+1:], 8, 3)
			b = append(b, byte(n))
			i += k
		case 'x':
			n, k := digits(a[i+1:], 16, 2)
			if k == 0 {
				b = append(b, '\\', 'x')
				break
			}
			b = append(b, byte(n))
			i += k
		case 'u', 'U':
			width := 4
			if c == 'U' {
				width = 8
			}
			n, k := digits(a[i+1:], 16, width)
			if k == 0 {
				b = append(b, '\\', c)
				break
			}
			b = expand.AppendRune(b, uint32(n))
			i += k
		default:
			b = append(b, '\\', c)
		}
	}
	return b, false
}

// digits reads up to width digits of a base.
func digits(a string, base, width int) (n, k int) {
	for k < width && k < len(a) {
		d, err := strconv.ParseUint(a[k:k+1], base, 8)
		if err != nil {
			break
		}
		n = n*base + int(d)
		k++
	}
	return n, k
}

// writeFile writes a file of the shell's own.
func (s *Shell) writeFile(file, text string, add bool) error {
	flags := linux.O_WRONLY | linux.O_CREAT
	if add {
		flags |= linux.O_APPEND
	} else {
		flags |= linux.O_TRUNC
	}
	d, err := s.t.Open(file, flags, 0o600)
	if err != nil {
		return err
	}
	d.Hold()
	defer d.Drop()
	_, err = d.File.Write(s.t, []byte(text))
	return err
}
