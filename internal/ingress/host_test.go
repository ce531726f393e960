package ingress

import (
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestAHostNamesOnePortOfOneSandbox(t *testing.T) {
	for _, c := range []struct {
		host, domain string
		id           paddock.ID
		port         int
	}{
		{"8080-abc.example.com", "example.com", "abc", 8080},
		{"8080-abc.example.com:7463", "example.com", "abc", 8080},
		{"8080-abc.example.com", "example.com:7463", "abc", 8080},
		{"8080-ABC.Example.COM:1", "EXAMPLE.com:7463", "abc", 8080},
		{"1-a.localhost:7463", "localhost", "a", 1},
		{"65535-80-x.example.com", "example.com", "80-x", 65535},
		{"3000-" + strings.Repeat("a", 58) + ".d", "d", paddock.ID(strings.Repeat("a", 58)), 3000},
	} {
		id, port, ok := Split(c.host, c.domain)
		if !ok || id != c.id || port != c.port {
			t.Errorf("Split(%q, %q) = %q, %d, %v", c.host, c.domain, id, port, ok)
		}
	}
	for _, c := range [][2]string{
		{"", ""}, {"8080-abc", ""}, {"8080-abc.", ""}, {"8080-abc.example.com", ""}, {"example.com", "example.com"},
		{".example.com", "example.com"}, {"-.example.com", "example.com"}, {"8080.example.com", "example.com"},
		{"8080-.example.com", "example.com"}, {"-abc.example.com", "example.com"}, {"08080-abc.example.com", "example.com"},
		{"+80-abc.example.com", "example.com"}, {"0-abc.example.com", "example.com"}, {"65536-abc.example.com", "example.com"},
		{"80--abc.example.com", "example.com"}, {"80-abc-.example.com", "example.com"}, {"80-a.b.example.com", "example.com"},
		{"80-abc.example.com.", "example.com"}, {"80-abc.example.com:", "example.com"}, {"80-abc.example.com:0", "example.com"},
		{"80-abc.example.com:80:80", "example.com"}, {"80-abc.example.com:x", "example.com"}, {"80-abcexample.com", "example.com"},
		{"80-abc.example.org", "example.com"}, {"[::1]:80", "example.com"}, {"80-abc_d.example.com", "example.com"},
		{"80-\u212Aa.example.com", "example.com"}, {"80-" + strings.Repeat("a", 61) + ".d", "d"}, {"80-abc.example.com/", "example.com"},
		{"x@80-abc.example.com", "example.com"}, {"80-abc.example.com", "example.com:"}, {"８０-abc.example.com", "example.com"},
	} {
		if id, port, ok := Split(c[0], c[1]); ok || id != "" || port != 0 {
			t.Errorf("Split(%q, %q) = %q, %d, %v", c[0], c[1], id, port, ok)
		}
	}
}

func TestWhatIsBelowTheDomainIsNeverTheServer(t *testing.T) {
	for host, want := range map[string]bool{
		"8080-abc.example.com": true, "nonsense.Example.com:80": true, "a.b.example.com": true, "x.example.com.": true, ".example.com": true,
		"x.example.com.:80": true, "x.example.com:bad": true,
		"example.com": false, "example.com:80": false, "notexample.com": false, "127.0.0.1": false, "[::1]:80": false, "": false,
	} {
		if got := Within(host, "example.com:7463"); got != want {
			t.Errorf("Within(%q) = %v", host, got)
		}
		if Within(host, "") {
			t.Errorf("Within(%q) without a domain", host)
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add("8080-abc.example.com:80", "example.com:7463")
	f.Add("80-A.d", "D")
	f.Add("x.example.com:bad", "example.com")
	f.Fuzz(func(t *testing.T, host, domain string) {
		id, port, ok := Split(host, domain)
		if !ok {
			return
		}
		if !id.Valid() || port < 1 || port > 65535 || !Within(host, domain) {
			t.Fatalf("Split(%q, %q) = %q, %d", host, domain, id, port)
		}
		name, fits := Host(id, port, domain)
		again, port2, ok := Split(name, domain)
		if !fits || !ok || again != id || port2 != port {
			t.Fatalf("%q and %q are two spellings", host, name)
		}
		if bare, _ := bare(host); bare != strings.Split(lower(name), ":")[0] {
			t.Fatalf("%q and %q are two names of one port", host, name)
		}
	})
}
