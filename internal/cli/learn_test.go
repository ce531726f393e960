package cli

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/cli/fake"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/policy"
)

// reaching is a tier whose gateway tells of these flows.
func reaching(t *testing.T, f *fake.Fake, flows ...audit.Flow) Tier {
	t.Helper()
	f.About = fake.GoodInfo()
	row := AsTier(f, paddock.Jail)
	row.Open = func(g Gear) (paddock.Driver, error) {
		for _, flow := range flows {
			g.Audit.Record(audit.Event{Kind: audit.Network, Network: &flow})
		}
		for host, want := range map[string]gatewayclient.Answer{"example.com": gatewayclient.AnswerOnce, "192.168.1.1": gatewayclient.AnswerDeny, "127.0.0.1": gatewayclient.AnswerDeny, "::1": gatewayclient.AnswerDeny} {
			if got := g.Ask(t.Context(), gatewayclient.Question{Host: host, Port: 22}); got != want {
				t.Errorf("asked for %s: %q, want %q", host, got, want)
			}
		}
		return f, nil
	}
	return row
}

func TestWhatACommandReachedBecomesAPolicy(t *testing.T) {
	f := &fake.Fake{}
	dir := t.TempDir()
	row := reaching(t, f,
		audit.Flow{Protocol: "tcp", Host: "b.example.com", Port: 443, Verdict: "allow"},
		audit.Flow{Protocol: "http", Host: "a.example.com", Port: 80, Verdict: "allow"},
		audit.Flow{Protocol: "tcp", Host: "a.example.com", Port: 443, Verdict: "allow"},
		audit.Flow{Protocol: "udp", Host: "time.example.org", Port: 123, Verdict: "allow"},
		audit.Flow{Protocol: "tcp", Host: "203.0.113.7", Port: 22, Verdict: "allow"},
		audit.Flow{Protocol: "dns", Host: "looked.example.com", Verdict: "allow"},
		audit.Flow{Protocol: "tcp", Host: "bad\nhost", Port: 1, Verdict: "allow"},
		audit.Flow{Protocol: "tcp", Host: "10.0.0.1", Port: 22, Verdict: "deny", Reason: "it is private\n- allow: x"},
	)
	v := invoke(dir, nil, []Tier{row}, "policy", "learn", "-o", filepath.Join(dir, "learned.yaml"), "--", "sh", "-c", "echo out; exit 3")
	if code := v.Run(t.Context()); code != 3 || v.Stdout.String() != "out\n" {
		t.Fatalf("%d, %q, %q", code, v.Stdout.String(), v.Stderr.String())
	}
	if !strings.Contains(v.Stderr.String(), "paddock: learning: while it runs, the command can reach everything that is public\n") {
		t.Errorf("said %q", v.Stderr.String())
	}
	data, err := os.ReadFile(filepath.Join(dir, "learned.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	const want = `version: 1
network:
  mode: list
  rules:
    # addresses
    - allow: "203.0.113.7"
      ports: [22]
    # example.com
    - allow: "a.example.com"
    - allow: "b.example.com"
      ports: [443]
    # example.org
    - allow: "time.example.org"
      ports: [123]
      udp: true
# Refused, though the way out was open:
#   10.0.0.1:22: it is private\n- allow: x
`
	if _, got, _ := strings.Cut(string(data), "use it.\n"); got != want {
		t.Errorf("wrote\n%s", data)
	}
	if _, err := policy.Read("learned", data); err != nil {
		t.Error(err)
	}
	if got := f.Made().Policy.Network; got.Mode != paddock.NetworkList || got.Rules[0].Host != "*" {
		t.Errorf("ran with %+v", got)
	}
}

func TestWithoutAFileThePolicyIsTheOutput(t *testing.T) {
	f := &fake.Fake{}
	v := invoke(t.TempDir(), nil, []Tier{reaching(t, f)}, "policy", "learn", "--", "echo", "out")
	if code := v.Run(t.Context()); code != 0 || !strings.HasSuffix(v.Stdout.String(), "version: 1\nnetwork:\n  mode: list\n") || !strings.Contains(v.Stderr.String(), "out\n") {
		t.Errorf("%d, %q, %q", code, v.Stdout.String(), v.Stderr.String())
	}
}

func TestLearningWritesOverNothingAndLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "there")
	if err := os.WriteFile(name, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &fake.Fake{}
	if v := invoke(dir, nil, []Tier{reaching(t, f)}, "policy", "learn", "-o", name, "true"); v.Run(t.Context()) == 0 || f.Created != 0 {
		t.Errorf("ran: %q", v.Stderr.String())
	}
	f.Refuse = paddock.Unsupported
	gone := filepath.Join(dir, "gone")
	if v := invoke(dir, nil, []Tier{reaching(t, f)}, "policy", "learn", "-o", gone, "true"); v.Run(t.Context()) == 0 {
		t.Error("there was no sandbox")
	}
	if _, err := os.Stat(gone); !os.IsNotExist(err) {
		t.Errorf("a file was left: %v", err)
	}
	if v := invoke(dir, nil, []Tier{reaching(t, f)}, "policy", "learn", "--allow", "10.0.0.1,example.com", "true"); v.Run(t.Context()) == 0 || !strings.Contains(v.Stderr.String(), "--allow: while it learns") {
		t.Errorf("%q", v.Stderr.String())
	}
}

func TestWhatIsLearnedHasABound(t *testing.T) {
	l := newLessons()
	for port := range uint16(maxLessons + 10) {
		l.Record(audit.Event{Kind: audit.Network, Network: &audit.Flow{Protocol: "tcp", Host: "a.example", Port: port + 1, Verdict: "allow"}})
	}
	text, err := l.policy([]string{"x"})
	if err != nil || len(l.reached) != maxLessons || !strings.Contains(string(text), "# There was more than is listed here.") {
		t.Errorf("%d, %v", len(l.reached), err)
	}
}

func TestGroupsOfPackageClientsAreAPieceOfAPolicy(t *testing.T) {
	dir := t.TempDir()
	v := invoke(dir, map[string]string{"PIP_INDEX_URL": "https://me:hush@pip.example:8443/simple", "HOME": dir, "GOPROXY": "https://go.example"}, nil, "policy", "groups")
	if code := v.Run(t.Context()); code != 0 || strings.Contains(v.Stdout.String(), "hush") {
		t.Fatalf("%d, %q, %q", code, v.Stdout.String(), v.Stderr.String())
	}
	f, err := policy.Read("groups", []byte(v.Stdout.String()))
	if err != nil {
		t.Fatalf("%v\n%s", err, v.Stdout.String())
	}
	var hosts []string
	for _, r := range f.Network.Rules {
		hosts = append(hosts, r.Host)
	}
	if !slices.Contains(hosts, "pip.example") || !slices.Contains(hosts, "go.example") {
		t.Errorf("hosts %q", hosts)
	}
}

// A mirror of one's own has an address that is not public, which a rule has to list.
func TestAMirrorWithAPrivateAddressIsLearned(t *testing.T) {
	f := &fake.Fake{}
	dir := t.TempDir()
	row := reaching(t, f, audit.Flow{Protocol: "http", Host: "pypi.corp.example", Address: "10.1.2.3", Port: 443, Verdict: "allow"})
	v := invoke(dir, nil, []Tier{row}, "policy", "learn", "--allow", "10.1.2.3:443", "--", "true")
	if code := v.Run(t.Context()); code != 0 {
		t.Fatalf("%d, %q", code, v.Stderr.String())
	}
	if got := f.Made().Policy.Network.Rules; len(got) != 3 || got[2].Host != "10.1.2.3" {
		t.Errorf("ran with %+v", got)
	}
	file, err := policy.Read("learned", []byte(v.Stdout.String()))
	if err != nil {
		t.Fatal(err)
	}
	var spec paddock.Spec
	if err := file.Apply(&spec, policy.Host{}); err != nil {
		t.Fatal(err)
	}
	rules, err := decide.Compile(spec.Policy.Network)
	if err != nil {
		t.Fatal(err)
	}
	host, err := decide.ParseHost("pypi.corp.example")
	if err != nil {
		t.Fatal(err)
	}
	if !rules.Flow(decide.Flow{Host: host, Port: 443}).Allow || decide.CheckAddress(netip.MustParseAddr("10.1.2.3"), func(a netip.Addr) bool { return rules.Lists(decide.Flow{Host: host, Port: 443}, a) }) != nil {
		t.Errorf("the policy does not allow what was reached:\n%s", v.Stdout.String())
	}
}
