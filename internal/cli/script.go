package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
)

// A script is what a shell is to run in place of a command.
type script struct {
	given bool
	text  string
	name  string // $0; empty where the first argument is

	file   bool // it was read from the file name
	placed bool // it lies inside at place, and text reads it from there
}

// maxScript bounds a script that is read from a file.
const maxScript = 64 << 20

// scripted reads what -c and -f ask for.
func (f *runFlags) scripted(changed func(string) bool) (script, error) {
	switch {
	case changed("command"):
		return script{given: true, text: f.script}, nil
	case !changed("file"):
		return script{}, nil
	}
	text, err := readScript(f.file)
	switch {
	case len(text) > maxScript:
		return script{}, fmt.Errorf("script %s: it is larger than %s: %w", f.file, BytesInWords(maxScript), paddock.Invalid)
	case errors.Is(err, fs.ErrNotExist):
		return script{}, WithHint(fmt.Errorf("script %s: there is no such file on this machine: %w", f.file, paddock.NotFound),
			"a script inside the sandbox is a command: paddock run -- sh %s", f.file)
	case err != nil:
		return script{}, fmt.Errorf("script: %w: %w", err, paddock.Denied)
	}
	return script{given: true, text: string(text), name: f.file, file: true}, nil
}

// readScript reads a file of at most maxScript bytes, and one byte more of a larger one.
func readScript(name string) ([]byte, error) {
	f, err := openFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxScript+1))
}

// maxArgument is the longest argument that every system takes.
const maxArgument = 128<<10 - 1

// place is where a script lies inside that is too long for an argument: a
// directory that every tier has and nobody looks into.
const place = "/dev/shm/.paddock-script"

// scriptName is the option by which the shell of the tier sim is told what the
// script is called: for BASH_SOURCE, which -c does not set.
const scriptName = "--script-name"

// runScript runs a script or a command, and tells what it was where it cannot
// be run.
func (a *App) runScript(ctx context.Context, f *runFlags, b *oneShot, relay *relay, s script, args []string, r *result, asker *asker) (paddock.Exit, error) {
	if len(s.text) > maxArgument {
		s.placed = true
		if err := put(ctx, b.FS(), place, s.text); err != nil {
			return paddock.Exit{}, fmt.Errorf("put the script into the sandbox: %w", err)
		}
		if s.name == "" && len(args) == 0 {
			s.name = shellOf(b.tier)
		}
		s.text = ". " + place
	}
	exit, err := a.follow(ctx, f, b, relay, s.command(b.tier, args), r, asker)
	var start *paddock.StartError
	if b.tier == paddock.Sim && errors.As(err, &start) && !errors.Is(err, paddock.Denied) {
		return exit, WithHint(err, "this tier runs its own programs only, which docs/use/sim.md lists: --tier jail runs programs of this machine")
	}
	if b.image && errors.As(err, &start) && start.Code == 127 {
		return exit, WithHint(fmt.Errorf("the image has no %s: %w", OneLine(start.Path), err), "a sandbox of an image sees no program of this machine: name one that the image has, or another image")
	}
	return exit, err
}

// put writes a file inside.
func put(ctx context.Context, files paddock.FS, name, text string) error {
	w, err := files.Create(ctx, name, paddock.CreateOptions{Mode: 0o444})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return errors.Join(err, w.Close())
}

func shellOf(tier paddock.Tier) string {
	if tier == paddock.Sim {
		return "bash"
	}
	return "sh"
}

// command gives what to run: the caller's arguments, or a shell.
func (s script) command(tier paddock.Tier, args []string) []string {
	shell := shellOf(tier)
	switch {
	case tier == paddock.Sim && s.file && s.placed:
		return append([]string{shell, scriptName, s.name, place}, args...)
	case tier == paddock.Sim && s.file:
		return append([]string{shell, scriptName, s.name, "-c", s.text, s.name}, args...)
	case s.given && s.name != "":
		return append([]string{shell, "-c", s.text, s.name}, args...)
	case s.given:
		return append([]string{shell, "-c", s.text}, args...)
	case len(args) == 0:
		return []string{shell}
	case tier == paddock.Sim && len(args) == 1:
		return []string{shell, "-c", args[0]}
	}
	return args
}

func (a *App) shellCommand() *cobra.Command {
	f := &runFlags{}
	remote := &RemoteFlags{}
	c := &cobra.Command{
		Use:   "shell [flags] [ID]",
		Short: "Work in a sandbox by hand",
		Long: `Start an interactive shell in a new sandbox, and remove the sandbox when it ends.
With an ID it is started in that sandbox of a server, which stays.

The sandbox is that of paddock run: no network, nothing of your home, and
limits. On the tier sim the shell has line editing, history and completion of
its own.

Exit status: that of the shell; 124 if the budget of --budget is used up; 125 if
Paddock itself failed.`,
		Example: `  paddock shell --tier sim --workspace .
  paddock shell --workspace . --memory 2G
  paddock shell "$id"`,
		Args:                  cobra.MaximumNArgs(1),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     a.completeIDs(1),
		RunE: func(c *cobra.Command, args []string) error {
			f.terminal = isTerminal(a.Stdin)
			if !f.terminal {
				return WithHint(fmt.Errorf("standard input is no terminal: %w", paddock.Invalid), "a script is run with paddock run or paddock exec")
			}
			if len(args) == 1 {
				return a.shellIn(c, remote, args[0])
			}
			if remote.Server != "" {
				return WithHint(fmt.Errorf("--server without a sandbox of it: %w", paddock.Invalid), "paddock shell --server %s ID", remote.Server)
			}
			if f.tier == string(paddock.Sim) && !slices.ContainsFunc(f.limit, func(l string) bool { return strings.HasPrefix(l, "wall=") }) {
				f.limit = append(f.limit, "wall=24h") // the default is meant for scripts
			}
			return a.run(c.Context(), f, loginShell(), c.Flags().Changed)
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	f.register(fs)
	remote.register(fs)
	f.audit.register(fs)
	f.registerPublish(fs)
	registerNoCache(fs, &f.noCache)
	registerUndo(fs, &f.undo)
	registerBudget(fs, &f.budget, budgetStops)
	f.registerMonitor(fs)
	registerReview(fs, &f.review)
	fs.BoolVar(&f.ask, "ask", false, "ask at the terminal where no rule of the network decides: allow once, always in this run, or deny")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "tell which tier was chosen, and why")
	return c
}

// loginShell is what a person gets.
func loginShell() []string { return []string{"sh", "-c", `exec "${SHELL:-/bin/sh}" -l`} }

// shellIn starts a shell in a sandbox that is there, of which no flag says what
// it is.
func (a *App) shellIn(c *cobra.Command, remote *RemoteFlags, id string) error {
	var given string
	c.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != "server" {
			given = f.Name
		}
	})
	if given != "" {
		return WithHint(fmt.Errorf("--%s is of a new sandbox, and %s is there: %w", given, id, paddock.Invalid), "leave one out")
	}
	return a.exec(c.Context(), &execFlags{RemoteFlags: *remote, terminal: true}, paddock.ID(id), loginShell())
}
