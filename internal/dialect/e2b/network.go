package e2b

import (
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of E2B's on rules.
const (
	maxRuleDomains = 10
	maxRuleHeaders = 20
	maxHeaderName  = 64
	maxHeaderValue = 2048
	maxDomain      = 128
	maxHosts       = 1000
	maxPieces      = 5000 // ours: of what is left of denied ranges
)

// everything is what E2B calls all traffic.
const everything = "0.0.0.0/0"

// policy says in paddock's words what a network object says. There an allow wins
// over a deny, and what neither names is allowed; here a deny wins, and what no rule
// allows is denied. What cannot be said is refused.
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
		return p, invalid("denyOut: %q is a domain; addresses and ranges alone can be denied", printable(denied[0]))
	case len(names) > 0 && !closed:
		return p, invalid("allowOut: the domain %q needs %s in denyOut: all else is allowed anyway", printable(names[0]), everything)
	}
	proxy, err := n.EgressProxy.url()
	if err != nil {
		return p, err
	}
	var open []string // in the order in which they count
	switch {
	case !closed || slices.Contains(names, "*") || slices.Contains(n.AllowOut, everything):
		open = []string{"*"}
		if closed { // by a deny of all, which an allow of all undoes
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
	if len(p.Rules) == 0 {
		return paddock.NetworkPolicy{}, nil
	}
	return p, nil
}

// every is all ports of a rule.
func every() []uint16 { return []uint16{0} }

// hosts parts addresses and ranges from names.
func hosts(field string, list []string) (ranges []netip.Prefix, names []string, err error) {
	if len(list) > maxHosts {
		return nil, nil, invalid("%s: %d entries; there may be %d", field, len(list), maxHosts)
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
			return nil, nil, invalid("%s: %q is no address, range or domain", field, printable(text))
		}
		names = append(names, strings.ToLower(text))
	}
	return ranges, names, nil
}

// domain tells whether a text may be a domain, or all below one.
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
	return strings.ContainsFunc(text, func(r rune) bool { return r < '0' && r != '.' || r > '9' }) // else it is an address that is wrong
}

// minus takes ranges out of ranges: what is left of a when b wins. One allowed
// address leaves up to 128 pieces of each denied range: they are counted as they are made.
func minus(a, b []netip.Prefix) ([]netip.Prefix, error) {
	a = apart(a)
	for _, cut := range apart(b) {
		var left []netip.Prefix
		for _, p := range a {
			if left = append(left, without(p, cut)...); len(left) > maxPieces {
				return nil, invalid("denyOut but for allowOut: more than %d ranges are left; name larger ones, or fewer", maxPieces)
			}
		}
		a = left
	}
	return a, nil
}

// apart leaves out what is inside of another.
func apart(list []netip.Prefix) []netip.Prefix {
	list = slices.SortedStableFunc(slices.Values(list), func(a, b netip.Prefix) int { return a.Bits() - b.Bits() })
	var kept []netip.Prefix
	for _, p := range list {
		if !slices.ContainsFunc(kept, p.Overlaps) { // with one as large or larger
			kept = append(kept, p)
		}
	}
	return kept
}

// without is p but for what is in cut: of each bit that they have in common, the
// half in which cut is not.
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

// check refuses what E2B refuses, and what cannot be done here.
func (n *network) check() error {
	if len(n.DNSServers) > 0 {
		return cannot("dnsServers: names are looked up by the server, whose resolver it is")
	}
	for _, port := range n.HTTPSPorts {
		if port < 1 || port > 65535 {
			return invalid("httpsPorts: %d is no port", port)
		}
	}
	if strings.ContainsAny(n.MaskRequestHost, "/ \r\n\t\x00") || len(n.MaskRequestHost) > maxDomain*2 {
		return invalid("maskRequestHost: %q is no host", printable(n.MaskRequestHost))
	}
	if len(n.Rules) > maxRuleDomains {
		return invalid("rules: %d domains; there may be %d", len(n.Rules), maxRuleDomains)
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
		return invalid("rules: %q is no domain of at most %d characters", printable(host), maxDomain)
	}
	if len(list) > 1 {
		return invalid("rules: %q has %d rules; there may be one", printable(host), len(list))
	}
	for _, r := range list {
		if r.Transform == nil {
			continue
		}
		if len(r.Transform.Headers) > maxRuleHeaders {
			return invalid("rules: %q has %d headers; there may be %d", printable(host), len(r.Transform.Headers), maxRuleHeaders)
		}
		for name, value := range r.Transform.Headers {
			switch {
			case name == "" || len(name) > maxHeaderName || strings.ContainsFunc(name, notToken):
				return invalid("rules: %q is no name of a header of at most %d characters", printable(name), maxHeaderName)
			case len(value) > maxHeaderValue || strings.ContainsAny(value, "\r\n\x00"):
				return invalid("rules: the value of %q has a line break, or more than %d characters", printable(name), maxHeaderValue)
			case strings.Contains(value, "${e2b."):
				return cannot("rules: the value of %q asks for an identity or a secret of E2B, and this server has none", printable(name))
			}
		}
	}
	return nil
}

// notToken tells whether a character may not be in the name of a header.
func notToken(r rune) bool {
	return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}

// transforms are the rules of hosts whose requests are changed, as far as those may
// be reached: a rule allows nothing by itself.
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

// covers tells whether a host of the list stands for all that another means.
func covers(open, host string) bool {
	if open == "*" || open == host {
		return true
	}
	suffix, wild := strings.CutPrefix(open, "*")
	return wild && strings.HasSuffix(strings.TrimPrefix(host, "*"), suffix)
}

// url is the proxy as paddock writes it; none is empty.
func (p *egressProxy) url() (string, error) {
	switch {
	case p == nil:
		return "", nil
	case p.Address == "" || strings.ContainsAny(p.Address, "/@ \r\n"):
		return "", invalid("egressProxy: the address %q is not host:port", printable(p.Address))
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
