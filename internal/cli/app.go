package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
)

// An App is one invocation of the program. It holds everything that the commands need from the
// process, so that no command reads the process's state itself.
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

	// Installed is a path that leads to the file of the program that was installed. Empty is that of the calling process.
	Installed string

	// Commands returns commands in addition to those of this package. Nil adds none.
	Commands func(*App) []*cobra.Command

	// Self returns another invocation of this program, with the caller's environment. Nil is a build without images.
	Self func(ctx context.Context, args ...string) (*exec.Cmd, error)

	Tty func() (*os.File, error) // opens the caller's terminal, whatever the streams are
	// Dial returns the driver of a server. Private returns the address of the caller's own server,
	// which it starts if none runs.
	Dial    func(context.Context, Site) (paddock.Driver, error)
	Private func(context.Context) (address string, err error)

	// Wall is the wall clock, for times that outlive this process. Nil is the machine's clock.
	Wall func() time.Time

	// Unowned lists what is left of sandboxes that nobody owns, apart from what belongs to these state directories. Nil
	// looks on this machine.
	Unowned func(states ...string) ([]box.Unowned, error)

	// Notify sends the given signals of this process to c until stop is called.
	Notify func(sigs ...os.Signal) (c <-chan os.Signal, stop func())
}

// Execute runs the command line and returns the exit status of the process. It prints the error, if
// any.
func (a *App) Execute(ctx context.Context) int {
	root := a.tree(a.only())
	if len(a.Args) > 0 && a.Args[0] == "help" {
		refuseTopics(root)
	}
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
	if readerGone(err) {
		return 128 + int(syscall.SIGPIPE)
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
	return append(agentShortcuts(), []command{
		{"run", (*App).runCommand}, {"shell", (*App).shellCommand}, {"repl", (*App).replCommand}, {"map", (*App).mapCommand},
		{"doctor", (*App).doctorCommand}, {"gc", (*App).gcCommand}, {"policy", (*App).policyCommand}, {"cache", (*App).cacheCommand}, {"volume", (*App).volumeCommand}, {"version", (*App).versionCommand},
		{"login", (*App).loginCommand}, {"logout", (*App).logoutCommand},
		{"create", (*App).createCommand}, {"ls", (*App).listCommand}, {"inspect", (*App).inspectCommand}, {"rm", (*App).removeCommand},
		{"pause", (*App).pauseCommand}, {"resume", (*App).resumeCommand}, {"extend", (*App).extendCommand}, {"renew", (*App).renewCommand},
		{"questions", (*App).questionsCommand}, {"answer", (*App).answerCommand},
		{"snapshot", (*App).snapshotCommand}, {"template", (*App).templateCommand}, {"fork", (*App).forkCommand}, {"escalate", (*App).escalateCommand},
		{"exec", (*App).execCommand}, {"attach", (*App).attachCommand}, {"logs", (*App).logsCommand}, {"ps", (*App).processesCommand},
		{"steps", (*App).stepsCommand}, {"show", (*App).showCommand}, {"diff", (*App).diffCommand}, {"undo", (*App).undoCommand}, {"redo", (*App).redoCommand},
		{"review", (*App).reviewCommand}, {"apply", (*App).applyCommand}, {"discard", (*App).discardCommand},
		{"agent", (*App).agentCommand},
		{"cp", (*App).copyCommand}, {"forward", (*App).forwardCommand}, {"url", (*App).urlCommand},
		{"hooks", (*App).hooksCommand}, {"exec-server", (*App).execServerCommand}, {"hook", (*App).hookCommand},
	}...)
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

// Root returns the tree of commands.
func (a *App) Root() *cobra.Command { return a.tree("") }

// tree builds the command tree, or of it only the command of that name.
func (a *App) tree(only string) *cobra.Command {
	var root *cobra.Command
	root = &cobra.Command{
		Use:   "paddock",
		Short: "Run commands in sandboxes",
		Long: `Paddock runs commands in sandboxes: isolated computers, as strong or as light
as the work needs. A command sees, changes and reaches only what you name.`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: only != ""},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return WithHint(fmt.Errorf("unknown command %q: %w", args[0], paddock.Invalid),
					"%s`paddock --help` lists the commands; a program is run with `paddock run -- %s`", meantCommand(root, args[0]), args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return WithHint(fmt.Errorf("%w: %w", err, paddock.Invalid), "%s`%s --help` lists the flags", meantFlag(c, err), c.CommandPath())
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
	if len(a.Args) > 0 && strings.HasPrefix(a.Args[0], cobra.ShellCompRequestCmd) {
		completeValues(root)
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
			return WithHint(fmt.Errorf("unknown command %q of %s: %w", args[0], c.CommandPath(), paddock.Invalid), "%s`%s --help` lists them", meantCommand(c, args[0]), c.CommandPath())
		}
		return WithHint(fmt.Errorf("%s %s, and got %d: %w", c.CommandPath(), taken(err), len(args), paddock.Invalid), "%s", c.UseLine())
	}
}

// taken says how many arguments a command takes, from the library's error about a wrong number of them.
func taken(err error) string {
	var least, most int
	switch text := err.Error(); {
	case scanned(text, "accepts %d arg(s),", &most):
		return "takes " + Plural(most, "argument", "arguments")
	case scanned(text, "requires at least %d arg(s),", &least):
		return "takes " + Plural(least, "argument or more", "arguments or more")
	case scanned(text, "accepts at most %d arg(s),", &most):
		return "takes at most " + Plural(most, "argument", "arguments")
	case scanned(text, "accepts between %d and %d arg(s),", &least, &most):
		return fmt.Sprintf("takes %d to %d arguments", least, most)
	default:
		return "takes no argument"
	}
}

func scanned(text, format string, numbers ...any) bool {
	_, err := fmt.Sscanf(text, format, numbers...)
	return err == nil
}

// refuseTopics makes `paddock help` refuse a command that does not exist. The library would show the help of the
// command above it.
func refuseTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() != "help" {
			continue
		}
		c.Run = nil
		c.RunE = func(_ *cobra.Command, args []string) error {
			of, left, err := root.Find(args)
			if err != nil || len(left) > 0 {
				return WithHint(fmt.Errorf("unknown command %q of %s: %w", strings.Join(left, " "), of.CommandPath(), paddock.Invalid), "%s`%s --help` lists them", meantCommand(of, strings.Join(left, " ")), of.CommandPath())
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		}
	}
}

// An ExitStatus is an error that ends the program with this exit status. No message is printed for
// it, because everything was already printed.
type ExitStatus int

func (e ExitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Interrupted is the error of a signal that arrived before the command was started.
type Interrupted struct{ Signal syscall.Signal }

func (e Interrupted) Error() string { return "interrupted: " + e.Signal.String() }

// Unwrap returns [paddock.Canceled].
func (e Interrupted) Unwrap() error { return paddock.Canceled }

// statusOf gives the exit status for an error of our own, or of a command that
// was never started.
func statusOf(err error) int {
	var start *paddock.StartError
	var cut Interrupted
	var stopped *stoppedError
	switch {
	case errors.As(err, &stopped):
		return MonitorStatus
	case errors.As(err, &cut):
		return 128 + int(cut.Signal)
	case errors.As(err, &start) && (start.Code == 126 || start.Code == 127):
		return start.Code
	}
	return paddock.KindOf(err).Translate().Exit
}
