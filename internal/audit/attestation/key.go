package attestation

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit/chain"
)

// ParsePrivate reads a private key of Ed25519: PKCS #8 in PEM, or an OpenSSH private key without a passphrase.
func ParsePrivate(data []byte) (ed25519.PrivateKey, error) {
	b, _ := pem.Decode(data)
	if b == nil {
		return nil, fmt.Errorf("it is no private key in PEM or in OpenSSH's format: %w", paddock.Invalid)
	}
	var key any
	var err error
	switch b.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(b.Bytes)
	case "OPENSSH PRIVATE KEY":
		key, err = ssh.ParseRawPrivateKey(data)
	default:
		return nil, fmt.Errorf("it is %q, and no private key of PKCS #8 or OpenSSH: %w", b.Type, paddock.Invalid)
	}
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		return nil, fmt.Errorf("it is protected by a passphrase: %w", paddock.Unsupported)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Invalid)
	}
	switch key := key.(type) {
	case ed25519.PrivateKey:
		return key, nil
	case *ed25519.PrivateKey:
		return *key, nil
	}
	return nil, fmt.Errorf("it is no key of Ed25519: %w", paddock.Unsupported)
}

// ParsePublic reads a public key of Ed25519: in PEM, or as one line of OpenSSH's authorized_keys.
func ParsePublic(data []byte) (ed25519.PublicKey, error) {
	if b, _ := pem.Decode(data); b != nil {
		return chain.ParsePublic(data)
	}
	key, _, _, rest, err := ssh.ParseAuthorizedKey(data)
	if err != nil {
		return nil, fmt.Errorf("it is no public key in PEM, and no line of authorized_keys: %w", paddock.Invalid)
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return nil, fmt.Errorf("it has more than one line: %w", paddock.Invalid)
	}
	if c, ok := key.(ssh.CryptoPublicKey); ok {
		if public, ok := c.CryptoPublicKey().(ed25519.PublicKey); ok {
			return public, nil
		}
	}
	return nil, fmt.Errorf("it is a key of the type %s, and not ssh-ed25519: %w", key.Type(), paddock.Unsupported)
}
