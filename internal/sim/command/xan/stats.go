package xan

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The verbs that describe columns.

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
	var by []int
	if s, ok := j.a.Value("g"); ok {
		if by, err = j.selection(s, x.head); err != nil {
			return err
		}
		columns = slices.DeleteFunc(columns, func(c int) bool { return slices.Contains(by, c) })
	}
	if len(columns) == 0 {
		x.close()
		return nil
	}
	head := append(append([]string{"field"}, pick(x.head, by)...), "value", "count")
	if err := j.out.row(head); err != nil {
		return err
	}
	sep, split := j.a.Value("sep")
	var all groups[group]
	var k []byte
	if err := x.each(func(row []string) error {
		k = key(k[:0], row, by)
		g := all.get(k, func() group {
			j.t.Grow(700*len(columns) + cost(row))
			return group{pick(row, by), make([]tally, len(columns))}
		})
		for i, c := range columns {
			parts := []string{row[c]}
			if split {
				parts = strings.Split(row[c], sep)
			}
			for _, s := range parts {
				if s != "" {
					g.tallies[i].note(j, s)
				} else if !j.a.Has("N") {
					g.tallies[i].note(j, "<empty>")
				}
			}
		}
		return nil
	}); err != nil {
		return err
	}
	for i, c := range columns {
		for _, g := range all.list {
			if err := j.frequencies(append([]string{x.head[c]}, g.cells...), &g.tallies[i], limit); err != nil {
				return err
			}
		}
	}
	return nil
}

// frequencies writes the values of a column that are there most often.
func (j *job) frequencies(prefix []string, y *tally, limit int) error {
	if limit == 0 {
		limit = len(y.order)
	}
	list := y.common(j, limit)
	rest := 0
	for _, s := range y.order {
		rest += y.seen[s]
	}
	for _, s := range list {
		rest -= y.seen[s]
		if err := j.out.row(append(slices.Clone(prefix), s, strconv.Itoa(y.seen[s]))); err != nil {
			return err
		}
	}
	if rest > 0 && !j.a.Has("N") {
		return j.out.row(append(slices.Clone(prefix), "<rest>", strconv.Itoa(rest)))
	}
	return nil
}

// A stat describes a column.
type stat struct {
	tally
	count, empty      int
	shortest, longest int
	numbers           []value
}

// statOptions tell what stats describes.
type statOptions struct{ cardinality, quartiles, nulls bool }

func (y *stat) add(j *job, s string, o statOptions) {
	if y.count+y.empty == 0 || len(s) < y.shortest {
		y.shortest = len(s)
	}
	y.longest = max(y.longest, len(s))
	n := y.types.note(s)
	if s == "" {
		y.empty++
		if o.nulls {
			y.number(j, 0.0, o)
		}
		return
	}
	y.count++
	if o.cardinality {
		y.note(j, s)
	}
	y.lex(s)
	if n != nil && !math.IsNaN(asFloat(n)) {
		y.sum.add(n)
		y.extent(item{n: n})
		y.number(j, n, o)
	}
}

func (y *stat) number(j *job, n value, o statOptions) {
	y.welford.add(asFloat(n))
	if o.quartiles {
		j.t.Grow(16)
		y.numbers = append(y.numbers, n)
	}
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
	var by []int
	if s, ok := j.a.Value("g"); ok {
		if by, err = j.selection(s, x.head); err != nil {
			return err
		}
		columns = slices.DeleteFunc(columns, func(c int) bool { return slices.Contains(by, c) })
	}
	if len(columns) == 0 {
		x.close()
		return nil
	}
	o := statOptions{j.a.Has("A") || j.a.Has("c"), j.a.Has("A") || j.a.Has("q"), j.a.Has("nulls")}
	head := append(pick(x.head, by), "field", "count", "count_empty", "type", "types", "sum", "mean")
	if o.quartiles {
		head = append(head, "q1", "median", "q3", "log_dist")
	}
	head = append(head, "variance", "stddev", "min", "max")
	if o.cardinality {
		head = append(head, "cardinality", "mode", "tied_for_mode")
	}
	if err := j.out.row(append(head, "lex_first", "lex_last", "min_length", "max_length")); err != nil {
		return err
	}
	type described struct {
		cells []string
		list  []stat
	}
	create := func(row []string) func() described {
		return func() described {
			j.t.Grow(900*len(columns) + cost(row))
			return described{pick(row, by), make([]stat, len(columns))}
		}
	}
	var all groups[described]
	var k []byte
	if len(by) == 0 {
		all.get(nil, create(nil))
	}
	if err := x.each(func(row []string) error {
		k = key(k[:0], row, by)
		g := all.get(k, create(row))
		for i, c := range columns {
			g.list[i].add(j, row[c], o)
		}
		return nil
	}); err != nil {
		return err
	}
	for _, g := range all.list {
		for i, c := range columns {
			if err := j.out.row(append(append(slices.Clone(g.cells), x.head[c]), g.list[i].cells(j, o)...)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (y *stat) cells(j *job, o statOptions) []string {
	row := []string{strconv.Itoa(y.count), strconv.Itoa(y.empty), y.types.likely(), y.types.all(), serialized(y.sum.get()), serialized(y.welford.average())}
	if o.quartiles {
		slices.SortFunc(y.numbers, func(a, b value) int {
			c, _ := compareNumbers(a, b)
			return c
		})
		for i := range 3 {
			row = append(row, serialized(quartile(y.numbers, i+1)))
		}
		row = append(row, sparkline(y.numbers))
	}
	row = append(row, serialized(y.welford.variance(0)), serialized(root(y.welford.variance(0))), serialized(y.low.n), serialized(y.high.n))
	if o.cardinality {
		modes := y.common(j, len(y.order))
		modes = slices.DeleteFunc(modes, func(s string) bool { return y.seen[s] < y.seen[modes[0]] })
		row = append(row, strconv.Itoa(len(y.order)))
		if len(modes) > 0 {
			row = append(row, modes[0], strconv.Itoa(len(modes)))
		} else {
			row = append(row, "", "")
		}
	}
	row = append(row, y.lexLow, y.lexHigh)
	if y.count+y.empty == 0 {
		return append(row, "", "")
	}
	return append(row, strconv.Itoa(y.shortest), strconv.Itoa(y.longest))
}

// sparkline draws how sorted numbers are distributed, on a logarithmic scale.
func sparkline(list []value) string {
	if len(list) < 2 {
		return ""
	}
	bins := min(10, len(list)-1)
	low, high := list[0], list[len(list)-1]
	width := (asFloat(high) - asFloat(low)) / float64(bins)
	counts := make([]float64, bins)
	for _, n := range list {
		at := saturated(math.Floor((asFloat(n) - asFloat(low)) / width))
		counts[min(max(at, 0), int64(bins-1))]++
	}
	for i := range counts {
		counts[i] = math.Log1p(counts[i])
	}
	bars := []rune("▁▂▃▄▅▆▇")
	var b strings.Builder
	for _, c := range counts {
		if c == 0 {
			b.WriteByte(' ')
			continue
		}
		b.WriteRune(bars[min(int(c/slices.MaxFunc(counts, cmp.Compare[float64])*float64(len(bars))), len(bars)-1)])
	}
	return b.String()
}
