package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/policy"
)

// An ImageStore has the images of the caller.
type ImageStore interface {
	image.Source
	// Resolve returns the digest of an image that is in the store. A reference that is not known is
	// [paddock.NotFound].
	Resolve(reference string) (digest string, err error)
}

// When a registry is asked for an image.
const (
	pullMissing = "missing"
	pullAlways  = "always"
	pullNever   = "never"
)

// imageRoot takes the root from --image.
func (f *specFlags) imageRoot(s *paddock.Spec, changed func(string) bool) error {
	whens := []string{pullMissing, pullAlways, pullNever}
	switch {
	case changed("image") && changed("root"):
		return WithHint(fmt.Errorf("--image and --root name two roots: %w", paddock.Invalid), "leave one out")
	case changed("image") && f.image == "":
		return WithHint(fmt.Errorf("--image names no image: %w", paddock.Invalid), "such as --image python:3.13-slim")
	case changed("image"):
		s.Root = paddock.Root{Kind: paddock.RootImage, Image: f.image}
	}
	switch f.pull {
	case pullMissing, pullAlways, pullNever:
	default:
		return WithHint(fmt.Errorf("--pull %s: there is no such time: %w", f.pull, paddock.Invalid), "%stimes are %s", meant(policy.Nearest(f.pull, whens)), Join(whens))
	}
	if changed("pull") && s.Root.Kind != paddock.RootImage {
		return WithHint(fmt.Errorf("--pull is about an image, and the root is none: %w", paddock.Invalid), "leave it out, or name an image with --image")
	}
	return nil
}

// takeImage resolves the image of a plan that has one as its root, so that the sandbox is made by its digest. It pulls
// the image if it is not here.
func (a *App) takeImage(ctx context.Context, p *plan) error {
	if p.spec.Root.Kind != paddock.RootImage {
		return nil
	}
	if a.Images == nil || a.Pull == nil {
		return fmt.Errorf("--image: images are %s: %w", notInThisVersion, paddock.Unsupported)
	}
	store, err := a.Images()
	if err != nil {
		return err
	}
	reference := p.spec.Root.Image
	digest, err := store.Resolve(reference)
	switch {
	case err != nil && !errors.Is(err, paddock.NotFound):
		return err
	case err != nil && p.pull == pullNever:
		return WithHint(err, "paddock image pull %s brings it here", reference)
	case err != nil, p.pull == pullAlways:
		if err := a.Pull(ctx, reference); err != nil {
			return err
		}
		if digest, err = store.Resolve(reference); err != nil {
			return err
		}
	}
	p.spec.Root.Image, p.images = digest, store
	return nil
}
