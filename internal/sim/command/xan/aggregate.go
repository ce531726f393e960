package xan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// aggregateNames lists what can be made of many rows.
func aggregateNames() []string {
	return strings.Fields(`count count(x) sum(x) mean(x) avg(x) min(x) max(x) median(x) var(x) stddev(x) q1(x) q3(x) lex_first(x)
		lex_last(x) first(x) last(x) mode(x) cardinality(x) distinct_values(x,sep) values(x,sep) all(x) any(x) ratio(x)`)
}

// An aggregation is one of a list: what it makes, of which expression.
type aggregation struct {
	name string // of its column
	f    string
	of   expression // nil counts rows
	sep  string
}

// aggregations reads 'sum(a) as total, count()'.
func (j *job) aggregations(s string, head []string) ([]aggregation, error) {
	p := &parser{j: j, s: s, head: head}
	var list []aggregation
	for {
		p.blanks()
		from := p.at
		for p.at < len(p.s) && isWord(p.s[p.at]) {
			p.at++
		}
		a := aggregation{f: p.s[from:p.at], sep: "|"}
		if !slices.Contains(aggregators(), a.f) {
			return nil, p.fail("unknown aggregation %q", a.f)
		}
		if p.take("(") == "" {
			return nil, p.fail("( is missing behind %s", a.f)
		}
		args, err := p.arguments(")")
		if err != nil {
			return nil, err
		}
		switch {
		case len(args) == 0 && a.f != "count":
			return nil, p.fail("%s takes an argument", a.f)
		case len(args) > 0:
			a.of = args[0]
		}
		if len(args) > 1 {
			v, err := args[1](&scene{})
			if err != nil {
				return nil, err
			}
			a.sep = text(v)
		}
		a.name = strings.TrimSpace(p.s[from:p.at])
		if p.take("as") != "" {
			if a.name, err = p.name(); err != nil {
				return nil, err
			}
		}
		list = append(list, a)
		if p.take(",") == "" {
			break
		}
	}
	if p.blanks(); p.at < len(p.s) {
		return nil, p.fail("%q is not expected", p.s[p.at:])
	}
	return list, nil
}

func aggregators() []string {
	return []string{"count", "sum", "mean", "avg", "min", "max", "median", "var", "variance", "stddev", "q1", "q3", "lex_first", "lex_last", "first", "last", "mode", "cardinality", "distinct_values", "values", "all", "any", "ratio"}
}

// A tally is an aggregation at work.
type tally struct {
	count       int // rows, or values that are there
	rows        int
	yes         int
	sum, c      float64 // c is what sum has lost so far
	mean, m2    float64
	numbers     int
	min, max    float64
	first, last string
	low, high   string
	all         []float64
	values      []string
	seen        map[string]int
	order       []string
}

func (y *tally) add(j *job, a *aggregation, sc *scene) error {
	y.rows++
	if a.of == nil {
		y.count++
		return nil
	}
	v, err := a.of(sc)
	if err != nil {
		return err
	}
	if truthy(v) {
		y.yes++
	}
	s := text(v)
	if s == "" {
		return nil
	}
	if b, ok := v.(bool); ok && a.f == "count" && !b {
		return nil
	}
	y.count++
	if y.count == 1 {
		y.first, y.low, y.high = s, s, s
	}
	y.last = s
	y.low, y.high = min(y.low, s), max(y.high, s)
	switch a.f {
	case "mode", "cardinality", "distinct_values":
		y.note(j, s)
		return nil
	case "values":
		j.t.Grow(16 + len(s))
		y.values = append(y.values, s)
		return nil
	}
	f, ok := number(v)
	if !ok {
		return nil
	}
	y.number(f)
	if a.f == "median" || a.f == "q1" || a.f == "q3" {
		j.t.Grow(8)
		y.all = append(y.all, f)
	}
	return nil
}

// note counts a value among the different ones.
func (y *tally) note(j *job, s string) {
	if y.seen == nil {
		y.seen = map[string]int{}
	}
	if y.seen[s] == 0 {
		j.t.Grow(80 + len(s))
		s = strings.Clone(s)
		y.order = append(y.order, s)
	}
	y.seen[s]++
}

func (y *tally) number(f float64) {
	y.numbers++
	if y.numbers == 1 {
		y.min, y.max = f, f
	}
	y.min, y.max = min(y.min, f), max(y.max, f)
	t := y.sum + f
	if math.Abs(y.sum) >= math.Abs(f) {
		y.c += y.sum - t + f
	} else {
		y.c += f - t + y.sum
	}
	y.sum = t
	d := f - y.mean
	y.mean += d / float64(y.numbers)
	y.m2 += d * (f - y.mean)
}

func (y *tally) variance() float64 {
	if y.numbers == 0 {
		return 0
	}
	return y.m2 / float64(y.numbers)
}

// mode gives the value that is there most often; of several the least.
func (y *tally) mode() string {
	best, n := "", 0
	for _, s := range y.order {
		if c := y.seen[s]; c > n || c == n && s < best {
			best, n = s, c
		}
	}
	return best
}

func (y *tally) result(j *job, a *aggregation) string {
	numeric := func(f float64) string {
		if y.numbers == 0 {
			return ""
		}
		return printed(f)
	}
	switch a.f {
	case "count":
		return strconv.Itoa(y.count)
	case "sum":
		return printed(y.sum + y.c)
	case "mean", "avg":
		return numeric((y.sum + y.c) / float64(max(1, y.numbers)))
	case "min":
		return numeric(y.min)
	case "max":
		return numeric(y.max)
	case "median":
		return numeric(quantile(y.all, 0.5))
	case "q1":
		return numeric(quantile(y.all, 0.25))
	case "q3":
		return numeric(quantile(y.all, 0.75))
	case "var", "variance":
		return numeric(y.variance())
	case "stddev":
		return numeric(math.Sqrt(y.variance()))
	case "lex_first":
		return y.low
	case "lex_last":
		return y.high
	case "first":
		return y.first
	case "last":
		return y.last
	case "mode":
		return y.mode()
	case "cardinality":
		return strconv.Itoa(len(y.order))
	case "distinct_values":
		sort.Strings(y.order)
		return j.bounded(strings.Join(y.order, a.sep))
	case "values":
		return j.bounded(strings.Join(y.values, a.sep))
	case "all":
		return strconv.FormatBool(y.yes == y.rows)
	case "any":
		return strconv.FormatBool(y.yes > 0)
	}
	return printed(float64(y.yes) / float64(max(1, y.rows)))
}

func (j *job) aggregate() error {
	s, err := j.operand("aggregations")
	if err != nil {
		return err
	}
	x, err := j.input()
	if err != nil {
		return err
	}
	list, err := j.aggregations(s, x.head)
	if err != nil {
		return err
	}
	tallies := make([]tally, len(list))
	if err := x.each(j.adding(list, func([]string) []tally { return tallies })); err != nil {
		return err
	}
	return j.aggregated(list, nil, nil, tallies, true)
}

// adding adds rows to the tallies that a row belongs to.
func (j *job) adding(list []aggregation, of func([]string) []tally) func([]string) error {
	sc := &scene{index: -1}
	return func(row []string) error {
		sc.row = row
		sc.index++
		tallies := of(row)
		for i := range list {
			if err := tallies[i].add(j, &list[i], sc); err != nil {
				return fmt.Errorf("row %d: %w", sc.index, err)
			}
		}
		return nil
	}
}

func (j *job) aggregated(list []aggregation, names, cells []string, tallies []tally, head bool) error {
	row := append([]string(nil), names...)
	if head {
		for _, a := range list {
			row = append(row, a.name)
		}
		if err := j.out.row(row); err != nil || tallies == nil {
			return err
		}
	}
	row = append(row[:0], cells...)
	for i := range list {
		row = append(row, tallies[i].result(j, &list[i]))
	}
	return j.out.row(row)
}

func (j *job) groupby() error {
	by, err := j.operand("columns")
	if err != nil {
		return err
	}
	s, err := j.operand("aggregations")
	if err != nil {
		return err
	}
	x, err := j.input()
	if err != nil {
		return err
	}
	columns, err := selection(by, x.head)
	if err != nil {
		return err
	}
	list, err := j.aggregations(s, x.head)
	if err != nil {
		return err
	}
	type group struct {
		cells   []string
		tallies []tally
	}
	groups := map[string]*group{}
	var order []*group
	var k []byte
	if err := x.each(j.adding(list, func(row []string) []tally {
		k = key(k[:0], row, columns)
		g := groups[string(k)]
		if g == nil {
			g = &group{pick(row, columns), make([]tally, len(list))}
			j.t.Grow(cost(row) + len(k) + 400*len(list))
			groups[string(k)] = g
			order = append(order, g)
		}
		return g.tallies
	})); err != nil {
		return err
	}
	if err := j.aggregated(list, pick(x.head, columns), nil, nil, true); err != nil {
		return err
	}
	for _, g := range order {
		if err := j.aggregated(list, nil, g.cells, g.tallies, false); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) frequency() error {
	limit, err := j.number("l", 10)
	if err != nil {
		return err
	}
	if j.a.Has("A") {
		limit = 0
	}
	x, err := j.input()
	if err != nil {
		return err
	}
	columns, err := j.columns(x.head)
	if err != nil {
		return err
	}
	group := -1
	if s, ok := j.a.Value("g"); ok {
		if group, err = find(s, x.head); err != nil {
			return err
		}
		columns = slices.DeleteFunc(columns, func(c int) bool { return c == group })
	}
	counts := map[string][]tally{}
	var groups []string
	if err := x.each(func(row []string) error {
		g := ""
		if group >= 0 {
			g = row[group]
		}
		if counts[g] == nil {
			counts[g] = make([]tally, len(columns))
			j.t.Grow(300 * len(columns))
			groups = append(groups, g)
		}
		for i, c := range columns {
			counts[g][i].note(j, row[c])
		}
		return nil
	}); err != nil {
		return err
	}
	head := []string{"field", "value", "count"}
	if group >= 0 {
		head = []string{"field", x.head[group], "value", "count"}
	}
	if err := j.out.row(head); err != nil {
		return err
	}
	for i, c := range columns {
		for _, g := range groups {
			prefix := []string{x.head[c]}
			if group >= 0 {
				prefix = append(prefix, g)
			}
			if err := j.frequencies(prefix, &counts[g][i], limit); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *job) frequencies(prefix []string, y *tally, limit int) error {
	order := y.order
	sign := -1
	if j.a.Has("a") {
		sign = 1
	}
	slices.SortStableFunc(order, func(a, b string) int {
		j.t.Step(1)
		if c := sign * cmp.Compare(y.seen[a], y.seen[b]); c != 0 {
			return c
		}
		return cmp.Compare(a, b)
	})
	rest, shown := 0, 0
	for _, s := range order {
		if s == "" && j.a.Has("N") {
			continue
		}
		if limit > 0 && shown >= limit {
			rest += y.seen[s]
			continue
		}
		shown++
		name := s
		if name == "" {
			name = "<empty>"
		}
		if err := j.out.row(append(slices.Clone(prefix), name, strconv.Itoa(y.seen[s]))); err != nil {
			return err
		}
	}
	if rest > 0 && !j.a.Has("N") {
		return j.out.row(append(slices.Clone(prefix), "<rest>", strconv.Itoa(rest)))
	}
	return nil
}

func (j *job) stats() error {
	x, err := j.input()
	if err != nil {
		return err
	}
	columns, err := j.columns(x.head)
	if err != nil {
		return err
	}
	different := j.a.Has("a") || j.a.Has("c")
	quartiles := j.a.Has("a") || j.a.Has("q")
	type stat struct {
		tally
		empty, ints, floats, strings int
		shortest, longest            int
	}
	list := make([]stat, len(columns))
	if err := x.each(func(row []string) error {
		for i, c := range columns {
			y, s := &list[i], row[c]
			if n := len(s); y.rows == 0 || n < y.shortest {
				y.shortest = n
			}
			y.longest = max(y.longest, len(s))
			y.rows++
			if different {
				y.note(j, s)
			}
			if s == "" {
				y.empty++
				continue
			}
			y.count++
			if y.count == 1 {
				y.low, y.high = s, s
			}
			y.low, y.high = min(y.low, s), max(y.high, s)
			f, ok := number(s)
			switch {
			case !ok:
				y.strings++
				continue
			case f == math.Trunc(f) && !strings.ContainsAny(s, ".eE"):
				y.ints++
			default:
				y.floats++
			}
			y.number(f)
			if quartiles {
				j.t.Grow(8)
				y.all = append(y.all, f)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	head := []string{"field", "count", "count_empty", "type", "types", "sum", "mean"}
	if quartiles {
		head = append(head, "q1", "median", "q3")
	}
	head = append(head, "variance", "stddev", "min", "max")
	if different {
		head = append(head, "cardinality", "mode")
	}
	head = append(head, "lex_first", "lex_last", "min_length", "max_length")
	if err := j.out.row(head); err != nil {
		return err
	}
	for i, c := range columns {
		y := &list[i]
		kinds := []string{}
		for _, k := range []struct {
			n    int
			name string
		}{{y.ints, "int"}, {y.floats, "float"}, {y.strings, "string"}, {y.empty, "empty"}} {
			if k.n > 0 {
				kinds = append(kinds, k.name)
			}
		}
		main := "empty"
		switch {
		case y.strings > 0:
			main = "string"
		case y.floats > 0:
			main = "float"
		case y.ints > 0:
			main = "int"
		}
		numeric := func(f float64) string {
			if y.numbers == 0 {
				return ""
			}
			return printed(f)
		}
		row := []string{x.head[c], strconv.Itoa(y.count), strconv.Itoa(y.empty), main, strings.Join(kinds, "|"), numeric(y.sum + y.c), numeric((y.sum + y.c) / float64(max(1, y.numbers)))}
		if quartiles {
			row = append(row, numeric(quantile(y.all, 0.25)), numeric(quantile(y.all, 0.5)), numeric(quantile(y.all, 0.75)))
		}
		row = append(row, numeric(y.variance()), numeric(math.Sqrt(y.variance())), numeric(y.min), numeric(y.max))
		if different {
			row = append(row, strconv.Itoa(len(y.order)), y.mode())
		}
		row = append(row, y.low, y.high, strconv.Itoa(y.shortest), strconv.Itoa(y.longest))
		if err := j.out.row(row); err != nil {
			return err
		}
	}
	return nil
}
