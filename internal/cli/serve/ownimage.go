package serve

import (
	"context"
	"errors"
	"fmt"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image/reference"
	"github.com/paddock-sandbox/paddock/internal/image/registry"
	imagestore "github.com/paddock-sandbox/paddock/internal/image/store"
	"github.com/paddock-sandbox/paddock/internal/server"
	"github.com/paddock-sandbox/paddock/internal/server/api"
	"github.com/paddock-sandbox/paddock/internal/wrap/actionlog"
)

// ownImages are the images of a caller's tenant, for that caller.
type ownImages struct {
	c       *accounts
	l       *library
	tenant  string
	private bool // may name a registry at a private address
}

// imagesOf returns the images of a tenant; nil if the server has none.
func (c *accounts) imagesOf(tenant string, trusted bool) server.Images {
	l := c.watch.images
	if l == nil {
		return nil
	}
	return ownImages{c, l, tenant, l.own || trusted}
}

// List implements [server.Images].
func (i ownImages) List(ctx context.Context) ([]api.Image, error) {
	own, err := i.l.d.Images(i.l.part(i.tenant))
	if err != nil {
		return nil, err
	}
	var list []api.Image
	for n := range own {
		list = append(list, wireImage(own[n], false))
	}
	for _, s := range i.l.shared {
		img, err := i.l.d.Resolve(ctx, "", s.digest)
		if err != nil {
			return nil, err
		}
		told := wireImage(img, true)
		told.References = []string{s.ref.String()} // the operator's other names are the operator's
		list = append(list, told)
	}
	return list, nil
}

// Pull implements [server.Images].
func (i ownImages) Pull(ctx context.Context, p api.ImagePull) (api.Image, error) {
	if p.Pull != api.PullAlways {
		img, shared, err := i.l.find(ctx, i.tenant, p.Reference)
		if err == nil {
			told := wireImage(img, shared)
			if shared {
				told.References = []string{}
			}
			return told, nil
		}
		if !errors.Is(err, paddock.NotFound) || p.Pull == api.PullNever || reference.GoodDigest(p.Reference) {
			return api.Image{}, err
		}
	}
	var img imagestore.Image
	err := i.do(ctx, "image.pull", p.Reference, func() (err error) {
		img, err = i.l.pull(ctx, i.tenant, imagestore.Request{
			Reference: p.Reference, Always: p.Pull == api.PullAlways, Private: i.private,
			Credentials: func(context.Context, string) (registry.Credentials, error) {
				return registry.Credentials{Username: p.Username, Password: p.Password}, nil
			},
		})
		return err
	})
	return wireImage(img, false), err
}

// Remove implements [server.Images].
func (i ownImages) Remove(ctx context.Context, text string) error {
	return i.do(ctx, "image.remove", text, func() error {
		_, err := i.l.d.Remove(ctx, i.l.part(i.tenant), text)
		if errors.Is(err, paddock.Conflict) { // in words without paths of this machine
			return fmt.Errorf("image %s is needed by a sandbox, a snapshot or a template: remove these first (`paddock ls` lists sandboxes): %w", text, paddock.Conflict)
		}
		return err
	})
}

// do does something with images, and records it. What could not be recorded is not done.
func (i ownImages) do(ctx context.Context, what, target string, call func() error) error {
	if i.c.record == nil {
		return call()
	}
	d, err := i.c.driver(i.tenant)
	if err != nil {
		return err
	}
	r, ok := paddock.As[actionlog.Recorder](d)
	if !ok {
		return fmt.Errorf("actions cannot be recorded: %w", paddock.Internal)
	}
	return r.Do(ctx, "", what, target, call)
}

func wireImage(img imagestore.Image, shared bool) api.Image {
	return api.Image{
		Digest: img.Digest, References: append([]string{}, img.References...), Size: img.Size,
		Pulled: img.Pulled, Used: img.Used, Shared: shared,
	}
}
