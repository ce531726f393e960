package signature_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image/signature"
)

const digest = "sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

func payload(digest, kind string) []byte {
	return fmt.Appendf(nil, `{"critical":{"image":{"docker-manifest-digest":%q},"type":%q}}`, digest, kind)
}

const cosign = "cosign container image signature"

func TestASignatureHoldsForItsKeyItsPayloadAndItsDigest(t *testing.T) {
	one, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, two, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	by := func(key crypto.Signer, data []byte) []byte {
		t.Helper()
		var value []byte
		var err error
		if key == one {
			sum := sha256.Sum256(data)
			value, err = key.Sign(rand.Reader, sum[:], crypto.SHA256)
		} else {
			value, err = key.Sign(nil, data, crypto.Hash(0))
		}
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	good := payload(digest, cosign)
	for _, key := range []crypto.Signer{one, two} {
		if !signature.Verify(key.Public(), digest, good, by(key, good)) {
			t.Errorf("%T: a good one is refused", key)
		}
		other := crypto.Signer(one)
		if key == one {
			other = two
		}
		for what, ok := range map[string]bool{
			"of another key":     signature.Verify(other.Public(), digest, good, by(key, good)),
			"of another payload": signature.Verify(key.Public(), digest, payload(digest, cosign+" "), by(key, good)),
			"of another digest":  signature.Verify(key.Public(), digest[:70]+"0", good, by(key, good)),
			"of no digest":       signature.Verify(key.Public(), "", payload("", cosign), by(key, payload("", cosign))),
			"of another kind":    signature.Verify(key.Public(), digest, payload(digest, "other"), by(key, payload(digest, "other"))),
			"that is none":       signature.Verify(key.Public(), digest, good, nil),
			"of no key":          signature.Verify(nil, digest, good, by(key, good)),
		} {
			if ok {
				t.Errorf("%T: one %s is accepted", key, what)
			}
		}
	}
}

func TestOnlyPublicKeysOfKnownKindsAreKeys(t *testing.T) {
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(weak.Public())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		data []byte
		kind error
	}{
		{nil, paddock.Invalid},
		{[]byte("hello"), paddock.Invalid},
		{pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}), paddock.Invalid},
		{pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte("x")}), paddock.Invalid},
		{pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), paddock.Unsupported},
	} {
		if key, err := signature.ParseKey(row.data); !errors.Is(err, row.kind) {
			t.Errorf("%q: %v, %v", row.data, key, err)
		}
	}
}

func FuzzVerify(f *testing.F) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	sum := sha256.Sum256(payload(digest, cosign))
	value, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		f.Fatal(err)
	}
	f.Add(payload(digest, cosign), value)
	f.Fuzz(func(t *testing.T, data, value []byte) {
		if signature.Verify(key.Public(), digest, data, value) && sha256.Sum256(data) != sum {
			t.Errorf("%q is taken for signed", data)
		}
	})
}
