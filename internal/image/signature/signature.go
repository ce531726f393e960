// Package signature verifies signatures of images in the format of cosign: a payload of "simple signing", a JSON
// document that names the digest of a manifest, signed with a key.
//
// Keys are ECDSA over SHA-256, and ed25519. There are no certificates and no transparency log: whoever demands a
// signature names the public key.
package signature

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"

	"github.com/paddock-sandbox/paddock"
)

const (
	maxKey = 16 << 10
	kind   = "cosign container image signature"
)

// ParseKey reads a public key in PEM, as `cosign generate-key-pair` and `openssl pkey -pubout` write it.
func ParseKey(data []byte) (crypto.PublicKey, error) {
	if len(data) > maxKey {
		return nil, fmt.Errorf("it is too long for a public key: %w", paddock.Invalid)
	}
	block, rest := pem.Decode(data)
	if block == nil || block.Type != "PUBLIC KEY" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, fmt.Errorf("it is no public key in PEM, which begins with -----BEGIN PUBLIC KEY-----: %w", paddock.Invalid)
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("it is no public key: %w: %w", err, paddock.Invalid)
	}
	switch key.(type) {
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return key, nil
	}
	return nil, fmt.Errorf("it is a key of a kind that is not used here; ECDSA and ed25519 are: %w", paddock.Unsupported)
}

// Fingerprint names a public key.
func Fingerprint(key crypto.PublicKey) string {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(der)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Verify tells whether a key signed a payload that names a digest. The payload and the value are a registry's.
func Verify(key crypto.PublicKey, digest string, payload, value []byte) bool {
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		sum := sha256.Sum256(payload)
		if !ecdsa.VerifyASN1(key, sum[:], value) {
			return false
		}
	case ed25519.PublicKey:
		if !ed25519.Verify(key, payload, value) {
			return false
		}
	default:
		return false
	}
	var said struct {
		Critical struct {
			Image struct {
				Digest string `json:"docker-manifest-digest"`
			} `json:"image"`
			Type string `json:"type"`
		} `json:"critical"`
	}
	return json.Unmarshal(payload, &said) == nil && said.Critical.Type == kind && digest != "" && said.Critical.Image.Digest == digest
}
