package variable

// A Dynamic computes the value of a variable. It stays when the variable is
// assigned to, and goes when it is unset. The functions get the host of the
// store that asks.
type Dynamic struct {
	Scalar func(h Host) string
	Array  func(h Host) []string // instead of Scalar, for an indexed array
	Assoc  func(h Host) []string // instead of Scalar: keys and values by turns
	// Chains is how many the hash table has that decides about the order of
	// Assoc: 0 is what an associative array has.
	Chains int

	// Assign takes a value that is assigned; nil ignores it.
	Assign func(h Host, value string)
	// AssignAt takes one for an element; nil ignores it.
	AssignAt func(h Host, subscript, value string)
	// UnsetAt is told of an element that is unset; nil ignores it.
	UnsetAt func(h Host, subscript string)
}

func (d *Dynamic) compute(s *Store, v *Var) *Var {
	c := &Var{attr: v.attr, set: true, level: v.level}
	switch {
	case d.Array != nil:
		list := d.Array(s.Host)
		if list == nil {
			c.set = false
		}
		c.array = NewArray(append([]string(nil), list...))
		c.attr |= Indexed
	case d.Assoc != nil:
		c.assoc = NewAssoc()
		if d.Chains > 0 {
			c.assoc.buckets = uint32(d.Chains)
		}
		c.attr |= Associate
		list := d.Assoc(s.Host)
		for i := 0; i+1 < len(list); i += 2 {
			c.assoc.put(list[i], list[i+1])
		}
	default:
		c.str = d.Scalar(s.Host)
	}
	return c
}

// Compute makes a variable a computed one.
func (s *Store) Compute(name string, d *Dynamic, a Attr) {
	v := s.mutable(name)
	if v == nil {
		v = s.make(name)
	}
	if d.Array != nil {
		a |= Indexed
	}
	if d.Assoc != nil {
		a |= Associate
	}
	v.dyn, v.set = d, true
	v.attr |= a
}
