package xan

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// The verbs that order rows.

// comparer compares rows by columns.
func (j *job) comparer(columns []int, numeric bool) func(a, b []string) int {
	return func(a, b []string) int {
		j.t.Step(1)
		for _, c := range columns {
			r := 0
			if numeric {
				x, ok1 := parsed(a[c])
				y, ok2 := parsed(b[c])
				switch {
				case ok1 && ok2:
					r, _ = compareNumbers(x, y)
				case ok1:
					r = 1 // what is no number comes first
				case ok2:
					r = -1
				}
			} else {
				r = strings.Compare(a[c], b[c])
			}
			if r != 0 {
				return r
			}
		}
		return 0
	}
}

func (j *job) sort() error {
	x, err := j.input()
	if err != nil {
		return err
	}
	columns, err := j.columns(x.head)
	if err != nil {
		return err
	}
	columns = distinct(columns)
	compare := j.comparer(columns, j.a.Has("N"))
	if j.a.Has("R") {
		forward := compare
		compare = func(a, b []string) int { return forward(b, a) }
	}
	switch {
	case j.a.Has("check"):
		return j.sorted(x, compare)
	case j.a.Has("cells"):
		return j.sortCells(x, columns)
	case j.a.Has("columns"):
		return j.sortColumns(x, columns)
	}
	count, counted := j.a.Value("c")
	if counted && !j.a.Has("u") {
		return &usageError{"-c needs -u"}
	}
	rows, err := x.all()
	if err != nil {
		return err
	}
	slices.SortStableFunc(rows, compare)
	head := slices.Clone(x.head)
	if counted {
		head = append(head, count)
	}
	if head != nil {
		if err := j.head1(head); err != nil {
			return err
		}
	}
	for i := 0; i < len(rows); {
		n := 1
		for j.a.Has("u") && i+n < len(rows) && compare(rows[i], rows[i+n]) == 0 {
			n++
		}
		row := rows[i]
		if counted {
			row = append(slices.Clone(row), strconv.Itoa(n))
		}
		if err := j.out.row(row); err != nil {
			return err
		}
		i += n
	}
	return nil
}

// sorted tells whether rows are in order.
func (j *job) sorted(x *table, compare func(a, b []string) int) error {
	var last []string
	if err := x.each(func(row []string) error {
		if last != nil && compare(last, row) > 0 {
			return fmt.Errorf("file is NOT sorted: row %d comes before its predecessor", x.rows-1)
		}
		last = row
		return nil
	}); err != nil {
		return err
	}
	return j.out.text("file is correctly sorted!\n")
}

// sortCells sorts some cells of each row.
func (j *job) sortCells(x *table, columns []int) error {
	if err := j.head1(x.head); err != nil {
		return err
	}
	return x.each(func(row []string) error {
		cells := pick(row, columns)
		for _, c := range cells {
			if _, ok := parsed(c); j.a.Has("N") && !ok {
				return fmt.Errorf("%q is no number", c)
			}
		}
		compare := j.comparer([]int{0}, j.a.Has("N"))
		slices.SortStableFunc(cells, func(a, b string) int {
			if j.a.Has("R") {
				a, b = b, a
			}
			return compare([]string{a}, []string{b})
		})
		for i, c := range slices.Sorted(slices.Values(columns)) {
			row[c] = cells[i]
		}
		return j.out.row(row)
	})
}

// sortColumns sorts some columns by their names.
func (j *job) sortColumns(x *table, columns []int) error {
	if j.bare || j.a.Has("N") {
		return &usageError{"--columns goes with neither -n nor -N"}
	}
	order := slices.Clone(columns)
	slices.SortFunc(order, func(a, b int) int {
		c := cmp.Or(strings.Compare(x.head[a], x.head[b]), cmp.Compare(a, b))
		if j.a.Has("R") {
			return -c
		}
		return c
	})
	places := make([]int, len(x.head))
	for i := range places {
		places[i] = i
	}
	for i, c := range slices.Sorted(slices.Values(columns)) {
		places[c] = order[i]
	}
	return j.project(x, places)
}

func (j *job) reverse() error {
	x, err := j.input()
	if err != nil || x.head == nil {
		return err
	}
	if err := j.head1(x.head); err != nil {
		return err
	}
	rows, err := x.all()
	if err != nil {
		return err
	}
	slices.Reverse(rows)
	return j.rows(rows)
}

// random gives a source of numbers, from --seed or the computer's clock.
func (j *job) random() (*rand.Rand, error) {
	seed := uint64(j.t.K.Now().UnixNano())
	if s, ok := j.a.Value("seed"); ok {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return nil, &usageError{"invalid seed '" + s + "'"}
		}
		seed = n
	}
	return rand.New(rand.NewPCG(seed, 0)), nil //nolint:gosec // samples need no secret
}

func (j *job) shuffle() error {
	r, err := j.random()
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
	rows, err := x.all()
	if err != nil {
		return err
	}
	r.Shuffle(len(rows), func(a, b int) { rows[a], rows[b] = rows[b], rows[a] })
	return j.rows(rows)
}

// sample keeps each of n rows with the same chance, in one pass.
func (j *job) sample() error {
	s, err := j.operand("the number of rows")
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return &usageError{"invalid number '" + s + "'"}
	}
	r, err := j.random()
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
	var kept [][]string
	if err := x.each(func(row []string) error {
		if len(kept) < n {
			j.t.Grow(cost(row))
			kept = append(kept, row)
			return nil
		}
		if i := r.IntN(x.rows); i < n {
			j.t.Grow(cost(row))
			j.t.Shrink(cost(kept[i]))
			kept[i] = row
		}
		return nil
	}); err != nil {
		return err
	}
	return j.rows(kept)
}

// distinct drops what comes again.
func distinct(list []int) []int {
	var out []int
	for _, x := range list {
		if !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

// An identity is what dedup knows of equal rows.
type identity struct{ first, last, n int }

func (j *job) dedup() error {
	x, err := j.input()
	if err != nil {
		return err
	}
	columns, err := j.columns(x.head)
	if err != nil {
		return err
	}
	flag, flagged := j.a.Value("f")
	if j.a.Has("l") && j.a.Has("k") || flagged && j.a.Has("check") {
		return &usageError{"these options do not go together"}
	}
	if j.a.Has("check") {
		return j.unique(x, columns)
	}
	head := slices.Clone(x.head)
	if flagged {
		head = append(head, flag)
	}
	if err := j.head1(head); err != nil {
		return err
	}
	if j.a.Has("l") || j.a.Has("k") {
		return j.dedupHeld(x, columns)
	}
	seen := map[string]struct{}{}
	var k []byte
	return x.each(func(row []string) error {
		k = key(k[:0], row, columns)
		_, ok := seen[string(k)]
		if !ok {
			if j.a.Has("S") {
				clear(seen) // equal rows stand together
			} else {
				j.t.Grow(64 + len(k))
			}
			seen[string(k)] = struct{}{}
		}
		return j.deduped(row, ok)
	})
}

// deduped writes a row that is kept, or all rows with the flag.
func (j *job) deduped(row []string, duplicate bool) error {
	switch _, flagged := j.a.Value("f"); {
	case flagged:
		return j.out.row(append(slices.Clone(row), strconv.FormatBool(duplicate)))
	case duplicate:
		return nil
	}
	return j.out.row(row)
}

// unique tells whether no rows are equal.
func (j *job) unique(x *table, columns []int) error {
	seen := map[string]struct{}{}
	var k []byte
	if err := x.each(func(row []string) error {
		k = key(k[:0], row, columns)
		if _, ok := seen[string(k)]; ok {
			return fmt.Errorf("selection is NOT unique: row %d was there before", x.rows-1)
		}
		j.t.Grow(64 + len(k))
		seen[string(k)] = struct{}{}
		return nil
	}); err != nil {
		return err
	}
	return j.out.text("selection is unique!\n")
}

// dedupHeld keeps the last of equal rows, or all that have an equal.
func (j *job) dedupHeld(x *table, columns []int) error {
	rows, err := x.all()
	if err != nil {
		return err
	}
	seen := map[string]int{}
	var all []identity
	ids := make([]int, len(rows))
	var k []byte
	was := ""
	for i, r := range rows {
		k = key(k[:0], r, columns)
		if j.a.Has("S") && string(k) != was {
			clear(seen)
			was = string(k)
		}
		id, ok := seen[string(k)]
		if !ok {
			id = len(all)
			j.t.Grow(128 + len(k))
			seen[string(k)] = id
			all = append(all, identity{first: i})
		}
		ids[i] = id
		all[id].last = i
		all[id].n++
	}
	_, flagged := j.a.Value("f")
	written := make([]bool, len(rows))
	if flagged && j.a.Has("l") && !j.a.Has("S") { // what a later row replaces comes first
		before := make([]int, len(all))
		for i := range rows {
			if p := before[ids[i]]; p > 0 {
				written[p-1] = true
				if err := j.deduped(rows[p-1], true); err != nil {
					return err
				}
			}
			before[ids[i]] = i + 1
		}
	}
	for i, r := range rows {
		if written[i] {
			continue
		}
		duplicate := all[ids[i]].last != i
		if j.a.Has("k") {
			duplicate = (all[ids[i]].n < 2) != flagged
		}
		if err := j.deduped(r, duplicate); err != nil {
			return err
		}
	}
	return nil
}

// A ranked row has a score, a number or a text.
type ranked struct {
	score value
	at    int
	row   []string
}

// A ranking keeps the rows with the best scores.
type ranking struct {
	list  []ranked
	limit int
	ties  bool
	less  func(a, b value) int
}

// add takes a row. It sorts when there are twice as many as are wanted.
func (r *ranking) add(j *job, x ranked) {
	j.t.Grow(cost(x.row))
	r.list = append(r.list, x)
	if len(r.list) > 2*r.limit+64 && !r.ties {
		r.cut(j)
	}
}

func (r *ranking) cut(j *job) {
	slices.SortFunc(r.list, func(a, b ranked) int {
		j.t.Step(1)
		return cmp.Or(r.less(b.score, a.score), cmp.Compare(a.at, b.at))
	})
	n := min(r.limit, len(r.list))
	for r.ties && n < len(r.list) && r.less(r.list[n].score, r.list[n-1].score) == 0 {
		n++
	}
	for _, x := range r.list[n:] {
		j.t.Shrink(cost(x.row))
	}
	r.list = r.list[:n]
}

func (j *job) top() error {
	s, err := j.operand("columns")
	if err != nil {
		return err
	}
	n, err := j.number("l", 10)
	if err != nil {
		return err
	}
	if n == 0 {
		return &usageError{"invalid number '0'"}
	}
	x, err := j.input()
	if err != nil {
		return err
	}
	c, err := j.single(s, x.head)
	if err != nil {
		return err
	}
	var by []int
	if s, ok := j.a.Value("g"); ok {
		if by, err = j.selection(s, x.head); err != nil {
			return err
		}
	}
	rank, numbered := j.a.Value("r")
	head := slices.Clone(x.head)
	if numbered {
		head = append([]string{rank}, head...)
	}
	if err := j.head1(head); err != nil {
		return err
	}
	text, sign := j.a.Has("L"), 1
	if j.a.Has("R") {
		sign = -1
	}
	less := func(a, b value) int {
		if text {
			return sign * strings.Compare(serialized(a), serialized(b))
		}
		c, _ := compareNumbers(a, b)
		return sign * c
	}
	var all groups[ranking]
	var k []byte
	if err := x.each(func(row []string) error {
		score, ok := value(row[c]), row[c] != ""
		if !text {
			score, ok = parsed(row[c])
		}
		if !ok {
			return nil
		}
		k = key(k[:0], row, by)
		g := all.get(k, func() ranking { return ranking{limit: n, ties: j.a.Has("T"), less: less} })
		g.add(j, ranked{score, x.rows, row})
		return nil
	}); err != nil {
		return err
	}
	for _, g := range all.list {
		g.cut(j)
		for i, r := range g.list {
			if numbered {
				r.row = append([]string{strconv.Itoa(i + 1)}, r.row...)
			}
			if err := j.out.row(r.row); err != nil {
				return err
			}
		}
	}
	return nil
}
