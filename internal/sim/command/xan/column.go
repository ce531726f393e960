package xan

import (
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// The verbs that make or change cells.

func (j *job) extend() error {
	s, err := j.operand("expression")
	if err != nil {
		return err
	}
	x, err := j.input()
	if err != nil {
		return err
	}
	list, err := j.clauses(s, x.head)
	if err != nil {
		return err
	}
	head := slices.Clone(x.head)
	places := make([]int, len(list)) // where the cells of a clause begin
	for i, c := range list {
		places[i] = len(head)
		at := slices.Index(x.head, c.names[0])
		switch {
		case !j.a.Has("O"):
		case c.plural:
			return &usageError{"-O does not go with several names for one expression"}
		case at >= 0:
			places[i] = at
			continue
		}
		head = append(head, c.names...)
	}
	if err := j.head1(head); err != nil {
		return err
	}
	out := make([]string, len(head))
	sc := &scene{index: -1}
	return x.each(func(row []string) error {
		sc.row = row
		sc.index++
		copy(out, row)
		some := false
		for i, c := range list {
			cells, truth, err := c.cells(sc)
			if err != nil {
				return err
			}
			some = some || truth
			copy(out[places[i]:], cells)
		}
		if j.a.Has("F") && !some {
			return nil
		}
		return j.out.row(out)
	})
}

func (j *job) transform() error {
	s, err := j.operand("columns")
	if err != nil {
		return err
	}
	how, err := j.operand("expression")
	if err != nil {
		return err
	}
	x, err := j.input()
	if err != nil {
		return err
	}
	columns, err := j.selection(s, x.head)
	if err != nil {
		return err
	}
	list := make([]expression, len(x.head))
	for _, c := range columns {
		if list[c], err = j.compile(fmt.Sprintf("col(%d) | %s", c, how), x.head); err != nil {
			return err
		}
	}
	head, err := j.renamed(x.head, columns)
	if err != nil {
		return err
	}
	if err := j.head1(head); err != nil {
		return err
	}
	sc := &scene{index: -1, fixed: true}
	out := make([]string, len(head))
	return x.each(func(row []string) error {
		sc.row = row
		sc.index++
		for i, e := range list {
			out[i] = row[i]
			if e.compute == nil {
				continue
			}
			sc.self = cell(row[i])
			v, err := e.compute(sc)
			if err != nil {
				return fmt.Errorf("row %d: %w", sc.index, err)
			}
			out[i] = serialized(v)
		}
		return j.out.row(out)
	})
}

// renamed gives the names of columns, of which -r may change some.
func (j *job) renamed(head []string, columns []int) ([]string, error) {
	s, ok := j.a.Value("r")
	if !ok {
		return head, nil
	}
	return withNames(head, columns, namesOf(s))
}

func withNames(head []string, columns []int, names []string) ([]string, error) {
	if len(names) != len(columns) {
		return nil, fmt.Errorf("there are %d names for %d columns", len(names), len(columns))
	}
	head = slices.Clone(head)
	for i, c := range columns {
		head[c] = names[i]
	}
	return head, nil
}

// namesOf reads a row of names.
func namesOf(s string) []string {
	r := csv.NewReader(strings.NewReader(s))
	r.LazyQuotes = true
	names, err := r.Read()
	if err != nil {
		return nil
	}
	return names
}

// renames gives the new names of some columns.
func (j *job) renames(head []string, columns []int) ([]string, error) {
	each := func(f func(s string) string) ([]string, error) {
		out := slices.Clone(head)
		for _, c := range columns {
			out[c] = f(out[c])
		}
		return out, nil
	}
	prefix, before := j.a.Value("p")
	suffix, behind := j.a.Value("x")
	switch {
	case j.a.Has("S"):
		return each(slug)
	case before:
		return each(func(s string) string { j.charge(len(prefix) + len(s)); return prefix + s })
	case behind:
		return each(func(s string) string { j.charge(len(s) + len(suffix)); return s + suffix })
	}
	s, err := j.operand("names")
	if err != nil {
		return nil, err
	}
	if !j.a.Has("R") {
		return withNames(head, columns, namesOf(s))
	}
	re, err := compilePattern(s)
	if err != nil {
		return nil, err
	}
	with, err := j.operand("a replacement")
	if err != nil {
		return nil, err
	}
	return each(func(s string) string { return j.expanded(s, re, with) })
}

// rename changes the first row only: all behind it stays as it is.
func (j *job) rename() error {
	operands := 1
	switch {
	case j.a.Has("S") || j.a.Has("p") || j.a.Has("x"):
		operands = 0
	case j.a.Has("R"):
		operands = 2
	}
	rest := j.rest
	if len(rest) < operands {
		return &usageError{"missing names"}
	}
	j.rest = rest[operands:]
	x, err := j.input()
	if err != nil {
		return err
	}
	j.rest = rest[:operands]
	j.bare = false // columns without names get some
	s, ok := j.a.Value("s")
	if ok && j.a.Has("f") {
		s = j.known(s, x.head)
		if s == "" {
			j.rest = nil
			if err := j.out.row(x.head); err != nil {
				return err
			}
			return x.rest(j.out)
		}
	}
	columns, err := j.selection(s, x.head)
	if err != nil {
		return err
	}
	if sorted := slices.Sorted(slices.Values(columns)); len(slices.Compact(sorted)) < len(columns) {
		return errors.New("a column has two new names")
	}
	head, err := j.renames(x.head, columns)
	if err != nil {
		return err
	}
	if len(head) > 0 || !x.bare {
		if err := j.out.row(head); err != nil {
			return err
		}
	}
	if x.held != nil {
		if err := j.out.row(x.held); err != nil {
			return err
		}
	}
	return x.rest(j.out)
}

// known leaves the columns out of a selection that do not exist.
func (j *job) known(s string, head []string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(s, ","), func(part string) bool {
		_, err := j.selection(part, head)
		return err != nil
	}), ",")
}

func (j *job) enum() error {
	name, ok := j.a.Value("c")
	if !ok {
		name = "index"
	}
	n, err := j.number("S", 0)
	if err != nil {
		return err
	}
	x, err := j.input()
	if err != nil {
		return err
	}
	x.free = true
	line := func(cell string) error { return j.out.line(append([]byte(cell+string(x.r.Comma)), x.line...)) }
	if !j.bare {
		if err := line(name); err != nil {
			return err
		}
	}
	return x.each(func([]string) error {
		n++
		return line(strconv.Itoa(n - 1))
	})
}

func (j *job) separator() string {
	if s, ok := j.a.Value("sep"); ok && s != "" {
		return s
	}
	return "|"
}

// parts opens the table of explode and implode.
func (j *job) parts() (*table, []int, error) {
	s, err := j.operand("columns")
	if err != nil {
		return nil, nil, err
	}
	x, err := j.input()
	if err != nil {
		return nil, nil, err
	}
	columns, err := j.selection(s, x.head)
	if err != nil {
		return nil, nil, err
	}
	if len(columns) == 0 {
		return nil, nil, errors.New("there are no columns")
	}
	head, err := j.renamed(x.head, columns)
	if err != nil {
		return nil, nil, err
	}
	head = slices.Clone(head)
	for _, c := range columns {
		switch {
		case j.a.Has("S"):
			head[c] = singular(head[c])
		case j.a.Has("P"):
			head[c] = plural(head[c])
		}
	}
	return x, columns, j.head1(head)
}

func singular(s string) string {
	switch {
	case strings.HasSuffix(s, "ies"):
		return s[:len(s)-3] + "y"
	case strings.HasSuffix(s, "oes"):
		return s[:len(s)-2]
	}
	return strings.TrimSuffix(s, "s")
}

func plural(s string) string {
	switch {
	case strings.HasSuffix(s, "y"):
		return s[:len(s)-1] + "ies"
	case strings.HasSuffix(s, "o"):
		return s + "es"
	}
	return s + "s"
}

func (j *job) explode() error {
	x, columns, err := j.parts()
	if err != nil {
		return err
	}
	sep := j.separator()
	return x.each(func(row []string) error {
		lists := make([][]string, len(columns))
		n := 0
		for i, c := range columns {
			lists[i] = strings.Split(row[c], sep)
			n = max(n, len(lists[i]))
			if row[c] == "" && j.a.Has("D") {
				return nil
			}
		}
		for i, c := range columns {
			if len(lists[i]) != n {
				return fmt.Errorf("the cells of the columns have different numbers of parts: %q", row[c])
			}
		}
		out := append([]string(nil), row...)
		for k := range n {
			j.t.Step(len(row))
			for i, c := range columns {
				out[c] = lists[i][k]
			}
			if err := j.out.row(out); err != nil {
				return err
			}
		}
		return nil
	})
}

func (j *job) implode() error {
	x, columns, err := j.parts()
	if err != nil {
		return err
	}
	sep := j.separator()
	var others []int
	if s, ok := j.a.Value("cmp"); ok {
		if others, err = j.selection(s, x.head); err != nil {
			return err
		}
	} else {
		for i := range x.head {
			if !slices.Contains(columns, i) {
				others = append(others, i)
			}
		}
	}
	var held []string
	var lists [][]string
	was, now := []byte(nil), []byte(nil)
	emit := func() error {
		if held == nil {
			return nil
		}
		for i, c := range columns {
			held[c] = kernel.Join(j.t, lists[i], sep)
		}
		return j.out.row(held)
	}
	size := 0
	if err := x.each(func(row []string) error {
		now = key(now[:0], row, others)
		if held == nil || string(now) != string(was) {
			if err := emit(); err != nil {
				return err
			}
			j.t.Shrink(size)
			size = 0
			lists = make([][]string, len(columns))
			was = append(was[:0], now...)
		}
		held = slices.Clone(row) // the last of equal ones
		j.t.Grow(cost(row))
		size += cost(row)
		for i, c := range columns {
			lists[i] = append(lists[i], row[c])
		}
		return nil
	}); err != nil {
		return err
	}
	return emit()
}

func (j *job) fill() error {
	x, err := j.input()
	if err != nil {
		return err
	}
	columns, err := j.columns(x.head)
	if err != nil {
		return err
	}
	if err := j.head1(x.head); err != nil {
		return err
	}
	with, fixed := j.a.Value("v")
	above := make([]string, len(x.head))
	out := make([]string, len(x.head))
	return x.each(func(row []string) error {
		copy(out, row)
		for _, c := range columns {
			switch {
			case out[c] != "":
				above[c] = out[c]
			case fixed:
				out[c] = with
			default:
				out[c] = above[c]
			}
		}
		return j.out.row(out)
	})
}
