package variable

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const plain = Export | Trace | inform // what makes no difference to a value

// Set assigns to a variable as name=value does: through references, by the
// variable's attributes, to element 0 of an array.
func (s *Store) Set(name, value string) error {
	v, ok := s.own[name]
	if ok && v != nil && v.owner == s.token && v.attr&^plain == 0 && v.dyn == nil {
		s.bound(len(value))
		s.count(len(value) - len(v.str))
		v.setString(value)
		if v.attr != 0 {
			s.changed(name, v)
		}
		return nil
	}
	return s.assign(name, value, false)
}

// SetInt is Set of a number, which need not be written out.
func (s *Store) SetInt(name string, n int64) error {
	v, ok := s.own[name]
	if ok && v != nil && v.owner == s.token && v.attr&^(plain|Integer) == 0 && v.dyn == nil {
		s.count(-len(v.str))
		v.setInt(n)
		if v.attr != 0 {
			s.changed(name, v)
		}
		return nil
	}
	return s.assign(name, strconv.FormatInt(n, 10), false)
}

// Append assigns as name+=value does.
func (s *Store) Append(name, value string) error {
	v, ok := s.own[name]
	if ok && v != nil && v.owner == s.token && v.attr&^plain == 0 && v.dyn == nil {
		s.appendTo(v, value)
		if v.attr != 0 {
			s.changed(name, v)
		}
		return nil
	}
	return s.assign(name, value, true)
}

func (s *Store) appendTo(v *Var, value string) {
	old := v.text(s.token)
	s.bound(len(old) + len(value))
	s.count(len(value))
	v.appendString(old, value)
}

func (s *Store) bound(n int) {
	if int64(n) > s.Limits.String {
		s.Meter.Bound("string", int64(n), s.Limits.String)
	}
}

// destination follows references for an assignment.
func (s *Store) destination(name string) (Ref, error) {
	v := s.Lookup(name)
	if v == nil || v.attr&NameRef == 0 {
		if !Valid(name) {
			return Ref{}, &Error{Kind: Invalid, Name: name}
		}
		return Ref{Name: name}, nil
	}
	r, err := s.Resolve(name)
	if err == nil && !Valid(r.Name) {
		err = &Error{Kind: Invalid, Name: r.Name}
	}
	return r, err
}

func (s *Store) assign(name, value string, add bool) error {
	if s.Lookup(name).hides(name) {
		return s.Beneath(name, false, func() error { return s.assign(name, value, add) })
	}
	r, err := s.destination(name)
	if err != nil {
		return err
	}
	if r.Element {
		return s.SetAt(r.Name, r.Subscript, value, add)
	}
	name = r.Name
	v := s.Lookup(name)
	switch {
	case v == nil:
		s.make(name)
	case v.attr&ReadOnly != 0:
		return &Error{Kind: IsReadOnly, Name: name}
	case v.dyn != nil && v.dyn.Scalar == nil:
		if v.dyn.AssignAt != nil {
			v.dyn.AssignAt(s.Host, "0", value)
		}
		return nil
	case v.dyn != nil:
		return s.assignDynamic(v, value, add)
	}
	v = s.mutable(name)
	v.attr &^= hidden
	err = s.give(name, v, value, add)
	s.changed(name, v)
	return err
}

func (s *Store) assignDynamic(v *Var, value string, add bool) error {
	if v.attr&Integer != 0 {
		n, err := s.Host.Evaluate(value)
		if err != nil {
			return err
		}
		value = strconv.FormatInt(n, 10)
	} else if add {
		value = v.dyn.Scalar(s.Host) + value
	}
	if v.dyn.Assign != nil {
		v.dyn.Assign(s.Host, value)
	}
	return nil
}

// give assigns to a variable that may be changed, whatever it is.
func (s *Store) give(name string, v *Var, value string, add bool) error {
	switch {
	case v.attr&NameRef != 0:
		return s.point(name, v, value)
	case v.attr&Indexed != 0:
		return s.putIndex(v, 0, value, add)
	case v.attr&Associate != 0:
		return s.putKey(v, "0", value, add)
	case v.attr&conversions == 0:
		if add && v.set {
			s.appendTo(v, value)
			return nil
		}
		s.bound(len(value))
		s.count(len(value) - len(v.str))
		v.setString(value)
		return nil
	}
	old := ""
	if add {
		old = v.text(s.token)
	}
	value, err := s.convert(v, old, value, add)
	if err != nil {
		return err
	}
	s.bound(len(value))
	s.count(len(value) - len(v.str))
	v.setString(value)
	return nil
}

// point makes a reference lead to a name.
func (s *Store) point(name string, v *Var, target string) error {
	if _, ok := Split(target); !ok && target != "" {
		return &Error{Kind: InvalidRef, Name: target}
	}
	if target == name {
		if v.level == 0 {
			return &Error{Kind: SelfRef, Name: name}
		}
		s.Host.Warn("warning: %s: circular name reference", name)
	}
	s.count(len(target) - len(v.str))
	v.setString(target)
	if target == "" {
		v.set = false
	}
	return nil
}

// convert applies the attributes to a value.
func (s *Store) convert(v *Var, old, value string, add bool) (string, error) {
	if v.attr&Integer != 0 {
		n, ok := parseInt(value)
		if !ok {
			var err error
			if n, err = s.Host.Evaluate(value); err != nil {
				return "", err
			}
		}
		if add {
			m, ok := parseInt(old)
			if !ok {
				var err error
				if m, err = s.Host.Evaluate(old); err != nil {
					return "", err
				}
			}
			n += m
		}
		return strconv.FormatInt(n, 10), nil
	}
	value = old + value
	switch {
	case v.attr&Capital != 0:
		_, n := utf8.DecodeRuneInString(value)
		return mapCase(value[:n], unicode.ToUpper) + mapCase(value[n:], unicode.ToLower), nil
	case v.attr&Upper != 0:
		return mapCase(value, unicode.ToUpper), nil
	case v.attr&Lower != 0:
		return mapCase(value, unicode.ToLower), nil
	}
	return value, nil
}

// mapCase keeps bytes that are no characters as they are, and characters whose
// other case takes another length.
func mapCase(s string, f func(rune) rune) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		x := r
		if r != utf8.RuneError || n > 1 {
			x = f(r)
		}
		if x == r {
			b.WriteString(s[i : i+n])
		} else {
			b.WriteRune(x)
		}
		i += n
	}
	return b.String()
}

// index computes a subscript of an indexed array. A negative one counts from
// the end; one that is before the beginning stays negative.
func (s *Store) index(v *Var, subscript string) (int64, error) {
	i, ok := parseInt(subscript)
	if !ok {
		var err error
		if i, err = s.Host.Evaluate(subscript); err != nil {
			return 0, err
		}
	}
	if i < 0 {
		end := int64(0)
		if v != nil && v.array != nil {
			end = v.array.End()
		} else if v != nil && v.set {
			end = 1
		}
		i += end
	}
	return i, nil
}

// SetAt assigns to an element as name[subscript]=value does. The subscript is
// a key of an associative array as it stands; otherwise it is computed.
func (s *Store) SetAt(name, subscript, value string, add bool) error {
	v := s.Lookup(name)
	if v.hides(name) {
		return s.Beneath(name, false, func() error { return s.SetAt(name, subscript, value, add) })
	}
	if v != nil && v.attr&NameRef != 0 {
		r, err := s.destination(name)
		if err != nil {
			return err
		}
		if r.Element {
			return &Error{Kind: Invalid, Name: r.Name + "[" + r.Subscript + "]"}
		}
		name = r.Name
		v = s.Lookup(name)
	}
	if v != nil && v.attr&Associate != 0 {
		return s.SetKey(name, subscript, value, add)
	}
	i, err := s.index(v, subscript)
	if err != nil {
		return err
	}
	if i < 0 {
		return &Error{Kind: BadSubscript, Name: name + "[" + subscript + "]"}
	}
	return s.SetIndex(name, i, value, add)
}

// SetIndex assigns to an element of an indexed array, which a scalar becomes.
// Name is no reference, i is not negative.
func (s *Store) SetIndex(name string, i int64, value string, add bool) error {
	if s.Lookup(name).hides(name) {
		return s.Beneath(name, false, func() error { return s.SetIndex(name, i, value, add) })
	}
	v, err := s.element0(name, Indexed)
	if v == nil {
		return err
	}
	if v.dyn != nil {
		if v.dyn.AssignAt != nil {
			v.dyn.AssignAt(s.Host, strconv.FormatInt(i, 10), value)
		}
		return nil
	}
	err = s.putIndex(v, i, value, add)
	s.changed(name, v)
	return err
}

// SetKey assigns to an element of an associative array. Name is no reference.
func (s *Store) SetKey(name, key, value string, add bool) error {
	if s.Lookup(name).hides(name) {
		return s.Beneath(name, false, func() error { return s.SetKey(name, key, value, add) })
	}
	v, err := s.element0(name, Associate)
	if v == nil {
		return err
	}
	if v.dyn != nil {
		if v.dyn.AssignAt != nil {
			v.dyn.AssignAt(s.Host, key, value)
		}
		return nil
	}
	err = s.putKey(v, key, value, add)
	s.changed(name, v)
	return err
}

// element0 gives an array for changing; kind is what it becomes if it is none.
func (s *Store) element0(name string, kind Attr) (*Var, error) {
	if !Valid(name) {
		return nil, &Error{Kind: Invalid, Name: name}
	}
	v := s.mutable(name)
	if v == nil {
		v = s.make(name)
	}
	if v.attr&ReadOnly != 0 {
		return nil, &Error{Kind: IsReadOnly, Name: name}
	}
	v.attr &^= hidden
	if v.attr&Arrays == 0 && v.dyn == nil {
		s.become(v, kind)
	}
	return v, nil
}

// become makes a scalar an array that holds its value.
func (s *Store) become(v *Var, kind Attr) {
	value, set := v.text(s.token), v.set
	v.attr |= kind
	v.str, v.grow, v.lazy, v.isNum = "", nil, false, false
	n := -len(value)
	if kind == Associate {
		v.assoc = NewAssoc()
		if set {
			n += v.assoc.put("0", value)
		}
	} else {
		v.array = &Array{}
		if set {
			n += v.array.put(0, value)
		}
	}
	s.count(n)
}

func (s *Store) putIndex(v *Var, i int64, value string, add bool) error {
	if v.array == nil {
		v.array = &Array{}
	}
	if add || v.attr&conversions != 0 {
		old := ""
		if add {
			old, _ = v.array.Get(i)
		}
		var err error
		if value, err = s.convert(v, old, value, add); err != nil {
			return err
		}
	}
	s.bound(len(value))
	if n := int64(v.array.count); n >= s.Limits.Array {
		s.Meter.Bound("array", n+1, s.Limits.Array)
	}
	v.set = true
	s.count(v.array.put(i, value))
	return nil
}

func (s *Store) putKey(v *Var, key, value string, add bool) error {
	if v.assoc == nil {
		v.assoc = NewAssoc()
	}
	if add || v.attr&conversions != 0 {
		old := ""
		if add {
			old, _ = v.assoc.Get(key)
		}
		var err error
		if value, err = s.convert(v, old, value, add); err != nil {
			return err
		}
	}
	s.bound(len(value))
	if n := int64(v.assoc.Len()); n >= s.Limits.Array {
		s.Meter.Bound("array", n+1, s.Limits.Array)
	}
	v.set = true
	s.count(v.assoc.put(key, value))
	return nil
}

// SetRef makes a reference lead to another name.
func (s *Store) SetRef(name, target string) error {
	v := s.mutable(name)
	if v == nil {
		v = s.make(name)
	}
	if v.attr&ReadOnly != 0 {
		return &Error{Kind: IsReadOnly, Name: name}
	}
	v.attr |= NameRef
	err := s.point(name, v, target)
	s.changed(name, v)
	return err
}
