package policy

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

const requests = `version: 1
network:
  mode: list
  rules:
    - allow: API.example.com
      scheme: https
      methods: [GET, POST]
      paths: [/v1/**]
      query: {page: "*"}
      headers: {X-Team: a}
      inspect: true
      limits: {requests: 5, bytes: 1MiB, rate: 50kB}
      set_headers: {X-A: b}
      remove_headers: [Cookie]
      proxy: http://u:p@proxy.example.com:3128
    - allow: time.example.com:123
      udp: True
    - allow: off.example.com
      answer: {status: 404, headers: {Content-Type: text/plain}, body: gone}
    - deny: {group: bad}
      methods: [DELETE]
    - allow: {group: code-hosts}
      ports: [22]
  groups:
    bad: [a.example.org, "*.b.example.org:8443"]
  secrets:
    TOKEN:
      from: env:TERM
      hosts: [api.example.com, "*.example.net:8443"]
      places: [body]
    KEY_ID: {from: "file:~/id", hosts: ["*.s3.example.com"]}
    KEY: {from: "file:/srv/key", hosts: [x.s3.example.com], sigv4: KEY_ID}
`

// withFiles is the caller with files that hold secrets.
func withFiles(files map[string]string) Host {
	o := caller
	o.Secret = func(name string, limit int) ([]byte, error) {
		text, ok := files[name]
		if !ok {
			return nil, fmt.Errorf("there is no such file: %w", paddock.NotFound)
		}
		if len(text) > limit {
			return nil, fmt.Errorf("too large: %w", paddock.Invalid)
		}
		return []byte(text), nil
	}
	return o
}

func TestRulesAboutRequestsBecomeASpec(t *testing.T) {
	f, err := Read("p", []byte(requests))
	if err != nil {
		t.Fatal(err)
	}
	var spec paddock.Spec
	o := withFiles(map[string]string{"/home/u/id": "the-id\r\n", "/srv/key": "the-key"})
	if err := f.Apply(&spec, o); err != nil {
		t.Fatal(err)
	}
	want := []paddock.NetworkRule{
		{
			Host: "api.example.com", Scheme: "https", Methods: []string{"GET", "POST"}, Paths: []string{"/v1/**"}, Query: map[string]string{"page": "*"}, Headers: map[string]string{"X-Team": "a"},
			Inspect: true, Limits: &paddock.NetworkLimits{Requests: 5, Bytes: 1 << 20, Rate: 50_000}, SetHeaders: map[string]string{"X-A": "b"}, RemoveHeaders: []string{"Cookie"}, Proxy: "http://u:p@proxy.example.com:3128",
		},
		{Host: "time.example.com", Ports: []uint16{123}, UDP: true},
		{Host: "off.example.com", Answer: &paddock.NetworkAnswer{Status: 404, Headers: map[string]string{"Content-Type": "text/plain"}, Body: "gone"}},
		{Deny: true, Host: "a.example.org", Methods: []string{"DELETE"}},
		{Deny: true, Host: "*.b.example.org", Ports: []uint16{8443}, Methods: []string{"DELETE"}},
	}
	n := spec.Policy.Network
	if got := n.Rules[:len(want)]; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for _, nr := range n.Rules[len(want):] {
		if !slices.Equal(nr.Ports, []uint16{22}) || nr.Deny {
			t.Errorf("of the group: %+v", nr)
		}
	}
	secrets := []paddock.Secret{
		{Name: "TOKEN", Value: "xterm", Hosts: []string{"api.example.com", "*.example.net:8443"}, Places: []paddock.SecretPlace{paddock.SecretBody}},
		{Name: "KEY_ID", Value: "the-id", Hosts: []string{"*.s3.example.com"}},
		{Name: "KEY", Value: "the-key", Hosts: []string{"x.s3.example.com"}, SigV4: "KEY_ID"},
	}
	if !reflect.DeepEqual(n.Secrets, secrets) {
		for i := range n.Secrets {
			t.Errorf("%#v %q", n.Secrets[i], n.Secrets[i].Value)
		}
	}
	if w := f.Where(f.ruleKey(5)); w != "p:22:7" {
		t.Errorf("a rule of a group is at %s", w)
	}
	var later paddock.Spec
	o.WithoutSecrets, o.Env, o.Secret = true, nil, nil
	if err := f.Apply(&later, o); err != nil || later.Policy.Network.Secrets[0].Value != "" {
		t.Errorf("without values: %v", err)
	}
}

func TestRulesAboutRequestsAreWrittenAndReadBack(t *testing.T) {
	f, err := Read("p", []byte(requests))
	if err != nil {
		t.Fatal(err)
	}
	f.Network.Secrets, f.sources = nil, nil
	var spec paddock.Spec
	if err := f.Apply(&spec, caller); err != nil {
		t.Fatal(err)
	}
	if _, err := Format(spec); err != nil {
		t.Error(err)
	}
	spec.Policy.Network.Secrets = []paddock.Secret{{Name: "A", Value: "the-value", Hosts: []string{"a.example"}}}
	if data, err := Format(spec); !errors.Is(err, paddock.Unsupported) || strings.Contains(err.Error(), "the-value") {
		t.Errorf("%v\n%s", err, data)
	}
}

func TestWhatIsWrongWithTheNetworkIsToldWithItsPlace(t *testing.T) {
	validate := validator(t)
	for _, tc := range []struct {
		network string // what follows "mode: list"
		want    string
		schema  bool // the schema refuses it too
	}{
		{"rules: [{allow: a.example, methods: [get]}]", "p:4:40: network.rules[0].methods[0]: the method \"get\": methods are written in capitals, GET", false},
		{"rules: [{allow: a.example, methods: []}]", "network.rules[0].methods: an empty list", false},
		{"rules: [{allow: a.example, paths: [v1]}]", `network.rules[0].paths[0]: path "v1": a path begins with "/"`, false},
		{"rules: [{allow: a.example, headers: {Host: x}}]", "network.rules[0].headers: headers: the header Host belongs to the connection", false},
		{"rules: [{allow: a.example, headers: {X-A: 1}}]", `expected text, found the number 1`, true},
		{"rules: [{allow: a.example, set_headers: {Content-Length: x}}]", "network.rules[0].set_headers: set_headers: the header Content-Length", false},
		{"rules: [{allow: a.example, remove_headers: [Connection]}]", "network.rules[0].remove_headers[0]", false},
		{"rules: [{allow: a.example, scheme: ftp}]", `"ftp" is not known`, true},
		{"rules: [{allow: a.example, udp: yes please}]", "expected true or false", true},
		{"rules: [{allow: a.example, proxy: \"ftp://p\"}]", `network.rules[0].proxy: proxy: the scheme "ftp"`, true},
		{"rules: [{allow: a.example, answer: {status: 99}}]", "allowed: a whole number from 200 to 599", true},
		{"rules: [{allow: a.example, answer: {code: 200}}]", `unknown key "code"`, true},
		{"rules: [{allow: a.example, limits: {bytes: many}}]", "network.rules[0].limits.bytes: \"many\": not a size", true},
		{"rules: [{allow: a.example, limits: {requests: 0}}]", "from 1", true},
		{"rules: [{allow: a.example, answer: {}, proxy: \"http://p:1\"}]", "network.rules[0]: an answer with a proxy", false},
		{"rules: [{deny: a.example, set_headers: {X-A: b}}]", "network.rules[0]: a deny with set_headers", false},
		{"rules: [{allow: a.example, udp: true, paths: [/]}]", "network.rules[0]: udp with conditions on requests", false},
		{"rules: [{allow: {group: code-host}}]", `there is no group "code-host" (did you mean "code-hosts"?)`, false},
		{"rules: [{allow: {groups: code-hosts}}]", `unknown key "groups" (did you mean "group"?)`, true},
		{"rules: [{allow: [a.example]}]", "expected text or a mapping, found a list", true},
		{"rules: [{allow: {group: mine}, ports: [1]}]\n  groups: {mine: [\"a.example:2\"]}", "the host a.example of the group mine has a port already", false},
		{"groups: {Mine: [a.example]}", `"Mine" is no name of a group`, true},
		{"groups: {mine: []}", "network.groups.mine: a group without hosts", false},
		{"groups: {mine: [\"https://a.example\"]}", "network.groups.mine[0]: \"https://a.example\": a host, not a URL", false},
		{"secrets: {A: {hosts: [a.example]}}", `the key "from" is missing`, true},
		{"secrets: {A: {from: \"env:B\"}}", `the key "hosts" is missing`, true},
		{"secrets: {A: {from: \"env:B\", hosts: []}}", "network.secrets.A.hosts: an empty list", false},
		{"secrets: {A: {from: hunter2, hosts: [a.example]}}", "network.secrets.A.from: neither \"env:\" nor \"file:\" begins it (\"env:VARIABLE\" of your environment", true},
		{"secrets: {A: {from: \"env:hunter2-x\", hosts: [a.example]}}", "env: with what is not the name of a variable", true},
		{"secrets: {A: {from: \"file:x\", hosts: [a.example]}}", "file: with relative path", true},
		{"secrets: {A: {from: \"env:B\", hosts: [\"*\"]}}", "network.secrets.A.hosts[0]", false},
		{"secrets: {A: {from: \"env:B\", hosts: [a.example], places: [url]}}", `"url" is not known`, true},
		{"secrets: {A: {from: \"env:B\", hosts: [a.example], sigv4: NONE}}", "network.secrets.A: A: sigv4 names \"NONE\"", false},
		{"secrets: {A-B: {from: \"env:B\", hosts: [a.example]}}", "letters, digits and _ are allowed", true},
	} {
		doc := "version: 1\nnetwork:\n  mode: list\n  " + tc.network + "\n"
		_, err := Read("p", []byte(doc))
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s:\n got %v\nwant %s", tc.network, err, tc.want)
			continue
		}
		for _, p := range e.Problems {
			if p.Line < 4 || strings.Contains(p.In("p"), "hunter2") {
				t.Errorf("%s: %s", tc.network, p.In("p"))
			}
		}
		if tc.schema != (validate(doc) != nil) {
			t.Errorf("%s: the schema refuses it: %v", tc.network, !tc.schema)
		}
	}
	for _, mode := range []string{"none", "host"} {
		_, err := Read("p", []byte("version: 1\nnetwork:\n  mode: "+mode+"\n  secrets: {A: {from: \"env:B\", hosts: [a.example]}}\n"))
		if err == nil || !strings.Contains(err.Error(), "secrets beside the mode "+mode) {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

func TestASecretThatIsMissingIsToldWithItsLine(t *testing.T) {
	const from = "version: 1\nnetwork:\n  mode: list\n  rules: [{allow: a.example}]\n  secrets:\n    A:\n      hosts: [a.example]\n      from: "
	for _, tc := range []struct {
		source string
		host   Host
		want   string
	}{
		{"env:ABSENT", caller, "p:8:7: network.secrets.A.from: the variable ABSENT is not set in your environment"},
		{"env:EMPTY", Host{Env: func(string) (string, bool) { return "", true }}, "the variable EMPTY is empty"},
		{"env:X", Host{}, "there is no environment here"},
		{"file:/absent", withFiles(nil), "p:8:7: network.secrets.A.from: the file /absent: there is no such file"},
		{"file:/empty", withFiles(map[string]string{"/empty": "\n"}), "the file /empty is empty"},
		{"file:/lines", withFiles(map[string]string{"/lines": "the-value\nmore\n"}), "p:6:5: network.secrets.A: A holds a line break"},
		{"file:/large", withFiles(map[string]string{"/large": strings.Repeat("x", 100_000)}), "the file /large: too large"},
		{"file:/x", caller, "files cannot be read here"},
		{"file:~/x", Host{}, `"~" has no meaning`},
	} {
		f, err := Read("p", []byte(from+tc.source+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		spec := paddock.Spec{Hostname: "h"}
		err = f.Apply(&spec, tc.host)
		if err == nil || !errors.Is(err, paddock.Invalid) || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "the-value") {
			t.Errorf("%s: %v; want %s", tc.source, err, tc.want)
		}
		if !reflect.DeepEqual(spec, paddock.Spec{Hostname: "h"}) {
			t.Errorf("%s: the spec was changed", tc.source)
		}
	}
}

func TestRulesThatDoNothingAreNoted(t *testing.T) {
	for _, tc := range []struct{ network, want string }{
		{`rules: [{allow: a.example}, {deny: a.example, methods: [PUT]}]`, ""},
		{`rules: [{allow: "*.example", methods: [GET]}, {allow: a.example}]`, ""},
		{`rules: [{allow: a.example, inspect: true}, {allow: "*.example"}]`, ""},
		{`rules: [{allow: "*.example"}, {allow: a.example, inspect: true}]`, `network.rules[1]: it adds nothing to network.rules[0], "*.example"`},
		{`rules: [{allow: a.example}, {allow: "*.example"}]`, `network.rules[0]: it adds nothing to network.rules[1]`},
		{`rules: [{allow: a.example, udp: true}, {allow: a.example}]`, ""},
		{`rules: [{allow: "*.internal", ports: [1]}, {allow: "host:1"}]`, ""},
		{`rules: [{deny: "*.internal"}, {allow: "host:1"}]`, "network.rules[1]: it never allows anything"},
		{`rules: [{allow: a.example, udp: true}, {deny: a.example}]`, "network.rules[0]: it never allows anything"},
		{`rules: [{allow: a.example, ports: [22]}, {deny: a.example}]`, "network.rules[0]: it never allows anything"},
		{`rules: [{allow: a.example}, {deny: a.example, ports: [443]}]`, ""},
		{`rules: [{allow: a.example}, {deny: b.example, ports: [443]}, {deny: b.example}]`, "network.rules[1]: it adds nothing to network.rules[2]"},
		{`{rules: [{allow: a.example}], groups: {code-hosts: [b.example]}}`, "network.groups.code-hosts: it takes the place of the group"},
		{`{rules: [{allow: a.example}], secrets: {A: {from: "env:B", hosts: [b.example]}}}`, "network.secrets.A: it is never used"},
		{`{rules: [{allow: "*.example"}], secrets: {A: {from: "env:B", hosts: [b.example]}}}`, ""},
		{`{rules: [{allow: b.example, ports: [80]}], secrets: {A: {from: "env:B", hosts: [b.example]}}}`, "network.secrets.A: it is never used"},
	} {
		network := strings.TrimSuffix(strings.TrimPrefix(tc.network, "{"), "}")
		if !strings.HasPrefix(tc.network, "{") {
			network = tc.network
		}
		f, err := Read("p", []byte("version: 1\nnetwork: {mode: list, "+network+"}\n"))
		if err != nil {
			t.Errorf("%s: %v", tc.network, err)
			continue
		}
		var all []string
		for _, n := range f.Notes {
			all = append(all, n.In("p"))
		}
		if (tc.want == "" && len(all) > 0) || (tc.want != "" && (len(all) != 1 || !strings.Contains(all[0], tc.want))) {
			t.Errorf("%s: notes %q; want %q", tc.network, all, tc.want)
		}
	}
}

// A registry is chosen by each machine's configuration, so that none is in a
// group that is allowed by one word.
func TestTheGroupsOfPaddockAreHostsAndNoRegistries(t *testing.T) {
	registry := regexp.MustCompile(`registr|pypi|python|npm|yarn|crates|cargo|rubygems|packag|maven|nuget|proxy|sum\.|docker|quay|ghcr|pkg|hex|index|mirror|^deb|ubuntu|alpine|^dl|download|cdn`)
	seen := map[string]bool{}
	for _, g := range groupTable() {
		if !isGroup(g.name) || len(g.hosts) == 0 || seen[g.name] {
			t.Errorf("the group %q, %d hosts", g.name, len(g.hosts))
		}
		seen[g.name] = true
		for _, h := range g.hosts {
			p, port, err := parseRuleHost(h)
			if _, one := p.Host(); err != nil || port != 0 || !one || p.String() != h || seen[h] {
				t.Errorf("%s: %q: %v", g.name, h, err)
			}
			seen[h] = true
			if registry.MatchString(h) {
				t.Errorf("%s: %q has the name of a registry", g.name, h)
			}
		}
	}
	if !slices.Equal(Groups(), []string{"model-providers", "code-hosts"}) || !seen["api.anthropic.com"] || !seen["api.openai.com"] || !seen["github.com"] {
		t.Errorf("%q", Groups())
	}
}

func TestRulesOfFlags(t *testing.T) {
	f, err := Read("p", []byte("version: 1\nnetwork: {groups: {mine: [a.example, \"b.example:8443\"]}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"A.example": "a.example []", "a.example:22": "a.example [22]", "*.a.example:8443": "*.a.example [8443]", "[::1]:80": "::1 [80]", "10.0.0.0/8:22": "10.0.0.0/8 [22]", "*": "* []",
		"group:mine": "a.example [], b.example [8443]", "host:5432": "host.docker.internal [5432]", "Host.docker.internal:80": "host.docker.internal [80]",
	} {
		for _, deny := range []bool{false, true} {
			rules, err := Rules(text, deny, f)
			var got []string
			for _, nr := range rules {
				got = append(got, fmt.Sprint(nr.Host, " ", nr.Ports))
				if nr.Deny != deny {
					t.Errorf("%s: %+v", text, nr)
				}
			}
			if err != nil || strings.Join(got, ", ") != want {
				t.Errorf("%s: %q, %v; want %s", text, got, err, want)
			}
		}
	}
	rules, err := Rules("group:code-hosts:22", false, nil)
	if err != nil || len(rules) < 5 || !slices.Equal(rules[0].Ports, []uint16{22}) {
		t.Errorf("%+v, %v", rules, err)
	}
	for _, text := range []string{"", "https://a.example", "a.example:0", "a b", "group:", "group:none", "group:code-hosts:x", "group:mine:22", "127.1", "host", "host.docker.internal"} {
		if rules, err := Rules(text, false, f); !errors.Is(err, paddock.Invalid) {
			t.Errorf("%s: %+v, %v", text, rules, err)
		}
	}
}

func TestAnswersAboutURLs(t *testing.T) {
	f, err := Read("p", []byte(`version: 1
network:
  mode: list
  rules:
    - allow: api.example.com
      paths: [/v1/**]
      methods: [GET]
    - allow: "*.example.org"
    - deny: "*.example.org"
      paths: [/admin/**]
    - allow: {group: mine}
    - allow: time.example.com:123
      udp: true
  groups:
    mine: [x.example.net, y.example.net]
  secrets:
    TOKEN: {from: "env:ABSENT", hosts: [api.example.com, y.example.net]}
`))
	if err != nil {
		t.Fatal(err)
	}
	o := caller
	o.WithoutSecrets = true
	var spec paddock.Spec
	if err := f.Apply(&spec, o); err != nil {
		t.Fatal(err)
	}
	flagged, err := Rules("flag.example", false, nil)
	if err != nil {
		t.Fatal(err)
	}
	denied, err := Rules("never.example", true, nil)
	if err != nil {
		t.Fatal(err)
	}
	spec.Policy.Network.Rules = append(spec.Policy.Network.Rules, append(flagged, denied...)...)
	for _, tc := range []struct {
		question  string
		method    string
		allowed   bool
		rule      string
		where     string
		inspected bool
		secrets   string
	}{
		{"https://api.example.com/v1/jobs", "", true, "network.rules[0] allows GET /v1/** of api.example.com", "p:5:7", true, "TOKEN"},
		{"https://api.example.com/v1/jobs", "POST", false, `no rule allows "POST" "/v1/jobs" of api.example.com:443`, "p:4:3", true, ""},
		{"https://api.example.com/v1/%2e%2e/x", "", false, "no rule allows", "p:4:3", true, ""},
		{"https://api.example.com/", "", false, "no rule allows", "p:4:3", true, ""},
		{"http://api.example.com/v1/x", "", true, "network.rules[0] allows", "p:5:7", true, ""},
		{"connect api.example.com", "", true, "network.rules[0] allows", "p:5:7", true, ""},
		{"https://a.example.org/x", "", true, "network.rules[1] allows *.example.org", "p:8:7", true, ""},
		{"https://a.example.org/x/..%2fadmin/y", "", false, "network.rules[2] denies /admin/** of *.example.org", "p:9:7", true, ""},
		{"https://x.example.net", "", true, "network.rules[3] allows x.example.net", "p:11:7", false, ""},
		{"https://y.example.net", "PUT", true, "network.rules[3] allows y.example.net", "p:11:7", true, "TOKEN"},
		{"udp://time.example.com:123", "", true, "network.rules[4] allows time.example.com", "p:12:7", false, ""},
		{"udp://x.example.net:443", "", false, "no rule allows x.example.net:443/udp", "p:4:3", false, ""},
		{"https://flag.example/", "", true, "--allow allows flag.example", "", false, ""},
		{"https://never.example/", "", false, "--deny denies never.example", "", false, ""},
	} {
		q, err := ParseQuestion(strings.Fields(tc.question), o)
		if err != nil {
			t.Errorf("%s: %v", tc.question, err)
			continue
		}
		q.Method = tc.method
		a, err := Explain(spec, f, o, q)
		if err != nil {
			t.Errorf("%s: %v", tc.question, err)
			continue
		}
		if a.Allowed != tc.allowed || !strings.HasPrefix(a.Rule, tc.rule) || a.Where != tc.where || a.Inspected != tc.inspected || strings.Join(a.Secrets, " ") != tc.secrets || a.Change == "" {
			t.Errorf("%s %s: %+v", tc.method, tc.question, a)
		}
	}
	if _, err := Explain(spec, f, o, Question{Verb: "connect", Object: "https://a.example/", Method: "A B"}); !errors.Is(err, paddock.Invalid) {
		t.Error(err)
	}
}

// What Explain says is what the gateway will do: both ask the same rules.
func TestExplainAgreesWithTheRules(t *testing.T) {
	n := paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{{Host: "*.example.com"}, {Deny: true, Host: "b.example.com"}, {Host: "10.0.0.0/8", Ports: []uint16{22}}}}
	rules, err := decide.Compile(n)
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"a.example.com", "A.EXAMPLE.com.:443", "b.example.com.", "example.com", "10.1.1.1:22", "[::ffff:10.1.1.1]:22", "10.1.1.1:23"} {
		h, port, err := decide.ParseDestination(to)
		if err != nil {
			t.Fatal(err)
		}
		a, err := Explain(paddock.Spec{Policy: paddock.Policy{Network: n}}, nil, caller, Question{Verb: "connect", Object: to})
		if want := rules.Flow(decide.Flow{Host: h, Port: port}).Allow; err != nil || a.Allowed != want {
			t.Errorf("%s: %+v, %v; want %v", to, a, err, want)
		}
	}
}
