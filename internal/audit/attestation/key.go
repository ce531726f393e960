package attestation

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"

	"github.com/paddock-sandbox/paddock"
)

// ParsePrivate reads a private key: of Ed25519, of ECDSA with P-256, or of RSA; in PEM (PKCS #8, or the older PKCS #1 and
// SEC 1) or in OpenSSH's format. If it is protected, passphrase is called, which may be nil.
func ParsePrivate(data []byte, passphrase func() ([]byte, error)) (Signer, error) {
	b, _ := pem.Decode(data)
	if b == nil {
		return nil, fmt.Errorf("it is no private key in PEM or in OpenSSH's format: %w", paddock.Invalid)
	}
	switch b.Type {
	case "PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY":
	case "ENCRYPTED PRIVATE KEY":
		return nil, fmt.Errorf("it is protected by a passphrase, in PKCS #8; only keys of OpenSSH may be: %w", paddock.Unsupported)
	default:
		return nil, fmt.Errorf("it is %q, and no private key of PKCS #8 or OpenSSH: %w", b.Type, paddock.Invalid)
	}
	key, err := ssh.ParseRawPrivateKey(data)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		if b.Type != "OPENSSH PRIVATE KEY" { // an older way, that holds nobody up
			return nil, fmt.Errorf("it is protected by a passphrase, in the way of old PEM; only keys of OpenSSH may be: %w", paddock.Unsupported)
		}
		if key, err = unlock(data, passphrase); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Invalid)
	}
	if old, ok := key.(*ed25519.PrivateKey); ok {
		key = *old
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, usable(nil)
	}
	return NewSigner(signer)
}

// unlock reads a protected key of OpenSSH.
func unlock(data []byte, passphrase func() ([]byte, error)) (any, error) {
	if passphrase == nil {
		return nil, fmt.Errorf("it is protected by a passphrase: %w", paddock.Unsupported)
	}
	text, err := passphrase()
	if err != nil {
		return nil, err
	}
	key, err := ssh.ParseRawPrivateKeyWithPassphrase(data, text)
	if errors.Is(err, x509.IncorrectPasswordError) {
		return nil, fmt.Errorf("the passphrase is not that of the key: %w", paddock.Denied)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Invalid)
	}
	return key, nil
}

// ParsePublic reads a public key of a kind that signs: in PEM, or as one line of OpenSSH's authorized_keys.
func ParsePublic(data []byte) (crypto.PublicKey, error) {
	if b, _ := pem.Decode(data); b != nil {
		if b.Type != "PUBLIC KEY" {
			return nil, fmt.Errorf("it is no public key in PEM, but %q: %w", b.Type, paddock.Invalid)
		}
		key, err := x509.ParsePKIXPublicKey(b.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", err, paddock.Invalid)
		}
		return key, usable(key)
	}
	key, _, _, rest, err := ssh.ParseAuthorizedKey(data)
	if err != nil {
		return nil, fmt.Errorf("it is no public key in PEM, and no line of authorized_keys: %w", paddock.Invalid)
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return nil, fmt.Errorf("it has more than one line: %w", paddock.Invalid)
	}
	if c, ok := key.(ssh.CryptoPublicKey); ok && key.Type() != ssh.KeyAlgoSKED25519 && key.Type() != ssh.KeyAlgoSKECDSA256 {
		public := c.CryptoPublicKey()
		return public, usable(public)
	}
	return nil, fmt.Errorf("it is a key of the type %s, which signs no plain bytes: %w", key.Type(), paddock.Unsupported)
}
