package tool

import "strings"

// A prover decides whether some predicates imply others. It answers yes only if that
// follows. If it does not know, or would need too long, it answers no.
type prover struct {
	left int // comparisons until it gives up
}

// maxProof bounds a proof to a fraction of a second, because grants from outside may be
// made to take forever.
const maxProof = 1 << 17

// proves reports whether whatever satisfies all of facts satisfies goal.
func (p *prover) proves(facts []predicate, goal *predicate) bool {
	if p.left--; p.left < 0 {
		return false
	}
	switch goal.op {
	case And:
		for i := range goal.of {
			if !p.proves(facts, &goal.of[i]) {
				return false
			}
		}
		return true
	case Or:
		for i := range goal.of {
			if p.proves(facts, &goal.of[i]) {
				return true
			}
		}
	default:
		for i := range facts {
			if p.left -= (len(facts[i].values) + 1) * (len(goal.values) + 1); p.left < 0 {
				return false
			}
			if facts[i].implies(goal) {
				return true
			}
		}
	}
	return p.split(facts, goal)
}

// split tries each branch of the first fact that has branches: an "and" adds its parts, and
// an "or" must lead to the goal for each part.
func (p *prover) split(facts []predicate, goal *predicate) bool {
	for i := range facts {
		if facts[i].op != And && facts[i].op != Or {
			continue
		}
		if p.left -= len(facts); p.left < 0 {
			return false
		}
		rest := append(append([]predicate{}, facts[:i]...), facts[i+1:]...)
		if facts[i].op == And {
			return p.proves(append(rest, facts[i].of...), goal)
		}
		for _, branch := range facts[i].of {
			if !p.proves(append(rest[:len(rest):len(rest)], branch), goal) {
				return false
			}
		}
		return true
	}
	return false
}

// implies compares two predicates on one value: whether goal holds for every value for
// which p holds. Paths with "*" refer to the same values on both sides, so this is enough
// for them too.
func (p *predicate) implies(goal *predicate) bool {
	if p.path != goal.path || p.of != nil || goal.of != nil {
		return false
	}
	switch goal.op {
	case Exists:
		return p.op != NotExists
	case NotExists:
		return p.op == NotExists
	case Ne, NotIn:
		if p.excludes(goal) {
			return true
		}
	}
	switch p.op {
	case Eq, In: // few enough to try them all
		for _, v := range p.values {
			if !goal.holds(v) {
				return false
			}
		}
		return true
	case Lt, Le, Gt, Ge:
		return p.narrows(goal)
	case StartsWith, EndsWith, Contains, Under:
		return p.specifies(goal)
	default:
		return false
	}
}

// excludes reports whether p holds for none of the values of goal, which is ne or not_in,
// and only for values of their types.
func (p *predicate) excludes(goal *predicate) bool {
	for _, v := range goal.values {
		if p.holds(v) {
			return false
		}
	}
	for _, k := range p.kinds() {
		ok := false
		for _, v := range goal.values {
			ok = ok || kindOf(v) == k
		}
		if !ok {
			return false
		}
	}
	return p.op != Exists && p.op != NotExists
}

// kinds lists the types of the values for which p can hold.
func (p *predicate) kinds() []string {
	list := make([]string, len(p.values))
	for i, v := range p.values {
		list[i] = kindOf(v)
	}
	return list
}

// narrows compares two bounds of numbers in the same direction.
func (p *predicate) narrows(goal *predicate) bool {
	own, ok := p.values[0].(number)
	if !ok || len(goal.values) != 1 {
		return false
	}
	wide, ok := goal.values[0].(number)
	if !ok {
		return false
	}
	order := own.compare(wide)
	switch goal.op {
	case Lt:
		return p.op == Lt && order <= 0 || p.op == Le && order < 0
	case Le:
		return (p.op == Lt || p.op == Le) && order <= 0
	case Gt:
		return p.op == Gt && order >= 0 || p.op == Ge && order > 0
	case Ge:
		return (p.op == Gt || p.op == Ge) && order >= 0
	default:
		return false
	}
}

// specifies compares two conditions on text.
func (p *predicate) specifies(goal *predicate) bool {
	own, ok := p.values[0].(string)
	if !ok || len(goal.values) != 1 {
		return false
	}
	wide, ok := goal.values[0].(string)
	if !ok {
		return false
	}
	switch goal.op {
	case StartsWith:
		return p.op == StartsWith && strings.HasPrefix(own, wide)
	case EndsWith:
		return p.op == EndsWith && strings.HasSuffix(own, wide)
	case Contains:
		return p.op != Under && strings.Contains(own, wide)
	case Under:
		return p.op == Under && under(own, wide)
	default:
		return false
	}
}
