package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
)

// An App is one invocation of the program. Everything that surrounds it comes
// in here, so that nothing below reads the process's own state.
type App struct {
	Args   []string // without the program's name
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Lookup func(name string) (string, bool) // the caller's environment
	Dir    func() (string, error)           // the caller's working directory
	Data   func() (string, error)           // the caller's data directory
	Tiers  []Tier                           // strongest first
	Guest  string                           // where the program inside a sandbox is from: see provenance

	// commands are those besides the ones of this package.
	Commands func(*App) []*cobra.Command

	Tty func() (*os.File, error) // opens the caller's terminal, whatever the streams are
	// dial gives the driver of a server, and private the address of the caller's
	// own, which it starts where there is none.
	Dial    func(context.Context, Site) (paddock.Driver, error)
	Private func(context.Context) (address string, err error)

	// wall is what a person's clock says, for what outlives this process; nil is
	// that of the machine.
	Wall func() time.Time

	// notify asks for the signals of this process until stop is called.
	Notify func(sigs ...os.Signal) (c <-chan os.Signal, stop func())
}

// Execute runs the command line and gives the process's exit status.
func (a *App) Execute(ctx context.Context) int {
	root := a.tree(a.only())
	root.SetArgs(a.Args)
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	err := root.ExecuteContext(ctx)
	var code ExitStatus
	if errors.As(err, &code) {
		return int(code)
	}
	if err == nil {
		return 0
	}
	a.complain(err)
	return statusOf(err)
}

// A command is one of this package: its name, and how it is built.
type command struct {
	name string
	make func(*App) *cobra.Command
}

func commandsOfThisPackage() []command {
	return []command{
		{"run", (*App).runCommand}, {"shell", (*App).shellCommand}, {"repl", (*App).replCommand}, {"map", (*App).mapCommand},
		{"doctor", (*App).doctorCommand}, {"policy", (*App).policyCommand}, {"version", (*App).versionCommand},
		{"login", (*App).loginCommand}, {"logout", (*App).logoutCommand},
		{"create", (*App).createCommand}, {"ls", (*App).listCommand}, {"inspect", (*App).inspectCommand}, {"rm", (*App).removeCommand},
		{"pause", (*App).pauseCommand}, {"resume", (*App).resumeCommand}, {"extend", (*App).extendCommand}, {"renew", (*App).renewCommand},
		{"snapshot", (*App).snapshotCommand}, {"fork", (*App).forkCommand},
		{"exec", (*App).execCommand}, {"attach", (*App).attachCommand}, {"logs", (*App).logsCommand}, {"ps", (*App).processesCommand},
		{"cp", (*App).copyCommand}, {"forward", (*App).forwardCommand}, {"url", (*App).urlCommand},
	}
}

// only gives the name of the one command that the arguments are for, where the first of
// them is a command of this package. Other commands with their flags need not be built
// then, which takes a millisecond.
func (a *App) only() string {
	if len(a.Args) > 0 && slices.ContainsFunc(commandsOfThisPackage(), func(c command) bool { return c.name == a.Args[0] }) {
		return a.Args[0]
	}
	return ""
}

// Root builds the command tree.
func (a *App) Root() *cobra.Command { return a.tree("") }

// tree builds the command tree, or of it only the command of that name.
func (a *App) tree(only string) *cobra.Command {
	root := &cobra.Command{
		Use:   "paddock",
		Short: "Give a command a computer of its own",
		Long: `Paddock runs commands in sandboxes: isolated computers, as strong or as light
as the work needs. What a command may see, change and reach is what you say;
where you say nothing, it is nothing.`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: only != ""},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return WithHint(fmt.Errorf("unknown command %q: %w", args[0], paddock.Invalid),
					"`paddock --help` lists the commands; a program is run with `paddock run -- %s`", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return WithHint(fmt.Errorf("%w: %w", err, paddock.Invalid), "`%s --help` lists the flags", c.CommandPath())
	})
	for _, c := range commandsOfThisPackage() {
		if only == "" || c.name == only {
			root.AddCommand(c.make(a))
		}
	}
	if a.Commands != nil && only == "" {
		root.AddCommand(a.Commands(a)...)
	}
	for _, c := range root.Commands() {
		wordArguments(c)
	}
	return root
}

// wordArguments has a command, and those below it, refuse in words what arguments it
// cannot take. The library takes an unknown command of a group for a wish for help.
func wordArguments(c *cobra.Command) {
	for _, sub := range c.Commands() {
		wordArguments(sub)
	}
	if c.HasSubCommands() && c.RunE == nil {
		c.RunE, c.Args = func(c *cobra.Command, _ []string) error { return c.Help() }, cobra.NoArgs
	}
	check := c.Args
	if check == nil {
		return
	}
	c.Args = func(c *cobra.Command, args []string) error {
		err := check(c, args)
		var own *Hinted
		switch {
		case err == nil || errors.As(err, &own):
			return err
		case c.HasSubCommands():
			return WithHint(fmt.Errorf("unknown command %q of %s: %w", args[0], c.CommandPath(), paddock.Invalid), "`%s --help` lists them", c.CommandPath())
		}
		return WithHint(fmt.Errorf("%s cannot take %s: %w", c.CommandPath(), Plural(len(args), "argument", "arguments"), paddock.Invalid), "%s", c.UseLine())
	}
}

// ExitStatus ends the program with a status and without a message: everything
// was said.
type ExitStatus int

func (e ExitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// An Interrupted is a signal that arrived before the command was started.
type Interrupted struct{ Signal syscall.Signal }

func (e Interrupted) Error() string { return "interrupted: " + e.Signal.String() }

// Unwrap gives [paddock.Canceled].
func (e Interrupted) Unwrap() error { return paddock.Canceled }

// statusOf gives the exit status for an error of our own, or of a command that
// was never started.
func statusOf(err error) int {
	var start *paddock.StartError
	var cut Interrupted
	switch {
	case errors.As(err, &cut):
		return 128 + int(cut.Signal)
	case errors.As(err, &start) && (start.Code == 126 || start.Code == 127):
		return start.Code
	}
	return paddock.KindOf(err).Translate().Exit
}
