package decide

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestAHostHasOneForm(t *testing.T) {
	for text, want := range map[string]string{
		"example.com": "example.com", "EXAMPLE.com.": "example.com", "a-b.c1": "a-b.c1", "localhost": "localhost", "xn--bcher-kva.example": "xn--bcher-kva.example",
		"127.0.0.1": "127.0.0.1", "::1": "::1", "[::1]": "::1", "2001:DB8:0:0::1": "2001:db8::1", "::ffff:10.0.0.1": "10.0.0.1", "[::FFFF:a00:1]": "10.0.0.1", "1.example": "1.example", "0xa.example": "0xa.example",
	} {
		if got, err := ParseHost(text); err != nil || got.String() != want {
			t.Errorf("ParseHost(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", ".", "..", "a..b", ".a", "a.com..", "-a.com", "a-.com", "a_b.com", "a b.com", "a%00.com", "a\x00.com", "a.com\r\n", "a/b.com", `a\b.com`, "user@a.com", "a.com:443", "a.com#", "a?b",
		"bücher.example", "ａ.com", "a。com",
		"127.1", "0x7f.0.0.1", "0x7f000001", "2130706433", "0177.0.0.1", "127.0.0.01", "127.0.0.1.", "1.2.3.4.5", "256.0.0.1", "a.1", "a.0x1", "0",
		"fe80::1%eth0", "[::1", "::1]", "[127.0.0.1]", "[a.com]", "[::1]:80", ":::", "1::2::3",
		strings.Repeat("a", 64) + ".com", strings.Repeat("a.", 127) + "com", "*.example.com", "10.0.0.0/8",
	} {
		if got, err := ParseHost(text); err == nil || !errors.Is(err, paddock.Invalid) {
			t.Errorf("ParseHost(%q) = %q, %v", text, got, err)
		}
	}
}

func TestAPatternMeansWhatItSays(t *testing.T) {
	for _, tc := range []struct {
		pattern, host string
		want          bool
	}{
		{"example.com", "example.com.", true}, {"example.com", "www.example.com", false}, {"example.com", "badexample.com", false},
		{"*.example.com", "a.b.EXAMPLE.com", true}, {"*.example.com", "example.com", false}, {"*.example.com", "badexample.com", false}, {"*.example.com", "a.example.com.evil.org", false},
		{"10.0.0.0/8", "10.1.2.3", true}, {"10.0.0.0/8", "::ffff:10.1.2.3", true}, {"10.0.0.0/8", "11.0.0.1", false}, {"10.0.0.0/8", "example.com", false},
		{"::1", "[::1]", true}, {"fd00::/8", "fd12::1", true}, {"::/0", "10.0.0.1", false}, {"*", "anything.at.all", true}, {"*", "::1", true}, {"10.0.0.1", "::ffff:a00:1", true},
	} {
		p, err := ParsePattern(tc.pattern)
		if err != nil {
			t.Errorf("%s: %v", tc.pattern, err)
			continue
		}
		h, err := ParseHost(tc.host)
		if err != nil {
			t.Errorf("%s: %v", tc.host, err)
			continue
		}
		if p.Match(h) != tc.want {
			t.Errorf("%s matches %s: %v", tc.pattern, tc.host, !tc.want)
		}
	}
	for _, text := range []string{"", "*.", "*.*", "**", "a.*", "*a.com", "*.1.2.3.4", "10.0.0.1/8", "10/8", "10.0.0.0/33", "::ffff:10.0.0.0/104", "https://a.com", "a/b", "fe80::%1/64", "*.bücher.example"} {
		if p, err := ParsePattern(text); err == nil || !errors.Is(err, paddock.Invalid) {
			t.Errorf("ParsePattern(%q) = %q, %v", text, p, err)
		}
	}
}

func TestDestinationsAsPeopleTypeThem(t *testing.T) {
	for text, want := range map[string]string{
		"a.example": "a.example 443", "a.example:80": "a.example 80", "https://A.example./x?y#z": "a.example 443", "http://a.example": "a.example 80", "http://[::1]:8080/": "::1 8080",
		"[::1]:22": "::1 22", "::1": "::1 443", "10.0.0.1:53": "10.0.0.1 53", "ssh://a.example": "a.example 22", "tcp://a.example:5": "a.example 5",
	} {
		h, port, err := ParseDestination(text)
		if got := fmt.Sprintf("%s %d", h, port); err != nil || got != want {
			t.Errorf("%q is %s, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", ":", ":443", "a.example:", "a.example:0", "a.example:65536", "a.example:+1", "a.example:01", "https://u:p@a.example", "https://", "ftp://a.example", "mailto:a@b", "http://127.1/", "http://a\x00b/", "[::1]:x"} {
		if h, port, err := ParseDestination(text); err == nil {
			t.Errorf("%q is %s %d", text, h, port)
		}
	}
}

func FuzzParseHost(f *testing.F) {
	for _, s := range []string{"example.com.", "*.a.b", "10.0.0.0/8", "[::1]", "0x7f.1", "::ffff:1.2.3.4", "a\x00b", "https://a.b:1/", "fe80::1%1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := ParseHost(s)
		if err == nil {
			again, err := ParseHost(h.String())
			if err != nil || again != h {
				t.Fatalf("%q gives %q, which gives %q, %v", s, h, again, err)
			}
			if strings.Trim(h.String(), "abcdefghijklmnopqrstuvwxyz0123456789.-:") != "" {
				t.Fatalf("%q gives %q", s, h)
			}
			// If another parser reads it as an address, it must be an address here.
			if addr, err := netip.ParseAddr(h.String()); err == nil && (addr.Zone() != "" || h.addr != addr) {
				t.Fatalf("%q gives the name %q", s, h)
			}
		}
		p, err := ParsePattern(s)
		if err == nil {
			if again, err := ParsePattern(p.String()); err != nil || again != p {
				t.Fatalf("%q gives %q, which gives %q, %v", s, p, again, err)
			}
			if !p.Covers(p) {
				t.Fatalf("%q does not cover itself", s)
			}
		}
		if h, port, err := ParseDestination(s); err == nil && (port == 0 || h == Host{}) {
			t.Fatalf("%q is %q %d", s, h, port)
		}
	})
}
