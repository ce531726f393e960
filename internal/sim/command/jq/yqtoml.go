package jq

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A tomlReader reads TOML. Tables under construction are tables; they become
// values at the end.
type tomlReader struct {
	w     *weaver
	s     string
	at    int
	line  int
	depth int
}

// A tomlTable is a table that may still grow.
type tomlTable struct {
	keys    []string
	members map[string]any // a value, a *tomlTable or a []*tomlTable
	closed  bool           // written in braces
	headed  bool           // it had a head of its own
}

func newTOMLTable() *tomlTable { return &tomlTable{members: map[string]any{}} }

func (t *tomlTable) put(k string, v any) {
	t.keys = append(t.keys, k)
	t.members[k] = v
}

func (w *weaver) readTOML(b []byte) (value, error) {
	r := &tomlReader{w: w, s: strings.ReplaceAll(clean(b), "\r\n", "\n"), line: 1}
	root := newTOMLTable()
	if err := r.document(root); err != nil {
		return nil, fmt.Errorf("toml: line %d: %w", r.line, err)
	}
	return w.finished(root), nil
}

// finished makes the value of a table.
func (w *weaver) finished(t *tomlTable) value {
	c := &table{}
	for _, k := range t.keys {
		w.m.t.Step(1)
		switch x := t.members[k].(type) {
		case *tomlTable:
			c.put(k, w.finished(x))
		case []*tomlTable:
			list := make([]value, len(x))
			for i, y := range x {
				list[i] = w.finished(y)
			}
			c.put(k, w.m.list(list))
		default:
			c.put(k, x)
		}
	}
	return w.m.made(c)
}

func (r *tomlReader) blanks(lines bool) {
	for r.at < len(r.s) {
		switch r.s[r.at] {
		case ' ', '\t':
			r.at++
		case '\n':
			if !lines {
				return
			}
			r.line++
			r.at++
		case '#':
			if i := strings.IndexByte(r.s[r.at:], '\n'); i >= 0 {
				r.at += i
			} else {
				r.at = len(r.s)
			}
		default:
			return
		}
	}
}

func (r *tomlReader) peek() byte {
	if r.at < len(r.s) {
		return r.s[r.at]
	}
	return 0
}

func (r *tomlReader) document(root *tomlTable) error {
	current := root
	for {
		r.blanks(true)
		if r.at >= len(r.s) {
			return nil
		}
		r.w.m.t.Step(4)
		r.w.m.alloc(128)
		if r.s[r.at] == '[' {
			t, err := r.head(root)
			if err != nil {
				return err
			}
			current = t
		} else if err := r.pair(current); err != nil {
			return err
		}
		r.blanks(false)
		if r.at < len(r.s) && r.s[r.at] != '\n' {
			return errors.New("a new line is expected")
		}
	}
}

// head reads [a.b] or [[a.b]], and gives the table that it begins.
func (r *tomlReader) head(root *tomlTable) (*tomlTable, error) {
	r.at++
	list := r.peek() == '['
	if list {
		r.at++
	}
	keys, err := r.keys()
	if err != nil {
		return nil, err
	}
	closing := "]"
	if list {
		closing = "]]"
	}
	if !strings.HasPrefix(r.s[r.at:], closing) {
		return nil, fmt.Errorf("%s is expected", closing)
	}
	r.at += len(closing)
	t, err := r.descend(root, keys[:len(keys)-1])
	if err != nil {
		return nil, err
	}
	last := keys[len(keys)-1]
	switch x := t.members[last].(type) {
	case nil:
		if _, there := t.members[last]; there {
			return nil, fmt.Errorf("%q is there already", last)
		}
		n := newTOMLTable()
		n.headed = true
		if list {
			t.put(last, []*tomlTable{n})
		} else {
			t.put(last, n)
		}
		return n, nil
	case *tomlTable:
		if list || x.closed || x.headed {
			return nil, fmt.Errorf("table %q is there already", last)
		}
		x.headed = true
		return x, nil
	case []*tomlTable:
		if list {
			n := newTOMLTable()
			t.members[last] = append(x, n)
			return n, nil
		}
	}
	return nil, fmt.Errorf("%q is there already", last)
}

// descend goes down into tables, and makes those that are missing.
func (r *tomlReader) descend(t *tomlTable, keys []string) (*tomlTable, error) {
	if len(keys) > int(r.w.m.t.K.Limits.Nesting) {
		return nil, errors.New("nested too deeply")
	}
	for _, k := range keys {
		switch x := t.members[k].(type) {
		case *tomlTable:
			if x.closed {
				return nil, fmt.Errorf("table %q is written in braces: it cannot grow", k)
			}
			t = x
		case []*tomlTable:
			t = x[len(x)-1]
		default:
			if _, there := t.members[k]; there {
				return nil, fmt.Errorf("%q is no table", k)
			}
			n := newTOMLTable()
			t.put(k, n)
			t = n
		}
	}
	return t, nil
}

// keys reads a key of parts with dots between them.
func (r *tomlReader) keys() ([]string, error) {
	var list []string
	for {
		r.blanks(false)
		var k string
		switch r.peek() {
		case '"', '\'':
			v, err := r.str()
			if err != nil {
				return nil, err
			}
			k = v
		default:
			from := r.at
			for r.at < len(r.s) && (isLetter(r.s[r.at]) || isDigit(r.s[r.at]) || r.s[r.at] == '-') {
				r.at++
			}
			if k = r.s[from:r.at]; k == "" {
				return nil, errors.New("a key is expected")
			}
		}
		list = append(list, k)
		r.blanks(false)
		if r.peek() != '.' {
			return list, nil
		}
		r.at++
	}
}

func (r *tomlReader) pair(t *tomlTable) error {
	keys, err := r.keys()
	if err != nil {
		return err
	}
	if r.peek() != '=' {
		return errors.New("= is expected")
	}
	r.at++
	r.blanks(false)
	if t, err = r.descend(t, keys[:len(keys)-1]); err != nil {
		return err
	}
	last := keys[len(keys)-1]
	if _, there := t.members[last]; there {
		return fmt.Errorf("key %q is there already", last)
	}
	v, err := r.value()
	if err != nil {
		return err
	}
	t.put(last, v)
	return nil
}

func (r *tomlReader) value() (any, error) {
	if r.depth++; int64(r.depth) > r.w.m.t.K.Limits.Nesting {
		return nil, errors.New("nested too deeply")
	}
	defer func() { r.depth-- }()
	r.w.m.t.Step(2)
	r.w.m.alloc(32)
	switch r.peek() {
	case '"', '\'':
		return r.str()
	case '[':
		return r.list()
	case '{':
		return r.inline()
	}
	from := r.at
	for r.at < len(r.s) && strings.IndexByte(",]}\n#\t ", r.s[r.at]) < 0 {
		r.at++
	}
	word := r.s[from:r.at]
	if len(word) == 10 && word[4] == '-' && r.peek() == ' ' && r.at+1 < len(r.s) && isDigit(r.s[r.at+1]) {
		r.at++ // a date and a time with a blank between them
		for r.at < len(r.s) && strings.IndexByte(",]}\n#\t ", r.s[r.at]) < 0 {
			r.at++
		}
		return r.s[from:r.at], nil
	}
	return tomlWord(word)
}

func tomlWord(s string) (any, error) {
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "":
		return nil, errors.New("a value is expected")
	case "inf", "+inf", "-inf", "nan", "+nan", "-nan":
		v, _ := yamlNumber(strings.Replace(strings.Replace(strings.TrimPrefix(s, "+"), "inf", ".inf", 1), "nan", ".nan", 1))
		return v, nil
	}
	if len(s) >= 8 && (s[2] == ':' || len(s) >= 10 && s[4] == '-' && s[7] == '-') {
		return s, nil // a time; it stays text
	}
	bare := strings.ReplaceAll(s, "_", "")
	if v, ok := yamlNumber(bare); ok && (isDigit(bare[0]) || len(bare) > 1 && (bare[0] == '-' || bare[0] == '+') && isDigit(bare[1])) {
		return v, nil
	}
	return nil, fmt.Errorf("%q is no value", s)
}

func (r *tomlReader) list() (any, error) {
	r.at++
	var list []value
	for {
		r.blanks(true)
		if r.peek() == ']' {
			r.at++
			return r.w.m.list(list), nil
		}
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		if t, ok := v.(*tomlTable); ok {
			v = r.w.finished(t)
		}
		list = append(list, v)
		r.blanks(true)
		switch r.peek() {
		case ',':
			r.at++
		case ']':
		default:
			return nil, errors.New(", or ] is expected")
		}
	}
}

func (r *tomlReader) inline() (any, error) {
	r.at++
	t := newTOMLTable()
	r.blanks(true)
	if r.peek() == '}' {
		r.at++
		t.closed = true
		return t, nil
	}
	for {
		if err := r.pair(t); err != nil {
			return nil, err
		}
		r.blanks(true)
		switch r.peek() {
		case ',':
			r.at++
			r.blanks(true)
		case '}':
			r.at++
			t.closed = true
			return t, nil
		default:
			return nil, errors.New(", or } is expected")
		}
	}
}

// str reads a string of one of the four kinds.
func (r *tomlReader) str() (string, error) {
	quote := r.s[r.at : r.at+1]
	long := strings.HasPrefix(r.s[r.at:], quote+quote+quote)
	end := quote
	r.at++
	if long {
		end = quote + quote + quote
		r.at += 2
		if r.peek() == '\n' {
			r.at++
			r.line++
		}
	}
	var b []byte
	for r.at < len(r.s) {
		if strings.HasPrefix(r.s[r.at:], end) {
			r.at += len(end)
			for long && r.at < len(r.s) && r.s[r.at] == quote[0] { // quotes right before the end are text
				b = append(b, quote[0])
				r.at++
			}
			return string(b), nil
		}
		c := r.s[r.at]
		switch {
		case c == '\n' && !long:
			return "", errors.New("a string does not end")
		case c == '\n':
			r.line++
		case c == '\\' && quote == `"`:
			var err error
			if b, err = r.escape(b); err != nil {
				return "", err
			}
			continue
		}
		b = append(b, c)
		r.at++
	}
	return "", errors.New("a string does not end")
}

func (r *tomlReader) escape(b []byte) ([]byte, error) {
	r.at++
	c := r.peek()
	r.at++
	switch c {
	case 'b':
		return append(b, '\b'), nil
	case 't':
		return append(b, '\t'), nil
	case 'n':
		return append(b, '\n'), nil
	case 'f':
		return append(b, '\f'), nil
	case 'r':
		return append(b, '\r'), nil
	case 'e':
		return append(b, 0x1b), nil
	case '"', '\\':
		return append(b, c), nil
	case 'u', 'U', 'x':
		n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
		if r.at+n > len(r.s) {
			return nil, errors.New("an escape does not end")
		}
		x, err := strconv.ParseUint(r.s[r.at:r.at+n], 16, 32)
		if err != nil || x > utf8.MaxRune {
			return nil, errors.New("an escape names no character")
		}
		r.at += n
		return utf8.AppendRune(b, rune(x)), nil
	case ' ', '\t', '\n':
		r.at--
		for r.at < len(r.s) && strings.IndexByte(" \t\n", r.s[r.at]) >= 0 {
			if r.s[r.at] == '\n' {
				r.line++
			}
			r.at++
		}
		return b, nil
	}
	return nil, fmt.Errorf("\\%c is no escape", c)
}

func tomlKey(k string) string {
	for i := range len(k) {
		if !isLetter(k[i]) && !isDigit(k[i]) && k[i] != '-' {
			return string(appendString(nil, k, false))
		}
	}
	if k == "" {
		return `""`
	}
	return k
}

// tables reports whether a value is written as tables with heads of their own.
func tables(v value) bool {
	switch x := v.(type) {
	case *object:
		return true
	case *array:
		for _, y := range x.own() {
			if _, ok := y.(*object); !ok {
				return false
			}
		}
		return x.len() > 0
	}
	return false
}

// writeTOML writes an object as a table: its own values first, then tables.
func (w *weaver) writeTOML(b []byte, v value, prefix string, depth int) ([]byte, error) {
	o, ok := v.(*object)
	if !ok {
		return nil, fmt.Errorf("only maps can be written as TOML, got %s", tagOf(v))
	}
	if depth > deepestYAML {
		return nil, errors.New("nested too deeply for TOML")
	}
	w.m.t.Bound("string", int64(len(b)), w.m.t.K.Limits.String)
	t := o.own()
	var err error
	for i, k := range t.keys {
		w.m.t.Step(1)
		if tables(t.vals[i]) || t.vals[i] == nil {
			continue
		}
		b = append(append(b, tomlKey(k)...), " = "...)
		if b, err = w.tomlValue(b, t.vals[i], depth); err != nil {
			return nil, err
		}
		b = append(b, '\n')
	}
	for i, k := range t.keys {
		if !tables(t.vals[i]) {
			continue
		}
		full := tomlKey(k)
		if prefix != "" {
			full = prefix + "." + full
		}
		list := []value{t.vals[i]}
		open, closing := "[", "]\n"
		if a, ok := t.vals[i].(*array); ok {
			list, open, closing = a.own(), "[[", "]]\n"
		}
		for _, x := range list {
			if len(b) > 0 {
				b = append(b, '\n')
			}
			b = append(append(append(b, open...), full...), closing...)
			if b, err = w.writeTOML(b, x, full, depth+1); err != nil {
				return nil, err
			}
		}
	}
	return b, nil
}

func (w *weaver) tomlValue(b []byte, v value, depth int) ([]byte, error) {
	if depth > deepestYAML {
		return nil, errors.New("nested too deeply for TOML")
	}
	w.m.t.Step(1)
	var err error
	switch x := v.(type) {
	case nil:
		return append(b, `""`...), nil
	case string:
		return w.m.quote(b, x, false), nil
	case *array:
		b = append(b, '[')
		for i, y := range x.own() {
			if i > 0 {
				b = append(b, ", "...)
			}
			if b, err = w.tomlValue(b, y, depth+1); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case *object:
		b = append(b, "{ "...)
		t := x.own()
		for i, k := range t.keys {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = append(append(b, tomlKey(k)...), " = "...)
			if b, err = w.tomlValue(b, t.vals[i], depth+1); err != nil {
				return nil, err
			}
		}
		return append(b, " }"...), nil
	}
	return append(b, w.m.text(v)...), nil
}
