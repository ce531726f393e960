package tenant_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/store/storetest"
	"github.com/paddock-sandbox/paddock/internal/wrap/tenant"
)

// A gallery has the image "sha256:TENANT" of each tenant, by the reference "own".
type gallery struct {
	mu   sync.Mutex
	kept map[string]bool // guarded by mu; by tenant and digest
}

func digest(tenant string) string { return "sha256:" + tenant }

func (g *gallery) Take(_ context.Context, tenant, text string) (string, error) {
	if text == "own" || text == digest(tenant) {
		return digest(tenant), nil
	}
	return "", fmt.Errorf("image %s is not here: %w", text, paddock.NotFound)
}

func (g *gallery) Keep(_ context.Context, tenant, digest string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.kept[tenant+" "+digest] = true
	return nil
}

func (g *gallery) Free(tenant, digest string, _ bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.kept, tenant+" "+digest)
	return nil
}

func (g *gallery) Settle(list []store.ImageUse) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for key := range g.kept {
		if !slices.ContainsFunc(list, func(u store.ImageUse) bool { return u.Tenant+" "+u.Image == key }) {
			delete(g.kept, key)
		}
	}
	return nil
}

func (g *gallery) keeps(tenant string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.kept[tenant+" "+digest(tenant)]
}

// withImages is a rig whose tenants have images.
func withImages(t *testing.T, r rig) (rig, *gallery) {
	t.Helper()
	g := &gallery{kept: map[string]bool{}}
	h, err := tenant.New(r.f, tenant.Options{Store: r.s, Place: "here", Now: r.c.now, Images: g})
	if err != nil {
		t.Fatal(err)
	}
	r.Set = h
	return r, g
}

func image(text string) paddock.Spec {
	return paddock.Spec{Root: paddock.Root{Kind: paddock.RootImage, Image: text}}
}

func TestATenantBeginsWithItsOwnImagesAlone(t *testing.T) {
	r, _ := withImages(t, build(t, storetest.SQLite(), unbounded()))
	var allowed []string
	r.f.set(func() {
		r.f.each = func(ctx context.Context, call string) {
			if call == "create" {
				allowed = append(allowed, tenant.Of(ctx)+" "+tenant.ImageOf(ctx))
			}
		}
	})
	r.create(t, "acme", image("own"))
	r.create(t, "other", image(digest("other")))
	r.create(t, "other", paddock.Spec{})
	if want := []string{"acme sha256:acme", "other sha256:other", "other "}; !slices.Equal(allowed, want) {
		t.Errorf("the driver may take %q, want %q", allowed, want)
	}
	_, theirs := r.Driver("other").Create(t.Context(), image(digest("acme")))
	_, none := r.Driver("other").Create(t.Context(), image(digest("none")))
	wantKind(t, theirs, paddock.NotFound)
	if theirs == nil || none == nil || theirs.Error() != strings.ReplaceAll(none.Error(), "none", "acme") {
		t.Errorf("told apart: %v and %v", theirs, none)
	}
	spec := image("own")
	spec.Root.Path = "/etc"
	_, err := r.Driver("acme").Create(t.Context(), spec)
	wantKind(t, err, paddock.Invalid)
	if len(allowed) != 3 {
		t.Errorf("the driver was asked: %q", allowed)
	}
	r = r.again(t) // without images
	_, err = r.Driver("acme").Create(t.Context(), image("own"))
	wantKind(t, err, paddock.Unsupported)
}

func TestAnImageIsKeptAsLongAsAnythingNeedsIt(t *testing.T) {
	r, g := withImages(t, build(t, storetest.SQLite(), unbounded()))
	ctx := t.Context()
	at := func(what string, want bool) {
		t.Helper()
		if g.keeps("acme") != want {
			t.Errorf("%s: kept is %v, want %v", what, !want, want)
		}
	}
	one := r.create(t, "acme", image("own"))
	two := r.create(t, "acme", image("own"))
	at("two sandboxes", true)
	must(t, one.Remove(ctx))
	at("one sandbox", true)
	must(t, two.Pause(ctx))
	snap, err := two.Snapshot(ctx, paddock.SnapshotOptions{})
	must(t, err)
	must(t, two.Remove(ctx))
	at("a snapshot", true)
	three := r.create(t, "acme", paddock.Spec{Root: paddock.Root{Kind: paddock.RootSnapshot, Snapshot: snap}})
	must(t, r.Driver("acme").RemoveSnapshot(ctx, snap))
	at("a sandbox of the snapshot", true)
	must(t, three.Remove(ctx))
	at("nothing", false)

	broken := errors.New("broken")
	r.f.set(func() { r.f.fail = broken })
	if _, err := r.Driver("acme").Create(ctx, image("own")); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	at("a creation that failed", false)

	// A server that is killed in the middle leaves the image kept, and the next one corrects that.
	r.f.set(func() { r.f.fail = nil })
	r.create(t, "other", image("own"))
	must(t, g.Keep(ctx, "acme", digest("acme")))
	if _, err := r.Adopt(ctx); err != nil {
		t.Error(err)
	}
	at("after a crash", false)
	if !g.keeps("other") {
		t.Error("what is needed is kept no more")
	}
}

// A creation above the quota looks for sandboxes that ended by themselves, whose images are then free: also if they are
// the image of that very creation.
func TestACreationThatFindsRoomKeepsItsImage(t *testing.T) {
	quota := unbounded()
	quota.Sandboxes = 1
	r, g := withImages(t, build(t, storetest.SQLite(), quota))
	one := r.create(t, "acme", image("own"))
	r.f.set(func() { delete(r.f.boxes, one.ID()) }) // by itself
	two := r.create(t, "acme", image("own"))
	if !g.keeps("acme") {
		t.Error("it is not kept")
	}
	_, err := r.Driver("acme").Create(t.Context(), image("own"))
	wantKind(t, err, paddock.Exhausted)
	if !g.keeps("acme") {
		t.Error("a refused creation freed it")
	}
	must(t, two.Remove(t.Context()))
	if g.keeps("acme") {
		t.Error("it is kept for nothing")
	}
}
