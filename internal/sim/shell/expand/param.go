package expand

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// operation is what an expansion does to a parameter.
type operation uint8

const (
	plain operation = iota
	length
	names // ${!prefix*}
	keys  // ${!array[@]}
	byDefault
	assign
	fail
	alternate
	cutPrefix
	cutSuffix
	replace
	slice
	upper
	lower
	toggle
	transform
	bad
)

// What syntax has no operators for.
const (
	ToggleFirst syntax.ParExpOperator = 1<<30 + iota // ${x~}
	ToggleAll                                        // ${x~~}
)

// A Param is a parameter expansion that has been looked at.
type Param struct {
	name      string
	special   byte // of names that are no variables: a digit stands for all numbers
	simple    bool // $name and nothing else
	short     bool // without braces
	weak      bool // it starts no field where it is empty: beside $@ in quotes
	indirect  bool
	op        operation
	null      bool // with a colon
	all       bool // ##, %%, //, ^^
	letter    byte // of a transformation; of names, @ or *
	sub       *subscript
	word      *Word
	with      *Word
	from, len *Arith
	anchor    byte   // # or % of a replacement
	source    string // for messages
}

// A subscript is what stands between brackets.
type subscript struct {
	all    byte // @ or *
	source string
	key    []part // as the key of an associative array
	index  *Arith
}

func (k *compiler) param(e *syntax.ParamExp, quoted bool) *Param {
	p := &Param{indirect: e.Excl, short: e.Short}
	if e.Param != nil {
		p.name = e.Param.Value
	}
	if e.Flags != nil {
		p.op, p.source = bad, "${"+p.name+"}"
		return p
	}
	if n := p.name; n != "" && !nameStart(n[0]) {
		p.special = n[0]
		if n[0] >= '0' && n[0] <= '9' {
			p.special = '0'
		}
	}
	if e.Index != nil {
		p.sub = k.subscript(e.Index)
	}
	switch {
	case e.Length:
		p.op = length
	case e.Names != 0:
		p.op, p.indirect = names, false
		p.letter = '*'
		if e.Names == syntax.NamesPrefixWords {
			p.letter = '@'
		}
	case e.Excl && p.sub != nil && p.sub.all != 0 && e.Exp == nil && e.Repl == nil && e.Slice == nil:
		p.op, p.indirect = keys, false
	case e.Slice != nil:
		p.op = slice
		if e.Slice.Offset != nil {
			p.from = k.arith(e.Slice.Offset)
		}
		if e.Slice.Length != nil {
			p.len = k.arith(e.Slice.Length)
		}
	case e.Repl != nil:
		k.replacement(p, e.Repl, quoted)
	case e.Exp != nil:
		k.operator(p, e.Exp, quoted)
	}
	p.simple = p.op == plain && p.special == 0 && p.sub == nil && !p.indirect
	return p
}

func (k *compiler) replacement(p *Param, r *syntax.Replace, quoted bool) {
	p.op, p.all = replace, r.All
	p.word = k.sub(r.Orig, quoted, Pattern)
	p.with = &Word{}
	if r.With != nil {
		s := compiler{here: false, depth: k.depth, inner: false}
		s.unquotedParts(r.With.Parts)
		p.with.parts = merge(tildes(s.parts, false, false))
	}
	if p.all || len(p.word.parts) == 0 {
		return
	}
	if first := &p.word.parts[0]; first.kind == text && !first.quoted && first.text != "" && (first.text[0] == '#' || first.text[0] == '%') {
		p.anchor = first.text[0]
		parts := append([]part(nil), p.word.parts...)
		parts[0].text = parts[0].text[1:]
		p.word.parts = parts
	}
}

func (k *compiler) operator(p *Param, e *syntax.Expansion, quoted bool) {
	mode := Single
	switch e.Op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		p.op, p.null = alternate, e.Op == syntax.AlternateUnsetOrNull
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull:
		p.op, p.null = byDefault, e.Op == syntax.DefaultUnsetOrNull
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		p.op, p.null = fail, e.Op == syntax.ErrorUnsetOrNull
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		p.op, p.null = assign, e.Op == syntax.AssignUnsetOrNull
	case syntax.RemSmallPrefix, syntax.RemLargePrefix:
		p.op, p.all, mode = cutPrefix, e.Op == syntax.RemLargePrefix, Pattern
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		p.op, p.all, mode = cutSuffix, e.Op == syntax.RemLargeSuffix, Pattern
	case syntax.UpperFirst, syntax.UpperAll:
		p.op, p.all, mode = upper, e.Op == syntax.UpperAll, Pattern
	case syntax.LowerFirst, syntax.LowerAll:
		p.op, p.all, mode = lower, e.Op == syntax.LowerAll, Pattern
	case ToggleFirst, ToggleAll:
		p.op, p.all, mode = toggle, e.Op == ToggleAll, Pattern
	case syntax.OtherParamOps:
		p.op = transform
		if e.Word != nil && len(e.Word.Parts) == 1 {
			if l, ok := e.Word.Parts[0].(*syntax.Lit); ok && len(l.Value) == 1 {
				p.letter = l.Value[0]
			}
		}
		p.source = "${" + p.name + "@" + wordText(e.Word) + "}"
		return
	default:
		p.op, p.letter = transform, 0
		p.source = "${" + p.name + e.Op.String() + wordText(e.Word) + "}"
		return
	}
	p.word = k.sub(e.Word, quoted, mode)
}

func wordText(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	return w.Lit()
}

// subscript looks at what stands between brackets.
func (k *compiler) subscript(e syntax.ArithmExpr) *subscript {
	s := &subscript{}
	w, ok := e.(*syntax.Word)
	if !ok || w == nil {
		return s
	}
	if lit := w.Lit(); lit == "@" || lit == "*" {
		s.all, s.source = lit[0], lit
		return s
	}
	c := compiler{depth: k.depth}
	c.unquotedParts(w.Parts)
	s.key = merge(c.parts)
	s.source = partsText(s.key)
	s.index = k.arith(w)
	return s
}

// parameter is the value of a parameter.
type parameter struct {
	set    bool
	text   string
	list   []string
	isList bool
	star   bool
}

// lookup gives the value of a parameter.
func (x *Expander) lookup(p *Param) (parameter, error) {
	switch p.special {
	case 0:
		return x.variable(p)
	case '0':
		n := 0
		for _, c := range []byte(p.name) {
			if n = n*10 + int(c-'0'); n > 1<<40 {
				break
			}
		}
		if n == 0 {
			return parameter{set: true, text: x.env.Name()}, nil
		}
		if params := x.env.Params(); n <= len(params) {
			return parameter{set: true, text: params[n-1]}, nil
		}
		return parameter{}, nil
	case '@', '*':
		list := x.env.Params()
		return parameter{set: len(list) > 0, list: list, isList: true, star: p.special == '*'}, nil
	case '#':
		return parameter{set: true, text: itoa(int64(len(x.env.Params())))}, nil
	}
	s, ok := x.env.Special(p.special)
	if !ok {
		s = ""
	}
	return parameter{set: ok, text: s}, nil
}

func (x *Expander) variable(p *Param) (parameter, error) {
	if p.sub == nil {
		v, r := x.vars.Var(p.name)
		if r.Element {
			sub := x.subscript(r.Subscript)
			return x.variable(&Param{name: r.Name, sub: sub})
		}
		if v == nil {
			return parameter{}, nil
		}
		s, ok := v.Scalar()
		return parameter{set: ok, text: s}, nil
	}
	v, r := x.vars.Var(p.name)
	if r.Element {
		v = nil // an element has none of its own
	}
	if p.sub.all != 0 {
		q := parameter{isList: true, star: p.sub.all == '*'}
		switch {
		case v == nil:
		case v.Array() != nil:
			q.list = v.Array().Values()
		case v.Assoc() != nil:
			q.list = make([]string, 0, v.Assoc().Len())
			for _, s := range v.Assoc().All() {
				q.list = append(q.list, s)
			}
		default:
			if s, ok := v.Scalar(); ok {
				q.list = []string{s}
			}
		}
		q.set = len(q.list) > 0
		return q, nil
	}
	if v != nil && v.Assoc() != nil {
		key, err := x.key(p.sub)
		if err != nil {
			return parameter{}, err
		}
		s, ok := v.Assoc().Get(key)
		return parameter{set: ok, text: s}, nil
	}
	i, err := x.index(p.sub)
	if err != nil {
		return parameter{}, err
	}
	// The subscript may have changed the variable.
	v, _ = x.vars.Var(p.name)
	switch {
	case v == nil:
		return parameter{}, nil
	case v.Array() != nil:
		if i < 0 {
			if i += v.Array().End(); i < 0 {
				if p.op == length {
					return parameter{}, &Error{Kind: Bad, Text: p.sub.source + "]: bad array subscript"}
				}
				x.env.Warn("%s: bad array subscript", p.name)
				return parameter{}, nil
			}
		}
		s, ok := v.Array().Get(i)
		return parameter{set: ok, text: s}, nil
	case i == 0 || i == -1:
		s, ok := v.Scalar()
		return parameter{set: ok, text: s}, nil
	}
	return parameter{}, nil
}

// key expands a subscript as the key of an associative array.
func (x *Expander) key(s *subscript) (string, error) {
	if s.all != 0 {
		return s.source, nil
	}
	if len(s.key) == 1 && s.key[0].kind == text {
		return s.key[0].text, nil
	}
	return x.joined(s.key, Single)
}

// index computes a subscript of an indexed array.
func (x *Expander) index(s *subscript) (int64, error) { return x.Eval(s.index) }

// display names a parameter for messages.
func (x *Expander) display(p *Param) string {
	if p.sub != nil {
		return p.name + "[" + p.sub.source + "]"
	}
	return p.name
}

// emitParam expands a parameter.
func (x *Expander) emitParam(b *builder, p *Param, quoted bool) error {
	if p.simple {
		s, ok := x.vars.Get(p.name)
		if !ok {
			if x.isRef(p.name) {
				q := *p
				q.simple = false
				return x.emitParam(b, &q, quoted)
			}
			if x.flags.NoUnset {
				return x.unbound(p)
			}
		}
		if p.weak && s == "" {
			return nil
		}
		return b.value(s, quoted)
	}
	if p.indirect {
		target, done, err := x.indirection(b, p, quoted)
		if err != nil || done {
			return err
		}
		p = target
	}
	switch p.op {
	case bad:
		return &Error{Kind: Bad, Text: p.source + ": bad substitution"}
	case names:
		list := x.prefixed(p.name)
		if p.letter == '*' && !quoted && x.loadIFS().value == "" {
			return b.value(strings.Join(list, ""), false)
		}
		return b.list(list, p.letter == '*', quoted)
	case keys:
		list := x.keys(p)
		if p.sub.all == '*' && !quoted && x.loadIFS().value == "" {
			return b.value(strings.Join(list, " "), false)
		}
		return b.list(list, p.sub.all == '*', quoted)
	}
	v, err := x.lookup(p)
	if err != nil {
		return err
	}
	switch p.op {
	case byDefault, assign, fail, alternate:
		return x.conditional(b, p, v, quoted)
	}
	if !v.set && x.flags.NoUnset && (!v.isList || p.op == length && p.special == 0 && !x.exists(p.name)) {
		return x.unbound(p)
	}
	if p.op == plain {
		return x.emitValue(b, p, v, quoted)
	}
	if v, err = x.operate(p, v); err != nil {
		return err
	}
	return x.emitValue(b, p, v, quoted)
}

// isRef reports whether a name is a reference to another variable.
func (x *Expander) isRef(name string) bool {
	v := x.vars.Lookup(name)
	return v != nil && v.Is(refAttr)
}

func (x *Expander) exists(name string) bool {
	v, _ := x.vars.Var(name)
	return v != nil && v.IsSet()
}

func (x *Expander) emitValue(b *builder, p *Param, v parameter, quoted bool) error {
	if v.isList {
		return b.list(v.list, v.star, quoted)
	}
	if p.weak && v.text == "" {
		return nil
	}
	return b.value(v.text, quoted)
}

func (x *Expander) unbound(p *Param) error {
	name := x.display(p)
	if p.special != 0 {
		name = "$" + name
	}
	if p.op == length && p.sub != nil {
		name = p.name
	}
	return &Error{Kind: Unbound, Text: name + ": unbound variable"}
}

// keys gives the subscripts of an array.
func (x *Expander) keys(p *Param) []string {
	v, _ := x.vars.Var(p.name)
	switch {
	case v == nil:
		return nil
	case v.Array() != nil:
		list := make([]string, 0, v.Array().Len())
		for i := range v.Array().All() {
			list = append(list, itoa(i))
		}
		return list
	case v.Assoc() != nil:
		list := make([]string, 0, v.Assoc().Len())
		for k := range v.Assoc().All() {
			list = append(list, k)
		}
		return list
	case v.IsSet():
		return []string{"0"}
	}
	return nil
}

// prefixed gives the names of variables that begin so.
func (x *Expander) prefixed(prefix string) []string {
	var list []string
	for _, name := range x.vars.Names() {
		if strings.HasPrefix(name, prefix) {
			if v := x.vars.Lookup(name); v.IsSet() {
				list = append(list, name)
			}
		}
	}
	return list
}

// indirection finds what ${!name} is about. With done, all is said.
func (x *Expander) indirection(b *builder, p *Param, quoted bool) (target *Param, done bool, err error) {
	if err := x.enter(); err != nil {
		return nil, false, err
	}
	defer x.leave()
	if p.special == 0 && p.sub == nil {
		if v := x.vars.Lookup(p.name); v != nil && v.Is(refAttr) {
			t := x.vars.Target(p.name)
			if t == "" {
				return nil, false, &Error{Kind: Indirect, Text: p.name + ": invalid indirect expansion"}
			}
			if p.op == plain {
				return nil, true, b.value(t, quoted)
			}
		}
	}
	q := *p
	q.indirect, q.op, q.simple = false, plain, false
	v, err := x.lookup(&q)
	if err != nil {
		return nil, false, err
	}
	name := v.text
	if v.isList {
		name = strings.Join(v.list, " ")
		switch {
		case name == "" && p.special != 0:
			return nil, true, nil
		case !v.set:
			return nil, false, &Error{Kind: Indirect, Text: x.display(p) + ": invalid indirect expansion"}
		}
	}
	if !v.set && !v.isList {
		if p.special != 0 || x.exists(p.name) {
			// A parameter that is missing, an array without element 0.
			t := *p
			t.indirect, t.simple = false, false
			return &t, false, nil
		}
		return nil, false, &Error{Kind: Indirect, Text: x.display(p) + ": invalid indirect expansion"}
	}
	t, ok := x.named(name)
	if !ok {
		return nil, false, &Error{Kind: Indirect, Text: name + ": invalid variable name"}
	}
	full := *p
	full.indirect, full.simple = false, false
	full.name, full.special, full.sub = t.name, t.special, t.sub
	return &full, false, nil
}

// named makes a parameter of a name that is known only now.
func (x *Expander) named(s string) (Param, bool) {
	if s == "" {
		return Param{}, false
	}
	if c := s[0]; !nameStart(c) {
		if c >= '0' && c <= '9' {
			for i := range len(s) {
				if s[i] < '0' || s[i] > '9' {
					return Param{}, false
				}
			}
			return Param{name: s, special: '0'}, true
		}
		return Param{name: s, special: c}, len(s) == 1 && strings.IndexByte("@*#?$!-", c) >= 0
	}
	i := 0
	for i < len(s) && nameByte(s[i]) {
		i++
	}
	if i == len(s) {
		return Param{name: s}, true
	}
	if s[i] != '[' || s[len(s)-1] != ']' || i+2 == len(s) {
		return Param{}, false
	}
	return Param{name: s[:i], sub: x.subscript(s[i+1 : len(s)-1])}, true
}
