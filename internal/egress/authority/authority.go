// Package authority is the certificate authority of one sandbox. It issues the certificates with which the gateway
// terminates TLS for inspection. Only that sandbox trusts it. Its own certificate constrains it to the hosts that it
// was made for, so every client that checks it refuses any other.
package authority

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

const (
	// backdate admits clients whose clocks are slow.
	backdate = 24 * time.Hour
	lifetime = 30 * 24 * time.Hour

	// most is the number of cached certificates. A guest can ask for any number of names of
	// a wildcard.
	most = 1024

	certificateBlock = "CERTIFICATE"
	keyBlock         = "PRIVATE KEY"
)

// A CA issues certificates. It is safe for concurrent use.
type CA struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	leafKey     *ecdsa.PrivateKey // key of all leaves; it never leaves this process

	mu     sync.Mutex
	leaves map[decide.Host]*tls.Certificate // guarded by mu
}

// New makes an authority for the hosts that the patterns match, valid from a day before now, because clocks differ, for
// thirty days. With "*" it covers all hosts; without patterns it covers none. A name constraint in a certificate
// includes the names below the name, and Covers reports accordingly.
func New(patterns []decide.Pattern, now time.Time) (*CA, error) {
	ca, err := create(patterns, now)
	if err != nil {
		return nil, fmt.Errorf("make a certificate authority: %w", err)
	}
	return ca, nil
}

func create(patterns []decide.Pattern, now time.Time) (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := serialNumber()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "Paddock sandbox " + serial.Text(36)[:8]},
		NotBefore:    now.Add(-backdate),
		NotAfter:     now.Add(lifetime),
		KeyUsage:     x509.KeyUsageCertSign,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},

		IsCA:                  true,
		MaxPathLenZero:        true,
		BasicConstraintsValid: true,
	}
	constrain(template, patterns)
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return assemble(der, key)
}

// constrain sets the name constraints of the certificate.
func constrain(template *x509.Certificate, patterns []decide.Pattern) {
	names, ranges := []string{}, []*net.IPNet{}
	for _, p := range patterns {
		if p.All() {
			return
		}
		if suffix, ok := p.Suffix(); ok {
			names = append(names, suffix)
		} else if prefix, ok := p.Prefix(); ok {
			ranges = append(ranges, network(prefix))
		} else if host, ok := p.Host(); ok {
			if addr, ok := host.Addr(); ok {
				ranges = append(ranges, network(netip.PrefixFrom(addr, addr.BitLen())))
			} else {
				names = append(names, host.String())
			}
		}
	}
	// Without a constraint for a type of name, every name of that type is permitted. So
	// permit only a name that does not exist, and exclude all addresses if none is wanted.
	if len(names) == 0 {
		names = []string{"invalid"}
	}
	template.PermittedDNSDomainsCritical = true
	template.PermittedDNSDomains = names
	template.PermittedIPRanges = ranges
	if len(ranges) == 0 {
		for _, all := range []string{"0.0.0.0/0", "::/0"} {
			template.ExcludedIPRanges = append(template.ExcludedIPRanges, network(netip.MustParsePrefix(all)))
		}
	}
}

func network(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func assemble(der []byte, key *ecdsa.PrivateKey) (*CA, error) {
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return &CA{certificate: certificate, key: key, leafKey: leafKey, leaves: map[decide.Host]*tls.Certificate{}}, nil
}

// Parse reads the output of PEM and Key. Any other input is Invalid.
func Parse(certificate, key []byte) (*CA, error) {
	ca, err := parse(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("read a certificate authority: %w: %w", err, paddock.Invalid)
	}
	return ca, nil
}

func parse(certificate, key []byte) (*CA, error) {
	der, rest := pem.Decode(certificate)
	if der == nil || der.Type != certificateBlock || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("not one certificate in PEM")
	}
	block, rest := pem.Decode(key)
	if block == nil || block.Type != keyBlock || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("not one key in PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	private, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errors.New("the key is not of this kind of authority")
	}
	ca, err := assemble(der.Bytes, private)
	if err != nil {
		return nil, err
	}
	if !ca.certificate.IsCA || !private.PublicKey.Equal(ca.certificate.PublicKey) {
		return nil, errors.New("the key is not the certificate's, or that is no authority's")
	}
	return ca, nil
}

// PEM returns the certificate for trust stores.
func (c *CA) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: c.certificate.Raw})
}

// Key returns the private key in PEM. It must not reach the sandbox.
func (c *CA) Key() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(c.key)
	if err != nil {
		return nil, fmt.Errorf("give the key of a certificate authority: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), nil
}

// Covers reports whether the authority can issue certificates for every host that p matches.
func (c *CA) Covers(p decide.Pattern) bool {
	if !c.certificate.PermittedDNSDomainsCritical {
		return true
	}
	if prefix, ok := p.Prefix(); ok {
		return c.coversRange(prefix)
	}
	if suffix, ok := p.Suffix(); ok {
		return c.coversName(suffix)
	}
	if host, ok := p.Host(); ok {
		return c.coversHost(host)
	}
	return false
}

func (c *CA) coversHost(h decide.Host) bool {
	if !c.certificate.PermittedDNSDomainsCritical {
		return true
	}
	if addr, ok := h.Addr(); ok {
		return c.coversRange(netip.PrefixFrom(addr, addr.BitLen()))
	}
	return c.coversName(h.String())
}

func (c *CA) coversName(name string) bool {
	for _, permitted := range c.certificate.PermittedDNSDomains {
		if name == permitted || strings.HasSuffix(name, "."+permitted) {
			return true
		}
	}
	return false
}

func (c *CA) coversRange(p netip.Prefix) bool {
	for _, permitted := range c.certificate.PermittedIPRanges {
		ones, bits := permitted.Mask.Size()
		if bits == p.Addr().BitLen() && ones <= p.Bits() && permitted.Contains(p.Addr().AsSlice()) {
			return true
		}
	}
	return false
}

// Leaf returns a certificate for h. A host that is not covered is Denied; an expired authority is Unavailable.
func (c *CA) Leaf(h decide.Host) (*tls.Certificate, error) {
	if !h.IsValid() || !c.coversHost(h) {
		return nil, fmt.Errorf("certificate for %s: this sandbox's authority was not made for it: %w", h, paddock.Denied)
	}
	if end := c.certificate.NotAfter; time.Now().After(end) {
		return nil, fmt.Errorf("certificate for %s: this sandbox's authority ended %s; make the sandbox again: %w", h, end.Format(time.DateOnly), paddock.Unavailable)
	}
	c.mu.Lock()
	leaf := c.leaves[h]
	c.mu.Unlock()
	if leaf != nil {
		return leaf, nil
	}
	leaf, err := c.sign(h)
	if err != nil {
		return nil, fmt.Errorf("certificate for %s: %w", h, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.leaves) >= most {
		clear(c.leaves)
	}
	c.leaves[h] = leaf
	return leaf, nil
}

func (c *CA) sign(h decide.Host) (*tls.Certificate, error) {
	serial, err := serialNumber()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "Paddock sandbox"},
		NotBefore:    c.certificate.NotBefore,
		NotAfter:     c.certificate.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},

		BasicConstraintsValid: true,
	}
	if addr, ok := h.Addr(); ok {
		template.IPAddresses = []net.IP{addr.AsSlice()}
	} else {
		template.DNSNames = []string{h.String()}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, c.certificate, c.leafKey.Public(), c.key)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: c.leafKey, Leaf: parsed}, nil
}

func serialNumber() (*big.Int, error) {
	// Set the highest bit, so that the number is never zero and always has the same length.
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 126))
	if err != nil {
		return nil, err
	}
	return n.SetBit(n, 126, 1), nil
}
