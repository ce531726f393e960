package auxiliary

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/image/store"
)

func imageListCommand(a *cli.App) *cobra.Command {
	var asJSON bool
	var remote cli.RemoteFlags
	c := &cobra.Command{
		Use:   "ls [flags]",
		Short: "List the images that are here",
		Long: `List the images that are here, those that were used last first. An image without a
reference is one whose tag leads to another by now, or that a template of the
server begins with. SIZE is that of the layers as they were sent, FORMS what was
made of them for the tiers.

Exit status: 0, or 125 if they cannot be read.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if remote.Server != "" {
				return listThere(c.Context(), a, &remote, asJSON)
			}
			s, err := images(a)
			if err != nil {
				return err
			}
			list, err := s.Images("")
			if err != nil {
				return err
			}
			if asJSON {
				return cli.PrintJSON(a.Stdout, list)
			}
			w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "REFERENCE\tDIGEST\tSIZE\tFORMS\tUSED")
			for _, img := range list {
				names := img.References
				if len(names) == 0 {
					names = []string{"-"}
				}
				forms := []string{}
				for _, f := range img.Forms {
					forms = append(forms, fmt.Sprintf("%s %s", f.Name, cli.BytesInWords(f.Size)))
				}
				for _, name := range names {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", cli.OneLine(name), img.Digest[:19], cli.BytesInWords(img.Size), cli.OneLine(strings.Join(forms, ", ")), img.Used.Format(time.DateTime))
				}
			}
			return w.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "answer with a JSON array")
	remote.RegisterFor(c.Flags(), "your images there, and those that its operator shares")
	return c
}

func imageInspectCommand(a *cli.App) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "inspect [flags] REFERENCE",
		Short: "Describe an image: its configuration, layers and forms",
		Long: `Describe an image that is here, by a reference or by the digest of its manifest:
the environment, the working directory and the user that commands in it get, its
entrypoint and command, its layers, the registries that sent it and the keys whose
signature was verified.

Exit status: 0, or 125 if there is no such image.`,
		Example: `  paddock image inspect python:3.13-slim
  paddock image inspect --json python:3.13-slim`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := images(a)
			if err != nil {
				return err
			}
			img, err := s.Resolve(c.Context(), "", args[0])
			if err != nil {
				return imageHint(err)
			}
			if asJSON {
				return cli.PrintJSON(a.Stdout, img)
			}
			w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
			row := func(name, value string) {
				if value != "" {
					fmt.Fprintf(w, "%s\t%s\n", name, cli.OneLineOf(value, cli.Paragraph))
				}
			}
			row("digest:", img.Digest)
			row("references:", strings.Join(img.References, " "))
			row("from:", strings.Join(img.Origins, " "))
			row("signed by:", strings.Join(img.Signers, " "))
			row("pulled:", img.Pulled.Format(time.RFC3339))
			row("layers:", fmt.Sprintf("%d, %s", len(img.Layers), cli.BytesInWords(img.Size)))
			for _, f := range img.Forms {
				row("form:", fmt.Sprintf("%s, %s", f.Name, cli.BytesInWords(f.Size)))
			}
			row("directory:", img.Config.Dir)
			row("user:", img.Config.User)
			row("entrypoint:", fmt.Sprintf("%q", img.Config.Entrypoint))
			row("command:", fmt.Sprintf("%q", img.Config.Command))
			for _, v := range img.Config.Env {
				row("env:", v)
			}
			return w.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "answer with a JSON object")
	return c
}

func imageHint(err error) error {
	switch {
	case errors.Is(err, paddock.NotFound):
		return cli.WithHint(err, "`paddock image ls` lists the images that are here")
	case errors.Is(err, paddock.Conflict):
		return cli.NotMade{Err: err} // it says what to do
	}
	return err
}

func imageRemoveCommand(a *cli.App) *cobra.Command {
	var asJSON bool
	var remote cli.RemoteFlags
	c := &cobra.Command{
		Use:   "rm [flags] REFERENCE [REFERENCE...]",
		Short: "Remove images",
		Long: `Remove images, by a reference or by the digest of the manifest. If another reference
leads to the image, only the reference is removed. An image that a sandbox runs
from is not removed.

Exit status: 0, or 125 if one of them was not removed.`,
		Example: `  paddock image rm python:3.13-slim`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if remote.Server != "" {
				return removeThere(c.Context(), a, &remote, args)
			}
			s, err := images(a)
			if err != nil {
				return err
			}
			list, errs := []store.Removed{}, []error{}
			for _, name := range args {
				gone, err := s.Remove(c.Context(), "", name)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				list = append(list, gone)
			}
			if err := removedImages(a, list, asJSON); err != nil {
				return err
			}
			if err := errors.Join(errs...); err != nil {
				return imageHint(err)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "answer with a JSON array: what was removed")
	remote.RegisterFor(c.Flags(), "your images there")
	c.MarkFlagsMutuallyExclusive("server", "json")
	return c
}

// removedImages tells what was removed.
func removedImages(a *cli.App, list []store.Removed, asJSON bool) error {
	if asJSON {
		return cli.PrintJSON(a.Stdout, list)
	}
	for _, r := range list {
		name, what := r.Reference, "removed "+cli.BytesInWords(r.Size)
		if name == "" {
			name = r.Digest
		}
		if !r.Gone {
			what = "removed the reference; another leads to the image"
		}
		if err := a.Say("%s: %s\n", cli.OneLine(name), what); err != nil {
			return err
		}
	}
	return nil
}

func imagePruneCommand(a *cli.App) *cobra.Command {
	var older cli.TimeFlag
	var keep cli.SizeFlag
	var asJSON, builds bool
	c := &cobra.Command{
		Use:   "prune [flags]",
		Short: "Remove images that are not used",
		Long: `Remove images that no reference leads to any more, and what is left of pulls that
were given up. With --older, also images that were not used for that time. With
--keep-size, also those that were used longest ago, until the others take no more
than that. An image that a sandbox runs from stays. Layers that paddock build kept,
so as not to make them again, go too; with --builds, they alone.

Exit status: 0, or 125 if something could not be removed.`,
		Example: `  paddock image prune
  paddock image prune --older 720h --keep-size 20G`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := images(a)
			if err != nil {
				return err
			}
			now := time.Now()
			if a.Wall != nil {
				now = a.Wall()
			}
			list, err := s.Prune(c.Context(), store.Prune{Older: time.Duration(older), Keep: int64(keep), Builds: builds, Now: now})
			return errors.Join(removedImages(a, list, asJSON), err)
		},
	}
	c.Flags().SortFlags = false
	c.Flags().Var(&older, "older", "remove what was not used for this `time`, such as 720h")
	c.Flags().Var(&keep, "keep-size", "keep images of this `size` together, such as 20G")
	c.Flags().BoolVar(&builds, "builds", false, "remove only what builds keep for the next one")
	c.MarkFlagsMutuallyExclusive("builds", "older")
	c.MarkFlagsMutuallyExclusive("builds", "keep-size")
	c.Flags().BoolVar(&asJSON, "json", false, "answer with a JSON array: what was removed")
	return c
}
