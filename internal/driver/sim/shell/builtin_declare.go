package shell

import (
	"errors"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/quote"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/shell/expand"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/shell/tree"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/shell/variable"
)

const (
	declareUsage  = "[-aAfFgiIlnrtux] [name[=value] ...] or %s -p [-aAfFilnrtux] [name ...]"
	localUsage    = "local: usage: local [option] name[=value] ..."
	exportUsage   = "export: usage: export [-fn] [name[=value] ...] or export -p"
	readonlyUsage = "readonly: usage: readonly [-aAf] [name[=value] ...] or readonly -p"
)

// A declaration is a run of declare or its like.
type declaration struct {
	s    *Shell
	name string // of the builtin
	on   variable.Attr
	off  variable.Attr

	print     bool // -p
	functions bool // -f
	brief     bool // -F
	global    bool // -g
	inherit   bool // -I
	local     bool // variables are a function's
	status    int
}

// An operand is an argument of declare that is no option.
type operand struct {
	text   string
	assign *tree.Assign // instead of text
	value  string       // of assign, expanded
	list   []variable.Element
}

// biDeclare is declare, typeset, local, export and readonly. With a command, its
// words from the first assignment on are still to be expanded.
func biDeclare(s *Shell, c *tree.Simple, args []string) int {
	d := &declaration{s: s, name: args[0]}
	args, ok := d.options(args[1:])
	if !ok {
		return 2
	}
	if d.name == "local" && s.vars.Function() == 0 {
		s.complain("local: can only be used in a function")
		return 1
	}
	switch d.name {
	case "declare", "typeset":
		d.local = s.vars.Function() > 0 && !d.global
	case "local":
		d.local = true
	}
	operands, err := d.operands(c, args)
	if err != nil {
		return s.wordError(err)
	}
	if len(operands) == 0 {
		return d.list()
	}
	if d.functions || d.brief {
		return d.funcs(operands)
	}
	if d.print && d.name != "export" && d.name != "readonly" {
		return d.show(operands)
	}
	for i := range operands {
		d.operand(&operands[i])
		if s.flow != flowNone {
			return s.status
		}
	}
	return d.status
}

// complain writes a message of a builtin.
func (s *Shell) complain(format string, args ...any) {
	s.flushOut()
	s.Warn(format, args...)
}

func (d *declaration) fail(err error) {
	d.status = 1
	var v *variable.Error
	if errors.As(err, &v) && v.Kind == variable.IsReadOnly && (d.name == "export" || d.name == "readonly") {
		d.s.complain("%s", err)
		return
	}
	d.s.complain("%s: %s", d.name, err)
}

func (d *declaration) options(args []string) ([]string, bool) {
	for len(args) > 0 {
		a := args[0]
		if len(a) < 2 || a[0] != '-' && a[0] != '+' {
			break
		}
		args = args[1:]
		if a == "--" {
			break
		}
		for i := 1; i < len(a); i++ {
			if !d.option(a[0] == '-', a[i]) {
				d.usage(a[:1] + a[i:i+1])
				return nil, false
			}
		}
	}
	const cases = variable.Lower | variable.Upper | variable.Capital
	if n := d.on & cases; n&(n-1) != 0 {
		d.on &^= cases
		d.off |= cases
	}
	switch d.name {
	case "readonly":
		d.on |= variable.ReadOnly
	case "export":
		if d.off&variable.Export == 0 {
			d.on |= variable.Export
		}
	}
	return args, true
}

func (d *declaration) usage(opt string) {
	d.s.complain("%s: %s: invalid option", d.name, opt)
	switch d.name {
	case "local":
		d.s.errout(localUsage + "\n")
	case "export":
		d.s.errout(exportUsage + "\n")
	case "readonly":
		d.s.errout(readonlyUsage + "\n")
	default:
		d.s.errout(d.name + ": usage: " + d.name + " " + strings.ReplaceAll(declareUsage, "%s", d.name) + "\n")
	}
}

func (d *declaration) option(on bool, c byte) bool {
	var a variable.Attr
	switch d.name {
	case "export":
		switch c {
		case 'p':
			d.print = true
		case 'f':
			d.functions = true
		case 'n':
			d.off |= variable.Export
		default:
			return false
		}
		return on
	case "readonly":
		if !strings.ContainsRune("aAfp", rune(c)) {
			return false
		}
	}
	switch c {
	case 'a':
		a = variable.Indexed
	case 'A':
		a = variable.Associate
	case 'c':
		a = variable.Capital
	case 'i':
		a = variable.Integer
	case 'l':
		a = variable.Lower
	case 'n':
		a = variable.NameRef
	case 'r':
		a = variable.ReadOnly
	case 't':
		a = variable.Trace
	case 'u':
		a = variable.Upper
	case 'x':
		a = variable.Export
	case 'p':
		d.print = true
	case 'f':
		d.functions = true
	case 'F':
		d.brief = true
	case 'g':
		d.global = true
	case 'I':
		d.inherit = true
	default:
		return false
	}
	if on {
		d.on |= a
	} else {
		d.off |= a
	}
	return true
}

// operands expands what is left of the command.
func (d *declaration) operands(c *tree.Simple, args []string) ([]operand, error) {
	list := make([]operand, 0, len(args)+4)
	for _, a := range args {
		list = append(list, operand{text: a})
	}
	if c == nil || !c.Declares {
		return list, nil
	}
	x := d.s.Expander()
	rest := false
	for i := 1; i < len(c.Words); i++ {
		w := &c.Words[i]
		if w.Assign == nil {
			if !rest {
				continue // expanded before
			}
			fields, err := d.s.fields(nil, c.Words[i:i+1])
			if err != nil {
				return nil, err
			}
			for _, f := range fields {
				list = append(list, operand{text: f})
			}
			continue
		}
		rest = true
		o := operand{assign: w.Assign}
		var err error
		if w.Assign.X.IsList() {
			o.list, err = x.Elements(w.Assign.X, d.keys(w.Assign.Name))
		} else {
			o.value, err = x.Value(w.Assign.X)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, o)
	}
	return list, nil
}

// keys tells whether a name is, or is going to be, an associative array.
func (d *declaration) keys(name string) bool {
	if d.on&variable.Arrays != 0 {
		return d.on&variable.Associate != 0
	}
	v, _ := d.s.vars.Var(name)
	return v != nil && v.Is(variable.Associate)
}

// A target is a name to declare, with what to assign to it.
type target struct {
	name   string
	sub    string
	at     bool
	assign bool
	add    bool
	value  string
	list   []variable.Element
	isList bool
}

func (d *declaration) parse(o *operand) (target, bool) {
	if a := o.assign; a != nil {
		t := target{name: a.Name, assign: true, add: a.X.Append, value: o.value, list: o.list, isList: a.X.IsList()}
		t.sub, t.at = a.X.Subscript()
		return t, true
	}
	text := o.text
	i := strings.IndexByte(text, '=')
	left := text
	t := target{}
	if b := strings.IndexByte(text, '['); b > 0 && (i < 0 || b < i) {
		// An equals sign may stand in the subscript.
		if e := strings.Index(text[b:], "]="); e > 0 {
			i = b + e + 1
		} else if e := strings.Index(text[b:], "]+="); e > 0 {
			i = b + e + 2
		}
	}
	if i >= 0 {
		left, t.value, t.assign = text[:i], text[i+1:], true
		if strings.HasSuffix(left, "+") {
			left, t.add = left[:len(left)-1], true
		}
	}
	r, ok := variable.Split(left)
	t.name, t.sub, t.at = r.Name, r.Subscript, r.Element
	return t, ok
}

func (d *declaration) operand(o *operand) {
	s := d.s
	if d.name == "local" && o.assign == nil && o.text == "-" {
		old := s.opt
		s.vars.KeepOptions(&old)
		return
	}
	t, ok := d.parse(o)
	if !ok || t.at && (d.name == "export" || d.name == "readonly" && t.assign) {
		what := o.text
		if o.assign != nil {
			what = t.name + "[" + t.sub + "]=" + t.value
		}
		d.status = 1
		s.complain("%s: %s", d.name, &variable.Error{Kind: variable.Invalid, Name: what})
		return
	}
	if !t.isList && t.assign && !t.at {
		if err := d.compound(&t); err != nil {
			d.fail(err)
			return
		}
	}
	do := func() error { return d.apply(&t) }
	var err error
	switch {
	case d.global && s.vars.Function() > 0:
		err = s.vars.Beneath(t.name, true, do)
	case (d.name == "export" || d.name == "readonly" || !d.local && d.on&(variable.ReadOnly|variable.Export) != 0) &&
		s.vars.Temporary(t.name) && !t.assign:
		// What was assigned before the command stays.
		t.value, _ = s.vars.Get(t.name)
		t.assign = true
		err = s.vars.Beneath(t.name, false, do)
	default:
		err = do()
	}
	if err != nil {
		var e *expand.Error
		if errors.As(err, &e) {
			s.wordError(err)
			d.status = 1
			return
		}
		d.fail(err)
	}
}

// compound reads a value that is an array's in parentheses, where the variable
// is an array.
func (d *declaration) compound(t *target) error {
	v := t.value
	if len(v) < 2 || v[0] != '(' || v[len(v)-1] != ')' {
		return nil
	}
	if d.on&variable.Arrays == 0 {
		old, _ := d.s.vars.Var(t.name)
		if old == nil || !old.Is(variable.Arrays) || d.local && old.Level() != d.s.vars.Function() {
			return nil
		}
	}
	l, err := tree.New([]byte("a="+v), d.s.reading(d.s.line)).Next()
	if err != nil || len(l.Items) != 1 {
		return nil
	}
	c, ok := l.Items[0].(*tree.Simple)
	if !ok || len(c.Words) != 0 || len(c.Assigns) != 1 || !c.Assigns[0].X.IsList() {
		return nil
	}
	t.isList = true
	t.list, err = d.s.Expander().Elements(c.Assigns[0].X, d.keys(t.name))
	return err
}

// apply declares and assigns.
func (d *declaration) apply(t *target) error {
	vars := d.s.vars
	name := t.name
	old := vars.Lookup(name)
	if d.local {
		inherit := d.inherit || d.s.opt[oLocalvarInherit]
		if err := vars.Local(name, inherit); err != nil {
			return err
		}
	} else if old != nil && old.Is(variable.NameRef) && d.on&variable.NameRef == 0 && d.off&variable.NameRef == 0 {
		r, err := vars.Resolve(name)
		if err != nil {
			return err
		}
		name = r.Name
		if r.Element {
			t.sub, t.at = r.Subscript, true
		}
	}
	if d.on&variable.NameRef != 0 {
		return d.refer(name, t)
	}
	if d.off&variable.NameRef != 0 && t.assign && old != nil && old.Is(variable.NameRef) {
		// The value is still for what it refers to.
		if err := d.assign(name, t); err != nil {
			return err
		}
		t.assign = false
	}
	on := d.on &^ variable.ReadOnly
	if t.at && on&variable.Arrays == 0 {
		if v := vars.Lookup(name); v == nil || !v.Is(variable.Arrays) {
			on |= variable.Indexed
		}
	}
	if t.isList && on&variable.Arrays == 0 {
		if v := vars.Lookup(name); v == nil || !v.Is(variable.Arrays) {
			on |= variable.Indexed
		}
	}
	if v := vars.Lookup(name); v != nil && v.Is(variable.ReadOnly) && t.assign {
		return &variable.Error{Kind: variable.IsReadOnly, Name: name}
	}
	if err := vars.Declare(name, on, d.off); err != nil {
		return err
	}
	if t.assign {
		if err := d.assign(name, t); err != nil {
			return err
		}
	}
	if d.on&variable.ReadOnly != 0 {
		return vars.Declare(name, variable.ReadOnly, 0)
	}
	if t.assign && d.s.opt[oAllexport] && d.off&variable.Export == 0 {
		return vars.Declare(name, variable.Export, 0)
	}
	return nil
}

func (d *declaration) assign(name string, t *target) error {
	vars := d.s.vars
	switch {
	case t.isList:
		return vars.SetList(name, t.list, t.add)
	case t.at:
		return d.s.Expander().AssignAt(name, t.sub, t.value, t.add, t.at && d.s.opt[oAssocExpandOnce])
	case t.add:
		return vars.Append(name, t.value)
	}
	return vars.Set(name, t.value)
}

// refer makes references.
func (d *declaration) refer(name string, t *target) error {
	vars := d.s.vars
	switch {
	case t.at:
		return &variable.Error{Kind: variable.RefArray, Name: name + "[" + t.sub + "]"}
	case t.isList:
		return &variable.Error{Kind: variable.RefArray, Name: name}
	}
	on := d.on &^ (variable.ReadOnly | variable.Integer | variable.Lower | variable.Upper | variable.Capital)
	if !t.assign {
		if err := vars.Declare(name, on, d.off); err != nil {
			return err
		}
	} else {
		if r, ok := variable.Split(t.value); t.value == name && vars.Lookup(name) != nil && vars.Lookup(name).Level() == 0 || !ok && t.value != "" {
			if !ok {
				return &variable.Error{Kind: variable.InvalidRef, Name: t.value}
			}
			return &variable.Error{Kind: variable.SelfRef, Name: r.Name}
		} else if t.value == name && vars.Lookup(name) == nil {
			return &variable.Error{Kind: variable.SelfRef, Name: name}
		}
		if v := vars.Lookup(name); v != nil && v.Is(variable.Arrays) {
			return &variable.Error{Kind: variable.RefArray, Name: name}
		}
		if err := vars.SetRef(name, t.value); err != nil {
			return err
		}
		if err := vars.Declare(name, on, d.off); err != nil {
			return err
		}
	}
	if d.on&variable.ReadOnly != 0 {
		return vars.Declare(name, variable.ReadOnly, 0)
	}
	return nil
}

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
		if v == nil || v.Hidden() || d.name == "local" && v.Level() != d.s.vars.Function() {
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
