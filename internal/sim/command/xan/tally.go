package xan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// What aggregations keep of the rows, and what they make of it.

// A sum adds numbers: integers exactly, floats with what is lost kept aside.
type sum struct {
	n        int64
	f, lost  float64
	isFloat  bool
	overflow bool
}

func (s *sum) add(v value) {
	if n, ok := v.(int64); ok && !s.isFloat {
		t := s.n + n
		s.overflow = s.overflow || (t > s.n) != (n > 0) && n != 0
		s.n = t
		return
	}
	b := asFloat(v)
	a := s.f
	if !s.isFloat {
		a = float64(s.n)
	}
	t := a + b
	if math.Abs(a) > math.Abs(b) {
		s.lost += a - t + b
	} else {
		s.lost += b - t + a
	}
	s.f, s.isFloat = t, true
}

// get gives nothing where the sum is too large.
func (s *sum) get() value {
	if s.overflow {
		return nil
	}
	if !s.isFloat {
		return s.n
	}
	f := s.f + s.lost
	if math.IsInf(f, 0) || math.Abs(f) == math.MaxFloat64 {
		return nil
	}
	return f
}

// A welford computes mean and variance in one pass.
type welford struct {
	n        int
	mean, m2 float64
}

func (w *welford) add(f float64) {
	w.n++
	d := f - w.mean
	w.mean += d / float64(w.n)
	w.m2 += d * (f - w.mean)
}

func (w *welford) average() value {
	if w.n == 0 {
		return nil
	}
	return w.mean
}

// variance gives that of the population, or of a sample.
func (w *welford) variance(sample int) value {
	if w.n <= sample {
		return nil
	}
	return w.m2 / float64(w.n-sample)
}

func root(v value) value {
	if f, ok := v.(float64); ok {
		return math.Sqrt(f)
	}
	return v
}

// A covariance is of two series.
type covariance struct {
	x, y welford
	c    float64
}

func (c *covariance) add(x, y float64) {
	d := x - c.x.mean
	c.x.add(x)
	c.y.add(y)
	c.c += d * (y - c.y.mean)
}

// An item is a number with its row.
type item struct {
	n     value
	index int
	row   []string
}

func typeNames() []string {
	return []string{"string", "float", "int", "url", "datetime", "date", "empty"}
}

// A typeSet notes which types there were.
type typeSet [typeCount]bool

// note takes a cell and gives its number, if it is one.
func (s *typeSet) note(c string) value {
	n, ok := parsed(c)
	m, isMoment := moment{}, false
	if !ok {
		m, isMoment = temporal(c)
	}
	_, isFloat := n.(float64)
	switch {
	case c == "":
		s[typeEmpty] = true
		return nil
	case isFloat:
		s[typeFloat] = true
	case ok:
		s[typeInt] = true
	case isMoment && m.day:
		s[typeDate] = true
	case isMoment:
		s[typeDatetime] = true
	case (strings.HasPrefix(c, "http://") || strings.HasPrefix(c, "https://")) && !strings.Contains(c, " "):
		s[typeURL] = true
	default:
		s[typeString] = true
	}
	if !ok {
		return nil
	}
	return n
}

func (s *typeSet) all() string {
	var out []string
	for i, name := range typeNames() {
		if s[i] {
			out = append(out, name)
		}
	}
	return strings.Join(out, "|")
}

// likely names the one type of a column, or mixed.
func (s *typeSet) likely() string {
	t := *s
	t[typeEmpty] = t[typeEmpty] && !slices.Contains(t[:typeEmpty], true)
	t[typeInt] = t[typeInt] && !t[typeFloat]
	if t[typeString] {
		t[typeURL], t[typeDate] = false, false
	}
	if names := t.all(); !strings.Contains(names, "|") {
		return names
	}
	return "mixed"
}

// A tally is an aggregation at work.
type tally struct {
	rows, yes   int
	sum         sum
	welford     welford
	pair        covariance
	low, high   item
	first, last value
	lexLow      string
	lexHigh     string
	texts       int
	earliest    moment
	latest      moment
	items       []item
	parts       []string
	seen        map[string]int
	order       []string
	types       typeSet
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

// add takes a row; a list counts as so many values.
func (y *tally) add(j *job, a *aggregation, s *scene) error {
	if a.of == nil {
		y.rows++
		y.yes++
		return nil
	}
	v, err := a.of.compute(s)
	if err != nil {
		return err
	}
	if strings.HasPrefix(a.f, "cov") || a.f == "correlation" {
		return y.addPair(a, v, s)
	}
	list, ok := v.([]value)
	if !ok {
		return y.addValue(j, a, v, s)
	}
	for _, x := range list {
		if err := y.addValue(j, a, x, s); err != nil {
			return err
		}
	}
	return nil
}

func (c *covariance) result(f string) value {
	n := c.x.n
	switch {
	case n < 1 || f == "covariance_sample" && n < 2:
		return nil
	case f == "covariance_sample":
		return c.c / float64(n-1)
	case f != "correlation":
		return c.c / float64(n)
	case c.x == c.y && c.x.m2 == c.c:
		return 1.0
	}
	x, y := math.Sqrt(c.x.m2/float64(n)), math.Sqrt(c.y.m2/float64(n))
	return c.c / float64(n) / (x * y)
}

// The types of values, in the order in which they are named.
const (
	typeString = iota
	typeFloat
	typeInt
	typeURL
	typeDatetime
	typeDate
	typeEmpty
	typeCount
)

// lex notes a text for the first and last in the order of bytes.
func (y *tally) lex(s string) {
	if y.texts == 0 {
		y.lexLow, y.lexHigh = s, s
	}
	y.texts++
	y.lexLow, y.lexHigh = min(y.lexLow, s), max(y.lexHigh, s)
}

// extent notes a number for minimum and maximum.
func (y *tally) extent(x item) {
	if c, ok := compareNumbers(x.n, y.low.n); y.low.n == nil || ok && c < 0 {
		y.low = x
	}
	if c, ok := compareNumbers(x.n, y.high.n); y.high.n == nil || ok && c > 0 {
		y.high = x
	}
}

func (y *tally) addPair(a *aggregation, v value, s *scene) error {
	w, err := a.second.compute(s)
	if err != nil || nullish(v) && nullish(w) {
		return err
	}
	if nullish(v) || nullish(w) {
		return fmt.Errorf("%s: a row has a value in one series only", a.f)
	}
	f, err := toFloat(v)
	if err != nil {
		return err
	}
	g, err := toFloat(w)
	y.pair.add(f, g)
	return err
}

func (y *tally) addValue(j *job, a *aggregation, v value, s *scene) error {
	j.t.Step(1)
	y.rows++
	if truthy(v) {
		y.yes++
	}
	switch a.f {
	case "all", "any", "count", "ratio", "percentage":
		return nil
	case "type", "types":
		y.types.note(serialized(v))
		return nil
	}
	if nullish(v) {
		return nil
	}
	switch a.f {
	case "first", "last":
		if y.first == nil {
			y.first = v
		}
		y.last = v
		return nil
	case "earliest", "latest", "count_days", "count_hours", "count_seconds":
		m, err := toMoment(v)
		if y.texts == 0 || m.t.Before(y.earliest.t) {
			y.earliest = m
		}
		if y.texts == 0 || m.t.After(y.latest.t) {
			y.latest = m
		}
		y.texts++
		return err
	case "lex_first", "lex_last", "mode", "modes", "cardinality", "distinct_values", "most_common", "most_common_counts", "values":
		return y.addText(j, a, v)
	}
	n, err := number(v)
	if err != nil {
		return err
	}
	y.addNumber(j, a, n, s)
	return nil
}

func (y *tally) addText(j *job, a *aggregation, v value) error {
	text, err := toText(v)
	switch {
	case err != nil:
		return err
	case a.f == "values":
		j.t.Grow(16 + len(text))
		y.parts = append(y.parts, text)
	case strings.HasPrefix(a.f, "lex_"):
		y.lex(text)
	default:
		y.note(j, text)
	}
	return nil
}

func (y *tally) addNumber(j *job, a *aggregation, n value, s *scene) {
	x := item{n: n, index: s.index}
	switch a.f {
	case "sum":
		y.sum.add(n)
	case "mean", "avg", "var", "var_pop", "var_sample", "stddev", "stddev_pop", "stddev_sample":
		y.welford.add(asFloat(n))
	case "rms":
		y.welford.add(asFloat(n) * asFloat(n))
	case "min", "max":
		y.extent(x)
	case "argmin", "argmax":
		x.row = s.row
		y.extent(x)
	default: // the middle, and top
		if a.second != nil {
			x.row = s.row
		}
		j.t.Grow(48 + cost(x.row))
		y.items = append(y.items, x)
		if a.k > 0 && len(y.items) > 2*a.k+64 {
			y.cut(j, a.k)
		}
	}
}

// cut keeps the largest numbers; of equal ones the earlier rows.
func (y *tally) cut(j *job, k int) {
	j.t.Step(8 * len(y.items))
	slices.SortStableFunc(y.items, func(a, b item) int {
		c, _ := compareNumbers(b.n, a.n)
		return cmp.Or(c, cmp.Compare(a.index, b.index))
	})
	for _, x := range y.items[min(k, len(y.items)):] {
		j.t.Shrink(48 + cost(x.row))
	}
	y.items = y.items[:min(k, len(y.items))]
}

// mode gives the value that is there most often; of several the last.
func (y *tally) mode() value {
	var best value
	name, n := "", 0
	for _, s := range y.order {
		if c := y.seen[s]; c > n || c == n && s > name {
			best, name, n = s, s, c
		}
	}
	return best
}

// common gives the k values that are there most often; of several the first.
func (y *tally) common(j *job, k int) []string {
	list := slices.Clone(y.order)
	slices.SortFunc(list, func(a, b string) int {
		j.t.Step(1)
		return cmp.Or(cmp.Compare(y.seen[b], y.seen[a]), cmp.Compare(a, b))
	})
	return list[:min(k, len(list))]
}

// sorted gives the numbers in their order.
func (y *tally) sorted(j *job) []value {
	j.t.Step(8 * len(y.items))
	list := make([]value, len(y.items))
	for i, x := range y.items {
		list[i] = x.n
	}
	slices.SortFunc(list, func(a, b value) int {
		c, _ := compareNumbers(a, b)
		return c
	})
	return list
}

func halfway(a, b value) value {
	if x, ok := a.(int64); ok {
		if y, ok := b.(int64); ok {
			return float64(x+y) / 2
		}
	}
	return (asFloat(a) + asFloat(b)) / 2
}

// quartile gives one of three, between the numbers that are there.
func quartile(list []value, i int) value {
	if len(list) < 2 {
		return nil
	}
	at, delta := i*(len(list)-1)/4, i*(len(list)-1)%4
	return (asFloat(list[at])*float64(4-delta) + asFloat(list[at+1])*float64(delta)) / 4
}

func quantile(list []value, p float64) (value, error) {
	n := len(list)
	switch {
	case p < 0 || p > 1 || math.IsNaN(p):
		return nil, nil
	case n == 0:
		return nil, errPanic
	case p == 1:
		return list[n-1], nil
	case p == 0:
		return list[0], nil
	}
	at := float64(n) * p
	i := int(at)
	switch {
	case at != math.Floor(at):
		return list[int(math.Ceil(at))-1], nil
	case n%2 == 0:
		return halfway(list[i-1], list[i]), nil
	}
	return list[i], nil
}

func (y *tally) middle(j *job, a *aggregation) (value, error) {
	list := y.sorted(j)
	n := len(list)
	switch a.f {
	case "quantile":
		return quantile(list, a.number)
	case "q1", "q2", "q3":
		return quartile(list, int(a.f[1]-'0')), nil
	}
	switch {
	case n == 0:
		return nil, nil
	case a.f == "median_high" || n%2 == 1:
		return list[n/2], nil
	case a.f == "median_low":
		return list[n/2-1], nil
	}
	return halfway(list[n/2-1], list[n/2]), nil
}

// chosen gives the index or the label of a row.
func chosen(a *aggregation, x item) (value, error) {
	switch {
	case x.n == nil:
		return nil, nil
	case a.second == nil:
		return int64(x.index), nil
	}
	return a.second.compute(&scene{row: x.row, index: x.index})
}

func (y *tally) result(j *job, a *aggregation) (value, error) {
	share := float64(y.yes) / float64(y.rows)
	switch a.f {
	case "count":
		return int64(y.yes), nil
	case "all":
		return y.yes == y.rows, nil
	case "any":
		return y.yes > 0, nil
	case "ratio":
		if a.digits >= 0 {
			return strconv.FormatFloat(share, 'f', a.digits, 64), nil
		}
		return share, nil
	case "percentage":
		if a.digits >= 0 {
			return strconv.FormatFloat(100*share, 'f', a.digits, 64) + "%", nil
		}
		return fmt.Sprintf("%d%%", saturated(100*share)), nil
	case "sum":
		return y.sum.get(), nil
	case "mean", "avg":
		return y.welford.average(), nil
	case "rms":
		return root(y.welford.average()), nil
	case "var", "var_pop":
		return y.welford.variance(0), nil
	case "var_sample":
		return y.welford.variance(1), nil
	case "stddev", "stddev_pop":
		return root(y.welford.variance(0)), nil
	case "stddev_sample":
		return root(y.welford.variance(1)), nil
	case "covariance", "covariance_pop", "covariance_sample", "correlation":
		return y.pair.result(a.f), nil
	case "min":
		return y.low.n, nil
	case "max":
		return y.high.n, nil
	case "argmin":
		return chosen(a, y.low)
	case "argmax":
		return chosen(a, y.high)
	case "top", "argtop":
		return y.top(j, a)
	case "first":
		return y.first, nil
	case "last":
		return y.last, nil
	case "type":
		return y.types.likely(), nil
	case "types":
		return y.types.all(), nil
	case "median", "median_low", "median_high", "quantile", "q1", "q2", "q3":
		return y.middle(j, a)
	case "earliest", "latest", "count_days", "count_hours", "count_seconds":
		return y.moments(a.f), nil
	}
	return y.textResult(j, a), nil
}

func (y *tally) moments(f string) value {
	if y.texts == 0 {
		return nil
	}
	d := y.latest.t.Sub(y.earliest.t)
	switch f {
	case "earliest":
		return y.earliest
	case "latest":
		return y.latest
	case "count_days":
		return int64(d.Hours() / 24)
	case "count_hours":
		return int64(d.Hours())
	}
	return int64(d.Seconds())
}

func (y *tally) top(j *job, a *aggregation) (value, error) {
	y.cut(j, a.k)
	parts := make([]string, len(y.items))
	for i, x := range y.items {
		v := x.n
		if a.f == "argtop" {
			var err error
			if v, err = chosen(a, x); err != nil {
				return nil, err
			}
		}
		parts[i] = serialized(v)
	}
	return j.bounded(kernel.Join(j.t, parts, a.sep)), nil
}

func (y *tally) textResult(j *job, a *aggregation) value {
	switch a.f {
	case "lex_first":
		return y.lexLow
	case "lex_last":
		return y.lexHigh
	case "mode":
		return y.mode()
	case "cardinality":
		return int64(len(y.order))
	case "values":
		return j.bounded(kernel.Join(j.t, y.parts, a.sep))
	case "distinct_values":
		list := slices.Sorted(slices.Values(y.order))
		return j.bounded(kernel.Join(j.t, list, a.sep))
	}
	list := y.common(j, max(a.k, 0))
	if a.f == "modes" {
		list = y.common(j, len(y.order))
		list = slices.DeleteFunc(list, func(s string) bool { return y.seen[s] < y.seen[list[0]] })
	}
	if a.f == "most_common_counts" {
		for i, s := range list {
			list[i] = strconv.Itoa(y.seen[s])
		}
	}
	return j.bounded(kernel.Join(j.t, list, a.sep))
}
