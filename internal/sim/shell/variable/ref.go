package variable

import "strings"

// A Ref is what a name leads to when references are followed.
type Ref struct {
	Name      string
	Subscript string // as the reference has it
	Element   bool   // there is a subscript
}

// maxRefs is how many references may follow each other, as in bash.
const maxRefs = 8

// Resolve follows references from a name that may be one. A name that leads
// to itself is an error of kind Circular; a reference that leads nowhere yet
// gives the reference's own name.
func (s *Store) Resolve(name string) (Ref, error) {
	v := s.Lookup(name)
	first := name
	for range maxRefs {
		if v == nil || v.attr&NameRef == 0 || !v.set || v.str == "" {
			return Ref{Name: name}, nil
		}
		target := v.str
		if i := strings.IndexByte(target, '['); i > 0 && target[len(target)-1] == ']' {
			return Ref{Name: target[:i], Subscript: target[i+1 : len(target)-1], Element: true}, nil
		}
		if target == name {
			return Ref{Name: first}, &Error{Kind: Circular, Name: first}
		}
		name = target
		v = s.Lookup(name)
	}
	return Ref{Name: first}, &Error{Kind: Circular, Name: first}
}

// hides reports whether a variable is a local reference to its own name, which
// means the variable that it hides.
func (v *Var) hides(name string) bool {
	return v != nil && v.attr&NameRef != 0 && v.level > 0 && v.str == name
}

// Target returns what a reference is to, or "".
func (s *Store) Target(name string) string {
	v := s.Lookup(name)
	if v == nil || v.attr&NameRef == 0 {
		return ""
	}
	return v.str
}

// Valid reports whether a string can be a variable's name.
func Valid(name string) bool {
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if c != '_' && (c < '0' || c > '9' && c < 'A' || c > 'Z' && c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// Split takes "name[subscript]" apart; ok is false where it is neither that nor
// a name.
func Split(s string) (r Ref, ok bool) {
	i := strings.IndexByte(s, '[')
	if i < 0 {
		return Ref{Name: s}, Valid(s)
	}
	if s[len(s)-1] != ']' || i+2 > len(s)-1 || !Valid(s[:i]) {
		return Ref{Name: s}, false
	}
	return Ref{Name: s[:i], Subscript: s[i+1 : len(s)-1], Element: true}, true
}
