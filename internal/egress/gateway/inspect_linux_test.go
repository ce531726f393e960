package gateway_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/authority"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/egress/gateway"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/egress/netstack"
)

// web answers each request with a description of the request.
func web(t *testing.T, secure *tls.Config) uint16 {
	t.Helper()
	return serve(t, func(c *net.TCPConn) {
		var conn net.Conn = c
		if secure != nil {
			conn = tls.Server(c, secure)
		}
		r := bufio.NewReader(conn)
		for {
			q, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			n, _ := io.Copy(io.Discard, q.Body)
			body := fmt.Sprintf("%s %s %s %s %d", q.Method, q.Host, q.URL.Path, q.Header.Get("Authorization"), n)
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		}
	})
}

// say sends one request verbatim, and returns the answer's status and body.
func say(t *testing.T, c net.Conn, r *bufio.Reader, request string) (int, string) {
	t.Helper()
	if _, err := io.WriteString(c, strings.ReplaceAll(request, "\n", "\r\n")); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func TestEachPlainRequestIsJudged(t *testing.T) {
	port := web(t, nil)
	limited := allow("a.test", port)
	limited.Limits = &paddock.NetworkLimits{Requests: 4}
	w := open(t, gateway.Options{Policy: policy(limited)})
	c := w.reach(t, "a.test", port)
	r := bufio.NewReader(c)
	if code, body := say(t, c, r, fmt.Sprintf("GET /one HTTP/1.1\nHost: a.test:%d\n\n", port)); code != 200 || !strings.HasPrefix(body, "GET a.test") {
		t.Fatalf("%d, %s", code, body)
	}
	if code, body := say(t, c, r, fmt.Sprintf("POST /two HTTP/1.1\nHost: a.test:%d\nContent-Length: 3\n\nabc", port)); code != 200 || !strings.HasSuffix(body, " 3") {
		t.Fatalf("%d, %s", code, body)
	}
	if code, body := say(t, c, r, fmt.Sprintf("GET /three HTTP/1.1\nHost: b.test:%d\n\n", port)); code == 200 {
		t.Fatalf("a request for another host: %d, %s", code, body)
	}
	w.record.waitFor(t, func(e gatewayclient.Event) bool {
		return e.Kind == gatewayclient.KindHTTP && e.Path == "/two" && e.Verdict == gatewayclient.VerdictAllow && e.Status == 200
	})
}

func TestTheProxyCarriesWhatTheRulesAllow(t *testing.T) {
	port := web(t, nil)
	w := open(t, gateway.Options{Policy: policy(allow("a.test", port))})
	proxy := func() (net.Conn, *bufio.Reader) {
		c, err := w.DialAddr(t.Context(), netip.AddrPortFrom(netstack.Gateway4(), netstack.ProxyPort))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c, bufio.NewReader(c)
	}
	c, r := proxy()
	if code, body := say(t, c, r, fmt.Sprintf("GET http://a.test:%d/one HTTP/1.1\nHost: a.test:%d\n\n", port, port)); code != 200 || !strings.Contains(body, "/one") {
		t.Fatalf("%d, %s", code, body)
	}
	if code, body := say(t, c, r, "GET http://b.test/two HTTP/1.1\nHost: b.test\n\n"); code != 403 || !strings.Contains(body, "b.test") {
		t.Fatalf("a host that no rule allows: %d, %s", code, body)
	}
	w.record.waitFor(t, denied("b.test", ""))
	c, r = proxy()
	if code, body := say(t, c, r, "CONNECT b.test:443 HTTP/1.1\nHost: b.test:443\n\n"); code != 403 {
		t.Fatalf("a tunnel that no rule allows: %d, %s", code, body)
	}
	c, r = proxy()
	if _, err := io.WriteString(c, fmt.Sprintf("CONNECT a.test:%d HTTP/1.1\r\nHost: a.test:%d\r\n\r\n", port, port)); err != nil {
		t.Fatal(err)
	}
	if line, err := r.ReadString('\n'); err != nil || !strings.Contains(line, " 200 ") {
		t.Fatalf("a tunnel: %q, %v", line, err)
	}
	for line := "-"; line != "\r\n"; {
		var err error
		if line, err = r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if code, body := say(t, c, r, fmt.Sprintf("GET /three HTTP/1.1\nHost: a.test:%d\n\n", port)); code != 200 || !strings.Contains(body, "/three") {
		t.Fatalf("in the tunnel: %d, %s", code, body)
	}
}

func TestTLSIsLookedIntoWhereARuleWantsItAndSecretsArePutIn(t *testing.T) {
	cert, pool := trusted(t, "a.test")
	port := web(t, &tls.Config{Certificates: []tls.Certificate{cert}})
	looked := allow("a.test", port)
	looked.Methods, looked.Paths = []string{"GET"}, []string{"/ok/**"}
	p := policy(looked)
	p.Secrets = []paddock.Secret{{Name: "TOKEN", Value: "the-value-of-the-token", Hosts: []string{fmt.Sprintf("a.test:%d", port)}}}
	rules, err := decide.Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := authority.New(rules.Inspected(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	w := open(t, gateway.Options{Policy: p, Authority: ca, Roots: pool})
	placeholder := w.Environment()["TOKEN"]
	if placeholder == "" || strings.Contains(placeholder, "value") {
		t.Fatalf("the placeholder is %q", placeholder)
	}
	own := x509.NewCertPool()
	own.AppendCertsFromPEM(ca.PEM())
	c := tls.Client(w.reach(t, "a.test", port), &tls.Config{ServerName: "a.test", RootCAs: own})
	r := bufio.NewReader(c)
	code, body := say(t, c, r, fmt.Sprintf("GET /ok/one HTTP/1.1\nHost: a.test:%d\nAuthorization: Bearer %s\n\n", port, placeholder))
	// The server got the value; the guest gets the placeholder back.
	if code != 200 || !strings.Contains(body, "Bearer "+placeholder) {
		t.Fatalf("%d, %s", code, body)
	}
	e := w.record.waitFor(t, func(e gatewayclient.Event) bool { return e.Kind == gatewayclient.KindHTTP && e.Path == "/ok/one" })
	if len(e.Secrets) != 1 || e.Secrets[0] != "TOKEN" || e.Verdict != gatewayclient.VerdictAllow {
		t.Fatalf("what was told: %+v", e)
	}
	code, body = say(t, c, r, fmt.Sprintf("GET /other HTTP/1.1\nHost: a.test:%d\n\n", port))
	if code != 403 {
		t.Fatalf("a path that no rule allows: %d, %s", code, body)
	}
	w.record.waitFor(t, func(e gatewayclient.Event) bool {
		return e.Kind == gatewayclient.KindHTTP && e.Path == "/other" && e.Verdict == gatewayclient.VerdictDeny
	})
	// Hosts for which the authority is not valid cannot be added later.
	more := allow("b.test", port)
	more.Inspect = true
	if err := w.Update(policy(looked, more)); paddock.KindOf(err) != paddock.Unsupported {
		t.Fatalf("an update that wants TLS of another host ended: %v", err)
	}
	if err := w.Update(paddock.NetworkPolicy{Mode: paddock.NetworkList}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Fatalf("the connection goes on: %v", err)
	}
}

// authorityFor makes the authority that a sandbox with a policy has.
func authorityFor(t *testing.T, p paddock.NetworkPolicy) *authority.CA {
	t.Helper()
	rules, err := decide.Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := authority.New(rules.Inspected(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// A rule allows the request, and what is behind its host does not: that is a refusal too.
func TestARefusalBehindAnAllowedHostIsToldWithWhatHelps(t *testing.T) {
	port := web(t, nil)
	looked := allow("a.test", port)
	looked.Methods = []string{"GET"}
	request := fmt.Sprintf("GET /x HTTP/1.1\nHost: a.test:%d\n\n", port)
	ca := authorityFor(t, policy(looked))
	w := open(t, gateway.Options{Policy: paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{looked}}, Authority: ca})
	c := w.reach(t, "a.test", port)
	code, body := say(t, c, bufio.NewReader(c), request)
	hint := fmt.Sprintf("--allow 127.0.0.1:%d", port)
	if code != 403 || !strings.Contains(body, "127.0.0.1 is loopback") || !strings.Contains(body, "how to allow it: "+hint) {
		t.Errorf("%d, %s", code, body)
	}
	e := w.record.waitFor(t, func(e gatewayclient.Event) bool { return e.Kind == gatewayclient.KindHTTP && e.Path == "/x" })
	if e.Verdict != gatewayclient.VerdictDeny || e.Hint != hint || !strings.Contains(e.Reason, "loopback") || strings.Contains(e.Reason, "dial ") {
		t.Errorf("it was told as %+v", e)
	}

	followed := open(t, gateway.Options{Policy: paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{looked, allow("127.0.0.1", port)}}, Authority: ca})
	c = followed.reach(t, "a.test", port)
	if code, body := say(t, c, bufio.NewReader(c), request); code != 200 {
		t.Errorf("the hint did not help: %d, %s", code, body)
	}
}

func TestAnAuthorityThatIsNotTrustedIsToldWithTheVariable(t *testing.T) {
	cert, _ := trusted(t, "a.test")
	port := web(t, &tls.Config{Certificates: []tls.Certificate{cert}})
	looked := allow("a.test", port)
	looked.Methods = []string{"GET"}
	p := policy(looked)
	ca := authorityFor(t, p)
	w := open(t, gateway.Options{Policy: p, Authority: ca, Roots: x509.NewCertPool()})
	own := x509.NewCertPool()
	own.AppendCertsFromPEM(ca.PEM())
	c := tls.Client(w.reach(t, "a.test", port), &tls.Config{ServerName: "a.test", RootCAs: own})
	code, body := say(t, c, bufio.NewReader(c), fmt.Sprintf("GET /x HTTP/1.1\nHost: a.test:%d\n\n", port))
	if code != 502 || !strings.Contains(body, "SSL_CERT_FILE=") {
		t.Errorf("%d, %s", code, body)
	}
	e := w.record.waitFor(t, func(e gatewayclient.Event) bool { return e.Kind == gatewayclient.KindHTTP && e.Path == "/x" })
	if e.Verdict != gatewayclient.VerdictDeny || !strings.Contains(e.Hint, "SSL_CERT_FILE=") || !strings.Contains(e.Reason, "certificate of a.test is not valid") {
		t.Errorf("it was told as %+v", e)
	}
}
