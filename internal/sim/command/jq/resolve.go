package jq

import (
	"strconv"
	"strings"
)

// A scope is what names mean: an entry for each of an env.
type scope struct {
	up   *scope
	kind byte // '$' a variable, 'f' a function, 'a' an argument, 'l' a label
	name string
	def  *function
}

func (s *scope) variable(name string) *scope { return &scope{up: s, kind: '$', name: name} }

// A resolver finds out what the names of a module mean.
type resolver struct {
	m       *machine
	imports map[string]imported // of "alias::name/1"
	values  map[string]value    // of $alias::alias
	own     bool                // it is of the functions that we wrote in jq
}

// An imported function is one of another module.
type imported struct {
	fn  *function
	env *env
}

type resolveError struct {
	msg  string
	line int
}

func (r *resolver) fail(n *node, msg string) { panic(&resolveError{msg, n.line}) }

func signature(name string, arity int) string { return name + "/" + strconv.Itoa(arity) }

// define resolves a function's body, in the scope that it is in already.
func (r *resolver) define(f *function, s *scope) {
	if f.bound {
		return
	}
	f.bound = true
	for _, p := range f.params {
		s = &scope{up: s, kind: 'a', name: strings.TrimPrefix(p, "$")}
	}
	for _, p := range f.params {
		if strings.HasPrefix(p, "$") {
			s = s.variable(p[1:])
		}
	}
	r.resolve(f.body, s)
}

func (r *resolver) all(s *scope, list ...*node) bool {
	single := true
	for _, n := range list {
		if n != nil && !r.resolve(n, s) {
			single = false
		}
	}
	return single
}

// resolve resolves an expression, and tells whether it is single.
func (r *resolver) resolve(n *node, s *scope) bool {
	n.single = r.decide(n, s)
	return n.single
}

func (r *resolver) decide(n *node, s *scope) bool {
	switch n.op {
	case opIdentity, opLiteral, opFormat:
		return true
	case opRecurse:
		return false
	case opField, opNegate:
		return r.all(s, n.l)
	case opIndex:
		return r.all(s, n.l, n.r)
	case opSlice:
		return r.all(s, n.l, n.x, n.y)
	case opIterate:
		r.all(s, n.l)
		return false
	case opString:
		return r.all(s, n.list...)
	case opArray:
		r.all(s, n.l)
		return true
	case opObject:
		return r.object(n, s)
	case opPipe, opMath, opCompare, opAnd, opOr:
		return r.all(s, n.l, n.r)
	case opComma, opAlternative:
		r.all(s, n.l, n.r)
		return false
	case opMark:
		r.all(s, n.l, n.r)
		return false
	case opAssign, opArithmetic:
		r.all(s, n.l)
		return r.resolve(n.r, s)
	case opUpdate:
		r.all(s, n.l, n.r)
		return true
	case opIf:
		return r.all(s, n.l, n.r, n.x)
	case opTry, opOptional:
		r.all(s, n.l, n.r)
		return false
	case opReduce, opForeach:
		return r.fold(n, s)
	case opCall:
		return r.call(n, s)
	case opVar:
		r.variable(n, s)
		return true
	case opBind:
		single := r.resolve(n.l, s)
		single = r.resolve(n.r, r.patterns(n.pats, s)) && single
		for _, p := range n.pats {
			single = single && p.single()
		}
		return single && len(n.pats) == 1
	case opDef:
		s = &scope{up: s, kind: 'f', name: n.def.name, def: n.def}
		r.define(n.def, s)
		return r.resolve(n.l, s)
	case opLabel:
		r.resolve(n.l, &scope{up: s, kind: 'l', name: n.str})
		return false
	case opBreak:
		for x := s; x != nil; x = x.up {
			if x.kind == 'l' && x.name == n.str {
				return false
			}
			n.hops++
		}
		r.fail(n, "$*label-"+n.str+" is not defined")
	}
	return false
}

func (r *resolver) object(n *node, s *scope) bool {
	single := true
	for i := range n.fields {
		f := &n.fields[i]
		if f.val == nil {
			// {a} is {a: .a}, {"a b"} is {"a b": .["a b"]}.
			f.val = &node{op: opIndex, r: f.key}
		}
		single = r.resolve(f.key, s) && single
		single = r.resolve(f.val, s) && single
	}
	return single
}

func (r *resolver) fold(n *node, s *scope) bool {
	r.resolve(n.l, s)
	single := r.resolve(n.r, s)
	inner := r.patterns(n.pats, s)
	r.all(inner, n.x, n.y)
	return single && n.op == opReduce
}

// patterns resolves patterns, and gives the scope of what is behind them.
func (r *resolver) patterns(list []*pattern, s *scope) *scope {
	if len(list) == 1 {
		return r.pattern(list[0], s)
	}
	seen := map[string]bool{}
	var names []string
	for _, p := range list {
		inner := r.pattern(p, s)
		for x := inner; x != s; x = x.up {
			p.vars = append(p.vars, x.name)
			if !seen[x.name] {
				seen[x.name] = true
				names = append(names, x.name)
			}
		}
	}
	list[0].list = append([]*pattern{{vars: names}}, list[0].list...)
	// The names of all are kept with the first, as a pattern without a kind.
	for _, name := range names {
		s = s.variable(name)
	}
	return s
}

// all gives the names of alternatives, and the patterns.
func alternatives(list []*pattern) []string { return list[0].list[0].vars }

func (r *resolver) pattern(p *pattern, s *scope) *scope {
	switch p.kind {
	case '$':
		return s.variable(p.name)
	case '[':
		for _, x := range p.list {
			s = r.pattern(x, s)
		}
	case '{':
		for _, x := range p.pairs {
			r.resolve(x.key, s)
			if x.name != "" {
				s = s.variable(x.name)
			}
			if x.val != nil {
				s = r.pattern(x.val, s)
			}
		}
	}
	return s
}

// single reports whether a pattern matches once.
func (p *pattern) single() bool {
	for _, x := range p.list {
		if !x.single() {
			return false
		}
	}
	for _, x := range p.pairs {
		if !x.key.single || x.val != nil && !x.val.single() {
			return false
		}
	}
	return true
}

func (r *resolver) variable(n *node, s *scope) {
	for x := s; x != nil; x = x.up {
		if x.kind == '$' && x.name == n.str {
			return
		}
		n.hops++
	}
	if v, ok := r.values[n.str]; ok {
		n.op, n.v = opLiteral, v
		return
	}
	if v, ok := r.m.globals[n.str]; ok {
		n.op, n.v = opLiteral, v
		return
	}
	if n.str == "ENV" {
		n.op, n.v = opLiteral, r.m.environment()
		return
	}
	r.fail(n, "$"+n.str+" is not defined")
}

func (r *resolver) call(n *node, s *scope) bool {
	if r.m.yq != nil && !r.own {
		yqCall(n)
	}
	r.all(s, n.list...)
	for x := s; x != nil; x = x.up {
		if x.name == n.str && (x.kind == 'a' && len(n.list) == 0 || x.kind == 'f' && x.def.arity() == len(n.list)) {
			n.def = x.def
			return false
		}
		n.hops++
	}
	sig := signature(n.str, len(n.list))
	n.hops = -1
	if i, ok := r.imports[sig]; ok {
		n.def = i.fn
		n.v = i.env
		return false
	}
	theirs := r.m.yq != nil && !r.own && yqDefinition(sig) != ""
	if x := r.m.native(n.str, len(n.list)); x != nil && !theirs && (r.own || r.m.yq != nil || !strings.HasPrefix(n.str, "_") || n.str == "_strindices") {
		n.op, n.native = opNative, x
		if x.one == nil {
			return false
		}
		for _, a := range n.list {
			if !a.single {
				return false
			}
		}
		return true
	}
	if f := r.m.builtin(n.str, len(n.list)); f != nil {
		n.def = f
		return false
	}
	r.fail(n, sig+" is not defined")
	return false
}
