package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/agentprofile"
	"github.com/paddock-sandbox/paddock/internal/private"
)

// agentShortcuts are the commands that are the names of agents.
func agentShortcuts() []command {
	var list []command
	for _, name := range agentprofile.Names() {
		list = append(list, command{name, func(a *App) *cobra.Command {
			c := a.agentRunCommand(name)
			c.Hidden = true // `paddock agent` lists them
			return c
		}})
	}
	return list
}

func (a *App) agentCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "agent",
		Short: "Run a coding agent in a sandbox",
		Long: `Run a coding agent, such as Claude Code or Codex, in a sandbox of the directory
you are in. paddock claude is short for paddock agent claude, and so for the
others.

The agent may change this directory, and paddock undo brings back what was
before. It sees nothing else of your home. It has files of its own in place of
its usual ones (~/.claude and so on), which are kept for each project. It
reaches its vendor's hosts, and those that you allow. API keys stay outside.
docs/use/agents.md tells more.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	for _, name := range a.agentNames() {
		c.AddCommand(a.agentRunCommand(name))
	}
	c.AddCommand(a.agentListCommand(), a.agentDiffCommand(), a.agentTakeCommand(), a.agentResetCommand(), a.agentApproveCommand())
	return c
}

// agentProfiles is the directory of the user's own profiles. It is empty if the user has no home.
func (a *App) agentProfiles() string {
	if a.Lookup == nil {
		return ""
	}
	if dir, _ := a.Lookup("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "paddock", "agents")
	}
	if home, _ := a.Lookup("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "paddock", "agents")
	}
	return ""
}

// agentNames lists the agents that have a profile: those of this version, and the user's own.
func (a *App) agentNames() []string {
	names := agentprofile.Names()
	dir := a.agentProfiles()
	if dir == "" {
		return names
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return names // there are none of the user's own
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".yaml"); ok && agentprofile.IsName(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// profile returns the profile of an agent.
func (a *App) profile(name string) (*agentprofile.Profile, error) {
	p, _, err := agentprofile.Find(name, a.agentProfiles())
	switch {
	case errors.Is(err, paddock.NotFound):
		return nil, WithHint(fmt.Errorf("there is no profile of an agent %q: %w", OneLine(name), paddock.NotFound), "`paddock agent ls` lists them; docs/use/agents.md tells how to write one")
	case err != nil:
		return nil, WithHint(err, "docs/use/agents.md has the keys of a profile")
	}
	return p, nil
}

// agentData is the directory of the states of agents, by its real path.
func (a *App) agentData() (string, error) {
	dir, err := a.Data()
	if err != nil {
		return "", err
	}
	if dir == "" {
		return "", WithHint(fmt.Errorf("there is no data directory to keep the agent's files in: %w", paddock.Invalid), "set HOME or XDG_DATA_HOME")
	}
	return filepath.Join(private.RealPath(dir), "agents"), nil
}

// agentFlags are the flags of an agent: some of those of run, and its own.
type agentFlags struct {
	runFlags
	noProject bool
	noGit     bool
}

// agentRunFlags lists the flags of run that agents have too.
func agentRunFlags() []string {
	return []string{
		"tier", "read", "write", "env", "allow", "deny", "secret", "forward-agent", "memory", "cpus", "pids", "disk", "timeout",
		"publish", "ask", "review", "undo", "monitor", "task", "json", "no-cache", "unprotect", "deny-read", "deny-write", "verbose",
	}
}

func (f *agentFlags) register(fs *pflag.FlagSet) {
	all := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.specFlags.register(all)
	all.StringVar(&f.json, "json", "", "write one JSON object about the run to a `FILE` (--json=FILE)")
	f.registerMonitor(all)
	all.BoolVar(&f.ask, "ask", false, "ask at the terminal where no rule of the network decides: allow once, always in this run, or deny")
	f.registerPublish(all)
	registerNoCache(all, &f.noCache)
	all.StringVar(&f.undo, "undo", "on", "record what the agent changes, for paddock undo: `MODE` is on, strict (also refuse a change that could not be undone) or off")
	registerReview(all, &f.review)
	all.BoolVarP(&f.verbose, "verbose", "v", false, "tell which tier was chosen, and why")
	for _, name := range agentRunFlags() {
		fs.AddFlag(all.Lookup(name))
	}
	fs.BoolVar(&f.noGit, "no-git", false, "let git neither use your login for the https remotes of this directory nor commit in your name")
	fs.BoolVar(&f.noProject, "no-project", false, "pass over the file "+agentprofile.ProjectFile+" of the project")
}

func (a *App) agentRunCommand(name string) *cobra.Command {
	f := &agentFlags{}
	c := &cobra.Command{
		Use:   name + " [flags] [--] [ARGUMENT…]",
		Short: "Run " + name + " in a sandbox of this directory",
		Long: `Run the agent in a sandbox of the directory you are in. The arguments are the
agent's own; those that begin with - stand after --.

The agent may change this directory, and paddock undo brings back what was
before. It has files of its own in place of its usual ones, which are kept for
each project: paddock agent diff, take and reset are about them. It reaches its
vendor's hosts, and those of --allow. An API key in your environment stays
outside: the agent has a placeholder. Git reaches the https remotes of this
directory with your login, which stays outside too (docs/use/git.md). One line on standard error tells all this,
and what of the agent is switched off.

Exit status: as of paddock run.`,
		Example:               "  paddock " + name + "\n  paddock " + name + " --allow github.com --memory 8G\n  paddock agent " + name + " -- --help",
		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, args []string) error {
			return a.runAgent(c.Context(), name, f, args, c.Flags().Changed)
		},
	}
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return WithHint(fmt.Errorf("%w: %w", err, paddock.Invalid), "arguments of the agent stand after --: `%s -- …`; `%s --help` lists Paddock's own flags", c.CommandPath(), c.CommandPath())
	})
	fs := c.Flags()
	fs.SortFlags = false
	fs.SetInterspersed(false)
	f.register(fs)
	return c
}
