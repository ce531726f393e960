package expand

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/paddock-sandbox/paddock/internal/sim/shell/variable"
)

// An Assignment is one that has been looked at. It does not change.
type Assignment struct {
	Name   string
	Append bool
	Naked  bool // without "=", as an argument of declare
	sub    *subscript
	value  *Word
	list   []item
	isList bool
}

// An item is an element of a compound assignment.
type item struct {
	sub   *subscript
	add   bool
	word  *Word // as a field
	value *Word // as an assigned value
}

// CompileAssignment looks at an assignment.
func CompileAssignment(a *syntax.Assign) *Assignment {
	c := &Assignment{Append: a.Append, Naked: a.Naked}
	if a.Name != nil {
		c.Name = a.Name.Value
	}
	var k compiler
	if a.Index != nil {
		c.sub = k.subscript(a.Index)
	}
	if a.Array == nil {
		c.value = Compile(a.Value, Assigned)
		return c
	}
	c.isList = true
	c.list = make([]item, len(a.Array.Elems))
	for i, e := range a.Array.Elems {
		it := &c.list[i]
		if e.Index != nil {
			it.sub = k.subscript(e.Index)
			it.add = len(e.Comments) > 0
			it.value = Compile(e.Value, Assigned)
			continue
		}
		it.word = Compile(e.Value, Field)
	}
	return c
}

// IsList reports whether it is name=( ).
func (a *Assignment) IsList() bool { return a.isList }

// Subscript returns the source of the subscript; ok is false without one.
func (a *Assignment) Subscript() (source string, ok bool) {
	if a.sub == nil {
		return "", false
	}
	return a.sub.source, true
}

// Value expands the value of an assignment that is no list.
func (x *Expander) Value(a *Assignment) (string, error) { return x.String(a.value) }

// Assign makes an assignment.
func (x *Expander) Assign(a *Assignment) error {
	if a.isList {
		list, err := x.Elements(a, x.associative(a.Name))
		if err != nil {
			return err
		}
		return x.AssignList(a, list)
	}
	if a.sub == nil && !a.Append {
		if expr, ok := a.value.Computed(); ok {
			n, err := x.Eval(expr)
			if err != nil {
				return err
			}
			return x.vars.SetInt(a.Name, n)
		}
	}
	value, err := x.String(a.value)
	if err != nil {
		return err
	}
	return x.AssignValue(a, value)
}

// AssignValue is Assign with the value expanded already.
func (x *Expander) AssignValue(a *Assignment, value string) error {
	switch {
	case a.sub != nil:
		return x.assignAt(a.Name, a.sub, value, a.Append)
	case a.Append:
		return x.vars.Append(a.Name, value)
	}
	return x.vars.Set(a.Name, value)
}

// associative reports whether a name is an associative array's.
func (x *Expander) associative(name string) bool {
	v, _ := x.vars.Var(name)
	return v != nil && v.Is(variable.Associate)
}

// Elements expands the elements of a list. With keys, subscripts are those of
// an associative array.
func (x *Expander) Elements(a *Assignment, keys bool) ([]variable.Element, error) {
	list := make([]variable.Element, 0, len(a.list))
	pairs := keys && len(a.list) > 0 && a.list[0].sub == nil
	for i := range a.list {
		it := &a.list[i]
		if it.sub == nil {
			if pairs {
				// Keys and values by turns are not split.
				value, err := x.unsplit(it.word)
				if err != nil {
					return nil, err
				}
				list = append(list, variable.Element{Value: value})
				continue
			}
			from := len(x.scratch)
			fields, err := x.fields(x.scratch, it.word)
			if err != nil {
				return nil, err
			}
			for _, f := range fields[from:] {
				list = append(list, variable.Element{Value: f})
			}
			x.task.Bound("array", int64(len(list)), x.task.K.Limits.Array)
			clear(fields[from:])
			x.scratch = fields[:from]
			continue
		}
		e := variable.Element{At: true, Add: it.add}
		var err error
		if keys {
			e.Subscript, err = x.key(it.sub)
		} else {
			e.Subscript, err = x.indexText(it.sub)
		}
		if err != nil {
			return nil, err
		}
		if e.Value, err = x.String(it.value); err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// unsplit expands a word of a field as if it were an assigned value.
func (x *Expander) unsplit(w *Word) (string, error) {
	if w.literal {
		return w.lit, nil
	}
	return x.joined(w.parts, Single)
}

// indexText expands a subscript of an indexed array without computing it.
func (x *Expander) indexText(s *subscript) (string, error) {
	if s.all != 0 {
		return s.source, nil
	}
	if s.index.expr != nil {
		return s.index.text, nil
	}
	return x.arithText(s.index)
}

// AssignList is Assign with the elements expanded already.
func (x *Expander) AssignList(a *Assignment, list []variable.Element) error {
	if a.sub != nil {
		return &variable.Error{Kind: variable.ListToElement, Name: a.Name + "[" + a.sub.source + "]"}
	}
	return x.vars.SetList(a.Name, list, a.Append)
}

// assignAt assigns to an element.
func (x *Expander) assignAt(name string, s *subscript, value string, add bool) error {
	v := x.vars.Lookup(name)
	if v != nil && v.Is(refAttr) {
		_, r := x.vars.Var(name)
		if r.Element {
			return &variable.Error{Kind: variable.Invalid, Name: r.Name + "[" + r.Subscript + "]"}
		}
		name = r.Name
	}
	if x.associative(name) {
		if s.all != 0 {
			return x.vars.SetKey(name, s.source, value, add)
		}
		key, err := x.key(s)
		if err != nil {
			return err
		}
		if key == "" {
			return &variable.Error{Kind: variable.BadSubscript, Name: name + "[" + s.source + "]"}
		}
		return x.vars.SetKey(name, key, value, add)
	}
	if s.all != 0 || s.source == "" {
		return &variable.Error{Kind: variable.BadSubscript, Name: name + "[" + s.source + "]"}
	}
	i, err := x.index(s)
	if err != nil {
		return err
	}
	if i < 0 {
		if v, _ := x.vars.Var(name); v != nil && v.Array() != nil {
			i += v.Array().End()
		} else if v != nil && v.IsSet() {
			i++
		}
		if i < 0 {
			return &variable.Error{Kind: variable.BadSubscript, Name: name + "[" + s.source + "]"}
		}
	}
	return x.vars.SetIndex(name, i, value, add)
}

// subscript looks at a subscript that is known only now, as a name that is an
// argument has it.
func (x *Expander) subscript(source string) *subscript {
	s := &subscript{source: source}
	if source == "@" || source == "*" {
		s.all = source[0]
		return s
	}
	k := compiler{parse: x.env.Word}
	k.scan(source, false)
	s.key = merge(k.parts)
	q := compiler{parse: x.env.Word}
	q.rawQuoted(source)
	s.index = arithOf(merge(q.parts))
	return s
}

// AssignAt assigns to name[subscript], with a subscript that is known only
// now. An associative array takes a subscript as it stands if once is set.
func (x *Expander) AssignAt(name, subscript, value string, add, once bool) error {
	if once && x.associative(name) {
		if subscript == "" {
			return &variable.Error{Kind: variable.BadSubscript, Name: name + "[" + subscript + "]"}
		}
		_, r := x.vars.Var(name)
		return x.vars.SetKey(r.Name, subscript, value, add)
	}
	return x.assignAt(name, x.subscript(subscript), value, add)
}

// Key expands a subscript that is known only now as the key of an associative
// array.
func (x *Expander) Key(subscript string) (string, error) { return x.key(x.subscript(subscript)) }

// Index computes a subscript that is known only now.
func (x *Expander) Index(subscript string) (int64, error) { return x.index(x.subscript(subscript)) }

// IsSet reports whether a name, or name[subscript], or a number of a parameter
// is set: test -v.
func (x *Expander) IsSet(name string) (bool, error) {
	p, ok := x.named(name)
	if !ok {
		return false, nil
	}
	if p.sub != nil && p.sub.all != 0 && x.associative(p.name) {
		v, _ := x.vars.Var(p.name)
		_, ok := v.Assoc().Get(p.sub.source)
		return ok, nil
	}
	if p.special != 0 && p.special != '0' {
		return false, nil
	}
	v, err := x.lookup(&p)
	return v.set, err
}

// partsText gives the source of parts, about.
func partsText(parts []part) string {
	var b strings.Builder
	for i := range parts {
		p := &parts[i]
		switch p.kind {
		case param:
			if p.param.simple || p.param.op == plain && p.param.sub == nil {
				b.WriteString("$" + p.param.name)
			} else {
				b.WriteString("${" + p.param.name + "}")
			}
		case command:
			b.WriteString("$(...)")
		case arithmetic:
			b.WriteString("$((" + p.arith.text + "))")
		default:
			b.WriteString(p.text)
		}
	}
	return b.String()
}
