package attestation

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"

	"golang.org/x/crypto/ssh"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of keys. An RSA key below the first is weak; one above the second only takes time.
const (
	minRSA = 2048
	maxRSA = 8192

	maxSignature = maxRSA / 8
)

// A Signer signs the bytes of an envelope. A signature is that of Ed25519 over the bytes, of ECDSA over their SHA-256 in
// ASN.1, or of RSA (PKCS #1 v1.5) over their SHA-256: what verifiers of DSSE expect of a key of the kind.
type Signer interface {
	Public() crypto.PublicKey
	Sign(message []byte) ([]byte, error)
}

// NewSigner returns the Signer of a private key.
func NewSigner(key crypto.Signer) (Signer, error) {
	if err := usable(key.Public()); err != nil {
		return nil, err
	}
	return own{key}, nil
}

type own struct{ key crypto.Signer }

func (o own) Public() crypto.PublicKey { return o.key.Public() }

func (o own) Sign(message []byte) ([]byte, error) {
	hash := crypto.Hash(0)
	if _, whole := o.key.Public().(ed25519.PublicKey); !whole {
		sum := sha256.Sum256(message)
		message, hash = sum[:], crypto.SHA256
	}
	sig, err := o.key.Sign(rand.Reader, message, hash)
	if err != nil {
		return nil, fmt.Errorf("sign: %w: %w", err, paddock.Invalid)
	}
	return sig, nil
}

// usable returns why attestations cannot be signed with a key.
func usable(key crypto.PublicKey) error {
	switch key := key.(type) {
	case ed25519.PublicKey:
		if len(key) == ed25519.PublicKeySize {
			return nil
		}
	case *ecdsa.PublicKey:
		if key.Curve == elliptic.P256() {
			return nil
		}
		return fmt.Errorf("it is a key of ECDSA with the curve %s: verifiers differ in the hash, so that only P-256 signs: %w", key.Params().Name, paddock.Unsupported)
	case *rsa.PublicKey:
		if n := key.N.BitLen(); n < minRSA || n > maxRSA {
			return fmt.Errorf("it is a key of RSA with %d bits, and may have from %d to %d: %w", n, minRSA, maxRSA, paddock.Unsupported)
		}
		return nil
	}
	return fmt.Errorf("it is no key of Ed25519, of ECDSA with P-256, or of RSA: %w", paddock.Unsupported)
}

// verified reports whether a key signed a message.
func verified(key crypto.PublicKey, message, sig []byte) bool {
	if usable(key) != nil {
		return false
	}
	sum := sha256.Sum256(message)
	switch key := key.(type) {
	case ed25519.PublicKey:
		return ed25519.Verify(key, message, sig)
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(key, sum[:], sig)
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], sig) == nil
	}
	return false
}

// KeyID returns the ID of a key in envelopes: its fingerprint as ssh-keygen prints it. Verifiers that know only the key
// compute the same.
func KeyID(key crypto.PublicKey) (string, error) {
	public, err := ssh.NewPublicKey(key)
	if err != nil {
		return "", fmt.Errorf("%w: %w", err, paddock.Invalid)
	}
	return ssh.FingerprintSHA256(public), nil
}

// Fingerprint identifies a public key in the way of records: "sha256:" and the SHA-256 of its SubjectPublicKeyInfo.
func Fingerprint(key crypto.PublicKey) string {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "" // no such key
	}
	hash := sha256.Sum256(der)
	return "sha256:" + hex.EncodeToString(hash[:])
}
