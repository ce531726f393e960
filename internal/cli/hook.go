package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
	"github.com/paddock-sandbox/paddock/internal/agenthook"
)

// defaultIdle is when a box is removed that no step used, because an agent can end without a word.
const defaultIdle = TimeFlag(30 * time.Minute)

// hookRefused is the exit status by which every agent takes a hook's end for a refusal.
const hookRefused ExitStatus = 2

// hookCommand is what agents call. People have no use for it.
func (a *App) hookCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "hook",
		Short: "What the hooks of paddock hooks install call",
		Long: `Answer the hook of an agent, or run its command in a box.

Exit status: 2 if the agent is to refuse its command; of a command in a box, the command's own, or 125.`,
		Hidden: true,
		// The words are encoded, so that no shell on the way can take them for something else.
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			words := make([]string, len(args))
			for i, text := range args {
				var err error
				if words[i], err = agenthook.Decode(text); err != nil {
					return err
				}
			}
			switch {
			case len(words) > 0 && words[0] == "call":
				if err := a.hookCall(c.Context(), words[1:]); err != nil {
					a.complain(err)
					return hookRefused
				}
				return nil
			case len(words) > 0 && words[0] == "shell":
				return a.hookShell(c.Context(), words[1:])
			case len(words) == 3 && words[0] == "left":
				return a.hookLeft(c.Context(), paddock.ID(words[1]), words[2])
			}
			return WithHint(fmt.Errorf("this is for agents: %w", paddock.Invalid), "paddock hooks --help")
		},
	}
}

// hookCall answers an agent: call NAME EVENT [--approve] [--top] [--project=…]… -- FLAGS. It asks nobody and waits for nothing.
func (a *App) hookCall(ctx context.Context, words []string) error {
	i := slices.Index(words, "--")
	if i < 2 {
		return fmt.Errorf("a hook that is not of this version: %w", paddock.Invalid)
	}
	agent, err := agenthook.Named(words[0])
	if err != nil {
		return err
	}
	data, err := io.ReadAll(io.LimitReader(a.Stdin, agenthook.MaxInput+1))
	if err != nil || len(data) > agenthook.MaxInput {
		return fmt.Errorf("the input of %s's hook cannot be read: %w", agent.Title, paddock.Invalid)
	}
	call, err := agent.Read(agenthook.Event(words[1]), data, a.Lookup)
	if err != nil {
		return err
	}
	flags, own := words[i+1:], words[2:i]
	dirs, err := a.settle(&call, agent, own)
	if err != nil {
		return err
	}
	if call.Event == agenthook.End {
		return a.endSession(ctx, agent.Box(call, flags))
	}
	if slices.Contains(own, topWord) {
		if err := a.atTop(call, agent); err != nil {
			return err
		}
	}
	program, err := programPath()
	if err != nil {
		return err
	}
	var box boxFlags
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	box.register(fs)
	if err := fs.Parse(flags); err != nil {
		return fmt.Errorf("%w: %w", err, paddock.Invalid)
	}
	if err := box.outOfReach(a, fs.Changed, program, []hookedProject{{call.Inode, call.Project}}); err != nil {
		return err
	}
	if why := a.beaten(agent, dirs); why != "" {
		return WithHint(fmt.Errorf("%s; the step is refused: %w", why, paddock.Denied), "have the user take that out")
	}
	answer, err := agent.Answer(call, program, flags, slices.Contains(own, "--approve"))
	if err != nil {
		return err
	}
	return a.Say("%s", answer)
}

// A stepShell is a step of an agent's shell tool.
type stepShell struct {
	boxFlags
	box   string
	agent string
	keep  bool
	inode string
}

// hookShell runs a step in the box of its session, and makes the box with the first one.
func (a *App) hookShell(ctx context.Context, words []string) error {
	f := &stepShell{}
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	fs.StringVar(&f.box, "box", "", "")
	fs.StringVar(&f.agent, "agent", "", "")
	fs.BoolVar(&f.keep, "keep", false, "")
	fs.StringVar(&f.inode, "inode", "", "")
	f.register(fs)
	if err := fs.Parse(words); err != nil {
		return fmt.Errorf("%w: %w", err, paddock.Invalid)
	}
	if fs.NArg() != 1 || !paddock.ID(f.box).Valid() || f.workspace == "" {
		return fmt.Errorf("a step that no hook of this version wrote: %w", paddock.Invalid)
	}
	f.given = fs.Changed
	dir, err := a.Dir()
	if err != nil {
		return fmt.Errorf("working directory: %w: %w", err, paddock.NotFound)
	}
	project := hookedProject{f.inode, f.workspace}
	if err := a.checkProject(project); err != nil {
		return err
	}
	program, err := programPath()
	if err != nil {
		return err
	}
	if err := f.outOfReach(a, f.given, program, []hookedProject{project}); err != nil {
		return err
	}
	if err := f.shows(dir); err != nil {
		return err
	}
	server, err := a.Private(ctx)
	if err != nil {
		return NotMade{Err: err}
	}
	err = a.step(ctx, f, server, dir, fs.Arg(0))
	var refused *notStarted
	if !errors.As(err, &refused) || !errors.Is(err, paddock.NotFound) {
		return err
	}
	if err := a.makeBox(ctx, f, server); err != nil {
		return err
	}
	if err := a.checkProject(project); err != nil { // a box of another session may have exchanged it meanwhile
		return errors.Join(err, a.endSession(ctx, paddock.ID(f.box)))
	}
	return a.step(ctx, f, server, dir, fs.Arg(0))
}

// shows refuses a working directory that the box does not show at the same place.
func (f *stepShell) shows(dir string) error {
	if within(dir, f.workspace) {
		return nil
	}
	for _, text := range slices.Concat(f.read, f.write) {
		if actual, err := filepath.EvalSymlinks(text); err == nil && actual == text && within(dir, text) {
			return nil
		}
	}
	return WithHint(fmt.Errorf("the step's directory %s is outside of the project %s, and its box does not show it: %w", dir, f.workspace, paddock.Denied),
		"run it in the project; or have the user add the directory: paddock hooks install %s --write %s", f.agent, dir)
}

// A notStarted error is of a step that nothing ran of.
type notStarted struct{ err error }

func (e *notStarted) Error() string { return e.err.Error() }
func (e *notStarted) Unwrap() error { return e.err }

// step runs a command in the box with the streams of this process.
func (a *App) step(ctx context.Context, f *stepShell, server, dir, command string) error {
	v := visit{id: paddock.ID(f.box), stdout: a.Stdout, stderr: a.Stderr, bound: true}
	cmd := paddock.Cmd{Dir: dir, Env: a.stepEnv()}
	switch {
	case isTerminal(a.Stdin) && isTerminal(a.Stdout):
		size := sizeOf(a.Stdout, a.Stdin)
		cmd.Terminal, v.stdin, v.terminal = &size, a.Stdin, true
	case !isTerminal(a.Stdin) && !isEmpty(a.Stdin):
		v.stdin = a.Stdin
	}
	cmd.Input = v.stdin != nil
	begun := false
	watch := func() {}
	err := a.visit(ctx, &RemoteFlags{Server: server}, v, func(ctx context.Context, sb paddock.Sandbox, out paddock.Output) (paddock.Process, error) {
		begun = true
		cmd.Output = out
		p, err := startShell(ctx, sb, cmd, f.keep, command)
		if err == nil {
			watch = mourned(sb.ID(), p.ID())
		}
		return p, err
	})
	watch()
	if err != nil && !begun {
		return &notStarted{err}
	}
	return err
}

// startShell starts a command by bash, as the agents do, or by sh where there is no bash.
func startShell(ctx context.Context, sb paddock.Sandbox, cmd paddock.Cmd, keep bool, command string) (paddock.Process, error) {
	if keep {
		command = lasting(command)
	}
	cmd.Args = []string{"bash", "-c", command}
	p, err := sb.Start(ctx, cmd)
	var missing *paddock.StartError
	if errors.As(err, &missing) && missing.Code == 127 && !keep {
		cmd.Args[0] = "sh"
		return sb.Start(ctx, cmd)
	}
	return p, err
}

// lasting gives a command that begins where the one before it ended, if the agent itself is where it was then, and that
// tells where it ended if it succeeds. So `cd` lasts for the next step, as in the agents that keep a shell's directory.
// All of it is inside: the host reads nothing. The command comes first, because lists of steps show the beginning.
func lasting(command string) string {
	const place = "/tmp/.paddock-step-directory"
	quoted := "'" + strings.ReplaceAll(command, "'", `'\''`) + "'"
	return `__step=` + quoted + `
__paddock_at=$PWD
if [ -r ` + place + ` ]; then
  { IFS= read -r __paddock_from; IFS= read -r __paddock_to; } <` + place + `
  [ "$__paddock_from" = "$__paddock_at" ] && cd -- "$__paddock_to" 2>/dev/null
fi
unset __paddock_from __paddock_to
eval "unset __step
$__step"
__paddock_status=$?
[ $__paddock_status = 0 ] && printf '%s\n%s\n' "$__paddock_at" "$(pwd -P)" 2>/dev/null >` + place + `
exit $__paddock_status`
}

// stepVariables are those by which agents tell programs how to behave, which hold no secret.
const stepVariables = "PAGER GIT_PAGER GH_PAGER MANPAGER GIT_EDITOR GIT_TERMINAL_PROMPT NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE COLORTERM TERM COLUMNS LINES CI DEBIAN_FRONTEND CLAUDECODE GEMINI_CLI CODEX_CI OPENCODE COPILOT_CLI"

// stepEnv gives what of the agent's environment a step has.
func (a *App) stepEnv() map[string]string {
	env := map[string]string{}
	for _, name := range strings.Fields(stepVariables) {
		if value, ok := a.Lookup(name); ok && len(value) < 256 {
			env[name] = value
		}
	}
	return env
}

// makeBox makes the box of a session, or waits until another step has made it.
func (a *App) makeBox(ctx context.Context, f *stepShell, server string) error {
	create := createFlags{specFlags: f.specFlags, name: f.box, labels: listFlag{"hook=" + f.agent}, undo: f.undo}
	p, err := create.asked(a, func(name string) bool { return name == "name" || name == "workspace" || f.given(name) })
	if err != nil {
		return err
	}
	terms := &client.Terms{IdleRemove: time.Duration(f.idle), IgnoreProcesses: true}
	return a.With(ctx, &RemoteFlags{Server: server}, func(ctx context.Context, r *Remote) error {
		_, err := a.make(ctx, r, p.spec, terms)
		if !errors.Is(err, paddock.Exists) {
			return err
		}
		return made(ctx, r, p.spec.ID)
	})
}

// made waits until a sandbox that somebody else makes is there.
func made(ctx context.Context, r *Remote, id paddock.ID) error {
	ctx, cancel := context.WithTimeout(ctx, 12*Patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := r.Open(ctx, id)
		if !errors.Is(err, paddock.NotFound) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

// hookLeft ends a step whose process outside was killed: an agent that kills it means the command.
func (a *App) hookLeft(ctx context.Context, id paddock.ID, number string) error {
	var pid paddock.PID
	if _, err := fmt.Sscanf(number, "%d", &pid); err != nil || !id.Valid() {
		return fmt.Errorf("a step that no hook of this version wrote: %w", paddock.Invalid)
	}
	return a.WithRunning(ctx, func(ctx context.Context, r *Remote) error {
		sb, err := r.Open(ctx, id)
		if err != nil {
			return err
		}
		p, err := sb.Attach(ctx, pid, paddock.Output{Detached: true})
		if err != nil {
			return err
		}
		defer p.Release()
		return p.Signal(ctx, syscall.SIGKILL)
	})
}

// mourned has the process of a step killed if this process dies before it calls the function that mourned returns. What
// waits for that is a shell of its own session, so that whoever kills this process and its children does not kill it.
func mourned(id paddock.ID, pid paddock.PID) (done func()) {
	exe, err := os.Executable()
	if err != nil {
		return func() {}
	}
	return watchOver(exe, "hook", "left", string(id), fmt.Sprint(int(pid)))
}
