package variable

// A scope is a function that runs, or the assignments before a command.
type scope struct {
	temporary bool
	names     []string
	options   any // what "local -" keeps
}

// PushFunction begins the scope of a function.
func (s *Store) PushFunction() { s.push(false) }

// PushTemporary begins a scope for the assignments before a command; they are
// made by SetTemporary. A function's own scope goes on top of it.
func (s *Store) PushTemporary() { s.push(true) }

func (s *Store) push(temporary bool) {
	n := len(s.scopes)
	if n < cap(s.scopes) {
		s.scopes = s.scopes[:n+1]
		s.scopes[n].temporary, s.scopes[n].options = temporary, nil
		s.scopes[n].names = s.scopes[n].names[:0]
		return
	}
	s.scopes = append(s.scopes, scope{temporary: temporary})
}

// Pop ends the innermost scope. It gives what KeepOptions kept in it, or nil.
func (s *Store) Pop() any {
	n := len(s.scopes) - 1
	top := &s.scopes[n]
	for i := len(top.names) - 1; i >= 0; i-- {
		name := top.names[i]
		if v := s.Lookup(name); v != nil && int(v.level) == n {
			s.reveal(name, v)
		}
	}
	options := top.options
	clear(top.names)
	top.names, top.options = top.names[:0], nil
	s.scopes = s.scopes[:n]
	return options
}

// reveal puts what v hides in its place.
func (s *Store) reveal(name string, v *Var) {
	if v.owner == s.token {
		s.count(-v.size(name))
	}
	if v.prev == nil && s.base == nil {
		delete(s.own, name)
	} else {
		s.own[name] = v.prev
	}
	exported := v.attr & Export
	if v.prev != nil {
		exported |= v.prev.attr & Export
	}
	if exported != 0 {
		s.environValid = false
	}
	if v.attr&inform != 0 && s.Changed != nil {
		s.Changed(name)
	}
}

// Function returns the depth of the innermost function's scope, 0 if there is
// none.
func (s *Store) Function() int {
	n := len(s.scopes) - 1
	for n > 0 && s.scopes[n].temporary {
		n--
	}
	return n
}

// KeepOptions keeps a value until the innermost function's scope ends, if
// there is none yet.
func (s *Store) KeepOptions(options any) {
	if f := s.Function(); f > 0 && s.scopes[f].options == nil {
		s.scopes[f].options = options
	}
}

// RevealLocal changes what unset does to a local variable of a caller: with
// off (bash's default) the variable that it hides is seen again.
func (s *Store) RevealLocal(on bool) { s.unsetReveals = !on }

// Local makes a variable of the innermost function; one that it has already is
// kept. With inherit, it begins as the variable that it hides.
func (s *Store) Local(name string, inherit bool) error {
	f := s.Function()
	old := s.Lookup(name)
	if old != nil && int(old.level) == f {
		s.mutable(name).attr &^= hidden
		return nil
	}
	if old != nil && old.attr&ReadOnly != 0 && old.attr&NameRef == 0 && old.level == 0 {
		return &Error{Kind: IsReadOnly, Name: name}
	}
	v := s.fresh(name)
	if old != nil {
		v.attr |= old.attr & Export
		if old.attr&hidden != 0 {
			v.attr &^= Export
		}
		switch {
		case old.level > 0 && int(old.level) >= f-1 && s.scopes[old.level].temporary:
			inherit = true
		case old.attr&NameRef != 0:
			inherit = false
		}
	}
	if inherit && old != nil {
		s.inherit(name, v, old)
	}
	v.level = int32(f)
	s.scopes[f].names = append(s.scopes[f].names, name)
	if old != nil && int(old.level) > f {
		// The assignment before the command itself hides the new one.
		top := s.mutable(name)
		v.prev = top.prev
		top.prev = v
		return nil
	}
	v.prev = old
	s.own[name] = v
	s.changed(name, v)
	return nil
}

func (s *Store) inherit(name string, v, old *Var) {
	if old.dyn != nil {
		old = old.dyn.compute(s, old)
	}
	v.attr = old.attr &^ hidden
	v.set, v.lazy, v.isNum, v.num, v.str = old.set, old.lazy, old.isNum, old.num, old.str
	if old.array != nil {
		v.array = &Array{}
		for i, x := range old.array.All() {
			v.array.put(i, x)
		}
	}
	if old.assoc != nil {
		v.assoc = NewAssoc()
		for k, x := range old.assoc.All() {
			v.assoc.put(k, x)
		}
	}
	s.count(v.size(name) - overhead - len(name))
}

// SetTemporary assigns in the innermost scope, which is a temporary one, as
// the assignment before a command does.
func (s *Store) SetTemporary(name, value string, add bool) error {
	r, err := s.destination(name)
	if err != nil {
		return err
	}
	if r.Element {
		return &Error{Kind: Invalid, Name: r.Name + "[" + r.Subscript + "]"}
	}
	name = r.Name
	old := s.Lookup(name)
	if old != nil && old.attr&ReadOnly != 0 {
		return &Error{Kind: IsReadOnly, Name: name}
	}
	if add && old != nil {
		before, _ := s.Get(name)
		value = before + value
	}
	s.bound(len(value))
	level := len(s.scopes) - 1
	if old != nil && int(old.level) == level {
		v := s.mutable(name)
		s.count(len(value) - len(v.str))
		v.setString(value)
		s.changed(name, v)
		return nil
	}
	v := s.fresh(name)
	v.attr |= Export
	v.level = int32(level)
	v.prev = old
	s.count(len(value))
	v.setString(value)
	s.own[name] = v
	s.scopes[level].names = append(s.scopes[level].names, name)
	s.changed(name, v)
	return nil
}

// Temporary reports whether a variable is of an assignment before a command.
func (s *Store) Temporary(name string) bool {
	v := s.Lookup(name)
	return v != nil && v.level > 0 && s.scopes[v.level].temporary
}

// Beneath does something as if the visible variable of that name, which is
// local or temporary, were not there. With global, as if none of them were.
func (s *Store) Beneath(name string, global bool, do func() error) error {
	var hiding []*Var
	v := s.Lookup(name)
	for v != nil && v.level > 0 && (global || len(hiding) == 0) {
		hiding = append(hiding, v)
		v = v.prev
	}
	if len(hiding) == 0 {
		return do()
	}
	s.own[name] = v
	err := do()
	v = s.Lookup(name)
	for i := len(hiding) - 1; i >= 0; i-- {
		h := hiding[i]
		if h.owner != s.token {
			h = h.clone(s.token)
			s.count(h.size(name))
		}
		h.prev = v
		v = h
	}
	s.own[name] = v
	s.environValid = false
	return err
}

// Unset removes a variable; it does not follow references. What a local one
// hides is seen again where bash has it so.
func (s *Store) Unset(name string) error {
	v := s.Lookup(name)
	if v == nil {
		return nil
	}
	if v.attr&ReadOnly != 0 {
		return &Error{Kind: CannotUnset, Name: name}
	}
	f := s.Function()
	if v.level > 0 && !s.scopes[v.level].temporary && (int(v.level) == f || s.unsetReveals) {
		h := s.fresh(name)
		h.attr |= hidden
		h.level, h.prev = v.level, v.prev
		if v.owner == s.token {
			s.count(-v.size(name))
		}
		s.own[name] = h
		if v.attr&Export != 0 {
			s.environValid = false
		}
		s.changed(name, h)
		return nil
	}
	s.reveal(name, v)
	return nil
}

// UnsetAt removes an element. The name is no reference.
func (s *Store) UnsetAt(name, subscript string) error {
	v := s.Lookup(name)
	if v == nil {
		return nil
	}
	if v.attr&ReadOnly != 0 {
		return &Error{Kind: CannotUnset, Name: name}
	}
	if v.dyn != nil {
		if v.dyn.UnsetAt != nil {
			v.dyn.UnsetAt(s.Host, subscript)
		}
		return nil
	}
	if v.attr&Associate != 0 {
		if v = s.mutable(name); v.assoc != nil {
			s.count(v.assoc.remove(subscript))
		}
		s.changed(name, v)
		return nil
	}
	i, err := s.index(v, subscript)
	if err != nil {
		return err
	}
	if v.attr&Indexed == 0 {
		if i == 0 {
			return s.Unset(name)
		}
		return &Error{Kind: NotArray, Name: name}
	}
	if i < 0 {
		return &Error{Kind: BadSubscript, Name: "[" + subscript + "]"}
	}
	if v = s.mutable(name); v.array != nil {
		s.count(v.array.remove(i))
	}
	s.changed(name, v)
	return nil
}
