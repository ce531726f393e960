package jq

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// plain finds the functions of values.
func plain(name string, arity int) oneFn {
	switch arity {
	case 0:
		return plain0(name)
	case 1:
		return plain1(name)
	}
	switch signature(name, arity) {
	case "setpath/2":
		return func(m *machine, v value, args []value) (value, error) {
			p, ok := args[0].(*array)
			if !ok {
				return nil, failf("Path must be specified as an array")
			}
			return m.setpath(v, p.own(), args[1])
		}
	case "_match/3":
		return matches
	}
	return nil
}

func plain0(name string) oneFn {
	switch name {
	case "not":
		return func(_ *machine, v value, _ []value) (value, error) { return !truthy(v), nil }
	case "length":
		return length
	case "utf8bytelength":
		return func(m *machine, v value, _ []value) (value, error) {
			s, ok := v.(string)
			if !ok {
				return nil, m.wrongType(v, "only strings have UTF-8 byte length")
			}
			return float64(len(s)), nil
		}
	case "keys", "keys_unsorted":
		return keys(name == "keys")
	case "type":
		return func(_ *machine, v value, _ []value) (value, error) { return typeName(v), nil }
	case "tostring":
		return func(m *machine, v value, _ []value) (value, error) { return m.toString(v), nil }
	case "tojson":
		return func(m *machine, v value, _ []value) (value, error) { return m.text(v), nil }
	case "fromjson":
		return fromJSON
	case "tonumber":
		return toNumber
	case "toboolean":
		return func(m *machine, v value, _ []value) (value, error) {
			switch v {
			case true, "true":
				return true, nil
			case false, "false":
				return false, nil
			}
			return nil, m.wrongType(v, "cannot be parsed as a boolean")
		}
	case "add":
		return add
	case "sort":
		return func(m *machine, v value, _ []value) (value, error) {
			list, err := m.sorted(v, "sorted")
			if err != nil {
				return nil, err
			}
			return m.list(list), nil
		}
	case "unique", "min", "max":
		return extreme(name)
	case "reverse":
		return reverse
	case "explode":
		return explode
	case "implode":
		return implode
	case "ascii_downcase", "ascii_upcase":
		return changeCase(name == "ascii_upcase")
	case "trim", "ltrim", "rtrim":
		return trim(name)
	case "to_entries":
		return entries
	case "halt":
		return func(*machine, value, []value) (value, error) { return nil, &haltError{} }
	case "env":
		return func(m *machine, _ value, _ []value) (value, error) { return m.environment(), nil }
	case "builtins":
		return func(m *machine, _ value, _ []value) (value, error) { return m.builtinNames(), nil }
	case "input_filename":
		return func(m *machine, _ value, _ []value) (value, error) { return m.file(), nil }
	case "input_line_number":
		return func(m *machine, _ value, _ []value) (value, error) { return m.line(), nil }
	case "stderr":
		return func(m *machine, v value, _ []value) (value, error) {
			m.stderr([]byte(m.toString(v)))
			return v, nil
		}
	case "modulemeta":
		return func(m *machine, v value, _ []value) (value, error) { return m.modules.meta(v) }
	case "get_search_list":
		return func(m *machine, _ value, _ []value) (value, error) { return m.modules.searchList(m), nil }
	case "have_decnum":
		return func(*machine, value, []value) (value, error) { return true, nil }
	case "have_literal_numbers":
		return func(*machine, value, []value) (value, error) { return true, nil }
	case "toarray":
		return func(m *machine, v value, _ []value) (value, error) {
			if kind(v) == 5 {
				return v, nil
			}
			return m.list([]value{v}), nil
		}
	case "now":
		return func(m *machine, _ value, _ []value) (value, error) { return m.now(), nil }
	}
	return nil
}

func plain1(name string) oneFn {
	switch name {
	case "has":
		return has
	case "contains":
		return func(m *machine, v value, args []value) (value, error) {
			if min(depthOf(v), depthOf(args[0])) > tooDeep {
				return nil, failf("Containment check too deep")
			}
			return m.contains(v, args[0])
		}
	case "startswith", "endswith":
		return func(m *machine, v value, args []value) (value, error) {
			s, ok1 := v.(string)
			x, ok2 := args[0].(string)
			if !ok1 || !ok2 {
				return nil, failf("%s() requires string inputs", name)
			}
			if name == "startswith" {
				return strings.HasPrefix(s, x), nil
			}
			return strings.HasSuffix(s, x), nil
		}
	case "ltrimstr", "rtrimstr", "trimstr":
		return func(m *machine, v value, args []value) (value, error) {
			s, ok1 := v.(string)
			x, ok2 := args[0].(string)
			if !ok1 || !ok2 {
				return v, nil // an error since jq 1.8
			}
			if name != "rtrimstr" {
				s = strings.TrimPrefix(s, x)
			}
			if name != "ltrimstr" {
				s = strings.TrimSuffix(s, x)
			}
			return s, nil
		}
	case "split":
		return func(m *machine, v value, args []value) (value, error) {
			s, ok1 := v.(string)
			x, ok2 := args[0].(string)
			if !ok1 || !ok2 {
				return nil, failf("split input and separator must be strings")
			}
			return m.split(s, x), nil
		}
	case "join":
		return join
	case "delpaths":
		return func(m *machine, v value, args []value) (value, error) {
			a, ok := args[0].(*array)
			if !ok {
				return nil, failf("Paths must be specified as an array")
			}
			return m.delpaths(v, a.own())
		}
	case "indices":
		return func(m *machine, v value, args []value) (value, error) { return m.indicesOf(v, args[0]) }
	case "flatten":
		return flatten
	case "_strindices":
		return func(m *machine, v value, args []value) (value, error) {
			s, ok := v.(string)
			if !ok {
				return nil, m.wrongType(v, "cannot be searched, as it is not a string")
			}
			x, ok := args[0].(string)
			if !ok {
				return nil, m.wrongType(args[0], "is not a string")
			}
			return m.stringIndices(s, x), nil
		}
	case "bsearch":
		return bsearch
	case "halt_error":
		return func(m *machine, v value, args []value) (value, error) {
			f, ok := number(args[0])
			if !ok {
				return nil, failf("halt_error/1: number required")
			}
			return nil, &haltError{int(toInt(f)) & 0xff, v, true}
		}
	case "format":
		return func(m *machine, v value, args []value) (value, error) {
			s, ok := args[0].(string)
			if !ok {
				return nil, m.wrongType(args[0], "is not a valid format")
			}
			return m.format(s, v)
		}
	}
	return nil
}

func length(m *machine, v value, _ []value) (value, error) {
	switch x := v.(type) {
	case nil:
		return 0.0, nil
	case float64:
		return math.Abs(x), nil
	case *literal:
		return &literal{math.Abs(x.f), strings.TrimPrefix(x.text, "-")}, nil
	case string:
		m.t.Step(len(x) >> 6)
		return float64(utf8.RuneCountInString(x)), nil
	case *array:
		return float64(x.len()), nil
	case *object:
		return float64(x.len()), nil
	}
	return nil, m.wrongType(v, "has no length")
}

func keys(sorted bool) oneFn {
	return func(m *machine, v value, _ []value) (value, error) {
		switch x := v.(type) {
		case *array:
			list := make([]value, x.len())
			for i := range list {
				list[i] = float64(i)
			}
			return m.list(list), nil
		case *object:
			t := x.own()
			m.t.Step(len(t.keys) >> 2)
			list := make([]value, len(t.keys))
			if sorted {
				for i, k := range t.sorted() {
					list[i] = t.keys[k]
				}
			} else {
				for i, k := range t.keys {
					list[i] = k
				}
			}
			return m.list(list), nil
		}
		return nil, m.wrongType(v, "has no keys")
	}
}

func fromJSON(m *machine, v value, _ []value) (value, error) {
	s, ok := v.(string)
	if !ok {
		return nil, m.wrongType(v, "only strings can be parsed")
	}
	d := &decoder{m: m, b: []byte(s), last: true}
	d.space()
	if d.at >= len(d.b) {
		return nil, nil
	}
	x, err := d.value()
	if err == nil {
		d.space()
		if d.at < len(d.b) {
			err = d.bad("Unexpected extra JSON values")
			return nil, failf("%s (while parsing '%s')", err, cutText(s))
		}
	}
	if err != nil {
		line, column := d.position()
		if d.at >= len(d.b) {
			return nil, failf("%s at EOF at line %d, column %d (while parsing '%s')", err, line, column, cutText(s))
		}
		return nil, failf("%s at line %d, column %d (while parsing '%s')", err, line, column, cutText(s))
	}
	return x, nil
}

func cutText(s string) string {
	if len(s) > 4096 {
		return s[:4096]
	}
	return s
}

func toNumber(m *machine, v value, _ []value) (value, error) {
	switch x := v.(type) {
	case float64, *literal:
		return v, nil
	case string:
		if x == "nan" {
			return math.NaN(), nil
		}
		if !wellFormed(x) {
			return nil, m.wrongType(v, "cannot be parsed as a number")
		}
		return parseNumber(normalized(strings.TrimPrefix(x, "+"))), nil
	}
	return nil, m.wrongType(v, "cannot be parsed as a number")
}

func add(m *machine, v value, _ []value) (value, error) {
	if kind(v) < 5 {
		return nil, failf("Cannot iterate over %s", m.describe(v))
	}
	var list []value
	if a, ok := v.(*array); ok {
		list = a.own()
	} else if o, ok := v.(*object); ok {
		list = o.own().vals
	}
	m.t.Step(len(list))
	// Strings are joined at once.
	if len(list) > 2 && kind(list[0]) == 4 {
		n := 0
		for _, x := range list {
			s, ok := x.(string)
			if !ok {
				n = -1
				break
			}
			n += len(s)
		}
		if n >= 0 {
			m.t.Bound("string", int64(n), m.t.K.Limits.String)
			m.alloc(n)
			var b strings.Builder
			b.Grow(n)
			for _, x := range list {
				s, _ := x.(string)
				b.WriteString(s)
			}
			return b.String(), nil
		}
	}
	list = slices.Clone(list)
	var sum value
	at := len(m.holds)
	m.hold(nil)
	defer func() { m.release(at) }()
	for i, x := range list {
		var err error
		if a, ok := x.(*array); ok && i == 0 {
			sum = m.list(slices.Clone(a.own())) // whose storage may be added to
			continue
		}
		if sum, err = m.plus(sum, x); err != nil {
			return nil, err
		}
		m.holds[at] = sum
	}
	return sum, nil
}

func extreme(name string) oneFn {
	return func(m *machine, v value, _ []value) (value, error) {
		if name == "unique" {
			list, err := m.sorted(v, "sorted")
			if err != nil {
				return nil, err
			}
			return m.list(slices.CompactFunc(list, func(a, b value) bool { return m.compare(a, b) == 0 })), nil
		}
		a, ok := v.(*array)
		if !ok {
			return nil, failf("Cannot index %s with number", typeName(v))
		}
		var best value
		for i, x := range a.own() {
			if i == 0 {
				best = x
				continue
			}
			c := m.compare(x, best)
			if name == "min" && c < 0 || name == "max" && c >= 0 {
				best = x
			}
		}
		return best, nil
	}
}

func reverse(m *machine, v value, _ []value) (value, error) {
	switch x := v.(type) {
	case nil:
		return m.list(nil), nil
	case string:
		r := []rune(x)
		slices.Reverse(r)
		m.alloc(5 * len(r))
		return string(r), nil
	case *array:
		list := slices.Clone(x.own())
		slices.Reverse(list)
		return m.list(list), nil
	case *object:
		if x.len() == 0 {
			return m.list(nil), nil
		}
	}
	return nil, failf("Cannot reverse %s", m.describe(v))
}

func explode(m *machine, v value, _ []value) (value, error) {
	s, ok := v.(string)
	if !ok {
		return nil, m.wrongType(v, "cannot be exploded")
	}
	m.alloc(24 * len(s))
	list := make([]value, 0, len(s))
	for _, r := range s {
		list = append(list, float64(r))
	}
	return m.list(list), nil
}

func implode(m *machine, v value, _ []value) (value, error) {
	a, ok := v.(*array)
	if !ok {
		return nil, failf("implode input must be an array")
	}
	b := m.room(nil, a.len())
	for _, x := range a.own() {
		b = m.room(b, utf8.UTFMax)
		f, ok := number(x)
		if !ok || math.IsNaN(f) {
			return nil, m.wrongType(x, "can't be imploded, unicode codepoint needs to be numeric")
		}
		r := rune(utf8.RuneError)
		if f >= 0 && f <= utf8.MaxRune && utf8.ValidRune(rune(f)) {
			r = rune(f)
		}
		b = utf8.AppendRune(b, r)
	}
	m.alloc(len(b))
	return string(b), nil
}

func changeCase(upper bool) oneFn {
	return func(m *machine, v value, _ []value) (value, error) {
		s, ok := v.(string)
		if !ok {
			if upper {
				return nil, failf("ascii_upcase input must be a string")
			}
			return nil, failf("ascii_downcase input must be a string")
		}
		b := []byte(s)
		m.alloc(len(b))
		for i, c := range b {
			if upper && c >= 'a' && c <= 'z' || !upper && c >= 'A' && c <= 'Z' {
				b[i] = c ^ 0x20
			}
		}
		return string(b), nil
	}
}

func trim(name string) oneFn {
	return func(m *machine, v value, _ []value) (value, error) {
		s, ok := v.(string)
		if !ok {
			return nil, failf("trim input must be a string")
		}
		if name != "rtrim" {
			s = strings.TrimLeftFunc(s, unicode.IsSpace)
		}
		if name != "ltrim" {
			s = strings.TrimRightFunc(s, unicode.IsSpace)
		}
		return s, nil
	}
}

func entries(m *machine, v value, _ []value) (value, error) {
	o, ok := v.(*object)
	if a, isArray := v.(*array); isArray {
		list := make([]value, a.len())
		for i, x := range a.own() {
			list[i] = m.made(&table{keys: []string{"key", "value"}, vals: []value{float64(i), x}})
		}
		return m.list(list), nil
	}
	if !ok {
		return nil, m.wrongType(v, "has no keys")
	}
	t := o.own()
	list := make([]value, len(t.keys))
	for i, k := range t.keys {
		e := &table{keys: []string{"key", "value"}, vals: []value{k, t.vals[i]}}
		list[i] = m.made(e)
	}
	return m.list(list), nil
}

func has(m *machine, v value, args []value) (value, error) {
	switch x := v.(type) {
	case *object:
		if k, ok := args[0].(string); ok {
			_, there := x.get(k)
			return there, nil
		}
	case *array:
		if f, ok := number(args[0]); ok {
			return f >= 0 && f < float64(x.len()), nil
		}
	}
	return nil, failf("Cannot check whether %s has a %s key", typeName(v), keyKind(args[0]))
}

func keyKind(v value) string { return typeName(v) }

func (m *machine) contains(a, b value) (value, error) {
	m.t.Step(1)
	switch x := a.(type) {
	case *object:
		y, ok := b.(*object)
		if !ok {
			break
		}
		t := y.own()
		for i, k := range t.keys {
			v, there := x.get(k)
			if !there {
				return false, nil
			}
			ok, err := m.within(v, t.vals[i])
			if err != nil || !ok {
				return false, err
			}
		}
		return true, nil
	case *array:
		y, ok := b.(*array)
		if !ok {
			break
		}
		for _, want := range y.own() {
			found := false
			for _, v := range x.own() {
				if kind(v) == kind(want) || kind(v) <= 2 && kind(want) <= 2 {
					ok, err := m.within(v, want)
					if err != nil {
						return nil, err
					}
					if ok {
						found = true
						break
					}
				}
			}
			if !found {
				return false, nil
			}
		}
		return true, nil
	case string:
		if y, ok := b.(string); ok {
			m.t.Step(len(x) >> 6)
			return strings.Contains(x, y), nil
		}
	}
	if kind(a) == kind(b) || typeName(a) == typeName(b) {
		return m.compare(a, b) == 0, nil
	}
	return nil, failf("%s and %s cannot have their containment checked", m.operand(a), m.operand(b))
}

// within is contains of parts, where different kinds are no error.
func (m *machine) within(a, b value) (bool, error) {
	if typeName(a) != typeName(b) {
		return false, nil
	}
	v, err := m.contains(a, b)
	ok, _ := v.(bool)
	return ok, err
}

func join(m *machine, v value, args []value) (value, error) {
	a, ok := v.(*array)
	if !ok {
		if o, isObject := v.(*object); isObject {
			a = &array{v: o.own().vals}
		} else {
			return nil, failf("Cannot iterate over %s", m.describe(v))
		}
	}
	list := a.own()
	if len(list) == 0 {
		return "", nil
	}
	sep, ok := args[0].(string)
	if !ok && args[0] != nil {
		left := value("")
		if _, bad := m.add(left, args[0]); bad != nil {
			return nil, bad
		}
	}
	var b []byte
	for i, x := range list {
		if i > 0 {
			b = append(m.room(b, len(sep)), sep...)
		}
		switch k := kind(x); k {
		case 0:
		case 1, 2, 3:
			b = m.encode(b, x, &style{}, 0)
		case 4:
			s, _ := x.(string)
			b = append(m.room(b, len(s)), s...)
		default:
			return nil, failf("string (%s) and %s cannot be added", m.trunc(string(b)), m.operand(x))
		}
		m.t.Bound("string", int64(len(b)), m.t.K.Limits.String)
	}
	m.t.Step(len(list) + len(b)>>6)
	m.alloc(len(b))
	return string(b), nil
}

func (m *machine) indicesOf(v, x value) (value, error) {
	if v == nil {
		return nil, nil
	}
	s, ok1 := v.(string)
	part, ok2 := x.(string)
	if ok1 && ok2 {
		return m.stringIndices(s, part), nil
	}
	if a, ok := v.(*array); ok {
		if b, ok := x.(*array); ok {
			return m.indices(a.own(), b.own()), nil
		}
		return m.indices(a.own(), []value{x}), nil
	}
	return m.index(v, x)
}

func flatten(m *machine, v value, args []value) (value, error) {
	depth, ok := number(args[0])
	if !ok {
		return nil, failf("flatten depth must not be negative")
	}
	if depth < 0 {
		return nil, failf("flatten depth must not be negative")
	}
	if kind(v) < 5 {
		return nil, failf("Cannot iterate over %s", m.describe(v))
	}
	var out []value
	var walk func(list []value, depth float64)
	walk = func(list []value, depth float64) {
		for _, x := range list {
			m.t.Step(1)
			if a, ok := x.(*array); ok && depth > 0 {
				walk(a.own(), depth-1)
				continue
			}
			m.alloc(16)
			out = append(out, x)
		}
	}
	if a, ok := v.(*array); ok {
		walk(a.own(), depth)
	} else if o, ok := v.(*object); ok {
		walk(o.own().vals, depth)
	}
	return m.list(out), nil
}

func bsearch(m *machine, v value, args []value) (value, error) {
	a, ok := v.(*array)
	if !ok {
		return nil, m.wrongType(v, "cannot be searched from")
	}
	i, found := slices.BinarySearchFunc(a.own(), args[0], m.compare)
	if found {
		return float64(i), nil
	}
	return float64(-1 - i), nil
}

// environment is $ENV.
func (m *machine) environment() value {
	if m.env == nil {
		t := &table{}
		for _, e := range m.t.Env {
			if name, v, ok := strings.Cut(e, "="); ok {
				t.put(clean([]byte(name)), clean([]byte(v)))
			}
		}
		m.env = m.made(t)
		m.globals["ENV"] = m.env
	}
	return m.env
}

// builtinNames lists the functions that programs may call.
func (m *machine) builtinNames() value {
	var list []value
	for _, name := range names() {
		base, arity, _ := strings.Cut(name, "/")
		n, err := strconv.Atoi(arity)
		if err == nil && !strings.HasPrefix(base, "_") && (m.native(base, n) != nil || m.builtin(base, n) != nil) {
			list = append(list, name)
		}
	}
	return m.list(list)
}
