package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/image/reference"
	"github.com/paddock-sandbox/paddock/internal/image/registry"
	"github.com/paddock-sandbox/paddock/internal/image/shelf"
)

// Bounds of what is loaded.
const (
	maxDocument = 4 << 20 // of a manifest, a configuration or an index
	maxLoaded   = 100     // images of one archive
	maxLayers   = 500
)

// A Load names an image outside of registries: a directory or a file.
type Load struct {
	Tenant string
	Path   string    // a directory: an OCI layout or a file tree; or an archive in tar, in gzip or zstd too
	Input  io.Reader // an archive, in place of Path
	Tag    string    // the reference of the image; needed where the source has none
}

// A source is where an image is loaded from, once the kind of it is known.
type source interface {
	document(name string) ([]byte, error)                   // a small file; one that is not there is fs.ErrNotExist
	take(ctx context.Context, digest string, n int64) error // brings a blob into the store
}

// Load puts images into the store from an OCI layout (a directory or an archive), an archive of `docker save`, or a file
// tree (a directory or an archive), which becomes an image of one layer. Digests are checked.
func (s *Store) Load(ctx context.Context, q Load) ([]Image, error) {
	if q.Tag != "" {
		ref, err := reference.Parse(q.Tag)
		if err != nil {
			return nil, err
		}
		if ref.Digest != "" {
			return nil, fmt.Errorf("image %s: a tag has no digest: %w", ref, paddock.Invalid)
		}
		q.Tag = ref.String()
	}
	p := s.part(q.Tenant)
	done, err := p.turn(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := p.ready(); err != nil {
		return nil, err
	}
	lock, err := shelf.Await(ctx, p.At(lockFile), os.O_RDONLY|os.O_CREATE, true)
	if err != nil {
		return nil, err
	}
	list, err := p.load(ctx, q)
	err = errors.Join(err, lock.Close())
	if err = errors.Join(full(err), p.collect()); err != nil { // documents that are no part of an image
		return nil, err
	}
	images := []Image{}
	for _, digest := range list {
		img, err := s.find(q.Tenant, digest)
		if err != nil {
			return nil, err
		}
		images = append(images, img)
	}
	return images, nil
}

func (p *part) load(ctx context.Context, q Load) ([]string, error) {
	if err := p.sweep(false); err != nil {
		return nil, err
	}
	room, err := p.room()
	if err != nil {
		return nil, err
	}
	room = min(room, p.s.o.Sent)
	if q.Path == "" {
		return p.loadStream(ctx, q, room)
	}
	st, err := os.Stat(q.Path)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", err, paddock.NotFound)
	case st.Mode().IsRegular():
		f, err := plain(os.OpenFile(q.Path, os.O_RDONLY|syscall.O_NONBLOCK, 0))
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return p.loadArchive(ctx, q, f, room)
	case !st.IsDir():
		return nil, fmt.Errorf("%s is neither a directory nor a file: %w", q.Path, paddock.Invalid)
	}
	root, err := os.OpenRoot(q.Path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Denied)
	}
	defer root.Close()
	if _, err := root.Stat("oci-layout"); err == nil {
		return p.loadLayout(ctx, q, &directory{p, root, room})
	}
	return p.loadTree(ctx, q, root, room)
}

// loadStream keeps a stream in a file, because its kind is known at its end.
func (p *part) loadStream(ctx context.Context, q Load, room int64) ([]string, error) {
	f, err := p.temp()
	if err != nil {
		return nil, err
	}
	name := f.Name()
	defer f.Close()
	defer func() { _ = os.Remove(name) }() // else it is swept
	n, err := io.Copy(f, &ends{ctx, io.LimitReader(q.Input, room+1)})
	if err != nil {
		return nil, err
	}
	if n > room {
		return nil, tooLarge(room)
	}
	return p.loadArchive(ctx, q, f, room)
}

func tooLarge(room int64) error {
	return fmt.Errorf("the image has more than %d MiB, for which there is no room: %w", room>>20, paddock.Exhausted)
}

// An ends reader ends with its context.
type ends struct {
	ctx context.Context //nolint:containedctx // a reader has no other way to be told
	r   io.Reader
}

func (e *ends) Read(p []byte) (int, error) {
	if e.ctx.Err() != nil {
		return 0, fmt.Errorf("it was given up: %w", paddock.Canceled)
	}
	return e.r.Read(p)
}

// A directory is an OCI layout in a directory.
type directory struct {
	p    *part
	root *os.Root
	room int64
}

func (d *directory) document(name string) ([]byte, error) {
	f, err := openPlain(d.root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return document(f)
}

func document(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	if err == nil && len(data) > maxDocument {
		err = fmt.Errorf("it has more than %d MiB: %w", maxDocument>>20, paddock.Exhausted)
	}
	return data, err
}

func (d *directory) take(ctx context.Context, digest string, n int64) error {
	f, err := openPlain(d.root, "blobs/sha256/"+shelf.Bare(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return missing(digest)
	}
	if err != nil {
		return fmt.Errorf("its blob %s: %w", shelf.Clip(digest), err)
	}
	defer f.Close()
	if d.room -= n; d.room < 0 {
		return tooLarge(0)
	}
	b, err := d.p.spool(ctx, n, func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	})
	if err == nil && b.Digest != digest {
		return fmt.Errorf("its blob %s is another, %s: %w", digest, b.Digest, paddock.Conflict)
	}
	return err
}

func missing(digest string) error {
	return fmt.Errorf("its blob %s is not there: %w", shelf.Clip(digest), paddock.NotFound)
}

// loadLayout loads the images of an OCI layout.
func (p *part) loadLayout(ctx context.Context, q Load, from source) ([]string, error) {
	data, err := from.document("index.json")
	if err != nil {
		return nil, fmt.Errorf("index.json: %w: %w", err, paddock.Invalid)
	}
	var index v1.IndexManifest
	if err := json.Unmarshal(data, &index); err != nil || len(index.Manifests) > maxLoaded {
		return nil, fmt.Errorf("index.json is no index of images: %w", paddock.Invalid)
	}
	var own []v1.Descriptor
	for _, d := range index.Manifests {
		if d.Platform == nil || d.Platform.OS == "" || d.MediaType.IsIndex() || d.Platform.OS == "linux" && d.Platform.Architecture == runtime.GOARCH {
			own = append(own, d)
		}
	}
	if len(own) == 0 {
		if _, err := registry.Choose(index.Manifests, "linux", runtime.GOARCH); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("there is no image in it: %w", paddock.NotFound)
	}
	if q.Tag != "" && len(own) > 1 {
		return nil, fmt.Errorf("there are %d images in it, and one tag: %w", len(own), paddock.Invalid)
	}
	var list []string
	for _, d := range own {
		name := q.Tag
		if name == "" {
			name = nameOf(d.Annotations)
		}
		digest, err := p.loadManifest(ctx, d, from, []string{name})
		if err != nil {
			return nil, err
		}
		list = append(list, digest)
	}
	return list, nil
}

// nameOf is the reference that the annotations of a layout's image have.
func nameOf(notes map[string]string) string {
	for _, key := range []string{"io.containerd.image.name", "org.opencontainers.image.ref.name"} {
		if text := notes[key]; strings.ContainsAny(text, ":/") { // else it is a tag alone
			return text
		}
	}
	return ""
}

func (p *part) loadManifest(ctx context.Context, d v1.Descriptor, from source, names []string) (string, error) {
	data, err := p.taken(ctx, d, from)
	if err != nil {
		return "", err
	}
	if d.MediaType.IsIndex() {
		var index v1.IndexManifest
		if err := json.Unmarshal(data, &index); err != nil {
			return "", fmt.Errorf("%s is no list of images: %w", d.Digest, paddock.Invalid)
		}
		wanted, err := registry.Choose(index.Manifests, "linux", runtime.GOARCH)
		if err != nil {
			return "", err
		}
		for _, one := range index.Manifests {
			if one.Digest.String() == wanted && !one.MediaType.IsIndex() {
				return p.loadManifest(ctx, one, from, names)
			}
		}
		return "", fmt.Errorf("it is a list of lists, and one of images is read: %w", paddock.Unsupported)
	}
	var m v1.Manifest
	if err := json.Unmarshal(data, &m); err != nil || m.SchemaVersion != 2 || len(m.Layers) > maxLayers {
		return "", fmt.Errorf("%s is no manifest of an image: %w", d.Digest, paddock.Invalid)
	}
	config, err := p.taken(ctx, m.Config, from)
	if err != nil {
		return "", err
	}
	for n, l := range m.Layers {
		if l.Size < 0 || shelf.Bare(l.Digest.String()) == "none" {
			return "", fmt.Errorf("layer %d has no digest that is known: %w", n+1, paddock.Invalid)
		}
		if p.has(l.Digest.String(), l.Size) {
			continue
		}
		if err := from.take(ctx, l.Digest.String(), l.Size); err != nil {
			return "", fmt.Errorf("layer %d of %d: %w", n+1, len(m.Layers), err)
		}
	}
	return p.loaded(ctx, data, config, names)
}

// taken brings a document into the store, and reads it.
func (p *part) taken(ctx context.Context, d v1.Descriptor, from source) ([]byte, error) {
	if d.Size < 0 || d.Size > maxDocument || shelf.Bare(d.Digest.String()) == "none" {
		return nil, fmt.Errorf("a document of the image has no digest that is known, or is too large: %w", paddock.Invalid)
	}
	if !p.has(d.Digest.String(), d.Size) {
		if err := from.take(ctx, d.Digest.String(), d.Size); err != nil {
			return nil, err
		}
	}
	data, err := os.ReadFile(p.blob(d.Digest.String()))
	if err != nil {
		return nil, fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	return data, nil
}

// loaded records an image whose blobs are here.
func (p *part) loaded(ctx context.Context, manifest, config []byte, names []string) (string, error) {
	refs, err := references(names)
	if err != nil {
		return "", err
	}
	return p.kept(ctx, Image{Origins: []string{FromFile}}, manifest, config, refs)
}

// kept records an image of which the origins and the owner are given, and lets references lead to it.
func (p *part) kept(ctx context.Context, img Image, manifest, config []byte, refs []string) (string, error) {
	var m v1.Manifest
	var platform struct {
		OS           string `json:"os"`
		Architecture string `json:"architecture"`
	}
	if err := errors.Join(json.Unmarshal(manifest, &m), json.Unmarshal(config, &platform)); err != nil {
		return "", fmt.Errorf("the image's configuration cannot be read: %w", paddock.Invalid)
	}
	if platform.OS != "linux" || platform.Architecture != runtime.GOARCH {
		return "", fmt.Errorf("the image is for %q, and this machine is linux/%s: %w", shelf.Clip(platform.OS+"/"+platform.Architecture), runtime.GOARCH, paddock.Unsupported)
	}
	img.Digest, img.Pulled, img.ConfigDigest = sumOf(manifest), time.Now().UTC().Truncate(time.Second), m.Config.Digest.String()
	img.Manifest = Blob{Digest: img.Digest, Size: int64(len(manifest)), MediaType: string(m.MediaType)}
	var err error
	if img.Config, err = image.ParseConfig(config); err != nil {
		return "", err
	}
	for n, l := range m.Layers {
		if !p.has(l.Digest.String(), l.Size) {
			return "", fmt.Errorf("layer %d of %d: its size is not what the manifest says: %w", n+1, len(m.Layers), paddock.Conflict)
		}
		img.Layers = append(img.Layers, Blob{Digest: l.Digest.String(), Size: l.Size, MediaType: string(l.MediaType)})
		img.Size += l.Size
	}
	if err := p.few(img.Digest); err != nil {
		return "", err
	}
	if err := p.keep(ctx, img, manifest, config); err != nil {
		return "", err
	}
	for _, name := range refs {
		if err := p.lead(shelf.Reference{Reference: name, Digest: img.Digest, Time: img.Pulled}); err != nil {
			return "", err
		}
	}
	return img.Digest, nil
}

// mostReferences is how many names an image that is loaded may have. Each is a file, which is looked at whenever an image is
// sought.
const mostReferences = 100

// references checks the names of an image that is loaded. Without one, nobody could name it, and it would be removed.
func references(names []string) ([]string, error) {
	if len(names) > mostReferences {
		return nil, fmt.Errorf("the image has %d names, and the most that are taken are %d: give it one, with --tag NAME: %w", len(names), mostReferences, paddock.Exhausted)
	}
	var list []string
	for _, name := range names {
		if name == "" {
			continue
		}
		ref, err := reference.Parse(name)
		if err != nil {
			return nil, err
		}
		ref.Digest = ""
		list = append(list, ref.String())
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("the image has no name: give it one, with --tag NAME: %w", paddock.Invalid)
	}
	return list, nil
}

// made makes the manifest of an image from its configuration and layers.
func (p *part) made(ctx context.Context, config []byte, layers []v1.Descriptor, names []string) (string, error) {
	manifest, err := manifestOf(config, layers)
	if err != nil {
		return "", err
	}
	return p.loaded(ctx, manifest, config, names)
}

// manifestOf makes the manifest of an image.
func manifestOf(config []byte, layers []v1.Descriptor) ([]byte, error) {
	sum, err := v1.NewHash(sumOf(config))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Internal)
	}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Layers: layers,
		Config: v1.Descriptor{MediaType: types.OCIConfigJSON, Size: int64(len(config)), Digest: sum},
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Internal)
	}
	return manifest, nil
}

// plain makes an image of one layer without a configuration. The checksum is that of the layer's content.
func (p *part) plain(ctx context.Context, layer v1.Descriptor, content, tag string) (string, error) {
	config, err := json.Marshal(map[string]any{
		"os": "linux", "architecture": runtime.GOARCH, "config": map[string]any{},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{content}},
	})
	if err != nil {
		return "", fmt.Errorf("%w: %w", err, paddock.Internal)
	}
	return p.made(ctx, config, []v1.Descriptor{layer}, []string{tag})
}

// loadTree makes an image of the files in a directory.
func (p *part) loadTree(ctx context.Context, q Load, root *os.Root, room int64) ([]string, error) {
	if _, err := references([]string{q.Tag}); err != nil {
		return nil, err
	}
	b, err := p.spool(ctx, room, func(w io.Writer) error { return pack(ctx, root, w) })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(q.Path), err)
	}
	d, err := described(b, types.OCIUncompressedLayer)
	if err != nil {
		return nil, err
	}
	digest, err := p.plain(ctx, d, b.Digest, q.Tag)
	return []string{digest}, err
}

func described(b Blob, kind types.MediaType) (v1.Descriptor, error) {
	sum, err := v1.NewHash(b.Digest)
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("%w: %w", err, paddock.Internal)
	}
	return v1.Descriptor{MediaType: kind, Size: b.Size, Digest: sum}, nil
}
