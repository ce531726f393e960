package xan

import (
	"fmt"
	"strconv"
	"strings"
)

// The verbs that make or change cells.

func (j *job) extend() error {
	s, err := j.operand("expression")
	if err != nil {
		return err
	}
	name := ""
	if len(j.rest) > 1 || len(j.rest) == 1 && !strings.ContainsAny(j.rest[0], "./-") && !strings.Contains(s, " as ") {
		name, j.rest = j.rest[0], j.rest[1:]
	}
	x, err := j.input()
	if err != nil {
		return err
	}
	list, err := j.list(s, x.head)
	if err != nil {
		return err
	}
	if name != "" && len(list) == 1 {
		list[0].name = name
	}
	head := append([]string(nil), x.head...)
	places := make([]int, len(list))
	for i, e := range list {
		places[i] = len(head)
		if at, err := find(e.name, x.head); err == nil && j.a.Has("O") {
			places[i] = at
			continue
		}
		head = append(head, e.name)
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
		for i, e := range list {
			v, err := e.e(sc)
			if err != nil {
				return fmt.Errorf("row %d: %w", sc.index, err)
			}
			out[places[i]] = text(v)
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
	columns, err := selection(s, x.head)
	if err != nil {
		return err
	}
	e, err := j.compile(how, x.head)
	if err != nil {
		return err
	}
	head := append([]string(nil), x.head...)
	if name, ok := j.a.Value("r"); ok {
		for i, n := range strings.Split(name, ",") {
			if i < len(columns) {
				head[columns[i]] = n
			}
		}
	}
	if err := j.head1(head); err != nil {
		return err
	}
	sc := &scene{index: -1}
	out := make([]string, len(head))
	return x.each(func(row []string) error {
		sc.row = row
		sc.index++
		copy(out, row)
		for _, c := range columns {
			sc.self = row[c]
			v, err := e(sc)
			if err != nil {
				return fmt.Errorf("row %d: %w", sc.index, err)
			}
			out[c] = text(v)
		}
		return j.out.row(out)
	})
}

func (j *job) rename() error {
	prefix, before := j.a.Value("p")
	suffix, behind := j.a.Value("suffix")
	slugify := j.a.Has("S")
	var names []string
	if !before && !behind && !slugify {
		s, err := j.operand("names")
		if err != nil {
			return err
		}
		for s != "" {
			name, rest := s, ""
			if strings.HasPrefix(s, `"`) {
				name, rest = column(s)
			} else if i := strings.IndexByte(s, ','); i >= 0 {
				name, rest = s[:i], s[i:]
			}
			names = append(names, name)
			s = strings.TrimPrefix(rest, ",")
		}
	}
	x, err := j.input()
	if err != nil {
		return err
	}
	columns, err := j.columns(x.head)
	if err != nil {
		return err
	}
	head := append([]string(nil), x.head...)
	if names != nil && len(names) != len(columns) {
		return fmt.Errorf("there are %d names for %d columns", len(names), len(columns))
	}
	for i, c := range columns {
		switch {
		case names != nil:
			head[c] = names[i]
		case slugify:
			head[c] = slug(head[c])
		default:
			head[c] = prefix + head[c] + suffix
		}
	}
	if err := j.out.row(head); err != nil {
		return err
	}
	return x.each(j.out.row)
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
	if err := j.head1(append([]string{name}, x.head...)); err != nil {
		return err
	}
	out := make([]string, len(x.head)+1)
	return x.each(func(row []string) error {
		out[0] = strconv.Itoa(n)
		n++
		copy(out[1:], row)
		return j.out.row(out)
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
	columns, err := selection(s, x.head)
	if err != nil {
		return nil, nil, err
	}
	head := append([]string(nil), x.head...)
	if name, ok := j.a.Value("r"); ok {
		for i, n := range strings.Split(name, ",") {
			if i < len(columns) {
				head[columns[i]] = n
			}
		}
	}
	return x, columns, j.head1(head)
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
			if row[c] == "" && j.a.Has("drop-empty") {
				return nil
			}
		}
		out := append([]string(nil), row...)
		for k := range n {
			j.t.Step(len(row))
			for i, c := range columns {
				if k >= len(lists[i]) {
					return fmt.Errorf("the cells of the columns have different numbers of parts: %q", row[c])
				}
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
	gone := map[int]bool{}
	for _, c := range columns {
		gone[c] = true
	}
	for i := range x.head {
		if !gone[i] {
			others = append(others, i)
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
			held[c] = strings.Join(lists[i], sep)
			j.t.Bound("string", int64(len(held[c])), j.t.K.Limits.String)
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
			held = append([]string(nil), row...)
			lists = make([][]string, len(columns))
			was = append(was[:0], now...)
		}
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
