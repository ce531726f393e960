package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/image/e2broot"
	"github.com/paddock-sandbox/paddock/internal/image/reference"
	imagestore "github.com/paddock-sandbox/paddock/internal/image/store"
	"github.com/paddock-sandbox/paddock/internal/server"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/wrap/tenant"
)

// A library has the images of a server: each tenant's own, and those that the operator shares. On a socket, the images of
// its one caller are those of paddock image.
type library struct {
	d     *imagestore.Store
	own   bool // the caller is the server's own user, on a socket
	log   *slog.Logger
	turns turns

	shared []sharedImage // set before the first call
}

// A sharedImage is one that every tenant may use.
type sharedImage struct {
	ref    reference.Reference
	digest string
}

// Bounds of the images of a server's own user, who may remove them: those of paddock image.
const (
	ownSent     = 32 << 30
	ownUnpacked = 64 << 30
	ownCount    = 10_000
	ownTime     = 6 * time.Hour
)

// openLibrary opens the images of a server.
func openLibrary(a *cli.App, f *serveFlags, log *slog.Logger) (*library, error) {
	dir, err := imagesPlace(a, f)
	if err != nil {
		return nil, err
	}
	policy, err := f.images.policy()
	if err != nil {
		return nil, err
	}
	l := &library{own: strings.HasPrefix(f.listen, "unix:"), log: log, turns: newTurns(pullsAtOnce, pullsWaiting)}
	o := imagestore.Options{Dir: dir, Dial: dialListed(f.images.registries), Policy: policy, Converters: []imagestore.Converter{e2broot.Converter()}}
	if l.own {
		o.Sent, o.Unpacked, o.All, o.Images, o.Time = ownSent, ownUnpacked, math.MaxInt64, ownCount, ownTime
	}
	if l.d, err = imagestore.Open(o); err != nil {
		return nil, cli.WithHint(err, "--state names another place")
	}
	return l, nil
}

// openImages opens the images of a server, and takes those that all tenants share. A server on a socket does without
// where its user's directories do not allow any.
func openImages(ctx context.Context, a *cli.App, f *serveFlags, log *slog.Logger) (*library, error) {
	l, err := openLibrary(a, f, log)
	if err != nil && strings.HasPrefix(f.listen, "unix:") && !errors.Is(err, paddock.Invalid) {
		log.Warn("no images", "error", err.Error())
		return nil, nil
	}
	if err == nil {
		err = l.share(ctx, f.images.shared)
	}
	return l, err
}

// share takes the operator's images, and pulls those that are not here. Who starts the server may name a registry at any
// address.
func (l *library) share(ctx context.Context, names []string) error {
	for _, name := range names {
		ref, err := reference.Parse(name)
		if err != nil {
			return cli.WithHint(fmt.Errorf("--image-shared: %w", err), "such as python:3.13-slim, or HOST/owner/name@sha256:…")
		}
		img, err := l.d.Pull(ctx, imagestore.Request{Reference: name, Private: true, Say: func(p imagestore.Progress) {
			if !p.Present && p.Have == 0 {
				l.log.Info("pulling a shared image", "image", p.Reference, "digest", p.Digest, "bytes", p.Size)
			}
		}})
		if err != nil {
			return cli.WithHint(fmt.Errorf("--image-shared %s: %w", name, err), "an image that needs credentials can be pulled by no server at its start: have a registry of this machine's or its network's hold it")
		}
		l.shared = append(l.shared, sharedImage{ref, img.Digest})
		l.log.Info("image for all tenants", "image", name, "digest", img.Digest)
	}
	return nil
}

// part is the part of the store that has a tenant's own images.
func (l *library) part(who string) string {
	if l.own {
		return ""
	}
	return who
}

// isShared tells whether every tenant may use an image.
func (l *library) isShared(digest string) bool {
	return slices.ContainsFunc(l.shared, func(s sharedImage) bool { return s.digest == digest })
}

// sharedFor returns the digest of the shared image that a reference or digest leads to; empty is none.
func (l *library) sharedFor(text string) string {
	if l.isShared(text) {
		return text
	}
	ref, err := reference.Parse(text)
	if err != nil {
		return ""
	}
	for _, s := range l.shared {
		if ref == s.ref || ref.Host == s.ref.Host && ref.Name == s.ref.Name && ref.Digest == s.digest {
			return s.digest
		}
	}
	return ""
}

// find returns the image that is here for a tenant. For one of another tenant's the error is the same as for none.
func (l *library) find(ctx context.Context, who, text string) (img imagestore.Image, shared bool, err error) {
	img, err = l.d.Resolve(ctx, l.part(who), text)
	if !errors.Is(err, paddock.NotFound) {
		return img, false, err
	}
	if digest := l.sharedFor(text); digest != "" {
		img, err = l.d.Resolve(ctx, "", digest)
		return img, true, err
	}
	return img, false, err
}

// pull pulls an image for a tenant. Without always, an image that came here meanwhile is taken.
func (l *library) pull(ctx context.Context, who string, q imagestore.Request) (imagestore.Image, error) {
	if _, err := reference.Parse(q.Reference); err != nil {
		return imagestore.Image{}, err
	}
	leave, err := l.turns.take(ctx, who)
	if err != nil {
		return imagestore.Image{}, fmt.Errorf("image %s: %w", q.Reference, err)
	}
	defer leave()
	began := time.Now()
	q.Tenant = l.part(who)
	asked := false
	q.Say = func(p imagestore.Progress) { asked = asked || !p.Present }
	img, err := l.d.Pull(ctx, q)
	switch {
	case err != nil:
		l.log.Info("an image was not pulled", "tenant", who, "image", q.Reference, "error", err.Error())
		return img, err // it names the image
	case asked:
		l.log.Info("pulled an image", "tenant", who, "image", q.Reference, "digest", img.Digest, "took", time.Since(began))
	}
	return img, nil
}

// Tree implements [image.Source]. For a tenant it has the one image with which the creation of the context begins, as
// [tenantImages.Take] or the record of a snapshot told; for nobody, as with a sandbox that is kept ready, the shared ones.
func (l *library) Tree(ctx context.Context, digest string, form image.Form) (image.Tree, *os.File, error) {
	who := tenant.Of(ctx)
	if who != "" && (l.own || digest == tenant.ImageOf(ctx)) {
		tree, hold, err := l.d.Tree(l.d.As(ctx, l.part(who)), digest, form)
		if l.own || !errors.Is(err, paddock.NotFound) {
			return tree, hold, err
		}
		return l.d.Tree(l.d.As(ctx, ""), digest, form) // it is, or was, shared
	}
	if who != "" || !l.isShared(digest) {
		return image.Tree{}, nil, fmt.Errorf("image %.80s is not here: %w", digest, paddock.NotFound)
	}
	return l.d.Tree(l.d.As(ctx, ""), digest, form)
}

// ready resolves the image of a sandbox that is to be kept ready. It is made for nobody yet, so that its image is a shared
// one.
func (l *library) ready(spec *paddock.Spec) error {
	if spec.Root.Kind != paddock.RootImage {
		return nil
	}
	digest := ""
	if l != nil {
		digest = l.sharedFor(spec.Root.Image)
	}
	if digest == "" {
		return cli.WithHint(fmt.Errorf("--warm: the image %s is not for all tenants, so no sandbox is kept ready with it: %w", spec.Root.Image, paddock.Denied), "add --image-shared %s", spec.Root.Image)
	}
	spec.Root.Image = digest
	return nil
}

// tenantImages are the images of tenants, for the layer that keeps tenants apart.
type tenantImages struct {
	*library
	keeper imagestore.Keeper
}

// forTenants returns the images for the server of a database; nil if there are none.
func (l *library) forTenants(s *store.Store, host string) tenant.Images {
	if l == nil {
		return nil
	}
	words := "the server " + host
	if l.own {
		words = "a server of yours"
	}
	return tenantImages{l, imagestore.Keeper{Mark: s.ID() + "." + host, Words: words}}
}

// Take implements [tenant.Images].
func (k tenantImages) Take(ctx context.Context, who, text string) (string, error) {
	img, _, err := k.find(ctx, who, text)
	switch {
	case !errors.Is(err, paddock.NotFound):
		return img.Digest, err
	case strings.HasPrefix(text, "sha256:"):
		return "", fmt.Errorf("image %.80s is not here, and no registry is known for a digest alone: name the image too, HOST/owner/name@%.80s: %w", text, text, paddock.NotFound)
	}
	q, _ := server.RequestOf(ctx)
	img, err = k.pull(ctx, who, imagestore.Request{Reference: text, Private: k.own || q.Caller.Trusted})
	return img.Digest, err
}

// places are where a tenant's image may be.
func (k tenantImages) places(who, digest string) []imagestore.Kept {
	all := []imagestore.Kept{{Tenant: k.part(who), Digest: digest}}
	if !k.own && k.isShared(digest) {
		all = append(all, imagestore.Kept{Digest: digest})
	}
	return all
}

// Keep implements [tenant.Images]. An image that is both the tenant's and shared is kept in both places: a sandbox that was
// kept ready begins with the shared one.
func (k tenantImages) Keep(ctx context.Context, who, digest string) error {
	missing, kept := error(nil), false
	for _, at := range k.places(who, digest) {
		switch err := k.d.Keep(ctx, k.keeper, at); {
		case err == nil:
			kept = true
		case errors.Is(err, paddock.NotFound):
			missing = err
		default:
			return err
		}
	}
	if !kept {
		return missing
	}
	return nil
}

// Free implements [tenant.Images]. Shared images stay kept as long as they are shared.
func (k tenantImages) Free(who, digest string, last bool) error {
	err := k.d.Free(k.keeper, imagestore.Kept{Tenant: k.part(who), Digest: digest})
	if last && !k.own && !k.isShared(digest) {
		err = errors.Join(err, k.d.Free(k.keeper, imagestore.Kept{Digest: digest}))
	}
	return err
}

// Settle implements [tenant.Images]. Of an image that was shared before, what began with it may still be there.
func (k tenantImages) Settle(list []store.ImageUse) error {
	var all []imagestore.Kept
	for _, u := range list {
		all = append(all, imagestore.Kept{Tenant: k.part(u.Tenant), Digest: u.Image}, imagestore.Kept{Digest: u.Image})
	}
	var errs []error
	for _, s := range k.shared {
		at := imagestore.Kept{Digest: s.digest}
		all = append(all, at)
		errs = append(errs, k.d.Keep(context.Background(), k.keeper, at))
	}
	return errors.Join(append(errs, k.d.Settle(k.keeper, all))...)
}

// Bounds of pulls.
const (
	pullsAtOnce  = 32  // of all tenants
	pullsWaiting = 256 // of one, of which one is under way: what waits costs little, and often finds the image here then
)

// Turns let each tenant do one thing at a time, and all of them a number of things.
type turns struct {
	all     chan struct{}
	waiting int

	mu *sync.Mutex
	of map[string]*turn // guarded by mu; of tenants that wait or have a turn
}

// A turn is that of one tenant.
type turn struct {
	held  chan struct{} // has one value while it is taken
	count int           // guarded by turns.mu; who has it, and who waits
}

func newTurns(atOnce, waiting int) turns {
	return turns{all: make(chan struct{}, atOnce), waiting: waiting, mu: new(sync.Mutex), of: map[string]*turn{}}
}

// take waits for the turn of a tenant, as long as the context allows.
func (t turns) take(ctx context.Context, who string) (leave func(), err error) {
	t.mu.Lock()
	own := t.of[who]
	if own == nil {
		own = &turn{held: make(chan struct{}, 1)}
		t.of[who] = own
	}
	if own.count >= t.waiting {
		t.mu.Unlock()
		return nil, fmt.Errorf("%d pulls wait already, the most for one tenant: try again later: %w", t.waiting, paddock.Exhausted)
	}
	own.count++
	t.mu.Unlock()
	out := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if own.count--; own.count == 0 {
			delete(t.of, who)
		}
	}
	for _, place := range []chan struct{}{own.held, t.all} {
		select {
		case place <- struct{}{}:
		case <-ctx.Done():
			if place == t.all {
				<-own.held
			}
			out()
			return nil, fmt.Errorf("it was given up while other pulls were under way: %w", paddock.Canceled)
		}
	}
	return func() { <-t.all; <-own.held; out() }, nil
}
