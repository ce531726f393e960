package variable

// Declare makes sure that a variable exists and changes its attributes. It
// does not follow references.
func (s *Store) Declare(name string, on, off Attr) error {
	v := s.Lookup(name)
	if v == nil {
		v = s.make(name)
	}
	switch {
	case v.attr&ReadOnly != 0 && off&ReadOnly != 0:
		return &Error{Kind: IsReadOnly, Name: name}
	case v.attr&Arrays != 0 && off&Arrays&v.attr != 0:
		return &Error{Kind: CannotDestroy, Name: name}
	case v.attr&Associate != 0 && on&Indexed != 0:
		return &Error{Kind: NotIndexed, Name: name}
	case v.attr&Indexed != 0 && on&Associate != 0:
		return &Error{Kind: NotAssociative, Name: name}
	case v.attr&Arrays != 0 && on&NameRef != 0:
		return &Error{Kind: RefArray, Name: name}
	case on&^v.attr == 0 && off&v.attr == 0 && v.attr&hidden == 0:
		return nil
	}
	v = s.mutable(name)
	v.attr &^= hidden
	if on&(Lower|Upper|Capital) != 0 {
		v.attr &^= Lower | Upper | Capital
	}
	if on&NameRef != 0 && v.attr&NameRef == 0 {
		v.attr &^= conversions
		if text := v.text(s.token); v.set && text != "" {
			if _, ok := Split(text); !ok {
				return &Error{Kind: InvalidRef, Name: text}
			}
		}
	}
	if (v.attr^on)&Export != 0 || off&Export != 0 {
		s.environValid = false
	}
	if on&Arrays != 0 && v.attr&Arrays == 0 && v.dyn == nil {
		s.become(v, on&Arrays)
	}
	v.attr = v.attr&^off | on
	s.changed(name, v)
	return nil
}
