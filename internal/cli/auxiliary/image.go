package auxiliary

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/image/dockerlogin"
	"github.com/paddock-sandbox/paddock/internal/image/registry"
	"github.com/paddock-sandbox/paddock/internal/image/signature"
	"github.com/paddock-sandbox/paddock/internal/image/store"
)

// Bounds of the images of one user, who may remove them.
const (
	imageSent     = 32 << 30
	imageUnpacked = 64 << 30
	imageCount    = 10_000
	imageTime     = 6 * time.Hour
	showEvery     = 100 * time.Millisecond
)

func imageCommand(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "image",
		Short: "Pull, list and remove the images that sandboxes start from",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(imagePullCommand(a), imageListCommand(a), imageInspectCommand(a), imageRemoveCommand(a), imagePruneCommand(a), imageLoadCommand(a), imageSaveCommand(a), imageRootCommand(a))
	return c
}

// images opens the caller's store.
func images(a *cli.App) (*store.Store, error) {
	dir, err := a.ImagesDir()
	if err != nil {
		return nil, err
	}
	return store.Open(store.Options{Dir: dir, Dial: dialRegistry(), Sent: imageSent, Unpacked: imageUnpacked, All: math.MaxInt64, Images: imageCount, Time: imageTime})
}

// dialRegistry connects to a registry that the caller names, wherever it is. What the registry leads to has a public
// address, unless the registry itself is at a private one.
func dialRegistry() func(ctx context.Context, private bool, home, network, address string) (net.Conn, error) {
	var at registryPlace
	return func(ctx context.Context, _ bool, home, network, address string) (net.Conn, error) {
		own := address == home || address == net.JoinHostPort(home, "443") || address == net.JoinHostPort(home, "80")
		d := net.Dialer{Control: func(_, to string, _ syscall.RawConn) error {
			peer, err := netip.ParseAddrPort(to)
			if err != nil {
				return fmt.Errorf("%s: %w: %w", to, err, paddock.Invalid)
			}
			err = decide.CheckAddress(peer.Addr().WithZone(""), nil)
			if own {
				return nil
			}
			if err != nil && !at.inside() {
				return fmt.Errorf("the registry leads to an address of a private network: %w", err)
			}
			return nil
		}}
		conn, err := d.DialContext(ctx, network, address)
		if err != nil || !own {
			return conn, err
		}
		at.saw(conn.RemoteAddr().String()) // an address that only was tried tells nothing
		return conn, nil
	}
}

// A registryPlace is where a registry is, by the connections to its name. Who owns the name can lead one of them to a machine
// of a private network, which need not be the registry. A registry that was at a public address may lead nowhere private.
type registryPlace struct{ within, outside atomic.Bool }

func (r *registryPlace) saw(address string) {
	at, err := netip.ParseAddrPort(address)
	if err == nil && decide.CheckAddress(at.Addr().WithZone(""), nil) != nil {
		r.within.Store(true)
	} else {
		r.outside.Store(true)
	}
}

// inside reports whether the registry was at private addresses alone.
func (r *registryPlace) inside() bool { return r.within.Load() && !r.outside.Load() }

type pullFlags struct {
	always, json, digest, login bool
	registries, keys            []string
	remote                      cli.RemoteFlags
}

func imagePullCommand(a *cli.App) *cobra.Command {
	var f pullFlags
	c := &cobra.Command{
		Use:   "pull [flags] REFERENCE",
		Short: "Pull an image from its registry",
		Long: `Pull an image from its registry, and keep it. A reference is written as for
Docker: python:3.13-slim, HOST/owner/name:tag, name@sha256:…. The registry is
asked only if the image is not here, or with --always. Layers are downloaded
beside each other, and their digests are checked. A pull that was cut goes on where
it ended when it is called again.

Credentials are those of Docker or Podman: its configuration, and the credential
helpers that it names. An image that is for another architecture alone is refused.

With --cosign-key, one of the keys must have signed the image, as ` + "`cosign sign\n--key`" + ` does. There is no certificate and no transparency log.

With --server, that server pulls it, for sandboxes of paddock create --image there. It
asks the registry without credentials, unless --login sends it yours for that registry.

Exit status: 0, or 125 if the image could not be pulled.`,
		Example: `  paddock image pull python:3.13-slim
  paddock image pull --require-digest --registry registry.example.com registry.example.com/owner/name@sha256:DIGEST
  paddock image pull --cosign-key cosign.pub registry.example.com/name:1.2`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return imagePull(c.Context(), a, f, args[0]) },
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.BoolVar(&f.always, "always", false, "ask the registry also if the image is here")
	fs.BoolVar(&f.digest, "require-digest", false, "refuse a reference without a digest")
	fs.StringArrayVar(&f.registries, "registry", nil, "pull from this `host` alone, with its port if it has one; may be repeated")
	fs.StringArrayVar(&f.keys, "cosign-key", nil, "demand a signature by the public key in this `file`; may be repeated, and one of them is enough")
	fs.BoolVar(&f.json, "json", false, "answer with a JSON object that describes the image")
	f.remote.RegisterFor(fs, "it pulls the image")
	fs.BoolVar(&f.login, "login", false, "send the server of --server your login for the registry, which it keeps while it pulls")
	return c
}

// policy is what the flags demand.
func (f *pullFlags) policy() (store.Policy, error) {
	p := store.Policy{Registries: f.registries, Digest: f.digest}
	for _, name := range f.keys {
		key, err := cosignKey(name)
		if err != nil {
			return p, err
		}
		p.Keys = append(p.Keys, key)
	}
	return p, nil
}

func cosignKey(name string) (crypto.PublicKey, error) {
	data, err := cli.ReadDocument("public key", name)
	if err != nil {
		return nil, err
	}
	key, err := signature.ParseKey(data)
	if err != nil {
		return nil, cli.WithHint(fmt.Errorf("--cosign-key %s: %w", name, err), "`cosign generate-key-pair` writes one: cosign.pub")
	}
	return key, nil
}

func imagePull(ctx context.Context, a *cli.App, f pullFlags, reference string) error {
	switch {
	case f.remote.Server != "":
		return pullThere(ctx, a, f, reference)
	case f.login:
		return cli.WithHint(fmt.Errorf("--login without a server to send it to: %w", paddock.Invalid), "leave it out: your login is used here in any way; or name one with --server")
	}
	policy, err := f.policy()
	if err != nil {
		return err
	}
	s, err := images(a)
	if err != nil {
		return err
	}
	ctx, stop := a.Interruptible(ctx)
	defer stop()
	show, clear := a.Line()
	img, err := s.Pull(ctx, store.Request{Reference: reference, Credentials: credentials(a), Private: true, Always: f.always, Policy: policy, Say: pullLine(show)})
	clear()
	if err != nil {
		return cli.Because(ctx, pullHint(err, reference))
	}
	if f.json {
		return cli.PrintJSON(a.Stdout, img)
	}
	return a.Say("%s\n", img.Digest)
}

// pullLine shows how far a pull is, now and then.
// credentials returns what reads the caller's own for a registry, when it is asked.
func credentials(a *cli.App) func(context.Context, string) (registry.Credentials, error) {
	r := dockerlogin.Reader{Lookup: a.Lookup, Env: os.Environ(), Say: func(text string) { fmt.Fprintf(a.Stderr, "paddock: note: %s\n", cli.OneLine(text)) }}
	return r.Credentials
}

func pullLine(show func(string)) func(store.Progress) {
	var last time.Time
	return func(p store.Progress) {
		now := time.Now()
		if now.Sub(last) < showEvery {
			return
		}
		last = now
		show(fmt.Sprintf("pulling %s: %s of %s in %s", p.Reference, cli.BytesInWords(p.Have), cli.BytesInWords(p.Size), cli.Plural(p.Layers, "layer", "layers")))
	}
}

func pullHint(err error, reference string) error {
	switch {
	case errors.Is(err, paddock.Denied) && !errors.Is(err, paddock.NotFound):
		return cli.WithHint(err, "`docker login HOST` or `podman login HOST` stores credentials, which are used here; a policy that refuses an image says so above")
	case errors.Is(err, paddock.NotFound):
		return cli.WithHint(err, "look at the name and the tag: %s", reference)
	case errors.Is(err, paddock.Unavailable), errors.Is(err, paddock.Timeout):
		return cli.WithHint(err, "call it again: what was downloaded stays, and the pull goes on from there")
	}
	return cli.NotMade{Err: err}
}
