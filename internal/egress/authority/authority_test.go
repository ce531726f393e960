package authority

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

func patterns(t *testing.T, texts ...string) []decide.Pattern {
	t.Helper()
	var list []decide.Pattern
	for _, text := range texts {
		p, err := decide.ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	return list
}

func host(t *testing.T, text string) decide.Host {
	t.Helper()
	h, err := decide.ParseHost(text)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func authority(t *testing.T, texts ...string) *CA {
	t.Helper()
	ca, err := New(patterns(t, texts...), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// verify checks a leaf as a client that trusts only this authority.
func verify(t *testing.T, ca *CA, leaf *x509.Certificate, name string) error {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca.PEM()) {
		t.Fatal("the authority's certificate is none")
	}
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: name})
	return err
}

func TestACertificateIsGoodForItsHostAlone(t *testing.T) {
	ca := authority(t, "a.example", "*.b.example", "10.0.0.0/8", "::1")
	for _, name := range []string{"a.example", "x.b.example", "x.y.b.example", "10.1.2.3", "::1"} {
		leaf, err := ca.Leaf(host(t, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := verify(t, ca, leaf.Leaf, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if verify(t, ca, leaf.Leaf, "other.example") == nil {
			t.Errorf("the certificate for %s is good for another", name)
		}
		if again, err := ca.Leaf(host(t, name)); err != nil || again != leaf {
			t.Errorf("%s: it is made again", name)
		}
	}
}

func TestWhatIsNotCoveredGetsNoCertificate(t *testing.T) {
	ca := authority(t, "a.example", "*.b.example", "10.0.0.0/8")
	for _, name := range []string{"example", "aa.example", "c.example", "11.0.0.1", "::1", "a.example.org"} {
		if _, err := ca.Leaf(host(t, name)); !errors.Is(err, paddock.Denied) {
			t.Errorf("%s: %v", name, err)
		}
		// Even with its key nobody can issue a certificate for it.
		leaf, err := ca.sign(host(t, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := verify(t, ca, leaf.Leaf, name); err == nil {
			t.Errorf("%s: a certificate for it is believed", name)
		}
	}
}

func TestAnAuthorityOfNoHostsOrNoAddressesVouchesForNone(t *testing.T) {
	for texts, names := range map[string][]string{"": {"a.example", "invalid.example", "10.0.0.1", "::1"}, "10.0.0.0/8": {"a.example"}, "a.example": {"10.0.0.1", "::1"}} {
		ca := authority(t, strings.Fields(texts)...)
		for _, name := range names {
			leaf, err := ca.sign(host(t, name))
			if err != nil {
				t.Fatal(err)
			}
			if err := verify(t, ca, leaf.Leaf, name); err == nil || ca.coversHost(host(t, name)) {
				t.Errorf("an authority for %q vouches for %s", texts, name)
			}
		}
	}
}

func TestCoversIsWhatCertificatesCanBeMadeFor(t *testing.T) {
	ca := authority(t, "*.a.example", "10.0.0.0/8", "2001:db8::/32")
	for text, want := range map[string]bool{
		"*.a.example": true, "x.a.example": true, "*.x.a.example": true, "a.example": true, "*.example": false, "*": false, "10.1.0.0/16": true, "10.1.1.1": true, "8.0.0.0/6": false, "11.1.1.1": false,
		"2001:db8:1::/48": true, "::/0": false,
	} {
		if ca.Covers(patterns(t, text)[0]) != want {
			t.Errorf("%s is covered: %v", text, !want)
		}
	}
	if all := authority(t, "a.example", "*"); !all.Covers(patterns(t, "*")[0]) || !all.Covers(patterns(t, "10.0.0.0/8")[0]) {
		t.Error("everything does not cover everything")
	}
}

func TestAnAuthorityCanBeKeptAndReadAgain(t *testing.T) {
	ca := authority(t, "a.example", "10.0.0.0/8")
	key, err := ca.Key()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(ca.PEM(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := again.Leaf(host(t, "a.example"))
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(t, ca, leaf.Leaf, "a.example"); err != nil {
		t.Error(err)
	}
	if !again.Covers(patterns(t, "10.0.0.1")[0]) || again.Covers(patterns(t, "b.example")[0]) {
		t.Error("it covers something else")
	}
	other, err := authority(t, "a.example").Key()
	if err != nil {
		t.Fatal(err)
	}
	for name, pair := range map[string][2][]byte{"another key": {ca.PEM(), other}, "no key": {ca.PEM(), nil}, "no certificate": {nil, key}, "swapped": {key, ca.PEM()}, "more": {append(ca.PEM(), ca.PEM()...), key}} {
		if _, err := Parse(pair[0], pair[1]); !errors.Is(err, paddock.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnAuthorityLivesThirtyDaysFromADayAgo(t *testing.T) {
	now := time.Now()
	ca := authority(t, "a.example")
	if d := now.Sub(ca.certificate.NotBefore); d < 23*time.Hour || d > 25*time.Hour {
		t.Errorf("it begins %s before now", d)
	}
	old, err := New(patterns(t, "a.example"), now.Add(-31*24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.Leaf(host(t, "a.example")); !errors.Is(err, paddock.Unavailable) {
		t.Errorf("an old one: %v", err)
	}
}

func TestCertificatesKeptAreBounded(t *testing.T) {
	ca := authority(t, "*.a.example")
	for i := range most + 10 {
		if _, err := ca.Leaf(host(t, fmt.Sprintf("n%d.a.example", i))); err != nil {
			t.Fatal(err)
		}
	}
	if len(ca.leaves) > most {
		t.Errorf("%d are kept", len(ca.leaves))
	}
}

// Another library interprets the constraints in the same way.
func TestOpenSSLBelievesTheSame(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("no openssl")
	}
	ca := authority(t, "a.example", "10.0.0.0/8")
	dir := t.TempDir()
	root := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(root, ca.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"a.example": true, "b.a.example": true, "b.example": false, "10.1.1.1": true, "11.1.1.1": false, "::1": false} {
		leaf, err := ca.sign(host(t, name))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "leaf.pem")
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: leaf.Certificate[0]}), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), openssl, "verify", "-x509_strict", "-CAfile", root, file).CombinedOutput()
		if (err == nil) != want {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}
