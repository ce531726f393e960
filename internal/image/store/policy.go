package store

import (
	"crypto"
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image/reference"
	"github.com/paddock-sandbox/paddock/internal/image/signature"
)

// A Policy bounds which images may be pulled and used. The zero value allows all.
type Policy struct {
	// Registries are the hosts, with their ports if they have one, that images may come from. If there are any, an image
	// that was loaded from a file is refused.
	Registries []string
	// Digest demands that a reference has a digest: a tag is not enough.
	Digest bool
	// Keys are public keys: if there are any, one of them must have signed the image as cosign does.
	Keys []crypto.PublicKey
}

// allows tells whether a reference may be pulled.
func (o Policy) allows(ref reference.Reference) error {
	if o.Digest && ref.Digest == "" {
		return fmt.Errorf("image %s: the policy demands a digest, and the reference has none: write %s/%s@sha256:…: %w", ref, ref.Host, ref.Name, paddock.Denied)
	}
	if len(o.Registries) > 0 && !slices.Contains(o.Registries, ref.Host) {
		return fmt.Errorf("image %s: the policy allows images of %s alone: %w", ref, strings.Join(o.Registries, ", "), paddock.Denied)
	}
	return nil
}

// holds tells whether an image that is here may be used by a reference or a digest.
func (o Policy) holds(text string, img Image) error {
	if !strings.HasPrefix(text, "sha256:") {
		ref, err := reference.Parse(text)
		if err != nil {
			return err
		}
		if err := o.allows(ref); err != nil {
			return err
		}
	}
	if len(o.Registries) > 0 && !slices.ContainsFunc(img.Origins, func(host string) bool { return slices.Contains(o.Registries, host) }) {
		return fmt.Errorf("image %s: the policy allows images of %s alone, and none of them sent it: %w", img.Digest, strings.Join(o.Registries, ", "), paddock.Denied)
	}
	if len(o.Keys) > 0 && !slices.ContainsFunc(o.Keys, func(k crypto.PublicKey) bool { return slices.Contains(img.Signers, signature.Fingerprint(k)) }) {
		return fmt.Errorf("image %s: the policy demands a signature, and none was verified: pull it again with --always: %w", img.Digest, paddock.Denied)
	}
	return nil
}
