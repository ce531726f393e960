package e2b

import (
	"encoding/json"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func yes(b bool) *bool { return &b }

func hostsOf(p paddock.NetworkPolicy) (deny, allow []string) {
	for _, r := range p.Rules {
		switch {
		case r.Deny:
			deny = append(deny, r.Host)
		case !r.UDP:
			allow = append(allow, r.Host)
		}
	}
	return deny, allow
}

func TestANetworkObjectMeansTheSameInOurWords(t *testing.T) {
	all := []string{"*"}
	for name, row := range map[string]struct {
		n           *network
		internet    *bool
		deny, allow []string
	}{
		"nothing is everything":                         {nil, nil, nil, all},
		"no internet":                                   {nil, yes(false), nil, nil},
		"all is denied":                                 {&network{DenyOut: []string{"0.0.0.0/0"}}, nil, nil, nil},
		"one name of all that is denied":                {&network{DenyOut: []string{"0.0.0.0/0"}, AllowOut: []string{"*.Example.com"}}, nil, nil, []string{"*.example.com"}},
		"an allow wins over a deny of all":              {&network{DenyOut: []string{"0.0.0.0/0", "1.1.1.0/24"}, AllowOut: []string{"1.1.1.1"}}, nil, nil, []string{"1.1.1.1/32"}},
		"an allow of all wins over a deny of all":       {&network{DenyOut: []string{"0.0.0.0/0"}, AllowOut: []string{"0.0.0.0/0"}}, nil, nil, all},
		"a range is denied":                             {&network{DenyOut: []string{"1.1.1.0/24"}}, nil, []string{"1.1.1.0/24"}, all},
		"an address in a range that is denied":          {&network{DenyOut: []string{"1.1.1.0/30"}, AllowOut: []string{"1.1.1.1"}}, nil, []string{"1.1.1.2/31", "1.1.1.0/32"}, all},
		"a range that is allowed hides one in it":       {&network{DenyOut: []string{"1.1.1.1"}, AllowOut: []string{"1.1.0.0/16"}}, nil, nil, all},
		"what is allowed changes nothing where all is":  {&network{AllowOut: []string{"1.1.1.1"}}, nil, nil, all},
		"no internet but for what is allowed":           {&network{AllowOut: []string{"1.1.1.1", "example.com"}}, yes(false), nil, []string{"1.1.1.1/32", "example.com"}},
		"no internet, with a range that is denied, too": {&network{DenyOut: []string{"1.1.1.1"}}, yes(false), nil, nil},
	} {
		p, err := policy(row.n, row.internet)
		deny, allow := hostsOf(p)
		if err != nil || !reflect.DeepEqual(deny, row.deny) || !reflect.DeepEqual(allow, row.allow) {
			t.Errorf("%s: denied %q, allowed %q: %v", name, deny, allow, err)
		}
		if p.Mode != paddock.NetworkList {
			t.Errorf("%s: the mode is %q, so that an update could allow nothing", name, p.Mode)
		}
		for _, r := range p.Rules {
			if !r.Deny && !slices.Equal(r.Ports, []uint16{0}) {
				t.Errorf("%s: %s on ports %v alone", name, r.Host, r.Ports)
			}
		}
	}
}

func TestHeadersAreSetForHostsThatMayBeReachedAlone(t *testing.T) {
	set := []rule{{Transform: &transform{Headers: map[string]string{"X-A": "b"}}}}
	n := &network{DenyOut: []string{"0.0.0.0/0"}, AllowOut: []string{"*.example.com"}, Rules: map[string][]rule{"api.example.com": set, "example.org": set}}
	p, err := policy(n, nil)
	if err != nil || len(p.Rules) != 3 {
		t.Fatalf("%+v: %v", p, err)
	}
	if r := p.Rules[0]; r.Host != "api.example.com" || r.SetHeaders["X-A"] != "b" {
		t.Errorf("%+v", r)
	}
}

func TestANetworkObjectThatCannotBeSaidIsRefused(t *testing.T) {
	many := map[string][]rule{}
	for i := range 11 {
		many[strings.Repeat("a", i+1)+".example.com"] = nil
	}
	headers := func(name, value string) map[string][]rule {
		return map[string][]rule{"example.com": {{Transform: &transform{Headers: map[string]string{name: value}}}}}
	}
	for name, n := range map[string]*network{
		"a domain without a deny of all": {AllowOut: []string{"example.com"}},
		"a domain that is denied":        {DenyOut: []string{"example.com"}},
		"no host":                        {AllowOut: []string{"a b"}, DenyOut: []string{"0.0.0.0/0"}},
		"an address that is wrong":       {DenyOut: []string{"1.2.3"}},
		"servers of names":               {DNSServers: []string{"1.1.1.1"}},
		"many domains":                   {Rules: many},
		"two rules":                      {Rules: map[string][]rule{"example.com": {{}, {}}}},
		"a secret of theirs":             {Rules: headers("A", "${e2b.secrets.x}")},
		"a line break":                   {Rules: headers("A", "b\r\nC: d")},
		"no name of a header":            {Rules: headers("A:", "b")},
		"a long value":                   {Rules: headers("A", strings.Repeat("b", 2049))},
		"a host with a path":             {MaskRequestHost: "a/b"},
		"a port that is none":            {HTTPSPorts: []int{70000}},
		"a proxy without an address":     {EgressProxy: &egressProxy{}},
		"a password alone":               {EgressProxy: &egressProxy{Address: "a:1", Password: "p"}},
		"a proxy behind TLS":             {EgressProxy: &egressProxy{Address: "a:1", TLS: json.RawMessage("true")}},
	} {
		if p, err := policy(n, nil); err == nil || faultOf(err).Code != 400 {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

// What is left of ranges is what was in them and not in what was cut: each address
// is looked at.
func TestRangesWithoutOthersAreExact(t *testing.T) {
	prefix := func(text string) []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix(text)} }
	for _, row := range [][2]string{{"10.0.0.0/24", "10.0.0.77/32"}, {"10.0.0.0/24", "10.0.0.128/25"}, {"10.0.0.0/24", "10.0.1.0/24"}, {"10.0.0.0/24", "10.0.0.0/16"}, {"fd00::/120", "fd00::8/125"}} {
		from, cut := prefix(row[0]), prefix(row[1])
		left, err := minus(from, cut)
		if err != nil {
			t.Fatal(err)
		}
		in := func(list []netip.Prefix, a netip.Addr) bool {
			return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
		}
		for a := from[0].Addr(); from[0].Contains(a); a = a.Next() {
			if want := !in(cut, a); in(left, a) != want {
				t.Fatalf("%s without %s: %s is in it: %v", row[0], row[1], a, !want)
			}
		}
	}
}

func TestAFilterOfMetadataIsEscapedTwice(t *testing.T) {
	got, err := metadata("a=b%2520c&d%2526=e")
	if want := map[string]string{"a": "b c", "d&": "e"}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q: %v", got, err)
	}
	for _, bad := range []string{"%zz", "a=%25zz"} {
		if got, err := metadata(bad); err == nil {
			t.Errorf("%q: %q", bad, got)
		}
	}
}

func FuzzMetadata(f *testing.F) {
	f.Add("a=b%2520c")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := metadata(text)
		if err != nil {
			return
		}
		form := url.Values{}
		for name, value := range got {
			form.Set(url.QueryEscape(name), url.QueryEscape(value))
		}
		again, err := metadata(form.Encode())
		if err != nil || len(got) > 0 && !reflect.DeepEqual(got, again) {
			t.Errorf("%q became %q: %v", got, again, err)
		}
	})
}

func FuzzNetwork(f *testing.F) {
	f.Add(`{"allowOut":["1.1.1.1"],"denyOut":["0.0.0.0/0"]}`)
	f.Add(`{"rules":{"a.b":[{"transform":{"headers":{"a":"b"}}}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var n network
		if json.Unmarshal([]byte(text), &n) != nil {
			return
		}
		p, err := policy(&n, yes(false))
		if err == nil && len(n.AllowOut) == 0 && len(p.Rules) != 0 {
			t.Errorf("no internet, and nothing allowed: %+v", p)
		}
	})
}

func TestNamesOfTemplatesHaveAGrammar(t *testing.T) {
	for text, want := range map[string]name{
		"base": {"", "base", ""}, "Base:GVisor": {"", "base", "gvisor"}, "acme/x-1_y:v1.2": {"acme", "x-1_y", "v1.2"},
	} {
		if got, ok := parseName(text); !ok || got != want {
			t.Errorf("%s: %+v", text, got)
		}
	}
	for _, bad := range []string{"", ":", "a b", "a/b/c", "/a", "../x", "a:b:c", "é"} {
		if got, ok := parseName(bad); ok {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}

func TestAPlaceInAListIsReadBack(t *testing.T) {
	at := cursor{time.Unix(1_900_000_000, 123).UTC(), "iabc"}
	if got, err := parseCursor(at.String()); err != nil || got != at {
		t.Errorf("%+v: %v", got, err)
	}
	for _, bad := range []string{"x", "YQ", "!"} {
		if got, err := parseCursor(bad); err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}
