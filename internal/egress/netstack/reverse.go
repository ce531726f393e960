package netstack

import (
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

var (
	loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	loopback6 = netip.IPv6Loopback()
)

// GatewayName is the name that a reverse lookup of the gateway's own addresses returns. It resolves to no address.
const GatewayName = "gateway.paddock.internal"

// reverse answers a reverse lookup. It reports false if the query is none.
func reverse(r *dnsReply, t *NameTable) bool {
	addr, below := reversed(r.query.question.Name.String())
	if !below {
		return false
	}
	var name string
	h, ok := t.Lookup(addr)
	switch {
	case ok:
		name, r.asked.Host = h.String(), h
	case addr == Gateway4(), addr == Gateway6():
		name = GatewayName
	case addr.IsLoopback():
		name = "localhost"
	default:
		r.refuse(dnsmessage.RCodeNameError, "the address stands for no name")
		return true
	}
	r.asked.Verdict.Allow, r.asked.Verdict.Reason = true, "the address stands for it"
	full, err := dnsmessage.NewName(name + ".")
	if err != nil {
		r.refuse(dnsmessage.RCodeServerFailure, err.Error())
		return true
	}
	r.name = &full
	return true
}

// reversed returns the address in a name of the reverse zones, or none if the name is
// incomplete.
func reversed(s string) (addr netip.Addr, below bool) {
	s = strings.ToLower(strings.TrimSuffix(s, "."))
	if labels, ok := strings.CutSuffix(s, ".in-addr.arpa"); ok {
		return reversed4(strings.Split(labels, ".")), true
	}
	if labels, ok := strings.CutSuffix(s, ".ip6.arpa"); ok {
		return reversed6(strings.Split(labels, ".")), true
	}
	return netip.Addr{}, s == "in-addr.arpa" || s == "ip6.arpa"
}

func reversed4(labels []string) netip.Addr {
	if len(labels) != 4 {
		return netip.Addr{}
	}
	addr, err := netip.ParseAddr(labels[3] + "." + labels[2] + "." + labels[1] + "." + labels[0])
	if err != nil || !addr.Is4() {
		return netip.Addr{}
	}
	return addr
}

func reversed6(labels []string) netip.Addr {
	if len(labels) != 32 {
		return netip.Addr{}
	}
	var b [16]byte
	for i, label := range labels {
		n, err := strconv.ParseUint(label, 16, 4)
		if err != nil || len(label) != 1 {
			return netip.Addr{}
		}
		at := 31 - i // the last digit of the address is first
		b[at/2] |= byte(n) << (4 * (1 - at%2))
	}
	return netip.AddrFrom16(b)
}
