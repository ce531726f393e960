package variable

import "strconv"

// An Element is one of a compound assignment: value, or [subscript]=value, or
// [subscript]+=value.
type Element struct {
	Subscript string
	Value     string
	At        bool // there is a subscript
	Add       bool
}

// SetList assigns as name=(...) and name+=(...) do. A variable that is no
// array becomes an indexed one. What is wrong with one element does not keep
// the others from being assigned; the first error is given.
func (s *Store) SetList(name string, list []Element, add bool) error {
	if s.Lookup(name).hides(name) {
		return s.Beneath(name, false, func() error { return s.SetList(name, list, add) })
	}
	r, err := s.destination(name)
	if err != nil {
		return err
	}
	if r.Element {
		return &Error{Kind: ListToElement, Name: r.Name + "[" + r.Subscript + "]"}
	}
	name = r.Name
	v := s.mutable(name)
	if v == nil {
		v = s.make(name)
	}
	if v.attr&ReadOnly != 0 {
		return &Error{Kind: IsReadOnly, Name: name}
	}
	if v.dyn != nil {
		return nil
	}
	v.attr &^= hidden
	if v.attr&NameRef != 0 {
		// It leads nowhere: it stops being a reference.
		s.Host.Warn("warning: %s: removing nameref attribute", name)
		v.attr &^= NameRef
	}
	if v.attr&Arrays == 0 {
		s.become(v, Indexed)
	}
	if v.attr&Associate != 0 {
		err = s.listKeys(name, v, list, add)
	} else {
		err = s.listIndexes(name, v, list, add)
	}
	v.set = true
	s.changed(name, v)
	return err
}

func (s *Store) listIndexes(name string, v *Var, list []Element, add bool) error {
	if v.array == nil || !add {
		if v.array != nil {
			s.count(-v.array.size)
		}
		v.array = &Array{}
		if len(list) > 4 && v.owner == s.token {
			v.array.dense = make([]string, 0, len(list))
		}
	}
	next := v.array.End()
	var first error
	for k := range list {
		e := &list[k]
		if e.At {
			i, err := s.index(v, e.Subscript)
			if err == nil && (i < 0 || e.Subscript == "") {
				err = &Error{Kind: BadSubscript, Name: "[" + e.Subscript + "]=" + e.Value}
			}
			if err != nil {
				if _, ok := err.(*Error); !ok {
					return err
				}
				if first == nil {
					first = err
				}
				continue
			}
			next = i
		}
		if err := s.putIndex(v, next, e.Value, e.Add); err != nil {
			return err
		}
		next++
	}
	return first
}

// listKeys makes a list the keys of an associative array. What [key]+=value
// appends to is the value that the key had before the list, as bash has it.
func (s *Store) listKeys(name string, v *Var, list []Element, add bool) error {
	before := v.assoc
	if v.assoc == nil || !add {
		if v.assoc != nil {
			s.count(-v.assoc.size)
		}
		v.assoc = NewAssoc()
	}
	if len(list) > 0 && !list[0].At {
		for k := 0; k < len(list); k += 2 {
			value := ""
			if k+1 < len(list) {
				value = list[k+1].Value
			}
			if list[k].Value == "" {
				return &Error{Kind: BadSubscript, Name: `""`}
			}
			if err := s.putKey(v, list[k].Value, value, false); err != nil {
				return err
			}
		}
		return nil
	}
	var first error
	for k := range list {
		e := &list[k]
		switch {
		case !e.At:
			if first == nil {
				first = &Error{Kind: NeedSubscript, Name: name + ": " + e.Value}
			}
			continue
		case e.Subscript == "":
			if first == nil {
				first = &Error{Kind: BadSubscript, Name: "[" + e.Subscript + "]=" + e.Value}
			}
			continue
		}
		value := e.Value
		if e.Add && !add {
			var err error
			if value, err = s.convert(v, before.value(e.Subscript), value, true); err != nil {
				return err
			}
		}
		if err := s.putKey(v, e.Subscript, value, e.Add && add); err != nil {
			return err
		}
	}
	return first
}

// SetValues makes a variable an indexed array of these values, or appends
// them; from is the index of the first. The store keeps the slice.
func (s *Store) SetValues(name string, values []string, from int64, clear bool) error {
	if s.Lookup(name).hides(name) {
		return s.Beneath(name, false, func() error { return s.SetValues(name, values, from, clear) })
	}
	r, err := s.destination(name)
	if err != nil {
		return err
	}
	if r.Element {
		return &Error{Kind: Invalid, Name: r.Name + "[" + r.Subscript + "]"}
	}
	if v := s.Lookup(r.Name); v != nil && v.attr&Associate != 0 {
		return &Error{Kind: NotIndexed, Name: r.Name}
	}
	v, err := s.element0(r.Name, Indexed)
	if v == nil || v.dyn != nil {
		return err
	}
	v.set = true
	if clear && from == 0 && v.attr&conversions == 0 {
		if v.array != nil {
			s.count(-v.array.size)
		}
		s.Meter.Bound("array", int64(len(values)), s.Limits.Array)
		v.array = NewArray(values)
		s.count(v.array.size)
		s.changed(r.Name, v)
		return nil
	}
	if clear {
		if v.array != nil {
			s.count(-v.array.size)
		}
		v.array = &Array{}
	}
	for i, value := range values {
		if err := s.putIndex(v, from+int64(i), value, false); err != nil {
			return err
		}
	}
	s.changed(r.Name, v)
	return nil
}

// Key writes an index as a subscript.
func Key(i int64) string { return strconv.FormatInt(i, 10) }
