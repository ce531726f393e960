package certificate

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"github.com/paddock-sandbox/paddock"
)

// mostNew is how many hosts beside the domain may get a certificate within a day.
// Let's Encrypt gives 50 in a week for one registered domain
// (https://letsencrypt.org/docs/rate-limits/), renewals not counted.
const mostNew = 7

// ACMEOptions is what is needed to ask an authority.
type ACMEOptions struct {
	Domain    string // which always has a certificate
	Email     string // for the authority; may be empty
	Directory string // of the authority; empty is Let's Encrypt's
	Dir       string // where keys and certificates are kept

	// Allow agrees to a host beside the domain, or says why not; nil agrees to none.
	Allow func(ctx context.Context, host string) error

	// Client speaks with the authority; nil is http.DefaultClient.
	Client *http.Client

	// Now is the clock; nil is the machine's.
	Now func() time.Time
}

// ACME gets certificates from an authority, by the challenge tls-alpn-01. Make one with [NewACME].
type ACME struct {
	o ACMEOptions
	m *autocert.Manager

	mu    sync.Mutex
	fresh map[string]time.Time // guarded by mu; hosts that were agreed to
}

// NewACME makes one. It asks for nothing before the first connection. Whoever calls
// it agrees to the authority's terms.
func NewACME(o ACMEOptions) (*ACME, error) {
	if o.Domain == "" || o.Dir == "" {
		return nil, fmt.Errorf("ACME without a domain or a directory: %w", paddock.Invalid)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	a := &ACME{o: o, fresh: map[string]time.Time{}}
	a.m = &autocert.Manager{
		Prompt: autocert.AcceptTOS, Cache: autocert.DirCache(o.Dir), HostPolicy: a.allow, Email: o.Email,
		Client: &acme.Client{DirectoryURL: o.Directory, HTTPClient: o.Client, UserAgent: "paddock"},
	}
	if o.Directory == "" {
		a.m.Client.DirectoryURL = autocert.DefaultACMEDirectory
	}
	return a, nil
}

// Protocols are what a server offers beside its own, for the challenge.
func (a *ACME) Protocols() []string { return []string{acme.ALPNProto} }

// Get is for tls.Config. Each host has one certificate, with a key of ECDSA: who says
// that it needs RSA would make the server ask for another.
func (a *ACME) Get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	one := *hello
	one.SignatureSchemes = []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256}
	one.SupportedCurves = []tls.CurveID{tls.CurveP256}
	one.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
	return a.m.GetCertificate(&one)
}

// allow is asked about the host of every connection.
func (a *ACME) allow(ctx context.Context, host string) error {
	if strings.EqualFold(host, a.o.Domain) {
		return nil
	}
	if a.o.Allow == nil {
		return fmt.Errorf("host %q is not of this server: %w", host, paddock.Denied)
	}
	if err := a.o.Allow(ctx, host); err != nil {
		return err
	}
	if _, err := a.m.Cache.Get(ctx, host); err == nil {
		return nil // it has one, which is renewed
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.o.Now()
	for name, at := range a.fresh {
		if now.Sub(at) >= 24*time.Hour {
			delete(a.fresh, name)
		}
	}
	if _, again := a.fresh[host]; !again && len(a.fresh) >= mostNew {
		return fmt.Errorf("host %q: %d new hosts got a certificate within a day, and no more may: %w", host, len(a.fresh), paddock.Exhausted)
	}
	a.fresh[host] = now
	return nil
}
