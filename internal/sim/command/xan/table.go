package xan

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// A table is one that is read row by row.
type table struct {
	t    *kernel.Task
	j    *job
	paid int // what the task was charged for while the last row was read
	in   *command.Input
	r    *csv.Reader
	name string
	head []string
	held []string // the first row, where there is no head
	size int      // bytes since the last row
	bare bool
	rows int
	free bool   // rows may have any number of cells
	raw  []byte // what was read behind the last row
	base int64  // where raw begins
	line []byte // the last row as it stands in the file
}

// Read counts what comes since the last row.
func (x *table) Read(p []byte) (int, error) {
	n, err := x.in.Read(p)
	x.size += n
	x.t.Bound("record", int64(x.size), x.t.K.Limits.Record)
	// What is held of it here and in the reader, and of each cell in lists that grow.
	const copies, cell = 4, 80
	more := copies*n + cell*bytes.Count(p[:n], []byte(string(x.r.Comma)))
	x.t.Grow(more)
	x.paid += more
	x.raw = append(x.raw, p[:n]...)
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

func create(t *kernel.Task, name string) (*command.Output, error) {
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
	x := &table{t: j.t, j: j, in: in, name: name, bare: j.bare}
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
	x.t.Grow(2 * cost(row)) // it is kept to the end
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

func (x *table) close() {
	x.t.Shrink(x.paid)
	x.paid = 0
	_ = x.in.Close()
}

// rest copies what was not read yet, as it is.
func (x *table) rest(w *writer) error {
	defer x.close()
	b := make([]byte, 32<<10)
	n := copy(b, x.raw)
	x.raw = x.raw[n:]
	for {
		x.t.Step(1 + n>>6)
		w.b = append(w.b, b[:n]...)
		if err := w.flush(); err != nil {
			return err
		}
		if n = copy(b, x.raw); n > 0 {
			x.raw = x.raw[n:]
			continue
		}
		var err error
		if n, err = x.in.Read(b); errors.Is(err, io.EOF) || n == 0 && err == nil {
			return nil
		} else if err != nil {
			return fileError(x.name, err)
		}
	}
}

func (x *table) read() ([]string, error) {
	x.j.row()
	before := x.paid
	row, err := x.r.Read()
	x.t.Shrink(before)
	x.paid -= before
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		return nil, fmt.Errorf("%s: %w", x.name, err)
	}
	x.size = 0
	at := x.r.InputOffset()
	x.line, x.raw = bytes.Trim(x.raw[:at-x.base], "\r\n"), x.raw[at-x.base:]
	x.base = at
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
	t     *kernel.Task
	w     io.Writer
	b     []byte
	comma byte
	end   string
	quote bool // every cell
	never bool // no cell
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
		if len(w.b) > 32<<10 {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	w.b = append(w.b, w.end...)
	if len(w.b) > 32<<10 {
		return w.flush()
	}
	return w.err
}

func (w *writer) cell(b []byte, c string, alone bool) []byte {
	plain := w.never || !w.quote && !(alone && c == "")
	for i := 0; i < len(c) && plain && !w.never; i++ {
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

// some writes a row, and ends the reading where no more are wanted.
func (w *writer) some(cells []string, more func() bool) error {
	if err := w.row(cells); err != nil || more() {
		return err
	}
	return errEnough
}

// line writes a row that has its delimiters and quotes already.
func (w *writer) line(b []byte) error {
	w.b = append(append(w.b, b...), w.end...)
	if len(w.b) > 32<<10 {
		return w.flush()
	}
	return w.err
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

// head1 writes the names of columns, if they have some.
func (j *job) head1(names []string) error {
	if j.bare {
		return nil
	}
	return j.out.row(names)
}

// anyColumn is in the place of the number of a column among those of its name.
const anyColumn = math.MinInt

// A selector reads a selection of columns.
type selector struct {
	s    string
	at   int
	head []string
	bare bool // columns have no names
}

// selection finds the columns that a selection names.
func (j *job) selection(s string, head []string) ([]int, error) {
	rest, inverted := strings.CutPrefix(s, "!")
	p := &selector{s: rest, head: head, bare: j.bare}
	list := []int{}
	for p.at < len(p.s) {
		some, err := p.one()
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
		p.at++ // the comma
	}
	if rest == "" {
		list = p.span(0, len(head)-1)
	}
	if !inverted {
		return list, nil
	}
	chosen := map[int]bool{}
	for _, i := range list {
		chosen[i] = true
	}
	return slices.DeleteFunc(p.span(0, len(head)-1), func(i int) bool { return chosen[i] }), nil
}

// span lists the columns from one to another, which may be before it.
func (p *selector) span(a, b int) []int {
	list := []int{}
	step := 1
	if b < a && a < len(p.head) {
		step = -1
	}
	for i := a; (b-i)*step >= 0; i += step {
		list = append(list, i)
	}
	return list
}

// next tells what comes; 0 is the end of a part.
func (p *selector) next() byte {
	if p.at >= len(p.s) || p.s[p.at] == ',' {
		return 0
	}
	return p.s[p.at]
}

// one reads a part between commas.
func (p *selector) one() ([]int, error) {
	if p.next() == '*' {
		p.at++
		if p.next() == 0 {
			return p.span(0, len(p.head)-1), nil
		}
		return p.globbed(p.name(), strings.HasSuffix)
	}
	from, to := 0, len(p.head)-1
	var err error
	ranged := p.next() == ':'
	if !ranged {
		quoted := p.next() == '"'
		name, nth, err := p.column()
		if err != nil {
			return nil, err
		}
		if prefix, ok := strings.CutSuffix(name, "*"); ok && nth == anyColumn && !quoted {
			return p.globbed(prefix, strings.HasPrefix)
		}
		if from, err = p.find(name, nth); err != nil {
			return nil, err
		}
		ranged = p.next() == ':'
		if !ranged {
			to = from
		}
	}
	if ranged {
		p.at++
		if p.next() != 0 {
			name, nth, err := p.column()
			if err != nil {
				return nil, err
			}
			if to, err = p.find(name, nth); err != nil {
				return nil, err
			}
		}
	}
	if c := p.next(); c != 0 {
		return nil, fmt.Errorf("selection %q: '%c' is not expected", p.s, c)
	}
	return p.span(from, to), err
}

func (p *selector) globbed(part string, fits func(s, part string) bool) ([]int, error) {
	list := []int{}
	for i, h := range p.head {
		if !p.bare && fits(h, part) {
			list = append(list, i)
		}
	}
	if len(list) == 0 || p.next() != 0 {
		return nil, fmt.Errorf("selection %q selects nothing", p.s)
	}
	return list, nil
}

func (p *selector) name() string {
	from := p.at
	for c := p.next(); c != 0 && c != ':' && c != '['; c = p.next() {
		p.at++
	}
	return p.s[from:p.at]
}

// column reads a name, and which of its columns if it tells: name[1].
func (p *selector) column() (name string, nth int, err error) {
	nth = anyColumn
	if p.next() == '"' {
		end := strings.IndexByte(p.s[p.at+1:], '"')
		if end < 0 {
			return "", 0, fmt.Errorf("selection %q: a quote does not end", p.s)
		}
		name = p.s[p.at+1 : p.at+1+end]
		p.at += end + 2
	} else {
		name = p.name()
	}
	if p.next() != '[' {
		return name, nth, nil
	}
	number, _, ok := strings.Cut(p.s[p.at+1:], "]")
	if nth, err = strconv.Atoi(number); !ok || err != nil {
		return "", 0, fmt.Errorf("selection %q: %q is no index", p.s, number)
	}
	p.at += len(number) + 2
	return name, nth, nil
}

// find finds a column: a number is its place, even where a column is called so.
func (p *selector) find(name string, nth int) (int, error) {
	if i, err := strconv.Atoi(name); err == nil && nth == anyColumn {
		if at, ok := within(i, len(p.head)); ok {
			return at, nil
		}
		return 0, fmt.Errorf("column %s is out of range: there are %d", name, len(p.head))
	}
	var found []int
	for i, h := range p.head {
		if h == name && !p.bare {
			found = append(found, i)
		}
	}
	if nth == anyColumn {
		nth = 0
	}
	if at, ok := within(nth, len(found)); ok {
		return found[at], nil
	}
	return 0, fmt.Errorf("column %q does not exist; there are %s", name, strings.Join(p.head, ", "))
}

// single finds the one column that a selection names.
func (j *job) single(s string, head []string) (int, error) {
	list, err := j.selection(s, head)
	if err == nil && len(list) != 1 {
		err = fmt.Errorf("selection %q is not one column", s)
	}
	if err != nil {
		return 0, err
	}
	return list[0], nil
}

// columns gives the columns of -s, or all.
func (j *job) columns(head []string) ([]int, error) {
	s, _ := j.a.Value("s")
	return j.selection(s, head)
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
