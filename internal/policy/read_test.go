package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/paddock-sandbox/paddock"
)

const complete = `version: 1
tier: jail
root: host
user: 1000
workspace: .
mounts:
  - read: ~/data
    at: /data
  - write: /srv/out
environment:
  set: {LANG: C.UTF-8, EMPTY: ""}
  pass: [TERM, ABSENT]
limits:
  memory: 512m
  cpus: 1.5
  pids: 100
  disk: 2GiB
  files: 1024
  io: 50MB
  timeout: 1h30m
files:
  deny_read: [~/data/secret, "/srv/out/*.pem"]
  deny_write: [/srv/out/keep]
  protect: [deploy/key, .env/]
  unprotect: [.git/config]
network:
  mode: list
  rules:
    - allow: Example.COM.
    - allow: "*.example.org:8443"
    - allow: 10.0.0.0/8
      ports: [22, 443]
    - deny: bad.example.org
audit: [exec, connect]
allow_missing: [io-limit]
`

var caller = Host{
	Home: "/home/u", Dir: "/proj/p",
	Env: func(name string) (string, bool) {
		v, ok := map[string]string{"TERM": "xterm"}[name]
		return v, ok
	},
	Files: fstest.MapFS{
		"srv/out/a.pem": {}, "srv/out/b.pem": {}, "srv/out/c.txt": {}, "srv/out/sub/d.pem": {},
		"proj/p/src/x.go": {}, "proj/p/.env": {}, "proj/p/deep/er/.env": {}, "tmp": {Mode: os.ModeDir | 0o777},
	},
}

func TestACompleteFileBecomesASpec(t *testing.T) {
	f, err := Read("p.yaml", []byte(complete))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Notes) > 0 {
		t.Errorf("notes: %v", f.Notes)
	}
	var got paddock.Spec
	if err := f.Apply(&got, caller); err != nil {
		t.Fatal(err)
	}
	want := paddock.Spec{
		Tier: paddock.Jail, User: "1000", Dir: "/proj/p",
		Mounts: []paddock.Mount{{Source: "/proj/p", Write: true}, {Source: "/home/u/data", Target: "/data"}, {Source: "/srv/out", Write: true}},
		Env:    map[string]string{"LANG": "C.UTF-8", "EMPTY": "", "TERM": "xterm"},
		Limits: paddock.Limits{Memory: 512 << 20, CPUs: 1.5, PIDs: 100, Disk: 2 << 30, Files: 1024, IO: 50_000_000, Lifetime: 90 * time.Minute},
		Policy: paddock.Policy{
			Files: paddock.FilePolicy{
				DenyRead: []string{"/home/u/data/secret", "/srv/out/a.pem", "/srv/out/b.pem"}, DenyWrite: []string{"/srv/out/keep"},
				Protect: []string{"deploy/key", ".env"}, Unprotect: []string{".git/config"},
			},
			Network: paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{
				{Host: "example.com"}, {Host: "*.example.org", Ports: []uint16{8443}}, {Host: "10.0.0.0/8", Ports: []uint16{22, 443}}, {Deny: true, Host: "bad.example.org"},
			}},
			Audit: []paddock.AuditKind{paddock.AuditExec, paddock.AuditConnect},
		},
		AllowMissing: []paddock.Control{paddock.ControlIO},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if w := f.Where("limits.memory"); w != "p.yaml:14:3" {
		t.Errorf("limits.memory is at %s", w)
	}
	if w := f.Where("network.rules[2].ports"); w != "p.yaml:32:7" {
		t.Errorf("the ports are at %s", w)
	}
}

func TestTheEmptyPolicyIsTheZeroSpec(t *testing.T) {
	f, err := Read("p", []byte("version: 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got paddock.Spec
	if err := f.Apply(&got, Host{}); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, paddock.Spec{}) {
		t.Errorf("%+v", got)
	}
}

// bad is a document, and what its error says. schema tells that the JSON
// Schema refuses it too; the others say what no schema can.
var bad = []struct {
	doc    string
	want   string
	schema bool
}{
	{"", "empty document", false},
	{"# nothing\n", "empty document", false},
	{"tier: jail\n", `the key "version" is missing (needed here: version: 1)`, true},
	{"version: 2\n", "p:1:10: version: 2 is not allowed", true},
	{"version: one\n", `p:1:10: version: expected a whole number, found the text "one"`, true},
	{"version: 1.0\n", "expected a whole number", false},
	{"- version: 1\n", "expected a mapping, found a list", true},
	{"version: 1\nteir: jail\n", `p:2:1: unknown key "teir" (did you mean "tier"?)`, true},
	{"version: 1\nmemory: 1g\n", `did you mean "limits.memory"?`, true},
	{"version: 1\nfiles:\n  denyRead: [/x]\n", `p:3:3: files: unknown key "denyRead" (did you mean "deny_read"?)`, true},
	{"version: 1\nzzzzzz: 1\n", "allowed: version, tier, root", true},
	{"version: 1\ntier: jail\ntier: sim\n", `p:3:1: the key "tier" is given twice (first on line 2)`, false},
	{"version: 1\ntier: jial\n", `"jial" is not known (did you mean "jail"?)`, true},
	{"version: 1\ntier: docker\n", "allowed: auto, sim, jail, gvisor, microvm", true},
	{"version: 1\nroot: hots\n", `did you mean "host"?`, true},
	{"version: 1\nroot: image\n", `"image" is no root`, true},
	{"version: 1\nroot: /a/../b\n", `path with ".."`, false},
	{"version: 1\nuser: \"a b\"\n", `"a b" is no user`, true},
	{"version: 1\nuser: -1\n", "-1 is no user", false},
	{"version: 1\nuser: 0x0\n", "is no user", false},
	{"version: 1\nworkspace: src\n", "p:2:12: workspace: relative path", true},
	{"version: 1\nworkspace: ~other/x\n", "the home of another user", true},
	{"version: 1\nworkspace: \"/a\\0b\"\n", "path with a NUL byte", false},
	{"version: 1\nworkspace: \"/a\\nb\"\n", "path with a line break", false},
	{"version: 1\nworkspace: /" + strings.Repeat("a/", 2100) + "\n", "at most 4096 are allowed", false},
	{"version: 1\nworkspace: /" + strings.Repeat("a", 256) + "\n", "at most 255", false},
	{"version: 1\nmounts:\n  - read: /a\n    write: /a\n", "exactly one of the keys read, write is needed", true},
	{"version: 1\nmounts:\n  - at: /a\n", "p:3:5: mounts[0]: exactly one", true},
	{"version: 1\nmounts: [/a]\n", `expected a mapping, found the text "/a"`, true},
	{"version: 1\nmounts: {read: /a}\n", "expected a list, found a mapping", true},
	{"version: 1\nmounts:\n  - {read: /a, at: /x}\n  - {read: /b, at: /x/}\n", "mounts[1]: /x is the place of mounts[0] already", false},
	{"version: 1\nmounts: [{write: /a, at: /}]\n", `a mount at "/"`, false},
	{"version: 1\nmounts: [{write: /a/b}]\nfiles: {deny_write: [/a]}\n", "/a/b can never be written: files.deny_write denies /a", false},
	{"version: 1\nmounts: [{read: /a/b}]\nfiles: {deny_read: [/a]}\n", "/a/b can never be seen", false},
	{"version: 1\nworkspace: /w\nfiles: {deny_write: [/w]}\n", "denies the whole workspace", false},
	{"version: 1\nworkspace: /w\nmounts: [{read: /w}]\n", "is the workspace, which is writable", false},
	{"version: 1\nenvironment: {set: {A: 1}}\n", `expected text, found the number 1 (quote it: "1")`, true},
	{"version: 1\nenvironment: {set: {A-B: x}}\n", "letters, digits and _ are allowed", true},
	{"version: 1\nenvironment: {set: {A: \"a\\0b\"}}\n", "value with a NUL byte", false},
	{"version: 1\nenvironment: {pass: [\"*\"]}\n", "variables are passed one by one", true},
	{"version: 1\nenvironment: {pass: TERM}\n", "write [TERM]", true},
	{"version: 1\nenvironment: {pass: [A], set: {A: x}}\n", "A is set by environment.set too", false},
	{"version: 1\nlimits:\n", "expected a mapping, found nothing", true},
	{"version: 1\nlimits: {memory: 512}\n", `did you mean "512m"?`, false},
	{"version: 1\nlimits: {memory: 12 apples}\n", "not a size", true},
	{"version: 1\nlimits: {memory: -1}\n", "negative", true},
	{"version: 1\nlimits: {memory: \"0\"}\n", "zero is not a limit", false},
	{"version: 1\nlimits: {memory: 99999999999g}\n", "too large", false},
	{"version: 1\nlimits: {memory: 1.5}\n", "expected text or a whole number", true},
	{"version: 1\nlimits: {cpus: two}\n", "expected a number", true},
	{"version: 1\nlimits: {cpus: .inf}\n", "not allowed", false},
	{"version: 1\nlimits: {cpus: 0}\n", "not allowed", true},
	{"version: 1\nlimits: {pids: 0}\n", "allowed: a whole number from 1", true},
	{"version: 1\nlimits: {pids: 1e3}\n", "expected a whole number", false},
	{"version: 1\nlimits: {timeout: 10}\n", "expected text, found the number 10", true},
	{"version: 1\nlimits: {timeout: 10 minutes}\n", "not a duration", true},
	{"version: 1\nlimits: {timeout: 0s}\n", "zero is not a timeout", false},
	{"version: 1\nfiles: {deny_read: [.env]}\n", "files.deny_read[0]: relative path", true},
	{"version: 1\nfiles: {deny_read: [\"/**/.env\"]}\n", "a glob begins with a directory", false},
	{"version: 1\nfiles: {deny_read: [\"/a/b**\"]}\n", `"**" stands alone`, false},
	{"version: 1\nfiles: {deny_read: [\"/a/[b\"]}\n", "without its", false},
	{"version: 1\nfiles: {protect: [/etc]}\n", "it is a path from the top", false},
	{"version: 1\nfiles: {unprotect: [.git/hook]}\n", `did you mean ".git/hooks"?`, false},
	{"version: 1\nfiles: {protect: [.envrc], unprotect: [.envrc]}\n", "is protected by files.protect too", false},
	{"version: 1\nnetwork: {mode: off}\n", `"off" is not known`, true},
	{"version: 1\nnetwork: {rules: [{allow: a.example}]}\n", `write "mode: list"`, false},
	{"version: 1\nnetwork: {mode: host, rules: [{allow: a.example}]}\n", "which has no control at all", false},
	{"version: 1\nnetwork: {mode: list, rules: [a.example]}\n", "expected a mapping", true},
	{"version: 1\nnetwork: {mode: list, rules: [{allow: \"https://a.example\"}]}\n", "a host, not a URL", false},
	{"version: 1\nnetwork: {mode: list, rules: [{allow: \"a.example:443\", ports: [80]}]}\n", "the host has a port already", false},
	{"version: 1\nnetwork: {mode: list, rules: [{allow: a.example, ports: [0]}]}\n", "from 1 to 65535", true},
	{"version: 1\nnetwork: {mode: list, rules: [{allow: a.example, ports: []}]}\n", "an empty list", false},
	{"version: 1\nnetwork: {mode: list, rules: [{allow: 10.0.0.1/8}]}\n", "10.0.0.0/8 was meant", false},
	{"version: 1\nnetwork: {mode: list, rules: [{allow: \"exam\\0ple.com\"}]}\n", "is not allowed in one", false},
	{"version: 1\naudit: [execve]\n", `did you mean "exec"?`, true},
	{"version: 1\naudit: [lost]\n", `"lost" is not known`, true},
	{"version: 1\naudit: exec\n", "expected a list", true},
	{"version: 1\nallow_missing: [io]\n", "is not known", true},
	{"version: 1\nallow_missing: [secomp]\n", `did you mean "seccomp"?`, true},
	{"version: 1\n---\nversion: 1\n", "a second document", false},
	{"a: &x 1\nb: *x\n", "an anchor", false},
	{"version: 1\nlimits: &l {pids: 1}\n", "anchors are not allowed", false},
	{"version: 1\n<<: {tier: sim}\n", "merging is not allowed", false},
	{"version: !!int 1\n", "tags are not allowed", false},
	{"version: 1\ntier: !x jail\n", "tags are not allowed", false},
	{"version: 1\ntier: [\n", "not YAML", false},
	{"version: 1\n\ttier: x\n", "not YAML", false},
	{"version: 1\n# \xff\n", "p:2:3: a byte that is not UTF-8", false},
	{"version: 1\n? [a]\n: b\n", "expected a key, found a list", false},
	{strings.Repeat("[", 100) + strings.Repeat("]", 100), "nested deeper than 32 levels", false},
	{"version: 1\n" + strings.Repeat("#", MaxDocument), "at most 1048576 are allowed", false},
	{"version: 1\nenvironment: {pass: [" + strings.Repeat("A,", 1001) + "]}", "at most 1000 are allowed", false},
}

func TestWhatIsWrongIsToldWithItsPlace(t *testing.T) {
	for _, tc := range bad {
		f, err := Read("p", []byte(tc.doc))
		if err == nil {
			t.Errorf("%q was accepted: %+v", clip(tc.doc), f)
			continue
		}
		if !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q:\n got %v\nwant %s", clip(tc.doc), err, tc.want)
		}
		var e *Error
		if !errors.As(err, &e) || !errors.Is(err, paddock.Invalid) {
			t.Errorf("%q: %T is no *Error of kind invalid", clip(tc.doc), err)
		}
	}
}

func TestAllProblemsAreToldInOrderUpToABound(t *testing.T) {
	_, err := Read("p", []byte("version: 1\ntier: x\nroot: y\nlimits: {memory: z, pids: 0}\n"))
	var e *Error
	if !errors.As(err, &e) || len(e.Problems) != 4 {
		t.Fatalf("%v", err)
	}
	for i, line := range []int{2, 3, 4, 4} {
		if e.Problems[i].Line != line {
			t.Errorf("problem %d is on line %d", i, e.Problems[i].Line)
		}
	}
	doc := "version: 1\n"
	for i := range 50 {
		doc += fmt.Sprintf("unknown%d: x\n", i)
	}
	_, err = Read("p", []byte(doc))
	if !errors.As(err, &e) || len(e.Problems) != MaxProblems || e.More != 30 || !strings.Contains(err.Error(), "and 30 more problems") {
		t.Errorf("%v", err)
	}
}

func TestWhatIsProbablyNotMeantIsNoted(t *testing.T) {
	for _, tc := range []struct{ doc, want string }{
		{"network: {mode: list}", "p:2:11: network.mode: no rules: nothing can be reached"},
		{`network: {mode: list, rules: [{allow: a.example}, {deny: "*"}]}`, "it never allows anything: the deny of \"*\" wins"},
		{`network: {mode: list, rules: [{allow: a.b.example, ports: [22]}, {deny: "*.example", ports: [22]}]}`, "it never allows anything"},
		{`network: {mode: list, rules: [{allow: "*"}]}`, "everything is allowed"},
		{`network: {mode: list, rules: [{allow: 0.0.0.0/0}]}`, "every address is allowed"},
		{`network: {mode: list, rules: [{allow: "*.example"}, {allow: a.example}]}`, "it adds nothing to network.rules[0]"},
		{`network: {mode: list, rules: [{allow: a.example}, {allow: A.example}]}`, "network.rules[1]: it adds nothing"},
		{"files: {deny_read: [/a, /a]}", "is listed twice"},
		{"audit: [exec, open, exec]", `p:2:21: audit[2]: "exec" is listed twice`},
		{"files: {deny_read: [/a], deny_write: [/a/b]}", "/a/b has no effect"},
	} {
		f, err := Read("p", []byte("version: 1\n"+tc.doc+"\n"))
		if err != nil {
			t.Errorf("%s: %v", tc.doc, err)
			continue
		}
		var all []string
		for _, n := range f.Notes {
			all = append(all, n.In("p"))
		}
		if len(all) != 1 || !strings.Contains(all[0], tc.want) {
			t.Errorf("%s: notes %q; want %q", tc.doc, all, tc.want)
		}
	}
}

func TestApplyJudgesWhatOnlyItKnows(t *testing.T) {
	for _, tc := range []struct {
		doc  string
		host Host
		want string
	}{
		{"workspace: ~/x", Host{}, "the caller's home is not known"},
		{"workspace: .", Host{}, "the caller's directory is not known"},
		{"mounts: [{write: ~/a}]\nfiles: {deny_write: [/home/u]}", caller, "can never be written"},
		{"files: {deny_read: [\"/srv/out/*.key\"]}", caller, "p:2:21: files.deny_read[0]: the glob /srv/out/*.key matches nothing now"},
		{"files: {deny_read: [\"/srv/out/*.pem\"]}", Host{}, "cannot be looked at"},
		{"files: {deny_read: [~/x]}", Host{Home: "/home/[x]"}, "read as a glob"},
		{"workspace: .", Host{Dir: "/"}, `the workspace is "/"`},
	} {
		f, err := Read("p", []byte("version: 1\n"+tc.doc+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		spec := paddock.Spec{Hostname: "h"}
		err = f.Apply(&spec, tc.host)
		if err == nil || !strings.Contains(err.Error(), tc.want) || !errors.Is(err, paddock.Invalid) {
			t.Errorf("%s: %v; want %s", tc.doc, err, tc.want)
		}
		if !reflect.DeepEqual(spec, paddock.Spec{Hostname: "h"}) {
			t.Errorf("%s: the spec was changed: %+v", tc.doc, spec)
		}
	}
}

func TestWhatATierCannotEnforceIsAProblemWithItsLine(t *testing.T) {
	f, err := Read("p", []byte(complete))
	if err != nil {
		t.Fatal(err)
	}
	jail := paddock.Info{Tier: paddock.Jail, Capabilities: []paddock.Capability{paddock.CanRootHost, paddock.CanMount}}
	for _, c := range []paddock.Control{paddock.ControlMemory, paddock.ControlCPU, paddock.ControlPIDs, paddock.ControlFiles, paddock.ControlProtected} {
		jail.Controls = append(jail.Controls, paddock.Finding{Control: c, Strength: paddock.Full})
	}
	jail.Controls = append(jail.Controls,
		paddock.Finding{Control: paddock.ControlIO, Strength: paddock.Absent},
		paddock.Finding{Control: paddock.ControlDisk, Strength: paddock.Absent, Cause: "no quota", Remedy: "mount with prjquota"})
	err = Refuse(f.Name, Check(f, jail))
	if !errors.Is(err, paddock.Unsupported) {
		t.Fatalf("%v", err)
	}
	// io-limit is missing too, and accepted by allow_missing.
	want := "p:17:3: limits.disk: the tier jail cannot enforce a limit of the disk on this host (disk-limit): no quota (mount with prjquota)\n" +
		"p:27:3: network.mode: the tier jail cannot do the network mode list on this host (network-list) (see paddock doctor)\n" +
		"p:34:1: audit: the tier jail cannot do the recording of events on this host (audit) (see paddock doctor)"
	if err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if err := Refuse("p", nil); err != nil {
		t.Errorf("no problems gave %v", err)
	}
	sim := paddock.Info{Tier: paddock.Sim}
	if n := len(Check(f, sim)); n < 10 {
		t.Errorf("a tier without anything has %d problems", n)
	}
}

var update = flag.Bool("update", false, "write docs/reference/policy.schema.json")

const schemaFile = "../../docs/reference/policy.schema.json"

func TestTheSchemaInTheTreeIsThatOfTheCode(t *testing.T) {
	if *update {
		if err := os.WriteFile(schemaFile, Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, Schema()) {
		t.Errorf("%s is not what Schema gives; run this test with -update", schemaFile)
	}
}

// validator gives the schema's verdict on a YAML document.
func validator(t *testing.T) func(doc string) error {
	t.Helper()
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("policy.json", schema); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("policy.json")
	if err != nil {
		t.Fatal(err)
	}
	return func(doc string) error {
		t.Helper()
		var v any
		if err := yaml.Unmarshal([]byte(doc), &v); err != nil {
			return err
		}
		data, err := json.Marshal(v)
		if err != nil {
			return err
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			return err
		}
		return compiled.Validate(value)
	}
}

func TestTheSchemaAgreesWithRead(t *testing.T) {
	validate := validator(t)
	for _, doc := range []string{complete, "version: 1\n", "version: 1\ntier: auto\nroot: ~/fs\nuser: user\nlimits: {memory: 1073741824, disk: 1.5g}\n", "version: 1\nroot: open\nnetwork: {mode: host}\n"} {
		if _, err := Read("p", []byte(doc)); err != nil {
			t.Errorf("Read: %v", err)
		}
		if err := validate(doc); err != nil {
			t.Errorf("the schema refuses what Read accepts: %v\n%s", err, doc)
		}
	}
	for _, tc := range bad {
		if tc.schema && validate(tc.doc) == nil {
			t.Errorf("the schema accepts %q", clip(tc.doc))
		}
	}
}
