package xan

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// The verbs that put tables together, or turn them.

func (j *job) join() error {
	n := 0
	for _, kind := range []string{"inner", "left", "right", "full", "semi", "anti", "cross"} {
		if j.a.Has(kind) {
			n++
		}
	}
	if n > 1 {
		return &usageError{"there is more than one kind of join"}
	}
	if j.a.Has("cross") {
		return j.cross()
	}
	var args [4]string
	for i, what := range []string{"columns", "a file", "columns", "a file"} {
		s, err := j.operand(what)
		if err != nil {
			if i == 3 { // one selection for both and two files
				args = [4]string{args[0], args[1], args[0], args[2]}
				break
			}
			return err
		}
		args[i] = s
	}
	if len(j.rest) > 0 {
		return &usageError{fmt.Sprintf("extra operand '%s'", j.rest[0])}
	}
	l, err := j.open(args[1])
	if err != nil {
		return err
	}
	defer l.close()
	r, err := j.open(args[3])
	if err != nil {
		return err
	}
	on, err := j.selection(args[0], l.head)
	if err != nil {
		return err
	}
	to, err := j.selection(args[2], r.head)
	if err != nil {
		return err
	}
	if len(on) != len(to) {
		return fmt.Errorf("%d columns cannot be equal to %d", len(on), len(to))
	}
	return j.joined(l, r, on, to)
}

// joinKey makes what must be equal; of nothing but empty cells there is none.
func (j *job) joinKey(row []string, columns []int) (string, bool) {
	some := j.a.Has("nulls")
	for _, c := range columns {
		some = some || row[c] != ""
	}
	s := string(key(nil, row, columns))
	if j.a.Has("i") {
		s = strings.ToLower(s)
	}
	return s, some
}

// A joinSide is a table of a join, with the columns that must be equal and
// those that are written.
type joinSide struct {
	x       *table
	on, out []int
}

func (s joinSide) cells(row []string) []string {
	if row == nil {
		return make([]string, len(s.out))
	}
	return pick(row, s.out)
}

// sides tells which columns of a join are written. Where the columns that must
// be equal have the same names, those of the one side are enough.
func (j *job) sides(l, r *table, on, to []int) (left, right joinSide, err error) {
	drop, ok := j.a.Value("D")
	switch {
	case ok:
	case j.bare || j.a.Has("i") || !slices.Equal(pick(l.head, on), pick(r.head, to)):
		drop = "none"
	case j.a.Has("right"):
		drop = "left"
	default:
		drop = "right"
	}
	left, right = joinSide{x: l, on: on}, joinSide{x: r, on: to}
	switch drop {
	case "left", "right", "both", "none":
	default:
		return left, right, &usageError{fmt.Sprintf("'%s' is neither left, right, both nor none", drop)}
	}
	for i := range l.head {
		if drop != "left" && drop != "both" || !slices.Contains(on, i) {
			left.out = append(left.out, i)
		}
	}
	for i := range r.head {
		if drop != "right" && drop != "both" || !slices.Contains(to, i) {
			right.out = append(right.out, i)
		}
	}
	return left, right, nil
}

// An index finds the rows of a table by their key. Rows without a key are
// forgotten, in a full join too: the real xan does that.
type index struct {
	rows  [][]string
	used  []bool
	byKey map[string][]int
}

func (j *job) index(s joinSide) (*index, error) {
	x := &index{byKey: map[string][]int{}}
	return x, s.x.each(func(row []string) error {
		k, ok := j.joinKey(row, s.on)
		if !ok {
			return nil
		}
		j.t.Grow(cost(row) + 64 + len(k))
		j.t.Bound("array", int64(len(x.rows)), j.t.K.Limits.Array)
		x.byKey[k] = append(x.byKey[k], len(x.rows))
		x.rows = append(x.rows, row)
		x.used = append(x.used, false)
		return nil
	})
}

// find gives the rows that fit one of the other table.
func (j *job) find(x *index, row []string, on []int) []int {
	k, ok := j.joinKey(row, on)
	if !ok {
		return nil
	}
	return x.byKey[k]
}

// joined writes what two tables have together. Of a left join the right table
// is held in memory, of all others the left one; rows come in the order of the
// table that streams.
func (j *job) joined(l, r *table, on, to []int) error {
	left, right, err := j.sides(l, r, on, to)
	if err != nil {
		return err
	}
	if j.a.Has("semi") || j.a.Has("anti") {
		return j.matched(left, right)
	}
	head := make([]string, 0, len(left.out)+len(right.out))
	before, _ := j.a.Value("L")
	for _, h := range left.cells(l.head) {
		head = append(head, before+h)
	}
	before, _ = j.a.Value("R")
	for _, h := range right.cells(r.head) {
		head = append(head, before+h)
	}
	if err := j.head1(head); err != nil {
		return err
	}
	held, stream := left, right
	if j.a.Has("left") {
		held, stream = right, left
	}
	x, err := j.index(held)
	if err != nil {
		return err
	}
	write := func(a, b []string) error { // of the table in memory, and of the other
		j.t.Step(1 + len(head))
		if j.a.Has("left") {
			return j.out.row(append(left.cells(b), right.cells(a)...))
		}
		return j.out.row(append(left.cells(a), right.cells(b)...))
	}
	if err := stream.x.each(func(row []string) error {
		found := j.find(x, row, stream.on)
		for _, i := range found {
			x.used[i] = true
			if err := write(x.rows[i], row); err != nil {
				return err
			}
		}
		if len(found) == 0 && (j.a.Has("left") || j.a.Has("right") || j.a.Has("full")) {
			return write(nil, row)
		}
		return nil
	}); err != nil {
		return err
	}
	for i, row := range x.rows {
		if j.a.Has("full") && !x.used[i] {
			if err := write(row, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// matched writes the rows of the left table that have a match, or none.
func (j *job) matched(left, right joinSide) error {
	if err := j.head1(left.x.head); err != nil {
		return err
	}
	x, err := j.index(right)
	if err != nil {
		return err
	}
	return left.x.each(func(row []string) error {
		if len(j.find(x, row, left.on)) > 0 == j.a.Has("semi") {
			return j.out.row(row)
		}
		return nil
	})
}

func (j *job) cross() error {
	a, err := j.operand("a file")
	if err != nil {
		return err
	}
	l, err := j.open(a)
	if err != nil {
		return err
	}
	r, err := j.input()
	if err != nil {
		return err
	}
	rows, err := r.all()
	if err != nil {
		return err
	}
	if err := j.head1(append(slices.Clone(l.head), r.head...)); err != nil {
		return err
	}
	var out []string
	return l.each(func(row []string) error {
		for _, other := range rows {
			j.t.Step(1 + len(row) + len(other))
			out = append(append(out[:0], row...), other...)
			if err := j.out.row(out); err != nil {
				return err
			}
		}
		return nil
	})
}

func (j *job) cat() error {
	how, err := j.operand("rows or cols")
	if err != nil {
		return err
	}
	names := j.rest
	if len(names) == 0 {
		names = []string{"-"}
	}
	switch how {
	case "rows":
		return j.below(names)
	case "cols", "columns":
		return j.beside(names)
	}
	return &usageError{fmt.Sprintf("'%s' is neither rows nor cols", how)}
}

// below puts tables below each other. Columns belong together by their place.
func (j *job) below(names []string) error {
	source, given := j.a.Value("S")
	width := 0
	for i, name := range names {
		x, err := j.open(name)
		if err != nil {
			return err
		}
		if i == 0 {
			head := slices.Clone(x.head)
			if given {
				head = append([]string{source}, head...)
			}
			width = len(head)
			if err := j.head1(head); err != nil {
				return err
			}
		}
		if err := x.each(func(row []string) error {
			if given {
				row = append([]string{name}, row...)
			}
			if len(row) != width {
				return fmt.Errorf("%s has %d columns, and not %d", name, len(row), width)
			}
			return j.out.row(row)
		}); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) beside(names []string) error {
	tables := make([]*table, 0, len(names))
	defer func() {
		for _, x := range tables {
			x.close()
		}
	}()
	var head []string
	for _, name := range names {
		x, err := j.open(name)
		if err != nil {
			return err
		}
		tables = append(tables, x)
		head = append(head, x.head...)
	}
	if err := j.head1(head); err != nil {
		return err
	}
	for {
		var out []string
		ended := 0
		for _, x := range tables {
			row, err := x.next()
			if errors.Is(err, io.EOF) {
				ended++
				row = make([]string, len(x.head))
			} else if err != nil {
				return err
			}
			out = append(out, row...)
		}
		if ended == len(tables) || ended > 0 && !j.a.Has("p") {
			return nil
		}
		if err := j.out.row(out); err != nil {
			return err
		}
	}
}

func (j *job) transpose() error {
	x, err := j.input()
	if err != nil {
		return err
	}
	rows, err := x.all()
	if err != nil {
		return err
	}
	if !x.bare && x.head != nil {
		rows = append([][]string{x.head}, rows...)
	}
	for c := range x.head {
		out := make([]string, len(rows))
		j.t.Step(len(rows))
		for i, r := range rows {
			out[i] = r[c]
		}
		if err := j.out.row(out); err != nil {
			return err
		}
	}
	return nil
}
