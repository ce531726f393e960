package shell

import (
	"errors"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/shell/expand"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/parse"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/variable"
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
	assign *parse.Assign // instead of text
	value  string        // of assign, expanded
	list   []variable.Element
}

// biDeclare is declare, typeset, local, export and readonly. With a command, its
// words from the first assignment on are still to be expanded.
func biDeclare(s *Shell, c *parse.Simple, args []string) int {
	d := &declaration{s: s, name: args[0]}
	all := args
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
	if s.opt[oXtrace] && c != nil && c.Declares && len(operands) > len(args) {
		s.traceDeclaration(d, all[:len(all)-len(args)], operands)
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
		if d.s.posixExits() {
			d.s.exit(1)
		}
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
		case 'a':
			d.on |= variable.Indexed
		case 'A':
			d.on |= variable.Associate
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
func (d *declaration) operands(c *parse.Simple, args []string) ([]operand, error) {
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
		if value, ok := d.s.early[w.Assign]; ok {
			o.value = value
		} else if w.Assign.X.IsList() {
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

// keys reports whether a name is, or is going to be, an associative array.
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
	l, err := parse.New([]byte("a="+v), d.s.reading(d.s.line)).Next()
	if err != nil || len(l.Items) != 1 {
		return nil //nolint:nilerr // what is no list is a plain value
	}
	c, ok := l.Items[0].(*parse.Simple)
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
	if d.local && !(old != nil && old.Is(variable.NameRef) && old.Level() == vars.Function()) {
		inherit := d.inherit || d.s.opt[oLocalvarInherit]
		if err := vars.Local(name, inherit); err != nil {
			return err
		}
		old = vars.Lookup(name)
	}
	if old != nil && old.Is(variable.NameRef) && d.on&variable.NameRef == 0 && d.off&variable.NameRef == 0 && old.IsSet() {
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
