package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
)

// execFlags say how a command runs in a sandbox that is there.
type execFlags struct {
	RemoteFlags
	input    bool
	terminal bool
	detached bool
	strip    bool
	json     bool
	env      listFlag
	dir      string
	user     string
	timeout  TimeFlag
}

func (a *App) execCommand() *cobra.Command {
	f := &execFlags{}
	c := &cobra.Command{
		Use:   "exec [flags] ID [--] COMMAND [ARGUMENT…]",
		Short: "Run a command in a sandbox that is there",
		Long: `Run a command in a sandbox that paddock create made, with the streams of this one,
as paddock run does. Signals go to the command; a second SIGINT within a second
kills it, and one more leaves it alone.

The command goes on when this one is lost: when its terminal is closed (SIGHUP),
when it is killed, and when the connection breaks. paddock attach joins it again.
With -d it is not joined at all: its number is written, and it goes on.

What the sandbox refused while the command ran, and which limits were reached, is
told at the end.

Exit status: as of paddock run: that of the command, 128+n if signal n killed it,
126 or 127 if it cannot be started, 125 if Paddock itself failed; 124 if the budget
of the sandbox is used up, and the command waits until paddock resume raises it.`,
		Example: `  paddock exec "$id" -- make test
  paddock exec -it "$id" -- bash
  pid=$(paddock exec -d "$id" -- ./job) && paddock attach "$id" "$pid"`,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     a.completeIDs(1),
		RunE: func(c *cobra.Command, args []string) error {
			id, args, err := f.split(args)
			if err != nil {
				return err
			}
			return a.exec(c.Context(), f, id, args)
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.SetInterspersed(false)
	f.register(fs)
	fs.BoolVarP(&f.input, "input", "i", false, "pass standard input on though it is a terminal, without -t")
	fs.BoolVarP(&f.terminal, "terminal", "t", false, "give the command a terminal of its own, joined to yours")
	fs.BoolVarP(&f.detached, "detach", "d", false, "write the number of the command and leave it alone")
	fs.BoolVar(&f.json, "json", false, "answer with one JSON object: the exit, with the first 1 MiB of each stream; with -d the number")
	fs.VarP(&f.env, "env", "e", "set a variable, or pass on your own by its name: `NAME[=VALUE]` (repeatable)")
	fs.StringVar(&f.dir, "dir", "", "working `directory` inside (default: the sandbox's)")
	fs.StringVarP(&f.user, "user", "u", "", "`name` or number that the command runs as inside (default: the sandbox's)")
	fs.Var(&f.timeout, "timeout", "kill the command after this `time`, such as 30s or 5m")
	registerStrip(fs, &f.strip)
	return c
}

// split tells the ID from the command, and finds what is wrong in itself.
func (f *execFlags) split(args []string) (paddock.ID, []string, error) {
	if len(args) > 1 && args[1] == "--" {
		args = slices.Delete(slices.Clone(args), 1, 2)
	}
	switch {
	case len(args) < 2 || args[1] == "":
		return "", nil, WithHint(fmt.Errorf("the ID of a sandbox, or the command to run in it, is missing: %w", paddock.Invalid), "paddock exec [flags] ID -- COMMAND [ARGUMENT…]; for a shell: paddock shell ID")
	case f.detached && (f.terminal || f.input):
		return "", nil, WithHint(fmt.Errorf("-d leaves the command alone, and has no input for it: %w", paddock.Invalid), "leave -d out, or -i and -t")
	case f.terminal && f.json:
		return "", nil, WithHint(fmt.Errorf("-t and --json both want standard output: %w", paddock.Invalid), "leave one out")
	case f.terminal && f.strip:
		return "", nil, WithHint(fmt.Errorf("-t and --strip-escapes contradict each other: a terminal's programs need escape sequences: %w", paddock.Invalid), "leave one out")
	}
	return paddock.ID(args[0]), args[1:], nil
}

// command gives what to start.
func (f *execFlags) command(a *App, args []string) (paddock.Cmd, error) {
	spec := paddock.Spec{}
	if err := (&specFlags{env: f.env}).environment(&spec, a.Lookup); err != nil {
		return paddock.Cmd{}, err
	}
	if f.dir != "" && !strings.HasPrefix(f.dir, "/") {
		return paddock.Cmd{}, WithHint(fmt.Errorf("--dir %s is not absolute: %w", f.dir, paddock.Invalid), "it is a directory inside the sandbox: write it from /")
	}
	return paddock.Cmd{Args: args, Env: spec.Env, Dir: f.dir, User: f.user, Timeout: timeout(f.timeout)}, nil
}

func (a *App) exec(ctx context.Context, f *execFlags, id paddock.ID, args []string) error {
	cmd, err := f.command(a, args)
	if err != nil {
		return err
	}
	if f.detached {
		return a.With(ctx, &f.RemoteFlags, func(ctx context.Context, r *Remote) error { return a.detached(ctx, r, id, cmd, f.json) })
	}
	v := visit{id: id, terminal: f.terminal, json: f.json}
	v.stdout, v.stderr = a.Stdout, a.Stderr
	if f.strip {
		v.stdout, v.stderr = stripped(a.Stdout), stripped(a.Stderr)
	}
	switch {
	case f.terminal:
		size := sizeOf(a.Stdout, a.Stdin)
		cmd.Terminal, v.stdin = &size, a.Stdin
	case f.input, !isTerminal(a.Stdin) && !isEmpty(a.Stdin):
		v.stdin = a.Stdin
	}
	cmd.Input = v.stdin != nil
	return a.visit(ctx, &f.RemoteFlags, v, func(ctx context.Context, sb paddock.Sandbox, out paddock.Output) (paddock.Process, error) {
		cmd.Output = out
		return sb.Start(ctx, cmd)
	})
}

// detached starts a command and leaves it alone.
func (a *App) detached(ctx context.Context, r *Remote, id paddock.ID, cmd paddock.Cmd, asJSON bool) error {
	sb, err := r.Open(ctx, id)
	if err != nil {
		return err
	}
	cmd.Output = paddock.Output{Detached: true}
	p, err := sb.Start(ctx, cmd)
	if err != nil {
		return a.broke(ctx, r, id, 0, err)
	}
	defer p.Release()
	if asJSON {
		return PrintJSON(a.Stdout, map[string]paddock.PID{"pid": p.ID()})
	}
	return a.Say("%d\n", p.ID())
}

// A visit is a process of a sandbox with the caller's streams.
type visit struct {
	id       paddock.ID
	stdin    io.Reader // nil passes none on
	stdout   io.Writer
	stderr   io.Writer
	terminal bool
	json     bool
	bound    bool // the process has no life of its own: SIGHUP is passed on too
}

// visit joins the caller's streams to a process, and gives its exit as an
// exitStatus. SIGHUP is not passed on: who loses a terminal comes back. Of a bound process it is.
func (a *App) visit(ctx context.Context, f *RemoteFlags, v visit, begin func(context.Context, paddock.Sandbox, paddock.Output) (paddock.Process, error)) error {
	starting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	wanted := slices.DeleteFunc(append(slices.Clone(forwarded), brokenPipe), func(s os.Signal) bool { return s == syscall.SIGHUP && !v.bound })
	if v.terminal {
		wanted = append(wanted, windowMoved)
	}
	signals, stop := a.Notify(wanted...)
	defer stop()
	relay := newRelay(signals, cancel)
	if v.terminal {
		relay.size = func() paddock.Size { return sizeOf(a.Stdout, a.Stdin) }
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { relay.run(done) })
	defer wg.Wait()
	defer close(done)

	r, err := a.connect(starting, f)
	if err != nil {
		return Because(starting, err)
	}
	defer r.Close() //nolint:errcheck // a connection that was used to the end
	sb, err := r.Open(starting, v.id)
	if err != nil {
		return Because(starting, err)
	}
	answer := &result{Version: 1, ID: v.id}
	if v.json {
		answer.Stdout, answer.Stderr = &captured{}, &captured{}
		v.stdout, v.stderr = answer.Stdout, answer.Stderr
	}
	var pid paddock.PID
	s := &session{sandbox: sb, stdin: v.stdin, stdout: v.stdout, stderr: v.stderr, relay: relay, tty: v.terminal}
	exit, err := s.join(func(out paddock.Output) (paddock.Process, error) {
		p, err := begin(starting, sb, out)
		if err == nil {
			pid = p.ID()
		}
		return p, err
	})
	if err != nil {
		return a.broke(ctx, r, v.id, pid, lost(Because(starting, err), v.id, pid))
	}
	tell(a.Stderr, exit, nil)
	refused := refusedSince(context.WithoutCancel(ctx), sb, pid)
	refusals(a.Stderr, refused)
	status := ExitStatus(exit.Code)
	if exit.Cause == paddock.SandboxGone {
		status = ExitStatus(paddock.Unavailable.Translate().Exit)
	}
	if v.json {
		answer.Exit, answer.Status, answer.Refused = &exit, int(status), refused
		if err := PrintJSON(a.Stdout, answer); err != nil {
			return err
		}
	}
	return status
}

// refusedSince returns what a sandbox refused since one of its processes began, to that process or to another one. It
// returns nothing if the sandbox is gone.
func refusedSince(ctx context.Context, sb paddock.Sandbox, pid paddock.PID) []paddock.Refusal {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	st, err := sb.Status(ctx)
	if err != nil || len(st.Refused) == 0 {
		return nil
	}
	processes, err := sb.Processes(ctx)
	if err != nil {
		return nil
	}
	i := slices.IndexFunc(processes, func(p paddock.ProcessInfo) bool { return p.PID == pid })
	if i < 0 {
		return nil // so many have ended since that this one is forgotten
	}
	return slices.DeleteFunc(st.Refused, func(r paddock.Refusal) bool { return r.Time.Before(processes[i].Started) })
}

// lost says how to come back to a process whose connection was lost.
func lost(err error, id paddock.ID, pid paddock.PID) error {
	if pid == 0 || !errors.Is(err, paddock.Unavailable) {
		return err
	}
	return WithHint(fmt.Errorf("the connection was lost, and the command may go on: %w", err), "join it again, with its output so far: paddock attach %s %d", id, pid)
}

func (a *App) attachCommand() *cobra.Command {
	var f RemoteFlags
	var from int64
	var input, strip, asJSON bool
	c := &cobra.Command{
		Use:   "attach [flags] ID [PID]",
		Short: "Join a command that runs, or ran, with its output so far",
		Long: `Join a command of a sandbox: first the output that is kept of it (the newest, up
to a bound of the tier), then more as it comes. One that has ended can be joined
while its output is kept. Signals go to it, as of paddock exec. Standard input goes
to it where the command has a terminal (but not with --json or --strip-escapes), or
with -i. Without PID it is the one command that runs, or else the only one there is.

Exit status: that of the command; 125 if Paddock itself failed.`,
		Example: `  paddock attach "$id"
  paddock attach --from 4096 "$id" 12`,
		Args:                  cobra.RangeArgs(1, 2),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     a.completeIDs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if from < 0 {
				return WithHint(fmt.Errorf("--from %d: there is no such offset: %w", from, paddock.Invalid), "an offset counts bytes of output from the beginning")
			}
			info, err := a.process(c.Context(), &f, args)
			if err != nil {
				return err
			}
			// Its terminal is joined to this one, but where the output is for something else.
			joined := info.Terminal && info.Exit == nil && isTerminal(a.Stdin) && !strip && !asJSON
			v := visit{id: paddock.ID(args[0]), stdout: a.Stdout, stderr: a.Stderr, terminal: joined, json: asJSON}
			if strip {
				v.stdout, v.stderr = stripped(a.Stdout), stripped(a.Stderr)
			}
			if info.Exit == nil && (v.terminal || input) {
				v.stdin = a.Stdin
			}
			return a.visit(c.Context(), &f, v, func(ctx context.Context, sb paddock.Sandbox, out paddock.Output) (paddock.Process, error) {
				out.From = from
				p, err := sb.Attach(ctx, info.PID, out)
				if err == nil && v.terminal {
					resize(p, sizeOf(a.Stdout, a.Stdin))
				}
				return p, err
			})
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	f.register(fs)
	fs.BoolVarP(&input, "input", "i", false, "pass standard input on")
	fs.Int64Var(&from, "from", 0, "begin at this `offset` of the output, in bytes")
	fs.BoolVar(&asJSON, "json", false, "answer with one JSON object, when the command has ended: the exit, with the first 1 MiB of each stream")
	registerStrip(fs, &strip)
	return c
}

// process finds the process that the arguments ID [PID] mean.
func (a *App) process(ctx context.Context, f *RemoteFlags, args []string) (found paddock.ProcessInfo, err error) {
	err = a.With(ctx, f, func(ctx context.Context, r *Remote) error {
		sb, err := r.Open(ctx, paddock.ID(args[0]))
		if err != nil {
			return err
		}
		list, err := sb.Processes(ctx)
		if err != nil {
			return err
		}
		found, err = pick(list, args)
		return err
	})
	return found, err
}

// pick chooses a process by its number, or the only one that can be meant.
func pick(list []paddock.ProcessInfo, args []string) (paddock.ProcessInfo, error) {
	if len(args) > 1 {
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return paddock.ProcessInfo{}, WithHint(fmt.Errorf("%q is no number of a command: %w", args[1], paddock.Invalid), "paddock ps %s lists them", args[0])
		}
		i := slices.IndexFunc(list, func(p paddock.ProcessInfo) bool { return p.PID == paddock.PID(n) })
		if i < 0 {
			return paddock.ProcessInfo{}, WithHint(fmt.Errorf("there is no command %d in %s (any more): %w", n, args[0], paddock.NotFound), "paddock ps %s lists them", args[0])
		}
		return list[i], nil
	}
	running := slices.DeleteFunc(slices.Clone(list), func(p paddock.ProcessInfo) bool { return p.Exit != nil })
	switch {
	case len(running) == 1:
		return running[0], nil
	case len(running) == 0 && len(list) == 1:
		return list[0], nil
	case len(list) == 0:
		return paddock.ProcessInfo{}, WithHint(fmt.Errorf("no command was started in %s: %w", args[0], paddock.NotFound), "paddock exec %s -- COMMAND", args[0])
	}
	return paddock.ProcessInfo{}, WithHint(fmt.Errorf("there are %d commands in %s: %w", len(list), args[0], paddock.Invalid), "name one by its number; paddock ps %s lists them", args[0])
}
