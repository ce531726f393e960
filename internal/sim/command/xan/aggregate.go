package xan

import (
	"fmt"
	"slices"
	"strings"
)

// aggregateNames lists what can be made of many rows, for the help.
func aggregateNames() []string {
	return strings.Fields(`all(x) any(x) argmax(x,y) argmin(x,y) argtop(k,x,y,sep) avg(x) cardinality(x) correlation(x,y) count() count(x)
		covariance(x,y) covariance_sample(x,y) distinct_values(x,sep) earliest(x) first(x) last(x) latest(x) lex_first(x) lex_last(x) max(x) mean(x) median(x)
		median_high(x) median_low(x) min(x) mode(x) modes(x,sep) most_common(k,x,sep) most_common_counts(k,x,sep) percentage(x) q1(x) q2(x)
		q3(x) quantile(x,p) ratio(x) rms(x) stddev(x) stddev_sample(x) sum(x) top(k,x,sep) type(x) types(x) values(x,sep) var(x) var_sample(x)`)
}

// aggregateArity gives how many arguments an aggregation takes; high is -1 of
// what is none.
func aggregateArity(name string) (low, high int) {
	switch name {
	case "count":
		return 0, 1
	case "all", "any", "avg", "mean", "cardinality", "earliest", "latest", "first", "last", "lex_first", "lex_last", "max", "min", "median", "median_high", "median_low", "mode", "q1", "q2", "q3", "rms", "stddev", "stddev_pop", "stddev_sample", "sum", "type", "types", "var", "var_pop", "var_sample", "count_days", "count_hours", "count_seconds":
		return 1, 1
	case "argmax", "argmin", "distinct_values", "values", "modes", "percentage", "ratio":
		return 1, 2
	case "correlation", "covariance", "covariance_pop", "covariance_sample", "quantile":
		return 2, 2
	case "most_common", "most_common_counts", "top":
		return 2, 3
	case "argtop":
		return 2, 4
	}
	return 0, -1
}

// An aggregation is one of a list: what it makes, of which expression.
type aggregation struct {
	name   string // of its column
	f      string
	of     *expression // nil counts rows
	second *expression // the label of argmax, argmin and argtop, or the other series
	k      int         // of most_common, top and argtop
	number float64     // of quantile
	digits int         // of ratio and percentage; -1 is as many as there are
	sep    string
}

// aggregations reads 'sum(a) as total, count()'.
func (j *job) aggregations(s string, head []string) ([]aggregation, error) {
	p := j.parser(s)
	list, err := p.list(func() (node, error) {
		p.blanks()
		n, err := p.call()
		if n == nil && err == nil {
			err = p.fail("an aggregation is expected at %q", p.s[p.at:])
		}
		p.end = p.at
		return n, err
	})
	if err != nil {
		return nil, err
	}
	out := make([]aggregation, len(list))
	for i, n := range list {
		call, ok := n.e.(callNode)
		if !ok || n.plural {
			return nil, p.fail("an aggregation has one name")
		}
		if out[i], err = j.aggregation(call, head); err != nil {
			return nil, err
		}
		out[i].name = n.names[0]
	}
	return out, nil
}

func (j *job) aggregation(call callNode, head []string) (aggregation, error) {
	a := aggregation{f: call.name, sep: "|", digits: -1}
	low, high := aggregateArity(a.f)
	if high < 0 {
		return a, fmt.Errorf("unknown aggregation %q", a.f)
	}
	if n := len(call.args); n < low || n > high {
		return a, arityError(a.f, low, high, n)
	}
	args := make([]expression, len(call.args))
	for i, n := range call.args {
		var err error
		if args[i], err = j.compiler(head).compile(n); err != nil {
			return a, err
		}
	}
	switch a.f { // these have the number first
	case "most_common", "most_common_counts", "top", "argtop":
		args[0], args[1] = args[1], args[0]
	}
	if len(args) > 0 {
		a.of = &args[0]
	}
	for i := 1; i < len(args); i++ {
		if err := a.option(i, args[i]); err != nil {
			return a, err
		}
	}
	return a, nil
}

// option takes an argument of an aggregation behind the expression.
func (a *aggregation) option(i int, e expression) error {
	switch {
	case a.f == "argmax" || a.f == "argmin" || strings.HasPrefix(a.f, "co") || a.f == "argtop" && i == 2:
		a.second = &e
		return nil
	case !e.constant:
		return fmt.Errorf("argument %d of %s must be constant", i+1, a.f)
	}
	var err error
	switch {
	case a.f == "quantile":
		a.number, err = toFloat(e.v)
	case a.f == "percentage" || a.f == "ratio":
		a.digits, err = toCount(e.v)
		a.digits = min(a.digits, 16)
	case i == 1 && (strings.HasPrefix(a.f, "most_common") || strings.HasSuffix(a.f, "top")):
		a.k, err = toCount(e.v)
	default:
		a.sep, err = toText(e.v)
	}
	return err
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
	if err := j.out.row(aggregationNames(nil, list)); err != nil {
		return err
	}
	tallies := make([]tally, len(list))
	if err := x.each(j.adding(list, func([]string) ([]tally, error) { return tallies, nil })); err != nil {
		return err
	}
	return j.results(nil, list, tallies)
}

// adding adds rows to the tallies that a row belongs to.
func (j *job) adding(list []aggregation, of func([]string) ([]tally, error)) func([]string) error {
	sc := &scene{index: -1}
	return func(row []string) error {
		sc.row = row
		sc.index++
		tallies, err := of(row)
		if err != nil {
			return err
		}
		for i := range list {
			if err := tallies[i].add(j, &list[i], sc); err != nil {
				return fmt.Errorf("row %d: %w", sc.index, err)
			}
		}
		return nil
	}
}

func aggregationNames(row []string, list []aggregation) []string {
	for _, a := range list {
		row = append(row, a.name)
	}
	return row
}

// results writes a row of what aggregations made, behind some cells.
func (j *job) results(cells []string, list []aggregation, tallies []tally) error {
	row := slices.Clone(cells)
	for i := range list {
		v, err := tallies[i].result(j, &list[i])
		if err != nil {
			return err
		}
		row = append(row, serialized(v))
	}
	return j.out.row(row)
}

// A group is the rows that are equal in some columns.
type group struct {
	cells   []string
	tallies []tally
}

// groups are in the order of the real xan: one that comes back changes places
// with the last.
type groups[T any] struct {
	at   map[string]int
	keys []string
	list []T
}

// get gives the group of a key, which it makes where there is none.
func (g *groups[T]) get(key []byte, create func() T) *T {
	last := len(g.list) - 1
	i, ok := g.at[string(key)]
	switch {
	case !ok:
		if g.at == nil {
			g.at = map[string]int{}
		}
		g.at[string(key)] = last + 1
		g.keys = append(g.keys, string(key))
		g.list = append(g.list, create())
		return &g.list[last+1]
	case i != last:
		g.at[g.keys[i]], g.at[g.keys[last]] = last, i
		g.keys[i], g.keys[last] = g.keys[last], g.keys[i]
		g.list[i], g.list[last] = g.list[last], g.list[i]
	}
	return &g.list[last]
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
	columns, err := j.selection(by, x.head)
	if err != nil {
		return err
	}
	list, err := j.aggregations(s, x.head)
	if err != nil {
		return err
	}
	kept, err := j.kept(columns, x.head)
	if err != nil {
		return err
	}
	list = append(kept, list...)
	if !j.bare {
		if err := j.out.row(aggregationNames(pick(x.head, columns), list)); err != nil {
			return err
		}
	}
	var all groups[group]
	var k []byte
	if err := x.each(j.adding(list, func(row []string) ([]tally, error) {
		k = key(k[:0], row, columns)
		if n := len(all.keys); j.a.Has("S") && n > 0 && all.keys[n-1] != string(k) {
			if err := j.results(all.list[0].cells, list, all.list[0].tallies); err != nil {
				return nil, err
			}
			all = groups[group]{}
		}
		return all.get(k, func() group {
			j.t.Grow(cost(row) + len(k) + 700*len(list))
			return group{pick(row, columns), make([]tally, len(list))}
		}).tallies, nil
	})); err != nil {
		return err
	}
	for _, g := range all.list {
		if err := j.results(g.cells, list, g.tallies); err != nil {
			return err
		}
	}
	return nil
}

// kept makes aggregations of the columns that --keep names.
func (j *job) kept(columns []int, head []string) ([]aggregation, error) {
	s, ok := j.a.Value("keep")
	if !ok {
		return nil, nil
	}
	keep, err := j.selection(s, head)
	if err != nil {
		return nil, err
	}
	var list []aggregation
	for i, c := range keep {
		if !slices.Contains(columns, c) && !slices.Contains(keep[:i], c) {
			e := cellOf(c)
			list = append(list, aggregation{name: head[c], f: "first", of: &e})
		}
	}
	return list, nil
}
