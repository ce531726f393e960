package certificate

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// How long what is made here holds.
const (
	authorityLife = 10 * 365 * 24 * time.Hour
	leafLife      = 90 * 24 * time.Hour
	renewBefore   = 30 * 24 * time.Hour
)

// Own is an authority in a directory, and the certificate that it gave this server.
// Make one with [OpenOwn].
type Own struct {
	root  *x509.Certificate
	key   crypto.Signer
	file  string
	fresh bool
	names []string
	now   func() time.Time

	leaf atomic.Pointer[tls.Certificate]
	busy atomic.Bool // somebody renews it
}

// OpenOwn reads the authority of a directory, or makes one that may name these hosts and
// addresses, and what is below the hosts. One that may not name all of them is replaced, and has to be trusted
// anew. A name may be a wildcard.
func OpenOwn(dir string, names []string) (*Own, error) { return openOwn(dir, names, time.Now) }

func openOwn(dir string, names []string, now func() time.Time) (*Own, error) {
	if len(names) == 0 {
		return nil, fmt.Errorf("a certificate without a name: %w", paddock.Invalid)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Denied)
	}
	o := &Own{file: filepath.Join(dir, "ca.pem"), names: names, now: now}
	err := o.read(filepath.Join(dir, "ca-key.pem"))
	if err == nil {
		err = o.renew()
	}
	if err == nil {
		return o, nil
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errReplace) {
		return nil, err
	}
	if err := o.make(filepath.Join(dir, "ca-key.pem")); err != nil {
		return nil, err
	}
	return o, o.renew()
}

// errReplace is of an authority that does not do any more.
var errReplace = errors.New("it does not do any more")

// File is where the authority's certificate is, for who is to trust it.
func (o *Own) File() string { return o.file }

// Fresh tells whether the authority was made just now, so that nobody trusts it.
func (o *Own) Fresh() bool { return o.fresh }

// read takes the authority that is there.
func (o *Own) read(keyFile string) error {
	info, err := os.Lstat(keyFile)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s: others may reach it (mode %04o); if they did not: chmod go= %s, and else remove it: %w", keyFile, info.Mode().Perm(), keyFile, paddock.Denied)
	}
	pair, err := tls.LoadX509KeyPair(o.file, keyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%s: %w; remove it, and a new authority is made: %w", keyFile, err, paddock.Invalid)
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !pair.Leaf.IsCA {
		return fmt.Errorf("%s is no authority; remove it, and one is made: %w", o.file, paddock.Invalid)
	}
	o.root, o.key = pair.Leaf, signer
	if o.root.NotAfter.Before(o.now().Add(leafLife)) || !slices.Contains([]string{"paddock"}, first(o.root.Subject.Organization)) {
		return errReplace
	}
	return nil
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// make makes an authority, and keeps the key before the certificate.
func (o *Own) make(keyFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	hosts, ranges := bounds(o.names)
	template := &x509.Certificate{
		SerialNumber:                serial(),
		Subject:                     pkix.Name{Organization: []string{"paddock"}, CommonName: "Paddock server at " + o.names[0]},
		NotBefore:                   o.now().Add(-time.Hour),
		NotAfter:                    o.now().Add(authorityLife),
		KeyUsage:                    x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		ExtKeyUsage:                 []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:                        true,
		BasicConstraintsValid:       true,
		MaxPathLenZero:              true,
		PermittedDNSDomainsCritical: true,
		PermittedDNSDomains:         hosts,
		PermittedIPRanges:           ranges,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return fmt.Errorf("make an authority: %w", err)
	}
	root, err := x509.ParseCertificate(der)
	if err != nil {
		return err
	}
	text, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := keep(keyFile, 0o600, "PRIVATE KEY", text); err != nil {
		return err
	}
	if err := keep(o.file, 0o644, "CERTIFICATE", der); err != nil {
		return err
	}
	o.root, o.key, o.fresh = root, key, true
	return nil
}

// bounds is what an authority may name: each host with what is below it, and each
// address alone. Without an address it may name none.
func bounds(names []string) (hosts []string, ranges []*net.IPNet) {
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			if four := ip.To4(); four != nil {
				ip = four
			}
			ranges = append(ranges, &net.IPNet{IP: ip, Mask: net.CIDRMask(8*len(ip), 8*len(ip))})
			continue
		}
		if host := strings.TrimPrefix(name, "*."); !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	if len(ranges) == 0 {
		ranges = append(ranges, &net.IPNet{IP: net.IPv4(127, 0, 0, 1).To4(), Mask: net.CIDRMask(32, 32)})
	}
	return hosts, ranges
}

func serial() *big.Int {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[0] = b[0]&0x7f | 0x40
	return new(big.Int).SetBytes(b[:])
}

// keep writes a file whole, or not at all.
func keep(name string, mode fs.FileMode, kind string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".") // of mode 0600
	if err != nil {
		return fmt.Errorf("%w: %w", err, paddock.Denied)
	}
	_, err = f.Write(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}))
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("keep %s: %w", name, errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// renew gives the server a certificate, if the authority may.
func (o *Own) renew() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: serial(),
		Subject:      pkix.Name{Organization: []string{"paddock"}},
		NotBefore:    o.now().Add(-time.Hour),
		NotAfter:     o.now().Add(leafLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range o.names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, o.root, key.Public(), o.key)
	if err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AddCert(o.root)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: o.now()}); err != nil {
		return fmt.Errorf("%w: %w", errReplace, err)
	}
	o.leaf.Store(&tls.Certificate{Certificate: [][]byte{der, bytes.Clone(o.root.Raw)}, PrivateKey: key, Leaf: leaf})
	return nil
}

// Get is for tls.Config.
func (o *Own) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	have := o.leaf.Load()
	if o.now().Add(renewBefore).Before(have.Leaf.NotAfter) || !o.busy.CompareAndSwap(false, true) {
		return have, nil
	}
	defer o.busy.Store(false)
	if err := o.renew(); err != nil && o.now().After(have.Leaf.NotAfter) {
		return nil, err // start the server anew, which makes another authority
	}
	return o.leaf.Load(), nil
}
