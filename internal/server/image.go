package server

import (
	"context"
	"fmt"
	"net/http"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// Images has the images that the sandboxes of a caller may begin with. What is another's is NotFound, in the words of
// what never was.
type Images interface {
	List(ctx context.Context) ([]api.Image, error)

	// Pull returns the image that a reference or digest leads to, and pulls it for the caller if that was asked for.
	Pull(ctx context.Context, p api.ImagePull) (api.Image, error)

	// Remove removes an image of the caller's own. One that a sandbox or a snapshot needs is Conflict.
	Remove(ctx context.Context, reference string) error
}

// Bounds of a request for an image.
const (
	maxReference = 1024
	maxUsername  = 1024
	maxPassword  = 16 << 10
)

func (q *request) ownImages() (Images, error) {
	if q.caller.Images == nil {
		return nil, fmt.Errorf("this server has no images: %w", paddock.Unsupported)
	}
	return q.caller.Images, nil
}

// images handles GET /v1/images.
func (q *request) images() error {
	i, err := q.ownImages()
	if err != nil {
		return err
	}
	list, err := i.List(q.Context())
	if err != nil {
		return err
	}
	return q.json(http.StatusOK, api.Images{Images: append([]api.Image{}, list...)})
}

// pullImage handles POST /v1/images. It answers when the image is here. A pull ends with its request.
func (q *request) pullImage() error {
	if err := q.s.fresh(); err != nil {
		return err
	}
	i, err := q.ownImages()
	if err != nil {
		return err
	}
	var asked api.ImagePull
	if err := q.body(&asked); err != nil {
		return err
	}
	switch asked.Pull {
	case "", api.PullMissing, api.PullAlways, api.PullNever:
	default:
		return fmt.Errorf("pull: %.40q is none of missing, always and never: %w", asked.Pull, paddock.Invalid)
	}
	if asked.Reference == "" || len(asked.Reference) > maxReference || len(asked.Username) > maxUsername || len(asked.Password) > maxPassword {
		return fmt.Errorf("a reference is needed, of %d bytes at most; a username has %d at most, a password %d: %w", maxReference, maxUsername, maxPassword, paddock.Invalid)
	}
	img, err := i.Pull(q.Context(), asked)
	if err != nil {
		return err
	}
	return q.json(http.StatusOK, img)
}

// removeImage handles DELETE /v1/images?reference=.
func (q *request) removeImage() error {
	i, err := q.ownImages()
	if err != nil {
		return err
	}
	reference := q.URL.Query().Get("reference")
	if reference == "" || len(reference) > maxReference {
		return fmt.Errorf("the parameter reference is needed, of %d bytes at most: %w", maxReference, paddock.Invalid)
	}
	if err := i.Remove(q.Context(), reference); err != nil {
		return err
	}
	return q.none()
}
