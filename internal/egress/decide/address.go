package decide

import (
	"fmt"
	"net/netip"
	"sync"

	"github.com/paddock-sandbox/paddock"
)

// CheckAddress returns an error of kind Denied if an address must not be dialled, and says why. It denies addresses of
// the host or of a network of its own (loopback, private, link-local, metadata, shared, reserved and the like, in every
// form), unless lists reports that a rule lists the address. Without lists, no address is listed. Addresses that no connection
// goes to (unspecified, multicast, broadcast, or with a zone) are denied even if listed. Whoever dials checks
// the addresses of the host's interfaces itself.
func CheckAddress(addr netip.Addr, lists func(netip.Addr) bool) error {
	addr = addr.Unmap()
	if what := never(addr); what != "" {
		return &AddressError{addr, what, true}
	}
	what := special(addr)
	if what == "" || (lists != nil && lists(addr)) {
		return nil
	}
	return RefuseAddress(addr, what)
}

// RefuseAddress returns the error of an address that only a rule that lists it allows, with what it is.
func RefuseAddress(addr netip.Addr, what string) error { return &AddressError{addr, what, false} }

// An AddressError refuses an address. It is Denied.
type AddressError struct {
	Addr  netip.Addr
	What  string // what kind of address it is
	Never bool   // no rule can allow it
}

// Reason returns the error's text without its kind.
func (e *AddressError) Reason() string {
	if e.Never {
		return fmt.Sprintf("%s is %s: nothing can be reached there", e.Addr, e.What)
	}
	return fmt.Sprintf("%s is %s: only a rule that lists this address, or a range that holds it, at this port allows it", e.Addr, e.What)
}

// Error returns the reason and the kind.
func (e *AddressError) Error() string { return e.Reason() + ": " + paddock.Denied.Error() }

// Unwrap returns the kind.
func (e *AddressError) Unwrap() error { return paddock.Denied }

// Hint returns how to allow a flow whose host has this address: by a rule that lists the address. It is
// empty if no rule can.
func (e *AddressError) Hint(f Flow) string {
	if e.Never {
		return ""
	}
	return none(Flow{Host: HostOf(e.Addr), Port: f.Port, UDP: f.UDP}).Hint
}

func never(addr netip.Addr) string {
	switch {
	case !addr.IsValid():
		return "no address"
	case addr.Zone() != "":
		return "an address of one link alone"
	case addr.IsUnspecified():
		return "the unspecified address"
	case addr.IsMulticast():
		return "a multicast address"
	case addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "the broadcast address"
	}
	return ""
}

// A span is a range of special addresses, which are not of the public Internet.
type span struct {
	prefix netip.Prefix
	what   string
}

// spans are the ranges of the registries of special addresses (RFC 6890 and later). The
// addresses of metadata services of clouds come first, because they lie in other ranges.
// All IPv6 addresses other than global unicast are special too.
var spans = sync.OnceValue(func() []span {
	table := []struct{ prefix, what string }{
		{"169.254.169.254/32", "a cloud's metadata service"},
		{"169.254.170.2/32", "a cloud's metadata service"},
		{"169.254.170.23/32", "a cloud's metadata service"},
		{"100.100.100.200/32", "a cloud's metadata service"},
		{"168.63.129.16/32", "a cloud's metadata service"},
		{"192.0.0.192/32", "a cloud's metadata service"},
		{"fd00:ec2::254/128", "a cloud's metadata service"},
		{"fd00:ec2::23/128", "a cloud's metadata service"},
		{"fd20:ce::254/128", "a cloud's metadata service"},
		{"0.0.0.0/8", "of this network alone"},
		{"10.0.0.0/8", "private"},
		{"100.64.0.0/10", "shared behind a provider's translator"},
		{"127.0.0.0/8", "loopback, this host"},
		{"169.254.0.0/16", "link-local"},
		{"172.16.0.0/12", "private"},
		{"192.0.0.0/24", "reserved for protocols"},
		{"192.0.2.0/24", "for documentation"},
		{"192.88.99.0/24", "a relay of 6to4"},
		{"192.168.0.0/16", "private"},
		{"198.18.0.0/15", "for benchmarks, and stands for names in sandboxes"},
		{"198.51.100.0/24", "for documentation"},
		{"203.0.113.0/24", "for documentation"},
		{"240.0.0.0/4", "reserved"},
		{"::1/128", "loopback, this host"},
		{"100::/63", "for discarding"},
		{"2001::/23", "reserved for protocols, such as Teredo"},
		{"2001:db8::/32", "for documentation"},
		{"3fff::/20", "for documentation"},
		{"fc00::/7", "private (unique local)"},
		{"fe80::/10", "link-local"},
		{"fec0::/10", "private (site-local)"},
		{"64:ff9b:1::/48", "for translation inside a network"},
	}
	list := make([]span, 0, len(table))
	for _, row := range table {
		list = append(list, span{netip.MustParsePrefix(row.prefix), row.what})
	}
	return list
})

var (
	global = netip.MustParsePrefix("2000::/3")
	nat64  = netip.MustParsePrefix("64:ff9b::/96")
	sixTo4 = netip.MustParsePrefix("2002::/16")
	compat = netip.MustParsePrefix("::/96")
)

// special returns what kind of special address addr is, or "" if it is public.
func special(addr netip.Addr) string {
	for _, s := range spans() {
		if s.prefix.Contains(addr) {
			return s.what
		}
	}
	if addr.Is4() {
		return ""
	}
	b := addr.As16()
	switch {
	case nat64.Contains(addr):
		return embedded(b[12:16], "translated")
	case sixTo4.Contains(addr):
		return embedded(b[2:6], "tunnelled by 6to4")
	case isatap(b):
		return embedded(b[12:16], "tunnelled by ISATAP")
	case compat.Contains(addr):
		return "an IPv4 address in an old form"
	case !global.Contains(addr):
		return "not of the public Internet"
	}
	return ""
}

// isatap reports whether the interface part of an address contains an IPv4 address.
func isatap(b [16]byte) bool {
	return b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}

// embedded describes an IPv4 address inside another address.
func embedded(b []byte, how string) string {
	addr, _ := netip.AddrFromSlice(b)
	what := never(addr)
	if what == "" {
		what = special(addr)
	}
	if what == "" {
		return ""
	}
	return fmt.Sprintf("%s, %s, which is %s", addr, how, what)
}
