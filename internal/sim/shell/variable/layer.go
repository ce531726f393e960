package variable

import (
	"maps"
	"sync/atomic"
)

// A layer is variables that no store changes any more.
type layer struct {
	vars  map[string]*Var
	base  *layer
	token *token       // of the variables, for the store that made the layer
	lent  bool         // the map is that of a store that waits
	depth int          // of the chain
	bytes int          // of the chain, about; of lent ones nothing
	users atomic.Int32 // stores that stand on it, and layers
}

// maxDepth is how long a chain of layers becomes before it is made one.
const maxDepth = 12

// Borrow makes the store of a subshell for which this one waits: until that
// has ended, this one is not used. It costs nothing for what is not changed.
func (s *Store) Borrow(m Meter, h Host) *Store {
	c := s.child(m, h)
	c.base = &layer{vars: s.own, base: s.base, lent: true}
	if s.base != nil {
		c.base.depth = s.base.depth + 1
	}
	if c.base.depth > maxDepth {
		c.settle()
	}
	return c
}

// Fork makes the store of a subshell that runs beside this one.
func (s *Store) Fork(m Meter, h Host) *Store {
	s.settle()
	s.thaw()
	if len(s.own) > 0 {
		s.freeze()
	}
	c := s.child(m, h)
	c.base = s.base
	if c.base != nil {
		c.base.users.Add(1)
		c.count(c.base.bytes)
	}
	return c
}

// Release says that the store is not used any more, so that the one that it
// was forked from need not copy any longer. Not to call it is no error.
func (s *Store) Release() {
	if s.base != nil && !s.base.lent {
		s.base.users.Add(-1)
	}
	s.base, s.own = nil, nil
}

func (s *Store) child(m Meter, h Host) *Store {
	c := &Store{
		Meter: m, Host: h, Limits: s.Limits, Watched: s.Watched, own: map[string]*Var{},
		environ: s.environ, environValid: s.environValid, unsetReveals: s.unsetReveals,
	}
	c.token = &token{c}
	c.scopes = make([]scope, len(s.scopes), len(s.scopes)+4)
	for i, x := range s.scopes {
		x.names = x.names[:len(x.names):len(x.names)]
		c.scopes[i] = x
	}
	return c
}

// freeze makes a layer of the store's own variables.
func (s *Store) freeze() {
	l := &layer{vars: s.own, base: s.base, token: s.token}
	for name, v := range s.own {
		if v != nil {
			l.bytes += v.size(name)
		}
	}
	if s.base != nil {
		l.depth = s.base.depth + 1
		l.bytes += s.base.bytes
	}
	l.users.Store(1)
	s.base, s.own, s.token = l, map[string]*Var{}, &token{s}
	if l.depth > maxDepth {
		s.flatten()
	}
}

// flatten makes the chain one layer. The variables stay frozen.
func (s *Store) flatten() {
	all := map[string]*Var{}
	for l := s.base; l != nil; l = l.base {
		for name, v := range l.vars {
			if _, ok := all[name]; !ok {
				all[name] = v
			}
		}
	}
	maps.DeleteFunc(all, func(_ string, v *Var) bool { return v == nil })
	old := s.base
	s.base = &layer{vars: all}
	for name, v := range all {
		s.base.bytes += v.size(name)
	}
	s.base.users.Store(1)
	old.users.Add(-1)
	s.count(s.base.bytes - old.bytes)
}

// thaw takes back what nobody else stands on any more.
func (s *Store) thaw() {
	for l := s.base; l != nil && l.users.Load() == 1 && l.token != nil && l.token.home == s; l = s.base {
		for name, v := range s.own {
			if old := l.vars[name]; old != nil {
				s.count(-old.size(name))
			}
			for x := v; x != nil && x.owner == s.token; x = x.prev {
				x.owner = l.token
			}
			if v == nil && l.base == nil {
				delete(l.vars, name)
			} else {
				l.vars[name] = v
			}
		}
		s.own, s.base, s.token = l.vars, l.base, l.token
	}
}

// settle makes copies of what the store has borrowed, so that it may outlive
// those who lent it. Only variables are copied; elements are shared.
func (s *Store) settle() {
	if s.base == nil || !s.base.lent {
		return
	}
	l := s.base
	for ; l != nil && l.lent; l = l.base {
		for name, v := range l.vars {
			if _, ok := s.own[name]; ok {
				continue
			}
			if v != nil {
				v.lend()
				c := v.clone(s.token)
				for x := c; x.prev != nil; x = x.prev {
					x.prev.lend()
					x.prev = x.prev.clone(s.token)
				}
				v = c
				s.count(v.size(name))
			}
			s.own[name] = v
		}
	}
	s.base = l
	if l != nil {
		l.users.Add(1)
		s.count(l.bytes)
	}
}

// lend marks the elements as shared, of a variable that nobody else looks at
// just now.
func (v *Var) lend() {
	if v.array != nil {
		v.array.shared = true
	}
	if v.assoc != nil {
		v.assoc.shared = true
	}
}
