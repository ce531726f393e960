package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/packageregistry"
	"github.com/paddock-sandbox/paddock/internal/policy"
)

func (a *App) policyGroupsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "groups",
		Short: "List groups of hosts: those that Paddock has, and those of your package clients",
		Long: `List the groups of hosts that rules can name, and write groups for a policy file
with the hosts that your package clients (pip, npm, cargo, go and apt) are
configured to use. They are read from the clients' own files and variables:
Paddock knows no registry itself. A client that is not configured goes where its
makers want it to; paddock policy learn finds out where that is.

Exit status: 0, or 125 if it cannot be written.`,
		Example: `  paddock policy groups
  paddock run --allow group:code-hosts -- git ls-remote https://github.com/git/git`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			host, _ := a.host() // without a directory there are no files of a project
			return a.groups(packageregistry.Read(packageregistry.Machine{Home: host.Home, Dir: host.Dir, Env: host.Env, Files: host.Files}))
		},
	}
}

// groups writes a piece of a policy file.
func (a *App) groups(list []packageregistry.Group) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Groups that there are without a file: %s\n", strings.Join(policy.Groups(), ", "))
	if len(list) == 0 {
		fmt.Fprintln(&b, "# No package client of yours is configured to use hosts of its own; `paddock policy learn` finds out where one goes.")
	} else {
		fmt.Fprint(&b, "version: 1\nnetwork:\n  mode: list\n  rules:\n")
		for _, g := range list {
			fmt.Fprintf(&b, "    - allow: {group: %s-sources}\n", g.Name)
		}
		fmt.Fprintln(&b, "  groups:")
	}
	for _, g := range list {
		fmt.Fprintf(&b, "    %s-sources: # from %s\n", g.Name, OneLine(strings.Join(g.From, ", ")))
		for _, h := range g.Hosts {
			fmt.Fprintf(&b, "      - %q\n", h)
		}
	}
	if _, err := io.WriteString(a.Stdout, b.String()); err != nil {
		return fmt.Errorf("write the groups: %w: %w", err, paddock.Exhausted)
	}
	return nil
}
