package auxiliary

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/image/store"
)

const standard = "-" // the name of standard input or output

func imageLoadCommand(a *cli.App) *cobra.Command {
	var tag string
	var asJSON bool
	c := &cobra.Command{
		Use:   "load [flags] PATH",
		Short: "Load images from an archive or a directory",
		Long: `Load images from an archive or a directory, without a registry: what "docker save"
or "paddock image save" wrote, an OCI layout (an archive or a directory), or a file
tree (an archive or a directory), which becomes an image of one layer. Archives are
in tar, and may be compressed by gzip or zstd. PATH - is standard input.

A file tree has no name, so it needs --tag. Its owners are kept; extended
attributes of a directory's files are not.

Exit status: 0, or 125 if an image could not be loaded.`,
		Example: `  docker save python:3.13-slim | paddock image load -
  mmdebstrap trixie rootfs.tar && paddock image load --tag debian:own rootfs.tar`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := images(a)
			if err != nil {
				return err
			}
			q := store.Load{Path: args[0], Tag: tag}
			if args[0] == standard {
				q.Path, q.Input = "", a.Stdin
			} else if dir, err := a.Dir(); err == nil && !filepath.IsAbs(q.Path) {
				q.Path = filepath.Join(dir, q.Path)
			}
			ctx, stop := a.Interruptible(c.Context())
			defer stop()
			list, err := s.Load(ctx, q)
			if err != nil {
				return cli.Because(ctx, cli.NotMade{Err: fmt.Errorf("%s: %w", args[0], err)})
			}
			if asJSON {
				return cli.PrintJSON(a.Stdout, list)
			}
			for _, img := range list {
				for _, name := range img.References {
					if err := a.Say("%s %s\n", cli.OneLine(name), img.Digest); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}
	c.Flags().SortFlags = false
	c.Flags().StringVarP(&tag, "tag", "t", "", "call the image by this `reference`, in place of the name that it has")
	c.Flags().BoolVar(&asJSON, "json", false, "answer with a JSON array that describes the images")
	return c
}

func imageSaveCommand(a *cli.App) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "save [flags] REFERENCE [REFERENCE...]",
		Short: "Write images into an archive",
		Long: `Write images into an archive, an OCI layout in tar, with their digests as they are.
"paddock image load", "docker load", "podman load" and crane read it.

Exit status: 0, or 125 if it could not be written.`,
		Example: `  paddock image save -o python.tar python:3.13-slim
  paddock image save python:3.13-slim | ssh host paddock image load -`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := images(a)
			if err != nil {
				return err
			}
			ctx, stop := a.Interruptible(c.Context())
			defer stop()
			if output == "" || output == standard {
				if cli.IsTerminal(a.Stdout) {
					return cli.WithHint(fmt.Errorf("an archive is not written to a terminal: %w", paddock.Invalid), "name a file: --output FILE")
				}
				err = s.Save(ctx, "", args, a.Stdout)
			} else {
				err = saveFile(ctx, a, s, output, args)
			}
			if err != nil {
				return cli.Because(ctx, imageHint(err))
			}
			return nil
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "write to this `file`; without it, to standard output")
	return c
}

// saveFile writes the archive beside its place, so that no half of one stands there.
func saveFile(ctx context.Context, a *cli.App, s *store.Store, name string, args []string) (err error) {
	if dir, err := a.Dir(); err == nil && !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return fmt.Errorf("%w: %w", err, paddock.Denied)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
	}()
	if err := s.Save(ctx, "", args, io.Writer(f)); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("%w: %w", err, paddock.Exhausted)
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return fmt.Errorf("%w: %w", err, paddock.Denied)
	}
	return nil
}
