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

// A Flow is the destination of a connection, or of datagrams.
type Flow struct {
	Host Host
	Port uint16
	UDP  bool
}

// String returns "example.com:443", "[::1]:443" or "example.com:443/udp".
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

// A Request is one HTTP request in a flow that is inspected.
type Request struct {
	Scheme string // "http", or "https" where the connection used TLS
	Method string

	// Path is the path as it stood in the request, still percent-encoded and not cleaned, without the query. The rules
	// judge every form that a server could make of it.
	Path     string
	RawQuery string
	Header   map[string][]string
	Trailer  []string // names of the trailer that is announced; a server may take them for headers
}

// A Verdict is a decision and its reason.
type Verdict struct {
	Allow bool

	// Look is set for flows alone. It means that the decision depends on the request, or that a rule changes requests.
	// The gateway must then inspect the flow, and Allow says that some request may pass.
	Look bool

	Rule   int    // index in the policy of the rule that decides; -1: none allows
	Reason string // for people: "rules[2] denies *.example.com", "no rule allows example.com:443"
	Hint   string // how to allow what is denied: "--allow example.com:443", "remove rules[2]"; empty where it is allowed
}

// Rules are a checked and compiled policy. They are immutable and safe for concurrent use.
type Rules struct {
	rules   []compiled
	secrets []bound
}

// compiled is a rule in the form that matching needs.
type compiled struct {
	paddock.NetworkRule
	host  Pattern
	paths []pathPattern
}

// bound is a secret with its destinations.
type bound struct {
	paddock.Secret
	hosts []destination
}

type destination struct {
	host Pattern
	port uint16
}

// A RuleError says which part of a policy is wrong, and how. Its kind is Invalid. It never holds the value of a secret.
type RuleError struct {
	Part  string // "rules", "secrets" or, for the whole, ""
	Index int
	Text  string
}

// Error returns "rules[3]: …".
func (e *RuleError) Error() string {
	if e.Part == "" {
		return e.Text
	}
	return fmt.Sprintf("%s[%d]: %s", e.Part, e.Index, e.Text)
}

// Unwrap returns the kind.
func (e *RuleError) Unwrap() error { return paddock.Invalid }

// Compile checks and compiles a copy of a policy. An error is a [*RuleError] that names the rule or the secret:
// "rules[3]: …", "secrets[0]: …". Mode none allows nothing, and rules or secrets beside it are Invalid. Mode host is
// Invalid too, because no gateway decides there.
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

// at reports whether the rule applies to the flow, whatever its requests. A deny without
// UDP also applies to datagrams, and a deny without ports to all ports, because an omission
// in a deny must not leave a gap.
func (c *compiled) at(f Flow) bool {
	if !f.Host.IsValid() || f.Port == 0 || (f.UDP != c.UDP && (!c.Deny || c.UDP)) {
		return false
	}
	return c.onPort(f.Port) && c.about(f.Host)
}

// about reports whether the rule is about a host, at some port. An allow is about this
// machine's loopback only by its name, never by a wildcard.
func (c *compiled) about(h Host) bool {
	if h.Loopback() && !c.Deny {
		only, one := c.host.Host()
		return one && only == h
	}
	return c.host.Match(h)
}

func (c *compiled) onPort(port uint16) bool {
	if len(c.Ports) == 0 && c.Deny || c.every() {
		return true
	}
	return slices.Contains(c.ports(), port)
}

// every reports whether the rule lists all ports.
func (c *compiled) every() bool { return len(c.Ports) == 1 && c.Ports[0] == 0 }

// tries returns ports such that, if an allow leaves any port allowed, one of them is. For
// an allow of all ports, the first port without a deny follows a port with one.
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

// ports returns the ports of the rule, or the default.
func (c *compiled) ports() []uint16 {
	switch {
	case len(c.Ports) > 0:
		return c.Ports
	case c.UDP:
		return []uint16{443}
	}
	return []uint16{443, 80}
}

// asks reports whether the rule has conditions on requests.
func (c *compiled) asks() bool {
	return c.Scheme != "" || len(c.Methods)+len(c.Paths)+len(c.Query)+len(c.Headers) > 0
}

// looks reports whether flows of the rule must be inspected.
func (c *compiled) looks() bool {
	return c.asks() || c.Inspect || len(c.SetHeaders)+len(c.RemoveHeaders) > 0 || c.Answer != nil
}

// Flow judges a connection, or datagrams, by the destination alone. A deny without conditions on requests wins. Look is
// set where a deny has such conditions, where an allow has conditions or changes requests, or where a secret is bound
// to the destination. It is never set for datagrams, which cannot be inspected: a deny of some requests denies them.
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
			open = c.asks() // rules after one that takes every request are never reached
		}
	}
	if allowed < 0 {
		return none(f)
	}
	v := r.allows(allowed)
	v.Look = !f.UDP && (look || r.bound(f.Host, f.Port))
	return v
}

// Request judges one request in an inspected flow. A deny whose conditions the request meets wins. Otherwise the first
// allow whose conditions it meets counts. Where servers can read a request in more than one way, a deny is met if one
// of the readings meets it, and an allow only if all do; see pathPattern. Look is never set, and datagrams hold no
// requests.
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
		if !f.UDP {
			v.Hint = permit(f, q, views)
		}
		return v
	}
	return r.allows(allowed)
}

// At returns the rule of a Verdict. The caller must not change its maps and lists. It returns the zero rule for an
// index out of range.
func (r *Rules) At(i int) paddock.NetworkRule {
	if i < 0 || i >= len(r.rules) {
		return paddock.NetworkRule{}
	}
	return r.rules[i].NetworkRule
}

// Lookup judges a DNS query for a name. It allows the query if some rule allows some port of the name, or datagrams to
// it, and no deny covers all that is allowed.
func (r *Rules) Lookup(h Host) Verdict {
	denied := -1
	for i := range r.rules {
		c := &r.rules[i]
		if c.Deny || !c.about(h) {
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
	v := Verdict{Rule: -1, Reason: "no rule allows " + h.String(), Hint: "--allow " + bracket(h)}
	if h.Loopback() {
		v.Reason += ", the loopback of this machine"
		v.Hint += ":PORT"
	}
	return v
}

// Lists reports whether an allow rule names the very address that a flow leads to, or a range that holds it. Ranges as
// wide as half of all addresses list none, nor does "*", because private addresses and the host's own are reached only
// on purpose. For the same reason a rule with ports lists an address at these alone: to list a database is not to list
// all servers of its machine, whatever else allows the flow. For a name, a rule without ports lists it at every port
// that the name is allowed at. A flow to the address itself has no other rule, so there the default ports count.
func (r *Rules) Lists(f Flow, a netip.Addr) bool {
	h := HostOf(a)
	_, raw := f.Host.Addr()
	return slices.ContainsFunc(r.rules, func(c compiled) bool {
		if c.Deny || !lists(c.host, h) {
			return false
		}
		if !raw && len(c.Ports) == 0 {
			return true
		}
		return c.UDP == f.UDP && c.onPort(f.Port)
	})
}

// Dials judges an address that the host of an allowed flow resolved to. A deny that names it, or a range that holds it,
// wins over the rule that allows the name. So does a deny of some requests, because a request does not show the
// address. Dials does not judge the flow again, nor whether the address must be listed. Look is never set.
func (r *Rules) Dials(f Flow, a netip.Addr) Verdict {
	to := Flow{Host: HostOf(a), Port: f.Port, UDP: f.UDP}
	for i := range r.rules {
		c := &r.rules[i]
		// A deny of the flow's own host was already judged.
		if c.Deny && c.at(to) && !c.at(f) {
			return r.denies(i)
		}
	}
	return Verdict{Allow: true, Rule: -1, Reason: fmt.Sprintf("no rule denies %s", to.Host)}
}

// lists reports whether p names the address h, or a range around it that is narrow enough
// to be intended.
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

// Inspected lists the hosts whose TLS the gateway may terminate: those of rules that need inspection, and of secrets.
// No pattern of the list covers another.
func (r *Rules) Inspected() []Pattern {
	var all []Pattern
	for i := range r.rules {
		c := &r.rules[i]
		switch {
		case c.UDP || !c.looks():
		case !c.Deny:
			all = append(all, c.host)
		default:
			// A deny alone lets nothing pass that could be inspected.
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

// common returns the hosts that two patterns share: one of the patterns, or nothing.
func common(p, q Pattern) []Pattern {
	switch {
	case p.Covers(q):
		return []Pattern{q}
	case q.Covers(p):
		return []Pattern{p}
	}
	return nil
}

// widest removes patterns that another one covers.
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
	return Verdict{Rule: i, Reason: fmt.Sprintf("rules[%d] denies %s", i, r.rules[i].words()), Hint: fmt.Sprintf("remove rules[%d]", i)}
}

func (r *Rules) allows(i int) Verdict {
	return Verdict{Allow: true, Rule: i, Reason: fmt.Sprintf("rules[%d] allows %s", i, r.rules[i].words())}
}

// words describes the rule with texts of the policy only.
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

// permit returns how to allow a request that no rule allows or denies: by the narrowest rule
// that does so. A host that is allowed for some requests must not be opened for all.
func permit(f Flow, q Request, v views) string {
	var methods, paths []string
	for _, m := range v.methods {
		if !slices.Contains(methods, m) {
			methods = append(methods, m)
		}
	}
	if len(v.paths) > 0 && !strings.Contains(v.paths[0], "*") && len(q.Path) <= maxHint {
		paths = v.paths[:1]
	}
	for _, rule := range []paddock.NetworkRule{
		{Methods: methods, Paths: paths},
		{Methods: methods},
		{Paths: paths},
	} {
		if len(rule.Methods)+len(rule.Paths) == 0 {
			continue
		}
		rule.Host, rule.Ports = f.Host.String(), []uint16{f.Port}
		r, err := Compile(paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{rule}})
		if err != nil || !r.rules[0].at(f) || !r.rules[0].meets(v) {
			continue
		}
		text := fmt.Sprintf("in the policy file: network: {mode: list, rules: [{allow: %q", f)
		if len(rule.Methods) > 0 {
			text += ", methods: [" + strings.Join(rule.Methods, ", ") + "]"
		}
		if len(rule.Paths) > 0 {
			text += fmt.Sprintf(", paths: [%q]", rule.Paths[0])
		}
		return text + "}]}"
	}
	return "in the policy file, a rule that allows such requests of " + f.String()
}

// maxHint bounds the path that a hint repeats.
const maxHint = 200

func none(f Flow) Verdict {
	v := Verdict{Rule: -1, Reason: "no rule allows " + f.String(), Hint: "--allow " + f.String()}
	if f.Host.Loopback() {
		v.Reason += ", the loopback of this machine"
		if f.UDP {
			v.Reason, v.Hint = "datagrams do not reach the loopback of this machine", ""
		}
		return v
	}
	if f.UDP {
		f.UDP = false
		v.Hint = fmt.Sprintf("in the policy file: network: {mode: list, rules: [{allow: %q, udp: true}]}", f)
	}
	return v
}
