package shell

import (
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/quote"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/expand"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/variable"
)

// list prints without operands.
func (d *declaration) list() int {
	s := d.s
	if d.functions || d.brief {
		return d.funcs(nil)
	}
	plain := d.on == 0 && d.off == 0 && !d.print && d.name != "local"
	if d.name == "export" {
		d.on = variable.Export
	}
	for _, name := range s.vars.Names() {
		s.t.Step(1)
		v := s.vars.Lookup(name)
		switch {
		case d.name == "local" && v.Level() != s.vars.Function():
		case plain:
			s.printVariable(name)
		case d.on == 0 || v.Is(d.on) && (d.on&variable.Arrays == 0 || v.Is(d.on&variable.Arrays)) && v.Attr()&d.on == d.on:
			d.declaration(name)
		}
	}
	if plain {
		s.printFunctions()
	}
	return 0
}

// printVariable prints a variable as set does.
func (s *Shell) printVariable(name string) {
	v, _ := s.vars.Var(name)
	if l := s.vars.Lookup(name); l != nil && l.Is(variable.NameRef) {
		if l.IsSet() {
			s.print(name + "=" + quote.Listing(s.vars.Target(name)) + "\n")
		}
		return
	}
	if v == nil || !v.IsSet() {
		return
	}
	if v.Array() != nil || v.Assoc() != nil {
		s.print(name + "=" + expand.Compound(v) + "\n")
		return
	}
	text, _ := v.Scalar()
	s.print(name + "=" + quote.Listing(text) + "\n")
}

// declaration prints a variable as declare -p does.
func (d *declaration) declaration(name string) { d.s.printDeclaration(name, d.name) }

func (s *Shell) printDeclaration(name, builtin string) {
	l := s.vars.Lookup(name)
	v := l
	if !l.Is(variable.NameRef) {
		v, _ = s.vars.Var(name)
	}
	letters := expand.Letters(v.Attr())
	head := "declare -"
	if letters == "" {
		letters = "-"
	}
	head += letters + " "
	if s.opt[oPosix] && (builtin == "export" || builtin == "readonly") {
		head = builtin + " "
		if v.Is(variable.Arrays) {
			head = builtin + " -" + strings.Trim(letters, "rx") + " "
		}
	}
	switch {
	case !v.IsSet():
		s.print(head + name + "\n")
	case l.Is(variable.NameRef):
		s.print(head + name + "=" + quote.Value(s.vars.Target(name)) + "\n")
	case v.Array() != nil || v.Assoc() != nil:
		s.print(head + name + "=" + expand.Compound(v) + "\n")
	default:
		text, _ := v.Scalar()
		s.print(head + name + "=" + quote.Value(text) + "\n")
	}
}

// show is declare -p with names.
func (d *declaration) show(operands []operand) int {
	for i := range operands {
		name := operands[i].text
		if operands[i].assign != nil {
			name = operands[i].assign.Name
		}
		v := d.s.vars.Lookup(name)
		if v == nil || v.Hidden() && v.Level() != d.s.vars.Function() || d.name == "local" && v.Level() != d.s.vars.Function() {
			d.s.complain("%s: %s: not found", d.name, name)
			d.status = 1
			continue
		}
		d.declaration(name)
	}
	return d.status
}

// printFunctions prints all functions.
func (s *Shell) printFunctions() {
	for _, name := range s.functionNames() {
		s.print(printFunction(s.funcs[name]))
	}
}

// funcs is declare -f and -F, export -f and readonly -f.
func (d *declaration) funcs(operands []operand) int {
	s := d.s
	if len(operands) == 0 {
		for _, name := range s.functionNames() {
			f := s.funcs[name]
			if d.name == "export" && !f.export || d.on&variable.Export != 0 && !f.export ||
				d.on&variable.ReadOnly != 0 && !f.readonly || d.on&variable.Trace != 0 && !f.trace {
				continue
			}
			if d.brief {
				s.print("declare -f" + functionLetters(f) + " " + name + "\n")
				continue
			}
			s.print(printFunction(f))
			if l := functionLetters(f); l != "" {
				s.print("declare -f" + l + " " + name + "\n")
			}
		}
		return 0
	}
	const marks = variable.Export | variable.ReadOnly | variable.Trace
	for i := range operands {
		name := operands[i].text
		if operands[i].assign != nil {
			s.complain("%s: cannot use `-f' to make functions", d.name)
			return 1
		}
		f := s.funcs[name]
		switch {
		case f == nil && d.name == "export":
			s.complain("export: %s: not a function", name)
			d.status = 1
		case f == nil && d.name == "readonly":
			s.complain("readonly: %s: not a function", name)
			d.status = 1
		case f == nil:
			d.status = 1
		case (d.on|d.off)&marks != 0:
			s.markFunction(f, d.on, d.off)
		case d.brief:
			if s.opt[oExtdebug] {
				s.printf("%s %d %s\n", name, f.line, f.source)
			} else {
				s.print(name + "\n")
			}
		default:
			s.print(printFunction(f))
		}
	}
	return d.status
}

func functionLetters(f *function) string {
	l := ""
	if f.readonly {
		l += "r"
	}
	if f.trace {
		l += "t"
	}
	if f.export {
		l += "x"
	}
	return l
}

func (s *Shell) markFunction(f *function, on, off variable.Attr) {
	c := *f
	if (on|off)&variable.Export != 0 {
		c.export = on&variable.Export != 0
		s.exported++
	}
	if on&variable.ReadOnly != 0 {
		c.readonly = true
	}
	if (on|off)&variable.Trace != 0 {
		c.trace = on&variable.Trace != 0
	}
	s.ownFuncs()
	s.funcs[c.name] = &c
}
