package variable

import (
	"strconv"
	"strings"
)

// Attr is a set of attributes, as declare gives them.
type Attr uint16

// The attributes.
const (
	Export    Attr = 1 << iota // -x
	ReadOnly                   // -r
	Integer                    // -i
	Lower                      // -l
	Upper                      // -u
	Capital                    // -c
	Trace                      // -t
	NameRef                    // -n
	Indexed                    // -a
	Associate                  // -A

	inform // changes are told to the store's Changed
	hidden // a local variable that was unset
)

// Arrays are the attributes that make a variable an array.
const Arrays = Indexed | Associate

const conversions = Integer | Lower | Upper | Capital

// A Var is one variable. What callers see of it is valid until the store
// changes.
type Var struct {
	owner *token
	attr  Attr
	set   bool // it has a value
	lazy  bool // str is not computed from num yet
	isNum bool // num is the value
	level int32
	mark  int32 // see Mark
	num   int64
	str   string
	grow  *strings.Builder // holds str, with room to append
	array *Array
	assoc *Assoc
	dyn   *Dynamic
	prev  *Var // what it hides
}

// A token marks what a store may change in place: the variables that have its
// present one. Those that have an earlier one are frozen.
type token struct{ home *Store }

// Attr returns the attributes.
func (v *Var) Attr() Attr { return v.attr &^ (inform | hidden) }

// Is reports whether the variable has one of the attributes.
func (v *Var) Is(a Attr) bool { return v.attr&a != 0 }

// Hidden reports whether it only keeps the place of a local variable that was
// unset.
func (v *Var) Hidden() bool { return v.attr&hidden != 0 }

// IsSet reports whether the variable has a value. An array has one when it was
// assigned to, even if it is empty.
func (v *Var) IsSet() bool { return v.set }

// Array returns the elements of an indexed array, or nil.
func (v *Var) Array() *Array { return v.array }

// Assoc returns the elements of an associative array, or nil.
func (v *Var) Assoc() *Assoc { return v.assoc }

// Level returns the scope of the variable; 0 is the global one.
func (v *Var) Level() int { return int(v.level) }

// Scalar returns the value of $name: that of a scalar, or of element 0.
func (v *Var) Scalar() (string, bool) {
	switch {
	case v.array != nil:
		return v.array.Get(0)
	case v.assoc != nil:
		return v.assoc.Get("0")
	case v.lazy:
		return strconv.FormatInt(v.num, 10), true
	}
	return v.str, v.set
}

// text is Scalar of a scalar, kept if the store may.
func (v *Var) text(mine *token) string {
	if v.lazy {
		s := strconv.FormatInt(v.num, 10)
		if mine != nil && v.owner == mine {
			mine.home.count(len(s)) // whoever replaces it gives it back
			v.str, v.lazy = s, false
		}
		return s
	}
	return v.str
}

func (v *Var) setString(s string) {
	v.str, v.set, v.lazy, v.isNum, v.grow, v.mark = s, true, false, false, nil, 0
}

func (v *Var) setInt(n int64) {
	v.num, v.set, v.lazy, v.isNum, v.grow, v.mark = n, true, true, true, nil, 0
	v.str = ""
}

// appendString appends in time in the order of len(s).
func (v *Var) appendString(old, s string) {
	if v.grow == nil || v.grow.Len() != len(old) {
		v.grow = &strings.Builder{}
		v.grow.Grow(2*len(old) + len(s))
		v.grow.WriteString(old)
	}
	v.grow.WriteString(s)
	v.str, v.set, v.lazy, v.isNum = v.grow.String(), true, false, false
}

// overhead is what a variable takes beside its text, about.
const overhead = 160

func (v *Var) size(name string) int {
	n := overhead + len(name) + len(v.str)
	if v.array != nil {
		n += v.array.size
	}
	if v.assoc != nil {
		n += v.assoc.size
	}
	return n
}

// clone makes a copy that a store may change; elements are shared until then.
func (v *Var) clone(owner *token) *Var {
	c := *v
	mine := v.owner != nil && v.owner.home == owner.home
	c.owner, c.grow = owner, nil
	if v.array != nil {
		c.array = v.array.share(mine)
	}
	if v.assoc != nil {
		c.assoc = v.assoc.share()
	}
	return &c
}

// parseInt reads a plain decimal number as arithmetic has it: no spaces, no
// leading zeros, no overflow.
func parseInt(s string) (int64, bool) {
	i, neg := 0, false
	if s != "" && s[0] == '-' {
		i, neg = 1, true
	}
	if n := len(s) - i; n == 0 || n > 18 || n > 1 && s[i] == '0' {
		return 0, false
	}
	var n int64
	for ; i < len(s); i++ {
		c := s[i] - '0'
		if c > 9 {
			return 0, false
		}
		n = n*10 + int64(c)
	}
	if neg {
		n = -n
	}
	return n, true
}
