package parent

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/parent/protocol"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
)

// loopback is where the names of a test lead.
func loopback(names ...string) map[string][]netip.Addr {
	hosts := map[string][]netip.Addr{}
	for _, n := range names {
		hosts[n] = []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	}
	return hosts
}

// allow is a policy for names on one port, and for the address that they lead to.
func allow(port uint16, names ...string) paddock.NetworkPolicy {
	p := paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{{Host: "127.0.0.1", Ports: []uint16{port}}}}
	for _, n := range names {
		p.Rules = append(p.Rules, paddock.NetworkRule{Host: n, Ports: []uint16{port}})
	}
	return p
}

func portOf(t *testing.T, s *httptest.Server) uint16 {
	t.Helper()
	a, err := netip.ParseAddrPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return a.Port()
}

// boxOf makes a sandbox with a network.
func boxOf(t *testing.T, o Options, p paddock.Policy) paddock.Sandbox {
	t.Helper()
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	sb, err := d.Create(t.Context(), paddock.Spec{Policy: p})
	if err != nil {
		t.Fatal(err)
	}
	return sb
}

// said runs a script and gives all that it wrote.
func said(t *testing.T, sb paddock.Sandbox, script string) string {
	t.Helper()
	var out bytes.Buffer
	p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"sh", "-c", script}, Output: paddock.Output{Stdout: &out, Stderr: &out}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	if _, err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// events keeps what is recorded.
type events struct {
	mu   sync.Mutex
	list []audit.Event // guarded by mu
}

func (e *events) Record(x audit.Event) { e.mu.Lock(); e.list = append(e.list, x); e.mu.Unlock() }

func (e *events) has(verdict, host string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.list, func(x audit.Event) bool {
		return x.Kind == audit.Network && x.Network.Verdict == verdict && x.Network.Host == host
	})
}

func TestWhatRulesAllowIsReachedAndNothingElse(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "welcome to "+r.Host) }))
	defer s.Close()
	port := portOf(t, s)
	record := &events{}
	sb := boxOf(t, Options{Hosts: loopback("web.test", "other.test"), Audit: record}, paddock.Policy{Network: allow(port, "web.test"), Audit: []paddock.AuditKind{paddock.AuditNetwork}})

	at := fmt.Sprintf("web.test:%d", port)
	if got := said(t, sb, "curl -sS http://"+at+"/"); got != "welcome to "+at {
		t.Errorf("curl: %q", got)
	}
	if got := said(t, sb, "wget -qO- http://"+at+"/"); got != "welcome to "+at {
		t.Errorf("wget: %q", got)
	}
	if got := said(t, sb, fmt.Sprintf(`exec 3<>/dev/tcp/web.test/%d; printf 'GET / HTTP/1.0\r\nHost: %s\r\n\r\n' >&3; cat <&3`, port, at)); !strings.HasSuffix(got, "welcome to "+at) {
		t.Errorf("the shell: %q", got)
	}
	for target, status := range map[string]string{
		"http://other.test:" + strconv.Itoa(int(port)): "6", "http://web.test:1/": "6", "http://localhost:" + strconv.Itoa(int(port)): "6", "http://169.254.169.254/": "7",
	} {
		if got := said(t, sb, "curl -sS "+target+"; echo status=$?"); !strings.Contains(got, "status="+status+"\n") || !strings.Contains(got, "no rule allows") {
			t.Errorf("%s: %q", target, got)
		}
	}
	st, err := sb.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(st.Refused, func(r paddock.Refusal) bool {
		return strings.HasPrefix(r.Target, "other.test:") && strings.Contains(r.Remedy, "--allow other.test") && r.Count == 1
	}) {
		t.Errorf("refused: %+v", st.Refused)
	}
	if err := sb.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !record.has("allow", "web.test") || !record.has("deny", "other.test") {
		t.Errorf("recorded: %+v", record.list)
	}
}

func TestRulesChangeWhileTheSandboxRuns(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "yes") }))
	defer s.Close()
	port := portOf(t, s)
	sb := boxOf(t, Options{Hosts: loopback("a.test", "b.test")}, paddock.Policy{Network: allow(port, "a.test")})
	reach := func(host string) bool { return said(t, sb, fmt.Sprintf("curl -s http://%s:%d/", host, port)) == "yes" }
	if !reach("a.test") || reach("b.test") {
		t.Error("the rules at the beginning do not hold")
	}
	if err := sb.Update(t.Context(), paddock.Update{Policy: &paddock.Policy{Network: allow(port, "b.test")}}); err != nil {
		t.Fatal(err)
	}
	if reach("a.test") || !reach("b.test") {
		t.Error("other rules do not hold")
	}
	wrong := paddock.Policy{Network: allow(port, "a.test"), Files: paddock.FilePolicy{Protect: []string{"x"}}}
	if err := sb.Update(t.Context(), paddock.Update{Policy: &wrong}); !errors.Is(err, paddock.Unsupported) {
		t.Errorf("a policy that cannot be: %v", err)
	}
	if reach("a.test") || !reach("b.test") {
		t.Error("half of a policy that was refused holds")
	}
	if err := sb.Update(t.Context(), paddock.Update{Policy: &paddock.Policy{Network: paddock.NetworkPolicy{Mode: paddock.NetworkList}}}); err != nil {
		t.Fatal(err)
	}
	if reach("a.test") || reach("b.test") {
		t.Error("there is a network that was taken away")
	}
	if err := boxOf(t, Options{}, paddock.Policy{}).Update(t.Context(), paddock.Update{Policy: &paddock.Policy{Network: allow(port)}}); !errors.Is(err, paddock.Unsupported) {
		t.Errorf("a network for a sandbox that began without: %v", err)
	}
}

// A child that was taken over may refuse every order, or answer none.
func TestNoChildHasASayInTheRulesOfTheNetwork(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "yes") }))
	defer s.Close()
	port := portOf(t, s)
	narrower := &paddock.Policy{Network: allow(port, "b.test")}
	silence := func(t *testing.T, sb *sandbox) { // the link is held by a question that is not answered
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		sb.asking <- struct{}{}
		t.Cleanup(func() { <-sb.asking })
		if err := sb.Pause(ctx); !errors.Is(err, paddock.Canceled) {
			t.Errorf("the link is free: %v", err)
		}
	}
	files := *narrower
	files.Files.DenyRead = []string{"/etc/passwd"}
	labels, limits := map[string]string{"a": "b"}, &paddock.Limits{PIDs: 20}
	for name, row := range map[string]struct {
		before func(*testing.T, *sandbox)
		update paddock.Update
		obeys  func(paddock.Update) bool
		err    error  // what it is
		is     string // what holds afterwards
	}{
		"rules, and it refuses":                         {nil, paddock.Update{Policy: narrower, Labels: labels}, nil, nil, "after"},
		"rules, and it is busy":                         {silence, paddock.Update{Policy: narrower, Labels: labels}, nil, nil, "after"},
		"rules and limits, and it refuses":              {nil, paddock.Update{Policy: narrower, Limits: limits, Labels: labels}, nil, paddock.Denied, "before"},
		"rules and limits, and it is busy":              {silence, paddock.Update{Policy: narrower, Limits: limits, Labels: labels}, nil, paddock.Timeout, "before"},
		"rules and limits, and it obeys":                {nil, paddock.Update{Policy: narrower, Limits: limits, Labels: labels}, func(paddock.Update) bool { return true }, nil, "after"},
		"rules about files, and it refuses":             {nil, paddock.Update{Policy: &files}, nil, paddock.Internal, "dead"},
		"rules about files and limits, it refuses one":  {nil, paddock.Update{Policy: &files, Limits: limits}, func(u paddock.Update) bool { return u.Policy == nil }, paddock.Internal, "dead"},
		"rules about files and limits, it refuses both": {nil, paddock.Update{Policy: &files, Limits: limits, Labels: labels}, nil, paddock.Denied, "before"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := New(Options{Hosts: loopback("a.test", "b.test")})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			})
			sb, _ := usurped(t, d, paddock.Spec{Policy: paddock.Policy{Network: allow(port, "a.test")}}, func(o protocol.Order) any {
				if o.Op == "update" && row.obeys != nil && row.obeys(o.Update) {
					return protocol.Reply{}
				}
				return protocol.Reply{Kind: paddock.Denied, Error: "no"}
			})
			reach := func(host string) bool { return said(t, sb, fmt.Sprintf("curl -s http://%s:%d/", host, port)) == "yes" }
			if !reach("a.test") || reach("b.test") {
				t.Fatal("the rules at the beginning do not hold")
			}
			if row.before != nil {
				row.before(t, sb)
			}
			wait := 3 * time.Minute
			if row.err == paddock.Timeout {
				wait = 50 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			err = sb.Update(ctx, row.update)
			if !errors.Is(err, row.err) {
				t.Errorf("update: %v", err)
			}
			sb.mu.Lock()
			label := sb.labels["a"]
			sb.mu.Unlock()
			dead := false
			select {
			case <-sb.ended:
				dead = true
			default:
			}
			switch {
			case dead != (row.is == "dead"):
				t.Errorf("the sandbox is dead: %v", dead)
			case dead:
			case reach("a.test") != (row.is == "before"), reach("b.test") != (row.is == "after"), label == "b" != (row.is == "after"):
				t.Errorf("a.test %v, b.test %v, label %q", reach("a.test"), reach("b.test"), label)
			}
		})
	}
}

// What is in use forbids limits, and nothing forbids rules.
func TestAChangeThatAnHonestChildRefusesChangesNothing(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "yes") }))
	defer s.Close()
	port := portOf(t, s)
	sb := boxOf(t, Options{Hosts: loopback("a.test", "b.test")}, paddock.Policy{Network: allow(port, "a.test")})
	reach := func(host string) bool { return said(t, sb, fmt.Sprintf("curl -s http://%s:%d/", host, port)) == "yes" }
	say(t, sb, "head -c 3M /dev/zero | tr '\\0' x > /tmp/f")
	before, err := sb.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	policy := paddock.Policy{Network: allow(port, "b.test"), Files: paddock.FilePolicy{DenyRead: []string{"/tmp/f"}}}
	secret := policy
	secret.Network.Secrets = []paddock.Secret{{Name: "NEW", Value: "sk-0123456789abcdefghij", Hosts: []string{"b.test"}}}
	labels := map[string]string{"a": "b"}
	for what, row := range map[string]struct {
		update paddock.Update
		kind   paddock.Kind
	}{
		"a disk that is too small": {paddock.Update{Limits: &paddock.Limits{Disk: 2 << 20}, Policy: &policy, Labels: labels}, paddock.Conflict},
		"a late secret":            {paddock.Update{Limits: &paddock.Limits{Disk: 32 << 20}, Policy: &secret, Labels: labels}, paddock.Unsupported},
	} {
		if err := sb.Update(t.Context(), row.update); !errors.Is(err, row.kind) {
			t.Errorf("%s: %v", what, err)
		}
		st, err := sb.Status(t.Context())
		if err != nil || st.State != paddock.Ready || st.Limits != before.Limits || len(st.Labels) != 0 {
			t.Errorf("%s: afterwards: %v, %v %q %+v %v", what, err, st.State, st.Reason, st.Limits, st.Labels)
		}
		if !reach("a.test") || reach("b.test") {
			t.Errorf("%s: the rules changed", what)
		}
		say(t, sb, "head -c 1 /tmp/f")
	}
	if err := sb.Update(t.Context(), paddock.Update{Limits: &paddock.Limits{PIDs: 30}, Policy: &policy, Labels: labels}); err != nil {
		t.Fatal(err)
	}
	want := before.Limits
	want.PIDs = 30
	if st, err := sb.Status(t.Context()); err != nil || st.Limits != want || st.Labels["a"] != "b" {
		t.Errorf("%v, %+v", err, st)
	}
	if reach("a.test") || !reach("b.test") || !strings.Contains(said(t, sb, "cat /tmp/f 2>&1 || :"), "ermission denied") {
		t.Error("the rules did not change")
	}
}

func TestRulesOfACallerWhoLeftAreTakenBack(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "yes") }))
	defer s.Close()
	port := portOf(t, s)
	made := boxOf(t, Options{Hosts: loopback("a.test", "b.test")}, paddock.Policy{Network: allow(port, "a.test")})
	sb, ok := made.(*sandbox)
	if !ok {
		t.Fatalf("a sandbox is a %T", made)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for { // until the gateway gets the message, and nobody waits for the answer
		undo, err := sb.out.Update(ended, allow(port, "b.test"))
		if errors.Is(err, paddock.Canceled) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		undo() // it was faster
	}
	reach := func(host string) bool { return said(t, sb, fmt.Sprintf("curl -s http://%s:%d/", host, port)) == "yes" }
	if !reach("a.test") || reach("b.test") {
		t.Error("the rules changed")
	}
}

// While the child is told rules about files, the host does not know which ones it has.
func TestRulesAboutFilesAreThoseOfTheLastUpdate(t *testing.T) {
	begun, release := make(chan bool), make(chan bool)
	var told []string // of the last order
	sb, _ := usurped(t, driver(t), owned, func(o protocol.Order) any {
		if o.Op == "update" && o.Update.Policy != nil {
			told = o.Update.Policy.Files.DenyRead
			begun <- true
			<-release
		}
		return protocol.Reply{}
	})
	update := func(ctx context.Context, label string, deny ...string) error {
		return sb.Update(ctx, paddock.Update{Policy: &paddock.Policy{Files: paddock.FilePolicy{DenyRead: deny}}, Labels: map[string]string{"is": label}})
	}
	first := make(chan error)
	go func() { first <- update(t.Context(), "first", "/tmp/a") }()
	<-begun
	for _, deny := range [][]string{nil, {"/tmp/a"}} { // what it had, and what it may have now
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := update(ctx, "second", deny...); !errors.Is(err, paddock.Timeout) {
			t.Errorf("%v did not wait for the child: %v", deny, err)
		}
		cancel()
	}
	release <- true
	if err := <-first; err != nil || sb.known().Labels["is"] != "first" {
		t.Errorf("%v, %v", err, sb.known().Labels)
	}
	if err := update(t.Context(), "third", "/tmp/a"); err != nil { // which it has
		t.Error(err)
	}
	go func() { <-begun; release <- true }()
	if err := update(t.Context(), "fourth"); err != nil || len(told) != 0 || sb.known().Labels["is"] != "fourth" {
		t.Errorf("%v, %v, %v", err, told, sb.known().Labels)
	}
}

func TestASecretIsUsedAndNeverInTheSandbox(t *testing.T) {
	var got string
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		fmt.Fprint(w, "you sent "+got)
	}))
	defer s.Close()
	port := portOf(t, s)
	const value = "sk-0123456789abcdefghij"
	p := allow(port, "example.com") // which the test server has a certificate for
	p.Secrets = []paddock.Secret{{Name: "KEY", Value: value, Hosts: []string{fmt.Sprintf("example.com:%d", port)}}}
	roots := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	sb := boxOf(t, Options{Hosts: loopback("example.com"), Roots: roots}, paddock.Policy{Network: p})
	out := said(t, sb, fmt.Sprintf(`env; curl -sS -H "Authorization: Bearer $KEY" https://example.com:%d/`, port))
	if got != "Bearer "+value {
		t.Errorf("the server got %q, and the sandbox %q", got, out)
	}
	if strings.Contains(out, value) || !strings.Contains(out, "you sent Bearer ") {
		t.Errorf("the sandbox has %q", out)
	}
}

func TestAnOwnerIsAskedWhereNoRuleDecides(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "yes") }))
	defer s.Close()
	port := portOf(t, s)
	var asked []gatewayclient.Question
	o := Options{Hosts: loopback("web.test"), Ask: func(_ context.Context, q gatewayclient.Question) gatewayclient.Answer {
		asked = append(asked, q)
		return gatewayclient.AnswerOnce
	}}
	sb := boxOf(t, o, paddock.Policy{Network: allow(port)})
	if got := said(t, sb, fmt.Sprintf("curl -sS http://web.test:%d/", port)); got != "yes" || len(asked) != 1 || asked[0].Host != "web.test" || asked[0].Port != port {
		t.Errorf("%q, asked %+v", got, asked)
	}
}

func TestWithoutItsGatewayASandboxHasNoWayOut(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "yes") }))
	defer s.Close()
	port := portOf(t, s)
	sb := boxOf(t, Options{Hosts: loopback("web.test")}, paddock.Policy{Network: allow(port, "web.test")})
	sb.(*sandbox).out.Stop()
	if got := said(t, sb, fmt.Sprintf("curl -sS http://web.test:%d/; echo status=$?", port)); !strings.Contains(got, "status=7") {
		t.Errorf("%q", got)
	}
}

func TestRulesThatMakeNoSenseAreRefusedAtOnce(t *testing.T) {
	d, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, rule := range []paddock.NetworkRule{{Host: "a b"}, {Host: "example.com", Answer: &paddock.NetworkAnswer{}, Deny: true}} {
		_, err := d.Create(t.Context(), paddock.Spec{Policy: paddock.Policy{Network: paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{rule}}}})
		if !errors.Is(err, paddock.Invalid) || !strings.Contains(err.Error(), "rules[0]") {
			t.Errorf("%+v: %v", rule, err)
		}
	}
}
