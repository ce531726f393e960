package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sim/budget"
)

// mapFlags say what runs over which inputs.
type mapFlags struct {
	specFlags
	RemoteFlags
	jobs      int
	input     string
	unordered bool
	live      bool
	json      bool
}

func (a *App) mapCommand() *cobra.Command {
	f := &mapFlags{}
	c := &cobra.Command{
		Use:   "map [flags] [--] COMMAND [ARGUMENT…] [::: INPUT…]",
		Short: "Run one command over many inputs, each in a sandbox of its own",
		Long: `Run a command once for each input, several at once, each in a sandbox of its own that
is removed afterwards. Inputs are what follows ":::", or the lines of --input, or
those of standard input. The command's {} is the input; without any it comes
last. No shell reads it.

Outputs are written in the order of the inputs, never mixed: each run's is held back
until it is its turn, up to 1 MiB of it, and then the run waits. With --unordered
it is a run's turn when it has ended, or has that much to say. With --live each
line is written at once, its input before it, and control characters are escaped.

What it sees and may do is said as for paddock run. The sandboxes are made by this
command itself, or by a server where --server, PADDOCK_SERVER or paddock login
names one. Failures are told at the end, with their inputs; a signal ends all runs,
and what they were made of is removed.

Exit status: 0 if every run ended with 0, 1 if one did not, 125 if Paddock itself
failed with one of them, 128+n if signal n ended it.`,
		Example: `  paddock map -j 4 -- sh -c 'echo "$1" | sha256sum' sh {} ::: one two three
  ls *.log | paddock map --tier sim -w . -- grep -c ERROR {}`,
		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, args []string) error {
			return a.mapAll(c.Context(), f, args, c.Flags().Changed)
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.SetInterspersed(false)
	f.RemoteFlags.register(fs)
	fs.IntVarP(&f.jobs, "jobs", "j", 0, "`number` of sandboxes at once (default: of this machine's processors)")
	fs.StringVar(&f.input, "input", "", "take the lines of this `file` as inputs; - is standard input")
	fs.BoolVar(&f.unordered, "unordered", false, "write outputs in the order in which runs end")
	fs.BoolVar(&f.live, "live", false, "write each line at once, with its input before it")
	fs.BoolVar(&f.json, "json", false, "answer with one JSON object on a line for each input, with the first 1 MiB of each stream")
	f.specFlags.register(fs)
	return c
}

// maxInputs bounds what is read before anything runs.
const maxInputs = 1_000_000

// maxJobs is more sandboxes at once than any machine holds.
const maxJobs = 10_000

// inputs gives the command, and its inputs.
func (f *mapFlags) inputs(a *App, args []string, changed func(string) bool) (cmd, inputs []string, err error) {
	cmd = args
	i := slices.Index(args, ":::")
	if i >= 0 {
		cmd, inputs = args[:i], args[i+1:]
	}
	switch {
	case len(cmd) == 0 || cmd[0] == "":
		return nil, nil, WithHint(fmt.Errorf("there is no command to run: %w", paddock.Invalid), "paddock map [flags] -- COMMAND [ARGUMENT…] [::: INPUT…]")
	case i >= 0 && changed("input"):
		return nil, nil, WithHint(fmt.Errorf("--input and ::: both give inputs: %w", paddock.Invalid), "leave one out")
	case f.jobs < 0 || f.jobs > maxJobs || changed("jobs") && f.jobs == 0:
		return nil, nil, WithHint(fmt.Errorf("-j %d: there is no such number of sandboxes: %w", f.jobs, paddock.Invalid), "it is 1 to %d", maxJobs)
	case f.live && (f.json || f.unordered):
		return nil, nil, WithHint(fmt.Errorf("--live writes lines as they come, and takes neither --json nor --unordered: %w", paddock.Invalid), "leave one out")
	case i >= 0:
		return cmd, inputs, nil
	}
	from := a.Stdin
	if f.input != "" && f.input != "-" {
		file, err := os.Open(f.input)
		if err != nil {
			return nil, nil, WithHint(fmt.Errorf("--input: %w: %w", err, paddock.NotFound), "check the name; inputs can stand on the command line too, behind :::")
		}
		defer file.Close()
		from = file
	}
	if f.input == "" && isTerminal(a.Stdin) {
		return nil, nil, WithHint(fmt.Errorf("there are no inputs: %w", paddock.Invalid), "write them behind :::, or name a file with --input; - is standard input")
	}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxArgument)
	for lines.Scan() {
		if inputs = append(inputs, lines.Text()); len(inputs) > maxInputs {
			return nil, nil, WithHint(fmt.Errorf("there are more than %d inputs: %w", maxInputs, paddock.Invalid), "split them")
		}
	}
	if err := lines.Err(); err != nil {
		return nil, nil, WithHint(fmt.Errorf("line %d of the inputs: %w: %w", len(inputs)+1, err, paddock.Invalid), "an input is a line of at most %s", BytesInWords(maxArgument))
	}
	return cmd, inputs, nil
}

// argsFor puts an input into the command.
func argsFor(cmd []string, input string) []string {
	args, put := make([]string, 0, len(cmd)+1), false
	for _, arg := range cmd {
		put = put || strings.Contains(arg, "{}")
		args = append(args, strings.ReplaceAll(arg, "{}", input))
	}
	if !put {
		args = append(args, input)
	}
	return args
}

// A lot is one input with its outcome.
type lot struct {
	Index  int           `json:"index"` // of its input, from 0
	Input  string        `json:"input"`
	Status int           `json:"status"` // as of paddock run
	Exit   *paddock.Exit `json:"exit"`   // null if the command was not started
	Error  *failure      `json:"error,omitempty"`
	Stdout *captured     `json:"stdout,omitempty"`
	Stderr *captured     `json:"stderr,omitempty"`

	err  error
	said *queued
	live [2]*member // with --live
}

func (a *App) mapAll(ctx context.Context, f *mapFlags, args []string, changed func(string) bool) error {
	cmd, inputs, err := f.inputs(a, args, changed)
	if err != nil {
		return err
	}
	p, err := f.plan(a, changed)
	if err == nil {
		err = cmp.Or(p.unmonitored(), p.unbudgeted())
	}
	if err != nil {
		return err
	}
	p.spec.Ephemeral = true
	ctx, stop := a.Interruptible(ctx)
	defer stop()
	maker, err := a.maker(ctx, f, p)
	if err != nil {
		return Because(ctx, err)
	}
	defer maker.close()

	lots := make([]*lot, len(inputs))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	q := newQueue(a.Stdout, a.Stderr, !f.unordered)
	q.broken = cancel
	crowd := &crowd{stdout: a.Stdout, stderr: a.Stderr, broken: cancel}
	for i, input := range inputs {
		lots[i] = &lot{Index: i, Input: input, said: q.add()}
		if f.live {
			lots[i].live[0], lots[i].live[1] = crowd.add(input)
		}
	}
	jobs := f.jobs
	if jobs == 0 {
		jobs = runtime.NumCPU()
	}
	next := make(chan *lot)
	var wg sync.WaitGroup
	for range min(jobs, len(lots)) {
		wg.Go(func() {
			for l := range next {
				l.run(ctx, maker, argsFor(cmd, l.Input), f.json)
				l.said.end(ctx)
			}
		})
	}
	for _, l := range lots {
		select {
		case next <- l:
		case <-ctx.Done():
		}
	}
	close(next)
	wg.Wait()
	switch err := cmp.Or(q.err(), crowd.err()); {
	case errors.Is(err, syscall.EPIPE):
		return ExitStatus(128 + int(syscall.SIGPIPE)) // nobody reads any more
	case err != nil:
		return WithHint(fmt.Errorf("write the outputs: %w: %w", err, paddock.Exhausted), "all runs were ended, because output was lost")
	case ctx.Err() != nil:
		return Because(ctx, ctx.Err())
	}
	return a.summarise(lots)
}

// run runs a command in a sandbox of its own.
func (l *lot) run(ctx context.Context, m *maker, args []string, asJSON bool) {
	out := paddock.Output{Stdout: l.said.stream(ctx, false), Stderr: l.said.stream(ctx, true)}
	switch {
	case asJSON:
		l.Stdout, l.Stderr = &captured{}, &captured{}
		out.Stdout, out.Stderr = l.Stdout, l.Stderr
	case l.live[0] != nil:
		out.Stdout, out.Stderr = l.live[0], l.live[1]
		defer l.live[0].end()
		defer l.live[1].end()
	}
	exit, err := m.run(ctx, args, out)
	switch {
	case err != nil:
		l.err, l.Status, l.Error = err, statusOf(err), failureOf(err)
	case exit.Cause == paddock.SandboxGone:
		l.Status, l.Exit = paddock.Unavailable.Translate().Exit, &exit
	default:
		l.Status, l.Exit = exit.Code, &exit
	}
	if asJSON && ctx.Err() == nil {
		l.said.object(ctx, l)
	}
}

// summarise tells the failures with their inputs, and how many there were.
func (a *App) summarise(lots []*lot) error {
	failed, own := 0, false
	for _, l := range lots {
		if l.Status == 0 {
			continue
		}
		failed++
		if failed > told {
			continue
		}
		var start *paddock.StartError
		switch {
		case l.err != nil:
			own = own || !errors.As(l.err, &start)
			message, hint := words(l.err)
			fmt.Fprintf(a.Stderr, "paddock: input %q: %s\n", OneLine(l.Input), message)
			if hint != "" {
				fmt.Fprintf(a.Stderr, "hint: %s\n", hint)
			}
		default:
			why, hint := cause(*l.Exit)
			if why == "" {
				why = fmt.Sprintf("the command ended with status %d", l.Status)
			}
			fmt.Fprintf(a.Stderr, "paddock: input %q: %s\n", OneLine(l.Input), why)
			if hint != "" {
				fmt.Fprintf(a.Stderr, "hint: %s\n", hint)
			}
		}
	}
	if failed == 0 {
		return nil
	}
	fmt.Fprintf(a.Stderr, "paddock: %d of %s failed\n", failed, Plural(len(lots), "run", "runs"))
	if own {
		return ExitStatus(paddock.Internal.Translate().Exit)
	}
	return ExitStatus(1)
}

// A maker makes the sandboxes of one paddock map.
type maker struct {
	a    *App
	plan *plan
	far  *Remote // nil makes them in this process
}

// maker chooses a server where one was named.
func (a *App) maker(ctx context.Context, f *mapFlags, p *plan) (*maker, error) {
	m := &maker{a: a, plan: p}
	_, named, err := a.site(&f.RemoteFlags)
	if err != nil {
		return m, err
	}
	if !named {
		return m, a.takeImage(ctx, p)
	}
	if p.limits != (budget.Limits{}) {
		return nil, WithHint(fmt.Errorf("--limit is of sandboxes that this command makes itself: %w", paddock.Unsupported), "leave it out, or the server: --server, PADDOCK_SERVER, paddock logout")
	}
	if m.far, err = a.connect(ctx, &f.RemoteFlags); err != nil {
		return nil, err
	}
	if err = m.far.sees(p.spec); err == nil {
		err = m.far.takeImage(ctx, a, p)
	}
	if err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

func (m *maker) close() {
	if m.far != nil {
		_ = m.far.Close() // a connection that was used to the end
	}
}

// run makes a sandbox, runs a command in it, and removes it whatever happened.
func (m *maker) run(ctx context.Context, args []string, out paddock.Output) (exit paddock.Exit, err error) {
	var sb paddock.Sandbox
	remove := func(context.Context) error { return nil }
	tier := m.plan.spec.Tier
	if m.far == nil {
		b, err := m.a.createOneShot(ctx, m.plan)
		if err != nil {
			return exit, err
		}
		sb, remove, tier = b, b.close, b.tier
	} else {
		if sb, err = m.far.Create(ctx, m.plan.spec); err != nil {
			return exit, NotMade{Err: err}
		}
		remove = sb.Remove
	}
	defer func() {
		gone, cancel := context.WithTimeout(context.WithoutCancel(ctx), 6*Patience)
		defer cancel()
		if left := remove(gone); left != nil {
			err = errors.Join(err, fmt.Errorf("remove the sandbox %s: %w", sb.ID(), left))
		}
	}()
	p, err := sb.Start(ctx, paddock.Cmd{Args: (script{}).command(tier, args), Output: out})
	if err != nil {
		return exit, err
	}
	defer p.Release()
	return p.Wait(ctx)
}
