package auxiliary

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/mcpserver"
)

type mcpFlags struct {
	cli.OfferFlags
	single bool
}

func mcpCommand(a *cli.App) *cobra.Command {
	var f mcpFlags
	c := &cobra.Command{
		Use:   "mcp [flags]",
		Short: "Give an agent sandboxes as tools of the Model Context Protocol",
		Long: `Offer sandboxes to an agent over the Model Context Protocol: the agent's client
starts this command, and speaks to it over standard input and output. paddock mcp
install CLIENT writes that into the client's configuration.

The tools are sandbox_create, sandbox_list, sandbox_run, sandbox_process, file_read,
file_write, sandbox_changes, sandbox_undo, sandbox_fork and sandbox_kill. Results tell
which files were changed, what was refused and by which rule, and why a command ended.

The flags, which are those of paddock run, say what a sandbox can have at most. The
agent asks for less, and never for more: of the directory, which is --workspace or the
working directory, it gets nothing, a view, an overlay, or the right to write, with a
record for paddock undo. Secrets it asks for by name. It reaches no sandboxes but its
own. They are removed when the client ends, unless it asked to keep them; those that
are kept are there again for a client with the same flags and directory.

With --single there is one sandbox, which has the directory writable, and four tools
that name none: sandbox_run, file_read, file_write and sandbox_undo.

Sandboxes are made by the server that --server, PADDOCK_SERVER or paddock login names,
or by one of your own. docs/use/mcp.md tells more.

Exit status: 0 when the client has ended, or 125.`,
		Example: `  claude mcp add paddock -- paddock mcp --allow group:code-hosts
  paddock mcp install codex
  paddock mcp --single --workspace . --memory 4G`,
		Args:                  cobra.NoArgs,
		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, _ []string) error {
			if cli.IsTerminal(a.Stdin) {
				return cli.WithHint(fmt.Errorf("a terminal does not speak the Model Context Protocol: %w", paddock.Invalid), "have an agent start it: paddock mcp install claude")
			}
			return mcpServe(c.Context(), a, &f, c.Flags().Changed)
		},
	}
	f.registerAll(c.Flags())
	c.AddCommand(mcpInstallCommand(a), mcpRemoveCommand(a))
	return c
}

func (f *mcpFlags) registerAll(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.BoolVar(&f.single, "single", false, "one sandbox, which has the directory writable, and four tools")
	f.Register(fs)
}

// complete refuses one sandbox without a directory.
func (f *mcpFlags) complete(o cli.Offered) error {
	if !f.single || len(o.Directory) > 0 {
		return nil
	}
	return cli.WithHint(fmt.Errorf("there is no directory for the one sandbox: %w", paddock.Denied), "start it in a project directory, or name one with --workspace")
}

// mcpServe answers the client on standard input and output.
func mcpServe(ctx context.Context, a *cli.App, f *mcpFlags, changed func(string) bool) error {
	o, err := f.Offered(a, changed)
	if err != nil {
		return err
	}
	if err := f.complete(o); err != nil {
		return err
	}
	return a.With(ctx, &f.RemoteFlags, func(ctx context.Context, r *cli.Remote) error {
		if err := o.At(r); err != nil {
			return err
		}
		if err := f.complete(o); err != nil {
			return err
		}
		d, ok := paddock.As[mcpserver.Driver](r.Driver)
		if !ok {
			return fmt.Errorf("the server %s has no interpreter: %w", r.At.Address, paddock.Unsupported)
		}
		s, err := mcpserver.New(mcpserver.Options{
			Version: cli.Build().Version, Single: f.single,
			Offer: mcpserver.Offer{Spec: o.Spec, Directory: o.Directory, Undo: o.Undo},
		})
		if err != nil {
			return err
		}
		return s.Serve(ctx, d, a.Stdin, a.Stdout)
	})
}
