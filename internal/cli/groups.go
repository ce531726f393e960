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
makers want it to; paddock policy learn finds out where that is. Hosts that only
files of the current directory name are comments, and no rule allows them.

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

// groups writes a piece of a policy file. Hosts that the project names are comments, because what
// a stranger or a command in a sandbox wrote must not become a rule unread.
func (a *App) groups(list []packageregistry.Group) error {
	var own, project []packageregistry.Group
	for _, g := range list {
		if g.Project {
			project = append(project, g)
		} else {
			own = append(own, g)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Groups that there are without a file: %s\n", strings.Join(policy.Groups(), ", "))
	if len(own) == 0 {
		fmt.Fprintln(&b, "# No package client of yours is configured to use hosts of its own; `paddock policy learn` finds out where one goes.")
	} else {
		fmt.Fprint(&b, "version: 1\nnetwork:\n  mode: list\n  rules:\n")
		for _, g := range own {
			fmt.Fprintf(&b, "    - allow: {group: %s-sources}\n", g.Name)
		}
		fmt.Fprintln(&b, "  groups:")
	}
	for _, g := range own {
		writeGroup(&b, "    ", g.Name+"-sources", g)
	}
	if len(project) > 0 {
		fmt.Fprintln(&b, "# Files of this directory name more hosts. Whoever wrote the files chose them, so nothing allows them here.")
		fmt.Fprintln(&b, "# Move hosts that you know into a group above.")
	}
	for _, g := range project {
		writeGroup(&b, "#   ", g.Name+"-sources-of-this-directory", g)
	}
	if _, err := io.WriteString(a.Stdout, b.String()); err != nil {
		return fmt.Errorf("write the groups: %w: %w", err, paddock.Exhausted)
	}
	return nil
}

// writeGroup writes a group as lines that begin with an indent.
func writeGroup(b *strings.Builder, indent, name string, g packageregistry.Group) {
	fmt.Fprintf(b, "%s%s: # from %s\n", indent, name, OneLine(strings.Join(g.From, ", ")))
	for _, h := range g.Hosts {
		fmt.Fprintf(b, "%s  - %q\n", indent, h)
	}
}
