package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/volume"
)

// openVolumes holds the volumes that flags name, and adds them to the plan.
func (a *App) openVolumes(p *plan, texts []string) (list []*volume.Use, err error) {
	defer func() {
		if err != nil {
			for _, u := range list {
				err = errors.Join(err, u.Close())
			}
			list = nil
		}
	}()
	if len(texts) == 0 {
		return nil, nil
	}
	if p.spec.Tier == paddock.Sim || p.spec.Tier == paddock.MicroVM {
		return nil, WithHint(fmt.Errorf("--volume: the tier %s has no volumes: %w", p.spec.Tier, paddock.Unsupported), "use --tier jail or --tier gvisor")
	}
	dir, err := a.volumesDir()
	if err != nil {
		return nil, err
	}
	for _, text := range texts {
		name, inside, write, err := parseVolume(text)
		if err != nil {
			return list, err
		}
		for _, m := range p.spec.Mounts {
			if inside == filepath.Clean(target(m)) {
				return list, WithHint(fmt.Errorf("--volume %s: something else is shown there: %w", text, paddock.Invalid), "choose another path")
			}
		}
		u, err := volume.Open(dir, name, write)
		switch {
		case errors.Is(err, paddock.NotFound):
			return list, WithHint(err, "make it: paddock volume create %s", name)
		case errors.Is(err, paddock.Exhausted):
			return list, WithHint(err, "raise its size: paddock volume resize %s SIZE; or only read it: --volume %s:%s:ro", name, name, inside)
		case err != nil:
			return list, err
		}
		list = append(list, u)
		p.spec.Mounts = append(p.spec.Mounts, u.Mount(inside))
	}
	return list, nil
}

// closeVolumes gives volumes back, and says which have become too large.
func (a *App) closeVolumes(list []*volume.Use) {
	for _, u := range list {
		err := u.Close()
		if errors.Is(err, paddock.Exhausted) {
			err = WithHint(err, "no sandbox may write to it before its size is raised: paddock volume resize NAME SIZE")
		}
		if err != nil {
			a.complain(err)
		}
	}
}

// parseVolume parses NAME:/PATH[:ro].
func parseVolume(text string) (name, target string, write bool, err error) {
	name, target, ok := strings.Cut(text, ":")
	rest, only := strings.CutSuffix(target, ":ro")
	if !ok || !filepath.IsAbs(rest) || strings.ContainsAny(rest, ":\x00") {
		return "", "", false, WithHint(fmt.Errorf("--volume %q: there is no name and absolute path in it: %w", text, paddock.Invalid), "write NAME:/PATH, or NAME:/PATH:ro")
	}
	return name, filepath.Clean(rest), !only, nil
}

func (a *App) volumeCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "volume",
		Short: "Make, list and remove volumes: named directories that outlive sandboxes",
		Long: `Make, list and remove volumes: named directories that outlive sandboxes. A
sandbox sees those that paddock run --volume NAME:/PATH gives it. No program of
this machine uses what is in them. docs/use/volumes.md tells more.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.volumeCreateCommand(), a.volumeListCommand(), a.volumeInspectCommand(), a.volumeResizeCommand(), a.volumeRemoveCommand())
	return c
}

func (a *App) volumeCreateCommand() *cobra.Command {
	size := SizeFlag(volume.DefaultSize)
	c := &cobra.Command{
		Use:   "create [flags] NAME",
		Short: "Make a volume",
		Long: `Make an empty volume. Its name has 1 to 63 lower-case letters, digits and dashes.

The size is looked at before a sandbox that may write to the volume starts, and
when it has ended. Meanwhile it can become larger.

Exit status: 0, or 125 if it was not made.`,
		Example: "  paddock volume create models --size 40G",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := a.volumesDir()
			if err != nil {
				return err
			}
			return volume.Create(dir, args[0], int64(size), time.Now())
		},
	}
	c.Flags().Var(&size, "size", "bound of all its files together")
	return c
}

func (a *App) volumeResizeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "resize NAME SIZE",
		Short: "Change the size of a volume",
		Long: `Change the bound of all files of a volume together. No file is removed.

Exit status: 0, or 125 if it was not changed.`,
		Example: "  paddock volume resize models 80G",
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			var size SizeFlag
			if err := size.Set(args[1]); err != nil {
				return fmt.Errorf("size %q: %w: %w", args[1], err, paddock.Invalid)
			}
			dir, err := a.volumesDir()
			if err != nil {
				return err
			}
			return volume.Resize(dir, args[0], int64(size))
		},
	}
}

func (a *App) volumeListCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "ls [flags]",
		Short: "List the volumes",
		Long: `List the volumes by name, with what is in them. For one that cannot be read, the list says why.

Exit status: 0, or 125 if they cannot be read.`,
		Example: "  paddock volume ls",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			dir, err := a.volumesDir()
			if err != nil {
				return err
			}
			list, err := volume.List(dir)
			if err != nil {
				return fmt.Errorf("volumes: %w", err)
			}
			if asJSON {
				return PrintJSON(a.Stdout, list)
			}
			w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tUSED\tSIZE\tIN USE\tCREATED")
			for _, e := range list {
				if e.Fault != "" {
					fmt.Fprintf(w, "%s\t-\t-\t-\tit cannot be read: %s\n", e.Name, e.Fault)
					continue
				}
				inUse := "no"
				if e.InUse {
					inUse = "yes"
				}
				fmt.Fprintf(w, "%s\t%d MiB\t%d MiB\t%s\t%s\n", e.Name, (e.Bytes+1<<20-1)>>20, e.Size>>20, inUse, e.Created.Local().Format("2006-01-02 15:04"))
			}
			return w.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "answer with a JSON list")
	return c
}

func (a *App) volumeInspectCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "inspect NAME",
		Short: "Describe a volume, as one JSON object",
		Long: `Describe a volume, as one JSON object.

Exit status: 0, or 125 if there is none of this name.`,
		Example: "  paddock volume inspect models",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := a.volumesDir()
			if err != nil {
				return err
			}
			e, err := volume.Inspect(dir, args[0])
			if err != nil {
				return err
			}
			return PrintJSON(a.Stdout, e)
		},
	}
}

func (a *App) volumeRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rm NAME...",
		Short: "Remove volumes with what is in them",
		Long: `Remove volumes with what is in them. A volume that a sandbox uses is not removed.

Exit status: 0, or 125 if one could not be removed.`,
		Example: "  paddock volume rm models",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, names []string) error {
			dir, err := a.volumesDir()
			if err != nil {
				return err
			}
			for _, name := range names {
				err := volume.Remove(dir, name)
				if errors.Is(err, paddock.Conflict) {
					return WithHint(err, "wait until its sandboxes have ended")
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}
