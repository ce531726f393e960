package tenant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
)

// Images are the images that each tenant may begin sandboxes with. What is another tenant's is [paddock.NotFound], in the
// words of what never was.
type Images interface {
	// Take returns the digest of the image that a tenant's reference, or digest, leads to. It may pull the image for the
	// tenant.
	Take(ctx context.Context, tenant, text string) (digest string, err error)

	// Keep keeps an image of the tenant from being removed until Free, also past the end of this process.
	Keep(ctx context.Context, tenant, digest string) error

	// Free ends Keep. last is set if no other tenant needs the image either.
	Free(tenant, digest string, last bool) error

	// Settle ends each Keep of an image that is not in the list.
	Settle(list []store.ImageUse) error
}

// root resolves the image of a spec that has one as its root, or whose snapshot is above one, and returns its digest. The
// tier gets a digest, because it cannot know whose an image is.
func (d *driver) root(ctx context.Context, spec *paddock.Spec) (image string, err error) {
	switch {
	case spec.Root.Kind == paddock.RootSnapshot:
		n, err := d.ts.o.Store.Snapshot(ctx, d.tenant, d.ts.o.Place, spec.Root.Snapshot)
		if d.ts.o.Whole && errors.Is(err, paddock.NotFound) {
			return "", nil // it was not taken by this server
		}
		if err != nil {
			return "", fmt.Errorf("root: %w", err)
		}
		return n.Image, nil
	case spec.Root.Kind != paddock.RootImage:
		return "", nil
	case spec.Root.Path != "" || spec.Root.Snapshot != "":
		return "", fmt.Errorf("root image takes a reference or a digest, and neither a path nor a snapshot: %w", paddock.Invalid)
	case d.ts.o.Images == nil:
		return "", fmt.Errorf("root image: this server has no images: %w", paddock.Unsupported)
	}
	if spec.Root.Image, err = d.ts.o.Images.Take(ctx, d.tenant, spec.Root.Image); err != nil {
		return "", fmt.Errorf("root: %w", err)
	}
	return spec.Root.Image, nil
}

// A need counts records that are about to be stored, of what needs an image. Its image's lock guards it.
type need struct {
	records int
	asked   bool // to free the image meanwhile
}

// needing records that something of a tenant needs an image, with record, which stores that. It keeps the image before,
// so that it is there as long as the record. No lock is held while record runs, because record may forget others.
func (ts *Set) needing(ctx context.Context, tenant, image string, record func() error) error {
	if image == "" || ts.o.Images == nil {
		return record()
	}
	key := tenant + " " + image
	leave, err := ts.enter(ctx, "image "+image) // a token never has a space
	if err != nil {
		return err
	}
	n := ts.need(key)
	n.records++
	err = ts.o.Images.Keep(ctx, tenant, image)
	leave()
	if err == nil {
		err = record()
	} else {
		err = fmt.Errorf("root: %w", err)
	}
	late, done := after(ctx)
	defer done()
	if leave, failed := ts.enter(late, "image "+image); failed == nil {
		defer leave()
		if n.records--; n.records == 0 {
			ts.unneed(key)
		}
		if err != nil || n.asked {
			ts.free(late, tenant, image)
		}
	}
	return err
}

// need returns the count for a tenant and an image, whose lock is held.
func (ts *Set) need(key string) *need {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	n := ts.needs[key]
	if n == nil {
		n = &need{}
		ts.needs[key] = n
	}
	return n
}

func (ts *Set) unneed(key string) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	delete(ts.needs, key)
}

// forget deletes the record of a sandbox, and frees its image if nothing else of the tenant needs it.
func (ts *Set) forget(ctx context.Context, b store.Sandbox) error {
	return ts.released(ctx, b.Tenant, b.Image, func() error { return ts.o.Store.ForgetSandbox(ctx, b.Token) })
}

// released is needing for the end of a record.
func (ts *Set) released(ctx context.Context, tenant, image string, forget func() error) error {
	if err := forget(); err != nil || image == "" || ts.o.Images == nil {
		return err
	}
	late, done := after(ctx)
	defer done()
	if leave, err := ts.enter(late, "image "+image); err == nil {
		defer leave()
		ts.free(late, tenant, image)
	}
	return nil
}

// free frees an image if nothing of the tenant needs it. Its lock is held. What cannot be freed now is freed at the next
// start, by settle.
func (ts *Set) free(ctx context.Context, tenant, image string) {
	own, others := (*need)(nil), false
	ts.mu.Lock()
	for key, n := range ts.needs {
		switch who, of, _ := strings.Cut(key, " "); {
		case of != image:
		case who == tenant:
			own = n
		default:
			others = true
		}
	}
	ts.mu.Unlock()
	if own != nil {
		own.asked = true
		return
	}
	who, err := ts.o.Store.ImageTenants(ctx, ts.o.Place, image)
	if err == nil && !slices.Contains(who, tenant) {
		_ = ts.o.Images.Free(tenant, image, len(who) == 0 && !others)
	}
}

// settle frees images that a crash left kept.
func (ts *Set) settle(ctx context.Context) error {
	if ts.o.Images == nil {
		return nil
	}
	list, err := ts.o.Store.ImageUses(ctx, ts.o.Place)
	if err != nil {
		return err
	}
	return ts.o.Images.Settle(list)
}

// ImageDigest returns the digest of the image that is the root of the sandbox, or an empty text.
func (s *sandbox) ImageDigest() string { return s.b.Image }
