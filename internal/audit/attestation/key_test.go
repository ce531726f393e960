package attestation

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit/chain"
)

// hardware is a public key of a hardware token.
const hardware = "AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4fAAAABHNzaDo="

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

// kinds are keys of each kind that signs.
func kinds(t testing.TB) map[string]crypto.Signer {
	t.Helper()
	key, _ := keyOf(1)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	numbers, err := rsa.GenerateKey(rand.Reader, minRSA)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]crypto.Signer{"Ed25519": key, "ECDSA": curve, "RSA": numbers}
}

func spki(t testing.TB, key crypto.PublicKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func TestAKeyOfEachKindIsReadInEachForm(t *testing.T) {
	for name, key := range kinds(t) {
		line := authorized(t, key.Public())
		forms := [][]byte{pkcs8(t, key), openSSH(t, key, ""), openSSH(t, key, "secret")}
		switch key := key.(type) {
		case *ecdsa.PrivateKey:
			der, err := x509.MarshalECPrivateKey(key)
			if err != nil {
				t.Fatal(err)
			}
			forms = append(forms, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
		case *rsa.PrivateKey:
			forms = append(forms, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
		}
		for i, private := range forms {
			asked := 0
			signer, err := ParsePrivate(private, func() ([]byte, error) { asked++; return []byte("secret"), nil })
			if err != nil || asked > 0 != (i == 2) {
				t.Fatalf("%s: %s: asked %d times, %v", name, private, asked, err)
			}
			data, err := Sign(example(), signer)
			if err != nil {
				t.Fatal(err)
			}
			for _, form := range [][]byte{spki(t, key.Public()), line, append(bytes.TrimSpace(line), " me@work\n"...), append([]byte("# my key\n\n"), line...)} {
				have, err := ParsePublic(form)
				if err == nil {
					_, err = Open(data, have)
				}
				if err != nil {
					t.Errorf("%s: %s: %v", name, form, err)
				}
			}
			if i == 0 {
				everyByteCounts(t, name, data, key.Public())
			}
		}
	}
}

func everyByteCounts(t *testing.T, name string, data []byte, public crypto.PublicKey) {
	t.Helper()
	for i := range data {
		changed := bytes.Clone(data)
		changed[i] ^= 1
		if _, err := Open(changed, public); err == nil {
			t.Fatalf("%s: byte %d, %q, can be %q", name, i, data[i], changed[i])
		}
	}
}

func TestTheFingerprintIsThatOfRecords(t *testing.T) {
	_, public := keyOf(1)
	if got := Fingerprint(public); got != chain.Fingerprint(public) || got == "" {
		t.Errorf("%q", got)
	}
	if got := Fingerprint("no key"); got != "" {
		t.Errorf("%q", got)
	}
}

func TestAnotherKeyIsRefusedWithTheReason(t *testing.T) {
	key, public := keyOf(1)
	other, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for want, data := range map[string][]byte{
		"no private key in PEM":     []byte("hello"),
		"protected by a passphrase": openSSH(t, key, "secret"),
		"with the curve P-384":      pkcs8(t, other),
		"in PKCS #8; only keys of":  pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY"}),
		"in the way of old PEM":     pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Headers: map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-128-CBC,00"}}),
		`it is "DSA PRIVATE KEY"`:   pem.EncodeToMemory(&pem.Block{Type: "DSA PRIVATE KEY"}),
		"asn1":                      pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}),
		"ssh: ":                     pem.EncodeToMemory(&pem.Block{Type: "OPENSSH PRIVATE KEY", Bytes: []byte("x")}),
	} {
		if _, err := ParsePrivate(data, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	wrong := func() ([]byte, error) { return []byte("wrong"), nil }
	if _, err := ParsePrivate(openSSH(t, key, "secret"), wrong); !errors.Is(err, paddock.Denied) {
		t.Errorf("a wrong passphrase: %v", err)
	}
	line := authorized(t, public)
	for want, data := range map[string][]byte{
		"no public key in PEM, and no line": []byte("hello"),
		"more than one line":                append(bytes.Clone(line), line...),
		"with the curve P-384":              authorized(t, other.Public()),
		`but "PRIVATE KEY"`:                 pkcs8(t, key),
		"which signs no plain bytes":        []byte("sk-ssh-ed25519@openssh.com " + hardware + "\n"),
	} {
		if _, err := ParsePublic(data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	for bits, good := range map[int]bool{minRSA - 8: false, minRSA: true, maxRSA + 8: false} {
		n := new(big.Int).Lsh(big.NewInt(1), uint(bits-1))
		if err := usable(&rsa.PublicKey{N: n.SetBit(n, 0, 1), E: 65537}); (err == nil) != good {
			t.Errorf("RSA with %d bits: %v", bits, err)
		}
	}
}

// A key that lies about its public half, as a broken agent would.
type liar struct{ Signer }

func (liar) Sign([]byte) ([]byte, error) { return make([]byte, 64), nil }

func TestASignerIsNotTrusted(t *testing.T) {
	key, _ := keyOf(1)
	signer, err := NewSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := Sign(example(), liar{signer}); !errors.Is(err, paddock.Invalid) {
		t.Errorf("%s, %v", data, err)
	}
}

func TestAnAgentSignsLikeItsKey(t *testing.T) {
	ring, ok := agent.NewKeyring().(agent.ExtendedAgent)
	if !ok {
		t.Fatal("the keyring is no agent")
	}
	for name, key := range kinds(t) {
		if _, err := ofAgent(ring, key.Public()); !errors.Is(err, paddock.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
		if err := ring.Add(agent.AddedKey{PrivateKey: key}); err != nil {
			t.Fatal(err)
		}
		signer, err := ofAgent(ring, key.Public())
		if err != nil {
			t.Fatal(err)
		}
		data, err := Sign(example(), signer)
		if err == nil {
			_, err = Open(data, key.Public())
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzAKey(f *testing.F) {
	key, public := keyOf(1)
	for _, data := range [][]byte{pkcs8(f, key), openSSH(f, key, ""), spki(f, public), authorized(f, public)} {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if signer, err := ParsePrivate(data, nil); err == nil {
			if _, err := Sign(example(), signer); err != nil {
				t.Logf("%q: %v", data, err) // a key of RSA whose numbers are wrong
			}
		}
		if key, err := ParsePublic(data); err == nil {
			if _, err := KeyID(key); err != nil {
				t.Errorf("%q: %v", data, err)
			}
		}
	})
}
