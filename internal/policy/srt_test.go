package policy

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// What becomes of a key.
const (
	honoured = "honoured"
	note     = "note"
	refused  = "refused"
	invalid  = "invalid"
)

// srtRow is a key of sandbox-runtime 0.0.83, a value that asks for something,
// and what becomes of it.
type srtRow struct {
	key   string // as the schema has it, with [] for items
	value string // JSON of the outermost key that is not required
	fate  string
	check func(paddock.Spec) bool // of what is honoured
}

// srtRows is every key of the schema of version 0.0.83, in its order. They
// were listed by walking that schema.
var srtRows = []srtRow{
	{"network", `{}`, invalid, nil}, // allowedDomains and deniedDomains are required
	{"network.allowedDomains", `["github.com:443", "*.example.com:8443"]`, honoured, func(s paddock.Spec) bool {
		return reflect.DeepEqual(s.Policy.Network, paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{{Host: "github.com", Ports: []uint16{443}}, {Host: "*.example.com", Ports: []uint16{8443}}}})
	}},
	{"network.deniedDomains", `["*"]`, honoured, noWayOut},
	{"network.deniedDomainReasons", `{"a.com": "because"}`, note, nil},
	{"network.strictAllowlist", `true`, honoured, noWayOut},
	{"network.deniedResolvedAddresses", `["10.0.0.0/8"]`, honoured, noWayOut},
	{"network.allowUnixSockets", `["/var/run/docker.sock"]`, note, nil},
	{"network.allowAllUnixSockets", `true`, refused, nil},
	{"network.allowLocalBinding", `true`, note, nil},
	{"network.allowMachLookup", `["com.example.*"]`, note, nil},
	{"network.httpProxyPort", `8080`, refused, nil},
	{"network.socksProxyPort", `1080`, refused, nil},
	{"network.mitmProxy", `{"socketPath": "/s", "domains": ["a.com"]}`, refused, nil},
	{"network.mitmProxy.socketPath", `{"socketPath": "/s", "domains": ["a.com"]}`, refused, nil},
	{"network.mitmProxy.domains", `{"socketPath": "/s", "domains": ["a.com"]}`, refused, nil},
	{"network.filterRequest", `"function"`, invalid, nil},
	{"network.allowPlaintextHeaderSet", `true`, note, nil},
	{"network.stripResponseHeaders", `["set-cookie"]`, note, nil},
	{"network.refuseOpaqueTunnels", `true`, note, nil},
	{"network.requireHostMatch", `true`, note, nil},
	{"network.ambiguousRequestTarget", `"asSpelled"`, note, nil},
	{"network.tlsTerminate", `{}`, refused, nil},
	{"network.tlsTerminate.caCertPath", `{"caCertPath": "/c", "caKeyPath": "/k"}`, refused, nil},
	{"network.tlsTerminate.caKeyPath", `{"caCertPath": "/c", "caKeyPath": "/k"}`, refused, nil},
	{"network.tlsTerminate.excludeDomains", `{"excludeDomains": ["a.com"]}`, refused, nil},
	{"network.tlsTerminate.extraCaCertPaths", `{"extraCaCertPaths": ["/c"]}`, refused, nil},
	{"network.tlsTerminate.maxTunnels", `{"maxTunnels": 5}`, refused, nil},
	{"network.tlsTerminate.handshakeTimeoutMs", `{"handshakeTimeoutMs": 500}`, refused, nil},
	{"network.parentProxy", `{}`, refused, nil},
	{"network.parentProxy.http", `{"http": "http://p:1"}`, refused, nil},
	{"network.parentProxy.https", `{"https": "http://p:1"}`, refused, nil},
	{"network.parentProxy.noProxy", `{"noProxy": "a.com"}`, refused, nil},
	{"filesystem", `{}`, invalid, nil},
	{"filesystem.disabled", `true`, refused, nil},
	{"filesystem.denyRead", `["~/.ssh", "secret", "/srv/out/*.pem"]`, honoured, func(s paddock.Spec) bool {
		return slices.Equal(s.Policy.Files.DenyRead, []string{"/home/u/.ssh", "/proj/p/secret", "/srv/out/a.pem", "/srv/out/b.pem"})
	}},
	{"filesystem.denyRead[].path", `[{"path": "/a*b", "literal": true}]`, honoured, func(s paddock.Spec) bool { return slices.Equal(s.Policy.Files.DenyRead, []string{"/a*b"}) }},
	{"filesystem.denyRead[].literal", `[{"path": "/a", "literal": false}]`, invalid, nil},
	{"filesystem.allowRead", `["/srv"]`, note, nil},
	{"filesystem.allowRead[].path", `[{"path": "/srv", "literal": true}]`, note, nil},
	{"filesystem.allowRead[].literal", `[{"path": "/srv", "literal": 1}]`, invalid, nil},
	{"filesystem.allowWrite", `[".", "src/", "/tmp/**"]`, honoured, func(s paddock.Spec) bool {
		return reflect.DeepEqual(s.Mounts, []paddock.Mount{{Source: "/proj/p", Write: true}, {Source: "/proj/p/src", Write: true}, {Source: "/tmp", Write: true}})
	}},
	{"filesystem.allowWrite[].path", `[{"path": "src", "literal": true}]`, honoured, func(s paddock.Spec) bool { return s.Mounts[0].Source == "/proj/p/src" }},
	{"filesystem.allowWrite[].literal", `[{"path": "src"}]`, invalid, nil},
	{"filesystem.denyWrite", `[".env"]`, honoured, func(s paddock.Spec) bool { return slices.Equal(s.Policy.Files.DenyWrite, []string{"/proj/p/.env"}) }},
	{"filesystem.denyWrite[].path", `[{"path": "[x]", "literal": true}]`, honoured, func(s paddock.Spec) bool { return slices.Equal(s.Policy.Files.DenyWrite, []string{"/proj/p/[x]"}) }},
	{"filesystem.denyWrite[].literal", `[{"literal": true}]`, invalid, nil},
	{"filesystem.allowGitConfig", `true`, honoured, func(s paddock.Spec) bool { return slices.Equal(s.Policy.Files.Unprotect, []string{".git/config"}) }},
	{"credentials", `{}`, honoured, noWayOut},
	{"credentials.files", `[]`, honoured, noWayOut},
	{"credentials.files[].path", `[{"path": "~/.netrc", "mode": "deny"}]`, honoured, func(s paddock.Spec) bool { return slices.Equal(s.Policy.Files.DenyRead, []string{"/home/u/.netrc"}) }},
	{"credentials.files[].mode", `[{"path": "~/.netrc", "mode": "mask"}]`, refused, nil},
	{"credentials.files[].extract", `[{"path": "/a", "mode": "deny", "extract": "(x)"}]`, note, nil},
	{"credentials.files[].onExtractNoMatch", `[{"path": "/a", "mode": "deny", "onExtractNoMatch": "deny"}]`, note, nil},
	{"credentials.files[].decode", `[{"path": "/a", "mode": "deny", "decode": "jwt"}]`, note, nil},
	{"credentials.files[].maskClaims", `[{"path": "/a", "mode": "deny", "maskClaims": ["x"]}]`, note, nil},
	{"credentials.files[].maskDuplicates", `[{"path": "/a", "mode": "deny", "maskDuplicates": true}]`, note, nil},
	{"credentials.files[].injectHosts", `[{"path": "/a", "mode": "deny", "injectHosts": ["a.com"]}]`, note, nil},
	{"credentials.envVars", `[]`, honoured, noWayOut},
	{"credentials.envVars[].name", `[{"name": "TERM", "mode": "deny"}]`, honoured, func(s paddock.Spec) bool { return len(s.Env) == 0 }},
	{"credentials.envVars[].mode", `[{"name": "TERM", "mode": "mask"}]`, refused, nil},
	{"credentials.envVars[].extract", `[{"name": "A", "mode": "deny", "extract": "(x)"}]`, note, nil},
	{"credentials.envVars[].onExtractNoMatch", `[{"name": "A", "mode": "deny", "onExtractNoMatch": "deny"}]`, note, nil},
	{"credentials.envVars[].decode", `[{"name": "A", "mode": "deny", "decode": "jwt"}]`, note, nil},
	{"credentials.envVars[].maskClaims", `[{"name": "A", "mode": "deny", "maskClaims": ["x"]}]`, note, nil},
	{"credentials.envVars[].injectHosts", `[{"name": "A", "mode": "deny", "injectHosts": ["a.com"]}]`, note, nil},
	{"credentials.allowPlaintextInject", `true`, refused, nil},
	{"credentials.awsPairs", `[{"accessKeyIdVar": "A", "secretAccessKeyVar": "B"}]`, refused, nil},
	{"credentials.awsPairs[].accessKeyIdVar", `[{"accessKeyIdVar": "A", "secretAccessKeyVar": "B"}]`, refused, nil},
	{"credentials.awsPairs[].secretAccessKeyVar", `[{"accessKeyIdVar": "A", "secretAccessKeyVar": "B"}]`, refused, nil},
	{"credentials.awsPairs[].sessionTokenVar", `[{"accessKeyIdVar": "A", "secretAccessKeyVar": "B", "sessionTokenVar": "C"}]`, refused, nil},
	{"credentials.sigv4", `{"streaming": "deny"}`, refused, nil},
	{"credentials.sigv4.streaming", `{"streaming": "deny"}`, refused, nil},
	{"credentials.sigv4.presigned", `{"presigned": "deny"}`, refused, nil},
	{"credentials.sigv4.sigv4a", `{"sigv4a": "passthrough"}`, refused, nil},
	{"ignoreViolations", `{"*": ["/usr/bin"]}`, note, nil},
	{"enableWeakerNestedSandbox", `true`, refused, nil},
	{"allowNestedUserNamespaces", `true`, refused, nil},
	{"enableWeakerNetworkIsolation", `true`, note, nil},
	{"allowAppleEvents", `true`, note, nil},
	{"ripgrep", `{"command": "rg"}`, note, nil},
	{"ripgrep.command", `{"command": "rg"}`, note, nil},
	{"ripgrep.args", `{"command": "rg", "args": ["-x"]}`, note, nil},
	{"ripgrep.argv0", `{"command": "rg", "argv0": "x"}`, note, nil},
	{"mandatoryDenySearchDepth", `5`, note, nil},
	{"allowPty", `true`, note, nil},
	{"seccomp", `{}`, note, nil},
	{"seccomp.applyPath", `{"applyPath": "/x"}`, note, nil},
	{"seccomp.argv0", `{"argv0": "x"}`, note, nil},
	{"bwrapPath", `"/x"`, note, nil},
	{"socatPath", `"/x"`, note, nil},
	{"javaAgentJarPath", `"/x"`, note, nil},
	{"windows", `{}`, note, nil},
	{"windows.backend", `{"backend": "mxc"}`, note, nil},
	{"windows.sandboxUser", `{"sandboxUser": "x"}`, note, nil},
	{"windows.sublayerGuid", `{"sublayerGuid": "x"}`, note, nil},
	{"windows.wfpSublayerGuid", `{"wfpSublayerGuid": "x"}`, note, nil},
	{"windows.proxyPortRange", `{"proxyPortRange": [1, 2]}`, note, nil},
	{"windows.srtWin", `{"srtWin": {"path": "x"}}`, note, nil},
	{"windows.srtWin.path", `{"srtWin": {"path": "x"}}`, note, nil},
	{"git", `{}`, honoured, noWayOut},
	{"git.safeDirectories", `["/repo", "sub"]`, honoured, func(s paddock.Spec) bool {
		return reflect.DeepEqual(s.Env, map[string]string{"GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "/repo", "GIT_CONFIG_KEY_1": "safe.directory", "GIT_CONFIG_VALUE_1": "/proj/p/sub"})
	}},
}

func noWayOut(s paddock.Spec) bool {
	return reflect.DeepEqual(s.Policy.Network, paddock.NetworkPolicy{})
}

// place gives the key that the row's value belongs to: of a section's first
// level, or the section itself.
func (row srtRow) place() []string {
	parts := strings.Split(strings.ReplaceAll(row.key, "[]", ""), ".")
	switch parts[0] {
	case "network", "filesystem", "credentials", "git":
		return parts[:min(2, len(parts))]
	}
	return parts[:1]
}

// doc gives a document that is valid but for the row's value.
func (row srtRow) doc() string {
	doc := map[string]map[string]any{
		"network":    {"allowedDomains": []string{}, "deniedDomains": []string{}},
		"filesystem": {"denyRead": []string{}, "allowWrite": []string{}, "denyWrite": []string{}},
	}
	top := map[string]any{"network": doc["network"], "filesystem": doc["filesystem"]}
	switch p := row.place(); {
	case len(p) == 1:
		top[p[0]] = json.RawMessage(row.value)
	case doc[p[0]] != nil:
		doc[p[0]][p[1]] = json.RawMessage(row.value)
	default:
		top[p[0]] = map[string]any{p[1]: json.RawMessage(row.value)}
	}
	data, err := json.Marshal(top)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func TestNoKeyOfSandboxRuntimeIsSilentlyIgnored(t *testing.T) {
	for _, row := range srtRows {
		t.Run(row.key, func(t *testing.T) {
			key := strings.Join(row.place(), ".")
			f, err := ReadSRT("s", []byte(row.doc()), caller)
			var e *Error
			switch row.fate {
			case refused, invalid:
				kind := paddock.Unsupported
				if row.fate == invalid {
					kind = paddock.Invalid
				}
				if !errors.As(err, &e) || !errors.Is(err, kind) {
					t.Fatalf("%s\n%v, %+v", row.doc(), err, f)
				}
				for _, p := range e.Problems {
					if !strings.HasPrefix(p.Key, key) || p.Line == 0 {
						t.Errorf("a problem elsewhere: %s", p.In("s"))
					}
					if row.fate == refused && p.Hint == "" {
						t.Errorf("refused without saying what to use instead: %s", p.In("s"))
					}
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\n%v", row.doc(), err)
			}
			told := slices.ContainsFunc(f.Notes, func(p Problem) bool { return strings.HasPrefix(p.Key, key) })
			if told != (row.fate == note) {
				t.Errorf("notes: %+v", f.Notes)
			}
			var spec paddock.Spec
			if err := f.Apply(&spec, caller); err != nil {
				t.Fatal(err)
			}
			if spec.Root.Kind != paddock.RootOpen || spec.Dir != "/proj/p" || (key != "network.allowedDomains" && !noWayOut(spec)) {
				t.Errorf("%+v", spec)
			}
			if row.check != nil && !row.check(spec) {
				t.Errorf("it is not honoured: %+v", spec)
			}
		})
	}
}

// The shapes know no key that the list above does not have, and the other way
// round.
func TestTheListOfKeysIsThatOfTheCode(t *testing.T) {
	var have []string
	var walk func(sh *shape, key string)
	walk = func(sh *shape, key string) {
		if sh == nil || sh.kind == mapping {
			return
		}
		for _, f := range sh.fields {
			have = append(have, below(key, f.name))
			walk(f.shape, below(key, f.name))
		}
		if sh.kind == list {
			key += "[]"
		}
		walk(sh.elem, key)
	}
	walk((&srt{}).shape(), "")
	var want []string
	for _, row := range srtRows {
		want = append(want, row.key)
	}
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("have %q\nwant %q", have, want)
	}
}

func TestWhatAsksForNothingIsAccepted(t *testing.T) {
	doc := `{
  "network": {"allowedDomains": [], "deniedDomains": ["malicious.com"], "allowAllUnixSockets": false},
  "filesystem": {"disabled": false, "denyRead": ["~/.ssh"], "allowRead": [], "allowWrite": [".", "missing/", "src"], "denyWrite": [".env", "src"]},
  "enableWeakerNestedSandbox": false, "allowNestedUserNamespaces": false
}`
	f, err := ReadSRT("s", []byte(doc), caller)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, n := range f.Notes {
		told = append(told, n.In("s"))
	}
	want := []string{
		"s:3:98: filesystem.allowWrite[1]: /proj/p/missing does not exist, and is not made writable (make it before the run)",
		"s:3:110: filesystem.allowWrite[2]: /proj/p/src stays read-only (denyWrite /proj/p/src wins over it)",
	}
	if !slices.Equal(told, want) {
		t.Errorf("told %q", told)
	}
	var spec paddock.Spec
	if err := f.Apply(&spec, caller); err != nil {
		t.Fatal(err)
	}
	if len(spec.Mounts) != 1 || spec.Mounts[0] != (paddock.Mount{Source: "/proj/p", Write: true}) {
		t.Errorf("%+v", spec.Mounts)
	}
	a, err := Explain(spec, f, caller, Question{Verb: "read", Object: "/home/u/.ssh/id"})
	if err != nil || a.Allowed || a.Where != "s:3:50" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestAllowedDomainsOfSandboxRuntimeAreRules(t *testing.T) {
	doc := `{
  "network": {"allowedDomains": ["Example.com", "*.example.org:8443"], "deniedDomains": ["bad.example.org"], "deniedResolvedAddresses": ["203.0.113.0/24"],
    "strictAllowlist": true, "refuseOpaqueTunnels": false, "stripResponseHeaders": []},
  "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []}
}`
	f, err := ReadSRT("s", []byte(doc), caller)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Notes) != 1 || f.Notes[0].Line != 2 || !strings.Contains(f.Notes[0].Text, "at 443 and 80") {
		t.Errorf("%+v", f.Notes)
	}
	var spec paddock.Spec
	if err := f.Apply(&spec, caller); err != nil {
		t.Fatal(err)
	}
	want := paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{
		{Host: "example.com"}, {Host: "*.example.org", Ports: []uint16{8443}}, {Deny: true, Host: "bad.example.org"}, {Deny: true, Host: "203.0.113.0/24"},
	}}
	if !reflect.DeepEqual(spec.Policy.Network, want) {
		t.Errorf("%+v", spec.Policy.Network)
	}
	a, err := Explain(spec, f, caller, Question{Verb: "connect", Object: "bad.example.org:8443"})
	if err != nil || a.Allowed || a.Where != "s:2:90" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestSettingsThatCannotBeHad(t *testing.T) {
	with := func(filesystem string) string {
		return `{"network": {"allowedDomains": [], "deniedDomains": []}, "filesystem": ` + filesystem + `}`
	}
	for _, tc := range []struct {
		doc  string
		kind paddock.Kind
		want string
	}{
		{strings.Replace(with(`{"denyRead": [], "allowWrite": [], "denyWrite": []}`), `"allowedDomains": []`, `"refuseOpaqueTunnels": true, "allowedDomains": ["a.example"]`, 1), paddock.Unsupported, "s:1:37: network.refuseOpaqueTunnels: what is neither TLS nor HTTP passes"},
		{strings.Replace(with(`{"denyRead": [], "allowWrite": [], "denyWrite": []}`), `"allowedDomains": []`, `"allowedDomains": ["a b"]`, 1), paddock.Invalid, "network.allowedDomains[0]"},
		{with(`{"denyRead": ["/proj"], "allowRead": ["."], "allowWrite": [], "denyWrite": []}`), paddock.Unsupported, "lies in the denyRead /proj"},
		{with(`{"denyRead": ["/proj"], "allowWrite": ["."], "denyWrite": []}`), paddock.Unsupported, "filesystem.allowWrite[0]: /proj/p lies in the denyRead /proj"},
		{with(`{"denyRead": [], "allowWrite": ["src/*.go"], "denyWrite": []}`), paddock.Unsupported, "sandbox-runtime skips it on Linux"},
		{with(`{"denyRead": [], "allowWrite": [], "denyWrite": ["**/x"]}`), paddock.Unsupported, "skips it"},
		{with(`{"denyRead": ["/**/*.pem"], "allowWrite": [], "denyWrite": []}`), paddock.Unsupported, "begins with a directory"},
		{with(`{"denyRead": ["app/[id]/x"], "allowWrite": [], "denyWrite": []}`), paddock.Unsupported, `"literal": true`},
		{with(`{"denyRead": [""], "allowWrite": [], "denyWrite": []}`), paddock.Invalid, "empty path"},
		{with(`{"denyRead": ["a\u0000b"], "allowWrite": [], "denyWrite": []}`), paddock.Invalid, "NUL"},
		{with(`{"denyRead": ["a\ud800b"], "allowWrite": [], "denyWrite": []}`), paddock.Invalid, "not UTF-8"},
		{with(`{"denyRead": "x", "allowWrite": [], "denyWrite": []}`), paddock.Invalid, "expected a list"},
		{with(`{"allowWrite": [], "denyWrite": []}`), paddock.Invalid, `the key "denyRead" is missing`},
		{with(`{"denyRead": [], "denyRead": [], "allowWrite": [], "denyWrite": []}`), paddock.Invalid, "given twice"},
		{with(`{"denyRead": [], "denyraed": [], "allowWrite": [], "denyWrite": []}`), paddock.Invalid, `did you mean "denyRead"?`},
		{`{}`, paddock.Invalid, `the key "network" is missing`},
		{``, paddock.Invalid, "it ends too early"},
		{`{"network": `, paddock.Invalid, "it ends too early"},
		{"{\n  \"network\": x}", paddock.Invalid, "s:2:14: not JSON"},
		{`{} {}`, paddock.Invalid, "more than one value"},
		{`[]`, paddock.Invalid, "expected a mapping, found a list"},
		{strings.Repeat("[", 10000), paddock.Invalid, "nested deeper"},
	} {
		_, err := ReadSRT("s", []byte(tc.doc), caller)
		if err == nil || !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s:\n got %v\nwant %s", clip(tc.doc), err, tc.want)
		}
	}
}
