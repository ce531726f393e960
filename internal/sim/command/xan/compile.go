package xan

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// A scene is what an expression is computed on.
type scene struct {
	row   []string
	index int
	self  value // what _ stands for
	fixed bool  // self is set
	bound []binding
}

// A binding is an argument of a lambda.
type binding struct {
	name string
	v    value
}

// An expression is a compiled one. A constant one has its value already.
type expression struct {
	compute  func(s *scene) (value, error)
	constant bool
	v        value
	free     bool        // it computes from constants and bindings only
	lambda   *lambdaBody // of a lambda, which only some functions take
}

type lambdaBody struct {
	names []string
	body  expression
}

func constant(v value) expression {
	return expression{compute: func(*scene) (value, error) { return v, nil }, constant: true, v: v, free: true}
}

func computed(f func(s *scene) (value, error)) expression { return expression{compute: f} }

// A compiler resolves names against the columns of a table. It computes what
// is constant at once, so that a mistake there is found before the first row.
type compiler struct {
	j     *job
	head  []string
	bare  bool // columns have no names
	bound []string
}

func (j *job) compiler(head []string) *compiler { return &compiler{j: j, head: head, bare: j.bare} }

// compile reads an expression that is all of a text.
func (j *job) compile(s string, head []string) (expression, error) {
	n, err := j.parse(s)
	if err != nil {
		return expression{}, err
	}
	return j.compiler(head).compile(n)
}

// A clause is a compiled expression with the names of its columns.
type clause struct {
	names  []string
	plural bool
	e      expression
}

// clauses reads a list of expressions.
func (j *job) clauses(s string, head []string) ([]clause, error) {
	p := j.parser(s)
	list, err := p.list(p.expression)
	if err != nil {
		return nil, err
	}
	out := make([]clause, len(list))
	for i, n := range list {
		e, err := j.compiler(head).compile(n.e)
		if err != nil {
			return nil, err
		}
		out[i] = clause{n.names, n.plural, e}
	}
	return out, nil
}

// cells computes the cells of a clause.
func (c clause) cells(s *scene) (out []string, truth bool, err error) {
	v, err := c.e.compute(s)
	if err != nil {
		return nil, false, fmt.Errorf("row %d: %w", s.index, err)
	}
	if !c.plural {
		return []string{serialized(v)}, truthy(v), nil
	}
	for _, x := range flat(v, nil) {
		out = append(out, serialized(x))
	}
	if len(out) != len(c.names) {
		return nil, false, fmt.Errorf("row %d: there are %d names for %d values", s.index, len(c.names), len(out))
	}
	return out, truthy(v), nil
}

func (c *compiler) compile(n node) (expression, error) {
	switch x := n.(type) {
	case literal:
		return constant(x.v), nil
	case selfNode:
		return computed(func(s *scene) (value, error) {
			if !s.fixed {
				return nil, errors.New("there is nothing that _ stands for")
			}
			return s.self, nil
		}), nil
	case identifier:
		return c.identifier(x)
	case patternNode:
		text := x.text
		if x.fold {
			text = "(?i)" + text
		}
		re, err := compilePattern(text)
		return constant(re), err
	case listNode:
		return c.list(x)
	case objectNode:
		return c.object(x)
	case lambdaNode:
		before := c.bound
		c.bound = append(append([]string{}, before...), x.names...)
		body, err := c.compile(x.body)
		c.bound = before
		return expression{lambda: &lambdaBody{x.names, body}, free: body.free, compute: func(*scene) (value, error) {
			return nil, errors.New("a lambda is no value")
		}}, err
	case pipeNode:
		return c.pipe(x)
	case callNode:
		return c.call(x)
	}
	return expression{}, fmt.Errorf("%T is no expression", n)
}

func (c *compiler) identifier(x identifier) (expression, error) {
	for _, b := range c.bound {
		if b == x.name {
			return expression{free: true, compute: func(s *scene) (value, error) {
				for i := len(s.bound) - 1; i >= 0; i-- {
					if s.bound[i].name == x.name {
						return s.bound[i].v, nil
					}
				}
				return nil, nil
			}}, nil
		}
	}
	if !c.bare {
		for i, h := range c.head {
			if h == x.name {
				return cellOf(i), nil
			}
		}
	}
	if x.unsure {
		return constant(nil), nil
	}
	return expression{}, fmt.Errorf("column %q does not exist; there are %s", x.name, strings.Join(c.head, ", "))
}

func cellOf(i int) expression {
	return computed(func(s *scene) (value, error) {
		if i < len(s.row) {
			return cell(s.row[i]), nil
		}
		return nil, fmt.Errorf("column %d is out of range", i)
	})
}

func (c *compiler) all(list []node) (out []expression, constants bool, err error) {
	out, constants = make([]expression, len(list)), true
	for i, n := range list {
		if out[i], err = c.compile(n); err != nil {
			return nil, false, err
		}
		constants = constants && out[i].constant
	}
	return out, constants, nil
}

func values(list []expression, s *scene) ([]value, error) {
	out := make([]value, len(list))
	for i, e := range list {
		var err error
		if out[i], err = e.compute(s); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *compiler) list(x listNode) (expression, error) {
	list, constants, err := c.all(x.items)
	if err != nil {
		return expression{}, err
	}
	if constants {
		out := make([]value, len(list))
		for i, e := range list {
			out[i] = e.v
		}
		return constant(out), nil
	}
	return computed(func(s *scene) (value, error) {
		out, err := values(list, s)
		return out, err
	}), nil
}

func (c *compiler) object(x objectNode) (expression, error) {
	list, constants, err := c.all(x.values)
	if err != nil {
		return expression{}, err
	}
	f := func(s *scene) (value, error) {
		out, err := values(list, s)
		if err != nil {
			return nil, err
		}
		o := object{}
		for i, k := range x.keys {
			o = o.with(k, out[i])
		}
		return o, nil
	}
	if constants {
		v, err := f(&scene{})
		return constant(v), err
	}
	return computed(f), nil
}

func (c *compiler) pipe(x pipeNode) (expression, error) {
	first, err := c.compile(x.first)
	if err != nil {
		return expression{}, err
	}
	second, err := c.compile(x.second)
	if err != nil {
		return expression{}, err
	}
	return computed(func(s *scene) (value, error) {
		v, err := first.compute(s)
		if err != nil {
			return nil, err
		}
		inner := *s
		inner.self, inner.fixed = v, true
		return second.compute(&inner)
	}), nil
}

func compilePattern(s string) (*regexp.Regexp, error) {
	if len(s) > 64<<10 {
		return nil, errors.New("a regular expression is too long")
	}
	re, err := regexp.Compile(s)
	if err != nil {
		return nil, fmt.Errorf("%w", err)
	}
	return re, nil
}

func arityError(name string, low, high, n int) error {
	return fmt.Errorf("%s takes %d to %d arguments, not %d", name, low, high, n)
}

// call compiles a call. Some functions see expressions instead of values.
func (c *compiler) call(x callNode) (expression, error) {
	if low, high, ok := special(x.name); ok {
		if n := len(x.args); n < low || n > high {
			return expression{}, arityError(x.name, low, high, n)
		}
		return c.special(x)
	}
	low, high, f := builtin(x.name)
	if high < 0 {
		return expression{}, fmt.Errorf("unknown function %q", x.name)
	}
	args, _, err := c.all(x.args)
	if err != nil {
		return expression{}, err
	}
	if n := len(args); n < low || n > high {
		return expression{}, arityError(x.name, low, high, n)
	}
	e := computed(func(s *scene) (value, error) {
		list, err := values(args, s)
		if err != nil {
			return nil, err
		}
		c.j.t.Step(1)
		v, err := f(c.j, list)
		if err != nil && !errors.Is(err, errPanic) {
			err = fmt.Errorf("%s: %w", x.name, err)
		}
		return v, err
	})
	return folded(e, args)
}

// folded computes an expression whose arguments are constant.
func folded(e expression, args []expression) (expression, error) {
	e.free = len(args) > 0
	closed := e.free
	for _, a := range args {
		e.free = e.free && a.free
		closed = closed && (a.constant || a.lambda != nil && a.free)
	}
	if !closed {
		return e, nil
	}
	v, err := e.compute(&scene{})
	return constant(v), err
}

// special gives the arity of the functions that see expressions.
func special(name string) (low, high int, ok bool) {
	switch name {
	case "col", "col?", "header", "header?", "col_index", "col_index?":
		return 1, 2, true
	case "cols", "headers":
		return 0, 2, true
	case "index":
		return 0, 0, true
	case "if", "unless":
		return 2, 3, true
	case "and", "or":
		return 2, 64, true
	case "try":
		return 1, 1, true
	case "map", "filter", "find", "find_index", "all", "any":
		return 2, 2, true
	}
	return 0, 0, false
}

func (c *compiler) special(x callNode) (expression, error) {
	switch x.name {
	case "index":
		return computed(func(s *scene) (value, error) { return int64(s.index), nil }), nil
	case "if", "unless":
		return c.branch(x)
	case "and", "or":
		return c.logic(x)
	case "try":
		e, err := c.compile(x.args[0])
		if err != nil {
			return constant(nil), nil //nolint:nilerr // that is what try is for
		}
		return computed(func(s *scene) (value, error) {
			v, err := e.compute(s)
			if err != nil && !errors.Is(err, errPanic) {
				return nil, nil
			}
			return v, err
		}), nil
	case "cols", "headers":
		return c.columns(x)
	case "map", "filter", "find", "find_index", "all", "any":
		return c.higher(x)
	}
	return c.column(x)
}

func (c *compiler) branch(x callNode) (expression, error) {
	cond, err := c.compile(x.args[0])
	if err != nil {
		return expression{}, err
	}
	chosen := func(v value) int {
		if truthy(v) == (x.name == "if") {
			return 1
		}
		return 2
	}
	if cond.constant {
		i := chosen(cond.v)
		if i >= len(x.args) {
			return expression{}, errPanic // as the real one does
		}
		return c.compile(x.args[i])
	}
	args, _, err := c.all(x.args[1:])
	if err != nil {
		return expression{}, err
	}
	return computed(func(s *scene) (value, error) {
		v, err := cond.compute(s)
		if err != nil {
			return nil, err
		}
		if i := chosen(v); i <= len(args) {
			return args[i-1].compute(s)
		}
		return nil, nil
	}), nil
}

func (c *compiler) logic(x callNode) (expression, error) {
	stop := x.name == "or" // on which truth the value is known
	for _, a := range x.args {
		e, err := c.compile(a)
		if err != nil || !e.constant {
			break
		}
		if truthy(e.v) == stop {
			return e, nil
		}
	}
	args, _, err := c.all(x.args)
	if err != nil {
		return expression{}, err
	}
	return computed(func(s *scene) (value, error) {
		var v value
		for _, a := range args {
			var err error
			if v, err = a.compute(s); err != nil || truthy(v) == stop {
				return v, err
			}
		}
		return v, nil
	}), nil
}

// place finds a column by name or index; nth counts columns of one name.
func (c *compiler) place(by value, nth int) (int, bool) {
	switch v := by.(type) {
	case int64:
		return within(int(v), len(c.head))
	case float64:
		if i, ok := whole(v); ok {
			return within(int(i), len(c.head))
		}
	case string:
		for i, h := range c.head {
			if h == v && !c.bare {
				if nth == 0 {
					return i, true
				}
				nth--
			}
		}
	}
	return 0, false
}

// within turns an index that may be negative into one from the start.
func within(i, n int) (int, bool) {
	if i < 0 {
		i += n
	}
	return i, i >= 0 && i < n
}

func (c *compiler) column(x callNode) (expression, error) {
	args, constants, err := c.all(x.args)
	if err != nil {
		return expression{}, err
	}
	name, unsure := strings.CutSuffix(x.name, "?")
	find := func(list []value) (int, error) {
		nth := 0
		if len(list) > 1 {
			n, err := toInt(list[1])
			if err != nil {
				return 0, err
			}
			nth = int(n)
		}
		by := list[0]
		if s, ok := by.(cell); ok {
			by = string(s)
		}
		if i, ok := c.place(by, nth); ok {
			return i, nil
		}
		if unsure {
			return -1, nil
		}
		return 0, fmt.Errorf("column %s does not exist; there are %s", shown(list[0]), strings.Join(c.head, ", "))
	}
	result := func(i int) expression {
		switch {
		case i < 0:
			return constant(nil)
		case name == "col_index":
			return constant(int64(i))
		case name == "header":
			return constant(cell(c.head[i]))
		}
		return cellOf(i)
	}
	if constants {
		list := make([]value, len(args))
		for i, a := range args {
			list[i] = a.v
		}
		i, err := find(list)
		if err != nil {
			return expression{}, err
		}
		return result(i), nil
	}
	return computed(func(s *scene) (value, error) {
		list, err := values(args, s)
		if err != nil {
			return nil, err
		}
		i, err := find(list)
		if err != nil {
			return nil, err
		}
		return result(i).compute(s)
	}), nil
}

// columns compiles cols and headers: a list of columns, from one to another.
func (c *compiler) columns(x callNode) (expression, error) {
	args, constants, err := c.all(x.args)
	if err != nil {
		return expression{}, err
	}
	if !constants {
		return expression{}, fmt.Errorf("the arguments of %s must be constant", x.name)
	}
	ends := []int{0, len(c.head) - 1}
	for i, a := range args {
		at, ok := c.place(a.v, 0)
		if !ok {
			return expression{}, fmt.Errorf("column %s does not exist", shown(a.v))
		}
		ends[i] = at
	}
	step := 1
	if ends[1] < ends[0] && len(args) == 2 {
		step = -1
	}
	var list []expression
	for i := ends[0]; (ends[1]-i)*step >= 0; i += step {
		if x.name == "headers" {
			list = append(list, constant(cell(c.head[i])))
		} else {
			list = append(list, cellOf(i))
		}
	}
	return computed(func(s *scene) (value, error) {
		out, err := values(list, s)
		return out, err
	}), nil
}

// higher compiles a function that takes a list and a lambda.
func (c *compiler) higher(x callNode) (expression, error) {
	args, _, err := c.all(x.args)
	if err != nil {
		return expression{}, err
	}
	e := computed(func(s *scene) (value, error) {
		v, err := args[0].compute(s)
		if err != nil {
			return nil, err
		}
		list, ok := v.([]value)
		if !ok {
			return nil, castError(v, "list")
		}
		f := args[1].lambda
		if f == nil || len(f.names) != 1 {
			return nil, fmt.Errorf("%s takes a lambda of one argument", x.name)
		}
		return c.j.higher(x.name, list, f, s)
	})
	return folded(e, args)
}

func (j *job) higher(name string, list []value, f *lambdaBody, s *scene) (value, error) {
	inner := *s
	inner.bound = append(append([]binding{}, s.bound...), binding{name: f.names[0]})
	at := len(inner.bound) - 1
	out := []value{}
	for i, x := range list {
		j.t.Step(1)
		inner.bound[at].v = x
		v, err := f.body.compute(&inner)
		if err != nil {
			return nil, err
		}
		switch truth := truthy(v); {
		case name == "map":
			out = append(out, v)
		case name == "filter" && truth:
			out = append(out, x)
		case name == "find" && truth:
			return x, nil
		case name == "find_index" && truth:
			return int64(i), nil
		case name == "all" && !truth, name == "any" && truth:
			return truth, nil
		}
	}
	switch name {
	case "find", "find_index":
		return nil, nil
	case "all", "any":
		return name == "all", nil
	}
	return out, nil
}
