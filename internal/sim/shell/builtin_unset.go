package shell

import (
	"errors"

	"github.com/paddock-sandbox/paddock/internal/sim/shell/variable"
)

func biUnset(s *Shell, args []string) int {
	var onlyFunc, onlyVar, ref bool
	args = args[1:]
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		for _, c := range a[1:] {
			switch c {
			case 'f':
				onlyFunc = true
			case 'v':
				onlyVar = true
			case 'n':
				ref = true
			default:
				s.complain("unset: -%c: invalid option", c)
				s.errout("unset: usage: unset [-f] [-v] [-n] [name ...]\n")
				return 2
			}
		}
	}
	if onlyFunc && onlyVar {
		s.complain("unset: cannot simultaneously unset a function and a variable")
		return 1
	}
	st := 0
	for _, a := range args {
		var err error
		switch {
		case onlyFunc:
			err = s.unsetFunction(a)
		default:
			err = s.unsetName(a, onlyVar, ref)
		}
		if err != nil {
			st = 1
			s.complain("unset: %s", err)
		}
	}
	return st
}

func (s *Shell) unsetFunction(name string) error {
	f := s.funcs[name]
	if f == nil {
		return nil
	}
	if f.readonly {
		return errors.New(name + ": cannot unset: readonly function")
	}
	s.ownFuncs()
	delete(s.funcs, name)
	return nil
}

func (s *Shell) unsetName(a string, onlyVar, ref bool) error {
	r, ok := variable.Split(a)
	if !ok {
		if onlyVar {
			return &variable.Error{Kind: variable.Invalid, Name: a}
		}
		return s.unsetFunction(a)
	}
	v := s.vars.Lookup(r.Name)
	if v != nil && v.Is(variable.NameRef) && !ref {
		t, err := s.vars.Resolve(r.Name)
		if err != nil {
			return err
		}
		if t.Element {
			r = t
		} else {
			r.Name = t.Name
		}
		v = s.vars.Lookup(r.Name)
	}
	if r.Element {
		return s.unsetElement(v, r)
	}
	if v == nil && !onlyVar {
		return s.unsetFunction(a)
	}
	return s.vars.Unset(r.Name)
}

func (s *Shell) unsetElement(v *variable.Var, r variable.Ref) error {
	if v == nil {
		return nil
	}
	if v.Is(variable.Associate) {
		key := r.Subscript
		if key != "@" && key != "*" && !s.opt[oAssocExpandOnce] {
			var err error
			if key, err = s.Expander().Key(key); err != nil {
				return err
			}
		}
		return s.vars.UnsetAt(r.Name, key)
	}
	if r.Subscript == "@" || r.Subscript == "*" {
		if !v.Is(variable.Indexed) {
			return &variable.Error{Kind: variable.NotArray, Name: r.Name}
		}
		if v.Is(variable.ReadOnly) {
			return &variable.Error{Kind: variable.CannotUnset, Name: r.Name}
		}
		return s.vars.SetList(r.Name, nil, false)
	}
	i, err := s.Expander().Index(r.Subscript)
	if err != nil {
		return err
	}
	err = s.vars.UnsetAt(r.Name, variable.Key(i))
	var e *variable.Error
	if errors.As(err, &e) && e.Kind == variable.BadSubscript {
		return &variable.Error{Kind: variable.BadSubscript, Name: "[" + r.Subscript + "]"}
	}
	return err
}
