package client

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// An Image is an image of the server's that the caller's sandboxes may begin with: by its digest, or by a reference, as
// Image of a paddock.Root.
type Image struct {
	Digest     string    // of its manifest: "sha256:…"
	References []string  // that lead to it
	Size       int64     // of its layers, as they were sent
	Pulled     time.Time // zero if unknown
	Used       time.Time // last; zero if unknown
	Shared     bool      // the operator's, for all tenants
}

func imageOf(i api.Image) Image {
	return Image{Digest: i.Digest, References: i.References, Size: i.Size, Pulled: i.Pulled, Used: i.Used, Shared: i.Shared}
}

// Images lists the images that the caller's sandboxes may begin with. It returns paddock.Unsupported if the server has
// none.
func (d *Driver) Images(ctx context.Context) ([]Image, error) {
	var got api.Images
	if err := d.call(ctx, call{method: "GET", path: "/v1/images", answer: &got, repeat: true}); err != nil {
		return nil, fmt.Errorf("images: %w", err)
	}
	list := make([]Image, len(got.Images))
	for i, one := range got.Images {
		list[i] = imageOf(one)
	}
	return list, nil
}

// When a registry is asked for an image.
const (
	PullMissing = api.PullMissing
	PullAlways  = api.PullAlways
	PullNever   = api.PullNever
)

// An ImagePull asks for the image that a reference leads to.
type ImagePull struct {
	Reference string
	Pull      string // empty is PullMissing

	// For the registry. The server uses its own user's never, and keeps these while it pulls. Empty is anonymous access.
	Username, Password string
}

// PullImage returns the image that a reference leads to, after the server has pulled it if need be. If ctx ends, the pull
// does, and the next one goes on from there.
func (d *Driver) PullImage(ctx context.Context, p ImagePull) (Image, error) {
	var got api.Image
	body := api.ImagePull{Reference: p.Reference, Pull: p.Pull, Username: p.Username, Password: p.Password}
	if err := d.call(ctx, call{method: "POST", path: "/v1/images", body: body, answer: &got, repeat: true}); err != nil {
		return Image{}, err // it names the image
	}
	if sum, ok := strings.CutPrefix(got.Digest, "sha256:"); !ok || len(sum) != 64 || strings.Trim(sum, "0123456789abcdef") != "" {
		return Image{}, fmt.Errorf("image: the server sent %.80q, which is no digest: %w", got.Digest, paddock.Internal)
	}
	return imageOf(got), nil
}

// RemoveImage removes an image of the caller's own, by a reference or its digest. If another reference leads to it, only
// the reference is removed. An image that a sandbox or a snapshot needs is paddock.Conflict.
func (d *Driver) RemoveImage(ctx context.Context, reference string) error {
	return d.call(ctx, call{method: "DELETE", path: "/v1/images", query: url.Values{"reference": {reference}}})
}
