package expand

import (
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/quote"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/variable"
)

// transform makes ${x@Q} and its like.
func (x *Expander) transform(p *Param, v parameter) (parameter, error) {
	var do func(string) (string, error)
	pure := func(f func(string) string) func(string) (string, error) {
		return func(s string) (string, error) { return f(s), nil }
	}
	switch p.letter {
	case 'Q':
		do = pure(quote.Reuse)
	case 'E':
		do = pure(Unescape)
	case 'P':
		do = func(s string) (string, error) {
			if err := x.enter(); err != nil {
				return "", err
			}
			defer x.leave()
			return x.Text(x.env.Prompt(s))
		}
	case 'U':
		do = pure(func(s string) string { return x.mapChars(s, upper) })
	case 'L':
		do = pure(func(s string) string { return x.mapChars(s, lower) })
	case 'u':
		do = pure(func(s string) string {
			n := x.charLen(s)
			return changeCase(s[:n], upper) + s[n:]
		})
	case 'A':
		return x.declaration(p, v), nil
	case 'a':
		return x.attributes(p, v), nil
	case 'K', 'k':
		return x.pairs(p, v), nil
	default:
		if !v.set {
			return v, nil
		}
		return v, &Error{Kind: Bad, Text: p.source + ": bad substitution"}
	}
	if !v.set && !v.isList {
		return v, nil
	}
	return x.each(v, do, true)
}

func (x *Expander) mapChars(s string, op operation) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		n := x.charLen(s[i:])
		b.WriteString(changeCase(s[i:i+n], op))
		i += n
	}
	return b.String()
}

// Letters returns the attributes of a variable as ${x@a} has them.
func Letters(a variable.Attr) string {
	var b []byte
	for _, l := range []struct {
		attr   variable.Attr
		letter byte
	}{
		{variable.Indexed, 'a'}, {variable.Associate, 'A'}, {variable.Integer, 'i'}, {variable.NameRef, 'n'},
		{variable.ReadOnly, 'r'}, {variable.Trace, 't'}, {variable.Export, 'x'},
		{variable.Capital, 'c'}, {variable.Lower, 'l'}, {variable.Upper, 'u'},
	} {
		if a&l.attr != 0 {
			b = append(b, l.letter)
		}
	}
	return string(b)
}

// declaration is ${x@A}.
func (x *Expander) declaration(p *Param, v parameter) parameter {
	if p.special != 0 {
		if !v.isList {
			return parameter{set: true}
		}
		var b strings.Builder
		b.WriteString("set --")
		for _, s := range v.list {
			b.WriteByte(' ')
			b.WriteString(quote.Reuse(s))
		}
		return parameter{set: true, text: b.String()}
	}
	a, r := x.vars.Var(p.name)
	if a == nil {
		return parameter{}
	}
	letters := Letters(a.Attr())
	head := ""
	if letters != "" {
		head = "declare -" + letters + " "
	}
	switch {
	case v.isList && (a.Array() != nil || a.Assoc() != nil):
		if !a.IsSet() {
			return parameter{set: true, text: strings.TrimSuffix(head+r.Name, " ")}
		}
		v.list = []string{r.Name + "=" + Compound(a)}
		if letters != "" {
			v.list = []string{"declare", "-" + letters, v.list[0]}
		}
		return v
	case v.isList && len(v.list) > 0:
		return parameter{set: true, text: head + r.Name + "=" + quote.Reuse(v.list[0])}
	case v.isList || !v.set:
		if letters == "" {
			return parameter{set: true}
		}
		return parameter{set: true, text: head + r.Name}
	}
	return parameter{set: true, text: head + r.Name + "=" + quote.Reuse(v.text)}
}

// Compound writes the elements of an array as declare -p does.
func Compound(v *variable.Var) string {
	var b strings.Builder
	b.WriteByte('(')
	if a := v.Array(); a != nil {
		first := true
		for i, s := range a.All() {
			if !first {
				b.WriteByte(' ')
			}
			first = false
			b.WriteString("[" + itoa(i) + "]=" + quote.Value(s))
		}
	} else if a := v.Assoc(); a != nil {
		for k, s := range a.All() {
			b.WriteString("[" + quote.Subscript(k) + "]=" + quote.Value(s) + " ")
		}
	}
	b.WriteByte(')')
	return b.String()
}

// attributes is ${x@a}.
func (x *Expander) attributes(p *Param, v parameter) parameter {
	a, _ := x.vars.Var(p.name)
	if p.special != 0 || a == nil {
		return parameter{set: v.set, isList: v.isList, list: make([]string, len(v.list))}
	}
	letters := Letters(a.Attr())
	if !v.isList {
		return parameter{set: true, text: letters}
	}
	list := make([]string, len(v.list))
	for i := range list {
		list[i] = letters
	}
	if len(list) == 0 {
		list = []string{letters}
	}
	v.list = list
	return v
}

// pairs is ${x@K} and ${x@k}.
func (x *Expander) pairs(p *Param, v parameter) parameter {
	a, _ := x.vars.Var(p.name)
	if !v.isList || a == nil || p.special != 0 || a.Array() == nil && a.Assoc() == nil {
		for i, s := range v.list {
			if i == 0 {
				v.list = append([]string(nil), v.list...)
			}
			v.list[i] = quote.Reuse(s)
		}
		if v.set && !v.isList {
			v.text = quote.Reuse(v.text)
		}
		return v
	}
	v.list = nil
	if p.letter == 'k' {
		if a.Array() != nil {
			for i, s := range a.Array().All() {
				v.list = append(v.list, itoa(i), s)
			}
		} else {
			for k, s := range a.Assoc().All() {
				v.list = append(v.list, k, s)
			}
		}
		return v
	}
	var b strings.Builder
	if a.Array() != nil {
		for i, s := range a.Array().All() {
			if b.Len() > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(itoa(i) + " " + quote.Value(s))
		}
	} else {
		for k, s := range a.Assoc().All() {
			b.WriteString(quote.Subscript(k) + " " + quote.Value(s) + " ")
		}
	}
	return parameter{set: v.set, text: b.String()}
}
