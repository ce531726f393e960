package tool

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// An Op is the operator of a [Constraint].
type Op string

// The operators. All except not_exists fail if the argument is missing.
const (
	Lt         Op = "lt"          // a number below Value
	Le         Op = "le"          // a number not above Value
	Gt         Op = "gt"          // a number above Value
	Ge         Op = "ge"          // a number not below Value
	Eq         Op = "eq"          // Value itself: a string, number or boolean
	Ne         Op = "ne"          // another value of Value's type
	In         Op = "in"          // one of the list Value
	NotIn      Op = "not_in"      // none of the list Value, but of the same type as one of them
	StartsWith Op = "starts_with" // a string that begins with Value, as text; for paths use Under
	EndsWith   Op = "ends_with"   // a string that ends with Value
	Contains   Op = "contains"    // a string that contains Value
	Under      Op = "under"       // a path that is Value or below it, after cleaning
	Exists     Op = "exists"      // the argument exists
	NotExists  Op = "not_exists"  // the argument is missing
	And        Op = "and"         // each of Of holds
	Or         Op = "or"          // one of Of holds
)

// A Constraint is a condition on the arguments of a call. The zero value is invalid, and
// makes the grant that holds it invalid.
type Constraint struct {
	Op Op
	// Path leads to the argument: "amount", "user/name", "items/0/price". A "*" matches
	// every element of a list or object, which must have between 1 and 4096 elements. An
	// argument with a slash in its name cannot be reached, so its constraints fail.
	Path string
	// Value is the value to compare with: a string, boolean or number of any Go type, or
	// json.Number; a slice of them for In and NotIn.
	Value any
	// Of are the parts of And and Or.
	Of []Constraint
}

const (
	maxConstraints = 256 // of a grant, with all their parts
	maxPath        = 256
	maxBranches    = 8       // levels of And and Or
	maxEach        = 1 << 12 // values that "*" matches; each is compared
)

// A predicate is a compiled constraint.
type predicate struct {
	op     Op
	path   string
	steps  []string
	values []any // scalars in the form of parse
	of     []predicate
}

// compile checks cs. A constraint that it does not understand is always an error, because
// dropping a bound would allow too much.
func compile(cs []Constraint) ([]predicate, error) {
	left := maxConstraints
	return compileAll(cs, 0, &left)
}

func compileAll(cs []Constraint, depth int, left *int) ([]predicate, error) {
	if depth > maxBranches {
		return nil, fmt.Errorf("constraints nested deeper than %d", maxBranches)
	}
	ps := make([]predicate, 0, len(cs))
	for _, c := range cs {
		if *left--; *left < 0 {
			return nil, fmt.Errorf("more than %d constraints", maxConstraints)
		}
		p, err := c.compile(depth, left)
		if err != nil {
			return nil, err
		}
		ps = append(ps, p)
	}
	return ps, nil
}

func (c Constraint) compile(depth int, left *int) (predicate, error) {
	p := predicate{op: c.Op, path: c.Path}
	var err error
	switch c.Op {
	case And, Or:
		if c.Path != "" || c.Value != nil || len(c.Of) == 0 {
			return p, fmt.Errorf("constraint %s: it takes parts, and nothing else", c.Op)
		}
		p.of, err = compileAll(c.Of, depth+1, left)
		return p, err
	case Exists, NotExists:
		if c.Value != nil {
			return p, fmt.Errorf("constraint %s of %s: it takes no value", c.Op, short(c.Path))
		}
	case In, NotIn:
		p.values, err = scalars(c.Value)
	case Lt, Le, Gt, Ge, Eq, Ne, StartsWith, EndsWith, Contains, Under:
		p.values = make([]any, 1)
		p.values[0], err = scalar(c.Value)
	default:
		return p, fmt.Errorf("constraint %s: there is no such operator", short(string(c.Op)))
	}
	if err == nil {
		err = p.checkValue()
	}
	if err == nil {
		p.steps, err = steps(c.Path, c.Op)
	}
	if err == nil && len(c.Of) > 0 {
		err = fmt.Errorf("it has parts, which are for and, or")
	}
	if err != nil {
		return p, fmt.Errorf("constraint %s of %s: %w", c.Op, short(c.Path), err)
	}
	return p, nil
}

// checkValue rejects values with which the operator could never compare.
func (p *predicate) checkValue() error {
	switch p.op {
	case Lt, Le, Gt, Ge:
		if _, ok := p.values[0].(number); !ok {
			return fmt.Errorf("a number is expected, not %s", show(p.values[0]))
		}
	case StartsWith, EndsWith, Contains, Under:
		s, ok := p.values[0].(string)
		if !ok {
			return fmt.Errorf("a string is expected, not %s", show(p.values[0]))
		}
		if s == "" {
			return fmt.Errorf("an empty string bounds nothing")
		}
		if p.op != Under {
			return nil
		}
		if !cleanable(s) || s == "." || s == ".." || strings.HasPrefix(s, "../") || path.Clean(s) != strings.TrimSuffix(s, "/") && s != "/" {
			return fmt.Errorf("%s is not a clean path", short(s))
		}
		p.values[0] = path.Clean(s)
	}
	return nil
}

func steps(text string, op Op) ([]string, error) {
	if text == "" || len(text) > maxPath {
		return nil, fmt.Errorf("the path is empty or longer than %d bytes", maxPath)
	}
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("the path is not UTF-8")
	}
	list := strings.Split(text, "/")
	for _, s := range list {
		if s == "" {
			return nil, fmt.Errorf("the path has an empty part")
		}
		if s == "*" && op == NotExists {
			return nil, fmt.Errorf("every one of them cannot be absent: name the list itself")
		}
	}
	return list, nil
}

// scalar converts v to the form of parse. A float that is not a number, and an unknown
// type, are errors.
func scalar(v any) (any, error) {
	if n, ok := v.(json.Number); ok {
		return parseNumber(string(n))
	}
	if n, ok := v.(number); ok {
		return n, nil
	}
	r := reflect.ValueOf(v)
	switch {
	case !r.IsValid():
	case r.Kind() == reflect.String:
		return text(r.String())
	case r.Kind() == reflect.Bool:
		return r.Bool(), nil
	case r.CanInt():
		return number(strconv.FormatInt(r.Int(), 10)), nil
	case r.CanUint():
		return number(strconv.FormatUint(r.Uint(), 10)), nil
	case r.CanFloat() && !math.IsNaN(r.Float()) && !math.IsInf(r.Float(), 0):
		return number(strconv.FormatFloat(r.Float(), 'g', -1, r.Type().Bits())), nil
	}
	return nil, fmt.Errorf("a string, number or boolean is expected, not %s", short(fmt.Sprint(v)))
}

func scalars(v any) ([]any, error) {
	r := reflect.ValueOf(v)
	if !r.IsValid() || r.Kind() != reflect.Slice {
		return nil, fmt.Errorf("a list is expected, not %s", short(fmt.Sprint(v)))
	}
	if r.Len() == 0 || r.Len() > maxConstraints {
		return nil, fmt.Errorf("a list of %d: one to %d are expected", r.Len(), maxConstraints)
	}
	list := make([]any, r.Len())
	for i := range list {
		var err error
		if list[i], err = scalar(r.Index(i).Interface()); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// A failure is a predicate that did not hold, with the reason.
type failure struct {
	constraint string
	value      string // the present value, shortened; "" if missing
}

func (f *failure) String() string {
	if f.value == "" {
		return f.constraint + " does not hold"
	}
	return f.constraint + " does not hold: " + f.value
}

// check evaluates ps on args and returns the first one that fails.
func check(ps []predicate, args any) *failure {
	for i := range ps {
		if f := ps[i].check(args); f != nil {
			return f
		}
	}
	return nil
}

func (p *predicate) check(args any) *failure {
	switch p.op {
	case And:
		return check(p.of, args)
	case Or:
		for i := range p.of {
			if p.of[i].check(args) == nil {
				return nil
			}
		}
		return &failure{constraint: p.String()}
	}
	left := maxEach
	bad, missing, found := p.walk(args, p.steps, &left)
	switch {
	case p.op == NotExists && missing:
		return nil
	case p.op == NotExists:
		return &failure{p.String(), "it is there"}
	case left < 0:
		return &failure{p.String(), fmt.Sprintf("there are more than %d", maxEach)}
	case missing:
		return &failure{p.String(), "it is missing"}
	case found:
		return &failure{p.String(), "it is " + show(bad)}
	}
	return nil
}

// walk follows steps from v. It looks for a value for which p does not hold (found), or for
// a step without a value (missing). Each value decrements left; below zero the value counts
// as missing.
func (p *predicate) walk(v any, steps []string, left *int) (bad any, missing, found bool) {
	if *left--; *left < 0 {
		return nil, true, false
	}
	if len(steps) == 0 {
		return v, false, !p.holds(v)
	}
	var next []any
	switch v := v.(type) {
	case map[string]any:
		if steps[0] == "*" {
			for _, name := range slices.Sorted(maps.Keys(v)) {
				next = append(next, v[name])
			}
		} else if e, ok := v[steps[0]]; ok {
			next = []any{e}
		}
	case []any:
		if steps[0] == "*" {
			next = v
		} else if i, ok := position(steps[0]); ok && i < len(v) {
			next = v[i : i+1]
		}
	}
	for _, e := range next {
		if bad, missing, found = p.walk(e, steps[1:], left); missing || found {
			return bad, missing, found
		}
	}
	return nil, len(next) == 0, false
}

// position parses an index of a list: decimal, in canonical form.
func position(s string) (int, bool) {
	i, err := strconv.Atoi(s)
	return i, err == nil && i >= 0 && strconv.Itoa(i) == s
}

// holds reports whether the value satisfies p.
func (p *predicate) holds(v any) bool {
	switch p.op {
	case Exists:
		return true
	case Eq, In:
		return p.names(v)
	case Ne, NotIn:
		return p.sameKind(v) && !p.names(v)
	case Lt, Le, Gt, Ge:
		n, isNumber := v.(number)
		bound, ok := p.values[0].(number)
		return isNumber && ok && p.ordered(n.compare(bound))
	case StartsWith, EndsWith, Contains, Under:
		s, isString := v.(string)
		bound, ok := p.values[0].(string)
		return isString && ok && p.textual(s, bound)
	default: // NotExists, and operators that compile rejects
		return false
	}
}

func (p *predicate) names(v any) bool {
	for _, want := range p.values {
		if equal(v, want) {
			return true
		}
	}
	return false
}

// sameKind reports whether v has the type of one of the values. "5" is neither 5 nor
// certainly different from 5, because a tool may parse it as a number.
func (p *predicate) sameKind(v any) bool {
	for _, want := range p.values {
		if kindOf(v) == kindOf(want) {
			return true
		}
	}
	return false
}

func (p *predicate) ordered(order int) bool {
	switch p.op {
	case Lt:
		return order < 0
	case Le:
		return order <= 0
	case Gt:
		return order > 0
	default:
		return order >= 0
	}
}

func (p *predicate) textual(s, bound string) bool {
	switch p.op {
	case StartsWith:
		return strings.HasPrefix(s, bound)
	case EndsWith:
		return strings.HasSuffix(s, bound)
	case Contains:
		return strings.Contains(s, bound)
	default:
		return under(s, bound)
	}
}

// under reports whether the path s is bound or below it. It returns false for a path that
// other software could interpret differently.
func under(s, bound string) bool {
	if !cleanable(s) {
		return false
	}
	s = path.Clean(s)
	switch bound {
	case s:
		return true
	case "/":
		return strings.HasPrefix(s, "/")
	}
	return strings.HasPrefix(s, bound+"/")
}

// cleanable rejects paths that other software may split differently: separators of another
// system, a NUL in the string, parameters after dots, and escapes of a dot, a separator or
// an escape.
func cleanable(s string) bool {
	if s == "" || strings.ContainsAny(s, "\\\x00") || strings.Contains(s, "..;") {
		return false
	}
	for i := range len(s) {
		if s[i] != '%' || i+2 >= len(s) {
			continue
		}
		switch e := strings.ToLower(s[i+1 : i+3]); {
		case e[0] == 'u', e == "2e", e == "2f", e == "5c", e == "25", e == "00", e == "c0", e == "c1", e == "3b":
			return false
		}
	}
	return true
}

// String returns p in readable form.
func (p *predicate) String() string {
	switch p.op {
	case And, Or:
		parts := make([]string, len(p.of))
		for i := range p.of {
			parts[i] = p.of[i].String()
		}
		return "(" + strings.Join(parts, " "+string(p.op)+" ") + ")"
	case Exists:
		return p.path + " is given"
	case NotExists:
		return p.path + " is not given"
	case In, NotIn:
		parts := make([]string, len(p.values))
		for i, v := range p.values {
			parts[i] = show(v)
		}
		word := " in ["
		if p.op == NotIn {
			word = " not in ["
		}
		return p.path + word + strings.Join(parts, ", ") + "]"
	}
	return p.path + " " + p.op.sign() + " " + show(p.values[0])
}

func (o Op) sign() string {
	switch o {
	case Lt:
		return "<"
	case Le:
		return "<="
	case Gt:
		return ">"
	case Ge:
		return ">="
	case Eq:
		return "=="
	case Ne:
		return "!="
	default:
		return strings.ReplaceAll(string(o), "_", " ")
	}
}

// text returns s if it is UTF-8, because JSON can hold nothing else.
func text(s string) (any, error) {
	if !utf8.ValidString(s) {
		return nil, fmt.Errorf("%s is not UTF-8", short(s))
	}
	return s, nil
}
