package xan

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// The verbs through which rows stream.

func (j *job) headers() error {
	names := j.rest
	if len(names) == 0 {
		names = []string{"-"}
	}
	start, err := j.number("s", 0)
	if err != nil {
		return err
	}
	heads := make([][]string, len(names))
	files := map[string]int{} // in how many a column is
	places := 4
	for i, name := range names {
		x, err := j.open(name)
		if err != nil {
			return err
		}
		x.close()
		heads[i] = x.head
		places = max(places, len(strconv.Itoa(len(x.head)-1)))
		for _, h := range x.head {
			files[h]++
		}
	}
	for i, head := range heads {
		if len(heads) > 1 {
			if err := j.out.text("%s\n", names[i]); err != nil {
				return err
			}
		}
		for k, h := range head {
			number := fmt.Sprintf("%-*d", places, start+k)
			if j.a.Has("j") {
				number = ""
			}
			if err := j.out.text("%s%s\n", number, escapedBlanks(h)); err != nil {
				return err
			}
		}
		if len(heads) > 1 {
			if err := j.out.text("\n"); err != nil {
				return err
			}
		}
	}
	if len(heads) == 1 {
		return nil
	}
	var diverging []string
	for h, n := range files {
		if n < len(heads) {
			diverging = append(diverging, h)
		}
	}
	slices.Sort(diverging)
	switch {
	case slices.ContainsFunc(slices.Collect(maps.Values(files)), func(n int) bool { return n != len(heads) }):
		return j.out.text("All files don't have the same headers!\nDiverging headers: %s\n", strings.Join(diverging, ", "))
	default:
		return j.out.text("All files have the same headers!\n")
	}
}

func (j *job) count() error {
	x, err := j.input()
	if err != nil {
		return err
	}
	n := 0
	x.free = true
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
	columns, err := j.selection(s, x.head)
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
	list, err := j.clauses(s, x.head)
	if err != nil {
		return err
	}
	var out []string
	for _, c := range list {
		out = append(out, c.names...)
	}
	if err := j.head1(out); err != nil {
		return err
	}
	sc := &scene{index: -1}
	return x.each(func(row []string) error {
		sc.row = row
		sc.index++
		out = out[:0]
		for _, c := range list {
			cells, _, err := c.cells(sc)
			if err != nil {
				return err
			}
			out = append(out, cells...)
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
	gone, err := j.selection(s, x.head)
	if err != nil {
		return err
	}
	var columns []int
	for i := range x.head {
		if !slices.Contains(gone, i) {
			columns = append(columns, i)
		}
	}
	if len(columns) == 0 {
		return errors.New("there are no columns left")
	}
	return j.project(x, columns)
}

// limited gives a function that counts rows up to a limit, and tells after
// each whether there may be another. Without a limit, or with 0, there may.
func (j *job) limited(key string, otherwise int) (func() bool, error) {
	n, err := j.number(key, otherwise)
	if err != nil {
		return nil, err
	}
	return func() bool {
		n--
		return n != 0
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
	if err := j.head1(x.head); err != nil {
		return err
	}
	e, err := j.compile(s, x.head)
	if err != nil {
		return err
	}
	invert := j.a.Has("v")
	sc := &scene{index: -1}
	return x.each(func(row []string) error {
		sc.row = row
		sc.index++
		v, err := e.compute(sc)
		if err != nil {
			return fmt.Errorf("row %d: %w", sc.index, err)
		}
		if truthy(v) == invert {
			return nil
		}
		return j.out.some(row, more)
	})
}

// A matcher is the test of search.
type matcher struct {
	match   func(s string) bool
	count   func(s string) int
	replace func(s, with string) string
}

// matcher makes the test. Text that is no regular expression becomes one.
func (j *job) matcher() (*matcher, error) {
	switch {
	case j.a.Has("E"):
		return &matcher{match: func(s string) bool { return s == "" }}, nil
	case j.a.Has("N"):
		return &matcher{match: func(s string) bool { return s != "" }}, nil
	}
	p, err := j.operand("pattern")
	if err != nil {
		return nil, err
	}
	if !j.a.Has("r") {
		p = regexp.QuoteMeta(p)
	}
	if j.a.Has("e") {
		p = "^(?:" + p + ")$"
	}
	if j.a.Has("i") {
		p = "(?i)" + p
	}
	re, err := compilePattern(p)
	if err != nil {
		return nil, err
	}
	step := func(s string) { j.t.Step(len(s) * (1 + len(p)>>5) >> 3) }
	return &matcher{
		match: func(s string) bool { step(s); return re.MatchString(s) },
		count: func(s string) int { step(s); return len(j.found(s, re)) },
		replace: func(s, with string) string {
			step(s)
			return j.expanded(s, re, with)
		},
	}, nil
}

func (j *job) search() error {
	m, err := j.matcher()
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
	flag, flagged := j.a.Value("f")
	count, counted := j.a.Value("c")
	with, replaced := j.a.Value("R")
	head := slices.Clone(x.head)
	switch {
	case flagged:
		head = append(head, flag)
	case counted:
		head = append(head, count)
	}
	if (counted || replaced) && m.count == nil {
		return &usageError{"there is no pattern to count or replace"}
	}
	if flagged && j.a.Has("v") {
		return &usageError{"-f does not go with -v"}
	}
	if err := j.head1(head); err != nil {
		return err
	}
	return x.each(func(row []string) error {
		if replaced {
			for _, c := range columns {
				row[c] = m.replace(row[c], with)
			}
			return j.out.some(row, more)
		}
		n, hits := 0, 0
		for _, c := range columns {
			if m.match(row[c]) {
				hits++
			}
			if counted {
				n += m.count(row[c])
			}
		}
		found := hits > 0
		if j.a.Has("A") {
			found = hits == len(columns)
		}
		found = found != j.a.Has("v")
		switch {
		case flagged:
			row = append(row, strconv.FormatBool(found))
		case !found:
			return nil
		case counted:
			row = append(row, strconv.Itoa(n))
		}
		return j.out.some(row, more)
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
	return x.each(func(row []string) error { return j.out.some(row, more) })
}

func (j *job) tail() error {
	n, err := j.number("l", 10)
	if err != nil {
		return err
	}
	return j.last(n)
}

// last writes the last rows.
func (j *job) last(n int) error {
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

// A span is the rows that slice keeps: from after start rows to end rows.
type span struct {
	start, end int
	only       map[int]bool // these instead
	wrong      error        // what is told when the head is written
}

func (j *job) span() (span, error) {
	s := span{}
	var err error
	for _, key := range []string{"skip", "s"} {
		if s.start, err = j.number(key, s.start); err != nil {
			return s, err
		}
	}
	given := func(key string) bool { _, ok := j.a.Value(key); return ok }
	if s.end, err = j.number("e", 1<<62); err != nil {
		return s, err
	}
	n, err := j.number("l", 0)
	if err != nil {
		return s, err
	}
	switch {
	case given("i") && (given("s") || given("e") || given("l")), given("e") && given("l"):
		s.wrong = &usageError{"-i, -e and -l do not go together"}
	case given("l"):
		s.end = s.start + n
	case given("i"):
		if s.start, err = j.number("i", 0); err != nil {
			return s, err
		}
		s.end = s.start + 1
	case s.start > s.end:
		s.wrong = fmt.Errorf("the end, %d, is before the start, %d", s.end, s.start)
	}
	list, ok := j.a.Value("I")
	if !ok {
		return s, nil
	}
	s.only = map[int]bool{}
	for _, part := range strings.Split(list, ",") {
		i, err := strconv.Atoi(part)
		if err != nil {
			s.wrong = &usageError{fmt.Sprintf("invalid number '%s'", part)}
		}
		s.only[i] = true
	}
	return s, nil
}

// condition compiles the expression of an option.
func (j *job) condition(key string, head []string) (func(s *scene) (bool, error), error) {
	text, ok := j.a.Value(key)
	if !ok {
		return nil, nil
	}
	e, err := j.compile(text, head)
	return func(s *scene) (bool, error) {
		v, err := e.compute(s)
		if err != nil {
			return false, fmt.Errorf("row %d: %w", s.index, err)
		}
		return truthy(v), nil
	}, err
}

func (j *job) slice() error {
	if _, ok := j.a.Value("L"); ok {
		n, err := j.number("L", 0)
		if err != nil {
			return err
		}
		return j.last(n)
	}
	s, err := j.span()
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
	begin, err := j.condition("S", x.head)
	if err != nil {
		return err
	}
	stop, err := j.condition("E", x.head)
	if err == nil {
		err = s.wrong
	}
	if err != nil {
		return err
	}
	n := 0
	return x.each(func(row []string) error {
		sc := &scene{row: row, index: x.rows - 1}
		if s.only != nil {
			if s.only[sc.index] {
				return j.out.row(row)
			}
			return nil
		}
		if begin != nil {
			if ok, err := begin(sc); err != nil || !ok {
				return err
			}
			begin = nil
		}
		if stop != nil {
			if ok, err := stop(sc); err != nil || ok {
				return errors.Join(err, errEnough)
			}
		}
		if n++; n <= s.start {
			return nil
		}
		return j.out.some(row, func() bool { return n != s.end })
	})
}

// behead copies all behind the first row as it is.
func (j *job) behead() error {
	x, err := j.input()
	if err != nil {
		return err
	}
	return x.rest(j.out)
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
	switch {
	case n >= 0 || len(rows) == 0:
	case j.a.Has("H"):
		n = len(rows[0])
	default:
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
	j.out.comma = ','
	if j.a.Has("tabs") {
		j.out.comma = '\t'
	} else if s, ok := j.a.Value("t"); ok {
		c, err := delimiter(s)
		if err != nil {
			return &usageError{err.Error()}
		}
		j.out.comma = c
	}
	if j.a.Has("crlf") {
		j.out.end = "\r\n"
	}
	j.out.quote, j.out.never = j.a.Has("quote-always"), j.a.Has("quote-never")
	x, err := j.input()
	if err != nil || x.head == nil {
		return err
	}
	if err := j.head1(x.head); err != nil {
		return err
	}
	return x.each(j.out.row)
}

// A fileNamer makes names of files of values: no two are equal.
type fileNamer struct {
	t             *kernel.Task
	dir, template string
	used          map[string]bool
	n             int
}

// fileNamer makes the directory too.
func (j *job) fileNamer() (*fileNamer, error) {
	f := &fileNamer{t: j.t, template: "{}.csv", used: map[string]bool{}, n: 1}
	if s, ok := j.a.Value("f"); ok {
		if f.template = s; !strings.Contains(s, "{}") {
			return nil, &usageError{"the name of the files has no {}"}
		}
	}
	dir, ok := j.a.Value("O")
	if !ok || dir == "" {
		return f, nil
	}
	f.dir = dir
	for i, c := range dir + "/" {
		if c != '/' || i == 0 {
			continue
		}
		if err := j.t.View.Mkdir(dir[:i], 0o777); err != nil && !errors.Is(err, linux.EEXIST) {
			return nil, fileError(dir[:i], err)
		}
	}
	return f, nil
}

func (f *fileNamer) name(s string) string {
	s = kernel.ReplaceAll(f.t, f.template, "{}", s)
	if f.dir != "" {
		return f.dir + "/" + s
	}
	return s
}

// unique makes a name of a cell.
func (f *fileNamer) unique(s string) string {
	s = regexp.MustCompile(`[^\pL\pM\pN_.-]`).ReplaceAllString(s, "")
	if s == "" || strings.Trim(s, ".") == "" {
		s = "empty"
	}
	name := strings.ToLower(s)
	for base := s; f.used[name]; f.n++ {
		s = base + "_" + strconv.Itoa(f.n)
		name = s
	}
	f.used[name] = true
	return f.name(s)
}

func (j *job) split() error {
	n, err := j.number("S", 4096)
	if err != nil {
		return err
	}
	if n == 0 {
		return &usageError{"invalid number '0'"}
	}
	f, err := j.fileNamer()
	if err != nil {
		return err
	}
	x, err := j.input()
	if err != nil {
		return err
	}
	x.free = true
	head := bytes.Clone(x.line)
	begin := func(i int) error {
		if err := j.onto(f.name(strconv.Itoa(i))); err != nil || j.bare {
			return err
		}
		return j.out.line(head)
	}
	if err := begin(0); err != nil {
		return err
	}
	return x.each(func([]string) error {
		if x.rows > 1 && (x.rows-1)%n == 0 {
			if err := begin(x.rows - 1); err != nil {
				return err
			}
		}
		return j.out.line(x.line)
	})
}

// onto goes on in another file.
func (j *job) onto(name string) error {
	if err := j.finish(); err != nil {
		return err
	}
	f, err := create(j.t, name)
	if err != nil {
		return err
	}
	j.file, j.out.w = f, f
	return nil
}

func (j *job) partition() error {
	s, err := j.operand("a column")
	if err != nil {
		return err
	}
	f, err := j.fileNamer()
	if err != nil {
		return err
	}
	x, err := j.input()
	if err != nil {
		return err
	}
	c, err := j.single(s, x.head)
	if err != nil {
		return err
	}
	var keep []int
	for i := range x.head {
		if i != c || !j.a.Has("drop") {
			keep = append(keep, i)
		}
	}
	rows := map[string][][]string{}
	var order []string
	if err := x.each(func(row []string) error {
		j.t.Grow(cost(row))
		if rows[row[c]] == nil {
			order = append(order, row[c])
		}
		rows[row[c]] = append(rows[row[c]], pick(row, keep))
		return nil
	}); err != nil {
		return err
	}
	for _, s := range order {
		if err := j.onto(f.unique(s)); err != nil {
			return err
		}
		if err := j.head1(pick(x.head, keep)); err != nil {
			return err
		}
		if err := j.rows(rows[s]); err != nil {
			return err
		}
	}
	return nil
}
