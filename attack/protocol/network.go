package protocol

import (
	"net/netip"
	"strings"
)

// The network of the network rows. A host of its own has one link to an internet of one
// process, which answers at every address, knows every name, and records everything.
const (
	HostAddr     = "9.9.0.2" // of the host on its link
	HostAddr6    = "2a00:1::2"
	InternetAddr = "9.9.0.1" // of the other end
	Internet6    = "2a00:1::1"
	Resolver     = "9.9.0.53" // the host's DNS server

	GatewayAddr  = "198.18.0.1" // as seen by the sandbox
	Gateway6     = "fd7a:6f74::1"
	ProxyPort    = 3128
	SOCKSPort    = 1080
	EchoPort     = 4444 // for datagrams
	HostBanner   = "canary of the host"
	ServerBanner = "canary of the internet"
)

// Names in the policy, and what is allowed for them. Everything else is denied.
const (
	Allowed   = "allowed.test"        // 22, 80 and 443, any protocol
	Second    = "second.test"         // like Allowed
	Wild      = "wild.test"           // names below it, not itself
	InWild    = "in.wild.test"        // below Wild
	NotInWild = "denied.wild.test"    // below Wild, and denied by name
	Inspect   = "inspect.test"        // GET and POST below /ok, inspected
	InspectB  = "inspect-b.test"      // like Inspect
	Secret    = "secret.test"         // inspected; the secret is bound to it
	Limited   = "limited.test"        // LimitedBytes
	Datagrams = "udp.test"            // EchoPort, of datagrams
	Stranger  = "stranger.test"       // without a rule
	Rebind    = "rebind.test"         // public at the first query, then the host itself
	Exfil     = "exfil.attacker.test" // names below it carry data
)

// LimitedBytes is how many bytes may be exchanged with Limited.
const LimitedBytes = 64 << 10

// SecretEnv is the variable with the secret's placeholder.
const SecretEnv = "NETWORK_API_KEY"

// Turned returns allowed names that lead to forbidden addresses, by what is there.
func Turned() map[string]string {
	return map[string]string{
		"loop.test": "127.0.0.1", "loop6.test": "::1", "own.test": HostAddr, "own6.test": HostAddr6, "zero.test": "0.0.0.0", "zero6.test": "::",
		"private.test": "10.0.0.1", "lan.test": "192.168.1.1", "corporate.test": "172.16.0.1", "local.test": "169.254.1.1", "shared.test": "100.64.0.1",
		"meta.test": "169.254.169.254", "meta6.test": "fd00:ec2::254", "ula.test": "fd12::1", "mapped.test": "::ffff:127.0.0.1",
		"nat64.test": "64:ff9b::7f00:1", "six.test": "2002:7f00:1::1", "compat.test": "::127.0.0.1", "link6.test": "fe80::1",
		"multi.test": "224.0.0.1", "broad.test": "255.255.255.255", "gateway.test": GatewayAddr, "loop2.test": "127.9.9.9", "bench.test": "198.19.0.1",
	}
}

// Mixed returns names with one permitted and one forbidden address.
func Mixed() map[string][]string {
	return map[string][]string{
		"mixed.test": {"11.0.0.20", "127.0.0.1"}, "mixed2.test": {"127.0.0.1", "11.0.0.21"}, "mixed6.test": {"11.0.0.22", "::1"},
	}
}

// Addresses returns the addresses of a name on the internet at the times-th query.
func Addresses(name string, times int) []netip.Addr {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	var list []netip.Addr
	add := func(text ...string) []netip.Addr {
		for _, t := range text {
			list = append(list, netip.MustParseAddr(t))
		}
		return list
	}
	if to, ok := Turned()[name]; ok {
		return add(to)
	}
	if to, ok := Mixed()[name]; ok {
		return add(to...)
	}
	fixed := map[string]string{
		Allowed: "11.0.0.1", Second: "11.0.0.2", InWild: "11.0.0.3", Inspect: "11.0.0.4", InspectB: "11.0.0.4",
		Secret: "11.0.0.6", Limited: "11.0.0.7", Datagrams: "11.0.0.8", NotInWild: "11.0.0.66", Stranger: "11.0.0.67",
	}
	if to, ok := fixed[name]; ok {
		if name == Second {
			return add(to, "2a00:2::2")
		}
		return add(to)
	}
	switch {
	case name == Rebind && times == 0:
		return add("11.0.0.9")
	case name == Rebind:
		return add("127.0.0.1")
	case strings.HasSuffix(name, "."+Wild):
		return add("11.0.0.10")
	}
	return add("11.0.0.68")
}

// MayReach reports whether the policy allows a connection to an address of the internet.
func MayReach(to netip.AddrPort, proto string) bool {
	a := to.Addr().Unmap()
	if proto == "udp" {
		return a == netip.MustParseAddr("11.0.0.8") && to.Port() == EchoPort
	}
	if proto != "tcp" {
		return false
	}
	web := to.Port() == 80 || to.Port() == 443
	switch a.String() {
	case "11.0.0.1", "11.0.0.2", "2a00:2::2":
		return web || to.Port() == 22
	case "11.0.0.3", "11.0.0.4", "11.0.0.6", "11.0.0.7", "11.0.0.9", "11.0.0.10", "11.0.0.20", "11.0.0.21", "11.0.0.22":
		return web
	}
	return false
}

// A Packet is a packet that left the host, or a message in one.
type Packet struct {
	Proto string         `json:"proto"` // tcp, udp, icmp or a number
	To    netip.AddrPort `json:"to"`
}

// A Stream is a connection, or a flow of datagrams, that reached a server.
type Stream struct {
	To       netip.AddrPort `json:"to"`
	Host     bool           `json:"host,omitempty"` // to a server of the host itself
	TLS      bool           `json:"tls,omitempty"`
	SNI      string         `json:"sni,omitempty"`
	Proto    string         `json:"proto,omitempty"`    // negotiated in TLS
	Raw      []byte         `json:"raw,omitempty"`      // the first received bytes, without TLS
	Total    int64          `json:"total,omitempty"`    // bytes received in all
	Requests []string       `json:"requests,omitempty"` // "METHOD host path", in every interpretation
}

// Traffic is what the internet and the host's own servers have seen.
type Traffic struct {
	Packets []Packet `json:"packets,omitempty"` // packets that begin something, each kind once
	Asked   []string `json:"asked,omitempty"`   // names queried at the host's DNS server
	Streams []Stream `json:"streams,omitempty"`
	Missed  int      `json:"missed,omitempty"` // packets that came too fast to be recorded
}
