package auxiliary

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/image/store"
)

// imageRootCommand is how paddock run asks for an image: see [cli.ImageRoot]. It answers on standard output, also where
// it fails.
func imageRootCommand(a *cli.App) *cobra.Command {
	var when, form string
	c := &cobra.Command{
		Use:    "root [flags] REFERENCE",
		Hidden: true,
		Short:  "Tell where the files of an image are",
		Long: `Tell where the files of an image are, as one JSON object. paddock run calls it.

Exit status: 0; what is wrong is in the object.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			root, err := imageRoot(c.Context(), a, args[0], when, image.Form(form))
			if err != nil {
				root = cli.ImageRoot{Error: err.Error(), Kind: paddock.KindOf(err), Hint: cli.HintFor(err)}
			}
			return cli.PrintJSON(a.Stdout, root)
		},
	}
	c.Flags().StringVar(&when, "pull", "missing", "`when` to ask the registry")
	c.Flags().StringVar(&form, "form", "", "make the image into this `form`")
	return c
}

func imageRoot(ctx context.Context, a *cli.App, reference, when string, form image.Form) (cli.ImageRoot, error) {
	s, err := images(a)
	if err != nil {
		return cli.ImageRoot{}, err
	}
	ctx, stop := a.Interruptible(ctx)
	defer stop()
	digest, err := digestFor(ctx, a, s, reference, when)
	if err != nil {
		return cli.ImageRoot{}, cli.Because(ctx, err)
	}
	root := cli.ImageRoot{Digest: digest, Part: string(s.Shelf("").Part)}
	if form == "" {
		return root, nil
	}
	_, hold, err := s.Tree(s.As(ctx, ""), digest, form)
	if err != nil {
		return cli.ImageRoot{}, cli.Because(ctx, err)
	}
	return root, hold.Close()
}

// digestFor resolves a reference, and pulls the image when that is asked for.
func digestFor(ctx context.Context, a *cli.App, s *store.Store, reference, when string) (string, error) {
	switch when {
	case "never":
		img, err := s.Resolve(ctx, "", reference)
		if errors.Is(err, paddock.NotFound) {
			err = cli.WithHint(err, "paddock image ls lists the images that are here")
		}
		return img.Digest, err
	case "missing", "always":
	default:
		return "", fmt.Errorf("--pull %s: there is no such time: %w", when, paddock.Invalid)
	}
	show, clear := a.Line()
	img, err := s.Pull(ctx, store.Request{Reference: reference, Credentials: credentials(a), Private: true, Always: when == "always", Say: pullLine(show)})
	clear()
	if err != nil && strings.HasPrefix(reference, "sha256:") {
		return "", cli.WithHint(err, "no registry is known for a digest alone: name the image too, such as HOST/owner/name@%s", reference)
	}
	if err != nil {
		return "", pullHint(err, reference)
	}
	return img.Digest, nil
}
