package netstack

import "net/netip"

// Ports of the gateway on the link, and the link's MTU. The link has no hardware addresses, and no IP addresses but the
// gateway's, the guest's and those that stand for names.
const (
	DNSPort   = 53
	ProxyPort = 3128 // HTTP proxy
	SOCKSPort = 1080
	MTU       = 65520
)

// Gateway4 returns the gateway's IPv4 address on the link.
func Gateway4() netip.Addr { return netip.AddrFrom4([4]byte{198, 18, 0, 1}) }

// Gateway6 returns the gateway's IPv6 address on the link.
func Gateway6() netip.Addr { return link6(1) }

// Guest4 returns the sandbox's IPv4 address on the link.
func Guest4() netip.Addr { return netip.AddrFrom4([4]byte{198, 18, 0, 2}) }

// Guest6 returns the sandbox's IPv6 address on the link.
func Guest6() netip.Addr { return link6(2) }

func link6(last byte) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x7a, 2: 0x6f, 3: 0x74, 15: last})
}
