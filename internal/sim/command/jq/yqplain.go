package jq

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/strftime"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// yqPlain finds functions of values.
func yqPlain(name string, arity int) oneFn {
	switch signature(name, arity) {
	case "_like/1":
		return like
	case "_case/1":
		return func(m *machine, v value, args []value) (value, error) {
			s, ok := v.(string)
			if !ok {
				return nil, failf("cannot change case with %s, can only operate on strings", tagOf(v))
			}
			if truthy(args[0]) {
				return m.made2(strings.ToUpper(s)), nil
			}
			return m.made2(strings.ToLower(s)), nil
		}
	case "_sort_keys/0":
		return func(m *machine, v value, _ []value) (value, error) {
			o, ok := v.(*object)
			if !ok {
				return v, nil
			}
			t, c := o.own(), &table{}
			for _, i := range t.sorted() {
				c.put(t.keys[i], t.vals[i])
			}
			n := m.made(c)
			n.from = o.from
			return n, nil
		}
	case "pick/1", "omit/1":
		return chosen(name == "pick")
	case "sub/2":
		return yqSub
	case "_env/1", "_strenv/1":
		return environmentOf(name == "_strenv")
	case "_envsubst/1", "envsubst/0":
		return func(m *machine, v value, _ []value) (value, error) { return m.made2(expandEnv(m, m.toString(v))), nil }
	case "load/1", "load_str/1", "load_xml/1", "load_props/1", "load_base64/1":
		return loads(strings.TrimPrefix(strings.TrimPrefix(name, "load"), "_"))
	case "to_json/1":
		return func(m *machine, v value, args []value) (value, error) {
			n, _ := number(args[0])
			return string(m.encode(nil, v, &style{indent: strings.Repeat(" ", int(max(0, min(n, 16))))}, 0)) + "\n", nil
		}
	case "to_yaml/1", "to_xml/1", "to_props/0", "to_csv/0", "to_tsv/0", "to_toml/0":
		return encodes(strings.TrimPrefix(name, "to_"))
	case "from_yaml/0", "from_json/0", "from_xml/0", "from_props/0", "from_csv/0", "from_tsv/0", "from_toml/0":
		return decodes(strings.TrimPrefix(name, "from_"))
	case "now/0":
		return func(m *machine, _ value, _ []value) (value, error) {
			return m.t.K.Now().UTC().Format(time.RFC3339), nil
		}
	case "format_datetime/1", "from_unix/0", "to_unix/0", "tz/1":
		return yqDate(name)
	}
	return nil
}

// like gives a value the style and comments of what it takes the place of.
func like(m *machine, v value, args []value) (value, error) {
	switch x := v.(type) {
	case *array:
		if o, ok := args[0].(*array); ok && o.from != nil {
			a := m.list(append([]value(nil), x.own()...))
			a.from = o.from
			return a, nil
		}
	case *object:
		if o, ok := args[0].(*object); ok && o.from != nil {
			n := m.made(x.own().clone())
			n.from = o.from
			return n, nil
		}
	}
	return v, nil
}

func chosen(pick bool) oneFn {
	return func(m *machine, v value, args []value) (value, error) {
		want, ok := args[0].(*array)
		if !ok {
			return nil, failf("expected a list of keys")
		}
		switch x := v.(type) {
		case *object:
			c := &table{}
			if pick {
				for _, k := range want.own() {
					if y, there := x.get(m.toString(k)); there {
						c.put(m.toString(k), y)
					}
				}
				n := m.made(c)
				n.from = x.from
				return n, nil
			}
			gone := map[string]bool{}
			for _, k := range want.own() {
				gone[m.toString(k)] = true
			}
			return m.without(x, func(k string) bool { return gone[k] }), nil
		case *array:
			var list []value
			gone := map[int]bool{}
			for _, k := range want.own() {
				f, _ := number(k)
				i := int(f)
				gone[i] = true
				if pick && i >= 0 && i < x.len() {
					list = append(list, x.own()[i])
				}
			}
			for i, y := range x.own() {
				if !pick && !gone[i] {
					list = append(list, y)
				}
			}
			a := m.list(list)
			a.from = x.from
			return a, nil
		}
		return nil, failf("cannot pick indices from type %s", tagOf(v))
	}
}

// yqSub replaces all matches, in the way of Go's regular expressions, which
// yq's are.
func yqSub(m *machine, v value, args []value) (value, error) {
	s, ok := v.(string)
	re, ok1 := args[0].(string)
	to, ok2 := args[1].(string)
	if !ok || !ok1 || !ok2 {
		return nil, failf("cannot substitute with %s, can only substitute strings. Hint: Most often you'll want to use '|=' over '=' for this operation", tagOf(v))
	}
	m.t.Bound("source", int64(len(re)), 1<<16)
	x, err := regexp.Compile(re)
	if err != nil {
		return nil, failf("%s", err)
	}
	m.t.Step(len(s) * (1 + len(re)>>4))
	found := x.FindAllStringSubmatchIndex(s, -1)
	m.t.Bound("string", int64(len(s)+len(found)*len(to)), m.t.K.Limits.String)
	var out []byte
	at := 0
	for _, f := range found {
		out = append(m.room(out, f[0]-at), s[at:f[0]]...)
		// No group is longer than the match.
		out = x.ExpandString(m.room(out, len(to)+strings.Count(to, "$")*(f[1]-f[0])), to, s, f)
		at = f[1]
		m.t.Bound("string", int64(len(out)), m.t.K.Limits.String)
	}
	return m.taken(append(m.room(out, len(s)-at), s[at:]...)), nil
}

func lookup(m *machine, name string) (string, bool) {
	for i := len(m.t.Env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(m.t.Env[i], name+"="); ok {
			return v, true
		}
	}
	return "", false
}

func environmentOf(text bool) oneFn {
	return func(m *machine, _ value, args []value) (value, error) {
		name, _ := args[0].(string)
		s, ok := lookup(m, name)
		if !ok {
			return nil, &yqError{fmt.Sprintf("value for env variable '%s' not provided in env()", name)}
		}
		if text {
			return clean([]byte(s)), nil
		}
		if docs, err := m.yq.readYAML([]byte(s)); err == nil && len(docs) > 0 {
			return docs[0].value, nil
		}
		return clean([]byte(s)), nil // what is no YAML is a text
	}
}

// expandEnv puts variables in place of $name and ${name}, and of ${name:-else}.
func expandEnv(m *machine, s string) string {
	out := kernel.NewText(m.t)
	for i := 0; i < len(s); {
		if s[i] != '$' || i+1 == len(s) {
			out.Byte(s[i])
			i++
			continue
		}
		j := i + 1
		if s[j] == '{' {
			end := strings.IndexByte(s[j:], '}')
			if end < 0 {
				out.WriteString(s[i:])
				break
			}
			name, other, _ := strings.Cut(s[j+1:j+end], "-")
			value, ok := lookup(m, strings.TrimSuffix(name, ":"))
			if !ok || value == "" {
				value = other
			}
			out.WriteString(value)
			i = j + end + 1
			continue
		}
		for j < len(s) && (isLetter(s[j]) || isDigit(s[j])) {
			j++
		}
		if j == i+1 {
			out.Byte('$')
		} else {
			value, _ := lookup(m, s[i+1:j])
			out.WriteString(value)
		}
		i = j
	}
	m.alloc(out.Len())
	return clean([]byte(out.Text()))
}

func loads(format string) oneFn {
	return func(m *machine, _ value, args []value) (value, error) {
		name, ok := args[0].(string)
		if !ok {
			return nil, failf("filename expected")
		}
		b, err := command.ReadAll(m.t, name)
		if err != nil {
			return nil, &yqError{fmt.Sprintf("failed to load %s: open %s: %s", name, name, strings.ToLower(vfs.Message(err)))}
		}
		if format == "str" {
			return clean(b), nil
		}
		if format == "" {
			format = formatOf(path.Ext(name))
		}
		return m.yq.first(b, format)
	}
}

// first reads the first document of a text.
func (w *weaver) first(b []byte, format string) (value, error) {
	docs, err := w.read(b, format)
	if err != nil {
		return nil, &yqError{err.Error()}
	}
	if len(docs) == 0 {
		return nil, nil
	}
	return docs[0].value, nil
}

func encodes(format string) oneFn {
	return func(m *machine, v value, args []value) (value, error) {
		indent := 2
		if len(args) > 0 {
			f, _ := number(args[0])
			indent = int(max(0, min(f, 16)))
		}
		var b []byte
		var err error
		if format == "yaml" {
			var n *yaml.Node
			if n, err = m.yq.node(v, nil, 0); err == nil {
				b, err = m.yq.encodeYAML(n, indent)
			}
		} else {
			b, err = m.yq.write(v, format, indent)
		}
		if err != nil {
			return nil, failf("%s", err)
		}
		return m.made2(clean(b)), nil
	}
}

func decodes(format string) oneFn {
	return func(m *machine, v value, _ []value) (value, error) {
		s, ok := v.(string)
		if !ok {
			return nil, failf("cannot decode %s", tagOf(v))
		}
		return m.yq.first([]byte(s), format)
	}
}

func yqDate(name string) oneFn {
	return func(m *machine, v value, args []value) (value, error) {
		if name == "from_unix" {
			f, _ := number(v)
			return time.Unix(int64(f), 0).UTC().Format(time.RFC3339), nil
		}
		s := m.toString(v)
		at, err := time.Parse(time.RFC3339, s)
		if err != nil {
			if at, err = time.Parse("2006-01-02", s); err != nil {
				return nil, failf("could not parse datetime of [%s]: %s", s, err)
			}
		}
		switch name {
		case "to_unix":
			return float64(at.Unix()), nil
		case "tz":
			return at.In(strftime.Zone(m.toString(args[0]))).Format(time.RFC3339), nil
		}
		return at.Format(m.toString(args[0])), nil
	}
}
