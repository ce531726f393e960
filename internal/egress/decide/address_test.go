package decide

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestOnlyThePublicInternetMayBeDialled(t *testing.T) {
	public := []string{
		"1.1.1.1", "8.8.8.8", "93.184.216.34", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1", "192.0.1.1", "198.17.0.1", "198.20.0.1", "223.255.255.255",
		"2606:4700::1111", "2001:4860:4860::8888", "2a00:1450::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:0808:0808::1",
	}
	for _, s := range public {
		if err := CheckAddress(netip.MustParseAddr(s), nil); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	refused := map[string]string{
		"127.0.0.1": "loopback", "127.255.255.254": "loopback", "::1": "loopback",
		"10.0.0.1": "private", "172.16.0.1": "private", "172.31.255.255": "private", "192.168.1.1": "private", "fc00::1": "private", "fd12::1": "private", "fec0::1": "private",
		"169.254.1.1": "link-local", "fe80::1": "link-local",
		"169.254.169.254": "metadata", "100.100.100.200": "metadata", "fd00:ec2::254": "metadata", "169.254.170.2": "metadata", "168.63.129.16": "metadata", "fd20:ce::254": "metadata",
		"100.64.0.1": "shared", "100.127.255.255": "shared",
		"224.0.0.1": "multicast", "239.1.1.1": "multicast", "ff02::1": "multicast", "255.255.255.255": "broadcast",
		"0.0.0.0": "unspecified", "::": "unspecified", "0.0.0.1": "this network",
		"192.0.2.1": "documentation", "198.51.100.1": "documentation", "203.0.113.1": "documentation", "2001:db8::1": "documentation", "3fff::1": "documentation",
		"198.18.0.1": "benchmarks", "198.19.255.255": "benchmarks", "2001:2::1": "reserved", "240.0.0.1": "reserved", "2001:0:4136:e378::1": "Teredo",
		"::ffff:127.0.0.1": "loopback", "::ffff:169.254.169.254": "metadata", "::ffff:10.1.2.3": "private", "::127.0.0.1": "old form", "::7f00:1": "old form",
		"64:ff9b::127.0.0.1": "loopback", "64:ff9b::a9fe:a9fe": "metadata", "64:ff9b:1::1": "translation", "2002:7f00:1::1": "loopback", "2002:a00:1::": "private",
		"2600::5efe:10.0.0.1": "ISATAP", "2600::200:5efe:192.168.0.1": "private", "64:ff9b::0.0.0.0": "unspecified", "2002:e000:1::": "multicast",
		"100::1": "discarding", "4000::1": "public Internet", "5f00::1": "public Internet", "fe80::1%eth0": "one link",
	}
	for s, what := range refused {
		err := CheckAddress(netip.MustParseAddr(s), nil)
		if !errors.Is(err, paddock.Denied) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v; want a word of %q", s, err, what)
		}
	}
	if err := CheckAddress(netip.Addr{}, nil); !errors.Is(err, paddock.Denied) {
		t.Errorf("no address: %v", err)
	}
}

func TestWhatARuleListsMayBeDialled(t *testing.T) {
	asked := []netip.Addr{}
	lists := func(a netip.Addr) bool { asked = append(asked, a); return true }
	for _, s := range []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd00::1", "::ffff:10.0.0.1"} {
		if err := CheckAddress(netip.MustParseAddr(s), lists); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	if a := asked[len(asked)-1]; a != netip.MustParseAddr("10.0.0.1") {
		t.Errorf("asked for %s: an address has one form", a)
	}
	for _, s := range []string{"0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255"} {
		if err := CheckAddress(netip.MustParseAddr(s), lists); !errors.Is(err, paddock.Denied) {
			t.Errorf("%s, though nothing is there: %v", s, err)
		}
	}
	if err := CheckAddress(netip.MustParseAddr("10.0.0.1"), func(netip.Addr) bool { return false }); !errors.Is(err, paddock.Denied) {
		t.Errorf("not listed: %v", err)
	}
}

func FuzzCheck(f *testing.F) {
	for _, s := range []string{"127.0.0.1", "::1", "64:ff9b::1", "2002::", "8.8.8.8", "fe80::1%a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return
		}
		err = CheckAddress(a, nil)
		if err != nil && !errors.Is(err, paddock.Denied) {
			t.Errorf("%s: %v", a, err)
		}
		bad := a.Unmap().IsLoopback() || a.Unmap().IsPrivate() || a.Unmap().IsLinkLocalUnicast() || a.Unmap().IsMulticast() || a.Unmap().IsUnspecified() || a.Zone() != ""
		if bad && err == nil {
			t.Errorf("%s may be dialled", a)
		}
	})
}
