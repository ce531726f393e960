package ingress

import (
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// Split reads the host of a request, PORT-ID.DOMAIN, in whatever case and with a
// port behind it or without. The domain may have a port, too, which is not compared:
// what stands before the server may listen at another. It is strict: one name has one spelling.
func Split(host, domain string) (id paddock.ID, port int, ok bool) {
	label, ok := below(host, domain)
	if !ok {
		return "", 0, false
	}
	number, name, ok := strings.Cut(label, "-")
	if !ok {
		return "", 0, false
	}
	port, ok = parsePort(number)
	id = paddock.ID(name)
	if !ok || !id.Valid() || len(label) > 63 {
		return "", 0, false
	}
	return id, port, true
}

// Within tells whether a host is below the domain: no such host is the server's own.
func Within(host, domain string) bool {
	name, _, _ := strings.Cut(host, ":")
	domain, ok := bare(domain)
	return ok && domain != "" && strings.HasSuffix(strings.TrimSuffix(lower(name), "."), "."+domain)
}

// Host is what Split reads. False is that the name is too long for a host, or no name.
func Host(id paddock.ID, port int, domain string) (string, bool) {
	host := strconv.Itoa(port) + "-" + string(id) + "." + domain
	_, _, ok := Split(host, domain)
	return host, ok
}

// below gives what stands before the domain.
func below(host, domain string) (label string, ok bool) {
	host, ok = bare(host)
	if !ok {
		return "", false
	}
	domain, ok = bare(domain)
	if !ok || domain == "" {
		return "", false
	}
	label, ok = strings.CutSuffix(host, "."+domain)
	return label, ok
}

// bare takes a port away, and gives the rest in lower case. An address of IPv6 is
// no name.
func bare(host string) (string, bool) {
	name, port, has := strings.Cut(host, ":")
	if has {
		if _, ok := parsePort(port); !ok {
			return "", false
		}
	}
	return lower(name), true
}

// lower is of ASCII alone: other letters whose lower case is ASCII are not names.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// parsePort reads a number as it is written by whoever writes it in one way.
func parsePort(text string) (int, bool) {
	port, err := strconv.Atoi(text)
	if err != nil || port < 1 || port > 65535 || strconv.Itoa(port) != text {
		return 0, false
	}
	return port, true
}
