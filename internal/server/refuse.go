package server

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// Refuse returns a Denied error if the caller may not ask for the spec, through any API.
func (c Caller) Refuse(spec paddock.Spec) error { return c.refuseSpec(spec) }

// refuseSpec implements Refuse. A caller that is not trusted may not name anything of the
// host, nor ask for less isolation than the tier has.
func (c Caller) refuseSpec(spec paddock.Spec) error {
	if c.Trusted {
		return nil
	}
	switch {
	case spec.Root.Path != "", !slices.Contains([]paddock.RootKind{paddock.RootHost, paddock.RootSnapshot, paddock.RootImage}, spec.Root.Kind):
		return denied("a root that is a directory of the host") // whose an image or a snapshot is, the driver knows
	case len(spec.Mounts) > 0:
		return denied("a mount of the host")
	case len(spec.AllowMissing) > 0:
		return denied("to give up a control")
	}
	return c.refusePolicy(spec.Policy)
}

// refusePolicy does the same for a policy.
func (c Caller) refusePolicy(p paddock.Policy) error {
	if c.Trusted {
		return nil
	}
	if len(p.KeyAgents) > 0 {
		return denied("a key agent of the server's user")
	}
	if p.Network.Mode != paddock.NetworkNone && p.Network.Mode != paddock.NetworkList {
		return denied("the host's network")
	}
	for i, r := range p.Network.Rules {
		switch {
		case r.Proxy != "":
			return denied(fmt.Sprintf("an upstream proxy (rule %d)", i+1))
		case !r.Deny && isLoopback(r.Host):
			return denied(fmt.Sprintf("%s, the loopback of the server's machine (rule %d)", paddock.LoopbackHost, i+1))
		case !r.Deny && !public(r.Host):
			return denied(fmt.Sprintf("the address %.64q, which is not public (rule %d)", r.Host, i+1))
		}
	}
	return nil
}

func denied(what string) error {
	return fmt.Errorf("this key may not ask for %s: %w", what, paddock.Denied)
}

// isLoopback reports whether a rule's host is the name of the machine's loopback, in any form.
func isLoopback(host string) bool {
	return strings.EqualFold(strings.TrimSuffix(host, "."), paddock.LoopbackHost)
}

// reserved returns the addresses that are not public. It does not judge names, because the
// gateway never connects a name to such an address.
func reserved() []netip.Prefix {
	var list []netip.Prefix
	for _, text := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
		"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3",
		"::/3", "64:ff9b::/32", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "4000::/2", "8000::/1",
	} {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

// public reports whether a rule's host is a name, or an address or network that is entirely
// public.
func public(host string) bool {
	network, err := netip.ParsePrefix(host)
	if err != nil {
		address, err := netip.ParseAddr(host)
		if err != nil {
			return true // a name
		}
		if address.Zone() != "" || address.Is4In6() {
			return false
		}
		network = netip.PrefixFrom(address, address.BitLen())
	}
	if network.Addr().Is4In6() {
		return false
	}
	for _, r := range reserved() {
		if r.Overlaps(network) {
			return false
		}
	}
	return true
}
