// Package shelf finds what a store of images (package store) has ready: images by their references, and their forms.
// It has no part of the code that brings images there, so that a program which only begins sandboxes with images need
// not initialise that.
package shelf

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
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/image/reference"
)

// Names in the directory of a tenant.
const (
	ImagesDir = "images" // by the digest of the manifest: record, forms and locks
	RefsDir   = "refs"   // by the checksum of the reference
)

// Files of an image's directory, and of a form's in it.
const (
	RecordFile = "image.json"
	HoldFile   = "hold"      // locked by who uses the image; its time is that of the last use
	AboutFile  = "form.json" // its size
	FilesName  = "root"      // a directory or a file
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
	Origins    []string     `json:"origins,omitempty"` // registries that granted it, FromFile or FromBuild
	Signers    []string     `json:"signers,omitempty"` // fingerprints of keys whose signatures were verified
	Config     image.Config `json:"config"`
	Layers     []Blob       `json:"layers"`

	Manifest     Blob   `json:"manifest"`
	ConfigDigest string `json:"configDigest"`

	// Owner is who alone may remove the image, "" for everybody.
	Owner string `json:"owner,omitempty"`
}

// Origins that are no registry.
const (
	FromFile  = "file"  // the image was loaded
	FromBuild = "build" // it was built here
)

// A Form is a form in which an image is kept.
type Form struct {
	Name  image.Form `json:"form"`
	Size  int64      `json:"size"`
	Owned bool       `json:"owned,omitempty"`

	Dir string `json:"-"` // its directory in that of the image
}

// DirOf is the name of the directory of a form that this version of a converter makes.
func DirOf(form image.Form, version int) string { return string(form) + "@" + strconv.Itoa(version) }

// A Reference is the record of one.
type Reference struct {
	Reference string    `json:"reference"`
	Digest    string    `json:"digest"`
	Top       string    `json:"top,omitempty"` // of the list of images that it leads to, if it does
	Time      time.Time `json:"time"`
}

// A Part is what a tenant has in a store: the path of its directory.
type Part string

// PartOf returns a tenant's part of the store in a directory. No name of a tenant is part of a path.
func PartOf(dir, tenant string) Part {
	sum := sha256.Sum256([]byte(tenant))
	return Part(filepath.Join(dir, hex.EncodeToString(sum[:16])))
}

// At is the path of something in the part.
func (p Part) At(names ...string) string {
	return filepath.Join(append([]string{string(p)}, names...)...)
}

// Image is the directory of an image.
func (p Part) Image(digest string) string { return p.At(ImagesDir, Bare(digest)) }

// Bare is the part of a digest that is a name of a file. Of a text that is no digest it is a name that nothing has.
func Bare(digest string) string {
	if !reference.GoodDigest(digest) {
		return "none"
	}
	return strings.TrimPrefix(digest, "sha256:")
}

// RefFile is the record of a reference.
func (p Part) RefFile(name string) string {
	sum := sha256.Sum256([]byte(name))
	return p.At(RefsDir, hex.EncodeToString(sum[:16])+".json")
}

// References lists those of the part, by name.
func (p Part) References() ([]Reference, error) {
	list, err := os.ReadDir(p.At(RefsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	var all []Reference
	for _, e := range list {
		var r Reference
		data, err := os.ReadFile(p.At(RefsDir, e.Name()))
		if err != nil || json.Unmarshal(data, &r) != nil {
			continue // removed meanwhile
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b Reference) int { return cmp.Compare(a.Reference, b.Reference) })
	return all, nil
}

// Read returns an image without its references. One that is not there is [paddock.NotFound].
func (p Part) Read(digest string) (Image, error) {
	var img Image
	data, err := os.ReadFile(filepath.Join(p.Image(digest), RecordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return img, fmt.Errorf("image %s is not here: %w", Clip(digest), paddock.NotFound)
	}
	if err != nil {
		return img, fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	if err := json.Unmarshal(data, &img); err != nil || img.Digest != digest {
		return img, fmt.Errorf("image %s: its record is damaged: remove it and pull it again: %w", digest, paddock.Internal)
	}
	if st, err := os.Stat(filepath.Join(p.Image(digest), HoldFile)); err == nil {
		img.Used = st.ModTime()
	}
	img.Forms = p.Forms(digest)
	img.References = []string{}
	return img, nil
}

// Forms lists the forms of an image that are whole.
func (p Part) Forms(digest string) []Form {
	list, _ := os.ReadDir(p.Image(digest)) // one that is not there has none
	forms := []Form{}
	for _, e := range list {
		name, _, ok := strings.Cut(e.Name(), "@")
		if !ok || !e.IsDir() {
			continue
		}
		f := Form{Name: image.Form(name)}
		if data, err := os.ReadFile(filepath.Join(p.Image(digest), e.Name(), AboutFile)); err == nil {
			_ = json.Unmarshal(data, &f) // a size that cannot be read is none
		}
		f.Name, f.Dir = image.Form(name), e.Name()
		forms = append(forms, f)
	}
	return forms
}

// Named adds the references that lead to an image.
func (i *Image) Named(refs []Reference) {
	for _, r := range refs {
		if r.Digest == i.Digest {
			i.References = append(i.References, r.Reference)
		}
	}
}

// Tree returns a form of an image of the part, by the name of its directory, if it is there.
func (i *Image) Tree(p Part, dir string) (image.Tree, bool) {
	for _, f := range i.Forms {
		if f.Dir == dir {
			return image.Tree{Digest: i.Digest, Form: f.Name, Path: filepath.Join(p.Image(i.Digest), dir, FilesName), Size: f.Size, Config: i.Config}, true
		}
	}
	return image.Tree{}, false
}

// Find returns the image that a reference, or the digest of a manifest, leads to. A tag leads to what it led to when it
// was pulled. An image that is not there is [paddock.NotFound].
func (p Part) Find(text string) (Image, error) {
	refs, err := p.References()
	if err != nil {
		return Image{}, err
	}
	digest := text
	if !strings.HasPrefix(text, "sha256:") {
		ref, err := reference.Parse(text)
		if err != nil {
			return Image{}, err
		}
		if digest = led(refs, ref); digest == "" {
			return Image{}, fmt.Errorf("image %s is not here: `paddock image pull %s` pulls it: %w", ref, Clip(text), paddock.NotFound)
		}
	}
	img, err := p.Read(digest)
	if err != nil {
		return Image{}, err
	}
	img.Named(refs)
	return img, nil
}

// led returns the digest that a reference leads to: by its name, or, if it has a digest, by any name of the repository
// that led to that digest.
func led(refs []Reference, ref reference.Reference) string {
	for _, r := range refs {
		if r.Reference == ref.String() {
			return r.Digest
		}
	}
	if ref.Digest == "" {
		return ""
	}
	for _, r := range refs {
		other, err := reference.Parse(r.Reference)
		if err == nil && other.Host == ref.Host && other.Name == ref.Name && (r.Top == ref.Digest || r.Digest == ref.Digest) {
			return r.Digest
		}
	}
	return ""
}

// Clip shortens a text of a stranger for an error.
func Clip(text string) string {
	if len(text) > 200 {
		return text[:200] + "…"
	}
	return text
}

// Take returns a form of an image that is ready, and holds the image. One that is not ready is [paddock.NotFound].
func (p Part) Take(ctx context.Context, digest, dir string) (image.Tree, *os.File, error) {
	lock, err := Await(ctx, filepath.Join(p.Image(digest), HoldFile), os.O_RDWR, true)
	if errors.Is(err, fs.ErrNotExist) {
		return image.Tree{}, nil, fmt.Errorf("image %s is not here: %w", Clip(digest), paddock.NotFound)
	}
	if err != nil {
		return image.Tree{}, nil, fmt.Errorf("image %s: %w", digest, err)
	}
	img, err := p.Read(digest)
	if err == nil {
		if tree, ok := img.Tree(p, dir); ok {
			now := time.Now()
			_ = os.Chtimes(lock.Name(), now, now) // else it only looks as if it were unused
			return tree, lock, nil
		}
		err = fmt.Errorf("image %s is here, but not in the form %s: %w", digest, dir, paddock.NotFound)
	}
	return image.Tree{}, nil, errors.Join(err, lock.Close())
}

// A Shelf is the part of the caller in a store. It implements [image.Source] for images that are ready.
type Shelf struct{ Part Part }

// Tree implements [image.Source].
func (s Shelf) Tree(ctx context.Context, digest string, form image.Form) (image.Tree, *os.File, error) {
	return s.Part.Take(ctx, digest, DirOf(form, Version(form)))
}

// Version is that of the converter which makes a form now.
func Version(image.Form) int { return 1 }
