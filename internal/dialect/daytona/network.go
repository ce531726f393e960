package daytona

import (
	"net/netip"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
)

// A network is what clients set of the network of a sandbox.
type network struct {
	BlockAll bool   `json:"block_all,omitempty"`
	Ranges   string `json:"ranges,omitempty"`  // with commas between
	Domains  string `json:"domains,omitempty"` // with commas between
}

// Bounds of lists.
const (
	maxRanges  = 10 // as Daytona's
	maxDomains = 100
	maxDomain  = 253
)

// policy converts the settings. Without any, everything is allowed, as in Daytona; the driver's own rules about addresses
// of this machine and its networks hold all the same.
func (n network) policy() (paddock.NetworkPolicy, error) {
	p := paddock.NetworkPolicy{Mode: paddock.NetworkList}
	allow := func(host string) {
		every := []uint16{0}
		p.Rules = append(p.Rules, paddock.NetworkRule{Host: host, Ports: every}, paddock.NetworkRule{Host: host, Ports: every, UDP: true})
	}
	ranges, domains := entries(n.Ranges), entries(n.Domains)
	switch {
	case len(ranges) > maxRanges:
		return p, invalid("networkAllowList has %d ranges, and the maximum is %d", len(ranges), maxRanges)
	case len(domains) > maxDomains:
		return p, invalid("domainAllowList has %d domains, and the maximum is %d", len(domains), maxDomains)
	case n.BlockAll && len(ranges)+len(domains) > 0:
		return p, invalid("networkBlockAll with an allow list: leave one out")
	case n.BlockAll:
		return p, nil
	case len(ranges)+len(domains) == 0:
		allow("*")
		return p, nil
	}
	for _, text := range ranges {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return p, invalid("networkAllowList: %q is not a range such as 10.0.0.0/8", dialect.Printable(text))
		}
		allow(prefix.Masked().String())
	}
	for _, text := range domains {
		name := strings.TrimPrefix(text, "*.")
		if len(name) > maxDomain || name == "" || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-._") != "" {
			return p, invalid("domainAllowList: %q is not a domain", dialect.Printable(text))
		}
		allow(strings.ToLower(text))
	}
	return p, nil
}

func entries(text string) (list []string) {
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one != "" {
			list = append(list, one)
		}
	}
	return list
}
