package xan

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The verbs through which rows stream.

func (j *job) headers() error {
	names := j.rest
	if len(names) == 0 {
		names = []string{"-"}
	}
	for _, name := range names {
		x, err := j.open(name)
		if err != nil {
			return err
		}
		x.close()
		if len(names) > 1 {
			if err := j.out.text("%s\n", name); err != nil {
				return err
			}
		}
		for i, h := range x.head {
			if j.a.Has("j") {
				err = j.out.text("%s\n", h)
			} else {
				err = j.out.text("%-4d%s\n", i, h)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *job) count() error {
	x, err := j.input()
	if err != nil {
		return err
	}
	n := 0
	if err := x.each(func([]string) error { n++; return nil }); err != nil {
		return err
	}
	return j.out.text("%d\n", n)
}

func (j *job) choose() error {
	s, err := j.operand("columns")
	if err != nil {
		return err
	}
	x, err := j.input()
	if err != nil {
		return err
	}
	if j.a.Has("e") {
		return j.evaluate(x, s)
	}
	columns, err := selection(s, x.head)
	if err != nil {
		return err
	}
	return j.project(x, columns)
}

func (j *job) project(x *table, columns []int) error {
	if err := j.head1(pick(x.head, columns)); err != nil {
		return err
	}
	out := make([]string, len(columns))
	return x.each(func(row []string) error {
		for i, c := range columns {
			out[i] = row[c]
		}
		return j.out.row(out)
	})
}

func (j *job) evaluate(x *table, s string) error {
	list, err := j.list(s, x.head)
	if err != nil {
		return err
	}
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = e.name
	}
	if err := j.head1(out); err != nil {
		return err
	}
	sc := &scene{index: -1}
	return x.each(func(row []string) error {
		sc.row = row
		sc.index++
		for i, e := range list {
			v, err := e.e(sc)
			if err != nil {
				return fmt.Errorf("row %d: %w", sc.index, err)
			}
			out[i] = text(v)
		}
		return j.out.row(out)
	})
}

func (j *job) drop() error {
	s, err := j.operand("columns")
	if err != nil {
		return err
	}
	x, err := j.input()
	if err != nil {
		return err
	}
	columns, err := selection("!"+s, x.head)
	if err != nil {
		return err
	}
	return j.project(x, columns)
}

// limited gives a function that counts rows up to a limit.
func (j *job) limited(key string, otherwise int) (func() bool, error) {
	n, err := j.number(key, otherwise)
	if err != nil {
		return nil, err
	}
	return func() bool {
		if n < 0 {
			return true
		}
		n--
		return n >= 0
	}, nil
}

func (j *job) filter() error {
	s, err := j.operand("expression")
	if err != nil {
		return err
	}
	more, err := j.limited("l", -1)
	if err != nil {
		return err
	}
	x, err := j.input()
	if err != nil {
		return err
	}
	e, err := j.compile(s, x.head)
	if err != nil {
		return err
	}
	if err := j.head1(x.head); err != nil {
		return err
	}
	invert := j.a.Has("v")
	sc := &scene{index: -1}
	return x.each(func(row []string) error {
		sc.row = row
		sc.index++
		v, err := e(sc)
		if err != nil {
			return fmt.Errorf("row %d: %w", sc.index, err)
		}
		if truthy(v) == invert {
			return nil
		}
		if !more() {
			return errEnough
		}
		return j.out.row(row)
	})
}

// matching makes the test of search.
func (j *job) matching() (func(string) bool, error) {
	switch {
	case j.a.Has("E"):
		return func(s string) bool { return s == "" }, nil
	case j.a.Has("N"):
		return func(s string) bool { return s != "" }, nil
	}
	p, err := j.operand("pattern")
	if err != nil {
		return nil, err
	}
	fold := j.a.Has("i")
	if j.a.Has("r") {
		if fold {
			p = "(?i)" + p
		}
		re, err := compilePattern(p)
		if err != nil {
			return nil, err
		}
		return func(s string) bool {
			j.t.Step(len(s) * (1 + len(p)>>5) >> 3)
			return re.MatchString(s)
		}, nil
	}
	exact := j.a.Has("e")
	if fold {
		p = strings.ToLower(p)
	}
	return func(s string) bool {
		if fold {
			s = strings.ToLower(s)
		}
		if exact {
			return s == p
		}
		return strings.Contains(s, p)
	}, nil
}

func (j *job) search() error {
	match, err := j.matching()
	if err != nil {
		return err
	}
	more, err := j.limited("l", -1)
	if err != nil {
		return err
	}
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
	invert := j.a.Has("v")
	return x.each(func(row []string) error {
		found := false
		for _, c := range columns {
			if match(row[c]) {
				found = true
				break
			}
		}
		if found == invert {
			return nil
		}
		if !more() {
			return errEnough
		}
		return j.out.row(row)
	})
}

func (j *job) head() error {
	more, err := j.limited("l", 10)
	if err != nil {
		return err
	}
	x, err := j.input()
	if err != nil {
		return err
	}
	if err := j.head1(x.head); err != nil {
		return err
	}
	return x.each(func(row []string) error {
		if !more() {
			return errEnough
		}
		return j.out.row(row)
	})
}

func (j *job) tail() error {
	n, err := j.number("l", 10)
	if err != nil {
		return err
	}
	x, err := j.input()
	if err != nil {
		return err
	}
	if err := j.head1(x.head); err != nil {
		return err
	}
	var ring [][]string
	at := 0
	if err := x.each(func(row []string) error {
		switch {
		case n == 0:
		case len(ring) < n:
			j.t.Grow(cost(row))
			ring = append(ring, row)
		default:
			j.t.Shrink(cost(ring[at]))
			j.t.Grow(cost(row))
			ring[at] = row
			at = (at + 1) % n
		}
		return nil
	}); err != nil {
		return err
	}
	return j.rows(append(ring[at:len(ring):len(ring)], ring[:at]...))
}

func (j *job) rows(list [][]string) error {
	for _, r := range list {
		if err := j.out.row(r); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) slice() error {
	start, err := j.number("s", 0)
	if err != nil {
		return err
	}
	end, err := j.number("e", 1<<62)
	if err != nil {
		return err
	}
	n, err := j.number("l", -1)
	if err != nil {
		return err
	}
	if n >= 0 {
		end = start + n
	}
	if _, ok := j.a.Value("i"); ok {
		if start, err = j.number("i", 0); err != nil {
			return err
		}
		end = start + 1
	}
	var only map[int]bool
	if s, ok := j.a.Value("I"); ok {
		only = map[int]bool{}
		for _, part := range strings.Split(s, ",") {
			i, err := strconv.Atoi(part)
			if err != nil {
				return &usageError{fmt.Sprintf("invalid number '%s'", part)}
			}
			only[i] = true
		}
	}
	x, err := j.input()
	if err != nil {
		return err
	}
	if err := j.head1(x.head); err != nil {
		return err
	}
	at := -1
	return x.each(func(row []string) error {
		at++
		switch {
		case only != nil:
			if !only[at] {
				return nil
			}
		case at >= end:
			return errEnough
		case at < start:
			return nil
		}
		return j.out.row(row)
	})
}

func (j *job) behead() error {
	x, err := j.input()
	if err != nil {
		return err
	}
	return x.each(j.out.row)
}

func (j *job) fixlengths() error {
	n, err := j.number("l", -1)
	if err != nil {
		return err
	}
	x, err := j.input()
	if err != nil {
		return err
	}
	x.free = true
	rows, err := x.all()
	if err != nil {
		return err
	}
	if x.head != nil && !x.bare {
		rows = append([][]string{x.head}, rows...)
	}
	if n < 0 {
		for _, r := range rows {
			n = max(n, len(r))
		}
	}
	for _, r := range rows {
		j.t.Step(1 + n>>4)
		for len(r) < n {
			r = append(r, "")
		}
		if err := j.out.row(r[:n]); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) format() error {
	if s, ok := j.a.Value("t"); ok {
		c, err := delimiter(s)
		if err != nil {
			return &usageError{err.Error()}
		}
		j.out.comma = c
	}
	if j.a.Has("crlf") {
		j.out.end = "\r\n"
	}
	j.out.quote = j.a.Has("quote-always")
	x, err := j.input()
	if err != nil {
		return err
	}
	if err := j.head1(x.head); err != nil {
		return err
	}
	return x.each(j.out.row)
}

// fileName makes a name of a file of a value.
func fileName(dir, s string) string {
	s = regexp.MustCompile(`[^\pL\pN_.-]+`).ReplaceAllString(s, "_")
	if s == "" || strings.Trim(s, ".") == "" {
		s = "empty"
	}
	if dir != "" {
		return dir + "/" + s + ".csv"
	}
	return s + ".csv"
}

func (j *job) split() error {
	n, err := j.number("S", 4096)
	if err != nil {
		return err
	}
	if n == 0 {
		return &usageError{"invalid number '0'"}
	}
	dir, _ := j.a.Value("O")
	x, err := j.input()
	if err != nil {
		return err
	}
	return x.each(func(row []string) error {
		if (x.rows-1)%n == 0 {
			if err := j.onto(fileName(dir, strconv.Itoa(x.rows-1)), x.head); err != nil {
				return err
			}
		}
		return j.out.row(row)
	})
}

// onto goes on in another file.
func (j *job) onto(name string, head []string) error {
	if err := j.finish(); err != nil {
		return err
	}
	f, err := create(j.t, name)
	if err != nil {
		return err
	}
	j.file, j.out.w = f, f
	return j.head1(head)
}

func (j *job) partition() error {
	s, err := j.operand("a column")
	if err != nil {
		return err
	}
	dir, _ := j.a.Value("O")
	x, err := j.input()
	if err != nil {
		return err
	}
	c, err := find(s, x.head)
	if err != nil {
		return err
	}
	var keep []int
	for i := range x.head {
		if i != c || !j.a.Has("drop") {
			keep = append(keep, i)
		}
	}
	groups := map[string][][]string{}
	var order []string
	if err := x.each(func(row []string) error {
		j.t.Grow(cost(row))
		name := fileName(dir, row[c])
		if groups[name] == nil {
			order = append(order, name)
		}
		groups[name] = append(groups[name], pick(row, keep))
		return nil
	}); err != nil {
		return err
	}
	for _, name := range order {
		if err := j.onto(name, pick(x.head, keep)); err != nil {
			return err
		}
		if err := j.rows(groups[name]); err != nil {
			return err
		}
	}
	return nil
}
