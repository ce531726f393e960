package decide

import (
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func allow(host string, ports ...uint16) paddock.NetworkRule {
	return paddock.NetworkRule{Host: host, Ports: ports}
}

func deny(host string, ports ...uint16) paddock.NetworkRule {
	return paddock.NetworkRule{Deny: true, Host: host, Ports: ports}
}

// list returns the rules of a policy in list mode.
func list(t testing.TB, rules ...paddock.NetworkRule) *Rules {
	t.Helper()
	return policy(t, paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: rules})
}

func policy(t testing.TB, p paddock.NetworkPolicy) *Rules {
	t.Helper()
	r, err := Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func flow(t testing.TB, destination string) Flow {
	t.Helper()
	destination, udp := strings.CutSuffix(destination, "/udp")
	h, port, err := ParseDestination(destination)
	if err != nil {
		t.Fatal(err)
	}
	return Flow{Host: h, Port: port, UDP: udp}
}

// Verdicts in the tables.
const (
	no   = "no"   // denied
	yes  = "yes"  // allowed without inspection
	look = "look" // depends on the request
)

func word(v Verdict) string {
	switch {
	case v.Look && v.Allow:
		return look
	case v.Allow:
		return yes
	}
	return no
}

func TestAFlowIsJudgedByWhereItGoes(t *testing.T) {
	post := paddock.NetworkRule{Host: "api.example.com", Methods: []string{"POST"}}
	noDelete := paddock.NetworkRule{Deny: true, Host: "api.example.com", Methods: []string{"DELETE"}}
	datagrams := paddock.NetworkRule{Host: "*", UDP: true}
	for _, tc := range []struct {
		name  string
		rules []paddock.NetworkRule
		to    string
		want  string
		rule  int
	}{
		{"nothing is allowed without rules", nil, "example.com", no, -1},
		{"the name itself", []paddock.NetworkRule{allow("example.com")}, "example.com", yes, 0},
		{"its plain port", []paddock.NetworkRule{allow("example.com")}, "example.com:80", yes, 0},
		{"another port", []paddock.NetworkRule{allow("example.com")}, "example.com:22", no, -1},
		{"a port that is listed", []paddock.NetworkRule{allow("example.com", 22)}, "example.com:22", yes, 0},
		{"the default where ports are listed", []paddock.NetworkRule{allow("example.com", 22)}, "example.com:443", no, -1},
		{"capitals", []paddock.NetworkRule{allow("Example.COM")}, "eXAMPLE.com", yes, 0},
		{"a trailing dot in the flow", []paddock.NetworkRule{allow("example.com")}, "example.com.", yes, 0},
		{"a trailing dot in the rule", []paddock.NetworkRule{allow("example.com.")}, "example.com", yes, 0},
		{"a name that ends alike", []paddock.NetworkRule{allow("example.com")}, "badexample.com", no, -1},
		{"a name that begins alike", []paddock.NetworkRule{allow("example.com")}, "example.com.evil.org", no, -1},
		{"a name below", []paddock.NetworkRule{allow("example.com")}, "www.example.com", no, -1},
		{"a wildcard", []paddock.NetworkRule{allow("*.example.com")}, "a.b.example.com", yes, 0},
		{"a wildcard and its apex", []paddock.NetworkRule{allow("*.example.com")}, "example.com", no, -1},
		{"a wildcard and a name that ends alike", []paddock.NetworkRule{allow("*.example.com")}, "badexample.com", no, -1},
		{"a wildcard below a longer name", []paddock.NetworkRule{allow("*.example.com")}, "x.example.com.evil.org", no, -1},
		{"punycode is its own name", []paddock.NetworkRule{allow("xn--bcher-kva.example")}, "XN--BCHER-KVA.example", yes, 0},
		{"punycode that looks alike", []paddock.NetworkRule{allow("example.com")}, "xn--exmple-cua.com", no, -1},
		{"a deny wins before", []paddock.NetworkRule{deny("bad.example.com"), allow("*.example.com")}, "bad.example.com", no, 0},
		{"a deny wins behind", []paddock.NetworkRule{allow("*.example.com"), deny("bad.example.com")}, "bad.example.com", no, 1},
		{"a deny wins over a trailing dot", []paddock.NetworkRule{allow("*"), deny("bad.example.com")}, "BAD.example.com.", no, 1},
		{"a deny wins over capitals in the rule", []paddock.NetworkRule{allow("*"), deny("BAD.example.com.")}, "bad.example.com", no, 1},
		{"a deny by a wildcard", []paddock.NetworkRule{allow("a.example.com"), deny("*.example.com")}, "a.example.com", no, 1},
		{"a deny without ports is of all", []paddock.NetworkRule{allow("*", 22, 443), deny("bad.example.com")}, "bad.example.com:22", no, 1},
		{"a deny of one port", []paddock.NetworkRule{allow("*", 22, 443), deny("bad.example.com", 22)}, "bad.example.com:443", yes, 0},
		{"a deny of everything", []paddock.NetworkRule{allow("example.com"), deny("*")}, "example.com", no, 1},
		{"the first allow counts", []paddock.NetworkRule{allow("*.example.com"), allow("a.example.com")}, "a.example.com", yes, 0},
		{"an address", []paddock.NetworkRule{allow("192.0.2.1")}, "192.0.2.1", yes, 0},
		{"an address in IPv6 form", []paddock.NetworkRule{allow("192.0.2.1")}, "[::ffff:192.0.2.1]:443", yes, 0},
		{"a rule in IPv6 form", []paddock.NetworkRule{allow("::ffff:192.0.2.1")}, "192.0.2.1", yes, 0},
		{"a deny of an address in IPv6 form", []paddock.NetworkRule{allow("*"), deny("192.0.2.1")}, "[::ffff:c000:201]:443", no, 1},
		{"a range", []paddock.NetworkRule{allow("10.1.0.0/16", 5432)}, "10.1.2.3:5432", yes, 0},
		{"beyond a range", []paddock.NetworkRule{allow("10.1.0.0/16", 5432)}, "10.2.0.1:5432", no, -1},
		{"a range is of no name", []paddock.NetworkRule{allow("0.0.0.0/0"), allow("::/0")}, "example.com", no, -1},
		{"a range of IPv6", []paddock.NetworkRule{allow("fd00::/8")}, "[fd12::1]:443", yes, 0},
		{"a name is of no address", []paddock.NetworkRule{allow("*.example.com")}, "192.0.2.1", no, -1},
		{"datagrams are not connections", []paddock.NetworkRule{allow("example.com")}, "example.com:443/udp", no, -1},
		{"connections are not datagrams", []paddock.NetworkRule{datagrams}, "example.com:443", no, -1},
		{"datagrams", []paddock.NetworkRule{datagrams}, "example.com:443/udp", yes, 0},
		{"datagrams have one port by default", []paddock.NetworkRule{datagrams}, "example.com:80/udp", no, -1},
		{"a deny is of datagrams too", []paddock.NetworkRule{datagrams, deny("example.com")}, "example.com:443/udp", no, 1},
		{"a deny of datagrams alone", []paddock.NetworkRule{allow("*"), {Deny: true, Host: "*", UDP: true}}, "example.com:443", yes, 0},
		{"a deny of requests denies datagrams", []paddock.NetworkRule{datagrams, noDelete}, "api.example.com:443/udp", no, 1},
		{"an allow of requests", []paddock.NetworkRule{post}, "api.example.com", look, 0},
		{"a deny of requests alone allows nothing", []paddock.NetworkRule{noDelete}, "api.example.com", no, -1},
		{"a deny of requests", []paddock.NetworkRule{allow("api.example.com"), noDelete}, "api.example.com", look, 0},
		{"a deny of requests to others", []paddock.NetworkRule{allow("*.example.com"), noDelete}, "www.example.com", yes, 0},
		{"what stands behind an allow of all", []paddock.NetworkRule{allow("api.example.com"), post}, "api.example.com", yes, 0},
		{"what stands before an allow of all", []paddock.NetworkRule{post, allow("api.example.com")}, "api.example.com", look, 0},
		{"inspect", []paddock.NetworkRule{{Host: "example.com", Inspect: true}}, "example.com", look, 0},
		{"headers to set", []paddock.NetworkRule{{Host: "example.com", SetHeaders: map[string]string{"X-A": "b"}}}, "example.com", look, 0},
		{"an answer", []paddock.NetworkRule{{Host: "example.com", Answer: &paddock.NetworkAnswer{Body: "x"}}}, "example.com", look, 0},
		{"limits and a proxy need no look", []paddock.NetworkRule{{Host: "example.com", Limits: &paddock.NetworkLimits{Bytes: 1}, Proxy: "http://p:1"}}, "example.com", yes, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := list(t, tc.rules...).Flow(flow(t, tc.to))
			if word(v) != tc.want || v.Rule != tc.rule {
				t.Errorf("%s is %+v; want %s by %d", tc.to, v, tc.want, tc.rule)
			}
			if v.Reason == "" || (v.Hint == "") != v.Allow {
				t.Errorf("the words are missing or too many: %+v", v)
			}
		})
	}
}

func TestWhatIsNoDestinationIsNeverAllowed(t *testing.T) {
	r := list(t, allow("*"))
	for _, f := range []Flow{{}, {Port: 443}, {Host: HostOf(netip.MustParseAddr("192.0.2.1"))}} {
		if v := r.Flow(f); v.Allow {
			t.Errorf("%+v is allowed", f)
		}
	}
}

func TestVerdictsSayWhatToChange(t *testing.T) {
	r := list(t, allow("a.example"), deny("*.bad.example"))
	for to, want := range map[string]Verdict{
		"a.example":         {Allow: true, Rule: 0, Reason: "rules[0] allows a.example"},
		"x.bad.example":     {Rule: 1, Reason: "rules[1] denies *.bad.example", Hint: "remove rules[1]"},
		"b.example:22":      {Rule: -1, Reason: "no rule allows b.example:22", Hint: "--allow b.example:22"},
		"[2001:db8::1]:443": {Rule: -1, Reason: "no rule allows [2001:db8::1]:443", Hint: "--allow [2001:db8::1]:443"},
		"b.example:53/udp":  {Rule: -1, Reason: "no rule allows b.example:53/udp", Hint: `in the policy file: network: {mode: list, rules: [{allow: "b.example:53", udp: true}]}`},
	} {
		if v := r.Flow(flow(t, to)); v != want {
			t.Errorf("%s: %+v; want %+v", to, v, want)
		}
	}
}

func TestANameIsLookedUpOnlyIfSomethingOfItCanBeReached(t *testing.T) {
	get := paddock.NetworkRule{Host: "get.example", Methods: []string{"GET"}}
	r := list(t, allow("a.example", 22), allow("*.b.example"), deny("x.b.example"), allow("c.example"), deny("c.example", 443),
		allow("d.example", 22), deny("d.example", 22), get, paddock.NetworkRule{Host: "u.example", UDP: true}, allow("10.0.0.0/8"))
	for name, want := range map[string]bool{
		"a.example": true, "A.example.": true, "b.example": false, "y.b.example": true, "x.b.example": false, "c.example": true, "d.example": false,
		"get.example": true, "u.example": true, "e.example": false, "a.example.evil.org": false,
	} {
		h, err := ParseHost(name)
		if err != nil {
			t.Fatal(err)
		}
		if v := r.Lookup(h); v.Allow != want || v.Look || v.Reason == "" || (v.Hint == "") != want {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestAnAddressIsDialledOnlyIfItIsMeant(t *testing.T) {
	noPut := paddock.NetworkRule{Deny: true, Host: "198.51.100.1", Methods: []string{"PUT"}}
	r := list(t, noPut, allow("*"), allow("10.0.0.0/8", 5432), allow("127.0.0.1"), allow("0.0.0.0/0"), allow("fd00::/8"), deny("203.0.113.0/24"), deny("10.9.0.0/16"))
	for addr, want := range map[string]bool{"10.1.2.3": true, "127.0.0.1": true, "::ffff:127.0.0.1": true, "127.0.0.2": false, "169.254.169.254": false, "fd12::1": true, "fe80::1": false, "203.0.113.1": false} {
		if r.Lists(flow(t, "a.example:5432"), netip.MustParseAddr(addr)) != want {
			t.Errorf("%s is listed: %v", addr, !want)
		}
	}
	for _, tc := range []struct {
		to, addr string
		want     bool
	}{
		{"a.example:443", "192.0.2.1", true},
		{"a.example:443", "203.0.113.9", false},
		{"a.example:443", "::ffff:203.0.113.9", false},
		{"a.example:443", "198.51.100.1", false},   // a deny of some requests
		{"198.51.100.1:443", "198.51.100.1", true}, // whose requests are judged one by one
		{"a.example:443", "10.8.0.1", true},
		{"a.example:443", "10.9.0.1", false},
		{"a.example:443/udp", "10.9.0.1", false},
	} {
		v := r.Dials(flow(t, tc.to), netip.MustParseAddr(tc.addr))
		if v.Allow != tc.want || v.Look || v.Reason == "" || (v.Hint == "") != tc.want {
			t.Errorf("%s at %s: %+v", tc.to, tc.addr, v)
		}
	}
}

// A rule that opens one port of a private address must not open others of it to a name or a rule that is wider.
func TestAnAddressIsListedAtThePortsOfItsRule(t *testing.T) {
	udp := paddock.NetworkRule{Host: "10.0.0.53", Ports: []uint16{53}, UDP: true}
	r := list(t, allow("*", 0), allow("127.0.0.1", 5432), allow("10.1.0.0/16"), allow("10.2.0.1", 0), udp)
	for _, tc := range []struct {
		to, addr string
		want     bool
	}{
		{"127.0.0.1:5432", "127.0.0.1", true},
		{"127.0.0.1:80", "127.0.0.1", false},
		{"127.0.0.1:5432/udp", "127.0.0.1", false},
		{"db.example:5432", "127.0.0.1", true},
		{"evil.example:80", "127.0.0.1", false},
		{"evil.example:443", "::ffff:127.0.0.1", false},
		{"git.example:22", "10.1.2.3", true}, // the ports are those of the rule that allows the name
		{"10.1.2.3:443", "10.1.2.3", true},
		{"10.1.2.3:22", "10.1.2.3", false}, // only "*" allows it
		{"10.2.0.1:22", "10.2.0.1", true},
		{"git.example:22", "10.2.0.1", true},
		{"10.0.0.53:53/udp", "10.0.0.53", true},
		{"10.0.0.53:53", "10.0.0.53", false},
		{"ns.example:53", "10.0.0.53", false},
	} {
		if got := r.Lists(flow(t, tc.to), netip.MustParseAddr(tc.addr)); got != tc.want {
			t.Errorf("%s at %s: listed %v", tc.to, tc.addr, got)
		}
	}
}

func secret(name string, hosts ...string) paddock.Secret {
	return paddock.Secret{Name: name, Value: "value-of-" + name, Hosts: hosts}
}

func TestASecretIsUsedForItsHostsAlone(t *testing.T) {
	r := policy(t, paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{allow("*", 443, 8443, 80)}, Secrets: []paddock.Secret{
		secret("A", "api.example.com", "*.a.example:8443"), secret("B", "api.example.com"), secret("C", "192.0.2.1"),
	}})
	for to, want := range map[string]string{
		"api.example.com": "A B", "API.example.com.": "A B", "api.example.com:80": "", "api.example.com:8443": "", "x.a.example:8443": "A", "x.a.example": "", "a.example:8443": "",
		"192.0.2.1": "C", "[::ffff:192.0.2.1]:443": "C", "api.example.com.evil.org": "", "evilapi.example.com": "",
	} {
		f := flow(t, to)
		var names []string
		for _, s := range r.SecretsFor(f.Host, f.Port) {
			names = append(names, s.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %q, want %q", to, got, want)
		}
		if v := r.Flow(f); v.Look != (want != "") || !v.Allow {
			t.Errorf("%s: %+v", to, v)
		}
	}
}

func TestASecretAllowsNothing(t *testing.T) {
	r := policy(t, paddock.NetworkPolicy{Mode: paddock.NetworkList, Secrets: []paddock.Secret{secret("A", "api.example.com")}})
	if v := r.Flow(flow(t, "api.example.com")); v.Allow || v.Look {
		t.Errorf("%+v", v)
	}
}

func TestOnlyWhatNeedsALookIsInspected(t *testing.T) {
	requests := func(host string, d bool) paddock.NetworkRule {
		return paddock.NetworkRule{Deny: d, Host: host, Methods: []string{"PUT"}}
	}
	for _, tc := range []struct {
		name    string
		rules   []paddock.NetworkRule
		secrets []paddock.Secret
		want    []string
	}{
		{"nothing", []paddock.NetworkRule{allow("*"), deny("x.example")}, nil, nil},
		{"a rule about requests", []paddock.NetworkRule{allow("a.example"), requests("b.example", false)}, nil, []string{"b.example"}},
		{"a deny of some requests to all, of what is allowed", []paddock.NetworkRule{allow("a.example"), allow("*.b.example"), requests("*", true)}, nil, []string{"a.example", "*.b.example"}},
		{"a deny of some requests to one of many", []paddock.NetworkRule{allow("*"), requests("a.example", true)}, nil, []string{"a.example"}},
		{"a deny of what is not allowed", []paddock.NetworkRule{allow("b.example"), requests("a.example", true)}, nil, nil},
		{"none is covered by another", []paddock.NetworkRule{requests("x.a.example", false), requests("*.a.example", false), requests("*.a.example", false)}, []paddock.Secret{secret("A", "y.a.example", "z.example")}, []string{"*.a.example", "z.example"}},
	} {
		r := policy(t, paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: tc.rules, Secrets: tc.secrets})
		var got []string
		for _, p := range r.Inspected() {
			got = append(got, p.String())
		}
		if !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// Every inspected flow is to a host of Inspected, otherwise its TLS could not be decrypted.
func TestWhatIsLookedIntoCanBe(t *testing.T) {
	r := policy(t, paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{
		allow("*.a.example"), {Deny: true, Host: "*", Methods: []string{"PUT"}, Ports: []uint16{443}}, {Host: "b.example", Ports: []uint16{443}, Inspect: true}, allow("192.0.2.0/24"),
	}, Secrets: []paddock.Secret{secret("A", "c.a.example:80")}})
	for _, to := range []string{"x.a.example", "x.a.example:80", "c.a.example:80", "b.example", "192.0.2.1", "192.0.2.1:80"} {
		f := flow(t, to)
		covered := false
		for _, p := range r.Inspected() {
			covered = covered || p.Match(f.Host)
		}
		if v := r.Flow(f); v.Look && !covered {
			t.Errorf("%s: %+v, and inspected are %v", to, v, r.Inspected())
		}
	}
}

func TestAPolicyThatMakesNoSenseIsRefused(t *testing.T) {
	const host = "a.example"
	head := map[string]string{"X-A": "b"}
	rules := map[string]paddock.NetworkRule{
		`host ""`:                             {},
		"a host, not a URL":                   {Host: "https://a.example"},
		"port 0":                              {Host: host, Ports: []uint16{443, 0}},
		"a deny with inspect":                 {Deny: true, Host: host, Inspect: true},
		"a deny with limits":                  {Deny: true, Host: host, Limits: &paddock.NetworkLimits{}},
		"a deny with set_headers":             {Deny: true, Host: host, SetHeaders: head},
		"a deny with a proxy":                 {Deny: true, Host: host, Proxy: "http://p:1"},
		"a deny with an answer":               {Deny: true, Host: host, Answer: &paddock.NetworkAnswer{}},
		"udp with conditions on requests":     {Host: host, UDP: true, Paths: []string{"/"}},
		"udp with inspect":                    {Host: host, UDP: true, Inspect: true},
		"udp with set_headers":                {Host: host, UDP: true, RemoveHeaders: []string{"X-A"}},
		"udp with a proxy":                    {Host: host, UDP: true, Proxy: "socks5://p:1"},
		"udp with an answer":                  {Host: host, UDP: true, Answer: &paddock.NetworkAnswer{}},
		"an answer with a proxy":              {Host: host, Proxy: "http://p:1", Answer: &paddock.NetworkAnswer{}},
		"an answer with set_headers":          {Host: host, SetHeaders: head, Answer: &paddock.NetworkAnswer{}},
		`the scheme "ftp"`:                    {Host: host, Scheme: "ftp"},
		"capitals, GET":                       {Host: host, Methods: []string{"get"}},
		`"A B" is no method`:                  {Host: host, Methods: []string{"A B"}},
		`path "x": a path begins with`:        {Host: host, Paths: []string{"x"}},
		"it is encoded":                       {Host: host, Paths: []string{"/a%2Fb"}},
		"it is not clean; /b was meant":       {Host: host, Paths: []string{"/a/../b"}},
		"it is not clean; /a/b was meant":     {Host: host, Paths: []string{"/a//b"}},
		"it holds one of":                     {Host: host, Paths: []string{"/a?b=c"}},
		`there is no "***"`:                   {Host: host, Paths: []string{"/***"}},
		"control characters, or is not UTF-8": {Host: host, Paths: []string{"/a\n"}},
		`the query ""`:                        {Host: host, Query: map[string]string{"": "x"}},
		"headers: the header Host belongs":    {Host: host, Headers: map[string]string{"host": "x"}},
		`headers: "A B" is no name`:           {Host: host, Headers: map[string]string{"A B": "x"}},
		"headers: X-A is there twice":         {Host: host, Headers: map[string]string{"x-a": "1", "X-A": "2"}},
		"the header Content-Length belongs":   {Host: host, SetHeaders: map[string]string{"content-length": "0"}},
		"the header Transfer-Encoding":        {Host: host, SetHeaders: map[string]string{"Transfer-Encoding": "chunked"}},
		"the header Connection belongs":       {Host: host, RemoveHeaders: []string{"connection"}},
		"the header Proxy-Authorization":      {Host: host, SetHeaders: map[string]string{"Proxy-Authorization": "x"}},
		`":path" is no name`:                  {Host: host, SetHeaders: map[string]string{":path": "/"}},
		"its value holds control characters":  {Host: host, SetHeaders: map[string]string{"X-A": "a\r\nHost: b"}},
		"begins or ends with a space":         {Host: host, SetHeaders: map[string]string{"X-A": " a"}},
		"X-A is removed and set":              {Host: host, SetHeaders: head, RemoveHeaders: []string{"x-a"}},
		"proxy: not a URL":                    {Host: host, Proxy: "http://a b"},
		`proxy: the scheme "ftp"`:             {Host: host, Proxy: "ftp://p"},
		`proxy: the scheme ""`:                {Host: host, Proxy: "p"},
		"proxy: a URL with more":              {Host: host, Proxy: "http://p/x"},
		`proxy: host "127.1"`:                 {Host: host, Proxy: "http://127.1:3128"},
		"the status 99 is not":                {Host: host, Answer: &paddock.NetworkAnswer{Status: 99}},
		"the status 204 with a body":          {Host: host, Answer: &paddock.NetworkAnswer{Status: 204, Body: "x"}},
		"answer: headers: the header Content": {Host: host, Answer: &paddock.NetworkAnswer{Headers: map[string]string{"Content-Length": "1"}}},
		"answer: a body of":                   {Host: host, Answer: &paddock.NetworkAnswer{Body: strings.Repeat("x", maxBody+1)}},
		"limits: a negative number":           {Host: host, Limits: &paddock.NetworkLimits{Rate: -1}},
	}
	for want, nr := range rules {
		_, err := Compile(paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{allow("b.example"), nr}})
		if err == nil || !errors.Is(err, paddock.Invalid) || !strings.HasPrefix(err.Error(), "rules[1]: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		if err := CheckRule(nr); err == nil || !errors.Is(err, paddock.Invalid) {
			t.Errorf("%s: Check: %v", want, err)
		}
	}
}

func TestASecretThatMakesNoSenseIsRefusedAndNotTold(t *testing.T) {
	const value = "the-value-itself"
	good := paddock.Secret{Name: "ID", Value: value, Hosts: []string{"a.example"}}
	with := func(change func(*paddock.Secret)) paddock.Secret {
		s := good
		s.Name = "KEY"
		change(&s)
		return s
	}
	for want, s := range map[string]paddock.Secret{
		`"" is no name`:             with(func(s *paddock.Secret) { s.Name = "" }),
		`"A-B" is no name`:          with(func(s *paddock.Secret) { s.Name = "A-B" }),
		`"1A" is no name`:           with(func(s *paddock.Secret) { s.Name = "1A" }),
		"ID is there twice":         with(func(s *paddock.Secret) { s.Name = "ID" }),
		"KEY has no value":          with(func(s *paddock.Secret) { s.Value = "" }),
		"line break":                with(func(s *paddock.Secret) { s.Value += "\n" }),
		"bytes; at most":            with(func(s *paddock.Secret) { s.Value = strings.Repeat(value, MaxSecret) }),
		"bound to no host":          with(func(s *paddock.Secret) { s.Hosts = nil }),
		"whatever is reached":       with(func(s *paddock.Secret) { s.Hosts = []string{"*"} }),
		"not to whatever":           with(func(s *paddock.Secret) { s.Hosts = []string{"10.0.0.0/8"} }),
		"a port is 1 to 65535":      with(func(s *paddock.Secret) { s.Hosts = []string{"a.example:0"} }),
		`the place "url"`:           with(func(s *paddock.Secret) { s.Places = []paddock.SecretPlace{"url"} }),
		`sigv4 names "NONE"`:        with(func(s *paddock.Secret) { s.SigV4 = "NONE" }),
		"names the secret itself":   with(func(s *paddock.Secret) { s.SigV4 = "KEY" }),
		"ID, which sigv4 names, is": with(func(s *paddock.Secret) { s.SigV4 = "ID"; s.Hosts = []string{"b.example"} }),
	} {
		_, err := Compile(paddock.NetworkPolicy{Mode: paddock.NetworkList, Secrets: []paddock.Secret{good, s}})
		if err == nil || !errors.Is(err, paddock.Invalid) || !strings.HasPrefix(err.Error(), "secrets[1]: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		if err != nil && strings.Contains(err.Error(), value) {
			t.Errorf("the error tells the value: %v", err)
		}
	}
	signed := with(func(s *paddock.Secret) { s.SigV4 = "ID" })
	if _, err := Compile(paddock.NetworkPolicy{Mode: paddock.NetworkList, Secrets: []paddock.Secret{good, signed}}); err != nil {
		t.Error(err)
	}
}

func TestAPasswordOfAProxyIsNotTold(t *testing.T) {
	for _, proxy := range []string{"http://u:hunter2@p/x", "http://u:hunter2@127.1", "http://u:hunter2@p:0", "ftp://u:hunter2@p", "http://u:hunter2@a b", "http://u:hunter2%zz@p"} {
		if err := CheckRule(paddock.NetworkRule{Host: "a.example", Proxy: proxy}); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v", err)
		}
	}
	for _, proxy := range []string{"http://u:hunter2@p", "https://p:1/", "socks5://[::1]:1080"} {
		if err := CheckRule(paddock.NetworkRule{Host: "a.example", Proxy: proxy}); err != nil {
			t.Error(err)
		}
	}
}

func TestOnlyModeListHasRules(t *testing.T) {
	for _, p := range []paddock.NetworkPolicy{
		{Mode: paddock.NetworkHost}, {Mode: "lits"}, {Rules: []paddock.NetworkRule{allow("a.example")}}, {Secrets: []paddock.Secret{secret("A", "a.example")}},
		{Mode: paddock.NetworkList, Rules: make([]paddock.NetworkRule, maxRules+1)}, {Mode: paddock.NetworkList, Secrets: make([]paddock.Secret, maxSecrets+1)},
	} {
		if _, err := Compile(p); !errors.Is(err, paddock.Invalid) {
			t.Errorf("%s, %d rules: %v", p.Mode, len(p.Rules), err)
		}
	}
	if v := policy(t, paddock.NetworkPolicy{}).Flow(flow(t, "a.example")); v.Allow {
		t.Errorf("the zero policy allows: %+v", v)
	}
}

func TestRulesKeepACopyInOneForm(t *testing.T) {
	nr := paddock.NetworkRule{Host: "A.example.", Ports: []uint16{443}, Methods: []string{"GET"}, Paths: []string{"/a"}, Query: map[string]string{"q": "1"},
		Headers: map[string]string{"x-b": "1"}, SetHeaders: map[string]string{"x-c": "1"}, RemoveHeaders: []string{"x-d"}, Limits: &paddock.NetworkLimits{Bytes: 1}}
	r := list(t, nr)
	nr.Ports[0], nr.Methods[0], nr.Paths[0], nr.Query["q"], nr.Limits.Bytes = 1, "PUT", "/b", "2", 2
	want := paddock.NetworkRule{Host: "a.example", Ports: []uint16{443}, Methods: []string{"GET"}, Paths: []string{"/a"}, Query: map[string]string{"q": "1"},
		Headers: map[string]string{"X-B": "1"}, SetHeaders: map[string]string{"X-C": "1"}, RemoveHeaders: []string{"X-D"}, Limits: &paddock.NetworkLimits{Bytes: 1}}
	if got := r.At(0); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if !reflect.DeepEqual(r.At(-1), paddock.NetworkRule{}) || !reflect.DeepEqual(r.At(1), paddock.NetworkRule{}) {
		t.Error("a rule that is not there is one")
	}
}

func TestTheLoopbackOfThisMachineIsReachedAtPortsOfARuleThatNamesIt(t *testing.T) {
	for name, c := range map[string]struct {
		rules []paddock.NetworkRule
		want  string // at port 5432
	}{
		"named":                {[]paddock.NetworkRule{allow("host.docker.internal", 5432)}, yes},
		"in another form":      {[]paddock.NetworkRule{allow("HOST.docker.Internal.", 5432)}, yes},
		"looked into":          {[]paddock.NetworkRule{{Host: "host.docker.internal", Ports: []uint16{5432}, Methods: []string{"GET"}}}, look},
		"everything":           {[]paddock.NetworkRule{allow("*", 0), allow("*", 5432)}, no},
		"everything below":     {[]paddock.NetworkRule{allow("*.docker.internal", 5432), allow("*.internal", 5432)}, no},
		"its addresses":        {[]paddock.NetworkRule{allow("127.0.0.1", 5432), allow("127.0.0.0/8", 5432), allow("::1", 5432)}, no},
		"a name below it":      {[]paddock.NetworkRule{allow("a.host.docker.internal", 5432)}, no},
		"denied by name":       {[]paddock.NetworkRule{allow("host.docker.internal", 5432), deny("host.docker.internal")}, no},
		"denied with all":      {[]paddock.NetworkRule{allow("host.docker.internal", 5432), deny("*.internal")}, no},
		"denied at the port":   {[]paddock.NetworkRule{allow("host.docker.internal", 5432), deny("*", 5432)}, no},
		"denied elsewhere":     {[]paddock.NetworkRule{allow("host.docker.internal", 5432), deny("*", 22)}, yes},
		"another port as well": {[]paddock.NetworkRule{allow("host.docker.internal", 1), allow("host.docker.internal", 5432)}, yes},
	} {
		r := list(t, c.rules...)
		if v := r.Flow(flow(t, "host.docker.internal:5432")); word(v) != c.want {
			t.Errorf("%s: %+v, want %s", name, v, c.want)
		}
		if v := r.Lookup(flow(t, "host.docker.internal:5432").Host); v.Allow != (c.want != no) {
			t.Errorf("%s: the name: %+v", name, v)
		}
		for _, other := range []string{"host.docker.internal:5433", "host.docker.internal:443", "host.docker.internal:80", "host.docker.internal:5432/udp", "localhost:5432"} {
			if v := r.Flow(flow(t, other)); v.Allow && other != "localhost:5432" {
				t.Errorf("%s: %s is allowed too: %+v", name, other, v)
			}
		}
		if r.Lists(flow(t, "host.docker.internal:5432"), netip.MustParseAddr("127.0.0.1")) != (name == "its addresses") {
			t.Errorf("%s: the address is listed by the name", name)
		}
	}
	r := list(t, allow("host.docker.internal", 5432))
	if v := r.Flow(flow(t, "host.docker.internal:6379")); v.Hint != "--allow host.docker.internal:6379" {
		t.Errorf("the hint for another port: %+v", v)
	}
	if v := r.Flow(flow(t, "host.docker.internal:5432/udp")); v.Hint != "" || !strings.Contains(v.Reason, "datagrams do not reach") {
		t.Errorf("the hint for datagrams: %+v", v)
	}
	for name, bad := range map[string]paddock.NetworkRule{
		"no port":     allow("host.docker.internal"),
		"every port":  allow("host.docker.internal", 0),
		"datagrams":   {Host: "host.docker.internal", Ports: []uint16{53}, UDP: true},
		"via a proxy": {Host: "host.docker.internal", Ports: []uint16{80}, Proxy: "http://proxy.example.com:3128"},
		"other forms": allow("Host.Docker.Internal."),
	} {
		if err := CheckRule(bad); !errors.Is(err, paddock.Invalid) || !strings.Contains(err.Error(), "loopback of this machine") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
