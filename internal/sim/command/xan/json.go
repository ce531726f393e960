package xan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// JSON, to and from tables.

func quote(s string) []byte {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return []byte(`""`)
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}

// The types of columns in JSON, in the order in which one gives way to another.
const (
	jsonNull = iota
	jsonInteger
	jsonNumber
	jsonText
)

// safeInteger is the largest integer that JavaScript has exactly.
const safeInteger = 1<<53 - 1

func integer(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n <= safeInteger && n >= -safeInteger
}

func jsonType(s string) int {
	if s == "" {
		return jsonNull
	}
	if _, err := strconv.ParseInt(s, 10, 64); err == nil {
		if _, ok := integer(s); ok {
			return jsonInteger
		}
		return jsonText
	}
	if n, ok := parsed(s); ok && n != nil {
		return jsonNumber
	}
	return jsonText
}

// asJSON gives a cell of a column of a type.
func asJSON(s string, kind int) []byte {
	switch kind {
	case jsonInteger:
		if n, ok := integer(s); ok {
			return strconv.AppendInt(nil, n, 10)
		}
	case jsonNumber:
		if n, ok := parsed(s); ok {
			return jsonFloat(asFloat(n))
		}
	}
	return quote(s)
}

// A jsonWriter writes rows as objects.
type jsonWriter struct {
	j     *job
	list  bool // one list, indented
	names [][]byte
	kinds []int
	n     int
}

// toJSON guesses the types of columns from the first rows.
func (j *job) toJSON(x *table, list bool) error {
	size, err := j.orAll("sample-size", 512)
	if err != nil {
		return err
	}
	head := x.head
	if x.bare {
		head = x.held // as the real one does
	}
	w := &jsonWriter{j: j, list: list, kinds: make([]int, len(head))}
	for _, h := range head {
		w.names = append(w.names, quote(h))
	}
	var texts []int
	if s, ok := j.a.Value("strings"); ok {
		if texts, err = j.selection(s, x.head); err != nil {
			return err
		}
	}
	for _, c := range texts {
		w.kinds[c] = jsonText
	}
	var sample [][]string
	flush := func() error {
		for _, r := range sample {
			if err := w.row(r); err != nil {
				return err
			}
		}
		sample = nil
		return nil
	}
	if err := x.each(func(row []string) error {
		if size > 0 && x.rows > size {
			if err := flush(); err != nil {
				return err
			}
			return w.row(row)
		}
		j.t.Grow(cost(row))
		sample = append(sample, row)
		for i, c := range row {
			w.kinds[i] = max(w.kinds[i], jsonType(c))
		}
		return nil
	}); err != nil {
		return err
	}
	if err := flush(); err != nil || !list {
		return err
	}
	if w.n == 0 {
		return j.out.text("[]\n")
	}
	return j.out.text("\n]\n")
}

func (w *jsonWriter) row(row []string) error {
	open, between, end, colon := "{", ",", "}\n", ":"
	if w.list {
		open, between, end, colon = "  {", ",\n    ", "\n  }", ": "
	}
	b := []byte(nil)
	switch {
	case w.list && w.n == 0:
		b = append(b, "[\n"...)
	case w.list:
		b = append(b, ",\n"...)
	}
	w.n++
	b = append(b, open...)
	members := 0
	for i, c := range row {
		if c == "" && w.j.a.Has("omit") {
			continue
		}
		switch {
		case members > 0:
			b = append(b, between...)
		case w.list:
			b = append(b, "\n    "...)
		}
		members++
		b = append(append(b, w.names[i]...), colon...)
		if c == "" && w.j.a.Has("nulls") {
			b = append(b, "null"...)
		} else {
			b = append(b, asJSON(c, w.kinds[i])...)
		}
	}
	if members == 0 {
		end = strings.TrimPrefix(end, "\n  ")
	}
	out := w.j.out
	out.b = append(append(out.b, b...), end...)
	if len(out.b) > 32<<10 {
		return out.flush()
	}
	return nil
}

// decode reads a JSON text; objects keep their order.
func (j *job) decode(b []byte) (value, error) {
	j.t.Step(len(b))
	j.t.Grow(8 * len(b))
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	v, err := j.decodeValue(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more behind the JSON")
	}
	return v, nil
}

func (j *job) decodeValue(d *json.Decoder, depth int) (value, error) {
	if int64(depth) > min(j.t.K.Limits.Nesting, 127) {
		return nil, errors.New("the JSON is nested too deeply")
	}
	tok, err := d.Token()
	if err != nil {
		return nil, fmt.Errorf("%w", err)
	}
	switch t := tok.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(t.String(), 10, 64); err == nil {
			return n, nil
		}
		f, _ := parseFloat(t.String())
		return f, nil
	case json.Delim:
		if t == '[' {
			list := []value{}
			for d.More() {
				v, err := j.decodeValue(d, depth+1)
				if err != nil {
					return nil, err
				}
				list = append(list, v)
			}
			_, err = d.Token()
			return list, err //nolint:wrapcheck // it tells all
		}
		o := object{}
		for d.More() {
			k, err := d.Token()
			if err != nil {
				return nil, fmt.Errorf("%w", err)
			}
			v, err := j.decodeValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			name, _ := k.(string)
			j.t.Step(len(o.keys) >> 4)
			o = o.with(name, v)
		}
		_, err = d.Token()
		return o, err //nolint:wrapcheck // as above
	}
	return tok, nil
}

// A tabulator makes rows of objects. It takes the columns from the first ones.
type tabulator struct {
	j      *job
	size   int // how many it takes them from; 0 is all
	sample []value
	shape  value
	paths  [][]string
	begun  bool
}

// merge adds the members of an object to the shape of others.
func merge(a, b value) value {
	x, ok1 := a.(object)
	y, ok2 := b.(object)
	if !ok1 || !ok2 {
		return b
	}
	x = object{slices.Clone(x.keys), slices.Clone(x.values)}
	for i, k := range y.keys {
		old, _ := x.get(k)
		x = x.with(k, merge(old, y.values[i]))
	}
	return x
}

func (w *tabulator) add(v value) error {
	if w.size == 0 || len(w.sample) < w.size && !w.begun {
		w.shape = merge(w.shape, v)
		w.sample = append(w.sample, v)
		w.j.t.Step(4)
		return nil
	}
	if err := w.flush(); err != nil {
		return err
	}
	return w.row(v)
}

// walk finds the columns: one for each member that is no object.
func (w *tabulator) walk(v value, path []string) {
	o, ok := v.(object)
	if !ok {
		w.paths = append(w.paths, slices.Clone(path))
		return
	}
	order := make([]int, len(o.keys))
	for i := range order {
		order[i] = i
	}
	if w.j.a.Has("sort-keys") {
		nested := func(i int) int {
			if _, ok := o.values[i].(object); ok {
				return 1
			}
			return 0
		}
		slices.SortFunc(order, func(a, b int) int {
			return cmp.Or(cmp.Compare(nested(a), nested(b)), strings.Compare(o.keys[a], o.keys[b]))
		})
	}
	for _, i := range order {
		w.walk(o.values[i], append(path, o.keys[i]))
	}
}

func (w *tabulator) flush() error {
	if w.begun {
		return nil
	}
	w.begun = true
	w.walk(w.shape, nil)
	head := make([]string, len(w.paths))
	for i, p := range w.paths {
		head[i] = strings.Join(p, ".")
	}
	if len(w.paths) == 1 && len(w.paths[0]) == 0 {
		head[0] = "value"
	}
	if err := w.j.out.row(head); err != nil {
		return err
	}
	for _, v := range w.sample {
		if err := w.row(v); err != nil {
			return err
		}
	}
	w.sample = nil
	return nil
}

func (w *tabulator) row(v value) error {
	out := make([]string, len(w.paths))
	for i, p := range w.paths {
		w.j.t.Step(1)
		x := v
		for _, k := range p {
			o, _ := x.(object)
			x, _ = o.get(k)
		}
		switch x.(type) {
		case nil:
		case []value, object, float64:
			out[i] = string(marshaled(x))
		default:
			out[i] = serialized(x)
		}
	}
	return w.j.out.row(out)
}

func (j *job) tabulator() (*tabulator, error) {
	size, err := j.orAll("sample-size", 64)
	return &tabulator{j: j, size: size}, err
}

// fromLines reads a JSON text from each line.
func (j *job) fromLines(b []byte) error {
	w, err := j.tabulator()
	if err != nil {
		return err
	}
	for line := range bytes.Lines(b) {
		v, err := j.decode(bytes.TrimRight(line, "\r\n"))
		if err != nil {
			return err
		}
		if err := w.add(v); err != nil {
			return err
		}
	}
	return w.flush()
}

// fromJSON reads a list, or an object whose members are the rows.
func (j *job) fromJSON(b []byte) error {
	w, err := j.tabulator()
	if err != nil {
		return err
	}
	v, err := j.decode(b)
	if err != nil {
		return err
	}
	list, ok := v.([]value)
	if o, isObject := v.(object); isObject {
		list, ok = nil, true
		names := []string{"key", "value"}
		for i := range names {
			if s, given := j.a.Value(names[i] + "-column"); given {
				names[i] = s
			}
		}
		for i, k := range o.keys {
			list = append(list, object{slices.Clone(names), []value{k, o.values[i]}})
		}
		if j.a.Has("single-object") {
			list = []value{o}
		}
	}
	if !ok {
		return errors.New("the JSON is neither a list nor an object")
	}
	for _, v := range list {
		if err := w.add(v); err != nil {
			return err
		}
	}
	return w.flush()
}
