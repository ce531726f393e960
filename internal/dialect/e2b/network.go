package e2b

import (
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
)

// Bounds on rules, as E2B's.
const (
	maxRuleDomains = 10
	maxRuleHeaders = 20
	maxHeaderName  = 64
	maxHeaderValue = 2048
	maxDomain      = 128
	maxHosts       = 1000
	maxPieces      = 5000 // our own bound on the pieces of denied ranges
	maxHTTPSPorts  = 1000 // our own too
	maxAddress     = 512  // the same
)

// everything is E2B's name for all traffic.
const everything = "0.0.0.0/0"

// policy converts a network object to a policy. In E2B an allow overrides a deny, and a
// destination that neither names is allowed. In paddock a deny overrides, and a destination
// that no rule allows is denied. An object that cannot be converted is refused.
func policy(n *network, internet *bool) (paddock.NetworkPolicy, error) {
	if n == nil {
		n = &network{}
	}
	p := paddock.NetworkPolicy{Mode: paddock.NetworkList}
	if err := n.check(); err != nil {
		return p, err
	}
	closed := internet != nil && !*internet || slices.Contains(n.DenyOut, everything)
	allow, names, err := hosts("allowOut", n.AllowOut)
	if err != nil {
		return p, err
	}
	deny, denied, err := hosts("denyOut", n.DenyOut)
	switch {
	case err != nil:
		return p, err
	case len(denied) > 0:
		return p, invalid("denyOut: %q is a domain; addresses and ranges alone can be denied", dialect.Printable(denied[0]))
	case len(names) > 0 && !closed:
		return p, invalid("allowOut: the domain %q needs %s in denyOut, because otherwise everything is allowed", dialect.Printable(names[0]), everything)
	}
	proxy, err := n.EgressProxy.url()
	if err != nil {
		return p, err
	}
	var open []string // in order of precedence
	switch {
	case !closed || slices.Contains(names, "*") || slices.Contains(n.AllowOut, everything):
		open = []string{"*"}
		if closed { // by a deny of everything, which an allow of everything cancels
			deny = nil
		}
		left, err := minus(deny, allow)
		if err != nil {
			return p, err
		}
		for _, d := range left {
			p.Rules = append(p.Rules, paddock.NetworkRule{Deny: true, Host: d.String()})
		}
	default:
		for _, a := range allow {
			open = append(open, a.String())
		}
		open = append(open, names...)
	}
	p.Rules = append(p.Rules, n.transforms(open, proxy)...)
	for _, host := range open {
		p.Rules = append(p.Rules, paddock.NetworkRule{Host: host, Ports: every(), Proxy: proxy}, paddock.NetworkRule{Host: host, Ports: every(), UDP: true})
	}
	return p, nil // without rules it allows nothing, and an update can allow something
}

// every returns the value of Ports for every port.
func every() []uint16 { return []uint16{0} }

// hosts separates addresses and ranges from names.
func hosts(field string, list []string) (ranges []netip.Prefix, names []string, err error) {
	if len(list) > maxHosts {
		return nil, nil, invalid("%s: %d entries, the maximum is %d", field, len(list), maxHosts)
	}
	for _, text := range list {
		if prefix, err := netip.ParsePrefix(text); err == nil && !prefix.Addr().Is4In6() {
			ranges = append(ranges, prefix.Masked())
			continue
		}
		if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
			ranges = append(ranges, netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()))
			continue
		}
		if !domain(text) {
			return nil, nil, invalid("%s: %q is not an address, range or domain", field, dialect.Printable(text))
		}
		names = append(names, strings.ToLower(text))
	}
	return ranges, names, nil
}

// domain reports whether a text may be a domain or a pattern for all domains below one.
func domain(text string) bool {
	if text == "*" {
		return true
	}
	text = strings.TrimPrefix(text, "*.")
	if text == "" || len(text) > maxDomain || strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '_'
	}) {
		return false
	}
	for label := range strings.SplitSeq(text, ".") {
		if label == "" {
			return false
		}
	}
	return strings.ContainsFunc(text, func(r rune) bool { return r < '0' && r != '.' || r > '9' }) // else an address
}

// minus removes the ranges b from a. One allowed address splits a denied range into up to
// 128 pieces, so the pieces are counted as they are made.
func minus(a, b []netip.Prefix) ([]netip.Prefix, error) {
	a = apart(a)
	for _, cut := range apart(b) {
		var left []netip.Prefix
		for _, p := range a {
			if left = append(left, without(p, cut)...); len(left) > maxPieces {
				return nil, invalid("denyOut without allowOut leaves more than %d ranges; use larger or fewer ranges", maxPieces)
			}
		}
		a = left
	}
	return a, nil
}

// apart removes ranges that lie inside another.
func apart(list []netip.Prefix) []netip.Prefix {
	list = slices.SortedStableFunc(slices.Values(list), func(a, b netip.Prefix) int { return a.Bits() - b.Bits() })
	var kept []netip.Prefix
	for _, p := range list {
		if !slices.ContainsFunc(kept, p.Overlaps) { // the other is as large or larger
			kept = append(kept, p)
		}
	}
	return kept
}

// without removes cut from p. For each further bit of cut, it keeps the half in which cut
// is not.
func without(p, cut netip.Prefix) []netip.Prefix {
	switch {
	case !p.Overlaps(cut):
		return []netip.Prefix{p}
	case cut.Bits() <= p.Bits():
		return nil
	}
	var left []netip.Prefix
	for bits := p.Bits() + 1; bits <= cut.Bits(); bits++ {
		left = append(left, netip.PrefixFrom(flip(cut.Addr(), bits-1), bits).Masked())
	}
	return left
}

// flip changes one bit of an address, counted from the left.
func flip(a netip.Addr, bit int) netip.Addr {
	data := a.AsSlice()
	data[bit/8] ^= 0x80 >> (bit % 8)
	flipped, _ := netip.AddrFromSlice(data)
	return flipped
}

// check refuses what E2B refuses, and what is not supported here.
func (n *network) check() error {
	if len(n.DNSServers) > 0 {
		return cannot("dnsServers: the server resolves names with its own resolver")
	}
	if len(n.HTTPSPorts) > maxHTTPSPorts {
		return invalid("httpsPorts: %d ports, the maximum is %d", len(n.HTTPSPorts), maxHTTPSPorts)
	}
	for _, port := range n.HTTPSPorts {
		if port < 1 || port > 65535 {
			return invalid("httpsPorts: %d is not a port", port)
		}
	}
	if strings.ContainsAny(n.MaskRequestHost, "/ \r\n\t\x00") || len(n.MaskRequestHost) > maxDomain*2 {
		return invalid("maskRequestHost: %q is not a host", dialect.Printable(n.MaskRequestHost))
	}
	if len(n.Rules) > maxRuleDomains {
		return invalid("rules: %d domains, the maximum is %d", len(n.Rules), maxRuleDomains)
	}
	for host, list := range n.Rules {
		if err := checkRule(host, list); err != nil {
			return err
		}
	}
	return nil
}

func checkRule(host string, list []rule) error {
	if !domain(host) || host == "*" {
		return invalid("rules: %q is not a domain of at most %d characters", dialect.Printable(host), maxDomain)
	}
	if len(list) > 1 {
		return invalid("rules: %q has %d rules, the maximum is one", dialect.Printable(host), len(list))
	}
	for _, r := range list {
		if r.Transform == nil {
			continue
		}
		if len(r.Transform.Headers) > maxRuleHeaders {
			return invalid("rules: %q has %d headers, the maximum is %d", dialect.Printable(host), len(r.Transform.Headers), maxRuleHeaders)
		}
		for name, value := range r.Transform.Headers {
			switch {
			case name == "" || len(name) > maxHeaderName || strings.ContainsFunc(name, notToken):
				return invalid("rules: %q is not a header name of at most %d characters", dialect.Printable(name), maxHeaderName)
			case len(value) > maxHeaderValue || strings.ContainsAny(value, "\r\n\x00"):
				return invalid("rules: the value of %q has a line break, or more than %d characters", dialect.Printable(name), maxHeaderValue)
			case strings.Contains(value, "${e2b."):
				return cannot("rules: the value of %q asks for an identity or a secret of E2B, and this server has none", dialect.Printable(name))
			}
		}
	}
	return nil
}

// notToken reports whether a character is not allowed in a header name.
func notToken(r rune) bool {
	return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}

// transforms returns the rules that change requests, limited to hosts that are allowed,
// because a transform allows nothing by itself.
func (n *network) transforms(open []string, proxy string) []paddock.NetworkRule {
	var list []paddock.NetworkRule
	for _, host := range slices.Sorted(maps.Keys(n.Rules)) {
		if len(n.Rules[host]) == 0 || n.Rules[host][0].Transform == nil || len(n.Rules[host][0].Transform.Headers) == 0 {
			continue
		}
		host, headers := strings.ToLower(host), n.Rules[host][0].Transform.Headers
		if slices.ContainsFunc(open, func(o string) bool { return covers(o, host) }) {
			list = append(list, paddock.NetworkRule{Host: host, SetHeaders: headers, Proxy: proxy})
		}
	}
	return list
}

// covers reports whether a pattern of the list matches everything that another matches.
func covers(open, host string) bool {
	if open == "*" || open == host {
		return true
	}
	suffix, wild := strings.CutPrefix(open, "*")
	return wild && strings.HasSuffix(strings.TrimPrefix(host, "*"), suffix)
}

// url converts the proxy to a URL, or to "" if there is none.
func (p *egressProxy) url() (string, error) {
	switch {
	case p == nil:
		return "", nil
	case p.Address == "" || len(p.Address) > maxAddress || strings.ContainsAny(p.Address, "/@ \r\n"):
		return "", invalid("egressProxy: the address %q is not host:port", dialect.Printable(p.Address))
	case len(p.Username) > 255 || len(p.Password) > 255:
		return "", invalid("egressProxy: the username and the password may have 255 characters each")
	case p.Password != "" && p.Username == "":
		return "", invalid("egressProxy: a password needs a username")
	case len(p.TLS) > 0 && string(p.TLS) != "null" && string(p.TLS) != "false":
		return "", cannot("egressProxy: TLS to the proxy is not offered by this server")
	}
	u := url.URL{Scheme: "socks5", Host: p.Address}
	if p.Username != "" {
		u.User = url.UserPassword(p.Username, p.Password)
	}
	return u.String(), nil
}
