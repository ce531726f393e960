package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image/reference"
	"github.com/paddock-sandbox/paddock/internal/image/shelf"
)

const (
	buildsDir  = "builds" // by the key of a step: which layer it made
	buildLock  = "build"  // shared by builds; exclusive by who removes what dead ones left
	buildOwner = "build"  // of images that a build begins sandboxes with
	mostCached = 2000     // steps whose layers are kept
)

// A Build puts what a builder makes into the part of a tenant. While it is open, no layer is removed.
type Build struct {
	p     *part
	lock  *os.File
	alive *os.File        // the lock of builds
	inner map[string]bool // digests of images that are the build's own
}

// A cached step is one that need not be done again.
type cached struct {
	Layer Blob `json:"layer,omitzero"` // none if the step changed no file
}

// Build begins a build of a tenant.
func (s *Store) Build(ctx context.Context, tenant string) (*Build, error) {
	p := s.part(tenant)
	if err := p.ready(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(p.At(buildsDir), 0o700); err != nil {
		return nil, fmt.Errorf("images: %w: %w", full(err), paddock.Internal)
	}
	if err := p.buryBuilds(); err != nil {
		return nil, err
	}
	alive, err := shelf.Await(ctx, p.At(buildLock), os.O_RDONLY|os.O_CREATE, true)
	if err != nil {
		return nil, err
	}
	lock, err := shelf.Await(ctx, p.At(lockFile), os.O_RDONLY|os.O_CREATE, true)
	if err != nil {
		return nil, errors.Join(err, alive.Close())
	}
	return &Build{p: p, lock: lock, alive: alive, inner: map[string]bool{}}, nil
}

// Close removes what is of no use without the build: images that were made for its steps, and layers of steps that were
// not kept.
func (b *Build) Close() error {
	var errs []error
	for digest := range b.inner {
		errs = append(errs, b.Drop(digest))
	}
	errs = append(errs, b.alive.Close(), b.lock.Close())
	return errors.Join(append(errs, b.p.buryBuilds(), b.p.forget(mostCached), b.p.collect())...)
}

// buryBuilds removes images that builds had for themselves, if none is left that could need one.
func (p *part) buryBuilds() error {
	lock, err := shelf.Claim(p.At(buildLock), os.O_RDONLY|os.O_CREATE)
	if errors.Is(err, shelf.ErrBusy) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	defer lock.Close()
	names, err := p.digests()
	if err != nil {
		return err
	}
	var errs []error
	for _, digest := range names {
		img, err := p.Read(digest)
		if err == nil && img.Owner == buildOwner {
			err = p.drop(img)
		}
		if err != nil && !errors.Is(err, paddock.NotFound) && !errors.Is(err, paddock.Conflict) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Layer puts what write writes into the store, an archive of at most so many bytes.
func (b *Build) Layer(ctx context.Context, most int64, write func(io.Writer) error) (Blob, error) {
	room, err := b.p.room()
	if err != nil {
		return Blob{}, err
	}
	blob, err := b.p.spool(ctx, min(room, most), write)
	blob.MediaType = string(types.OCIUncompressedLayer)
	return blob, err
}

// Inner makes an image of layers, which the build alone has, and returns its digest.
func (b *Build) Inner(ctx context.Context, config []byte, layers []Blob) (string, error) {
	digest, err := b.image(ctx, Image{Origins: []string{shelf.FromBuild}, Owner: buildOwner}, config, layers, nil)
	if err == nil {
		b.inner[digest] = true
	}
	return digest, err
}

// Drop removes an image that Inner made, unless somebody uses it.
func (b *Build) Drop(digest string) error {
	if !b.inner[digest] {
		return nil
	}
	img, err := b.p.Read(digest)
	if err == nil && img.Owner == buildOwner {
		err = b.p.drop(img)
	}
	switch {
	case errors.Is(err, paddock.Conflict):
		return nil // in use: another time, or by another build, which removes it
	case err == nil, errors.Is(err, paddock.NotFound):
		delete(b.inner, digest)
		return nil
	}
	return err
}

// There reports whether an image is there.
func (b *Build) There(digest string) bool { return exists(b.p.Image(digest)) }

// Image makes an image of layers, to which a reference leads.
func (b *Build) Image(ctx context.Context, config []byte, layers []Blob, name string) (Image, error) {
	ref, err := reference.Parse(name)
	if err != nil {
		return Image{}, err
	}
	if ref.Digest != "" {
		return Image{}, fmt.Errorf("image %s: a tag has no digest: %w", ref, paddock.Invalid)
	}
	digest, err := b.image(ctx, Image{Origins: []string{shelf.FromBuild}}, config, layers, []string{ref.String()})
	if err != nil {
		return Image{}, err
	}
	return b.p.Find(digest)
}

func (b *Build) image(ctx context.Context, img Image, config []byte, layers []Blob, refs []string) (string, error) {
	if len(layers) > maxLayers {
		return "", fmt.Errorf("the image has %d layers, the most are %d: put several commands into one instruction: %w", len(layers), maxLayers, paddock.Exhausted)
	}
	list := make([]v1.Descriptor, 0, len(layers))
	for _, l := range layers {
		kind := types.MediaType(l.MediaType)
		switch kind {
		case types.DockerLayer:
			kind = types.OCILayer // the same bytes: one manifest has words of one kind
		case types.DockerUncompressedLayer, "":
			var err error
			if kind, err = b.p.kind(l); err != nil {
				return "", err
			}
		}
		d, err := described(l, kind)
		if err != nil {
			return "", err
		}
		list = append(list, d)
	}
	if err := b.p.put(sumOf(config), config); err != nil {
		return "", err
	}
	manifest, err := manifestOf(config, list)
	if err != nil {
		return "", err
	}
	return b.p.kept(ctx, img, manifest, config, refs)
}

// Config returns the configuration of an image as it is, a JSON object.
func (b *Build) Config(img Image) ([]byte, error) {
	f, err := b.p.open(Blob{Digest: img.ConfigDigest})
	if err != nil {
		return nil, err
	}
	data, err := document(f)
	return data, errors.Join(err, f.Close())
}

// Resolve returns an image of the tenant.
func (b *Build) Resolve(text string) (Image, error) { return b.p.Find(text) }

// stepFile is the record of a step. The key is a digest.
func (p *part) stepFile(key string) string { return p.At(buildsDir, shelf.Bare(key)+".json") }

// Cached returns the layer that a step made before, if it is still here. A layer without a digest is that of a step which
// changed no file.
func (b *Build) Cached(key string) (Blob, bool) {
	data, err := os.ReadFile(b.p.stepFile(key))
	var c cached
	if err != nil || json.Unmarshal(data, &c) != nil || c.Layer.Digest != "" && !b.p.has(c.Layer.Digest, c.Layer.Size) {
		return Blob{}, false
	}
	now := time.Now()
	_ = os.Chtimes(b.p.stepFile(key), now, now) // else it only looks as if it were unused
	return c.Layer, true
}

// Keep remembers which layer a step made.
func (b *Build) Keep(key string, layer Blob) error {
	return b.p.write(b.p.stepFile(key), cached{layer})
}

// eachCached calls do for each step that is remembered.
func (p *part) eachCached(do func(file string, c cached)) error {
	list, err := os.ReadDir(p.At(buildsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	for _, e := range list {
		var c cached
		data, err := os.ReadFile(p.At(buildsDir, e.Name()))
		if err != nil || json.Unmarshal(data, &c) != nil {
			continue // removed meanwhile, or of no use
		}
		do(p.At(buildsDir, e.Name()), c)
	}
	return nil
}

// forget forgets steps until there are no more than most: those first that were used longest ago.
func (p *part) forget(most int) error {
	list, err := os.ReadDir(p.At(buildsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	type step struct {
		name string
		used time.Time
	}
	var steps []step
	for _, e := range list {
		if st, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), ".json") {
			steps = append(steps, step{e.Name(), st.ModTime()})
		}
	}
	slices.SortFunc(steps, func(a, b step) int { return cmp.Or(b.used.Compare(a.used), cmp.Compare(a.name, b.name)) })
	var errs []error
	for _, s := range steps[min(most, len(steps)):] {
		if err := os.Remove(p.At(buildsDir, s.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("images: %w: %w", err, paddock.Internal))
		}
	}
	return errors.Join(errs...)
}
