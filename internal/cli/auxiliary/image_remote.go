package auxiliary

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/image/reference"
)

// A remoteShelf is a server that has images of its callers.
type remoteShelf interface {
	Images(ctx context.Context) ([]client.Image, error)
	PullImage(ctx context.Context, p client.ImagePull) (client.Image, error)
	RemoveImage(ctx context.Context, reference string) error
}

// atServer does something with the caller's images at a server.
func atServer(ctx context.Context, a *cli.App, f *cli.RemoteFlags, do func(context.Context, *cli.Remote, remoteShelf) error) error {
	return a.With(ctx, f, func(ctx context.Context, r *cli.Remote) error {
		d, ok := r.Driver.(remoteShelf)
		if !ok {
			return fmt.Errorf("server %s: it has no images: %w", r.At.Address, paddock.Unsupported)
		}
		return do(ctx, r, d)
	})
}

// A toldImage is an image of a server's, as it is answered in JSON.
type toldImage struct {
	Digest     string    `json:"digest"`
	References []string  `json:"references"`
	Size       int64     `json:"size"`
	Pulled     time.Time `json:"pulled,omitzero"`
	Used       time.Time `json:"used,omitzero"`
	Shared     bool      `json:"shared,omitempty"`
}

// pullThere has a server pull an image. It gets the caller's credentials only where that was asked for.
func pullThere(ctx context.Context, a *cli.App, f pullFlags, name string) error {
	if f.digest || len(f.registries)+len(f.keys) > 0 {
		return cli.WithHint(fmt.Errorf("--registry, --require-digest and --cosign-key are of images that are pulled here: %w", paddock.Invalid), "leave them out: the operator of a server says what its images must be")
	}
	ref, err := reference.Parse(name)
	if err != nil {
		return err
	}
	p := client.ImagePull{Reference: name, Pull: client.PullMissing}
	if f.always {
		p.Pull = client.PullAlways
	}
	if f.login {
		who, err := credentials(a)(ctx, ref.Host)
		switch {
		case err != nil:
			return err
		case who.Token != "":
			return cli.WithHint(fmt.Errorf("--login: the login for %s is a token of yours for more than this registry, which is sent to no server: %w", ref.Host, paddock.Denied), "docker login with an access token as the password stores one that can be sent")
		case who.Username == "" && who.Password == "":
			return cli.WithHint(fmt.Errorf("--login: there is no login for %s: %w", ref.Host, paddock.NotFound), "docker login %s stores one", ref.Host)
		}
		p.Username, p.Password = who.Username, who.Password
	}
	return atServer(ctx, a, &f.remote, func(ctx context.Context, r *cli.Remote, d remoteShelf) error {
		img, err := d.PullImage(ctx, p)
		if err != nil {
			return r.ImageHint(err, name)
		}
		if f.json {
			return cli.PrintJSON(a.Stdout, toldImage(img))
		}
		return a.Say("%s\n", img.Digest)
	})
}

func listThere(ctx context.Context, a *cli.App, f *cli.RemoteFlags, asJSON bool) error {
	return atServer(ctx, a, f, func(ctx context.Context, _ *cli.Remote, d remoteShelf) error {
		list, err := d.Images(ctx)
		if err != nil {
			return err
		}
		if asJSON {
			told := make([]toldImage, len(list))
			for i, img := range list {
				told[i] = toldImage(img)
			}
			return cli.PrintJSON(a.Stdout, told)
		}
		w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "REFERENCE\tDIGEST\tSIZE\tWHOSE\tUSED")
		for _, img := range list {
			whose, names := "yours", img.References
			if img.Shared {
				whose = "all tenants'"
			}
			if len(names) == 0 {
				names = []string{"-"}
			}
			for _, name := range names {
				fmt.Fprintf(w, "%s\t%.19s\t%s\t%s\t%s\n", cli.OneLine(name), cli.OneLine(img.Digest), cli.BytesInWords(img.Size), whose, img.Used.Format(time.DateTime))
			}
		}
		return w.Flush()
	})
}

func removeThere(ctx context.Context, a *cli.App, f *cli.RemoteFlags, names []string) error {
	return atServer(ctx, a, f, func(ctx context.Context, r *cli.Remote, d remoteShelf) error {
		var errs []error
		for _, name := range names {
			switch err := d.RemoveImage(ctx, name); {
			case errors.Is(err, paddock.NotFound):
				errs = append(errs, cli.WithHint(err, "paddock image ls --server %s lists yours there", r.At.Address))
			case err != nil:
				errs = append(errs, err)
			default:
				if err := a.Say("%s: removed\n", cli.OneLine(strings.TrimSpace(name))); err != nil {
					return err
				}
			}
		}
		return errors.Join(errs...)
	})
}
