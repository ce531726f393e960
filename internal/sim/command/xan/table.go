package xan

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/proc"
)

// A table is one that is read row by row.
type table struct {
	t    *proc.Task
	in   *command.Input
	r    *csv.Reader
	name string
	head []string
	held []string // the first row, where there is no head
	size int      // bytes since the last row
	bare bool
	rows int
	free bool // rows may have any number of cells
}

// Read counts what comes since the last row.
func (x *table) Read(p []byte) (int, error) {
	n, err := x.in.Read(p)
	x.size += n
	x.t.Bound("record", int64(x.size), x.t.K.Limits.Record)
	return n, err
}

func byName(name string) (byte, bool) {
	switch {
	case strings.HasSuffix(name, ".tsv"), strings.HasSuffix(name, ".tab"):
		return '\t', true
	case strings.HasSuffix(name, ".ssv"), strings.HasSuffix(name, ".scsv"):
		return ';', true
	case strings.HasSuffix(name, ".psv"):
		return '|', true
	}
	return 0, false
}

func create(t *proc.Task, name string) (*command.Output, error) {
	f, err := command.Create(t, name, linux.O_TRUNC)
	if err != nil {
		return nil, fileError(name, err)
	}
	return f, nil
}

// open begins to read a table; it has read the head.
func (j *job) open(name string) (*table, error) {
	in, err := command.Open(j.t, name)
	if err != nil {
		return nil, fileError(name, err)
	}
	x := &table{t: j.t, in: in, name: name, bare: j.bare}
	x.r = csv.NewReader(x)
	x.r.FieldsPerRecord, x.r.LazyQuotes = -1, true
	x.r.Comma = rune(j.comma)
	if c, ok := byName(name); ok && !j.given {
		x.r.Comma = rune(c)
	}
	row, err := x.read()
	if errors.Is(err, io.EOF) {
		return x, nil
	}
	if err != nil {
		return nil, err
	}
	row[0] = strings.TrimPrefix(row[0], "\xef\xbb\xbf")
	x.head = row
	if x.bare {
		x.held = row
		x.head = make([]string, len(row))
		for i := range row {
			x.head[i] = strconv.Itoa(i)
		}
	}
	return x, nil
}

func (x *table) close() { _ = x.in.Close() }

func (x *table) read() ([]string, error) {
	row, err := x.r.Read()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		return nil, fmt.Errorf("%s: %w", x.name, err)
	}
	x.size = 0
	x.t.Step(2 + len(row))
	return row, nil
}

// next gives the next row, or io.EOF.
func (x *table) next() ([]string, error) {
	row := x.held
	x.held = nil
	if row == nil {
		if x.head == nil {
			return nil, io.EOF
		}
		var err error
		if row, err = x.read(); err != nil {
			return nil, err
		}
	}
	x.rows++
	if len(row) != len(x.head) && !x.free {
		line, _ := x.r.FieldPos(0)
		return nil, fmt.Errorf("%s: line %d: found record with %d fields, but the previous record has %d fields", x.name, line, len(row), len(x.head))
	}
	return row, nil
}

// each runs f for each row.
func (x *table) each(f func(row []string) error) error {
	defer x.close()
	for {
		row, err := x.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = f(row)
		}
		if errors.Is(err, errEnough) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// errEnough ends each: no more rows are wanted.
var errEnough = errors.New("enough")

// all holds all rows.
func (x *table) all() ([][]string, error) {
	var rows [][]string
	err := x.each(func(row []string) error {
		x.t.Grow(cost(row))
		x.t.Bound("array", int64(len(rows)), x.t.K.Limits.Array)
		rows = append(rows, row)
		return nil
	})
	return rows, err
}

// cost is about what a row takes that is held.
func cost(row []string) int {
	n := 48
	for _, c := range row {
		n += 16 + len(c)
	}
	return n
}

// A writer writes rows.
type writer struct {
	t     *proc.Task
	w     io.Writer
	b     []byte
	comma byte
	end   string
	quote bool
	err   error
}

func (w *writer) flush() error {
	if len(w.b) > 0 && w.err == nil {
		_, w.err = w.w.Write(w.b)
	}
	w.b = w.b[:0]
	return w.err
}

// row writes a row.
func (w *writer) row(cells []string) error {
	for i, c := range cells {
		if i > 0 {
			w.b = append(w.b, w.comma)
		}
		w.b = w.cell(w.b, c, len(cells) == 1)
	}
	w.b = append(w.b, w.end...)
	if len(w.b) > 32<<10 {
		return w.flush()
	}
	return w.err
}

func (w *writer) cell(b []byte, c string, alone bool) []byte {
	plain := !w.quote && !(alone && c == "")
	for i := 0; i < len(c) && plain; i++ {
		switch c[i] {
		case '"', '\n', '\r', w.comma:
			plain = false
		}
	}
	if plain {
		return append(b, c...)
	}
	b = append(b, '"')
	for {
		i := strings.IndexByte(c, '"')
		if i < 0 {
			return append(append(b, c...), '"')
		}
		b = append(append(b, c[:i+1]...), '"')
		c = c[i+1:]
	}
}

// text writes text that is no row.
func (w *writer) text(format string, args ...any) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, format, args...)
	w.b = append(w.b, b.Bytes()...)
	if len(w.b) > 32<<10 {
		return w.flush()
	}
	return w.err
}

// head writes the names of columns, where there are any.
func (j *job) head1(names []string) error {
	if j.bare || names == nil {
		return nil
	}
	return j.out.row(names)
}

// selection finds the columns that a selection names.
func selection(s string, head []string) ([]int, error) {
	if strings.HasPrefix(s, "!") {
		out, err := selection(s[1:], head)
		if err != nil {
			return nil, err
		}
		gone := map[int]bool{}
		for _, i := range out {
			gone[i] = true
		}
		var kept []int
		for i := range head {
			if !gone[i] {
				kept = append(kept, i)
			}
		}
		return kept, nil
	}
	var list []int
	for s != "" {
		part, rest := column(s)
		s = strings.TrimPrefix(rest, ",")
		if part == "*" && len(rest) == 0 || part == "*" && rest[0] == ',' {
			for i := range head {
				list = append(list, i)
			}
			continue
		}
		if !strings.HasPrefix(rest, ":") {
			if got, ok := globbed(part, head); ok {
				list = append(list, got...)
				continue
			}
			i, err := find(part, head)
			if err != nil {
				return nil, err
			}
			list = append(list, i)
			continue
		}
		to, after := column(rest[1:])
		s = strings.TrimPrefix(after, ",")
		a, b := 0, len(head)-1
		var err error
		if part != "" {
			if a, err = find(part, head); err != nil {
				return nil, err
			}
		}
		if to != "" {
			if b, err = find(to, head); err != nil {
				return nil, err
			}
		}
		step := 1
		if b < a {
			step = -1
		}
		for i := a; ; i += step {
			list = append(list, i)
			if i == b {
				break
			}
		}
	}
	return list, nil
}

// globbed finds the columns of prefix* or *suffix.
func globbed(s string, head []string) ([]int, bool) {
	if !strings.Contains(s, "*") {
		return nil, false
	}
	before, after, _ := strings.Cut(s, "*")
	var list []int
	for i, h := range head {
		if len(h) >= len(before)+len(after) && strings.HasPrefix(h, before) && strings.HasSuffix(h, after) {
			list = append(list, i)
		}
	}
	return list, len(list) > 0
}

// column cuts a column's name off a selection.
func column(s string) (name, rest string) {
	if strings.HasPrefix(s, `"`) {
		if i := strings.IndexByte(s[1:], '"'); i >= 0 {
			return s[1 : i+1], s[i+2:]
		}
	}
	if i := strings.IndexAny(s, ",:"); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

func find(name string, head []string) (int, error) {
	for i, h := range head {
		if h == name {
			return i, nil
		}
	}
	if i, err := strconv.Atoi(name); err == nil {
		if i < 0 {
			i += len(head)
		}
		if i >= 0 && i < len(head) {
			return i, nil
		}
		return 0, fmt.Errorf("column %s is out of range: there are %d", name, len(head))
	}
	return 0, fmt.Errorf("column %q does not exist; there are %s", name, strings.Join(head, ", "))
}

// columns gives the columns of -s, or all.
func (j *job) columns(head []string) ([]int, error) {
	s, ok := j.a.Value("s")
	if !ok {
		s = "*"
	}
	return selection(s, head)
}

func pick(row []string, columns []int) []string {
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = row[c]
	}
	return out
}

// key joins cells so that different ones stay different.
func key(b []byte, row []string, columns []int) []byte {
	for _, c := range columns {
		b = strconv.AppendInt(b, int64(len(row[c])), 10)
		b = append(append(b, ':'), row[c]...)
	}
	return b
}
