package registry

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of signatures.
const (
	maxSignatures = 50
	maxPayload    = 64 << 10
)

// A Signature is one that cosign put beside an image: a payload, which names a digest, and the value of the signature.
type Signature struct{ Payload, Value []byte }

// Signatures returns the signatures of a digest that the image's repository has, unverified. None is no error.
func (i *Image) Signatures(ctx context.Context, digest string) ([]Signature, error) {
	at := *i.at
	at.ref.Tag, at.ref.Digest = strings.Replace(digest, ":", "-", 1)+".sig", ""
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	data, _, err := at.manifest(ctx, "")
	if errors.Is(err, paddock.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("signatures of %s: %w", digest, err)
	}
	m, err := v1.ParseManifest(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("signatures of %s: their manifest cannot be read: %w", digest, paddock.Invalid)
	}
	var list []Signature
	for _, l := range m.Layers {
		value, err := base64.StdEncoding.DecodeString(l.Annotations["dev.cosignproject.cosign/signature"])
		if err != nil || len(value) == 0 || len(value) > maxPayload || !good(l) || l.Size > maxPayload {
			continue
		}
		if len(list) == maxSignatures {
			break
		}
		payload, err := at.small(ctx, l)
		if err != nil {
			return nil, fmt.Errorf("signatures of %s: %w", digest, err)
		}
		list = append(list, Signature{payload, value})
	}
	return list, nil
}
