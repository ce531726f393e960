package policy

import (
	"fmt"
	"slices"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

func (f *File) networkConflicts() (problems, notes []Problem) {
	n := f.Network
	for what, count := range map[string]int{"rules": len(n.Rules), "secrets": len(n.Secrets)} {
		if count == 0 || n.Mode == paddock.NetworkList {
			continue
		}
		text := what + " beside the mode none, which allows nothing"
		if n.Mode == paddock.NetworkHost {
			text = what + " beside the mode host, which has no control at all"
		}
		problems = append(problems, f.problem("network."+what, text, `write "mode: list" to have the rules decide`))
	}
	if len(problems) > 0 {
		return problems, nil
	}
	if n.Mode == paddock.NetworkList && len(n.Rules) == 0 {
		notes = append(notes, f.problem("network.mode", "no rules: nothing can be reached", ""))
	}
	if problems := f.judge(unknown(n)); len(problems) > 0 {
		return problems, notes
	}
	return nil, append(append(notes, f.idleRules()...), f.idleSecrets()...)
}

// reach is what a rule is about, to compare it with others.
type reach struct {
	paddock.NetworkRule
	pattern decide.Pattern
}

// asks tells whether the rule is about some requests alone.
func (r *reach) asks() bool {
	return r.Scheme != "" || len(r.Methods)+len(r.Paths)+len(r.Query)+len(r.Headers) > 0
}

// plain tells whether the rule says nothing but where.
func (r *reach) plain() bool {
	return !r.asks() && !r.Inspect && r.Limits == nil && r.Proxy == "" && r.Answer == nil && len(r.SetHeaders)+len(r.RemoveHeaders) == 0
}

// covers tells whether every flow that q is about, r is about too.
func (r *reach) covers(q *reach) bool {
	if r.UDP != q.UDP && (!r.Deny || r.UDP) {
		return false
	}
	if host, ok := q.pattern.Host(); ok && host.Loopback() && !r.Deny && r.pattern != q.pattern {
		return false // an allow is about this machine's loopback by its name alone
	}
	return r.pattern.Covers(q.pattern) && r.coversPorts(q)
}

func (r *reach) coversPorts(q *reach) bool {
	if r.Deny && len(r.Ports) == 0 {
		return true
	}
	if q.Deny && len(q.Ports) == 0 {
		return false
	}
	return !slices.ContainsFunc(q.ports(), func(port uint16) bool { return !slices.Contains(r.ports(), port) })
}

// ports with the default of an allow.
func (r *reach) ports() []uint16 {
	switch {
	case len(r.Ports) > 0:
		return r.Ports
	case r.UDP:
		return []uint16{443}
	}
	return []uint16{443, 80}
}

func (f *File) reaches() []reach {
	var all []reach
	for _, nr := range f.Network.Rules {
		if p, err := decide.ParsePattern(nr.Host); err == nil {
			all = append(all, reach{nr, p})
		}
	}
	return all
}

// idleRules notes rules that do nothing, or more than is probably meant.
func (f *File) idleRules() (notes []Problem) {
	rules := f.reaches()
	for i := range rules {
		r := &rules[i]
		if !r.Deny && r.pattern.All() {
			notes = append(notes, f.problem(f.ruleKey(i), "everything is allowed, but for what a rule denies", "name what is needed"))
		}
		if prefix, ok := r.pattern.Prefix(); ok && !r.Deny && prefix.Bits() == 0 {
			notes = append(notes, f.problem(f.ruleKey(i), "every address is allowed, but for what a rule denies", "name what is needed"))
		}
		for j := range rules {
			if text, hint := f.idle(rules, i, j); text != "" {
				notes = append(notes, f.problem(f.ruleKey(i), text, hint))
				break
			}
		}
	}
	return notes
}

// idle says why rule i does nothing because of rule j.
func (f *File) idle(rules []reach, i, j int) (text, hint string) {
	r, other := &rules[i], &rules[j]
	if i == j || other.asks() || !other.covers(r) {
		return "", ""
	}
	switch {
	case !r.Deny && other.Deny:
		return fmt.Sprintf("it never allows anything: the deny of %q wins over it", other.Host),
			fmt.Sprintf("see %s; what no rule allows is denied anyway", f.ruleKey(j))
	case r.Deny != other.Deny:
		return "", ""
	case j < i || (r.plain() && other.plain() && !r.covers(other)) || (r.Deny && !r.covers(other)):
		return fmt.Sprintf("it adds nothing to %s, %q", f.ruleKey(j), other.Host), ""
	}
	return "", ""
}

// idleSecrets notes secrets that no request can carry.
func (f *File) idleSecrets() (notes []Problem) {
	if len(f.Network.Secrets) == 0 {
		return nil
	}
	rules := f.reaches()
	for _, s := range f.Network.Secrets {
		used := slices.ContainsFunc(s.Hosts, func(text string) bool {
			p, port, err := parseRuleHost(text)
			if err != nil {
				return false
			}
			if port == 0 {
				port = 443
			}
			return slices.ContainsFunc(rules, func(r reach) bool {
				return !r.Deny && !r.UDP && slices.Contains(r.ports(), port) && (r.pattern.Covers(p) || p.Covers(r.pattern))
			})
		})
		if !used {
			notes = append(notes, f.problem("network.secrets."+s.Name, "it is never used: no rule allows any of its hosts", "a secret allows nothing by itself"))
		}
	}
	return notes
}
