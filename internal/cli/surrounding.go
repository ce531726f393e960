package cli

import (
	"fmt"
	"io"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
)

// throughProxy sends what the rules allow through the proxy that the caller's environment names, as the
// caller's own programs do. A rule that names a proxy keeps it. It returns the proxy without its password,
// and is empty if no rule uses it.
func (p *plan) throughProxy(lookup func(string) (string, bool)) string {
	n := &p.spec.Policy.Network
	proxy := proxyOf(lookup)
	if n.Mode != paddock.NetworkList || proxy == nil {
		return ""
	}
	direct := directOf(lookup)
	n.Rules = slices.Clone(n.Rules)
	used := false
	for i := range n.Rules {
		r := &n.Rules[i]
		if r.Deny || r.UDP || r.Proxy != "" || r.Answer != nil || isDirect(r.Host, direct) {
			continue
		}
		r.Proxy = proxy.String()
		used = true
	}
	if !used {
		return ""
	}
	return proxy.Redacted()
}

// proxyOf returns the proxy for https in an environment, or nil if there is none that a rule can name.
func proxyOf(lookup func(string) (string, bool)) *url.URL {
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		text, _ := lookup(name)
		if text == "" {
			continue
		}
		if !strings.Contains(text, "://") {
			text = "http://" + text
		}
		u, err := url.Parse(text)
		if err != nil || u.Host == "" {
			return nil
		}
		if u.Scheme == "socks5h" {
			u.Scheme = "socks5" // the proxy gets the name in both
		}
		if !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme) {
			return nil
		}
		return &url.URL{Scheme: u.Scheme, User: u.User, Host: u.Host}
	}
	return nil
}

// directOf returns the hosts of an environment that are reached without a proxy.
func directOf(lookup func(string) (string, bool)) []string {
	text, ok := lookup("NO_PROXY")
	if !ok {
		text, _ = lookup("no_proxy")
	}
	var list []string
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.ToLower(strings.TrimSpace(one)); one != "" {
			list = append(list, one)
		}
	}
	return list
}

// isDirect reports whether a rule's host is reached without a proxy: one of the list, or this machine.
func isDirect(host string, list []string) bool {
	host = strings.TrimPrefix(strings.ToLower(strings.Trim(host, "[]")), "*.")
	if host == "localhost" || host == paddock.LoopbackHost || strings.HasSuffix(host, ".localhost") {
		return true
	}
	addr, isRange := netip.Addr{}, netip.Prefix{}
	if a, err := netip.ParseAddr(host); err == nil {
		addr = a
	} else if r, err := netip.ParsePrefix(host); err == nil {
		addr, isRange = r.Addr(), r
	}
	if addr.IsLoopback() {
		return true
	}
	return slices.ContainsFunc(list, func(entry string) bool {
		if entry == "*" {
			return true
		}
		if r, err := netip.ParsePrefix(entry); err == nil {
			return addr.IsValid() && r.Contains(addr) && (!isRange.IsValid() || isRange.Bits() >= r.Bits())
		}
		if a, err := netip.ParseAddr(strings.Trim(entry, "[]")); err == nil {
			return a == addr && !isRange.IsValid()
		}
		entry = strings.TrimPrefix(strings.TrimPrefix(entry, "*"), ".")
		return host == entry || strings.HasSuffix(host, "."+entry)
	})
}

// surroundings tells what the sandbox takes over from the caller's environment.
func (a *App) surroundings(w io.Writer, p *plan, tier paddock.Tier, proxy string) {
	if proxy != "" {
		fmt.Fprintf(w, "paddock: note: the rules use the proxy of this environment, %s\n", OneLine(proxy))
	}
	if tier == paddock.Sim || p.spec.Root.Kind != paddock.RootHost && p.spec.Root.Kind != "" {
		return
	}
	found := box.Certificates(a.Lookup)
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if _, own := p.spec.Env[name]; !own {
			fmt.Fprintf(w, "paddock: note: %s: the certificates in %s are trusted inside too\n", name, OneLine(found[name]))
		}
	}
}
