package cli

import (
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/buildcache"
	"github.com/paddock-sandbox/paddock/internal/program"
)

// caches returns the caches of build tools of a plan's workspace, and adds them to the plan. Nil is none: a run does
// without caches where they cannot be kept, because they only save time.
//
// A sandbox that may not write the workspace gets none. Otherwise it could leave what a later one builds with.
func (a *App) caches(p *plan) *buildcache.Cache {
	dir := program.Builds(program.Cache(a.Lookup))
	if p.workspace == "" || p.spec.Tier == paddock.Sim || dir == "" || p.spec.Root.Kind != "" && p.spec.Root.Kind != paddock.RootHost {
		return nil
	}
	if !slices.ContainsFunc(p.spec.Mounts, func(m paddock.Mount) bool { return m.Write && m.Source == p.workspace }) {
		return nil
	}
	c, err := buildcache.Open(dir, p.workspace)
	if err != nil {
		fmt.Fprintf(a.Stderr, "paddock: note: no caches of build tools are kept: %s\n", OneLine(err.Error()))
		return nil
	}
	p.spec.Mounts = append(p.spec.Mounts, c.Mounts...)
	return c
}

// closeCaches gives caches back, and says what became of them.
func (a *App) closeCaches(c *buildcache.Cache) {
	if c == nil {
		return
	}
	removed, err := c.Close()
	if err != nil {
		a.complain(fmt.Errorf("caches of build tools: %w", err))
	}
	if removed {
		fmt.Fprintf(a.Stderr, "paddock: the caches of this workspace were larger than %d GiB or %d files, and were removed\n", buildcache.MaxBytes>>30, buildcache.MaxFiles)
	}
}

func (a *App) cacheCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "cache",
		Short: "List and remove the caches that build tools keep between runs",
		Long: `List and remove the caches of build tools: of go, npm, pip, uv, cargo, ccache,
Maven, Gradle and others. paddock run --workspace keeps them for each workspace.
Only sandboxes of that workspace see them, and no program of this machine uses
them.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.cacheListCommand(), a.cacheRemoveCommand())
	return c
}

func (a *App) cacheListCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "ls [flags]",
		Short: "List the caches, those that were used last first",
		Long: `List the caches of build tools, those that were used last first.

Exit status: 0, or 125 if they cannot be read.`,
		Example: "  paddock cache ls",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			list, err := buildcache.List(program.Builds(program.Cache(a.Lookup)))
			if err != nil {
				return fmt.Errorf("caches: %w", err)
			}
			if asJSON {
				return PrintJSON(a.Stdout, list)
			}
			w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "ID\tSIZE\tUSED\tWORKSPACE")
			for _, e := range list {
				fmt.Fprintf(w, "%s\t%d MiB\t%s\t%s\n", e.ID, (e.Bytes+1<<20-1)>>20, e.Used.Format("2006-01-02 15:04"), OneLine(e.Workspace))
			}
			return w.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "answer with a JSON list")
	return c
}

func (a *App) cacheRemoveCommand() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "rm [flags] [ID...]",
		Short: "Remove caches",
		Long: `Remove caches of build tools. Caches that a sandbox uses are not removed.

Exit status: 0, or 125 if one could not be removed.`,
		Example: `  paddock cache rm 0123456789abcdef
  paddock cache rm --all`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, ids []string) error {
			dir := program.Builds(program.Cache(a.Lookup))
			if all == (len(ids) > 0) {
				return WithHint(fmt.Errorf("which caches: %w", paddock.Invalid), "name them by ID, which `paddock cache ls` lists, or give --all")
			}
			if all {
				list, err := buildcache.List(dir)
				if err != nil {
					return fmt.Errorf("caches: %w", err)
				}
				for _, e := range list {
					ids = append(ids, e.ID)
				}
			}
			for _, id := range ids {
				if err := buildcache.Remove(dir, id); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&all, "all", false, "remove the caches of every workspace")
	return c
}
