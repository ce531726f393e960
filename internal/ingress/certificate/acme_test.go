package certificate

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// An authority speaks as much of RFC 8555 as a client needs, and tries the challenge
// tls-alpn-01 (RFC 8737) as a real one does. It takes every signature for good.
type authority struct {
	*httptest.Server
	root   *x509.Certificate
	key    *ecdsa.PrivateKey
	server string // where the hosts lead to

	mu     sync.Mutex
	orders []*order // guarded by mu
}

type order struct {
	host  string
	valid bool
	chain []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: serial(), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key}
	if a.root, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /dir", func(w http.ResponseWriter, _ *http.Request) {
		a.say(w, 200, map[string]any{"newNonce": a.URL + "/nonce", "newAccount": a.URL + "/account", "newOrder": a.URL + "/order"})
	})
	mux.HandleFunc("/nonce", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Replay-Nonce", "n") })
	mux.HandleFunc("POST /account", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", a.URL+"/account/1")
		a.say(w, 201, map[string]any{"status": "valid"})
	})
	mux.HandleFunc("POST /order", a.order)
	mux.HandleFunc("POST /order/{n}", a.known(func(w http.ResponseWriter, n string, o *order) { a.tell(w, 200, n, o) }))
	mux.HandleFunc("POST /authz/{n}", a.known(a.authz))
	mux.HandleFunc("POST /challenge/{n}", a.known(a.challenge))
	mux.HandleFunc("POST /finalize/{n}", a.finalize)
	mux.HandleFunc("POST /cert/{n}", a.known(func(w http.ResponseWriter, _ string, o *order) {
		w.Header().Set("Replay-Nonce", "n")
		w.Header().Set("Content-Type", "application/pem-certificate-chain")
		_, _ = w.Write(o.chain)
	}))
	a.Server = httptest.NewTLSServer(mux)
	t.Cleanup(a.Close)
	return a
}

func (a *authority) say(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Replay-Nonce", "n")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // it is maps of strings
	}
	_, _ = w.Write(data)
}

// payload reads what a request says.
func payload(r *http.Request, v any) error {
	var body struct{ Payload string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return err
	}
	data, err := base64.RawURLEncoding.DecodeString(body.Payload)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

func (a *authority) order(w http.ResponseWriter, r *http.Request) {
	var ask struct{ Identifiers []struct{ Value string } }
	if err := payload(r, &ask); err != nil || len(ask.Identifiers) != 1 {
		a.say(w, 400, map[string]any{"type": "urn:ietf:params:acme:error:malformed"})
		return
	}
	a.mu.Lock()
	o := &order{host: ask.Identifiers[0].Value}
	n := fmt.Sprint(len(a.orders))
	a.orders = append(a.orders, o)
	a.mu.Unlock()
	w.Header().Set("Location", a.URL+"/order/"+n)
	a.tell(w, 201, n, o)
}

func (a *authority) known(f func(http.ResponseWriter, string, *order)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		n := r.PathValue("n")
		var i int
		_, err := fmt.Sscan(n, &i)
		a.mu.Lock()
		defer a.mu.Unlock()
		if err != nil || i < 0 || i >= len(a.orders) {
			http.NotFound(w, r)
			return
		}
		f(w, n, a.orders[i])
	}
}

// tell says how an order is.
func (a *authority) tell(w http.ResponseWriter, code int, n string, o *order) {
	answer := map[string]any{"status": "pending", "authorizations": []string{a.URL + "/authz/" + n}, "finalize": a.URL + "/finalize/" + n}
	if o.valid {
		answer["status"] = "ready"
	}
	if o.chain != nil {
		answer["status"], answer["certificate"] = "valid", a.URL+"/cert/"+n
	}
	a.say(w, code, answer)
}

func (a *authority) authz(w http.ResponseWriter, n string, o *order) {
	state := "pending"
	if o.valid {
		state = "valid"
	}
	a.say(w, 200, map[string]any{
		"status": state, "identifier": map[string]string{"type": "dns", "value": o.host},
		"challenges": []any{map[string]string{"type": "tls-alpn-01", "url": a.URL + "/challenge/" + n, "token": "token", "status": state}},
	})
}

// challenge looks whether the host answers as RFC 8737 wants.
func (a *authority) challenge(w http.ResponseWriter, n string, o *order) {
	conn, err := tls.Dial("tcp", a.server, &tls.Config{ServerName: o.host, NextProtos: []string{"acme-tls/1"}, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12})
	if err != nil {
		a.say(w, 400, map[string]any{"type": "urn:ietf:params:acme:error:connection", "detail": err.Error()})
		return
	}
	defer conn.Close()
	state := conn.ConnectionState()
	for _, e := range state.PeerCertificates[0].Extensions {
		if e.Id.Equal(asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 31}) && e.Critical && state.NegotiatedProtocol == "acme-tls/1" && state.PeerCertificates[0].DNSNames[0] == o.host {
			o.valid = true
		}
	}
	a.say(w, 200, map[string]string{"type": "tls-alpn-01", "url": a.URL + "/challenge/" + n, "token": "token", "status": "processing"})
}

func (a *authority) finalize(w http.ResponseWriter, r *http.Request) {
	var ask struct{ CSR string }
	bad := payload(r, &ask)
	a.known(func(w http.ResponseWriter, n string, o *order) {
		der, err := base64.RawURLEncoding.DecodeString(ask.CSR)
		csr, worse := x509.ParseCertificateRequest(der)
		if err = errors.Join(bad, err, worse); err != nil || !o.valid || csr.DNSNames[0] != o.host {
			a.say(w, 403, map[string]any{"type": "urn:ietf:params:acme:error:orderNotReady"})
			return
		}
		leaf := &x509.Certificate{
			SerialNumber: serial(), NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(90 * 24 * time.Hour),
			DNSNames: csr.DNSNames, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}
		made, err := x509.CreateCertificate(rand.Reader, leaf, a.root, csr.PublicKey, a.key)
		if err != nil {
			a.say(w, 500, map[string]any{"type": "urn:ietf:params:acme:error:serverInternal"})
			return
		}
		o.chain = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made})
		w.Header().Set("Location", a.URL+"/order/"+n)
		a.tell(w, 200, n, o)
	})(w, r)
}

func TestACMEGetsACertificateForWhoIsAgreedToAndNobodyElse(t *testing.T) {
	a := newAuthority(t)
	dir := filepath.Join(t.TempDir(), "acme")
	options := ACMEOptions{
		Domain: "box.example", Email: "who@box.example", Directory: a.URL + "/dir", Dir: dir, Client: a.Client(),
		Allow: func(_ context.Context, host string) error {
			if host != "80-a.box.example" {
				return fmt.Errorf("no: %w", paddock.Denied)
			}
			return nil
		},
	}
	m, err := NewACME(options)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a.server = l.Addr().String()
	s := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Minute}
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = s.Serve(tls.NewListener(l, &tls.Config{GetCertificate: m.Get, NextProtos: append([]string{"h2", "http/1.1"}, m.Protocols()...), MinVersion: tls.VersionTLS12}))
	})
	defer wg.Wait()
	defer s.Close()

	roots := x509.NewCertPool()
	roots.AddCert(a.root)
	for range 2 {
		for _, host := range []string{"box.example", "80-a.box.example"} {
			if _, err := shakes(t, m.Get, roots, host); err != nil {
				t.Errorf("%s: %v", host, err)
			}
		}
	}
	for _, host := range []string{"81-a.box.example", "other.example", "127.0.0.1"} {
		if _, err := shakes(t, m.Get, roots, host); err == nil {
			t.Errorf("%s has a certificate", host)
		}
	}
	if n := len(a.orders); n != 2 {
		t.Errorf("%d certificates were asked for, not 2", n)
	}

	// What was got is there for the next server.
	again, err := NewACME(options)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := shakes(t, again.Get, roots, "80-a.box.example"); err != nil || len(a.orders) != 2 {
		t.Errorf("%d were asked for: %v", len(a.orders), err)
	}
}

func TestACMEAsksForFewNewHostsADay(t *testing.T) {
	now := time.Now()
	m, err := NewACME(ACMEOptions{Domain: "box.example", Dir: t.TempDir(), Now: func() time.Time { return now }, Allow: func(context.Context, string) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(host string) error { return m.allow(t.Context(), host) }
	for i := range mostNew {
		if err := ask(fmt.Sprintf("80-%d.box.example", i)); err != nil {
			t.Error(err)
		}
	}
	if err := ask("80-x.box.example"); paddock.KindOf(err) != paddock.Exhausted {
		t.Errorf("one too many: %v", err)
	}
	if err := errors.Join(ask("80-0.box.example"), ask("box.example")); err != nil {
		t.Error(err)
	}
	now = now.Add(25 * time.Hour)
	if err := ask("80-x.box.example"); err != nil {
		t.Errorf("the next day: %v", err)
	}
	none, err := NewACME(ACMEOptions{Domain: "box.example", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := none.allow(t.Context(), "80-x.box.example"); paddock.KindOf(err) != paddock.Denied {
		t.Errorf("without who agrees: %v", err)
	}
	if _, err := NewACME(ACMEOptions{}); paddock.KindOf(err) != paddock.Invalid {
		t.Errorf("without a domain: %v", err)
	}
}
