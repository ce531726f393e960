package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/authority"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/egress/egresstest"
	"github.com/paddock-sandbox/paddock/internal/egress/gateway"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/egress/netstack"
)

// A record stores events.
type record struct {
	mu     sync.Mutex
	events []gatewayclient.Event
	told   chan struct{}
}

func (r *record) event(e gatewayclient.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	select {
	case r.told <- struct{}{}:
	default:
	}
}

func (r *record) all() []gatewayclient.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

func (r *record) waitFor(t *testing.T, is func(gatewayclient.Event) bool) gatewayclient.Event {
	t.Helper()
	late := time.After(egresstest.Patience)
	for {
		all := r.all()
		if i := slices.IndexFunc(all, is); i >= 0 {
			return all[i]
		}
		select {
		case <-r.told:
		case <-late:
			t.Fatalf("it was never told; what was: %+v", all)
		}
	}
}

// A host is a gateway with a guest on its link. Every name resolves to loopback.
type host struct {
	*gateway.Gateway
	*egresstest.Guest
	record *record
}

func open(t *testing.T, o gateway.Options) *host {
	t.Helper()
	w := &host{record: &record{told: make(chan struct{}, 1)}}
	o.Event = w.record.event
	o.Dialer.Lookup = func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{local}, nil }
	var err error
	if w.Gateway, err = gateway.New(o); err != nil {
		t.Fatal(err)
	}
	guest, end := egresstest.New(t)
	w.Guest = guest
	if err := w.Open(end); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

var local = netip.MustParseAddr("127.0.0.1")

// reachable is a rule that permits connections of names to loopback by listing it. Without ports it lists it at all that
// the names are allowed at; the address itself is allowed at 443 and 80 alone, which nothing here uses.
func reachable() paddock.NetworkRule { return paddock.NetworkRule{Host: local.String()} }

func policy(rules ...paddock.NetworkRule) paddock.NetworkPolicy {
	return paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: append([]paddock.NetworkRule{reachable()}, rules...)}
}

func allow(host string, port uint16) paddock.NetworkRule {
	return paddock.NetworkRule{Host: host, Ports: []uint16{port}}
}

// serve starts a server on loopback until the test ends.
func serve(t *testing.T, conn func(*net.TCPConn)) uint16 {
	t.Helper()
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(local, 0)))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	t.Cleanup(func() { l.Close() })
	wg.Go(func() {
		for {
			c, err := l.AcceptTCP()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(egresstest.Patience))
				conn(c)
			})
		}
	})
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

func echo(c *net.TCPConn) { _, _ = io.Copy(c, c) }

func (w *host) reach(t *testing.T, host string, port uint16) net.Conn {
	t.Helper()
	c, err := w.Dial(t.Context(), host, port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func talk(t *testing.T, c io.ReadWriter, line string) {
	t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(line)+1)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != line+"\n" {
		t.Fatalf("%q came back, %v", got, err)
	}
}

func denied(host, reason string) func(gatewayclient.Event) bool {
	return func(e gatewayclient.Event) bool {
		return e.Verdict == gatewayclient.VerdictDeny && e.Host == host && strings.Contains(e.Reason, reason)
	}
}

func TestAnUpdateCutsWhatIsNoLongerAllowed(t *testing.T) {
	port := serve(t, echo)
	w := open(t, gateway.Options{Policy: policy(allow("a.test", port), allow("b.test", port))})
	a, b := w.reach(t, "a.test", port), w.reach(t, "b.test", port)
	talk(t, a, "one")
	talk(t, b, "two")
	if err := w.Update(policy(allow("b.test", port))); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) || isTimeout(err) {
		t.Fatalf("the connection that is no longer allowed was not cut off: %v", err)
	}
	talk(t, b, "three")
	if _, err := w.Dial(t.Context(), "a.test", port); err == nil {
		t.Fatal("what is no longer allowed can be reached anew")
	}
	w.record.waitFor(t, denied("a.test", "any more"))
	if err := w.Update(paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{{Host: "no host"}}}); !errors.Is(err, paddock.Invalid) {
		t.Fatalf("rules that are none: %v", err)
	}
	talk(t, b, "four")
}

func TestAnUpdateCutsWhatWasDialledOrCarriedAsItMayNotBe(t *testing.T) {
	limited := func(port uint16) paddock.NetworkRule {
		r := allow("a.test", port)
		r.Limits = &paddock.NetworkLimits{Bytes: 1 << 20}
		return r
	}
	through := func(port uint16) paddock.NetworkRule {
		r := allow("a.test", port)
		r.Proxy = "http://127.0.0.1:1"
		return r
	}
	port := serve(t, echo)
	for name, p := range map[string]paddock.NetworkPolicy{
		"its address is denied now":    policy(allow("a.test", port), paddock.NetworkRule{Deny: true, Host: "127.0.0.0/8"}),
		"its address is not listed":    {Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{allow("a.test", port)}},
		"it has a limit now":           policy(limited(port)),
		"it is to go through a proxy":  policy(through(port)),
		"its rule comes behind a deny": policy(paddock.NetworkRule{Deny: true, Host: "*.test"}, allow("a.test", port)),
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, gateway.Options{Policy: policy(allow("a.test", port))})
			c := w.reach(t, "a.test", port)
			talk(t, c, "one")
			if err := w.Update(policy(allow("b.test", port), allow("a.test", port))); err != nil {
				t.Fatal(err)
			}
			talk(t, c, "two")
			if err := w.Update(p); err != nil {
				t.Fatal(err)
			}
			_ = c.SetReadDeadline(time.Now().Add(egresstest.Patience))
			if _, err := c.Read(make([]byte, 1)); err == nil || isTimeout(err) {
				t.Fatalf("the connection goes on: %v", err)
			}
		})
	}
}

func TestAnUpdateCutsConnectionsThatRequestsGoOver(t *testing.T) {
	port := serve(t, func(c *net.TCPConn) {
		r := bufio.NewReader(c)
		for {
			if _, err := http.ReadRequest(r); err != nil {
				return
			}
			if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); err != nil {
				return
			}
		}
	})
	name, err := decide.ParsePattern("a.test")
	if err != nil {
		t.Fatal(err)
	}
	ca, err := authority.New([]decide.Pattern{name}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	looked := allow("a.test", port)
	looked.Methods = []string{"GET"}
	w := open(t, gateway.Options{Policy: policy(looked), Authority: ca})
	c := w.reach(t, "a.test", port)
	r := bufio.NewReader(c)
	ask := func() int {
		if _, err := fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: a.test:%d\r\n\r\n", port); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		return response.StatusCode
	}
	if got := ask(); got != http.StatusOK {
		t.Fatal(got)
	}
	if err := w.Update(policy(looked, paddock.NetworkRule{Deny: true, Host: "127.0.0.0/8"})); err != nil {
		t.Fatal(err)
	}
	if got := ask(); got != http.StatusForbidden {
		t.Fatalf("a request to an address that is denied now: %d", got)
	}
}

func TestRulesThatNeedALookCutWhatIsNotLookedInto(t *testing.T) {
	port := serve(t, echo)
	name, err := decide.ParsePattern("a.test")
	if err != nil {
		t.Fatal(err)
	}
	ca, err := authority.New([]decide.Pattern{name}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	w := open(t, gateway.Options{Policy: policy(allow("a.test", port)), Authority: ca})
	c := w.reach(t, "a.test", port)
	talk(t, c, "one")
	r := allow("a.test", port)
	r.Methods = []string{"GET"}
	if err := w.Update(policy(r)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Fatalf("the connection goes on: %v", err)
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// trusted returns a certificate for names, and a pool that trusts it.
func trusted(t *testing.T, names ...string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	from := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: names, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, from, from, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestTLSIsSplicedWhereItNamesWhatItIsConnectedTo(t *testing.T) {
	cert, pool := trusted(t, "a.test", "b.test")
	port := serve(t, func(c *net.TCPConn) {
		s := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})
		_, _ = io.Copy(s, s)
	})
	w := open(t, gateway.Options{Policy: policy(allow("a.test", port))})
	c := tls.Client(w.reach(t, "a.test", port), &tls.Config{ServerName: "a.test", RootCAs: pool})
	talk(t, c, "hello")
	for name, reason := range map[string]string{"b.test": "its TLS names b.test", "": "names no server"} {
		c := tls.Client(w.reach(t, "a.test", port), &tls.Config{ServerName: name, InsecureSkipVerify: true})
		var alert *tls.AlertError
		if err := c.Handshake(); err == nil || errors.As(err, &alert) {
			t.Fatalf("with %q: %v", name, err)
		} else if !strings.Contains(err.Error(), "unrecognized name") {
			t.Fatalf("with %q no alert says why: %v", name, err)
		}
		w.record.waitFor(t, denied("a.test", reason))
	}
}

func TestAServerMaySpeakFirst(t *testing.T) {
	port := serve(t, func(c *net.TCPConn) {
		_, _ = io.WriteString(c, "220 welcome\n")
		echo(c)
	})
	w := open(t, gateway.Options{Policy: policy(allow("a.test", port))})
	c := w.reach(t, "a.test", port)
	if line, err := bufio.NewReader(io.LimitReader(c, 12)).ReadString('\n'); err != nil || line != "220 welcome\n" {
		t.Fatalf("%q, %v", line, err)
	}
	talk(t, c, "EHLO me")
}

func TestRefusedIsWhatTheDestinationSaid(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	w := open(t, gateway.Options{Policy: policy(allow("a.test", port))})
	if _, err := w.Dial(t.Context(), "a.test", port); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Fatalf("a port where nobody listens: %v", err)
	}
	w.record.waitFor(t, func(e gatewayclient.Event) bool {
		return e.Host == "a.test" && e.Verdict == gatewayclient.VerdictAllow && strings.Contains(e.Reason, "refused")
	})
}

func TestMuchPassesAndArrivesAsItWas(t *testing.T) {
	const size = 48 << 20
	data := make([]byte, 1<<20)
	_, _ = rand.Read(data)
	want := sha256.New()
	for range size / len(data) {
		want.Write(data)
	}
	port := serve(t, func(c *net.TCPConn) {
		got := sha256.New()
		_, _ = io.Copy(got, c)
		_, _ = c.Write(got.Sum(nil))
		for range size / len(data) {
			if _, err := c.Write(data); err != nil {
				return
			}
		}
	})
	w := open(t, gateway.Options{Policy: policy(allow("a.test", port))})
	c := w.reach(t, "a.test", port)
	for range size / len(data) {
		if _, err := c.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	sum := make([]byte, sha256.Size)
	if _, err := io.ReadFull(c, sum); err != nil || !bytes.Equal(sum, want.Sum(nil)) {
		t.Fatalf("what the server got differs: %v", err)
	}
	got := sha256.New()
	if n, err := io.Copy(got, c); err != nil || n != size || !bytes.Equal(got.Sum(nil), want.Sum(nil)) {
		t.Fatalf("%d bytes came, %v", n, err)
	}
	e := w.record.waitFor(t, func(e gatewayclient.Event) bool { return e.Host == "a.test" && e.Kind == gatewayclient.KindTCP })
	if e.Sent != size || e.Received != size+sha256.Size {
		t.Fatalf("what was told: %+v", e)
	}
}

func TestLimitsOfARuleHoldForAllItsConnectionsAndOverAnUpdate(t *testing.T) {
	port := serve(t, echo)
	r := allow("*.test", port)
	r.Limits = &paddock.NetworkLimits{Requests: 3, Bytes: 64}
	w := open(t, gateway.Options{Policy: policy(r)})
	talk(t, w.reach(t, "a.test", port), "one")
	if err := w.Update(policy(allow("c.example", port), r)); err != nil {
		t.Fatal(err)
	}
	talk(t, w.reach(t, "b.test", port), "two")
	c := w.reach(t, "a.test", port)
	if _, err := w.Dial(t.Context(), "a.test", port); err == nil {
		t.Fatal("a fourth connection came about")
	}
	w.record.waitFor(t, denied("a.test", "rules[2] allows 3 requests"))
	if _, err := c.Write(make([]byte, 60)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(c); err == nil {
		t.Fatal("more bytes passed than the rule allows")
	}
	w.record.waitFor(t, denied("a.test", "allows 64 bytes"))
}

func TestAPersonIsAskedWhereNoRuleDecides(t *testing.T) {
	port := serve(t, echo)
	answers := map[string]gatewayclient.Answer{"once.test": gatewayclient.AnswerOnce, "always.test": gatewayclient.AnswerAlways, "never.test": gatewayclient.AnswerDeny}
	var mu sync.Mutex
	asked := map[string]int{}
	w := open(t, gateway.Options{
		Policy: policy(paddock.NetworkRule{Deny: true, Host: "denied.test", Ports: []uint16{port}}),
		Ask: func(_ context.Context, q gatewayclient.Question) gatewayclient.Answer {
			mu.Lock()
			defer mu.Unlock()
			asked[q.Host]++
			return answers[q.Host]
		},
	})
	count := func(host string) int {
		mu.Lock()
		defer mu.Unlock()
		return asked[host]
	}
	for range 2 {
		talk(t, w.reach(t, "once.test", port), "hello")
		talk(t, w.reach(t, "always.test", port), "hello")
		for _, host := range []string{"never.test", "denied.test"} {
			if _, err := w.Dial(t.Context(), host, port); err == nil {
				t.Fatalf("%s can be reached", host)
			}
		}
	}
	if a, b, c, d := count("once.test"), count("always.test"), count("never.test"), count("denied.test"); a != 2 || b != 1 || c != 1 || d != 0 {
		t.Fatalf("asked for once %d times, always %d, never %d, denied %d", a, b, c, d)
	}
	w.record.waitFor(t, denied("never.test", "said no"))
	// A deny rule takes precedence over a person's answer.
	if err := w.Update(policy(paddock.NetworkRule{Deny: true, Host: "always.test", Ports: []uint16{port}})); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Dial(t.Context(), "always.test", port); err == nil {
		t.Fatal("always.test can be reached")
	}
}

func TestQuestionsAreBounded(t *testing.T) {
	release := make(chan struct{})
	var mu sync.Mutex
	asked, most, now := 0, 0, 0
	w := open(t, gateway.Options{
		Policy: policy(),
		Ask: func(ctx context.Context, _ gatewayclient.Question) gatewayclient.Answer {
			mu.Lock()
			asked, now = asked+1, now+1
			most = max(most, now)
			mu.Unlock()
			select {
			case <-release:
			case <-ctx.Done():
			}
			mu.Lock()
			defer mu.Unlock()
			now--
			return gatewayclient.AnswerDeny
		},
	})
	const many = 200
	start, refused := time.Now(), 0
	for round := range 2 {
		var wg sync.WaitGroup
		for i := range many {
			wg.Go(func() {
				if _, err := w.Connect(t.Context(), fmt.Sprintf("h%d-%d.test", round, i), 443); !errors.Is(err, paddock.Denied) {
					t.Errorf("%d: %v", i, err)
				}
				mu.Lock()
				defer mu.Unlock()
				// All except the eight whose questions wait for this person.
				if refused++; refused == many-8 {
					close(release)
				}
			})
		}
		wg.Wait()
	}
	inTime := 20 + int(time.Since(start).Minutes()*20)
	if asked == 0 || asked > inTime || most > 8 {
		t.Fatalf("a person was asked %d times, %d at once", asked, most)
	}
}

func TestAFloodIsToldInFewWords(t *testing.T) {
	w := open(t, gateway.Options{Policy: policy()})
	const many = 3000
	for i := range many {
		_, _ = w.Connect(t.Context(), "same.test", 443)
		_, _ = w.Connect(t.Context(), fmt.Sprintf("h%d.test", i), 443)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	same, total := 0, 0
	all := w.record.all()
	for _, e := range all {
		total += max(e.Count, 1)
		if e.Host == "same.test" {
			same += max(e.Count, 1)
		}
	}
	if total != 2*many || same < 1 {
		t.Fatalf("%d of %d were counted, %d of them the same", total, 2*many, same)
	}
	if len(all) > 600*10 {
		t.Fatalf("%d events", len(all))
	}
	t.Logf("%d events for %d", len(all), total)
}

func TestDatagramsNeedARuleOfTheirs(t *testing.T) {
	s, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(local, 0)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	go func() {
		buf := make([]byte, 2048)
		for {
			n, from, err := s.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			_, _ = s.WriteToUDPAddrPort(buf[:n], from)
		}
	}()
	port := uint16(s.LocalAddr().(*net.UDPAddr).Port)
	udp := allow("a.test", port)
	udp.UDP = true
	w := open(t, gateway.Options{Policy: policy(udp, allow("b.test", 443))})
	for host, ok := range map[string]bool{"a.test": true, "b.test": false} {
		addrs, _, err := w.Lookup(host, 1)
		if err != nil {
			t.Fatal(err)
		}
		p := port
		if !ok {
			p = 443 // QUIC
		}
		c, err := w.DialUDP(netip.AddrPortFrom(addrs[0], p))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write([]byte("ping")); err != nil {
			t.Fatal(err)
		}
		got, err := answer(c)
		if ok && (err != nil || got != "ping") || !ok && (err == nil || !strings.Contains(err.Error(), "refused")) {
			t.Fatalf("%s: %q, %v", host, got, err)
		}
	}
	w.record.waitFor(t, func(e gatewayclient.Event) bool {
		return e.Kind == gatewayclient.KindUDP && e.Host == "b.test" && e.Verdict == gatewayclient.VerdictDeny
	})
}

// answer waits for a datagram. The guest's stack does not wake readers for an error.
func answer(c net.Conn) (string, error) {
	buf := make([]byte, 2048)
	for late := time.Now().Add(egresstest.Patience); ; {
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		n, err := c.Read(buf)
		if err == nil || !isTimeout(err) || time.Now().After(late) {
			return string(buf[:n]), err
		}
	}
}

func TestPrivateAddressesBehindANameAreNotDialled(t *testing.T) {
	port := serve(t, echo)
	w := open(t, gateway.Options{Policy: paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{allow("a.test", port), allow("*", port)}}})
	if _, err := w.Dial(t.Context(), "a.test", port); err == nil {
		t.Fatal("a name led to loopback")
	}
	w.record.waitFor(t, denied("a.test", "loopback"))
	if _, err := w.DialAddr(t.Context(), netip.AddrPortFrom(netip.MustParseAddr("169.254.169.254"), port)); err == nil {
		t.Fatal("the metadata service can be reached")
	}
	for _, to := range []string{"198.18.0.1:80", "198.18.0.9:80", "198.18.77.7:443", "[fd7a:6f74::1]:22"} {
		if _, err := w.DialAddr(t.Context(), netip.MustParseAddrPort(to)); err == nil {
			t.Fatalf("there is something at %s", to)
		}
	}
}

func TestManyConnectionsThatSayNothingAreCarriedAndClosed(t *testing.T) {
	var accepted sync.WaitGroup
	port := serve(t, func(c *net.TCPConn) {
		accepted.Add(1)
		defer accepted.Done()
		_, _ = c.Read(make([]byte, 1))
	})
	before := runtime.NumGoroutine()
	w := open(t, gateway.Options{Policy: policy(allow("a.test", port))})
	addrs, _, err := w.Lookup("a.test", 1)
	if err != nil {
		t.Fatal(err)
	}
	conns := make([]net.Conn, 0, 500)
	for range cap(conns) {
		c, err := w.DialAddr(t.Context(), netip.AddrPortFrom(addrs[0], port))
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	during := runtime.NumGoroutine()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range conns {
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Fatal("a connection goes on without its gateway")
		}
		c.Close()
	}
	t.Logf("%d goroutines before, %d with %d connections, %d afterwards", before, during, len(conns), runtime.NumGoroutine())
}

func TestOnlyTheGatewaysOwnPortsAnswer(t *testing.T) {
	w := open(t, gateway.Options{Policy: policy()})
	for _, port := range []uint16{netstack.DNSPort, netstack.ProxyPort, netstack.SOCKSPort} {
		c, err := w.DialAddr(t.Context(), netip.AddrPortFrom(netstack.Gateway4(), port))
		if err != nil {
			t.Fatalf("port %d: %v", port, err)
		}
		c.Close()
	}
	if _, err := w.DialAddr(t.Context(), netip.AddrPortFrom(netstack.Gateway4(), 8080)); err == nil {
		t.Fatal("port 8080 answers")
	}
}

func TestTheLoopbackOfThisMachineIsReachedAtNamedPortsAlone(t *testing.T) {
	port, other := serve(t, echo), serve(t, echo)
	named := func(ports ...uint16) paddock.NetworkPolicy {
		return paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{{Host: paddock.LoopbackHost, Ports: ports}}}
	}
	// Nobody is asked about it.
	w := open(t, gateway.Options{Policy: named(port), Ask: func(context.Context, gatewayclient.Question) gatewayclient.Answer {
		t.Error("a person was asked")
		return gatewayclient.AnswerAlways
	}})
	c := w.reach(t, paddock.LoopbackHost, port)
	talk(t, c, "hello")
	if c, err := w.Dial(t.Context(), paddock.LoopbackHost, other); err == nil {
		c.Close()
		t.Error("another port is reached too")
	}
	e := w.record.waitFor(t, func(e gatewayclient.Event) bool { return e.Port == other && e.Verdict == gatewayclient.VerdictDeny })
	if want := fmt.Sprintf("--allow %s:%d", paddock.LoopbackHost, other); e.Host != paddock.LoopbackHost || e.Hint != want {
		t.Errorf("it was told as %+v, want the hint %q", e, want)
	}
	// What the rules do not allow any more is cut, and what they allow goes on.
	if err := w.Update(named(port, other)); err != nil {
		t.Fatal(err)
	}
	talk(t, c, "still")
	talk(t, w.reach(t, paddock.LoopbackHost, other), "now too")
	if err := w.Update(named(other)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); err == nil {
		t.Errorf("what is not allowed any more goes on: %d bytes", n)
	}
}
