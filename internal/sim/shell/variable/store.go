package variable

import (
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
)

// A Meter counts what values take. A kernel.Task is one.
type Meter interface {
	Grow(n int)
	Shrink(n int)
	Bound(name budget.Name, n, limit int64)
}

// A Host is the shell that a store belongs to.
type Host interface {
	// Evaluate computes an arithmetic expression, for variables with the
	// attribute Integer and for subscripts.
	Evaluate(expr string) (int64, error)
	// Warn writes a message to standard error, as the shell has them.
	Warn(format string, args ...any)
}

// A Store holds the variables of one shell.
type Store struct {
	Meter  Meter
	Host   Host
	Limits budget.Limits // of String and Array; they must be filled in

	// Changed is told when one of the variables in Watched has changed or
	// gone; nil is nobody. Watched is set before there are variables.
	Changed func(name string)
	Watched map[string]bool

	own    map[string]*Var // nil is a variable of base that is gone
	base   *layer          // frozen
	token  *token
	scopes []scope
	debt   int // bytes grown and not told to the meter

	environ      []string
	environValid bool
	unsetReveals bool // what unset does to a local variable of a caller is the opposite
}

// New makes an empty store.
func New(m Meter, h Host, l budget.Limits) *Store {
	s := &Store{Meter: m, Host: h, Limits: l.Filled(), own: map[string]*Var{}}
	s.token = &token{s}
	s.scopes = make([]scope, 1, 8)
	return s
}

// slack is how many bytes are not told to the meter at once.
const slack = 4 << 10

func (s *Store) count(n int) {
	s.debt += n
	if s.debt > slack {
		n, s.debt = s.debt, 0
		s.Meter.Grow(n)
	} else if s.debt < -slack {
		n, s.debt = -s.debt, 0
		s.Meter.Shrink(n)
	}
}

// Lookup returns a variable by its own name, that of a reference by its name
// too. A local variable without a value is one; nil is none at all.
func (s *Store) Lookup(name string) *Var {
	if v, ok := s.own[name]; ok {
		return v
	}
	return s.below(name)
}

func (s *Store) below(name string) *Var {
	for l := s.base; l != nil; l = l.base {
		if v, ok := l.vars[name]; ok {
			return v
		}
	}
	return nil
}

// Get returns the value of $name; ok is false where it is not set. Of an array
// it is element 0. References are followed, those to elements too; but where a
// subscript is to be expanded first, ok is false.
func (s *Store) Get(name string) (value string, ok bool) {
	v := s.Lookup(name)
	switch {
	case v == nil:
		return "", false
	case v.attr&(NameRef|Arrays) == 0 && v.dyn == nil:
		return v.text(s.token), v.set
	}
	v, r := s.Var(name)
	switch {
	case v == nil:
		return "", false
	case r.Element:
		return s.element(v, r)
	}
	return v.Scalar()
}

func (s *Store) element(v *Var, r Ref) (string, bool) {
	if strings.ContainsAny(r.Subscript, "$`\"'\\@*") {
		return "", false
	}
	if v.assoc != nil {
		return v.assoc.Get(r.Subscript)
	}
	i, err := s.index(v, r.Subscript)
	if err != nil {
		return "", false
	}
	if v.array != nil {
		return v.array.Get(i)
	}
	if i == 0 {
		return v.Scalar()
	}
	return "", false
}

// Int returns a variable's value where it is a plain decimal number, which it
// remembers. Of what is not it says nothing.
func (s *Store) Int(name string) (int64, bool) {
	v := s.Lookup(name)
	if v == nil || v.attr&(NameRef|Arrays) != 0 || v.dyn != nil || !v.set {
		return 0, false
	}
	if v.isNum {
		return v.num, true
	}
	n, ok := parseInt(v.str)
	if ok && v.owner == s.token {
		v.num, v.isNum = n, true
	}
	return n, ok
}

// Var follows references and gives the variable at the end, with its value
// computed if it is a dynamic one. The Ref tells its name, and the element
// that the reference is to.
func (s *Store) Var(name string) (*Var, Ref) {
	v := s.Lookup(name)
	r := Ref{Name: name}
	for v.hides(name) {
		v = v.prev
	}
	if v != nil && v.attr&NameRef != 0 {
		var err error
		if r, err = s.Resolve(name); err != nil {
			return nil, r
		}
		v = s.Lookup(r.Name)
	}
	if v != nil && v.dyn != nil {
		v = v.dyn.compute(s, v)
	}
	return v, r
}

// mutable gives a variable for changing in place, or nil if there is none.
func (s *Store) mutable(name string) *Var {
	v := s.Lookup(name)
	if v == nil || v.owner == s.token {
		return v
	}
	c := v.clone(s.token)
	s.own[name] = c
	s.count(c.size(name))
	return c
}

// make adds a global variable that does not exist.
func (s *Store) make(name string) *Var {
	v := s.fresh(name)
	s.own[name] = v
	return v
}

func (s *Store) fresh(name string) *Var {
	v := &Var{owner: s.token}
	if s.Watched[name] {
		v.attr |= inform
	}
	s.count(overhead + len(name))
	return v
}

// Names lists the variables that are visible, in order of bytes.
func (s *Store) Names() []string {
	list := make([]string, 0, len(s.own)+64)
	for name, v := range s.own {
		if v != nil && v.attr&hidden == 0 {
			list = append(list, name)
		}
	}
	if s.base == nil {
		slices.Sort(list)
		return list
	}
	seen := make(map[string]bool, len(s.own))
	for name := range s.own {
		seen[name] = true
	}
	for l := s.base; l != nil; l = l.base {
		for name, v := range l.vars {
			if seen[name] {
				continue
			}
			seen[name] = true
			if v != nil && v.attr&hidden == 0 {
				list = append(list, name)
			}
		}
	}
	slices.Sort(list)
	return list
}

// changed is called after a change of a variable's value or attributes.
func (s *Store) changed(name string, v *Var) {
	if v.attr&Export != 0 {
		s.environValid = false
	}
	if v.attr&inform != 0 && s.Changed != nil {
		s.Changed(name)
	}
}

// Environ returns the exported variables as a process gets them, in order of
// bytes. The slice never changes.
func (s *Store) Environ() []string {
	if s.environValid {
		return s.environ
	}
	list := make([]string, 0, len(s.environ)+4)
	for _, name := range s.Names() {
		v := s.Lookup(name)
		if v.attr&Export == 0 || v.attr&Arrays != 0 {
			continue
		}
		if v.dyn != nil {
			v = v.dyn.compute(s, v)
		}
		if value, ok := v.Scalar(); ok {
			list = append(list, name+"="+value)
		}
	}
	s.environ, s.environValid = list, true
	return list
}

// Mark returns the number that SetMark keeps beside a variable's value. It is 0
// for a new variable, and again when a value is assigned.
func (s *Store) Mark(name string) int {
	if v := s.Lookup(name); v != nil {
		return int(v.mark)
	}
	return 0
}

// SetMark keeps a number beside a variable's value.
func (s *Store) SetMark(name string, n int) {
	if v := s.mutable(name); v != nil {
		v.mark = int32(n)
	}
}
