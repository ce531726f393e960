package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
	"github.com/paddock-sandbox/paddock/internal/image/registry"
)

// Files of an image's directory, beside its forms.
const (
	recordFile = "image.json"
	holdFile   = "hold" // locked by who uses the image; its time is that of the last use
)

// A Blob is a part of an image.
type Blob struct {
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
	MediaType string `json:"mediaType,omitempty"`
}

// An Image is an image that the store holds.
type Image struct {
	Digest     string       `json:"digest"`
	References []string     `json:"references"` // that lead to it
	Size       int64        `json:"size"`       // of its layers, as they were sent
	Forms      []Form       `json:"forms"`
	Pulled     time.Time    `json:"pulled"`
	Used       time.Time    `json:"used"`
	Origins    []string     `json:"origins,omitempty"` // registries that granted it; FromFile for one that was loaded
	Signers    []string     `json:"signers,omitempty"` // fingerprints of keys whose signatures were verified
	Config     image.Config `json:"config"`
	Layers     []Blob       `json:"layers"`

	Manifest     Blob   `json:"manifest"`
	ConfigDigest string `json:"configDigest"`

	// Owner is who alone may remove the image, "" for everybody.
	Owner string `json:"owner,omitempty"`
}

// FromFile is the origin of an image that was loaded.
const FromFile = "file"

// A Form is a form in which an image is kept.
type Form struct {
	Name  image.Form `json:"form"`
	Size  int64      `json:"size"`
	Owned bool       `json:"owned,omitempty"`

	dir string
}

// A reference is the record of one.
type reference struct {
	Reference string    `json:"reference"`
	Digest    string    `json:"digest"`
	Top       string    `json:"top,omitempty"` // of the list of images that it leads to, if it does
	Time      time.Time `json:"time"`
}

// NameOf returns a reference as the store writes it, with its registry and its tag.
func NameOf(text string) (string, error) {
	ref, err := registry.ParseReference(text)
	return ref.String(), err
}

func (p *part) refFile(name string) string {
	sum := sha256.Sum256([]byte(name))
	return p.at(refsDir, hex.EncodeToString(sum[:16])+".json")
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

// references lists those of the part, by name.
func (p *part) references() ([]reference, error) {
	list, err := os.ReadDir(p.at(refsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	var all []reference
	for _, e := range list {
		var r reference
		data, err := os.ReadFile(p.at(refsDir, e.Name()))
		if err != nil || json.Unmarshal(data, &r) != nil {
			continue // removed meanwhile
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b reference) int { return cmp.Compare(a.Reference, b.Reference) })
	return all, nil
}

// lead lets a reference lead to an image.
func (p *part) lead(r reference) error { return p.write(p.refFile(r.Reference), r) }

// digests lists the images of the part.
func (p *part) digests() ([]string, error) {
	list, err := os.ReadDir(p.at(imagesDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	names := make([]string, 0, len(list))
	for _, e := range list {
		if digest := "sha256:" + e.Name(); bare(digest) == e.Name() {
			names = append(names, digest)
		}
	}
	return names, nil
}

// read returns an image without its references. One that is not there is [paddock.NotFound].
func (p *part) read(digest string) (Image, error) {
	var img Image
	data, err := os.ReadFile(filepath.Join(p.image(digest), recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return img, fmt.Errorf("image %s is not here: %w", clip(digest), paddock.NotFound)
	}
	if err != nil {
		return img, fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	if err := json.Unmarshal(data, &img); err != nil || img.Digest != digest {
		return img, fmt.Errorf("image %s: its record is damaged: remove it and pull it again: %w", digest, paddock.Internal)
	}
	if st, err := os.Stat(filepath.Join(p.image(digest), holdFile)); err == nil {
		img.Used = st.ModTime()
	}
	img.Forms = p.forms(digest)
	img.References = []string{}
	return img, nil
}

// forms lists the forms of an image that are whole.
func (p *part) forms(digest string) []Form {
	list, _ := os.ReadDir(p.image(digest)) // one that is not there has none
	forms := []Form{}
	for _, e := range list {
		name, _, ok := strings.Cut(e.Name(), "@")
		if !ok || !e.IsDir() {
			continue
		}
		f := Form{Name: image.Form(name), dir: e.Name()}
		if data, err := os.ReadFile(filepath.Join(p.image(digest), e.Name(), aboutFile)); err == nil {
			_ = json.Unmarshal(data, &f) // a size that cannot be read is none
		}
		f.Name = image.Form(name)
		forms = append(forms, f)
	}
	return forms
}

// Images lists the images of a tenant, those that were used last first.
func (s *Store) Images(tenant string) ([]Image, error) {
	p := s.part(tenant)
	names, err := p.digests()
	if err != nil {
		return nil, err
	}
	refs, err := p.references()
	if err != nil {
		return nil, err
	}
	list := []Image{}
	for _, digest := range names {
		img, err := p.read(digest)
		if errors.Is(err, paddock.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		img.named(refs)
		list = append(list, img)
	}
	slices.SortFunc(list, func(a, b Image) int { return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.Digest, b.Digest)) })
	return list, nil
}

func (i *Image) named(refs []reference) {
	for _, r := range refs {
		if r.Digest == i.Digest {
			i.References = append(i.References, r.Reference)
		}
	}
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
func (s *Store) find(tenant, text string) (Image, error) {
	p := s.part(tenant)
	refs, err := p.references()
	if err != nil {
		return Image{}, err
	}
	digest := text
	if !strings.HasPrefix(text, "sha256:") {
		ref, err := registry.ParseReference(text)
		if err != nil {
			return Image{}, err
		}
		if digest = led(refs, ref); digest == "" {
			return Image{}, fmt.Errorf("image %s is not here: `paddock image pull %s` pulls it: %w", ref, clip(text), paddock.NotFound)
		}
	}
	img, err := p.read(digest)
	if err != nil {
		return Image{}, err
	}
	img.named(refs)
	return img, nil
}

// led returns the digest that a reference leads to: by its name, or, if it has a digest, by any name of the repository
// that led to that digest.
func led(refs []reference, ref registry.Reference) string {
	for _, r := range refs {
		if r.Reference == ref.String() {
			return r.Digest
		}
	}
	if ref.Digest == "" {
		return ""
	}
	for _, r := range refs {
		other, err := registry.ParseReference(r.Reference)
		if err == nil && other.Host == ref.Host && other.Name == ref.Name && (r.Top == ref.Digest || r.Digest == ref.Digest) {
			return r.Digest
		}
	}
	return ""
}

func clip(text string) string {
	if len(text) > 200 {
		return text[:200] + "…"
	}
	return text
}

// record writes the record of an image that has all its blobs, or adds to that which there is.
func (p *part) record(ctx context.Context, img Image) error {
	dir := p.image(img.Digest)
	for {
		was, err := p.read(img.Digest)
		switch {
		case err == nil:
			// Nobody removes the image while its record is written.
			lock, err := await(ctx, filepath.Join(dir, holdFile), os.O_RDONLY, true)
			if errors.Is(err, fs.ErrNotExist) {
				continue // it was removed
			}
			if err != nil {
				return err
			}
			img.Pulled, img.Owner = was.Pulled, merged(was.Owner, img.Owner)
			img.Origins, img.Signers = union(was.Origins, img.Origins), union(was.Signers, img.Signers)
			err = p.write(filepath.Join(dir, recordFile), img)
			return errors.Join(err, lock.Close())
		case !errors.Is(err, paddock.NotFound):
			return err
		}
		fresh, lock, err := p.fresh()
		if err != nil {
			return err
		}
		err = os.WriteFile(filepath.Join(fresh, holdFile), nil, 0o600)
		if err == nil {
			err = p.write(filepath.Join(fresh, recordFile), img)
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
