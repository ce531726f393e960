package attestation

import (
	"bytes"
	"crypto"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/paddock-sandbox/paddock"
)

// PayloadType is the type of the payload of an envelope.
const PayloadType = "application/vnd.in-toto+json"

// MaxEnvelope bounds an envelope, in bytes.
const MaxEnvelope = 1 << 20

// An envelope is a DSSE envelope with one signature.
type envelope struct {
	PayloadType string      `json:"payloadType"`
	Payload     string      `json:"payload"` // base64
	Signatures  []signature `json:"signatures"`
}

type signature struct {
	KeyID string `json:"keyid"` // see KeyID
	Sig   string `json:"sig"`   // base64
}

// authenticated returns what a signature is over: the pre-authentication encoding (PAE) of DSSE, version 1.
func authenticated(payloadType string, payload []byte) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload)
}

// Sign returns a statement in an envelope, as one line with its line break. It does not trust the signer.
func Sign(s Statement, signer Signer) ([]byte, error) {
	payload, err := s.encode()
	if err != nil {
		return nil, err
	}
	id, err := KeyID(signer.Public())
	if err != nil {
		return nil, err
	}
	message := authenticated(PayloadType, payload)
	sig, err := signer.Sign(message)
	if err != nil {
		return nil, err
	}
	if !verified(signer.Public(), message, sig) {
		return nil, fmt.Errorf("what was signed with the key %s is not a signature of it: %w", id, paddock.Invalid)
	}
	return envelope{
		PayloadType: PayloadType,
		Payload:     base64.StdEncoding.EncodeToString(payload),
		Signatures:  []signature{{KeyID: id, Sig: base64.StdEncoding.EncodeToString(sig)}},
	}.encode()
}

func (e envelope) encode() ([]byte, error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode an envelope: %w", err)
	}
	if len(text) >= MaxEnvelope {
		return nil, fmt.Errorf("the envelope has %d bytes, and may have %d: %w", len(text)+1, MaxEnvelope, paddock.Exhausted)
	}
	return append(text, '\n'), nil
}

// Open returns the statement of an envelope that key signed. An error says which part is wrong. Only one spelling of an
// envelope and of a statement is valid, that of [Sign], so that every changed byte is an error.
func Open(data []byte, key crypto.PublicKey) (Statement, error) {
	payload, sig, id, err := parse(data)
	if err != nil {
		return Statement{}, err
	}
	own, err := KeyID(key)
	if err != nil {
		return Statement{}, err
	}
	if id != own {
		return Statement{}, fmt.Errorf("it is signed with the key %q, and not with %s: %w", id, own, paddock.Denied)
	}
	if !verified(key, authenticated(PayloadType, payload), sig) {
		return Statement{}, fmt.Errorf("the key %s did not sign it: the statement or the signature was changed: %w", id, paddock.Denied)
	}
	return decode(payload)
}

// parse takes an envelope apart. Nothing of it is to be trusted yet.
func parse(data []byte) (payload, sig []byte, key string, err error) {
	var e envelope
	switch {
	case len(data) > MaxEnvelope:
		return nil, nil, "", fmt.Errorf("it is larger than any attestation, %d bytes: %w", MaxEnvelope, paddock.Invalid)
	case json.Unmarshal(data, &e) != nil:
		return nil, nil, "", fmt.Errorf("it is no DSSE envelope, which is one object of JSON: %w", paddock.Invalid)
	case e.PayloadType != PayloadType:
		return nil, nil, "", fmt.Errorf("its payload is of the type %q, and not %s: %w", e.PayloadType, PayloadType, paddock.Invalid)
	case len(e.Signatures) != 1:
		return nil, nil, "", fmt.Errorf("it has %d signatures, and not one: %w", len(e.Signatures), paddock.Invalid)
	}
	if payload, err = base64.StdEncoding.Strict().DecodeString(e.Payload); err != nil {
		return nil, nil, "", fmt.Errorf("its payload is no base64: %w", paddock.Invalid)
	}
	if sig, err = base64.StdEncoding.Strict().DecodeString(e.Signatures[0].Sig); err != nil || len(sig) == 0 || len(sig) > maxSignature {
		return nil, nil, "", fmt.Errorf("its signature is none in base64: %w", paddock.Invalid)
	}
	if again, err := e.encode(); err != nil || !bytes.Equal(again, data) {
		return nil, nil, "", fmt.Errorf("it is not written as `paddock audit attest` writes it: it was changed or formatted: %w", paddock.Invalid)
	}
	return payload, sig, e.Signatures[0].KeyID, nil
}
