package attestation

import (
	"bytes"
	"crypto"
	"encoding/asn1"
	"fmt"
	"io"
	"math/big"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/paddock-sandbox/paddock"
)

// OfAgent returns the Signer of a key that the SSH agent at the other end of a connection holds. The agent signs the bytes as they are, so that the
// signature is the same as that of the private key.
func OfAgent(conn io.ReadWriter, key crypto.PublicKey) (Signer, error) {
	return ofAgent(agent.NewClient(conn), key)
}

func ofAgent(a agent.ExtendedAgent, key crypto.PublicKey) (Signer, error) {
	if err := usable(key); err != nil {
		return nil, err
	}
	public, err := ssh.NewPublicKey(key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Unsupported)
	}
	list, err := a.List()
	if err != nil {
		return nil, fmt.Errorf("ask the SSH agent for its keys: %w: %w", err, paddock.Unavailable)
	}
	for _, k := range list {
		if bytes.Equal(k.Marshal(), public.Marshal()) {
			return held{a, key, public}, nil
		}
	}
	return nil, fmt.Errorf("the SSH agent does not have the key %s: %w", ssh.FingerprintSHA256(public), paddock.NotFound)
}

// held is a key of an agent.
type held struct {
	agent  agent.ExtendedAgent
	key    crypto.PublicKey
	public ssh.PublicKey
}

func (h held) Public() crypto.PublicKey { return h.key }

func (h held) Sign(message []byte) ([]byte, error) {
	format, flags := h.public.Type(), agent.SignatureFlags(0)
	if format == ssh.KeyAlgoRSA {
		format, flags = ssh.KeyAlgoRSASHA256, agent.SignatureFlagRsaSha256
	}
	sig, err := h.agent.SignWithFlags(h.public, message, flags)
	if err != nil {
		return nil, fmt.Errorf("the SSH agent does not sign: %w: %w", err, paddock.Denied)
	}
	if sig.Format != format {
		return nil, fmt.Errorf("the SSH agent signs in the way %q, and not %q: %w", sig.Format, format, paddock.Unsupported)
	}
	if format != ssh.KeyAlgoECDSA256 {
		return sig.Blob, nil
	}
	var numbers struct{ R, S *big.Int }
	if err := ssh.Unmarshal(sig.Blob, &numbers); err != nil {
		return nil, fmt.Errorf("the signature of the SSH agent: %w: %w", err, paddock.Invalid)
	}
	der, err := asn1.Marshal(numbers)
	if err != nil {
		return nil, fmt.Errorf("the signature of the SSH agent: %w: %w", err, paddock.Invalid)
	}
	return der, nil
}
