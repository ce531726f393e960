package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/egress/netstack"
	"github.com/paddock-sandbox/paddock/internal/image/e2broot"
	"github.com/paddock-sandbox/paddock/internal/image/reference"
	"github.com/paddock-sandbox/paddock/internal/image/registry"
	"github.com/paddock-sandbox/paddock/internal/image/signature"
	imagestore "github.com/paddock-sandbox/paddock/internal/image/store"
)

// imagesDir is the directory of images in --state. Roots of sandboxes are made of them.
const imagesDir = "images"

// imageFlags bound which images the server pulls and uses, for every tenant.
type imageFlags struct {
	registries []string
	digest     bool
	keys       []string
	shared     []string
}

func (f *imageFlags) register(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.registries, "image-registry", nil, "pull images from this `host` alone, with its port if it has one; its address may be a private one (repeatable; default: any that a tenant may reach)")
	fs.BoolVar(&f.digest, "image-digest", false, "refuse references of images without a digest")
	fs.StringArrayVar(&f.keys, "image-cosign-key", nil, "demand of each image a signature of cosign's by the public key in this `file` (repeatable, and one of them is enough)")
	fs.StringArrayVar(&f.shared, "image-shared", nil, "let every tenant begin sandboxes with the image of this `reference`, which is pulled, without credentials, when the server starts if it is not here (repeatable)")
}

// policy is what the flags demand.
func (f *imageFlags) policy() (imagestore.Policy, error) {
	p := imagestore.Policy{Registries: f.registries, Digest: f.digest}
	for _, name := range f.keys {
		data, err := cli.ReadDocument("public key", name)
		if err != nil {
			return p, err
		}
		key, err := signature.ParseKey(data)
		if err != nil {
			return p, cli.WithHint(fmt.Errorf("--image-cosign-key %s: %w", name, err), "`cosign generate-key-pair` writes one: cosign.pub")
		}
		p.Keys = append(p.Keys, key)
	}
	return p, nil
}

// imagesPlace returns the directory of images.
func imagesPlace(a *cli.App, f *serveFlags) (string, error) {
	if f.private { // which has those of the command line, whatever the environment says
		return a.ImagesDir()
	}
	return f.store.images(a)
}

// images returns the directory of a server's images.
func (f *storeFlags) images(a *cli.App) (string, error) {
	dir, err := stateDir(a, f.state)
	switch {
	case err != nil:
		return "", err
	case dir == "":
		return a.ImagesDir()
	}
	return filepath.Join(dir, imagesDir), nil
}

// emptyImages removes the images of a tenant that was removed, so that they are not those of the next one with its ID.
func emptyImages(ctx context.Context, a *cli.App, f *storeFlags, tenant string) error {
	dir, err := f.images(a)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	d, err := imagestore.Open(imagestore.Options{Dir: dir})
	if err == nil {
		err = d.Empty(ctx, tenant)
	}
	if err != nil {
		return fmt.Errorf("tenant %s is removed, but not its images: %w", tenant, err)
	}
	return nil
}

// imageOf returns what tells the digest of the image that is the root of a sandbox.
func imageOf(a *cli.App, f *serveFlags) func(paddock.Sandbox, paddock.Root) string {
	dir, err := imagesPlace(a, f)
	if err != nil {
		return nil // and then the server has no images
	}
	return func(sb paddock.Sandbox, root paddock.Root) string {
		switch root.Kind {
		case paddock.RootDir:
			return imagestore.DigestOf(dir, root.Path)
		case paddock.RootImage: // a tag may lead to another by now
			if s, ok := sb.(interface{ ImageDigest() string }); ok {
				return s.ImageDigest()
			}
		}
		return ""
	}
}

// baseImage pulls what the template base begins with, if that is not this machine's
// system. It is nobody's among the tenants, and shared by all as the system is; who
// starts the server may name a registry at any address.
func baseImage(ctx context.Context, images e2b.Images, name string, log *slog.Logger) (*e2b.Image, error) {
	if name == "" {
		return nil, nil
	}
	img, err := images.Pull(ctx, e2b.Pull{Image: name, Private: true, Say: func(text string) { log.Info("e2b: base: " + text) }})
	if err != nil {
		return nil, cli.WithHint(fmt.Errorf("--e2b-base: %w", err), "without it base is this machine's system; an image that needs credentials can be pulled by no server at its start: have a registry of this machine's or its network's hold it")
	}
	return &img, nil
}

// dialListed is dialRegistry for a server whose operator lists registries. A listed one may be at a private address, but
// what it leads to may not.
func dialListed(registries []string) func(ctx context.Context, private bool, home, network, to string) (net.Conn, error) {
	listed := map[string]bool{}
	for _, host := range registries {
		listed[reference.Reference{Host: host}.Server()] = true
	}
	return func(ctx context.Context, private bool, home, network, to string) (net.Conn, error) {
		return dialRegistry(ctx, private || listed[home] && isHome(home, to), home, network, to)
	}
}

// isHome tells whether an address is the registry's own.
func isHome(home, to string) bool {
	return to == home || to == net.JoinHostPort(home, "443") || to == net.JoinHostPort(home, "80")
}

// inside tells whether a registry is at a private address, so that it may lead to others.
func inside(ctx context.Context, home string) bool {
	name := home
	if host, _, err := net.SplitHostPort(home); err == nil {
		name = host
	}
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", strings.Trim(name, "[]"))
	return err == nil && len(all) > 0 && !slices.ContainsFunc(all, func(at netip.Addr) bool { return decide.CheckAddress(at.WithZone(""), nil) == nil })
}

// dialRegistry connects to a registry, and to what it leads to. A tenant names it:
// what is this host's, or its network's, is only for those who may name that.
func dialRegistry(ctx context.Context, private bool, home, network, to string) (net.Conn, error) {
	name, text, err := net.SplitHostPort(to)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", to, err, paddock.Invalid)
	}
	if private && (home == "" || isHome(home, to) || inside(ctx, home)) {
		var d net.Dialer
		return d.DialContext(ctx, network, to)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", to, err, paddock.Invalid)
	}
	if name == "localhost" { // which no server of names is asked for
		return nil, fmt.Errorf("%s is loopback, the server's own host: a key of the scope admin alone may name a registry there, or the operator by --image-registry: %w", to, paddock.Denied)
	}
	host, err := decide.ParseHost(name)
	if err != nil {
		return nil, err
	}
	var d netstack.Dialer
	return d.Dial(ctx, netstack.Target{Host: host, Port: uint16(port)})
}

// An imageStore says in the words of package imagestore what the dialect asks for.
type imageStore struct{ d *imagestore.Store }

// Pull asks the registry each time: it decides whether these credentials may have the image.
func (i imageStore) Pull(ctx context.Context, p e2b.Pull) (e2b.Image, error) {
	img, err := i.d.Pull(ctx, imagestore.Request{
		Tenant: p.Tenant, Reference: p.Image, Private: p.Private, Always: true, Owner: e2broot.Owner, Say: pullSaid(p.Say),
		Credentials: func(context.Context, string) (registry.Credentials, error) {
			return registry.Credentials{Username: p.Username, Password: p.Password}, nil
		},
	})
	if err != nil {
		return e2b.Image{}, err
	}
	t, hold, err := i.d.Tree(i.d.As(ctx, p.Tenant), img.Digest, e2broot.Form)
	if err != nil {
		return e2b.Image{}, errors.Join(err, i.d.Discard(p.Tenant, e2broot.Owner, img.Digest))
	}
	_ = hold.Close() // nobody but Sweep removes an image with this form
	return e2b.Image{ID: strings.TrimPrefix(img.Digest, digestPrefix), Dir: t.Path, Env: img.Config.Env}, nil
}

// digestPrefix is what IDs of images do not have of their digests.
const digestPrefix = "sha256:"

// pullSaid tells a build's log that a pull begins and that it has all.
func pullSaid(say func(string)) func(imagestore.Progress) {
	begun, done := false, false
	return func(p imagestore.Progress) {
		switch {
		case p.Have >= p.Size && p.Present && !done:
			say(fmt.Sprintf("%s is %s, whose layers are here", p.Reference, p.Digest))
			done = true
		case !begun && !done:
			say(fmt.Sprintf("pulling %s, %s, %d MiB in %d layers", p.Reference, p.Digest, p.Size>>20, p.Layers))
		case p.Have >= p.Size && !done:
			say(fmt.Sprintf("pulled %s", p.Reference))
			done = true
		}
		begun = true
	}
}

func (i imageStore) Sweep(tenant string, used func(string) bool) error {
	return i.d.Sweep(tenant, e2broot.Owner, e2broot.Form, func(digest string) bool { return used(strings.TrimPrefix(digest, digestPrefix)) })
}
