package xan

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

func number(v value) (float64, bool) {
	switch x := v.(type) {
	case float64:
		return x, true
	case string:
		s := strings.TrimSpace(x)
		if s == "" || s[0] > '9' {
			return 0, false
		}
		f, err := strconv.ParseFloat(s, 64)
		return f, err == nil
	case bool:
		if x {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// printed writes a number: whole ones without a point.
func printed(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1e15 {
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func text(v value) string {
	switch x := v.(type) {
	case string:
		return x
	case float64:
		return printed(x)
	case bool:
		return strconv.FormatBool(x)
	case []value:
		parts := make([]string, len(x))
		for i, y := range x {
			parts[i] = text(y)
		}
		return strings.Join(parts, "|")
	case *regexp.Regexp:
		return x.String()
	}
	return ""
}

func shown(v value) string { return strconv.Quote(text(v)) }

func truthy(v value) bool {
	switch x := v.(type) {
	case bool:
		return x
	case float64:
		return x != 0
	case string:
		return x != "" && x != "false"
	case []value:
		return len(x) > 0
	}
	return v != nil
}

// compared compares by number where both are, by bytes otherwise.
func compared(a, b value) int {
	x, ok1 := number(a)
	y, ok2 := number(b)
	if ok1 && ok2 {
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	}
	return strings.Compare(text(a), text(b))
}

// operator joins two expressions.
func (j *job) operator(o string, l, r expression) expression {
	return func(s *scene) (value, error) {
		a, err := l(s)
		if err != nil {
			return nil, err
		}
		switch o {
		case "||", "or":
			if truthy(a) {
				return a, nil
			}
			return r(s)
		case "&&", "and":
			if !truthy(a) {
				return a, nil
			}
			return r(s)
		}
		b, err := r(s)
		if err != nil {
			return nil, err
		}
		return j.operate(o, a, b)
	}
}

func (j *job) operate(o string, a, b value) (value, error) {
	j.t.Step(1)
	switch o {
	case "==":
		return compared(a, b) == 0, nil
	case "!=":
		return compared(a, b) != 0, nil
	case "<":
		return compared(a, b) < 0, nil
	case "<=":
		return compared(a, b) <= 0, nil
	case ">":
		return compared(a, b) > 0, nil
	case ">=":
		return compared(a, b) >= 0, nil
	case "eq":
		return text(a) == text(b), nil
	case "ne":
		return text(a) != text(b), nil
	case "lt":
		return text(a) < text(b), nil
	case "le":
		return text(a) <= text(b), nil
	case "gt":
		return text(a) > text(b), nil
	case "ge":
		return text(a) >= text(b), nil
	case "in":
		return within(a, b), nil
	case "not in":
		return !within(a, b), nil
	case "++":
		return j.bounded(text(a) + text(b)), nil
	}
	if empty(a) || empty(b) {
		return nil, nil // of what is not there nothing is known
	}
	x, ok1 := number(a)
	y, ok2 := number(b)
	if !ok1 || !ok2 {
		if !ok1 {
			b = a
		}
		return nil, fmt.Errorf("%s is no number", shown(b))
	}
	switch o {
	case "+":
		return x + y, nil
	case "-":
		return x - y, nil
	case "*":
		return x * y, nil
	case "**":
		return math.Pow(x, y), nil
	}
	if y == 0 {
		return nil, fmt.Errorf("division by zero")
	}
	switch o {
	case "//":
		return math.Floor(x / y), nil
	case "%":
		return math.Mod(x, y), nil
	}
	return x / y, nil
}

func (j *job) bounded(s string) string {
	j.t.Bound("string", int64(len(s)), j.t.K.Limits.String)
	j.t.Step(len(s) >> 5)
	return s
}

func empty(v value) bool {
	s, ok := v.(string)
	return v == nil || ok && strings.TrimSpace(s) == ""
}

func within(a, b value) bool {
	switch x := b.(type) {
	case []value:
		for _, y := range x {
			if compared(a, y) == 0 {
				return true
			}
		}
		return false
	}
	return strings.Contains(text(b), text(a))
}

// functionNames lists the functions of expressions.
func functionNames() []string {
	return strings.Fields(`abs bytesize ceil coalesce col concat contains count_seq day default endswith
		escape_regex first float floor fmt get if index int isnull join last len log lower lpad ltrim match max
		min month neg not pow replace round rpad rtrim slice slug split sqrt startswith substring title trim trunc
		try typeof upper year`)
}

func isFunction(name string) bool {
	_, high := arity(name)
	return high >= 0
}

// arity gives how many arguments a function takes; high is -1 of what is none.
func arity(name string) (low, high int) {
	switch name {
	case "abs", "ceil", "float", "floor", "int", "len", "lower", "upper", "not", "neg", "sqrt", "trunc", "typeof", "first", "last", "slug", "title", "bytesize", "escape_regex", "isnull", "year", "month", "day":
		return 1, 1
	case "trim", "ltrim", "rtrim", "round", "log":
		return 1, 2
	case "contains", "startswith", "endswith", "split", "join", "pow", "get", "default", "count_seq":
		return 2, 2
	case "match":
		return 2, 3
	case "replace":
		return 3, 3
	case "substring", "slice":
		return 2, 3
	case "lpad", "rpad":
		return 2, 3
	case "concat", "coalesce", "max", "min", "fmt":
		return 1, 64
	}
	return 0, -1
}

// call computes a function.
func call(j *job, name string, a []value) (value, error) {
	j.t.Step(1)
	switch name {
	case "abs", "ceil", "floor", "sqrt", "trunc", "neg", "round", "log", "pow", "int", "float":
		return arithmetic(name, a)
	case "contains", "match", "replace", "startswith", "endswith", "count_seq":
		return searching(j, name, a)
	}
	s := ""
	if len(a) > 0 {
		s = text(a[0])
	}
	switch name {
	case "len":
		if list, ok := a[0].([]value); ok {
			return float64(len(list)), nil
		}
		return float64(utf8.RuneCountInString(s)), nil
	case "bytesize":
		return float64(len(s)), nil
	case "lower":
		return strings.ToLower(s), nil
	case "upper":
		return strings.ToUpper(s), nil
	case "title":
		return title(s), nil
	case "slug":
		return slug(s), nil
	case "not":
		return !truthy(a[0]), nil
	case "isnull":
		return a[0] == nil || s == "", nil
	case "typeof":
		return kind(a[0]), nil
	case "trim", "ltrim", "rtrim":
		cut := " \t\r\n"
		if len(a) > 1 {
			cut = text(a[1])
		}
		if name != "rtrim" {
			s = strings.TrimLeft(s, cut)
		}
		if name != "ltrim" {
			s = strings.TrimRight(s, cut)
		}
		return s, nil
	case "split":
		j.t.Bound("array", int64(len(s)), j.t.K.Limits.Array*64)
		parts := strings.Split(s, text(a[1])) //nolint:gosec // arity has seen to it
		j.t.Step(len(parts))
		out := make([]value, len(parts))
		for i, p := range parts {
			out[i] = p
		}
		return out, nil
	case "join":
		list, ok := a[0].([]value)
		if !ok {
			return s, nil
		}
		parts := make([]string, len(list))
		total := 0
		for i, x := range list {
			parts[i] = text(x)
			total += len(parts[i]) + len(text(a[1])) //nolint:gosec // as above
		}
		j.t.Bound("string", int64(total), j.t.K.Limits.String)
		return strings.Join(parts, text(a[1])), nil //nolint:gosec // as above
	case "first", "last", "get":
		return element(name, a), nil
	case "substring", "slice":
		return part(a), nil
	case "default", "coalesce":
		for _, x := range a {
			if x != nil && text(x) != "" {
				return x, nil
			}
		}
		return a[len(a)-1], nil
	case "concat":
		out := ""
		for _, x := range a {
			out = j.bounded(out + text(x))
		}
		return out, nil
	case "fmt":
		return formatted(j, s, a[1:]), nil
	case "max", "min":
		if list, ok := a[0].([]value); ok && len(a) == 1 {
			a = list
		}
		var best value
		for i, x := range a {
			if c := compared(x, best); i == 0 || name == "max" && c > 0 || name == "min" && c < 0 {
				best = x
			}
		}
		return best, nil
	case "lpad", "rpad":
		return padded(j, name, a)
	case "escape_regex":
		return regexp.QuoteMeta(s), nil
	case "year", "month", "day":
		return datePart(name, s), nil
	}
	return nil, fmt.Errorf("unknown function %q", name)
}

func kind(v value) string {
	switch x := v.(type) {
	case nil:
		return "empty"
	case bool:
		return "bool"
	case float64:
		if x == math.Trunc(x) {
			return "int"
		}
		return "float"
	case []value:
		return "list"
	case string:
		if f, ok := number(x); ok {
			return kind(f)
		}
		if x == "" {
			return "empty"
		}
	}
	return "string"
}

func arithmetic(name string, a []value) (value, error) {
	f, ok := number(a[0])
	if !ok {
		return nil, fmt.Errorf("%s: %s is no number", name, shown(a[0]))
	}
	second := 0.0
	if len(a) > 1 {
		if second, ok = number(a[1]); !ok {
			return nil, fmt.Errorf("%s: %s is no number", name, shown(a[1]))
		}
	}
	switch name {
	case "abs":
		return math.Abs(f), nil
	case "ceil":
		return math.Ceil(f), nil
	case "floor":
		return math.Floor(f), nil
	case "sqrt":
		return math.Sqrt(f), nil
	case "int", "trunc":
		return math.Trunc(f), nil
	case "neg":
		return -f, nil
	case "pow":
		return math.Pow(f, second), nil
	case "log":
		if len(a) > 1 {
			return math.Log(f) / math.Log(second), nil
		}
		return math.Log(f), nil
	case "round":
		scale := math.Pow(10, math.Trunc(max(-15, min(15, second))))
		return math.Round(f*scale) / scale, nil
	}
	return f, nil
}

// searching are the functions that look for something in a text.
func searching(j *job, name string, a []value) (value, error) {
	s := text(a[0])
	re, isPattern := a[1].(*regexp.Regexp)
	what := text(a[1])
	j.t.Step((len(s) + len(what)) >> 3)
	if isPattern {
		j.t.Step(len(s) * (1 + len(what)>>5))
	}
	switch name {
	case "startswith":
		return strings.HasPrefix(s, what), nil
	case "endswith":
		return strings.HasSuffix(s, what), nil
	case "count_seq":
		return float64(strings.Count(s, what)), nil
	case "contains":
		if list, ok := a[0].([]value); ok {
			return within(a[1], list), nil
		}
		if isPattern {
			return re.MatchString(s), nil
		}
		return strings.Contains(s, what), nil
	case "match":
		if !isPattern {
			var err error
			if re, err = compilePattern(what); err != nil {
				return nil, err
			}
		}
		group := 0
		if len(a) > 2 {
			f, _ := number(a[2])
			group = int(max(0, min(f, 100)))
		}
		if found := re.FindStringSubmatch(s); group < len(found) {
			return found[group], nil
		}
		return nil, nil
	}
	to := text(a[2])
	if isPattern {
		found := re.FindAllStringIndex(s, -1)
		j.t.Bound("string", int64(len(s)+len(found)*(len(to)+1)), j.t.K.Limits.String)
		return j.bounded(re.ReplaceAllString(s, to)), nil
	}
	j.t.Bound("string", int64(len(s))+int64(strings.Count(s, what))*int64(len(to)), j.t.K.Limits.String)
	return strings.ReplaceAll(s, what, to), nil
}

func element(name string, a []value) value {
	list, ok := a[0].([]value)
	if !ok {
		for _, r := range text(a[0]) {
			list = append(list, string(r))
		}
	}
	i := 0
	switch name {
	case "last":
		i = len(list) - 1
	case "get":
		f, _ := number(a[1])
		if i = int(max(-1e9, min(1e9, f))); i < 0 {
			i += len(list)
		}
	}
	if i < 0 || i >= len(list) {
		return nil
	}
	return list[i]
}

// part gives a piece of a text or list, from one place to another.
func part(a []value) value {
	runes := []rune(nil)
	list, isList := a[0].([]value)
	n := len(list)
	if !isList {
		runes = []rune(text(a[0]))
		n = len(runes)
	}
	at := func(v value, otherwise int) int {
		f, ok := number(v)
		if !ok {
			return otherwise
		}
		i := int(max(-1e9, min(1e9, f)))
		if i < 0 {
			i += n
		}
		return max(0, min(n, i))
	}
	from, to := at(a[1], 0), n
	if len(a) > 2 {
		to = max(from, at(a[2], n))
	}
	if isList {
		return list[from:to]
	}
	return string(runes[from:to])
}

func formatted(j *job, s string, args []value) string {
	var out strings.Builder
	for {
		i := strings.Index(s, "{}")
		if i < 0 || len(args) == 0 {
			out.WriteString(s)
			return j.bounded(out.String())
		}
		out.WriteString(s[:i])
		out.WriteString(text(args[0]))
		j.t.Bound("string", int64(out.Len()), j.t.K.Limits.String)
		s, args = s[i+2:], args[1:]
	}
}

func padded(j *job, name string, a []value) (value, error) {
	s := text(a[0])
	f, ok := number(a[1])
	if !ok {
		return nil, fmt.Errorf("%s: %s is no number", name, shown(a[1]))
	}
	fill := " "
	if len(a) > 2 && text(a[2]) != "" {
		fill = text(a[2])
	}
	n := int(max(0, min(f, 1<<40))) - utf8.RuneCountInString(s)
	if n <= 0 {
		return s, nil
	}
	j.t.Bound("string", int64(n*len(fill)), j.t.K.Limits.String)
	pad := strings.Repeat(fill, n)
	if name == "lpad" {
		return pad + s, nil
	}
	return s + pad, nil
}

func title(s string) string {
	words := strings.Fields(strings.ToLower(s))
	for i, w := range words {
		r, n := utf8.DecodeRuneInString(w)
		words[i] = strings.ToUpper(string(r)) + w[n:]
	}
	return strings.Join(words, " ")
}

func slug(s string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 0x7f:
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '_'
	}, s), "_")
}

// datePart takes year, month or day of a date that begins as ISO 8601 has it.
func datePart(name, s string) value {
	from, to := 0, 4
	switch name {
	case "month":
		from, to = 5, 7
	case "day":
		from, to = 8, 10
	}
	if len(s) < to || len(s) > 4 && s[4] != '-' {
		return nil
	}
	f, ok := number(s[from:to])
	if !ok {
		return nil
	}
	return f
}

// asJSON gives a cell as the JSON of what it looks like.
func asJSON(s string) []byte {
	if f, ok := number(s); ok && s == strings.TrimSpace(s) && !(len(s) > 1 && s[0] == '0' && s[1] != '.') && s[0] != '+' && s[0] != '.' && !math.IsInf(f, 0) && !math.IsNaN(f) && !strings.ContainsAny(s, "xX_") && s[len(s)-1] != '.' {
		return []byte(s)
	}
	switch s {
	case "true", "false":
		return []byte(s)
	case "":
		return []byte("null")
	}
	return quote(s)
}

func quote(s string) []byte {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return []byte(`""`)
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}

// quantile gives the value at a share of numbers, which it sorts.
func quantile(list []float64, q float64) float64 {
	sort.Float64s(list)
	if len(list) == 0 {
		return 0
	}
	at := q * float64(len(list)-1)
	low := math.Floor(at)
	a := list[int(low)]
	if low+1 >= float64(len(list)) {
		return a
	}
	return a + (list[int(low)+1]-a)*(at-low)
}
