package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image/reference"
	"github.com/paddock-sandbox/paddock/internal/image/shelf"
)

// What a shelf and a store have in common.
type (
	// An Image is an image that the store holds.
	Image = shelf.Image
	// A Blob is a part of an image.
	Blob = shelf.Blob
	// A Form is a form in which an image is kept.
	Form = shelf.Form
)

// FromFile is the origin of an image that was loaded.
const FromFile = shelf.FromFile

// NameOf returns a reference as the store writes it, with its registry and its tag.
func NameOf(text string) (string, error) {
	ref, err := reference.Parse(text)
	return ref.String(), err
}

// write puts a value into a file, as a whole.
func (p *part) write(name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	f, err := p.temp()
	if err != nil {
		return err
	}
	fresh := f.Name()
	defer f.Close()
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(fresh, name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("images: %w: %w", full(err), paddock.Internal), os.Remove(fresh))
	}
	return nil
}

// lead lets a reference lead to an image.
func (p *part) lead(r shelf.Reference) error { return p.write(p.RefFile(r.Reference), r) }

// digests lists the images of the part.
func (p *part) digests() ([]string, error) {
	list, err := os.ReadDir(p.At(shelf.ImagesDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	names := make([]string, 0, len(list))
	for _, e := range list {
		if digest := "sha256:" + e.Name(); shelf.Bare(digest) == e.Name() {
			names = append(names, digest)
		}
	}
	return names, nil
}

// Images lists the images of a tenant, those that were used last first.
func (s *Store) Images(tenant string) ([]Image, error) {
	p := s.part(tenant)
	names, err := p.digests()
	if err != nil {
		return nil, err
	}
	refs, err := p.References()
	if err != nil {
		return nil, err
	}
	list := []Image{}
	for _, digest := range names {
		img, err := p.Read(digest)
		if errors.Is(err, paddock.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if img.Owner == buildOwner {
			continue // it is there while a build works on it
		}
		img.Named(refs)
		list = append(list, img)
	}
	slices.SortFunc(list, func(a, b Image) int { return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.Digest, b.Digest)) })
	return list, nil
}

// Resolve returns the image that a tenant's reference, or the digest of a manifest, leads to. It never asks a registry: a
// tag leads to what it led to when it was pulled. An image that is not there is [paddock.NotFound], and one that the
// store's policy does not allow is [paddock.Denied].
func (s *Store) Resolve(_ context.Context, tenant, text string) (Image, error) {
	return s.resolve(tenant, text, s.o.Policy)
}

func (s *Store) resolve(tenant, text string, policies ...Policy) (Image, error) {
	img, err := s.find(tenant, text)
	if err != nil {
		return Image{}, err
	}
	for _, policy := range policies {
		if err := policy.holds(text, img); err != nil {
			return Image{}, err
		}
	}
	return img, nil
}

// find is Resolve without a policy.
func (s *Store) find(tenant, text string) (Image, error) { return s.part(tenant).Find(text) }

// record writes the record of an image that has all its blobs, or adds to that which there is.
func (p *part) record(ctx context.Context, img Image) error {
	dir := p.Image(img.Digest)
	for {
		was, err := p.Read(img.Digest)
		switch {
		case err == nil:
			// Nobody removes the image while its record is written.
			lock, err := shelf.Await(ctx, filepath.Join(dir, shelf.HoldFile), os.O_RDONLY, true)
			if errors.Is(err, fs.ErrNotExist) {
				continue // it was removed
			}
			if err != nil {
				return err
			}
			img.Pulled, img.Owner = was.Pulled, merged(was.Owner, img.Owner)
			img.Origins, img.Signers = union(was.Origins, img.Origins), union(was.Signers, img.Signers)
			err = p.write(filepath.Join(dir, shelf.RecordFile), img)
			return errors.Join(err, lock.Close())
		case !errors.Is(err, paddock.NotFound):
			return err
		}
		fresh, lock, err := p.fresh()
		if err != nil {
			return err
		}
		err = os.WriteFile(filepath.Join(fresh, shelf.HoldFile), nil, 0o600)
		if err == nil {
			err = p.write(filepath.Join(fresh, shelf.RecordFile), img)
		}
		if err == nil {
			if err = os.Rename(fresh, dir); err == nil {
				return lock.Close()
			}
		}
		if err = errors.Join(full(err), os.RemoveAll(fresh), lock.Close()); !errors.Is(err, fs.ErrExist) && !exists(dir) {
			return fmt.Errorf("images: %w", err)
		}
	}
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// merged is who owns an image that two asked for: nobody, if one is nobody.
func merged(a, b string) string {
	if a == b {
		return a
	}
	return ""
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
