package xan

import (
	"cmp"
	"errors"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// A function computes a value from arguments, as many as its arity allows.
type function func(j *job, a []value) (value, error)

// functionNames lists the functions of expressions, for the help.
func functionNames() []string {
	return strings.Fields(`abs add all and any argmax argmin basename bytesize ceil col cols compact concat contains count date datetime dirname
		div endswith eq err escape_regex ext filter find find_index first float floor fmt ge get gt header headers idiv if index int join
		keys last le len log log10 log2 lower lpad lt ltrim map match max md5 mean min mod month month_day mul ne neg not or pad parse_json pathjoin pow
		range regex repeat replace round rpad rtrim slice split sqrt startswith strftime sub sum to_fixed trim trunc try typeof unless upper values
		year year_month ymd`)
}

const many = 64 // arguments at most

// builtin gives a function with its arity; high is -1 where there is none.
func builtin(name string) (low, high int, f function) {
	if low, high, f = textFunction(name); high >= 0 {
		return low, high, f
	}
	switch name {
	case "==", "!=", "<", "<=", ">", ">=":
		return 2, 2, func(_ *job, a []value) (value, error) { return compared(name, a[0], a[1]) }
	case "eq", "ne", "lt", "le", "gt", "ge":
		return 2, 2, func(_ *job, a []value) (value, error) { return comparedTexts(name, a[0], a[1]) }
	case "add", "sub", "mul", "div":
		return 2, many, func(_ *job, a []value) (value, error) { return chained(name, a) }
	case "mod", "idiv", "pow":
		return 2, 2, func(_ *job, a []value) (value, error) { return chained(name, a) }
	case "abs", "neg", "sqrt", "log2", "log10":
		return 1, 1, func(_ *job, a []value) (value, error) { return arithmetic(name, a) }
	case "log", "ceil", "floor", "round", "trunc":
		return 1, 2, func(_ *job, a []value) (value, error) { return arithmetic(name, a) }
	case "int":
		return 1, 1, func(_ *job, a []value) (value, error) { n, err := toInt(a[0]); return n, err }
	case "float":
		return 1, 1, func(_ *job, a []value) (value, error) { f, err := toFloat(a[0]); return f, err }
	case "not":
		return 1, 1, func(_ *job, a []value) (value, error) { return !truthy(a[0]), nil }
	case "max", "min":
		return 1, many, func(_ *job, a []value) (value, error) { return best(name == "max", a) }
	case "argmax", "argmin":
		return 1, 2, func(_ *job, a []value) (value, error) { return bestPlace(name == "argmax", a) }
	case "mean", "sum":
		return 1, 1, func(_ *job, a []value) (value, error) { return totalled(name, a[0]) }
	case "first", "last":
		return 1, 1, func(_ *job, a []value) (value, error) { return firstOrLast(name, a[0]) }
	case "get":
		return 2, 3, func(_ *job, a []value) (value, error) { return got(a) }
	case "slice":
		return 2, 3, func(_ *job, a []value) (value, error) { return sliced(a) }
	case "contains":
		return 2, 2, contained
	case "len":
		return 1, 1, func(_ *job, a []value) (value, error) { return length(a[0]) }
	case "compact":
		return 1, 1, func(_ *job, a []value) (value, error) {
			list, ok := a[0].([]value)
			if !ok {
				return nil, castError(a[0], "list")
			}
			return slices.DeleteFunc(slices.Clone(list), func(v value) bool { return !truthy(v) }), nil
		}
	case "range":
		return 1, 3, ranged
	case "keys", "values":
		return 1, 1, func(_ *job, a []value) (value, error) { return members(name, a[0]) }
	case "parse_json":
		return 1, 1, func(j *job, a []value) (value, error) {
			s, err := toText(a[0])
			if err != nil {
				return nil, err
			}
			return j.decode([]byte(s))
		}
	case "typeof":
		return 1, 1, func(_ *job, a []value) (value, error) { return kind(a[0]), nil }
	case "err":
		return 1, 1, func(_ *job, a []value) (value, error) { return nil, errors.New(serialized(a[0])) }
	case "date", "datetime":
		return 1, 1, func(_ *job, a []value) (value, error) {
			m, err := toMoment(a[0])
			m.day = name == "date"
			if m.day {
				m.t = m.t.Truncate(24 * time.Hour)
			}
			return m, err
		}
	case "year", "month", "month_day", "year_month", "ym", "year_month_day", "ymd":
		layouts := map[string]string{"year": "2006", "month": "01", "month_day": "01-02", "year_month": "2006-01", "ym": "2006-01"}
		return 1, 1, func(_ *job, a []value) (value, error) {
			m, err := toMoment(a[0])
			if err != nil {
				return nil, err
			}
			return m.t.Format(cmp.Or(layouts[name], "2006-01-02")), nil
		}
	}
	return 0, -1, nil
}

func (j *job) bounded(s string) string {
	j.t.Bound("string", int64(len(s)), j.t.K.Limits.String)
	j.t.Step(len(s) >> 5)
	return s
}

// match counts the steps of a regular expression.
func (j *job) match(s string, re *regexp.Regexp) {
	j.t.Step(len(s) * (1 + len(re.String())>>5))
}

// holds tells whether an operator's comparison is true of an order.
func holds(o string, c int) bool {
	switch o {
	case "==", "eq":
		return c == 0
	case "!=", "ne":
		return c != 0
	case "<", "lt":
		return c < 0
	case "<=", "le":
		return c <= 0
	case ">", "gt":
		return c > 0
	}
	return c >= 0
}

// compared compares numbers, or dates where one is a date.
func compared(o string, a, b value) (value, error) {
	_, ok1 := a.(moment)
	_, ok2 := b.(moment)
	if ok1 || ok2 {
		x, err := toMoment(a)
		if err != nil {
			return nil, err
		}
		y, err := toMoment(b)
		return holds(o, x.t.Compare(y.t)), err
	}
	x, err := number(a)
	if err != nil {
		return nil, err
	}
	y, err := number(b)
	if err != nil {
		return nil, err
	}
	c, ok := compareNumbers(x, y)
	if !ok {
		return nil, errPanic
	}
	return holds(o, c), nil
}

func comparedTexts(o string, a, b value) (value, error) {
	x, err := toText(a)
	if err != nil {
		return nil, err
	}
	y, err := toText(b)
	return holds(o, strings.Compare(x, y)), err
}

// chained computes from the left.
func chained(name string, a []value) (value, error) {
	out, err := number(a[0])
	for _, v := range a[1:] {
		var n value
		if err == nil {
			n, err = number(v)
		}
		if err != nil {
			return nil, err
		}
		if out, err = operate(name, out, n); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// operate computes with two numbers. Integers stay integers, but for div.
func operate(name string, a, b value) (value, error) {
	x, ok1 := a.(int64)
	y, ok2 := b.(int64)
	if name != "div" && ok1 && ok2 {
		switch name {
		case "add":
			return x + y, nil
		case "sub":
			return x - y, nil
		case "mul":
			return x * y, nil
		case "pow":
			if y >= 0 {
				return power(x, y), nil
			}
			return math.Pow(float64(x), float64(y)), nil
		}
		if y == 0 || x == math.MinInt64 && y == -1 {
			return nil, errPanic
		}
		if name == "mod" {
			return x % y, nil
		}
		return x / y, nil
	}
	f, g := asFloat(a), asFloat(b)
	switch name {
	case "add":
		return f + g, nil
	case "sub":
		return f - g, nil
	case "mul":
		return f * g, nil
	case "pow":
		return math.Pow(f, g), nil
	case "mod":
		return math.Mod(f, g), nil
	case "idiv":
		q := math.Trunc(f / g)
		if math.Mod(f, g) < 0 {
			q -= math.Copysign(1, g)
		}
		return saturated(q), nil
	}
	return f / g, nil
}

// power computes with the overflow of a machine's integers.
func power(x, y int64) int64 {
	out := int64(1)
	for ; y > 0; y >>= 1 {
		if y&1 == 1 {
			out *= x
		}
		x *= x
	}
	return out
}

func arithmetic(name string, a []value) (value, error) {
	n, err := number(a[0])
	if err != nil {
		return nil, err
	}
	var second value
	if len(a) > 1 {
		if second, err = number(a[1]); err != nil {
			return nil, err
		}
	}
	i, isInt := n.(int64)
	f := asFloat(n)
	switch name {
	case "abs":
		if isInt {
			return max(i, -i), nil
		}
		return math.Abs(f), nil
	case "neg":
		if isInt {
			return -i, nil
		}
		return -f, nil
	case "sqrt":
		return math.Sqrt(f), nil
	case "log2":
		return math.Log2(f), nil
	case "log10":
		return math.Log10(f), nil
	case "log":
		switch base := asFloat(second); {
		case second == nil:
			return math.Log(f), nil
		case base == 2:
			return math.Log2(f), nil
		case base == 10:
			return math.Log10(f), nil
		default:
			return math.Log(f) / math.Log(base), nil
		}
	}
	if second == nil {
		if isInt {
			return i, nil
		}
		return saturated(rounded(name, f)), nil
	}
	return operate("mul", saturated(rounded(name, f/asFloat(second))), second)
}

func rounded(name string, f float64) float64 {
	switch name {
	case "ceil":
		return math.Ceil(f)
	case "floor":
		return math.Floor(f)
	case "round":
		return math.Round(f)
	}
	return math.Trunc(f)
}

// best gives the largest or smallest of numbers, or of a list of them.
func best(largest bool, a []value) (value, error) {
	if len(a) == 1 {
		list, ok := a[0].([]value)
		if !ok {
			return nil, castError(a[0], "list")
		}
		a = list
	}
	var out value
	for i, v := range a {
		n, err := number(v)
		if err != nil {
			return nil, err
		}
		if c, ok := compareNumbers(n, out); i == 0 || ok && (largest && c > 0 || !largest && c < 0) {
			out = n
		}
	}
	return out, nil
}

// bestPlace gives the index of the largest or smallest, or its label.
func bestPlace(largest bool, a []value) (value, error) {
	list, ok := a[0].([]value)
	if !ok {
		return nil, castError(a[0], "list")
	}
	at := -1
	var out value
	for i, v := range list {
		n, err := number(v)
		if err != nil {
			return nil, err
		}
		if c, ok := compareNumbers(n, out); at < 0 || ok && (largest && c > 0 || !largest && c < 0) {
			at, out = i, n
		}
	}
	if at < 0 {
		return nil, nil
	}
	if len(a) == 1 {
		return int64(at), nil
	}
	labels, ok := a[1].([]value)
	if !ok {
		return nil, castError(a[1], "list")
	}
	if at < len(labels) {
		return labels[at], nil
	}
	return nil, nil
}

func totalled(name string, v value) (value, error) {
	list, ok := v.([]value)
	if !ok {
		return nil, castError(v, "list")
	}
	var s sum
	var w welford
	for _, x := range list {
		n, err := number(x)
		if err != nil {
			return nil, err
		}
		s.add(n)
		w.add(asFloat(n))
	}
	if name == "sum" {
		return s.get(), nil
	}
	return w.average(), nil
}

// sequence takes a list, or the characters of a text.
func sequence(v value) (list []value, isText bool, err error) {
	s := ""
	switch x := v.(type) {
	case []value:
		return x, false, nil
	case string:
		s = x
	case cell:
		s = string(x)
	default:
		return nil, false, castError(v, "sequence")
	}
	for _, r := range s {
		list = append(list, string(r))
	}
	return list, true, nil
}

func firstOrLast(name string, v value) (value, error) {
	list, _, err := sequence(v)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	if name == "first" {
		return list[0], nil
	}
	return list[len(list)-1], nil
}

// got gives an item of a list, text or map; a list of keys leads inside.
func got(a []value) (value, error) {
	keys, ok := a[1].([]value)
	if !ok {
		keys = a[1:2]
	}
	v := a[0]
	for _, k := range keys {
		found := false
		if o, ok := v.(object); ok {
			s, err := toText(k)
			if err != nil {
				return nil, err
			}
			v, found = o.get(s)
		} else {
			list, isText, err := sequence(v)
			if err != nil {
				return nil, err
			}
			n, err := toInt(k)
			if err != nil {
				return nil, err
			}
			if n < 0 {
				size := len(list)
				if isText {
					size = len(serialized(v)) // in bytes, as the real one does
				}
				n += int64(size)
			}
			if found = n >= 0 && n < int64(len(list)); found {
				v = list[n]
			}
		}
		if !found {
			if len(a) > 2 {
				return a[2], nil
			}
			return nil, nil
		}
	}
	return v, nil
}

// sliced gives a part of a text or list. Without an end, a list's part is the
// one before the index: that is a slip of the real xan, which scripts see.
func sliced(a []value) (value, error) {
	list, isList := a[0].([]value)
	var runes []rune
	n := int64(len(list))
	if !isList {
		s, err := toText(a[0])
		if err != nil {
			return nil, err
		}
		runes = []rune(s)
		n = int64(len(runes))
	}
	low, err := toInt(a[1])
	if err != nil {
		return nil, err
	}
	negative := low < 0
	if negative {
		low = max(0, n+low)
	}
	high := n
	if len(a) > 2 {
		if high, err = toInt(a[2]); err != nil {
			return nil, err
		}
		if high < 0 {
			high = max(0, n+high)
		}
		if high < low && !negative && !isList {
			high = n
		}
	}
	if isList && len(a) == 2 {
		if low >= n {
			return []value{}, nil
		}
		return list[:low], nil
	}
	low = min(low, n)
	high = max(low, min(high, n))
	if isList {
		return list[low:high], nil
	}
	return string(runes[low:high]), nil
}

func contained(j *job, a []value) (value, error) {
	switch x := a[0].(type) {
	case string, cell:
		s := serialized(x)
		if re, ok := a[1].(*regexp.Regexp); ok {
			j.match(s, re)
			return re.MatchString(s), nil
		}
		what, err := toText(a[1])
		j.t.Step((len(s) + len(what)) >> 3)
		return strings.Contains(s, what), err
	case []value:
		what, err := toText(a[1])
		if err != nil {
			return nil, err
		}
		for _, v := range x {
			s, err := toText(v)
			if err != nil {
				return nil, err
			}
			if s == what {
				return true, nil
			}
		}
		return false, nil
	case object:
		what, err := toText(a[1])
		_, ok := x.get(what)
		return ok, err
	}
	return nil, castError(a[0], "sequence")
}

func length(v value) (value, error) {
	switch x := v.(type) {
	case []value:
		return int64(len(x)), nil
	case object:
		return int64(len(x.keys)), nil
	}
	s, err := toText(v)
	return int64(utf8.RuneCountInString(s)), err
}

func ranged(j *job, a []value) (value, error) {
	ends := []int64{0, 0, 1}
	for i, v := range a {
		n, err := toInt(v)
		if err != nil {
			return nil, err
		}
		if len(a) == 1 {
			i = 1
		}
		ends[i] = n
	}
	from, to, step := ends[0], ends[1], ends[2]
	if step == 0 {
		return nil, errors.New("the step is 0")
	}
	size := max(0, math.Ceil((float64(to)-float64(from))/float64(step)))
	j.t.Bound("array", saturated(size), j.t.K.Limits.Array)
	n := int(min(size, 1<<40)) // within what an int has
	j.t.Step(n)
	j.t.Grow(32 * n)
	out := make([]value, n)
	for i := range out {
		out[i] = from + int64(i)*step
	}
	return out, nil
}

func members(name string, v value) (value, error) {
	o, ok := v.(object)
	if !ok {
		return nil, castError(v, "map")
	}
	out := []value{}
	for i, k := range o.keys {
		if name == "keys" {
			out = append(out, k)
		} else {
			out = append(out, o.values[i])
		}
	}
	return out, nil
}
