package auxiliary

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/mcpclient"
)

// toolServer is what is installed, for records.
const toolServer = "mcp"

func mcpInstallCommand(a *cli.App) *cobra.Command {
	var f cli.SettingsFlags
	c := &cobra.Command{
		Use:   "install [flags] CLIENT [-- FLAGS OF paddock mcp]",
		Short: "Write paddock mcp into the configuration of a client",
		Long: `Write paddock mcp into the configuration of a client of the Model Context Protocol:
` + strings.Join(mcpclient.Names(), ", ") + `.

The change is shown, and made when you agree. Everything else in the file, comments
too, stays as it is. paddock mcp remove brings back the file to the byte, if nothing
else changed it since, and else takes out the server alone.

What follows -- is given to paddock mcp each time: what sandboxes may have. It is
checked first. With --project, the file is the one of the project in the current
directory, which names the program as "paddock"; yours names its file.

Exit status: 0, or 125 if nothing was changed.`,
		Example: `  paddock mcp install claude -- --allow group:code-hosts
  paddock mcp install codex --yes -- --single --memory 4G`,
		Args:                  cobra.MinimumNArgs(1),
		ValidArgs:             mcpclient.Names(),
		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, args []string) error {
			words := args[1:]
			if len(words) > 0 && c.ArgsLenAtDash() != 1 {
				return cli.WithHint(fmt.Errorf("one client is installed at a time, and flags of paddock mcp follow --: %w", paddock.Invalid), "%s", c.UseLine())
			}
			return mcpInstall(a, args[0], words, &f)
		},
	}
	c.Flags().SortFlags = false
	f.Register(c.Flags())
	return c
}

func mcpRemoveCommand(a *cli.App) *cobra.Command {
	var f cli.SettingsFlags
	c := &cobra.Command{
		Use:   "remove [flags] CLIENT",
		Short: "Take paddock mcp out of the configuration of a client",
		Long: `Take out what paddock mcp install wrote: the file is as it was before, to the byte,
if nothing else changed it since. The change is shown, and made when you agree.

Exit status: 0, also if it was not there, or 125 if nothing was changed.`,
		Example:   `  paddock mcp remove claude`,
		Args:      cobra.ExactArgs(1),
		ValidArgs: mcpclient.Names(),
		RunE: func(_ *cobra.Command, args []string) error {
			client, s, err := settingsOf(a, args[0], nil, &f)
			if err != nil {
				return err
			}
			path, found, err := a.RemoveFrom(s, &f)
			if err != nil {
				return err
			}
			if !found {
				return a.Say("there is no server of Paddock's in %s\n", path)
			}
			return a.Say("%s starts Paddock no more. It notices at its next start.\n", client.Title)
		},
	}
	c.Flags().SortFlags = false
	f.Register(c.Flags())
	return c
}

func mcpInstall(a *cli.App, name string, flags []string, f *cli.SettingsFlags) error {
	if err := checkServed(a, flags); err != nil {
		return err
	}
	words := []string{"paddock"}
	if !f.Project() {
		program, err := a.Program()
		if err != nil {
			return err
		}
		words[0] = program
	}
	client, s, err := settingsOf(a, name, append(append(words, toolServer), flags...), f)
	if err != nil {
		return err
	}
	path, err := a.InstallIn(s, f)
	if err != nil {
		return err
	}
	return a.Say("%s has sandboxes as tools from its next start on: %s\n", client.Title, strings.TrimSpace(path+". "+client.Note))
}

// settingsOf gives the file of a client.
func settingsOf(a *cli.App, name string, words []string, f *cli.SettingsFlags) (mcpclient.Client, cli.Settings, error) {
	client, err := mcpclient.Named(name)
	if err != nil {
		return client, cli.Settings{}, cli.WithHint(err, "paddock mcp install %s", strings.Join(mcpclient.Names(), "|"))
	}
	s := cli.Settings{
		What: toolServer, Who: client.Name, Remove: client.Remove,
		Install: func(file []byte) ([]byte, error) { return client.Install(file, words) },
	}
	if f.Project() {
		if client.Project == "" {
			return client, s, cli.WithHint(fmt.Errorf("%s has no configuration of a project: %w", client.Title, paddock.Unsupported), "leave --project out")
		}
		if s.Dir, err = a.Dir(); err != nil {
			return client, s, fmt.Errorf("working directory: %w: %w", err, paddock.NotFound)
		}
		s.Name = client.Project
		return client, s, nil
	}
	home, _ := a.Lookup("HOME")
	if runtime.GOOS == "windows" && home == "" {
		home, _ = a.Lookup("USERPROFILE")
	}
	if !filepath.IsAbs(home) {
		return client, s, cli.WithHint(fmt.Errorf("there is no home directory: %w", paddock.Unsupported), "set HOME, or use --project")
	}
	s.Dir, s.Name = client.UserFile(mcpclient.Machine{Home: home, System: runtime.GOOS, Lookup: a.Lookup})
	if rel, err := filepath.Rel(home, s.Dir); err == nil && filepath.IsLocal(rel) {
		s.Dir, s.Name = home, filepath.Join(rel, s.Name) // every directory below the home is looked at
	}
	return client, s, nil
}

// checkServed refuses flags that paddock mcp would refuse each time that a client starts it.
func checkServed(a *cli.App, flags []string) error {
	var f mcpFlags
	fs := pflag.NewFlagSet("paddock mcp", pflag.ContinueOnError)
	f.registerAll(fs)
	if err := fs.Parse(flags); err != nil {
		return cli.WithHint(fmt.Errorf("%w: %w", err, paddock.Invalid), "`paddock mcp --help` lists the flags")
	}
	if fs.NArg() > 0 {
		return cli.WithHint(fmt.Errorf("paddock mcp takes no argument, and got %q: %w", fs.Arg(0), paddock.Invalid), "`paddock mcp --help` lists the flags")
	}
	return f.Lasting(a, fs.Changed)
}
