package decide

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// A Host is a destination in canonical form: a name in lower case without the trailing dot, or an address. Two equal
// Hosts are the same destination. The rules match it, the log records it and the gateway dials it, so no other form
// ever reaches a resolver.
type Host struct {
	name string
	addr netip.Addr
}

// String returns the canonical text.
func (h Host) String() string {
	if h.addr.IsValid() {
		return h.addr.String()
	}
	return h.name
}

// IsValid reports whether h is a host. The zero Host is not.
func (h Host) IsValid() bool { return h.name != "" || h.addr.IsValid() }

// HostOf returns the host of an address. It turns IPv4 in IPv6 form into IPv4 and drops a zone.
func HostOf(a netip.Addr) Host { return Host{addr: a.Unmap().WithZone("")} }

// Addr returns the address, and whether the host is one.
func (h Host) Addr() (netip.Addr, bool) { return h.addr, h.addr.IsValid() }

// Loopback reports whether the host is [paddock.LoopbackHost].
func (h Host) Loopback() bool { return h.name == paddock.LoopbackHost }

// LoopbackAddresses returns the addresses that [paddock.LoopbackHost] stands for.
func LoopbackAddresses() []netip.Addr {
	return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
}

// ParseHost parses a host: a name of letters, digits and dashes (IDN as punycode, at most one trailing dot), a dotted
// IPv4 address, or an IPv6 address with or without brackets. IPv4 addresses in IPv6 form become IPv4. All else is
// Invalid: other forms of addresses that some libraries take ("127.1", "0x7f.1", "2130706433", "0177.0.0.1"), zones,
// user information, ports, and any byte that is not part of a name.
func ParseHost(s string) (Host, error) {
	h, err := parseHost(s)
	if err != nil {
		return Host{}, fmt.Errorf("host %q: %w: %w", clip(s), err, paddock.Invalid)
	}
	return h, nil
}

func parseHost(s string) (Host, error) {
	if s == "" {
		return Host{}, errors.New("empty")
	}
	if inner, ok := strings.CutPrefix(s, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		if !ok || !strings.Contains(inner, ":") {
			return Host{}, errors.New("brackets hold an IPv6 address")
		}
		s = inner
	}
	if strings.Contains(s, ":") {
		addr, err := netip.ParseAddr(s)
		if err != nil || addr.Zone() != "" {
			return Host{}, errors.New("not an IPv6 address; a port is written apart")
		}
		return Host{addr: addr.Unmap()}, nil
	}
	return parseName(s)
}

func parseName(s string) (Host, error) {
	name := strings.TrimSuffix(s, ".")
	if name == "" || len(name) > 253 {
		return Host{}, errors.New("not a host name: its length is not 1 to 253")
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if err := checkLabel(label); err != nil {
			return Host{}, err
		}
	}
	// Many libraries take a name whose last label is a number for an address, in several
	// forms. Here only the plain form is an address.
	last := labels[len(labels)-1]
	if numeric(last) || strings.HasPrefix(last, "0x") || strings.HasPrefix(last, "0X") {
		addr, err := netip.ParseAddr(s)
		if err != nil {
			return Host{}, errors.New("an IPv4 address is four decimal numbers without leading zeros")
		}
		return Host{addr: addr}, nil
	}
	return Host{name: strings.ToLower(name)}, nil
}

func checkLabel(label string) error {
	if label == "" || len(label) > 63 {
		return errors.New("not a host name: a label has 1 to 63 characters")
	}
	for i := range len(label) {
		c := label[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-':
		case c >= 0x80:
			return errors.New("not a host name: write international names as punycode (xn--…)")
		default:
			return fmt.Errorf("not a host name: %q is not allowed in one", string(c))
		}
	}
	if label[0] == '-' || label[len(label)-1] == '-' {
		return errors.New("not a host name: a label begins or ends with a dash")
	}
	return nil
}

func numeric(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// A Pattern is the host of a rule: one host, all names below a suffix, a range of addresses, or everything.
type Pattern struct {
	host   Host
	suffix string // ".example.com" of "*.example.com"
	prefix netip.Prefix
	all    bool
}

// String returns the canonical text, which ParsePattern reads.
func (p Pattern) String() string {
	switch {
	case p.all:
		return "*"
	case p.suffix != "":
		return "*" + p.suffix
	case p.prefix.IsValid():
		return p.prefix.String()
	}
	return p.host.String()
}

// Match reports whether the pattern matches h. "*.example.com" matches every name below example.com, and not
// example.com itself. A name never matches a range of addresses.
func (p Pattern) Match(h Host) bool {
	switch {
	case p.all:
		return true
	case p.suffix != "":
		return strings.HasSuffix(h.name, p.suffix)
	case p.prefix.IsValid():
		return h.addr.IsValid() && p.prefix.Contains(h.addr)
	}
	return p.host == h
}

// All reports whether the pattern is "*".
func (p Pattern) All() bool { return p.all }

// Suffix returns "example.com" of "*.example.com".
func (p Pattern) Suffix() (string, bool) {
	s, ok := strings.CutPrefix(p.suffix, ".")
	return s, ok
}

// Prefix returns the range of addresses, and whether the pattern is one.
func (p Pattern) Prefix() (netip.Prefix, bool) { return p.prefix, p.prefix.IsValid() }

// Host returns the host, and whether the pattern matches exactly one.
func (p Pattern) Host() (Host, bool) { return p.host, p.host.IsValid() }

// Covers reports whether p matches every host that q matches.
func (p Pattern) Covers(q Pattern) bool {
	switch {
	case p.all:
		return true
	case q.all:
		return false
	case q.suffix != "":
		return p.suffix != "" && strings.HasSuffix(q.suffix, p.suffix)
	case q.prefix.IsValid():
		return p.prefix.IsValid() && p.prefix.Bits() <= q.prefix.Bits() && p.prefix.Contains(q.prefix.Addr())
	}
	return p.Match(q.host)
}

// ParsePattern parses the host of a rule: a host as ParseHost reads it, "*.example.com", a CIDR range such as
// "10.0.0.0/8", or "*". All else is Invalid.
func ParsePattern(s string) (Pattern, error) {
	p, err := parsePattern(s)
	if err != nil {
		return Pattern{}, fmt.Errorf("host %q: %w: %w", clip(s), err, paddock.Invalid)
	}
	return p, nil
}

func parsePattern(s string) (Pattern, error) {
	switch {
	case s == "*":
		return Pattern{all: true}, nil
	case strings.Contains(s, "://"):
		return Pattern{}, errors.New("a host, not a URL")
	case strings.Contains(s, "/"):
		prefix, err := netip.ParsePrefix(s)
		switch {
		case err != nil:
			return Pattern{}, errors.New("not a range of addresses such as 10.0.0.0/8")
		case prefix.Addr().Is4In6():
			return Pattern{}, errors.New("write a range of IPv4 addresses as such")
		case prefix != prefix.Masked():
			return Pattern{}, fmt.Errorf("bits are set beyond the range; %s was meant, or one address without the slash", prefix.Masked())
		}
		return Pattern{prefix: prefix}, nil
	case strings.HasPrefix(s, "*."):
		h, err := parseName(s[2:])
		if err != nil {
			return Pattern{}, err
		}
		if h.addr.IsValid() {
			return Pattern{}, errors.New("a wildcard stands before names, not addresses")
		}
		return Pattern{suffix: "." + h.name}, nil
	case strings.Contains(s, "*"):
		return Pattern{}, errors.New(`"*" stands alone, or as the first label: "*.example.com"`)
	}
	h, err := parseHost(s)
	return Pattern{host: h}, err
}

// SplitPort splits "host:port", "[v6]:port" or a host alone (port 0). It does not check the host. A bad port is
// Invalid.
func SplitPort(s string) (host string, port uint16, err error) {
	host, port, err = splitPort(s)
	if err != nil {
		return "", 0, fmt.Errorf("%w: %w", err, paddock.Invalid)
	}
	return host, port, nil
}

func splitPort(s string) (host string, port uint16, err error) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 || strings.HasSuffix(s, "]") || (strings.Count(s, ":") > 1 && s[0] != '[') {
		return s, 0, nil
	}
	port, err = parsePort(s[i+1:])
	return s[:i], port, err
}

// ParsePort parses a port number in decimal, without sign or leading zeros. All else is Invalid.
func ParsePort(s string) (uint16, error) {
	port, err := parsePort(s)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", err, paddock.Invalid)
	}
	return port, nil
}

func parsePort(s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || s[0] == '0' || s[0] == '+' {
		return 0, fmt.Errorf("port %q: a port is 1 to 65535", clip(s))
	}
	return uint16(n), nil
}

// ParseDestination parses a destination as a person types it: "host", "host:port" or a URL. The default port is that of
// the URL's scheme, and 443 without one. All else is Invalid.
func ParseDestination(s string) (Host, uint16, error) {
	h, port, err := parseDestination(s)
	if err != nil {
		return Host{}, 0, fmt.Errorf("destination %q: %w: %w", clip(s), err, paddock.Invalid)
	}
	return h, port, nil
}

func parseDestination(s string) (Host, uint16, error) {
	port := uint16(443)
	if strings.Contains(s, "://") {
		u, err := url.Parse(s)
		if err != nil {
			return Host{}, 0, errors.New("not a URL")
		}
		if u.User != nil || u.Opaque != "" {
			return Host{}, 0, errors.New("a URL without user and password")
		}
		switch u.Scheme {
		case "http", "ws":
			port = 80
		case "https", "wss":
		case "ssh":
			port = 22
		default:
			if u.Port() == "" {
				return Host{}, 0, fmt.Errorf("the scheme %q has no port that is known here; write HOST:PORT", clip(u.Scheme))
			}
		}
		s = u.Host
	}
	host, given, err := splitPort(s)
	if err != nil {
		return Host{}, 0, err
	}
	if given != 0 {
		port = given
	}
	h, err := parseHost(host)
	return h, port, err
}
