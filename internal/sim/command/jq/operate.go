package jq

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bytes that messages show of a value, at most.
const (
	shownOperand = 14
	shownResult  = 29
)

// trunc writes an operand as messages have it, cut to a certain length.
func (m *machine) trunc(v value) string { return cut(m.encodeShort(v), shownOperand) }

// excerpt is trunc of a result, of which messages show more.
func (m *machine) excerpt(v value) string { return cut(m.encodeShort(v), shownResult) }

// quoted writes a key as messages have it.
func (m *machine) quoted(s string) string { return "\"" + s + "\"" }

// cut cuts an encoded value for a message; what is left of a character stands
// as U+FFFD.
func cut(b []byte, most int) string {
	if len(b) <= most {
		return string(b)
	}
	return strings.ToValidUTF8(string(b[:most-len("...")]), "\uFFFD") + "..."
}

// encodeShort encodes what a message shows of a value; of a large one, not all
// is encoded.
func (m *machine) encodeShort(v value) []byte {
	switch x := v.(type) {
	case string:
		if len(x) > 200 {
			v = x[:200]
		}
	case *array:
		if l := x.own(); len(l) > 50 {
			v = &array{v: l[:50], depth: x.depth}
		}
	}
	return m.encode(nil, v, &style{}, 0)
}

// describe names a value in a message: its type, and itself.
func (m *machine) describe(v value) string {
	return typeName(v) + " (" + m.trunc(v) + ")"
}

func (m *machine) cannotIndex(v, k value) error {
	if s, ok := k.(string); ok {
		return failf("Cannot index %s with string %s", typeName(v), m.quoted(s))
	}
	return failf("Cannot index %s with %s", typeName(v), typeName(k))
}

// field is .name.
func (m *machine) field(v value, name string) (value, error) {
	switch o := v.(type) {
	case *object:
		x, _ := o.get(name)
		return x, nil
	case nil:
		return nil, nil
	}
	return nil, m.cannotIndex(v, name)
}

func (m *machine) index(v, k value) (value, error) {
	if m.yq != nil {
		var err error
		if k, err = yqKey(v, k); err != nil {
			return nil, err
		}
	}
	switch key := k.(type) {
	case string:
		return m.field(v, key)
	case float64, *literal:
		switch a := v.(type) {
		case nil:
			return nil, nil
		case *array:
			f, _ := number(k)
			i := math.Trunc(f)
			list := a.own()
			if i < 0 {
				i += float64(len(list))
			}
			if i >= 0 && i < float64(len(list)) {
				return list[int(i)], nil
			}
			return nil, nil
		}
	case *object:
		switch v.(type) {
		case nil, *array, string:
			from, ok1 := key.get("start")
			to, ok2 := key.get("end")
			if !ok1 || !ok2 {
				return nil, failf("Start and end indices of an array slice must be numbers")
			}
			return m.slice(v, from, to)
		}
	case *array:
		if a, ok := v.(*array); ok {
			return m.indices(a.own(), key.own()), nil
		}
		if v == nil {
			return nil, nil
		}
	case nil:
		if v == nil {
			return nil, nil
		}
	}
	return nil, m.cannotIndex(v, k)
}

func (m *machine) slice(v, from, to value) (value, error) {
	switch x := v.(type) {
	case nil:
		return nil, nil
	case *array:
		list := x.own()
		a, b, ok := ends(len(list), from, to)
		if !ok {
			return nil, failf("Start and end indices of an array slice must be numbers")
		}
		m.t.Step((b - a) >> 4)
		return m.list(append(make([]value, 0, b-a), list[a:b]...)), nil
	case string:
		n := utf8.RuneCountInString(x)
		a, b, ok := ends(n, from, to)
		if !ok {
			return nil, failf("Start and end indices of an array slice must be numbers")
		}
		m.t.Step(len(x) >> 6)
		i := offset(x, a, n)
		j := i + offset(x[i:], b-a, n-a)
		if (j-i)*4 < len(x) && len(x) > 256 {
			m.alloc(j - i)
			return strings.Clone(x[i:j]), nil
		}
		return x[i:j], nil
	}
	return nil, failf("Cannot index %s with object", typeName(v))
}

// offset tells where the i-th of n characters begins.
func offset(s string, i, n int) int {
	if n == len(s) {
		return i
	}
	at := 0
	for ; i > 0; i-- {
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return at
}

// compared is a comparison of values that do not nest too deeply for jq.
func (m *machine) compared(o string, l, r value) (value, error) {
	if min(depthOf(l), depthOf(r)) > tooDeep {
		if o == "==" || o == "!=" {
			return nil, failf("Equality check too deep")
		}
		return nil, failf("Comparison too deep")
	}
	if m.yq != nil && (o == "==" || o == "!=") {
		return m.yq.alike(l, r) == (o == "=="), nil
	}
	return m.compares(o, l, r), nil
}

// deepList is the error of sorting what nests too deeply.
func deepList(list []value) error {
	deep := 0
	for _, v := range list {
		if depthOf(v) > tooDeep {
			deep++
		}
	}
	if deep > 1 {
		return failf("Comparison too deep")
	}
	return nil
}

func (m *machine) compares(o string, l, r value) bool {
	c := m.compare(l, r)
	if kind(l) == 3 && kind(r) == 3 {
		a, _ := number(l)
		b, _ := number(r)
		if math.IsNaN(a) || math.IsNaN(b) {
			// NaN is less than any number, and equals none.
			switch o {
			case "==":
				return false
			case "!=":
				return true
			}
			c = -1
			if !math.IsNaN(a) {
				c = 1
			}
		}
	}
	switch o {
	case "==":
		return c == 0
	case "!=":
		return c != 0
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

func negate(m *machine, v value) (value, error) {
	switch x := v.(type) {
	case float64:
		return -x, nil
	case *literal:
		if strings.HasPrefix(x.text, "-") {
			return &literal{-x.f, x.text[1:]}, nil
		}
		return &literal{-x.f, "-" + x.text}, nil
	}
	return nil, failf("%s cannot be negated", m.describe(v))
}

// math is + - * / and %.
func (m *machine) math(o byte, l, r value) (value, error) {
	a, aok := number(l)
	b, bok := number(r)
	if aok && bok {
		return m.arithmetic(o, a, b, l, r)
	}
	switch o {
	case '+':
		if m.yq != nil {
			if a, ok := l.(*array); ok {
				return m.yq.append(a, r), nil
			}
		}
		return m.add(l, r)
	case '-':
		x, ok1 := l.(*array)
		y, ok2 := r.(*array)
		if ok1 && ok2 {
			return m.subtract(x, y), nil
		}
		return nil, failf("%s and %s cannot be subtracted", m.operand(l), m.operand(r))
	case '*':
		return m.multiply(l, r)
	case '%':
		return nil, failf("%s and %s cannot be divided (remainder)", m.operand(l), m.operand(r))
	case '/':
		x, ok1 := l.(string)
		y, ok2 := r.(string)
		if ok1 && ok2 {
			return m.split(x, y), nil
		}
	}
	return nil, failf("%s and %s cannot be divided", m.operand(l), m.operand(r))
}

// operand describes an operand in a message.
func (m *machine) operand(v value) string { return typeName(v) + " (" + m.trunc(v) + ")" }

func (m *machine) arithmetic(o byte, a, b float64, l, r value) (value, error) {
	m.alloc(8)
	switch o {
	case '+':
		return a + b, nil
	case '-':
		return a - b, nil
	case '*':
		return a * b, nil
	case '/':
		if b == 0 {
			return nil, failf("%s and %s cannot be divided because the divisor is zero", m.operand(l), m.operand(r))
		}
		return a / b, nil
	}
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.NaN(), nil
	}
	x, y := toInt(a), toInt(b)
	if y < 0 {
		y = -max(y, -math.MaxInt64)
	}
	if y == 0 {
		return nil, failf("%s and %s cannot be divided (remainder) because the divisor is zero", m.operand(l), m.operand(r))
	}
	return float64(x % y), nil
}

// toInt makes an integer of a number, as far as there is one.
func toInt(f float64) int64 {
	switch {
	case math.IsNaN(f):
		return 0
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	}
	return int64(f)
}

// plus is + of any values.
func (m *machine) plus(l, r value) (value, error) { return m.math('+', l, r) }

// add is + of what are no two numbers.
func (m *machine) add(l, r value) (value, error) {
	if l == nil {
		return r, nil
	}
	if r == nil {
		return l, nil
	}
	switch x := l.(type) {
	case string:
		if y, ok := r.(string); ok {
			return m.join2(x, y)
		}
	case *array:
		if y, ok := r.(*array); ok {
			if x.len() == 0 {
				return y, nil
			}
			m.t.Step(y.len() >> 4)
			return m.extend(x, y.own()), nil
		}
	case *object:
		if y, ok := r.(*object); ok {
			if x.len() == 0 {
				return y, nil
			}
			for i := range y.len() {
				m.t.Step(1)
				x = m.set(x, y.own().keys[i], y.own().vals[i])
			}
			return x, nil
		}
	}
	return nil, failf("%s and %s cannot be added", m.operand(l), m.operand(r))
}

func (m *machine) subtract(x, y *array) value {
	var kept []value
	gone := y.own()
	for _, v := range x.own() {
		found := false
		for _, g := range gone {
			if m.compare(v, g) == 0 {
				found = true
				break
			}
		}
		if !found {
			kept = append(kept, v)
		}
	}
	return m.list(kept)
}

func (m *machine) multiply(l, r value) (value, error) {
	s, ok := l.(string)
	f, isNumber := number(r)
	if !ok {
		s, ok = r.(string)
		f, isNumber = number(l)
	}
	if ok && isNumber {
		switch {
		case f < 0 || math.IsNaN(f):
			return nil, nil
		}
		f = math.Floor(f)
		if f*float64(len(s)) >= math.MaxInt32 {
			return nil, failf("Repeat string result too long")
		}
		if total := f * float64(len(s)); total > float64(m.t.K.Limits.String) {
			m.t.Bound("string", int64(min(total, 1<<62)), m.t.K.Limits.String)
		}
		if s == "" {
			return "", nil
		}
		n := int(f) * len(s)
		m.t.Step(n >> 6)
		m.alloc(n)
		return strings.Repeat(s, int(f)), nil
	}
	x, ok1 := l.(*object)
	y, ok2 := r.(*object)
	if ok1 && ok2 {
		if min(x.depth, y.depth) > tooDeep {
			return nil, failf("Object merge too deep")
		}
		return m.merge(x, y), nil
	}
	return nil, failf("%s and %s cannot be multiplied", m.operand(l), m.operand(r))
}

// merge merges objects, and objects within them.
func (m *machine) merge(x, y *object) *object {
	m.push(x, nil)
	defer m.pop()
	if m.yq != nil {
		return m.yq.merge(x, y, "")
	}
	for i := range y.len() {
		m.t.Step(1)
		k, v := y.own().keys[i], y.own().vals[i]
		if old, ok := x.get(k); ok {
			a, ok1 := old.(*object)
			b, ok2 := v.(*object)
			if ok1 && ok2 {
				v = m.merge(a, b)
			}
		}
		x = m.set(x, k, v)
	}
	return x
}

func (m *machine) split(s, sep string) value {
	m.t.Step(len(s) >> 4)
	if s == "" {
		return m.list(nil)
	}
	n := strings.Count(s, sep) // of nothing, one more than there are characters
	m.t.Bound("array", int64(n), m.t.K.Limits.Array)
	const one = 64 // about what a part takes, beside its bytes
	m.alloc(one*(n+1) + len(s))
	parts := make([]string, 0, n+1)
	if sep == "" {
		for _, r := range s {
			parts = append(parts, string(r))
		}
	} else {
		parts = slices.AppendSeq(parts, strings.SplitSeq(s, sep))
	}
	list := make([]value, len(parts))
	for i, p := range parts {
		if len(s) > 4096 {
			p = strings.Clone(p)
		}
		list[i] = p
	}
	return m.list(list)
}

// operate computes the operator of an assignment.
func (m *machine) operate(o string, l, r value) (value, error) {
	if o == "//" {
		if truthy(l) {
			return l, nil
		}
		return r, nil
	}
	return m.operator(o, l, r)
}
