package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/image/reference"
	"github.com/paddock-sandbox/paddock/internal/image/shelf"
)

// A Removed is what was removed.
type Removed struct {
	Reference string `json:"reference,omitempty"` // that does not lead to the image any more
	Digest    string `json:"digest"`
	Gone      bool   `json:"gone"` // the image is, too
	Size      int64  `json:"size"` // bytes that came free
}

// Remove removes a reference and, if no other leads to it, its image. A digest removes the image with all its
// references. If a sandbox uses the image, the error is [paddock.Conflict] and nothing is removed.
func (s *Store) Remove(_ context.Context, tenant, text string) (Removed, error) {
	img, err := s.find(tenant, text)
	if err != nil {
		return Removed{}, err
	}
	p := s.part(tenant)
	gone := Removed{Digest: img.Digest}
	if !strings.HasPrefix(text, "sha256:") {
		ref, err := reference.Parse(text)
		if err != nil {
			return Removed{}, err
		}
		gone.Reference = ref.String()
		others := 0
		for _, r := range img.References {
			if r != gone.Reference {
				others++
			}
		}
		if others > 0 && others < len(img.References) {
			if err := os.Remove(p.RefFile(gone.Reference)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return Removed{}, fmt.Errorf("images: %w: %w", err, paddock.Internal)
			}
			return gone, nil
		}
	}
	before, err := p.usage()
	if err != nil {
		return Removed{}, err
	}
	if err := p.remove(img); err != nil {
		return Removed{}, err
	}
	if err := p.collect(); err != nil {
		return Removed{}, err
	}
	after, err := p.usage()
	gone.Gone, gone.Size = true, max(0, before-after)
	return gone, err
}

// remove removes an image with its forms and references, but for its blobs.
func (p *part) remove(img Image) error {
	if img.Owner != "" && img.Owner != buildOwner || slices.ContainsFunc(img.Forms, func(f Form) bool { return f.Owned }) {
		return fmt.Errorf("image %s belongs to templates of the server, which removes it when none is left: %w", called(img), paddock.Conflict)
	}
	return p.drop(img)
}

func called(img Image) string {
	if len(img.References) > 0 {
		return img.References[0]
	}
	return img.Digest
}

// drop is remove, whoever owns the image.
func (p *part) drop(img Image) error {
	dir := p.Image(img.Digest)
	lock, err := shelf.Claim(filepath.Join(dir, shelf.HoldFile), os.O_RDONLY)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, shelf.ErrBusy):
		return fmt.Errorf("image %s is in use: remove the sandboxes that run from it first (`paddock ls` lists them): %w", called(img), paddock.Conflict)
	case err != nil:
		return err
	}
	defer lock.Close()
	if who := p.keepers(img.Digest); len(who) > 0 {
		return fmt.Errorf("image %s is needed by a sandbox or a snapshot: `paddock ls` lists sandboxes, `paddock rm` removes them; it is kept by %s: %w", called(img), strings.Join(who, ", and by "), paddock.Conflict)
	}
	if err := p.ready(); err != nil {
		return err
	}
	for _, name := range img.References {
		if err := os.Remove(p.RefFile(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("images: %w: %w", err, paddock.Internal)
		}
	}
	away := p.At(tmpDir, "gone-"+random())
	if err := os.Rename(dir, away); err != nil {
		return fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	if err := os.RemoveAll(away); err != nil {
		return fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	return nil
}

// collect removes blobs that no image has. It does nothing while something is added: another time.
func (p *part) collect() error {
	lock, err := shelf.Claim(p.At(lockFile), os.O_RDONLY|os.O_CREATE)
	if errors.Is(err, shelf.ErrBusy) || errors.Is(err, fs.ErrNotExist) {
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
	used := map[string]bool{}
	for _, digest := range names {
		img, err := p.Read(digest)
		if errors.Is(err, paddock.NotFound) {
			continue // removed meanwhile
		}
		if err != nil {
			return err
		}
		used[shelf.Bare(img.Digest)], used[shelf.Bare(img.ConfigDigest)] = true, true
		for _, l := range img.Layers {
			used[shelf.Bare(l.Digest)] = true
		}
	}
	if err := p.eachCached(func(_ string, c cached) { used[shelf.Bare(c.Layer.Digest)] = true }); err != nil {
		return err
	}
	list, err := os.ReadDir(p.At(blobsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	var errs []error
	for _, e := range list {
		if !used[e.Name()] {
			errs = append(errs, os.Remove(p.At(blobsDir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// A Prune says what to remove. Images in use and those of somebody's own stay.
type Prune struct {
	Tenant string
	Older  time.Duration // since an image was used; 0 removes none by age
	Builds bool          // only what builds keep is removed, and no image
	Keep   int64         // bytes that all images may take: those that were used longest ago go first; 0 is no bound
	Now    time.Time
}

// Prune removes images without a reference, those that are too old, and as many as are too much. It also removes what
// is left of downloads that were given up, and layers that builds keep for the next one. It returns the images that it
// removed.
func (s *Store) Prune(ctx context.Context, q Prune) ([]Removed, error) {
	p := s.part(q.Tenant)
	list, err := s.Images(q.Tenant)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(p.sweep(true), p.forget(0), p.collect()); err != nil {
		return nil, err
	}
	total, err := p.usage()
	if err != nil || q.Builds {
		return []Removed{}, err
	}
	removed := []Removed{}
	for n := len(list) - 1; n >= 0 && ctx.Err() == nil; n-- { // the last used is the first of the list
		img := list[n]
		if len(img.References) > 0 && (q.Older == 0 || q.Now.Sub(img.Used) < q.Older) && (q.Keep == 0 || total <= q.Keep) {
			continue
		}
		if err := p.remove(img); errors.Is(err, paddock.Conflict) {
			continue // in use
		} else if err != nil {
			return removed, err
		}
		if err := p.collect(); err != nil {
			return removed, err
		}
		left, err := p.usage()
		if err != nil {
			return removed, err
		}
		removed = append(removed, Removed{Reference: strings.Join(img.References, " "), Digest: img.Digest, Gone: true, Size: max(0, total-left)})
		total = left
	}
	return removed, nil
}

// Sweep removes images of a tenant that an owner alone asked for, and those of the owner's form, for which used returns
// false. It does nothing while an image of the tenant is being pulled. Images in use stay.
func (s *Store) Sweep(tenant, owner string, form image.Form, used func(digest string) bool) error {
	p := s.part(tenant)
	turn := p.busy()
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	default:
		return nil // another time
	}
	list, err := s.Images(tenant)
	if err != nil {
		return err
	}
	var errs []error
	for _, img := range list {
		switch {
		case img.Owner == owner && !used(img.Digest):
			if err := p.drop(img); !errors.Is(err, paddock.Conflict) {
				errs = append(errs, err)
			}
		case img.Owner != owner && has(&img, form) && !used(img.Digest):
			errs = append(errs, p.unform(img, form))
		}
	}
	return errors.Join(append(errs, p.collect(), p.sweepOld(used))...)
}

// sweepOld removes images that a version before this store unpacked: in the tenant's directory, by the name of the digest.
// What was begun from one stays on it.
func (p *part) sweepOld(used func(digest string) bool) error {
	list, err := os.ReadDir(string(p.Part))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	var errs []error
	for _, e := range list {
		if digest := "sha256:" + e.Name(); shelf.Bare(digest) == e.Name() && !used(digest) {
			errs = append(errs, os.RemoveAll(p.At(e.Name())))
		}
	}
	return errors.Join(errs...)
}

func has(i *Image, form image.Form) bool {
	return slices.ContainsFunc(i.Forms, func(f Form) bool { return f.Name == form })
}

// unform removes a form of an image that nobody uses.
func (p *part) unform(img Image, form image.Form) error {
	lock, err := shelf.Claim(filepath.Join(p.Image(img.Digest), shelf.HoldFile), os.O_RDONLY)
	if errors.Is(err, shelf.ErrBusy) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	for _, f := range img.Forms {
		if f.Name != form {
			continue
		}
		away := p.At(tmpDir, "gone-"+random())
		if err := os.Rename(filepath.Join(p.Image(img.Digest), f.Dir), away); err != nil {
			return fmt.Errorf("images: %w: %w", err, paddock.Internal)
		}
		if err := os.RemoveAll(away); err != nil {
			return fmt.Errorf("images: %w: %w", err, paddock.Internal)
		}
	}
	return nil
}

// Discard removes an image that an owner asked for in vain.
func (s *Store) Discard(tenant, owner, digest string) error {
	p := s.part(tenant)
	img, err := p.Read(digest)
	if errors.Is(err, paddock.NotFound) || err == nil && (img.Owner != owner || len(img.Forms) > 0) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(p.drop(img), p.collect())
}

// Empty removes all images of a tenant that is gone, so that nothing needs them.
func (s *Store) Empty(ctx context.Context, tenant string) error {
	p := s.part(tenant)
	if tenant == "" || !exists(string(p.Part)) {
		return nil
	}
	done, err := p.turn(ctx)
	if err != nil {
		return err
	}
	defer done()
	lock, err := shelf.Claim(p.At(lockFile), os.O_RDONLY|os.O_CREATE)
	if errors.Is(err, shelf.ErrBusy) {
		return fmt.Errorf("an image of the tenant is being pulled: %w", paddock.Conflict)
	}
	if err != nil {
		return fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	defer lock.Close()
	away := filepath.Join(s.o.Dir, "gone-"+random())
	if err := os.Rename(string(p.Part), away); err != nil {
		return fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	if err := os.RemoveAll(away); err != nil {
		return fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	return nil
}

// DigestOf returns the digest of the image whose files, in a form that is a directory, are at a path, or an empty string
// if the store in dir has none there.
func DigestOf(dir, path string) string {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	rel, err := filepath.Rel(real, filepath.Clean(path))
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	names := strings.Split(filepath.ToSlash(rel), "/") // tenant, images, digest, form, root
	if old := "sha256:"; len(names) == 3 && names[2] == shelf.FilesName && shelf.Bare(old+names[1]) == names[1] && exists(path) {
		return old + names[1] // of a version before this store
	}
	if len(names) != 5 || names[1] != shelf.ImagesDir || names[4] != shelf.FilesName || !strings.Contains(names[3], "@") {
		return ""
	}
	digest := "sha256:" + names[2]
	p := shelf.Part(filepath.Join(real, names[0]))
	if _, err := p.Read(digest); err != nil || !exists(path) {
		return ""
	}
	return digest
}
