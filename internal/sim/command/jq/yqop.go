package jq

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A weaver is what yq has besides jq's machine: the documents, and where in
// them an expression stands.
type weaver struct {
	m      *machine
	o      *yqOptions
	made   map[*yaml.Node]value
	open   map[*yaml.Node]bool // nodes whose values are being made
	grown  int                 // bytes counted for nodes that are to be written
	doc    *document
	here   pathValue // what the expression at hand is about
	strict int       // paths that are to be assigned to
	marks  []mark
	apart  bool // results are documents of their own
}

// A yqError is one that expressions cannot catch.
type yqError struct{ msg string }

func (e *yqError) Error() string { return e.msg }

// yqKey gives the key that an index means for a value: a mapping may have
// numbers as keys, and a list may be indexed by digits.
func yqKey(v, k value) (value, error) {
	switch v.(type) {
	case *object:
		if _, ok := number(k); ok {
			return canonical(k), nil
		}
	case *array:
		if s, ok := k.(string); ok {
			if x, ok := yamlNumber(s); ok && s != "" {
				return x, nil
			}
			return nil, &yqError{fmt.Sprintf("cannot index array with '%s' (strconv.ParseInt: parsing %q: invalid syntax)", s, s)}
		}
	}
	return k, nil
}

// operator computes a binary operator by its name.
func (m *machine) operator(o string, l, r value) (value, error) {
	if m.yq == nil || o[0] != '*' {
		return m.math(o[0], l, r)
	}
	x, ok1 := l.(*object)
	y, ok2 := r.(*object)
	flags := o[1:]
	switch {
	case ok1 && ok2:
		return m.yq.merge(x, y, flags), nil
	case l == nil:
		return r, nil
	case r == nil:
		return l, nil
	}
	a, ok1 := l.(*array)
	b, ok2 := r.(*array)
	if ok1 && ok2 {
		return m.yq.mergeLists(a, b, flags), nil
	}
	return m.math('*', l, r)
}

// merge merges objects as the flags say; comments of both survive.
func (w *weaver) merge(x, y *object, flags string) *object {
	m := w.m
	m.push(x, nil)
	defer m.pop()
	from := x.from
	for i := range y.len() {
		m.t.Step(1)
		k, v := y.own().keys[i], y.own().vals[i]
		old, there := x.get(k)
		if !there && strings.Contains(flags, "?") {
			continue
		}
		if there {
			a, ok1 := old.(*object)
			b, ok2 := v.(*object)
			p, ok3 := old.(*array)
			q, ok4 := v.(*array)
			switch {
			case ok1 && ok2:
				v = w.merge(a, b, flags)
			case ok3 && ok4:
				v = w.mergeLists(p, q, flags)
			case strings.Contains(flags, "n") && old != nil:
				continue
			}
		}
		x = m.set(x, k, v)
	}
	if y.from != nil {
		f := &origin{node: y.from.node}
		if from != nil {
			f = &origin{node: from.node, next: f}
		}
		if x.from != f {
			c := &object{t: x.own().clone(), depth: x.depth, from: f}
			m.alloc(128 + 32*len(c.t.keys))
			return c
		}
	}
	return x
}

func (w *weaver) mergeLists(a, b *array, flags string) value {
	switch {
	case strings.Contains(flags, "+"):
		return w.m.extend(a, b.own())
	case strings.Contains(flags, "d"):
		var v value = a
		for i, x := range b.own() {
			w.m.t.Step(1)
			cur, _ := v.(*array)
			if i >= cur.len() {
				v = w.m.extend(cur, []value{x})
				continue
			}
			p, ok1 := cur.own()[i].(*object)
			q, ok2 := x.(*object)
			if ok1 && ok2 {
				x = w.merge(p, q, flags)
			}
			v = w.m.with(cur, i, x)
		}
		return v
	case strings.Contains(flags, "n"):
		return a
	}
	return b
}

// append is + of an array: what is no array is added as an element.
func (w *weaver) append(a *array, r value) value {
	switch x := r.(type) {
	case nil:
		return a
	case *array:
		return w.m.extend(a, x.own())
	}
	return w.m.extend(a, []value{r})
}

// alike is ==, where a string on the right may have * and ? in it.
func (w *weaver) alike(l, r value) bool {
	a, ok1 := l.(string)
	b, ok2 := r.(string)
	if ok1 && ok2 && strings.ContainsAny(b, "*?") {
		w.m.t.Step((len(a) + 1) * (len(b) + 1) >> 6)
		return wild(a, b)
	}
	return w.m.compare(l, r) == 0
}

// wild matches * and ?; one step back at a time suffices.
func wild(s, p string) bool {
	i, j, star, mark := 0, 0, -1, 0
	for i < len(s) {
		switch {
		case j < len(p) && p[j] == '*':
			star, mark = j, i
			j++
		case j < len(p) && (p[j] == '?' || p[j] == s[i]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = mark, star+1
		default:
			return false
		}
	}
	return strings.Trim(p[j:], "*") == ""
}

// path computes what has no place of its own, where an expression is not to
// be assigned to: what comes of an assignment stays where it was.
func (w *weaver) path(n *node, e *env, p pathValue, yield pathFn) (done bool, err error) {
	if n.op == opMark {
		return true, w.mark(n, e, p, yield)
	}
	before := w.here
	w.here = p
	defer func() { w.here = before }()
	if w.strict > 0 {
		return false, nil
	}
	switch n.op {
	case opAssign, opUpdate, opArithmetic:
		return true, w.m.eval(n, e, p.v, func(x value) error { return yield(pathValue{at: p.at, v: x}) })
	case opArray:
		if n.l == nil {
			return false, nil
		}
		var list []value
		if err := w.m.paths(n.l, e, p, func(x pathValue) error {
			w.m.alloc(16)
			list = append(list, x.v)
			return nil
		}); err != nil {
			return true, err
		}
		return true, yield(pathValue{v: w.m.list(list)})
	}
	return true, w.m.eval(n, e, p.v, func(x value) error {
		if same(x, p.v) || derived(x, p.v) {
			return yield(pathValue{at: p.at, v: x})
		}
		return yield(pathValue{v: x})
	})
}

// derived reports whether a value is made of another.
func derived(x, v value) bool {
	switch a := x.(type) {
	case *object:
		b, ok := v.(*object)
		return ok && a.from != nil && b.from != nil && a.from.node == b.from.node
	case *array:
		b, ok := v.(*array)
		return ok && a.from != nil && b.from != nil && a.from.node == b.from.node
	}
	return false
}

// mark notes the attributes that places are given.
func (w *weaver) mark(n *node, e *env, p pathValue, yield pathFn) error {
	deep := n.l.op == opRecurse && n.l.str == "keys"
	target := n.l
	if deep {
		target = &node{op: opIdentity, single: true}
	}
	err := w.m.paths(target, e, p, func(x pathValue) error {
		about := p.v
		if n.hops == 1 {
			about = x.v
		}
		w.here = x
		return w.m.eval(n.r, e, about, func(v value) error {
			w.m.alloc(64)
			w.m.t.Step(1)
			w.m.t.Bound("array", int64(len(w.marks)), w.m.t.K.Limits.Array)
			w.marks = append(w.marks, mark{path: x.at.list(), name: n.str, text: w.m.toString(v), deep: deep})
			return nil
		})
	})
	if err != nil {
		return err
	}
	return yield(p)
}

// nodeAt finds the node of a place in the document.
func (w *weaver) nodeAt(at *step) (key, n *yaml.Node) {
	n = w.doc.root()
	for _, k := range at.list() {
		for n != nil && n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		if n == nil {
			return nil, nil
		}
		var next *yaml.Node
		switch x := k.(type) {
		case string:
			for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
				if w.key(n.Content[i]) == x {
					key, next = n.Content[i], n.Content[i+1]
				}
			}
		default:
			f, ok := number(k)
			if i := int(f); ok && n.Kind == yaml.SequenceNode && i >= 0 && i < len(n.Content) {
				key, next = nil, n.Content[i]
			}
		}
		n = next
	}
	return key, n
}

// attributeOf gives an attribute of a place.
func (w *weaver) attributeOf(p pathValue, name string) value {
	key, n := w.nodeAt(p.at)
	if n == nil || !w.unchanged(p.v, n) {
		if name == "tag" {
			return tagOf(p.v)
		}
		if n == nil {
			return ""
		}
	}
	text := func(of func(*yaml.Node) string) value {
		s := of(n)
		if s == "" && key != nil {
			s = of(key)
		}
		lines := strings.Split(s, "\n")
		for i, l := range lines {
			lines[i] = strings.TrimPrefix(strings.TrimPrefix(l, "#"), " ")
		}
		return strings.Join(lines, "\n")
	}
	switch name {
	case "line_comment":
		return text(func(n *yaml.Node) string { return n.LineComment })
	case "head_comment":
		return text(func(n *yaml.Node) string { return n.HeadComment })
	case "foot_comment":
		return text(func(n *yaml.Node) string { return n.FootComment })
	case "style":
		return styleName(n.Style)
	case "anchor":
		return n.Anchor
	case "alias":
		if n.Kind == yaml.AliasNode {
			return n.Value
		}
		return ""
	case "line":
		return float64(n.Line)
	case "column":
		return float64(n.Column)
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if t := n.ShortTag(); t == "!!merge" || t == "!!timestamp" || strings.HasPrefix(t, "!!") && kind(p.v) != 4 {
		return tagOf(p.v)
	}
	return n.ShortTag()
}

// placed makes a function of the place that it stands at.
func placed(f func(w *weaver, p pathValue) (value, error)) *native {
	return &native{
		gen: func(m *machine, _ *node, _ *env, v value, yield yieldFn) error {
			p := m.yq.here
			if !same(p.v, v) && kind(p.v) >= 5 {
				p = pathValue{v: v, at: p.at}
			}
			p.v = v
			x, err := f(m.yq, p)
			if err != nil {
				return err
			}
			return yield(x)
		},
		path: func(m *machine, _ *node, _ *env, p pathValue, yield pathFn) error {
			x, err := f(m.yq, p)
			if err != nil {
				return err
			}
			return yield(pathValue{v: x})
		},
	}
}

// yqNative finds the functions that yq has otherwise than jq, or besides.
func yqNative(name string, arity int) *native {
	switch sig := signature(name, arity); sig {
	case "tag/0", "line_comment/0", "head_comment/0", "foot_comment/0", "style/0", "anchor/0", "alias/0", "line/0", "column/0":
		return placed(func(w *weaver, p pathValue) (value, error) { return w.attributeOf(p, name), nil })
	case "kind/0":
		return placed(func(_ *weaver, p pathValue) (value, error) {
			return [...]string{"scalar", "scalar", "scalar", "scalar", "scalar", "seq", "map"}[kind(p.v)], nil
		})
	case "key/0":
		return placed(func(_ *weaver, p pathValue) (value, error) {
			if p.at == nil {
				return nil, nil
			}
			return p.at.key, nil
		})
	case "path/0":
		return placed(func(w *weaver, p pathValue) (value, error) { return w.m.list(p.at.list()), nil })
	case "file_index/0":
		return placed(func(w *weaver, _ pathValue) (value, error) { return float64(w.doc.file), nil })
	case "document_index/0":
		return placed(func(w *weaver, _ pathValue) (value, error) { return float64(w.doc.index), nil })
	case "file_name/0":
		return placed(func(w *weaver, _ pathValue) (value, error) { return w.doc.name, nil })
	case "split_doc/0":
		return placed(func(w *weaver, p pathValue) (value, error) {
			w.apart = true
			return p.v, nil
		})
	case "parent/0", "parent/1":
		return parentOf()
	case "select/1":
		return selecting()
	case "_grouped/1":
		return &native{gen: grouped}
	}
	if f := yqPlain(name, arity); f != nil {
		return &native{one: f}
	}
	return nil
}

func parentOf() *native {
	return &native{
		gen: func(*machine, *node, *env, value, yieldFn) error { return &yqError{"parent: no place is known here"} },
		path: func(m *machine, n *node, e *env, p pathValue, yield pathFn) error {
			levels := 1.0
			if len(n.list) > 0 {
				v, err := m.collect(n.list[0], e, p.v)
				if err != nil {
					return err
				}
				if a, ok := v.(*array); ok && a.len() > 0 {
					levels, _ = number(a.own()[0])
				}
			}
			at := p.at
			for i := 0.0; i < levels && at != nil; i++ {
				at = at.up
			}
			v, err := m.getpath(m.yq.doc.value, at.list())
			if err != nil || p.at == nil {
				return err
			}
			return yield(pathValue{at: at, v: v})
		},
	}
}

// selecting is select, whose condition knows the place.
func selecting() *native {
	return &native{
		gen: func(m *machine, n *node, e *env, v value, yield yieldFn) error {
			return m.eval(n.list[0], e, v, func(c value) error {
				if truthy(c) {
					return yield(v)
				}
				return nil
			})
		},
		path: func(m *machine, n *node, e *env, p pathValue, yield pathFn) error {
			yes := false
			before := m.yq.here
			m.yq.here = p
			err := m.eval(n.list[0], e, p.v, func(c value) error {
				yes = yes || truthy(c)
				return nil
			})
			m.yq.here = before
			if err != nil || !yes {
				return err
			}
			return yield(p)
		},
	}
}

// grouped groups elements in the order in which their keys come.
func grouped(m *machine, n *node, e *env, v value, yield yieldFn) error {
	a, ok := v.(*array)
	if !ok {
		return failf("only arrays are supported for group_by, got %s", tagOf(v))
	}
	index := map[string]int{}
	var groups [][]value
	for i := range a.len() {
		x := a.own()[i]
		k, err := m.collect(n.list[0], e, x)
		if err != nil {
			return err
		}
		text := m.text(k)
		at, ok := index[text]
		if !ok {
			at = len(groups)
			index[text] = at
			groups = append(groups, nil)
			m.alloc(64 + len(text))
		}
		m.alloc(16)
		groups[at] = append(groups[at], x)
	}
	list := make([]value, len(groups))
	for i, g := range groups {
		list[i] = m.list(g)
	}
	return yield(m.list(list))
}
