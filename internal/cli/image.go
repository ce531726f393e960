package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/image/shelf"
	"github.com/paddock-sandbox/paddock/internal/policy"
)

// When a registry is asked for an image.
const (
	pullMissing = "missing"
	pullAlways  = "always"
	pullNever   = "never"
)

// imageRoot takes the root from --image.
func (f *specFlags) imageRoot(s *paddock.Spec, changed func(string) bool) error {
	whens := []string{pullMissing, pullAlways, pullNever}
	switch {
	case changed("image") && changed("root"):
		return WithHint(fmt.Errorf("--image and --root name two roots: %w", paddock.Invalid), "leave one out")
	case changed("image") && f.image == "":
		return WithHint(fmt.Errorf("--image names no image: %w", paddock.Invalid), "such as --image python:3.13-slim")
	case changed("image"):
		s.Root = paddock.Root{Kind: paddock.RootImage, Image: f.image}
	}
	switch f.pull {
	case pullMissing, pullAlways, pullNever:
	default:
		return WithHint(fmt.Errorf("--pull %s: there is no such time: %w", f.pull, paddock.Invalid), "%stimes are %s", meant(policy.Nearest(f.pull, whens)), Join(whens))
	}
	if changed("pull") && s.Root.Kind != paddock.RootImage {
		return WithHint(fmt.Errorf("--pull is about an image, and the root is none: %w", paddock.Invalid), "leave it out, or name an image with --image")
	}
	return nil
}

// takeImage resolves the image of a plan that has one as its root, so that the sandbox is made by its digest. It pulls
// the image if it is not here.
func (a *App) takeImage(ctx context.Context, p *plan) error {
	if p.spec.Root.Kind != paddock.RootImage {
		return nil
	}
	if a.Self == nil {
		return fmt.Errorf("--image: images are %s: %w", notInThisVersion, paddock.Unsupported)
	}
	// What is here is found without another program, unless a registry is to be asked.
	if on, err := a.shelf(); err == nil && p.pull != pullAlways {
		if img, err := on.Part.Find(p.spec.Root.Image); err == nil {
			p.spec.Root.Image = img.Digest
			return nil
		}
	}
	args := []string{"image", "root", "--pull=" + cmp.Or(p.pull, pullMissing), "--", p.spec.Root.Image}
	var root ImageRoot
	if err := a.self(ctx, a.Stderr, &root, args...); err != nil {
		return err
	}
	p.spec.Root.Image = root.Digest
	return nil
}

// shelf has the caller's images that are ready.
func (a *App) shelf() (shelf.Shelf, error) {
	dir, err := a.ImagesDir()
	if err != nil {
		return shelf.Shelf{}, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil { // boxes begin with real paths
		return shelf.Shelf{}, fmt.Errorf("images: %w: %w", err, paddock.NotFound)
	}
	return shelf.Shelf{Part: shelf.PartOf(dir, "")}, nil
}

// ownImage is takeImage for a sandbox of the server that is started for the caller: it has the images of paddock image. So
// the image is pulled here, with the caller's own credentials.
func (a *App) ownImage(ctx context.Context, f *RemoteFlags, p *plan) error {
	if p.spec.Root.Kind != paddock.RootImage {
		return nil
	}
	if _, named, err := a.site(f); err != nil || named {
		return err
	}
	ctx, stop := a.Interruptible(ctx)
	defer stop()
	return Because(ctx, a.takeImage(ctx, p))
}

// takeImage has the server find the image of a plan, so that all sandboxes are made by one digest.
func (r *Remote) takeImage(ctx context.Context, a *App, p *plan) error {
	name := p.spec.Root.Image
	if p.spec.Root.Kind != paddock.RootImage || strings.HasPrefix(name, "sha256:") {
		return nil
	}
	d, ok := r.Driver.(interface {
		PullImage(ctx context.Context, p client.ImagePull) (client.Image, error)
	})
	if !ok {
		return fmt.Errorf("server %s: it has no images: %w", r.At.Address, paddock.Unsupported)
	}
	stop := a.progress("getting the image " + OneLine(name))
	img, err := d.PullImage(ctx, client.ImagePull{Reference: name, Pull: p.pull})
	stop()
	if err != nil {
		return r.ImageHint(err, name)
	}
	p.spec.Root.Image = img.Digest
	return nil
}

// ImageHint says what to do where a server has not got an image.
func (r *Remote) ImageHint(err error, name string) error {
	switch {
	case errors.Is(err, paddock.NotFound):
		return WithHint(err, "look at the name and the tag: %s; a private image is pulled with your login: paddock image pull --server %s --login %s", name, r.At.Address, name)
	case errors.Is(err, paddock.Denied):
		return WithHint(err, "its operator says which registries, addresses and signatures there may be; with your own login: paddock image pull --server %s --login %s", r.At.Address, name)
	case errors.Is(err, paddock.Unsupported):
		return WithHint(err, "paddock run --image makes a sandbox of one command here")
	case errors.Is(err, paddock.Exhausted):
		return WithHint(err, "paddock image ls --server %s lists your images there, paddock image rm --server %s REFERENCE removes one", r.At.Address, r.At.Address)
	case errors.Is(err, paddock.Unavailable), errors.Is(err, paddock.Timeout):
		return WithHint(err, "call it again: what was downloaded stays there, and the pull goes on")
	}
	return err
}

// An ImageRoot is what paddock image root answers: which image it is and where it is ready, or why it is not there.
type ImageRoot struct {
	Digest string       `json:"digest,omitempty"`
	Part   string       `json:"part,omitempty"` // the directory of a store that has it, see package shelf
	Error  string       `json:"error,omitempty"`
	Kind   paddock.Kind `json:"kind,omitempty"`
	Hint   string       `json:"hint,omitempty"`
}

// self executes paddock image root, and reads what it answers. Registries, archives and converters are much code, which
// this program does not have at its start.
func (a *App) self(ctx context.Context, stderr io.Writer, root *ImageRoot, args ...string) error {
	cmd, err := a.Self(ctx, args...)
	if err != nil {
		return fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, stderr
	ran := cmd.Run()
	if ctx.Err() != nil {
		return fmt.Errorf("image: it was given up: %w", paddock.Canceled)
	}
	if err := json.Unmarshal(out.Bytes(), root); err != nil {
		return fmt.Errorf("images: `paddock image root` did not answer: %w: %w", errors.Join(ran, err), paddock.Internal)
	}
	if root.Error == "" {
		return nil
	}
	// The error's text ends with its kind, as this one's will.
	err = fmt.Errorf("%s: %w", strings.TrimSuffix(root.Error, ": "+root.Kind.Error()), root.Kind)
	if root.Hint != "" {
		return WithHint(err, "%s", root.Hint)
	}
	return err
}

// selfImages has the images of the caller, by the part of this program that keeps them.
type selfImages struct{ a *App }

// imagesOf returns the caller's images; nil if this program has none.
func (a *App) imagesOf() image.Source {
	if a.Self == nil {
		return nil
	}
	return selfImages{a}
}

// treeTries is how often an image may be removed between its being found and its being held.
const treeTries = 3

// Tree implements [image.Source].
func (s selfImages) Tree(ctx context.Context, digest string, form image.Form) (image.Tree, *os.File, error) {
	if on, err := s.a.shelf(); err == nil {
		if tree, hold, err := on.Tree(ctx, digest, form); !errors.Is(err, paddock.NotFound) {
			return tree, hold, err
		}
	}
	for range treeTries {
		var root ImageRoot
		var said bytes.Buffer
		if err := s.a.self(ctx, &said, &root, "image", "root", "--pull="+pullNever, "--form="+string(form), "--", digest); err != nil {
			return image.Tree{}, nil, err
		}
		on := shelf.Shelf{Part: shelf.Part(root.Part)}
		tree, hold, err := on.Tree(ctx, digest, form)
		if !errors.Is(err, paddock.NotFound) {
			return tree, hold, err
		}
	}
	return image.Tree{}, nil, fmt.Errorf("image %s is removed while it is used: %w", digest, paddock.NotFound)
}
