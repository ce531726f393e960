package xan

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// The verbs that put tables together, or turn them.

func (j *job) join() error {
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
	on, err := selection(args[0], l.head)
	if err != nil {
		return err
	}
	to, err := selection(args[2], r.head)
	if err != nil {
		return err
	}
	if len(on) != len(to) {
		return fmt.Errorf("%d columns cannot be equal to %d", len(on), len(to))
	}
	return j.joined(l, r, on, to)
}

func (j *job) joined(l, r *table, on, to []int) error {
	fold := j.a.Has("i")
	var b []byte
	keyOf := func(row []string, columns []int) (string, bool) {
		b = key(b[:0], row, columns)
		s := string(b)
		if fold {
			s = strings.ToLower(s)
		}
		for _, c := range columns {
			if row[c] == "" {
				return s, false // what is empty equals nothing
			}
		}
		return s, true
	}
	rows, err := r.all()
	if err != nil {
		return err
	}
	index := map[string][]int{}
	for i, row := range rows {
		if k, ok := keyOf(row, to); ok {
			j.t.Grow(64 + len(k))
			index[k] = append(index[k], i)
		}
	}
	semi, anti := j.a.Has("semi"), j.a.Has("anti")
	left := j.a.Has("left") || j.a.Has("full")
	right := j.a.Has("right") || j.a.Has("full")
	head := append([]string(nil), l.head...)
	if !semi && !anti {
		head = append(head, r.head...)
	}
	if err := j.head1(head); err != nil {
		return err
	}
	used := make([]bool, len(rows))
	out := make([]string, 0, len(head))
	none := make([]string, max(len(l.head), len(r.head)))
	if err := l.each(func(row []string) error {
		k, ok := keyOf(row, on)
		var found []int
		if ok {
			found = index[k]
		}
		if semi || anti {
			if len(found) > 0 == semi {
				return j.out.row(row)
			}
			return nil
		}
		for _, i := range found {
			j.t.Step(1 + len(head))
			used[i] = true
			out = append(append(out[:0], row...), rows[i]...)
			if err := j.out.row(out); err != nil {
				return err
			}
		}
		if len(found) == 0 && left {
			return j.out.row(append(append(out[:0], row...), none[:len(r.head)]...))
		}
		return nil
	}); err != nil {
		return err
	}
	for i, row := range rows {
		if right && !used[i] && !semi && !anti {
			if err := j.out.row(append(append(out[:0], none[:len(l.head)]...), row...)); err != nil {
				return err
			}
		}
	}
	return nil
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
	if err := j.head1(append(append([]string(nil), l.head...), r.head...)); err != nil {
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

// below puts tables below each other: columns of one name belong together.
func (j *job) below(names []string) error {
	var head []string
	for i, name := range names {
		x, err := j.open(name)
		if err != nil {
			return err
		}
		if i == 0 {
			head = x.head
			if err := j.head1(head); err != nil {
				return err
			}
		}
		if x.head == nil {
			x.close()
			continue
		}
		columns := make([]int, len(head))
		for k, h := range head {
			if columns[k], err = find(h, x.head); err != nil || len(x.head) != len(head) {
				x.close()
				return fmt.Errorf("%s has other columns: %s", name, strings.Join(x.head, ", "))
			}
		}
		if err := x.each(func(row []string) error { return j.out.row(pick(row, columns)) }); err != nil {
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
