package xan

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A value is nil, a bool, an int64, a float64, a string, a cell, a []value, an
// object, a moment or a *regexp.Regexp.
type value = any

// A cell is a text that comes from a table.
type cell string

// An object maps keys to values, in the order in which they came.
type object struct {
	keys   []string
	values []value
}

func (o object) get(key string) (value, bool) {
	for i := len(o.keys) - 1; i >= 0; i-- {
		if o.keys[i] == key {
			return o.values[i], true
		}
	}
	return nil, false
}

func (o object) with(key string, v value) object {
	for i, k := range o.keys {
		if k == key {
			o.values[i] = v
			return o
		}
	}
	return object{append(o.keys, key), append(o.values, v)}
}

// A moment is a date, or a date with a time.
type moment struct {
	t   time.Time
	day bool
}

func (m moment) String() string {
	switch {
	case m.day:
		return m.t.Format("2006-01-02")
	default:
		return m.t.Format("2006-01-02T15:04:05.999999999")
	}
}

// errPanic is where the real xan panics: it ends with status 101.
var errPanic = errors.New("arithmetic that the real xan does not survive")

func castError(v value, to string) error {
	return fmt.Errorf("cannot take %s, a %s, as %s", shown(v), kind(v), to)
}

// parseFloat reads a number as Rust does: no hexadecimals and no underscores.
func parseFloat(s string) (float64, bool) {
	if strings.ContainsAny(s, "xXpP_") {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	return f, true
}

// parsed reads an int64 or a float64.
func parsed(s string) (value, bool) {
	if s == "" || s[0] > '9' && s[0]|0x20 != 'i' && s[0]|0x20 != 'n' {
		return nil, false
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, true
	}
	if f, ok := parseFloat(s); ok {
		return f, true
	}
	return nil, false
}

// number takes a value as an int64 or a float64.
func number(v value) (value, error) {
	switch x := v.(type) {
	case int64, float64:
		return x, nil
	case bool:
		if x {
			return int64(1), nil
		}
		return int64(0), nil
	case string:
		if n, ok := parsed(x); ok {
			return n, nil
		}
	case cell:
		if n, ok := parsed(string(x)); ok {
			return n, nil
		}
	}
	return nil, castError(v, "number")
}

// asFloat takes a number as a float64.
func asFloat(n value) float64 {
	switch x := n.(type) {
	case int64:
		return float64(x)
	case float64:
		return x
	}
	return 0
}

func toFloat(v value) (float64, error) {
	n, err := number(v)
	return asFloat(n), err
}

// saturated turns a float64 into an int64 as Rust does.
func saturated(f float64) int64 {
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

// whole gives the integer that a float64 is, or nearly is.
func whole(f float64) (int64, bool) {
	const epsilon = 2 * 2.220446049250313e-16
	dust := f - math.Trunc(f)
	if dust+epsilon >= 1 || dust-epsilon <= 0 {
		return saturated(math.Round(f)), true
	}
	return 0, false
}

func toInt(v value) (int64, error) {
	switch x := v.(type) {
	case int64:
		return x, nil
	case float64:
		if n, ok := whole(x); ok {
			return n, nil
		}
	case bool:
		if x {
			return 1, nil
		}
		return 0, nil
	case string:
		if n, err := strconv.ParseInt(x, 10, 64); err == nil {
			return n, nil
		}
	case cell:
		if n, err := strconv.ParseInt(string(x), 10, 64); err == nil {
			return n, nil
		}
	}
	return 0, castError(v, "integer")
}

// toCount takes a value as an integer that is not negative.
func toCount(v value) (int, error) {
	n, err := toInt(v)
	if err == nil && n < 0 {
		err = castError(v, "unsigned number")
	}
	return int(min(n, 1<<40)), err
}

// printed writes a number as Rust does: never with an exponent.
func printed(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// toText takes a value as a text; lists and objects are none.
func toText(v value) (string, error) {
	switch x := v.(type) {
	case nil:
		return "", nil
	case string:
		return x, nil
	case cell:
		return string(x), nil
	case int64:
		return strconv.FormatInt(x, 10), nil
	case float64:
		return printed(x), nil
	case bool:
		return strconv.FormatBool(x), nil
	case *regexp.Regexp:
		return strings.TrimPrefix(x.String(), "(?i)"), nil
	}
	return "", castError(v, "string")
}

// serialized writes a value as the text of a cell.
func serialized(v value) string {
	switch x := v.(type) {
	case []value:
		parts := make([]string, len(x))
		for i, y := range x {
			switch y.(type) {
			case []value, object:
				return string(marshaled(v))
			}
			parts[i] = serialized(y)
		}
		return strings.Join(parts, "|")
	case object:
		return string(marshaled(v))
	case moment:
		return x.String()
	}
	s, _ := toText(v) // of all else there is a text
	return s
}

// marshaled writes a value as JSON.
func marshaled(v value) []byte {
	switch x := v.(type) {
	case nil:
		return []byte("null")
	case bool, int64:
		s, _ := toText(x)
		return []byte(s)
	case float64:
		return jsonFloat(x)
	case []value:
		b := []byte{'['}
		for i, y := range x {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, marshaled(y)...)
		}
		return append(b, ']')
	case object:
		b := []byte{'{'}
		for i, k := range x.keys {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(append(append(b, quote(k)...), ':'), marshaled(x.values[i])...)
		}
		return append(b, '}')
	}
	return quote(serialized(v))
}

// jsonFloat writes a float as serde does: a whole one keeps its ".0".
func jsonFloat(f float64) []byte {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return []byte("null")
	}
	if a := math.Abs(f); a != 0 && (a < 1e-5 || a >= 1e16) {
		s := strconv.FormatFloat(f, 'e', -1, 64)
		mantissa, exponent, _ := strings.Cut(s, "e")
		sign := ""
		if exponent[0] == '-' {
			sign = "-"
		}
		return []byte(mantissa + "e" + sign + strings.TrimLeft(exponent[1:], "0"))
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return []byte(s)
}

func shown(v value) string { return strconv.Quote(serialized(v)) }

func kind(v value) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case bool:
		return "boolean"
	case int64:
		return "integer"
	case float64:
		return "float"
	case string:
		return "string"
	case cell:
		return "bytes"
	case []value:
		return "list"
	case object:
		return "map"
	case *regexp.Regexp:
		return "regex"
	case moment:
		if v.day {
			return "date"
		}
		return "datetime"
	}
	return "value"
}

// truthy tells whether a value counts as true. Of floats only zero does: that
// is a slip of the real xan, which scripts see.
func truthy(v value) bool {
	switch x := v.(type) {
	case bool:
		return x
	case int64:
		return x != 0
	case float64:
		return x == 0
	case string:
		return x != ""
	case cell:
		return x != ""
	case []value:
		return len(x) > 0
	case object:
		return len(x.keys) > 0
	case *regexp.Regexp:
		return x.String() != ""
	}
	return v != nil
}

// nullish tells whether there is nothing.
func nullish(v value) bool { return v == nil || v == "" || v == cell("") }

// flat lists the values of nested lists.
func flat(v value, out []value) []value {
	list, ok := v.([]value)
	if !ok {
		return append(out, v)
	}
	for _, x := range list {
		out = flat(x, out)
	}
	return out
}

// compareNumbers compares numbers; NaN compares with nothing.
func compareNumbers(a, b value) (int, bool) {
	x, ok1 := a.(int64)
	y, ok2 := b.(int64)
	if ok1 && ok2 {
		switch {
		case x < y:
			return -1, true
		case x > y:
			return 1, true
		}
		return 0, true
	}
	f, g := asFloat(a), asFloat(b)
	switch {
	case f < g:
		return -1, true
	case f > g:
		return 1, true
	case f == g:
		return 0, true
	}
	return 0, false
}

// temporal reads a date or a date with a time, of ISO 8601.
func temporal(s string) (moment, bool) {
	if t, err := time.Parse("2006-01-02", s); err == nil {
		return moment{t, true}, true
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"} {
		if t, err := time.Parse(layout, s); err == nil {
			return moment{t: t}, true
		}
	}
	return moment{}, false
}

func toMoment(v value) (moment, error) {
	switch x := v.(type) {
	case moment:
		return x, nil
	case string:
		if m, ok := temporal(x); ok {
			return m, nil
		}
	case cell:
		if m, ok := temporal(string(x)); ok {
			return m, nil
		}
	}
	return moment{}, castError(v, "date")
}
