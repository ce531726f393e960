package attestation

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/paddock-sandbox/paddock/internal/audit/chain"
)

func pkcs8(t testing.TB, key crypto.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func openSSH(t testing.TB, key crypto.PrivateKey, passphrase string) []byte {
	t.Helper()
	var b *pem.Block
	var err error
	if passphrase == "" {
		b, err = ssh.MarshalPrivateKey(key, "me@work")
	} else {
		b, err = ssh.MarshalPrivateKeyWithPassphrase(key, "me@work", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(b)
}

func authorized(t testing.TB, key crypto.PublicKey) []byte {
	t.Helper()
	public, err := ssh.NewPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return ssh.MarshalAuthorizedKey(public)
}

func TestAKeyIsReadInEachForm(t *testing.T) {
	key, public := keyOf(1)
	asPEM, err := chain.PublicPEM(public)
	if err != nil {
		t.Fatal(err)
	}
	line := authorized(t, public)
	for _, private := range [][]byte{pkcs8(t, key), openSSH(t, key, "")} {
		got, err := ParsePrivate(private)
		if err != nil || !got.Equal(key) {
			t.Fatalf("%s: %v", private, err)
		}
		data := signed(t, example(), got)
		for _, form := range [][]byte{asPEM, line, append(bytes.TrimSpace(line), " me@work\n"...), append([]byte("# my key\n\n"), line...)} {
			have, err := ParsePublic(form)
			if err == nil {
				_, err = Open(data, have)
			}
			if err != nil {
				t.Errorf("%s: %v", form, err)
			}
		}
	}
}

func TestAnotherKeyIsRefusedWithTheReason(t *testing.T) {
	key, public := keyOf(1)
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for want, data := range map[string][]byte{
		"no private key in PEM":     []byte("hello"),
		"protected by a passphrase": openSSH(t, key, "secret"),
		"is no key of Ed25519":      pkcs8(t, other),
		`it is "EC PRIVATE KEY"`:    pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY"}),
		"asn1":                      pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}),
		"ssh: ":                     pem.EncodeToMemory(&pem.Block{Type: "OPENSSH PRIVATE KEY", Bytes: []byte("x")}),
	} {
		if _, err := ParsePrivate(data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := ParsePrivate(openSSH(t, other, "")); err == nil || !strings.Contains(err.Error(), "is no key of Ed25519") {
		t.Errorf("ECDSA of OpenSSH: %v", err)
	}
	line := authorized(t, public)
	for want, data := range map[string][]byte{
		"no public key in PEM, and no line": []byte("hello"),
		"more than one line":                append(bytes.Clone(line), line...),
		"and not ssh-ed25519":               authorized(t, other.Public()),
		"it is no public key in PEM":        pkcs8(t, key),
	} {
		if _, err := ParsePublic(data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func FuzzAKey(f *testing.F) {
	key, public := keyOf(1)
	asPEM, err := chain.PublicPEM(public)
	if err != nil {
		f.Fatal(err)
	}
	for _, data := range [][]byte{pkcs8(f, key), openSSH(f, key, ""), asPEM, authorized(f, public)} {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if key, err := ParsePrivate(data); err == nil {
			signed(t, example(), key)
		}
		if key, err := ParsePublic(data); err == nil {
			if _, err := KeyID(key); err != nil {
				t.Errorf("%q: %v", data, err)
			}
		}
	})
}
