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
	"slices"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/image/erofs"
	"github.com/paddock-sandbox/paddock/internal/image/layer"
	"github.com/paddock-sandbox/paddock/internal/image/shelf"
)

// A Converter makes one form of images.
type Converter struct {
	Form    image.Form
	Version int  // a form of another version is made anew
	Owned   bool // an image with this form is not removed but by [Store.Sweep]

	// Make makes the form at c.Path, which is not there yet, and returns its size. It may leave anything there with an
	// error.
	Make func(ctx context.Context, c Conversion) (int64, error)
}

// A Conversion is what a converter works on.
type Conversion struct {
	Path   string
	Layers []func() (io.ReadCloser, error) // tar archives, the lowest first
	Config image.Config

	Bytes int64 // the form may take
	Names int   // files the image may have
}

// tenantKey is the key of a context that names a tenant.
type tenantKey struct{}

// As returns a context in which [Store.Tree] has the images of a tenant alone.
func (s *Store) As(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, tenantKey{}, tenant)
}

// Tree implements [image.Source]. Without a tenant of the context (see [Store.As]), it takes the image from any tenant
// that has it: whoever resolved the reference to the digest decided that the caller may use it.
func (s *Store) Tree(ctx context.Context, digest string, form image.Form) (image.Tree, *os.File, error) {
	p, err := s.holder(ctx, digest)
	if err != nil {
		return image.Tree{}, nil, err
	}
	c, err := s.converter(form)
	if err != nil {
		return image.Tree{}, nil, err
	}
	lock, err := shelf.Await(ctx, filepath.Join(p.Image(digest), shelf.HoldFile), os.O_RDWR, true)
	if errors.Is(err, fs.ErrNotExist) {
		return image.Tree{}, nil, fmt.Errorf("image %s is not here: %w", shelf.Clip(digest), paddock.NotFound)
	}
	if err != nil {
		return image.Tree{}, nil, fmt.Errorf("image %s: %w", digest, err)
	}
	t, err := p.tree(ctx, digest, c)
	if err != nil {
		return image.Tree{}, nil, errors.Join(fmt.Errorf("image %s: %w", digest, full(err)), lock.Close())
	}
	now := time.Now()
	_ = os.Chtimes(lock.Name(), now, now) // else it only looks as if it were unused
	return t, lock, nil
}

func (s *Store) holder(ctx context.Context, digest string) (*part, error) {
	if tenant, ok := ctx.Value(tenantKey{}).(string); ok {
		return s.part(tenant), nil
	}
	list, err := os.ReadDir(s.o.Dir)
	if err != nil {
		return nil, fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	own := s.part("")
	parts := []*part{own}
	for _, e := range list {
		if dir := filepath.Join(s.o.Dir, e.Name()); e.IsDir() && dir != string(own.Part) {
			parts = append(parts, &part{s, shelf.Part(dir)})
		}
	}
	for _, p := range parts {
		if exists(filepath.Join(p.Image(digest), shelf.RecordFile)) {
			return p, nil
		}
	}
	return nil, fmt.Errorf("image %s is not here: pull it first: %w", shelf.Clip(digest), paddock.NotFound)
}

func (s *Store) converter(form image.Form) (Converter, error) {
	for _, c := range append(slices.Clone(s.o.Converters),
		Converter{Form: image.FormDir, Version: shelf.Version(image.FormDir), Make: unpack},
		Converter{Form: image.FormEROFS, Version: shelf.Version(image.FormEROFS), Make: flatten}) {
		if c.Form == form {
			return c, nil
		}
	}
	return Converter{}, fmt.Errorf("images cannot be made into the form %q here: %w", form, paddock.Unsupported)
}

// tree returns a form, and makes it if it is not there. Who calls it holds the image.
func (p *part) tree(ctx context.Context, digest string, c Converter) (image.Tree, error) {
	img, err := p.Read(digest)
	if err != nil {
		return image.Tree{}, err
	}
	name := shelf.DirOf(c.Form, c.Version)
	if t, ok := img.Tree(p.Part, name); ok {
		return t, nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.s.o.Time)
	defer cancel()
	// One process makes the form, and in it one call: the others find it made.
	lock, err := shelf.Await(ctx, filepath.Join(p.Image(digest), "make-"+string(c.Form)), os.O_RDONLY|os.O_CREATE, false)
	if err != nil {
		return image.Tree{}, err
	}
	defer lock.Close()
	img.Forms = p.Forms(digest)
	if t, ok := img.Tree(p.Part, name); ok {
		return t, nil
	}
	done, err := p.turn(ctx)
	if err != nil {
		return image.Tree{}, err
	}
	defer done()
	if err := p.convert(ctx, img, c, name); err != nil {
		return image.Tree{}, err
	}
	img.Forms = p.Forms(digest)
	if t, ok := img.Tree(p.Part, name); ok {
		return t, nil
	}
	return image.Tree{}, fmt.Errorf("the form %s was removed at once: %w", c.Form, paddock.Internal)
}

// convert makes a form beside its place, and puts it there when it is whole.
func (p *part) convert(ctx context.Context, img Image, c Converter, name string) (err error) {
	room, err := p.room()
	if err != nil {
		return err
	}
	if err := p.ready(); err != nil {
		return err
	}
	fresh, lock, err := p.fresh()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(full(err), os.RemoveAll(fresh))
		}
		err = errors.Join(err, lock.Close())
	}()
	job := Conversion{Path: filepath.Join(fresh, shelf.FilesName), Config: img.Config, Bytes: min(room, p.s.o.Unpacked), Names: mostNames}
	for _, l := range img.Layers {
		job.Layers = append(job.Layers, func() (io.ReadCloser, error) { return p.content(ctx, l) })
	}
	size, err := c.Make(ctx, job)
	if err != nil {
		return err
	}
	about, err := json.Marshal(Form{Name: c.Form, Size: size, Owned: c.Owned})
	if err == nil {
		err = os.WriteFile(filepath.Join(fresh, shelf.AboutFile), about, 0o600)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", err, paddock.Internal)
	}
	if err := os.Rename(fresh, filepath.Join(p.Image(img.Digest), name)); err != nil {
		return fmt.Errorf("%w: %w", err, paddock.Internal)
	}
	return nil
}

// content opens the content of a layer. The archive has to be read to its end: what comes behind it is a part of the
// layer, and its digest is checked when it is closed.
func (p *part) content(ctx context.Context, l Blob) (io.ReadCloser, error) {
	raw, err := p.open(l)
	if err != nil {
		return nil, err
	}
	in, err := layer.Decompress(ctx, raw)
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return &content{in, raw}, nil
}

type content struct {
	io.ReadCloser
	raw *checked
}

// Close reads the rest of the layer, which its digest is of too.
func (c *content) Close() error {
	_, err := io.Copy(io.Discard, c.raw)
	return errors.Join(c.ReadCloser.Close(), err, c.raw.Close())
}

// unpack makes the form of a directory.
func unpack(ctx context.Context, c Conversion) (int64, error) {
	t, err := Unpack(ctx, c)
	if err != nil {
		return 0, err
	}
	return c.Bytes - t.Bytes, t.Root.Close()
}

// Unpack makes a directory with the files of an image. The caller closes the tree's root.
func Unpack(_ context.Context, c Conversion) (_ *layer.Tree, err error) {
	if err := os.Mkdir(c.Path, 0o755); err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Internal)
	}
	if err := os.Chmod(c.Path, 0o755); err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Internal)
	}
	root, err := os.OpenRoot(c.Path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Internal)
	}
	t := &layer.Tree{Root: root, Owners: os.Geteuid() == 0, Bytes: c.Bytes, Names: c.Names}
	for n, open := range c.Layers {
		if err := one(t, open); err != nil {
			return nil, errors.Join(fmt.Errorf("layer %d of %d: %w", n+1, len(c.Layers), err), root.Close())
		}
	}
	return t, nil
}

func one(t *layer.Tree, open func() (io.ReadCloser, error)) error {
	in, err := open()
	if err != nil {
		return err
	}
	return errors.Join(t.Unpack(in), in.Close())
}

// flatten makes the form of a file system in one file.
func flatten(ctx context.Context, c Conversion) (int64, error) {
	f, err := os.OpenFile(c.Path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644)
	if err == nil {
		err = f.Chmod(0o644) // a sandbox of root's reads it as nobody; the directories above are closed to all others
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %w", err, paddock.Internal)
	}
	size, err := erofs.Convert(ctx, f, c.Layers, erofs.Bounds{Bytes: c.Bytes, Names: c.Names})
	return size, errors.Join(err, f.Close())
}
