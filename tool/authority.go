package tool

import (
	"fmt"
	"math/big"
	"slices"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// maxChain bounds delegation, because each level adds work to every call.
const maxChain = 32

// An Authority is a grant in force. It counts usage, can be revoked, and can be delegated.
// All methods are safe for concurrent use.
type Authority struct {
	grant  *checked
	parent *Authority // nil at the root
	depth  int

	// mu is shared by the whole tree, so that a call counts against all of its ancestors or
	// against none.
	mu      *sync.Mutex
	calls   int64   // guarded by mu
	spent   []int64 // as grant.budgets; guarded by mu
	revoked bool    // guarded by mu
}

// Issue puts g in force with new counters.
func Issue(g Grant) (*Authority, error) {
	c, err := g.check()
	if err != nil {
		return nil, fmt.Errorf("issue: %w", err)
	}
	return &Authority{grant: c, mu: new(sync.Mutex), spent: make([]int64, len(c.budgets))}, nil
}

// Delegate puts an attenuation of a's grant in force ([Grant.Attenuate]). Each call by it
// also counts against a and all ancestors of a. It ends when one of them ends. Delegation
// never adds rights.
func (a *Authority) Delegate(child Grant) (*Authority, error) {
	if a.depth+1 >= maxChain {
		return nil, fmt.Errorf("delegate %s: a chain of more than %d: %w", short(a.grant.label()), maxChain, paddock.Exhausted)
	}
	g, err := a.grant.Attenuate(child)
	if err != nil {
		return nil, fmt.Errorf("delegate: %w", err)
	}
	own, err := Issue(g)
	if err != nil {
		return nil, err
	}
	own.parent, own.depth, own.mu = a, a.depth+1, a.mu
	return own, nil
}

// Grant returns what is allowed, including the restrictions of its ancestors.
func (a *Authority) Grant() Grant {
	g := a.grant.Grant
	g.Constraints, g.Budgets = slices.Clone(g.Constraints), slices.Clone(g.Budgets)
	return g
}

// Revoke ends a and everything that was delegated from it. Running calls continue. Revoking
// twice is not an error.
func (a *Authority) Revoke() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.revoked = true
}

// Usage is the usage of a grant, by its own calls and those of its delegates.
type Usage struct {
	Calls int64
	Spent []int64 // in the order of Grant.Budgets
}

// Usage returns the usage so far.
func (a *Authority) Usage() Usage {
	a.mu.Lock()
	defer a.mu.Unlock()
	return Usage{Calls: a.calls, Spent: slices.Clone(a.spent)}
}

// A denial is the reason why one authority does not allow a call.
type denial struct {
	kind   paddock.Kind
	reason string
}

func deny(format string, args ...any) *denial {
	return &denial{paddock.Denied, fmt.Sprintf(format, args...)}
}

// admit counts a call, or returns why it is not allowed and counts nothing. The cost is
// what the first budget was charged, or the tool's declared cost.
func (a *Authority) admit(now time.Time, t Tool, args any) (cost int64, d *denial) {
	// Attenuate has added the ancestors' constraints to a's own.
	if f := check(a.grant.constraints, args); f != nil {
		return 0, deny("%s", f)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var charges [][]int64
	for at := a; at != nil; at = at.parent {
		charge, d := at.afford(now, t, args)
		if d != nil {
			if at != a {
				d.reason = fmt.Sprintf("of %s, which it was delegated from: %s", short(at.grant.label()), d.reason)
			}
			return 0, d
		}
		charges = append(charges, charge)
	}
	for at, i := a, 0; at != nil; at, i = at.parent, i+1 {
		at.calls++
		for j, amount := range charges[i] {
			at.spent[j] += amount
		}
	}
	if len(charges[0]) > 0 {
		return charges[0][0], nil
	}
	return t.cost, nil
}

// afford returns what one authority would be charged. The caller holds mu.
func (a *Authority) afford(now time.Time, t Tool, args any) ([]int64, *denial) {
	switch g := a.grant; {
	case a.revoked:
		return nil, deny("the grant was revoked")
	case !g.Expires.IsZero() && !now.Before(g.Expires):
		return nil, deny("the grant expired at %s", g.Expires.Format(time.RFC3339))
	case a.calls >= g.MaxCalls:
		return nil, &denial{paddock.Exhausted, fmt.Sprintf("all %d calls are used", g.MaxCalls)}
	}
	charge := make([]int64, len(a.grant.budgets))
	for i, b := range a.grant.budgets {
		budget := a.grant.Budgets[i]
		amount, d := b.amount(budget, t, args)
		if d != nil {
			return nil, d
		}
		left := b.total - a.spent[i]
		if amount.Cmp(big.NewInt(left)) > 0 {
			return nil, &denial{paddock.Exhausted, fmt.Sprintf("%s is bounded by %d: %d are left, this call takes %s", budget, b.total, left, show(number(amount.String())))}
		}
		charge[i] = amount.Int64()
	}
	return charge, nil
}

// amount returns what a call takes from a budget. An amount that cannot be counted is
// denied, not treated as zero.
func (s spending) amount(b Budget, t Tool, args any) (*big.Int, *denial) {
	if s.steps == nil {
		if t.cost == 0 {
			return nil, deny("there is a budget for %s, and the tool declares none", b)
		}
		return big.NewInt(t.cost), nil
	}
	n, ok := lookup(args, s.steps).(number)
	if !ok {
		return nil, deny("there is a budget for %s, and it is not given as a number", b)
	}
	amount, isWhole := n.integer()
	if !isWhole || amount.Sign() < 0 {
		return nil, deny("there is a budget for %s, and %s is not a whole number of minor units", b, show(n))
	}
	return amount, nil
}

// lookup follows steps without "*". It returns nil if there is no such value.
func lookup(v any, steps []string) any {
	for _, step := range steps {
		switch at := v.(type) {
		case map[string]any:
			v = at[step]
		case []any:
			i, ok := position(step)
			if !ok || i >= len(at) {
				return nil
			}
			v = at[i]
		default:
			return nil
		}
	}
	return v
}
