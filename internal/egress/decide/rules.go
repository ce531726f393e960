package decide

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// A Flow is what is connected to.
type Flow struct {
	Host Host
	Port uint16
	UDP  bool
}

// String gives "example.com:443", "[::1]:443" or "example.com:443/udp".
func (f Flow) String() string {
	text := fmt.Sprintf("%s:%d", bracket(f.Host), f.Port)
	if f.UDP {
		text += "/udp"
	}
	return text
}

func bracket(h Host) string {
	if a, ok := h.Addr(); ok && a.Is6() {
		return "[" + a.String() + "]"
	}
	return h.String()
}

// A Request is what is asked in a flow that is looked into.
type Request struct {
	Scheme string // "http" or "https", by whether TLS was there
	Method string

	// Path is the path as it stood in the request, still percent-encoded and not
	// cleaned, without the query: what a server could make of it is judged here.
	Path     string
	RawQuery string
	Header   map[string][]string
}

// A Verdict is a decision and its reason.
type Verdict struct {
	Allow bool

	// Look is of flows alone: whether something is allowed depends on the
	// request, or something is done with requests. It must be looked into, and
	// Allow then says that some request may pass.
	Look bool

	Rule   int    // index in the policy of the rule that decides; -1: none allows
	Reason string // for people: "rules[2] denies *.example.com", "no rule allows example.com:443"
	Hint   string // how to allow what is denied: "--allow example.com:443", "take rules[2] away"; empty where it is allowed
}

// Rules are a checked policy. They never change, and may be used by many
// goroutines.
type Rules struct {
	rules   []compiled
	secrets []bound
}

// compiled is a rule that can be asked.
type compiled struct {
	paddock.NetworkRule
	host  Pattern
	paths []pathPattern
}

// bound is a secret with the destinations that it is for.
type bound struct {
	paddock.Secret
	hosts []destination
}

type destination struct {
	host Pattern
	port uint16
}

// An RuleError says which part of a policy is wrong, and how. It is Invalid, and
// never holds the value of a secret.
type RuleError struct {
	Part  string // "rules", "secrets" or, for the whole, ""
	Index int
	Text  string
}

// RuleError gives "rules[3]: …".
func (e *RuleError) Error() string {
	if e.Part == "" {
		return e.Text
	}
	return fmt.Sprintf("%s[%d]: %s", e.Part, e.Index, e.Text)
}

// Unwrap gives the kind.
func (e *RuleError) Unwrap() error { return paddock.Invalid }

// Compile checks and compiles a policy, of which it keeps a copy. An error is an
// [*Error] that names the rule or the secret: "rules[3]: …", "secrets[0]: …". Mode none allows nothing, and rules or
// secrets beside it are Invalid. So is mode host: nobody decides there.
func Compile(p paddock.NetworkPolicy) (*Rules, error) {
	if err := checkMode(p); err != nil {
		return nil, &RuleError{Text: err.Error()}
	}
	r := &Rules{}
	for i, nr := range p.Rules {
		c, err := compile(nr)
		if err != nil {
			return nil, &RuleError{"rules", i, err.Error()}
		}
		r.rules = append(r.rules, c)
	}
	for i, s := range p.Secrets {
		b, err := bind(s)
		if err != nil {
			return nil, &RuleError{"secrets", i, err.Error()}
		}
		r.secrets = append(r.secrets, b)
	}
	for i := range r.secrets {
		if err := r.checkSecret(i); err != nil {
			return nil, &RuleError{"secrets", i, err.Error()}
		}
	}
	return r, nil
}

// at tells whether the rule is about the flow, whatever is asked in it. A deny
// that says nothing of datagrams is about them too, and one that says nothing
// of ports about all: what is forgotten in a deny must not open a way around it.
func (c *compiled) at(f Flow) bool {
	if !f.Host.IsValid() || f.Port == 0 || (f.UDP != c.UDP && (!c.Deny || c.UDP)) {
		return false
	}
	return c.onPort(f.Port) && c.host.Match(f.Host)
}

func (c *compiled) onPort(port uint16) bool {
	if len(c.Ports) == 0 && c.Deny || c.every() {
		return true
	}
	return slices.Contains(c.ports(), port)
}

// every tells whether an allow is about all ports.
func (c *compiled) every() bool { return len(c.Ports) == 1 && c.Ports[0] == 0 }

// tries are ports of which one is allowed if any port of an allow is: where it is
// about all of them, the first that no deny names follows one that a deny does.
func (r *Rules) tries(c *compiled) []uint16 {
	if !c.every() {
		return c.ports()
	}
	list := []uint16{443, 80, 1}
	for i := range r.rules {
		if !r.rules[i].Deny {
			continue
		}
		for _, port := range r.rules[i].Ports {
			if port < math.MaxUint16 {
				list = append(list, port+1)
			}
		}
	}
	return list
}

// ports of an allow, with the default.
func (c *compiled) ports() []uint16 {
	switch {
	case len(c.Ports) > 0:
		return c.Ports
	case c.UDP:
		return []uint16{443}
	}
	return []uint16{443, 80}
}

// asks tells whether the rule is about some requests alone.
func (c *compiled) asks() bool {
	return c.Scheme != "" || len(c.Methods)+len(c.Paths)+len(c.Query)+len(c.Headers) > 0
}

// looks tells whether a flow that the rule is about has to be looked into.
func (c *compiled) looks() bool {
	return c.asks() || c.Inspect || len(c.SetHeaders)+len(c.RemoveHeaders) > 0 || c.Answer != nil
}

// Flow judges a connection, or datagrams, before anything of it is known but
// where it goes. A deny that says nothing of requests wins. With others, and
// where an allow says anything of requests or does something with them, or a
// secret is bound to the destination, Look is set. It is never set of
// datagrams, which cannot be looked into: a deny of some requests denies them.
func (r *Rules) Flow(f Flow) Verdict {
	allowed, look, open := -1, false, true
	for i := range r.rules {
		c := &r.rules[i]
		switch {
		case !c.at(f):
		case c.Deny && (f.UDP || !c.asks()):
			return r.denies(i)
		case c.Deny:
			look = true
		case open:
			if allowed < 0 {
				allowed = i
			}
			look = look || c.looks()
			open = c.asks() // what comes after a rule that takes all is never reached
		}
	}
	if allowed < 0 {
		return none(f)
	}
	v := r.allows(allowed)
	v.Look = !f.UDP && (look || r.bound(f.Host, f.Port))
	return v
}

// Request judges one request in a flow that is looked into. A deny whose
// conditions it meets wins; else the first allow whose conditions it meets
// counts. Where a request can be understood in more than one way, a deny is met
// if one of them meets it, and an allow if all do; see the documentation of
// pathPattern. Look is never set, and datagrams hold no requests.
func (r *Rules) Request(f Flow, q Request) Verdict {
	allowed := -1
	views := viewsOf(q)
	for i := range r.rules {
		c := &r.rules[i]
		switch {
		case !c.at(f):
		case c.Deny && (f.UDP || c.meets(views)):
			return r.denies(i)
		case !c.Deny && allowed < 0 && c.meets(views):
			allowed = i
		}
	}
	if f.UDP || allowed < 0 {
		v := none(f)
		v.Reason = fmt.Sprintf("no rule allows %.16q %.80q of %s", q.Method, q.Path, f)
		return v
	}
	return r.allows(allowed)
}

// At gives the rule of a Verdict, whose maps and lists are not to be changed.
// The zero rule stands for an index that is not there.
func (r *Rules) At(i int) paddock.NetworkRule {
	if i < 0 || i >= len(r.rules) {
		return paddock.NetworkRule{}
	}
	return r.rules[i].NetworkRule
}

// Lookup tells whether a name may be asked for: some rule allows some port of
// it, or datagrams, and no deny takes all of what is allowed.
func (r *Rules) Lookup(h Host) Verdict {
	denied := -1
	for i := range r.rules {
		c := &r.rules[i]
		if c.Deny || !c.host.Match(h) {
			continue
		}
		for _, port := range r.tries(c) {
			v := r.Flow(Flow{Host: h, Port: port, UDP: c.UDP})
			if v.Allow {
				v.Look = false
				return v
			}
			if denied < 0 {
				denied = v.Rule
			}
		}
	}
	if denied >= 0 {
		return r.denies(denied)
	}
	for i := range r.rules {
		if c := &r.rules[i]; c.Deny && !c.asks() && len(c.Ports) == 0 && c.host.Match(h) {
			return r.denies(i)
		}
	}
	return Verdict{Rule: -1, Reason: "no rule allows " + h.String(), Hint: "--allow " + bracket(h)}
}

// Lists tells whether a rule that allows names this very address, or a range
// that holds it. Ranges as wide as half of all addresses list none, nor does
// "*": what is private, or the host's own, is reached only where it is meant. It
// says nothing of ports: those are of the rule that allows the flow.
func (r *Rules) Lists(a netip.Addr) bool {
	h := HostOf(a)
	return slices.ContainsFunc(r.rules, func(c compiled) bool { return !c.Deny && lists(c.host, h) })
}

// Dials judges an address that the host of an allowed flow was looked up to. A
// deny that names it, or a range that holds it, wins over what allows the name;
// also one of some requests, as nothing of the address is seen in those. Else it
// is allowed: whether the flow is, and whether the address is one that has to be
// listed, is not asked again. Look is never set.
func (r *Rules) Dials(f Flow, a netip.Addr) Verdict {
	to := Flow{Host: HostOf(a), Port: f.Port, UDP: f.UDP}
	for i := range r.rules {
		c := &r.rules[i]
		// A deny that is about the flow's own host was judged of that.
		if c.Deny && c.at(to) && !c.at(f) {
			return r.denies(i)
		}
	}
	return Verdict{Allow: true, Rule: -1, Reason: fmt.Sprintf("no rule denies %s", to.Host)}
}

// lists tells whether p names h, an address, or a range around it that is
// narrow enough to be meant.
func lists(p Pattern, h Host) bool {
	if prefix, ok := p.Prefix(); ok {
		narrow := 8 // as 10.0.0.0/8
		if prefix.Addr().Is6() {
			narrow = 7 // as fc00::/7
		}
		return prefix.Bits() >= narrow && p.Match(h)
	}
	_, one := p.Host()
	return one && p.Match(h)
}

// Inspected lists the hosts whose TLS may be ended here: those of rules that
// need a look, and of secrets. None is covered by another.
func (r *Rules) Inspected() []Pattern {
	var all []Pattern
	for i := range r.rules {
		c := &r.rules[i]
		switch {
		case c.UDP || !c.looks():
		case !c.Deny:
			all = append(all, c.host)
		default:
			// A deny by itself lets nothing pass that could be looked into.
			for j := range r.rules {
				if a := &r.rules[j]; !a.Deny && !a.UDP && (a.every() || slices.ContainsFunc(a.ports(), c.onPort)) {
					all = append(all, common(c.host, a.host)...)
				}
			}
		}
	}
	for _, s := range r.secrets {
		for _, d := range s.hosts {
			all = append(all, d.host)
		}
	}
	return widest(all)
}

// common gives what two patterns both mean: one of them, or nothing.
func common(p, q Pattern) []Pattern {
	switch {
	case p.Covers(q):
		return []Pattern{q}
	case q.Covers(p):
		return []Pattern{p}
	}
	return nil
}

// widest leaves out what another covers.
func widest(all []Pattern) []Pattern {
	var kept []Pattern
	for i, p := range all {
		covered := slices.ContainsFunc(all[:i], func(q Pattern) bool { return q.Covers(p) }) ||
			slices.ContainsFunc(all[i+1:], func(q Pattern) bool { return q != p && q.Covers(p) })
		if !covered {
			kept = append(kept, p)
		}
	}
	return kept
}

func (r *Rules) denies(i int) Verdict {
	return Verdict{Rule: i, Reason: fmt.Sprintf("rules[%d] denies %s", i, r.rules[i].words()), Hint: fmt.Sprintf("take rules[%d] away", i)}
}

func (r *Rules) allows(i int) Verdict {
	return Verdict{Allow: true, Rule: i, Reason: fmt.Sprintf("rules[%d] allows %s", i, r.rules[i].words())}
}

// words says what the rule is about, in the policy's own text alone.
func (c *compiled) words() string {
	var parts []string
	if len(c.Methods) > 0 {
		parts = append(parts, strings.Join(c.Methods, ","))
	}
	if len(c.Paths) > 0 {
		parts = append(parts, strings.Join(c.Paths, ","))
	}
	if len(c.Query) > 0 {
		parts = append(parts, "?"+strings.Join(slices.Sorted(maps.Keys(c.Query)), "&"))
	}
	if len(c.Headers) > 0 {
		parts = append(parts, strings.Join(slices.Sorted(maps.Keys(c.Headers)), ","))
	}
	host := c.host.String()
	if c.Scheme != "" {
		host = c.Scheme + "://" + host
	}
	if len(parts) == 0 {
		return host
	}
	return clip(strings.Join(parts, " ")) + " of " + host
}

func none(f Flow) Verdict {
	v := Verdict{Rule: -1, Reason: "no rule allows " + f.String(), Hint: "--allow " + f.String()}
	if f.UDP {
		f.UDP = false
		v.Hint = fmt.Sprintf("in the policy file: network: {rules: [{allow: %q, udp: true}]}", f)
	}
	return v
}
