package expand

import (
	"errors"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/paddock-sandbox/paddock/internal/sim/arith"
)

// An Arith is an arithmetic expression that has been looked at. It does not
// change.
type Arith struct {
	parts  []part
	text   string
	expr   *arith.Expr // of an expression without expansions
	fast   *arith.Expr // of one with nothing but "$name": right where they are numbers
	names  []string    // in fast
	single string      // the whole is "$name"
}

// CompileArith looks at an expression.
func CompileArith(w *syntax.Word) *Arith {
	var k compiler
	return k.arith(w)
}

func (k *compiler) arith(e syntax.ArithmExpr) *Arith {
	w, _ := e.(*syntax.Word)
	if w == nil {
		return arithOf(nil)
	}
	c := compiler{depth: k.depth}
	c.arithParts(w.Parts)
	return arithOf(merge(c.parts))
}

func arithOf(parts []part) *Arith {
	a := &Arith{parts: parts}
	var b strings.Builder
	constant := true
	for i := range a.parts {
		if a.parts[i].kind != text {
			constant = false
		}
		b.WriteString(a.parts[i].text)
	}
	if constant {
		a.text = b.String()
		a.expr = arith.Compile(a.text)
		return a
	}
	a.text = partsText(a.parts)
	a.speed()
	return a
}

// arithParts is quotedParts for an expression: quotes go, and what is expanded
// within a subscript stays a key whatever it holds.
func (k *compiler) arithParts(parts []syntax.WordPart) {
	if k.depth++; k.depth > maxSyntax {
		return
	}
	defer func() { k.depth-- }()
	level := 0
	for _, wp := range parts {
		switch wp := wp.(type) {
		case *syntax.Lit:
			for i := range len(wp.Value) {
				switch wp.Value[i] {
				case '[':
					level++
				case ']':
					level--
				}
			}
			k.quotedText(wp.Value)
			continue
		case *syntax.SglQuoted:
			value := "'" + wp.Value + "'"
			if wp.Dollar {
				value = Unescape(wp.Value)
			}
			k.add(part{text: value, quoted: true})
			continue
		}
		from := len(k.parts)
		if d, ok := wp.(*syntax.DblQuoted); ok {
			k.quotedParts(d.Parts)
		} else {
			k.expansion(wp, true)
		}
		if level > 0 {
			for i := from; i < len(k.parts); i++ {
				p := &k.parts[i]
				if p.kind == text {
					p.text = arith.QuoteSubscript(p.text)
				} else {
					p.escaped = true
				}
			}
		}
	}
}

// speed finds expressions in which every "$name" stands where a number does.
func (a *Arith) speed() {
	var b strings.Builder
	for i := range a.parts {
		p := &a.parts[i]
		switch {
		case p.kind == text:
			b.WriteString(p.text)
			continue
		case p.kind != param || !p.param.simple || p.escaped:
			return
		}
		if i > 0 && !operatorEnd(a.parts[i-1], true) || i+1 < len(a.parts) && !operatorEnd(a.parts[i+1], false) {
			return
		}
		a.names = append(a.names, p.param.name)
		b.WriteString("(" + p.param.name + ")")
	}
	if len(a.parts) == 1 {
		a.single = a.names[0]
	}
	a.fast = arith.Compile(b.String())
}

// operatorEnd reports whether a part ends, or begins, with an operator.
func operatorEnd(p part, end bool) bool {
	if p.kind != text || p.text == "" {
		return false
	}
	c := p.text[0]
	if end {
		c = p.text[len(p.text)-1]
	}
	return strings.IndexByte(" \t\n+-*/%<>=!&|^~(),?:", c) >= 0
}

// Text is the source of the expression, about.
func (a *Arith) Text() string { return a.text }

// Eval computes an expression.
func (x *Expander) Eval(a *Arith) (int64, error) {
	if a == nil {
		return 0, nil
	}
	if a.expr != nil {
		return x.compute(a.expr)
	}
	if a.fast != nil {
		numbers := true
		for _, name := range a.names {
			n, ok := x.vars.Int(name)
			if !ok {
				numbers = false
				break
			}
			if a.single != "" {
				return n, nil
			}
		}
		if numbers {
			return x.compute(a.fast)
		}
	}
	if err := x.enter(); err != nil {
		return 0, err
	}
	s, err := x.arithText(a)
	x.leave()
	if err != nil {
		return 0, err
	}
	return x.Evaluate(s)
}

// arithText puts the values into an expression.
func (x *Expander) arithText(a *Arith) (string, error) {
	var b strings.Builder
	limit := x.task.K.Limits.String
	for i := range a.parts {
		p := &a.parts[i]
		if p.kind == text {
			b.WriteString(p.text)
			continue
		}
		s, err := x.joined(a.parts[i:i+1], Single)
		if err != nil {
			return "", err
		}
		if p.escaped {
			s = arith.QuoteSubscript(s)
		}
		b.WriteString(s)
		x.task.Bound("string", int64(b.Len()), limit)
	}
	return b.String(), nil
}

// Evaluate computes an expression that is known only now. Nothing in it is
// expanded but subscripts.
func (x *Expander) Evaluate(s string) (int64, error) {
	if n, ok := number(s); ok {
		return n, nil
	}
	x.task.Step(1 + len(s)/16)
	e, ok := x.exprs[s]
	if !ok {
		e = arith.Compile(s)
		if len(s) <= 128 {
			if x.exprs == nil || len(x.exprs) >= maxPatterns {
				x.exprs = make(map[string]*arith.Expr, maxPatterns)
			}
			x.exprs[s] = e
		}
	}
	return x.compute(e)
}

// number reads a plain decimal number.
func number(s string) (int64, bool) {
	if s == "" || len(s) > 18 || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	var n int64
	for i := range len(s) {
		c := s[i] - '0'
		if c > 9 {
			return 0, false
		}
		n = n*10 + int64(c)
	}
	return n, true
}

func (x *Expander) compute(e *arith.Expr) (int64, error) {
	n, err := e.Eval(&x.arith)
	if err == nil {
		return n, nil
	}
	if a := (*arith.Error)(nil); errors.As(err, &a) {
		return 0, &Error{Kind: Arithmetic, Text: a.Error()}
	}
	if x := (*Error)(nil); errors.As(err, &x) {
		return 0, err
	}
	return 0, &Error{Kind: Arithmetic, Text: err.Error()}
}

// scope shows a shell's variables to arithmetic.
type scope struct{ x *Expander }

func (v *scope) Int(name string) (int64, bool) { return v.x.vars.Int(name) }

func (v *scope) Text(name string) (string, error) {
	s, ok := v.x.vars.Get(name)
	if !ok && v.x.flags.NoUnset {
		return "", &Error{Kind: Unbound, Text: name + ": unbound variable"}
	}
	return s, nil
}

func (v *scope) Set(name string, n int64) error { return v.x.vars.SetInt(name, n) }

func (v *scope) Keyed(name string) bool {
	a, _ := v.x.vars.Var(name)
	return a != nil && a.Assoc() != nil
}

func (v *scope) Element(name string, key arith.Key) (string, error) {
	a, _ := v.x.vars.Var(name)
	s, ok := "", false
	switch {
	case a == nil:
	case a.Assoc() != nil:
		s, ok = a.Assoc().Get(key.Text)
	case !key.Numeric && key.Text != "":
		if a.Array() != nil {
			s, ok = strings.Join(a.Array().Values(), " "), a.Array().Len() > 0
		}
	case !key.Numeric:
		return "", &Error{Kind: Arithmetic, Text: name + "[]: bad array subscript"}
	case a.Array() != nil:
		i := key.Index
		if i < 0 {
			if i += a.Array().End(); i < 0 {
				v.x.env.Warn("%s[%s]: bad array subscript", name, key.Text)
				return "", nil
			}
		}
		s, ok = a.Array().Get(i)
	case key.Index == 0 || key.Index == -1:
		s, ok = a.Scalar()
	}
	if !ok && v.x.flags.NoUnset {
		return "", &Error{Kind: Unbound, Text: name + "[" + key.Text + "]: unbound variable"}
	}
	return s, nil
}

func (v *scope) SetElement(name string, key arith.Key, n int64) error {
	if key.Numeric && !v.Keyed(name) {
		return v.x.vars.SetAt(name, itoa(key.Index), itoa(n), false)
	}
	if key.Text == "" || !v.Keyed(name) {
		return &Error{Kind: Arithmetic, Text: name + "[" + key.Text + "]: bad array subscript"}
	}
	return v.x.vars.SetAt(name, key.Text, itoa(n), false)
}

func (v *scope) Expand(subscript string, key bool) (string, error) {
	if key {
		return v.x.Raw(subscript)
	}
	return v.x.Text(subscript)
}

func (v *scope) Step(n int) error {
	v.x.task.Step(n)
	return nil
}
