package store

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image/layer"
	"github.com/paddock-sandbox/paddock/internal/image/shelf"
)

// maxEntries bounds the entries of an archive that holds images.
const maxEntries = 10_000

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// spool puts what write writes into the store as a blob, of a bounded size.
func (p *part) spool(ctx context.Context, most int64, write func(io.Writer) error) (Blob, error) {
	f, err := p.temp()
	if err != nil {
		return Blob{}, err
	}
	name := f.Name()
	defer f.Close()
	w := &spooled{ctx: ctx, f: f, left: most, sum: sha256.New()}
	if err := write(w); err != nil {
		return Blob{}, errors.Join(full(err), os.Remove(name))
	}
	b := Blob{Digest: "sha256:" + hex.EncodeToString(w.sum.Sum(nil)), Size: most - w.left}
	if err := os.Rename(name, p.blob(b.Digest)); err != nil {
		return Blob{}, fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	return b, nil
}

type spooled struct {
	ctx  context.Context //nolint:containedctx // a writer has no other way to be told
	f    *os.File
	left int64
	sum  interface {
		io.Writer
		Sum(b []byte) []byte
	}
}

func (s *spooled) Write(b []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, fmt.Errorf("it was given up: %w", paddock.Canceled)
	}
	if s.left -= int64(len(b)); s.left < 0 {
		return 0, fmt.Errorf("it is larger than it says, or than there is room: %w", paddock.Exhausted)
	}
	_, _ = s.sum.Write(b) // it never fails
	return s.f.Write(b)
}

// A bundle is an archive that holds images, read into the store.
type bundle struct {
	p     *part
	files map[string]Blob   // by name
	docs  map[string][]byte // those that tell what is in it
	links map[string]string
}

// loadArchive finds out what an archive is, and loads it.
func (p *part) loadArchive(ctx context.Context, q Load, f *os.File, room int64) ([]string, error) {
	names, content, err := p.scan(ctx, f)
	if err != nil {
		return nil, err
	}
	if !names["manifest.json"] && (!names["oci-layout"] || !names["index.json"]) {
		return p.loadRootArchive(ctx, q, f, content, room)
	}
	b := &bundle{p: p, files: map[string]Blob{}, docs: map[string][]byte{}, links: map[string]string{}}
	if err := b.read(ctx, f, room); err != nil {
		return nil, err
	}
	if names["oci-layout"] && names["index.json"] {
		return p.loadLayout(ctx, q, b)
	}
	return b.docker(ctx, q)
}

// scan reads an archive, and returns the names of files at its top that tell what it is, and the digest of its content.
func (p *part) scan(ctx context.Context, f *os.File) (map[string]bool, string, error) {
	in, err := decompressed(ctx, f)
	if err != nil {
		return nil, "", err
	}
	defer in.Close()
	sum := sha256.New()
	all := &bounded{io.TeeReader(in, sum), p.s.o.Unpacked}
	names := map[string]bool{}
	r := tar.NewReader(all)
	for n := 0; ; n++ {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, "", archiveError(err)
		}
		if err := layer.Own(h); err != nil {
			return nil, "", err
		}
		if n > mostNames {
			return nil, "", fmt.Errorf("it has too many files: %w", paddock.Exhausted)
		}
		switch name := path.Clean(h.Name); name {
		case "manifest.json", "oci-layout", "index.json":
			names[name] = h.Typeflag == tar.TypeReg
		}
	}
	if _, err := io.Copy(io.Discard, all); err != nil {
		return nil, "", archiveError(err)
	}
	return names, "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}

func archiveError(err error) error {
	var k paddock.Kind
	if errors.As(err, &k) {
		return err
	}
	return fmt.Errorf("it is no archive in tar, in gzip or zstd or not compressed: %w: %w", err, paddock.Invalid)
}

func decompressed(ctx context.Context, f *os.File) (io.ReadCloser, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Internal)
	}
	in, err := layer.Decompress(ctx, f)
	if err != nil {
		return nil, archiveError(err)
	}
	return in, nil
}

// A bounded reader gives no more than an image may have unpacked.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("it is larger, unpacked, than an image may be: %w", paddock.Exhausted)
	}
	return n, err
}

// loadRootArchive makes an image of an archive of a file tree.
func (p *part) loadRootArchive(ctx context.Context, q Load, f *os.File, content string, room int64) ([]string, error) {
	if _, err := references([]string{q.Tag}); err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Internal)
	}
	b, err := p.spool(ctx, room, func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	})
	if err != nil {
		return nil, err
	}
	kind, err := p.kind(b)
	if err != nil {
		return nil, err
	}
	d, err := described(b, kind)
	if err != nil {
		return nil, err
	}
	digest, err := p.plain(ctx, d, content, q.Tag)
	return []string{digest}, err
}

// kind is the media type of a layer, by its first bytes.
func (p *part) kind(b Blob) (types.MediaType, error) {
	f, err := os.Open(p.blob(b.Digest))
	if err != nil {
		return "", fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	defer f.Close()
	head := make([]byte, 4)
	n, _ := io.ReadFull(f, head) // a shorter one is not compressed
	switch head = head[:n]; {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return types.OCILayer, nil
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return types.OCILayerZStd, nil
	}
	return types.OCIUncompressedLayer, nil
}

// read puts the files of an archive into the store.
func (b *bundle) read(ctx context.Context, f *os.File, room int64) error {
	in, err := decompressed(ctx, f)
	if err != nil {
		return err
	}
	defer in.Close()
	r := tar.NewReader(in)
	for n := 0; ; n++ {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return archiveError(err)
		}
		if err := layer.Own(h); err != nil {
			return err
		}
		name := path.Clean("/" + h.Name)[1:]
		if n > maxEntries {
			return fmt.Errorf("it has more than %d files, which no archive of images has: %w", maxEntries, paddock.Exhausted)
		}
		switch h.Typeflag {
		case tar.TypeSymlink:
			b.links[name] = path.Clean("/" + path.Dir(name) + "/" + h.Linkname)[1:] // a key of files, and no path
			continue
		case tar.TypeLink:
			b.links[name] = path.Clean("/" + h.Linkname)[1:]
			continue
		case tar.TypeReg:
		default:
			continue
		}
		if room -= h.Size; room < 0 {
			return tooLarge(0)
		}
		if err := b.add(ctx, name, h.Size, r); err != nil {
			return fmt.Errorf("%q: %w", shelf.Clip(name), err)
		}
	}
}

func (b *bundle) add(ctx context.Context, name string, size int64, r io.Reader) error {
	if name == "manifest.json" || name == "index.json" || name == "oci-layout" {
		data, err := document(r)
		if err != nil {
			return archiveError(err)
		}
		b.docs[name] = data
		return nil
	}
	blob, err := b.p.spool(ctx, size, func(w io.Writer) error {
		_, err := io.Copy(w, r)
		if err != nil && ctx.Err() == nil {
			return archiveError(full(err))
		}
		return err
	})
	if err != nil {
		return err
	}
	if want, ok := strings.CutPrefix(name, "blobs/sha256/"); ok && blob.Digest != "sha256:"+want {
		return fmt.Errorf("it is another, %s: %w", blob.Digest, paddock.Conflict)
	}
	b.files[name] = blob
	return nil
}

func (b *bundle) document(name string) ([]byte, error) {
	if data, ok := b.docs[name]; ok {
		return data, nil
	}
	f, ok := b.files[b.led(name)]
	if !ok {
		return nil, fmt.Errorf("%s: %w", shelf.Clip(name), fs.ErrNotExist)
	}
	if f.Size > maxDocument {
		return nil, fmt.Errorf("%s has more than %d MiB: %w", shelf.Clip(name), maxDocument>>20, paddock.Exhausted)
	}
	return os.ReadFile(b.p.blob(f.Digest))
}

// led follows the links of the archive, which lead to other entries of it alone.
func (b *bundle) led(name string) string {
	for range 10 {
		to, ok := b.links[name]
		if !ok {
			break
		}
		name = to
	}
	return name
}

// take implements [source]: all was put into the store when the archive was read.
func (b *bundle) take(_ context.Context, digest string, n int64) error {
	if !b.p.has(digest, n) {
		return missing(digest)
	}
	return nil
}

// docker loads what `docker save` wrote before it wrote OCI layouts.
func (b *bundle) docker(ctx context.Context, q Load) ([]string, error) {
	var list []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	if err := json.Unmarshal(b.docs["manifest.json"], &list); err != nil || len(list) == 0 || len(list) > maxLoaded {
		return nil, fmt.Errorf("its manifest.json is not that of `docker save`: %w", paddock.Invalid)
	}
	if q.Tag != "" && len(list) > 1 {
		return nil, fmt.Errorf("there are %d images in it, and one tag: %w", len(list), paddock.Invalid)
	}
	var digests []string
	for _, one := range list {
		config, err := b.document(path.Clean("/" + one.Config)[1:])
		if err != nil {
			return nil, fmt.Errorf("its configuration: %w: %w", err, paddock.Invalid)
		}
		if len(one.Layers) > maxLayers {
			return nil, fmt.Errorf("it has more than %d layers: %w", maxLayers, paddock.Exhausted)
		}
		layers, err := b.layers(ctx, config, one.Layers)
		if err != nil {
			return nil, err
		}
		names := one.RepoTags
		if q.Tag != "" {
			names = []string{q.Tag}
		}
		digest, err := b.p.made(ctx, config, layers, names)
		if err != nil {
			return nil, err
		}
		digests = append(digests, digest)
	}
	return digests, nil
}

// layers finds the layers of an image of `docker save`, and compares their content with the configuration.
func (b *bundle) layers(ctx context.Context, config []byte, names []string) ([]v1.Descriptor, error) {
	var said struct {
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		} `json:"rootfs"`
	}
	if err := json.Unmarshal(config, &said); err != nil || len(said.RootFS.DiffIDs) != len(names) {
		return nil, fmt.Errorf("its configuration and its manifest.json do not have the same layers: %w", paddock.Conflict)
	}
	var list []v1.Descriptor
	for n, name := range names {
		f, ok := b.files[b.led(path.Clean("/" + name)[1:])]
		if !ok {
			return nil, fmt.Errorf("layer %d, %q, is not there: %w", n+1, shelf.Clip(name), paddock.NotFound)
		}
		sum, err := b.contentSum(ctx, f, said.RootFS.DiffIDs[n])
		if err != nil {
			return nil, fmt.Errorf("layer %d: %w", n+1, err)
		}
		if sum != said.RootFS.DiffIDs[n] {
			return nil, fmt.Errorf("layer %d is not the one of the configuration: %w", n+1, paddock.Conflict)
		}
		kind, err := b.p.kind(f)
		if err != nil {
			return nil, err
		}
		d, err := described(f, kind)
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	return list, nil
}

// contentSum is the digest of a layer's content.
func (b *bundle) contentSum(ctx context.Context, f Blob, want string) (string, error) {
	if f.Digest == want {
		return want, nil
	}
	in, err := b.p.content(ctx, f)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, &bounded{in, b.p.s.o.Unpacked})
	if err := errors.Join(err, in.Close()); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), nil
}
