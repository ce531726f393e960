package tool

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// DefaultCalls is the number of calls of a grant without MaxCalls.
const DefaultCalls = 100

const (
	maxBudgets = 16
	maxName    = 64
)

// A Grant allows some calls. It is a value without state: the [Authority] that it is issued
// as counts the usage.
type Grant struct {
	// Name is for people, and appears in records.
	Name string
	// Tools names the tools: a name, or a pattern in which the segment "*" matches any one
	// segment and "**" any number of segments. A grant without it is invalid.
	Tools string
	// Constraints are conditions on the arguments; each call must satisfy all.
	Constraints []Constraint
	// MaxCalls is the number of allowed calls; zero means DefaultCalls. There is no
	// unlimited grant.
	MaxCalls int64
	// Budgets bound sums over all calls; all must hold.
	Budgets []Budget
	// Expires is the time at which it ends; zero means it ends with the set.
	Expires time.Time
}

// A Budget bounds a sum over all calls, in whole minor units. Each call adds the value of
// an argument or, if Argument is empty, the declared cost of the tool. A call is denied if
// its argument is missing, negative or not whole, or if the tool declares no cost.
type Budget struct {
	Argument string // a path, as in a Constraint, but without "*"
	Total    int64  // above zero
}

// A checked grant is a grant with its parts parsed.
type checked struct {
	Grant

	pattern     pattern
	constraints []predicate
	budgets     []spending
}

type spending struct {
	total int64
	steps []string // nil means the tool's declared cost
}

func (b Budget) String() string {
	if b.Argument == "" {
		return "the cost of calls"
	}
	return "the sum of " + b.Argument
}

// Check returns an error of kind [paddock.Invalid] that describes what is wrong with g, or
// nil.
func (g Grant) Check() error {
	_, err := g.check()
	return err
}

// label returns the name of g for errors and records.
func (g Grant) label() string {
	if g.Name != "" {
		return g.Name
	}
	return g.Tools
}

func (g Grant) check() (*checked, error) {
	c, err := g.parts()
	if err != nil {
		return nil, fmt.Errorf("grant %s: %w: %w", short(g.label()), err, paddock.Invalid)
	}
	return c, nil
}

func (g Grant) parts() (*checked, error) {
	if len(g.Name) > maxName {
		return nil, fmt.Errorf("its name is longer than %d bytes", maxName)
	}
	if _, err := text(g.Name); err != nil {
		return nil, err
	}
	if g.MaxCalls < 0 {
		return nil, fmt.Errorf("%d calls", g.MaxCalls)
	}
	if g.MaxCalls == 0 {
		g.MaxCalls = DefaultCalls
	}
	c := &checked{Grant: g}
	var err error
	if c.pattern, err = parsePattern(g.Tools); err != nil {
		return nil, err
	}
	if c.constraints, err = compile(g.Constraints); err != nil {
		return nil, err
	}
	if len(g.Budgets) > maxBudgets {
		return nil, fmt.Errorf("more than %d budgets", maxBudgets)
	}
	for i, b := range g.Budgets {
		if b.Total <= 0 {
			return nil, fmt.Errorf("budget on %s: a total of %d", b, b.Total)
		}
		if slices.ContainsFunc(g.Budgets[:i], func(o Budget) bool { return o.Argument == b.Argument }) {
			return nil, fmt.Errorf("two budgets on %s", b)
		}
		s := spending{total: b.Total}
		if b.Argument != "" {
			if s.steps, err = steps(b.Argument, Exists); err != nil {
				return nil, fmt.Errorf("budget on %s: %w", b, err)
			}
			if slices.Contains(s.steps, "*") {
				return nil, fmt.Errorf("budget on %s: it names one argument, not many", b)
			}
		}
		c.budgets = append(c.budgets, s)
	}
	return c, nil
}

// Attenuate returns the grant that allows what both g and child allow. What child leaves
// open, it takes from g: constraints, budgets, number of calls, expiry. If child asks for
// more than g (tools, calls, a total, a later end), that is an error of kind
// [paddock.Denied]; it is never reduced silently. So the result allows no call that g does
// not.
//
// The result is independent: issued by [Issue], it has its own counters. To share those of
// a parent use [Authority.Delegate].
func (g Grant) Attenuate(child Grant) (Grant, error) {
	parent, err := g.check()
	if err != nil {
		return Grant{}, err
	}
	open := child.MaxCalls == 0
	own, err := child.check()
	if err != nil {
		return Grant{}, err
	}
	refuse := func(format string, args ...any) (Grant, error) {
		return Grant{}, fmt.Errorf("attenuate %s: %s: %w", short(g.label()), fmt.Sprintf(format, args...), paddock.Denied)
	}
	if !own.pattern.within(parent.pattern) {
		return refuse("the tools %s are not all among %s", own.pattern, parent.pattern)
	}
	out := child
	switch {
	case open:
		out.MaxCalls = parent.MaxCalls
	case child.MaxCalls > parent.MaxCalls:
		return refuse("%d calls are more than %d", child.MaxCalls, parent.MaxCalls)
	}
	switch {
	case g.Expires.IsZero():
	case child.Expires.IsZero():
		out.Expires = g.Expires
	case child.Expires.After(g.Expires):
		return refuse("it would expire later")
	}
	out.Budgets = slices.Clone(child.Budgets)
	for _, b := range g.Budgets {
		i := slices.IndexFunc(child.Budgets, func(o Budget) bool { return o.Argument == b.Argument })
		switch {
		case i < 0:
			out.Budgets = append(out.Budgets, b)
		case child.Budgets[i].Total > b.Total:
			return refuse("a total of %d for %s is more than %d", child.Budgets[i].Total, b, b.Total)
		}
	}
	out.Constraints = slices.Clone(g.Constraints)
	for _, c := range child.Constraints {
		if !slices.ContainsFunc(g.Constraints, func(o Constraint) bool { return reflect.DeepEqual(o, c) }) {
			out.Constraints = append(out.Constraints, c)
		}
	}
	if err := out.Check(); err != nil {
		return Grant{}, fmt.Errorf("attenuate: %w", err)
	}
	return out, nil
}

// Subset reports whether child, as it is, provably allows nothing that parent does not, and
// if not, why. It is for complete grants from outside; within a program [Grant.Attenuate]
// is simpler. What cannot be proven is refused: a "no" may be wrong, a "yes" is not.
func Subset(child, parent Grant) (ok bool, reason string) {
	own, err := child.check()
	if err != nil {
		return false, err.Error()
	}
	wide, err := parent.check()
	if err != nil {
		return false, err.Error()
	}
	switch {
	case !own.pattern.within(wide.pattern):
		return false, fmt.Sprintf("the tools %s are not all among %s", own.pattern, wide.pattern)
	case own.MaxCalls > wide.MaxCalls:
		return false, fmt.Sprintf("%d calls are more than %d", own.MaxCalls, wide.MaxCalls)
	case !wide.Expires.IsZero() && (own.Expires.IsZero() || own.Expires.After(wide.Expires)):
		return false, "it would expire later"
	}
	for _, b := range wide.Budgets {
		i := slices.IndexFunc(own.Budgets, func(o Budget) bool { return o.Argument == b.Argument })
		if i < 0 {
			return false, fmt.Sprintf("it has no budget for %s", b)
		}
		if total := own.Budgets[i].Total; total > b.Total {
			return false, fmt.Sprintf("a total of %d for %s is more than %d", total, b, b.Total)
		}
	}
	p := prover{left: maxProof}
	for i := range wide.constraints {
		if !p.proves(own.constraints, &wide.constraints[i]) {
			return false, fmt.Sprintf("it does not follow that %s", wide.constraints[i].String())
		}
	}
	return true, ""
}
