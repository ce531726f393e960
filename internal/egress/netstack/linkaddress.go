package netstack

import "net/netip"

// The places on a box's link. It has no hardware addresses, and no others than
// these and those that stand for names.
const (
	DNSPort   = 53
	ProxyPort = 3128 // HTTP proxy
	SOCKSPort = 1080
	MTU       = 65520
)

// Gateway4 and Gateway6 are the gateway's own addresses on the link.
func Gateway4() netip.Addr { return netip.AddrFrom4([4]byte{198, 18, 0, 1}) }

// Gateway6 is Gateway4 for IPv6.
func Gateway6() netip.Addr { return link6(1) }

// Guest4 and Box6 are the box's addresses on the link.
func Guest4() netip.Addr { return netip.AddrFrom4([4]byte{198, 18, 0, 2}) }

// Guest6 is Box4 for IPv6.
func Guest6() netip.Addr { return link6(2) }

func link6(last byte) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x7a, 2: 0x6f, 3: 0x74, 15: last})
}
