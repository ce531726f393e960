package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/auto"
)

type runFlags struct {
	specFlags
	monitorFlags
	languageFlags
	audit    auditFlags
	script   string
	file     string
	terminal bool
	json     string
	strip    bool
	verbose  bool
	ask      bool
	noCache  bool
	volumes  listFlag
	undo     string
	budget   []string
	review   bool
	publish  listFlag

	publishing bool     // what begins to listen inside is published, unless a flag says otherwise
	ports      []string // of publish, and whether that holds; see publishes
	watches    bool
	git        bool

	later   []paddock.Mount                // that amend adds
	amend   func(*plan) error              // changes the plan before it is carried out; nil leaves it
	started func(*plan, *oneShot)          // is told that the sandbox is there; may be nil
	summary func(*result, *paddock.Status) // tells what was refused, and what else is told at the end; nil tells what was refused
}

func (a *App) runCommand() *cobra.Command {
	f := &runFlags{}
	c := &cobra.Command{
		Use:   "run [flags] [--] [COMMAND [ARGUMENT…]]",
		Short: "Run a command or a script in a sandbox of its own",
		Long: `Run a command in a new sandbox, and remove the sandbox when it ends.

The sandbox sees this machine's system directories, read-only, and private
files that vanish with it. It sees nothing of your home, has no network, and
runs with limits. --workspace gives it a directory to work in.

In place of a command there may be a script for the sandbox's shell: as text
(-c), from a file of this machine (-f; what follows are its arguments), or, with
neither, on standard input. On the tier sim, which has no other programs than
its shell and its tools, a single argument is a script too; and a workspace is
seen through an overlay there: what changes stays inside.

Standard input is passed on where it is not a terminal, or with -t. Output is
passed on as it comes. SIGINT, SIGTERM, SIGHUP and SIGQUIT go to the command; a
second SIGINT within a second kills it, and one more gives up on the sandbox.

With --audit FILE, what commands do is recorded: each program that is started,
and with --audit-kinds or the policy's key audit also files that are opened,
connections that are asked for, and processes that are made and that end. The
file must not be there yet, and not be where the sandbox may write. A sandbox
whose events cannot be written any more is ended. docs/security/audit.md describes them.

With --ask, what no rule of the network decides is asked at the terminal while
the command waits: allowed once, always in this run, or denied, as it is where
nobody answers within a minute. The terminal shows no output meanwhile. What was
always allowed is told at the end, with the flags that allow it from the start.
docs/reference/policy.md tells more.

With --undo on, what the command changes in directories of yours is recorded,
and paddock undo brings back what was before. --undo strict also refuses a
change that could not be undone, such as of a file above 256 MiB, before it is
made.

With --budget cpu=10m, network=1G or cost=0.50, the sandbox is stopped when it has
used so much in all. It is looked at each second, so it may use a little more. A
cost is by the prices of the policy file. docs/use/run.md tells more.

With --review, what the command changes in directories of yours goes to a layer
over them, and nothing in them changes. At the end there is a proposal: paddock
diff shows it, paddock apply makes the changes, and paddock discard throws them
away. docs/use/review.md tells more.

With --publish PORT, connections to that port of this machine, at 127.0.0.1 and
::1, reach the same port of the sandbox; HOSTPORT:PORT publishes it as another
one, and ADDRESS:HOSTPORT:PORT at another address. A port that is taken is an
error before anything starts. A connection that comes before something listens
inside waits for it, for half a minute. --publish auto publishes each port from
1024 on at which a program inside begins to listen, and says where.

With --git, git inside reaches the repositories that the workspace has as https
remotes, and they alone, with the login that your own git has for them, and it
commits in your name. The login stays outside. docs/use/git.md tells more.

With --lang LANGUAGE FILE, a program that is one file of source is run: by this
machine's own tools if it has them, else in an image that has. --with PACKAGE
installs a library first: only then is the registry reached. What the program
leaves in $PADDOCK_ARTIFACTS, such as plots, is copied to --artifacts DIRECTORY.
docs/use/languages.md tells more.

With --json, output is captured (the first 1 MiB of each stream) and one object
with the exit, its cause, usage, what was enforced and what was refused is
written to standard output. With --json=FILE the object goes to FILE, and
output is passed on. docs/reference/run.schema.json describes it.

Exit status: that of the command, 128+n if signal n killed it (a command that
ran out of time or memory is killed by signal 9: 137); 124 if the budget is used
up; 126 if the command cannot be executed, 127 if it does not exist; 125 if
Paddock itself failed; 123 if a monitor refused the command or ended the sandbox;
128+n if signal n arrived before the command was started.`,
		Example: `  paddock run -- python3 -c 'print("hello")'
  paddock run --workspace . -- make test
  paddock run -t --workspace . --memory 2G --timeout 10m -- bash
  paddock run --policy agent.yaml --json=result.json -- ./job
  paddock run --tier gvisor --audit events.jsonl --workspace . -- make
  paddock run --ask --workspace . -- ./fetch.sh
  paddock run --publish 8080 --workspace . -- python3 -m http.server 8080
  paddock run --tier sim --workspace . -- 'grep -c ERROR app.log | tee count'
  paddock run --lang python --with pandas --artifacts out report.py
  paddock run --tier sim < script.sh`,
		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, args []string) error {
			return a.run(c.Context(), f, args, c.Flags().Changed)
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.SetInterspersed(false)
	f.register(fs)
	fs.StringVarP(&f.script, "command", "c", "", "run this `script` with the sandbox's shell; what follows are $0 and its arguments")
	fs.StringVarP(&f.file, "file", "f", "", "run the script in this `file` of this machine with the sandbox's shell; what follows are its arguments")
	fs.BoolVarP(&f.terminal, "terminal", "t", false, "give the command a terminal of its own, joined to yours")
	fs.StringVar(&f.json, "json", "", "answer with one JSON object, on standard output or in a `FILE` (--json=FILE)")
	fs.Lookup("json").NoOptDefVal = "-"
	f.audit.register(fs)
	f.registerLanguage(fs)
	f.registerMonitor(fs)
	fs.BoolVar(&f.ask, "ask", false, "ask at the terminal where no rule of the network decides: allow once, always in this run, or deny")
	f.registerPublish(fs)
	fs.BoolVar(&f.git, "git", false, "let git use your login for the https remotes of the workspace, without seeing it, and commit in your name")
	registerStrip(fs, &f.strip)
	registerNoCache(fs, &f.noCache)
	fs.Var(&f.volumes, "volume", "show a volume, which stays when the sandbox has ended: `NAME:/PATH[:ro]` (repeatable; see paddock volume)")
	registerUndo(fs, &f.undo)
	registerBudget(fs, &f.budget, budgetStops)
	registerReview(fs, &f.review)
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "tell which tier was chosen, and why")
	return c
}

// run is the command: check, create, start, follow, tell, remove.
func (a *App) run(ctx context.Context, f *runFlags, args []string, changed func(string) bool) error {
	if f.json == "" {
		return a.runIn(ctx, f, args, changed, &result{})
	}
	to, err := openResult(f.json, a.Stdout)
	if err != nil {
		return err
	}
	r := &result{Version: 1, Args: args}
	err = a.runIn(ctx, f, args, changed, r)
	var status ExitStatus
	switch {
	case errors.As(err, &status):
		r.Status = int(status)
	case err != nil:
		r.Status, r.Error = statusOf(err), failureOf(err)
		a.complain(err)
	}
	if err := to.write(r); err != nil {
		return err
	}
	return ExitStatus(r.Status)
}

// check finds what is wrong in itself, before anything is looked at.
func (f *runFlags) check(a *App, args []string, changed func(string) bool) error {
	text, file := changed("command"), changed("file")
	switch {
	case text && file:
		return WithHint(fmt.Errorf("-c and -f are two scripts: %w", paddock.Invalid), "leave one out")
	case text, file, f.lang != "":
	case len(args) == 0 && (isTerminal(a.Stdin) || isEmpty(a.Stdin)):
		return WithHint(fmt.Errorf("there is no command to run, and no script on standard input: %w", paddock.Invalid),
			"paddock run [flags] -- COMMAND [ARGUMENT…]; for a shell: paddock shell")
	case len(args) == 0 && f.terminal:
		return WithHint(fmt.Errorf("a terminal's input cannot be a script: %w", paddock.Invalid), "name a command, or leave -t out")
	case len(args) > 0 && args[0] == "":
		return WithHint(fmt.Errorf("the command's name is empty: %w", paddock.Invalid), "paddock run [flags] -- COMMAND [ARGUMENT…]")
	}
	switch {
	case f.terminal && f.json == "-":
		return WithHint(fmt.Errorf("-t and --json both want standard output: %w", paddock.Invalid), "write the object to a file: --json=FILE")
	case f.terminal && f.strip:
		return WithHint(fmt.Errorf("-t and --strip-escapes contradict each other: a terminal's programs need escape sequences: %w", paddock.Invalid), "leave one out")
	}
	return nil
}

// runIn runs args in a sandbox of its own and fills r. The command's own exit
// comes back as an exitStatus.
func (a *App) runIn(ctx context.Context, f *runFlags, args []string, changed func(string) bool, r *result) error {
	if err := f.check(a, args, changed); err != nil {
		return err
	}
	prog, err := f.program(a, args, changed)
	if err != nil {
		return err
	}
	var s script
	if prog != nil {
		args, err = prog.Run(prog.source, prog.args)
	} else {
		s, err = f.scripted(changed)
	}
	if err != nil {
		return err
	}
	p, err := f.plan(a, changed)
	if err != nil {
		return err
	}
	if err := prog.amend(a, p, f); err != nil {
		return err
	}
	limit, err := p.budget(f.budget)
	if err != nil {
		return err
	}
	p.spec.Ephemeral = true
	if f.git {
		if err := p.useGit(ctx, a, f.later, changed("git")); err != nil {
			return err
		}
		defer p.git.close()
	}
	proxy := p.throughProxy(a.Lookup)
	if p.file != nil {
		r.Notes = p.file.Notes
	}
	if err := f.publishes(p); err != nil {
		return err
	}
	ports, err := f.takePorts()
	if err != nil {
		return err
	}
	defer ports.refuse()
	asker, err := f.listening(a, p, changed)
	if err != nil {
		return err
	}
	defer asker.close()
	events, err := f.audit.begin(a, p, changed)
	if err != nil {
		return err
	}
	begun := false
	defer func() {
		if !begun { // else it is closed with the sandbox
			_ = events.close(false)
		}
	}()
	if f.amend != nil {
		if err := f.amend(p); err != nil {
			return err
		}
	}

	volumes, err := a.openVolumes(p, f.volumes)
	if err != nil {
		return err
	}
	defer func() { a.closeVolumes(volumes) }()
	if !f.noCache {
		defer a.closeCaches(a.caches(p))
	}

	mon, err := f.monitoring(ctx, a, p, asker, events, changed)
	if err != nil {
		return errors.Join(err, events.close(false))
	}
	defer mon.close()

	review, err := a.reviewing(ctx, f, p, args)
	if err != nil {
		return err
	}
	defer review.close(a)
	if p.steps, err = a.recording(ctx, p, f.undo); err != nil {
		return err
	}
	if p.steps != nil {
		defer p.steps.Close()
	}
	if err := f.audit.stepless(p, f.undo); err != nil {
		return err
	}

	if err := a.takeImage(ctx, p); err != nil {
		return err
	}
	starting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	signals, stop := a.Notify(a.listen(f)...)
	defer stop()
	relay := newRelay(signals, cancel)
	if f.terminal {
		relay.size = func() paddock.Size { return sizeOf(a.Stdout, a.Stdin) }
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { relay.run(done) })
	defer wg.Wait()
	defer close(done)

	var before change
	if f.verbose || f.json != "" {
		before = beginning()
	}
	begun = true
	b, err := a.createOneShot(starting, p)
	if err != nil {
		if lost := events.close(false); lost != nil {
			a.complain(lost)
		}
		return Because(starting, err)
	}
	events.watch(ctx, b)
	mon.begin(p, b)
	if f.verbose {
		for _, n := range r.Notes {
			fmt.Fprintf(a.Stderr, "paddock: note: %s\n", OneLine(n.In(p.file.Name)))
		}
		fmt.Fprintf(a.Stderr, "paddock: %s\n", OneLine(b.choice()))
		a.surroundings(a.Stderr, p, b.tier, proxy)
		for _, m := range p.spec.Mounts {
			if m.Overlay && p.layers == nil {
				fmt.Fprintf(a.Stderr, "paddock: note: %s is seen through an overlay: what changes there stays inside and vanishes with the sandbox\n", OneLine(m.Source))
			}
		}
	}
	if !f.verbose {
		a.noteWeaker(b.tier, auto.Tried(b.passed))
	}
	r.Tier, r.Passed, r.ID = b.tier, b.passed, b.ID()
	if f.started != nil {
		f.started(p, b)
	} else if words := p.git.words(); words != "" {
		fmt.Fprintf(a.Stderr, "paddock: %s\n", words)
	}
	review.watch(starting, p.spec.Limits.Disk, b)
	ports.serve(a, b, b.tier)
	var exit paddock.Exit
	spent, err := spend(starting, limit, b, p.spec.Policy.Network.Mode)
	if err == nil {
		err = prog.place(starting, a, b, f.artifacts != "")
	}
	if err == nil {
		exit, err = a.judgedScript(starting, f, b, relay, s, args, r, asker, mon)
	}
	if lost := f.takeArtifacts(starting, a, b, r); lost != nil {
		err = errors.Join(err, lost)
	}
	ports.end(a)
	seen := b.seen()
	over, last := spent.end()
	if seen == nil {
		seen = last
	}
	gone, cancelGone := context.WithTimeout(context.WithoutCancel(ctx), 6*Patience)
	defer cancelGone()
	mon.closing()
	left := b.close(gone)
	mon.over(exit, err)
	if seen != nil {
		r.Limits, r.Usage, r.Control, r.Refused = &seen.Limits, &seen.Usage, seen.Enforced, seen.Refused
	}
	r.Asked, r.Monitor = asker.answers(), mon.result()
	if left != nil {
		a.complain(fmt.Errorf("remove the sandbox: %w", left))
	}
	r.Steps = a.recorded(gone, p.steps, b, f.verbose || f.summary != nil)
	r.Proposal = review.propose(ctx, a, b, exit, left)
	if lost := events.close(true); lost != nil {
		err = lost // and what became of the command came of it
	}
	if stopped := mon.failure(); stopped != nil {
		err = stopped
	} else if over != "" && Because(starting, nil) == nil {
		return a.overspent(over, seen, r)
	}
	if err = review.because(err); err != nil {
		if seen != nil {
			f.refused(a, r, seen)
		}
		allowed(a.Stderr, r.Asked)
		return Because(starting, err)
	}
	r.Exit = &exit
	f.tell(a, exit, seen, r)
	p.git.failed(a.Stderr)
	allowed(a.Stderr, r.Asked)
	if b.tier == paddock.Sim && exit.Cause == paddock.Exited && exit.Code == 127 {
		fmt.Fprintln(a.Stderr, "hint: the tier sim has only its own commands, which docs/use/sim.md lists; --tier jail runs the programs of this machine")
	}
	if f.verbose || f.json != "" {
		var whole bool
		r.Changed, whole = before.files(p.spec.Mounts)
		r.Partial = !whole
	}
	if f.verbose {
		changes(a.Stderr, r.Changed)
	}
	if left != nil {
		return ExitStatus(paddock.Internal.Translate().Exit)
	}
	if exit.Cause == paddock.SandboxGone {
		return ExitStatus(paddock.Unavailable.Translate().Exit)
	}
	return ExitStatus(exit.Code)
}

// tell tells why the command ended, and what was refused.
func (f *runFlags) tell(a *App, exit paddock.Exit, seen *paddock.Status, r *result) {
	if f.summary == nil {
		tell(a.Stderr, exit, seen)
		return
	}
	tell(a.Stderr, exit, nil)
	f.summary(r, seen)
}

// refused tells what was refused.
func (f *runFlags) refused(a *App, r *result, seen *paddock.Status) {
	if f.summary != nil {
		f.summary(r, seen)
		return
	}
	refusals(a.Stderr, seen.Refused)
}

// overspent tells that a sandbox was stopped because of its budget.
func (a *App) overspent(why string, seen *paddock.Status, r *result) error {
	why = "the sandbox was stopped: " + why
	hint := "more: --budget NAME=VALUE; nothing of the command runs any more"
	r.Error = &failure{Kind: paddock.Exhausted.Error(), Message: why, Hint: hint}
	fmt.Fprintf(a.Stderr, "paddock: %s\nhint: %s\n", why, hint)
	if seen != nil {
		refusals(a.Stderr, seen.Refused)
	}
	allowed(a.Stderr, r.Asked)
	return ExitStatus(overBudget)
}

// judgedScript runs a script or a command if the monitor allows it.
func (a *App) judgedScript(ctx context.Context, f *runFlags, b *oneShot, relay *relay, s script, args []string, r *result, asker *asker, mon *monitoring) (paddock.Exit, error) {
	if err := mon.exec(ctx, s.command(b.tier, args)); err != nil {
		return paddock.Exit{}, err
	}
	return a.runScript(ctx, f, b, relay, s, args, r, asker)
}

// listen lists the signals that this run wants.
func (a *App) listen(f *runFlags) []os.Signal {
	list := append(slices.Clone(forwarded), brokenPipe)
	if f.terminal {
		list = append(list, windowMoved)
	}
	return list
}

// follow joins the caller's streams to the command and stays to its end.
func (a *App) follow(ctx context.Context, f *runFlags, b *oneShot, relay *relay, args []string, r *result, asker *asker) (paddock.Exit, error) {
	s := &session{sandbox: b, stdout: a.Stdout, stderr: a.Stderr, relay: relay, tty: f.terminal}
	cmd := paddock.Cmd{Args: args}
	switch {
	case f.terminal:
		size := sizeOf(a.Stdout, a.Stdin)
		cmd.Terminal = &size
		s.stdin = asker.keysOf(a.Stdin)
	case !isTerminal(a.Stdin) && !isEmpty(a.Stdin):
		s.stdin = a.Stdin
	}
	if f.strip {
		s.stdout, s.stderr = stripped(s.stdout), stripped(s.stderr)
	}
	s.stdout, s.stderr = asker.output(a.Stdout, s.stdout), asker.output(a.Stderr, s.stderr)
	if f.json == "-" {
		r.Stdout, r.Stderr = &captured{}, &captured{}
		s.stdout, s.stderr = r.Stdout, r.Stderr
	}
	return s.run(ctx, cmd)
}

// registerNoCache adds the flag that asks for no caches.
func registerNoCache(fs *pflag.FlagSet, none *bool) {
	fs.BoolVar(none, "no-cache", false, "keep no caches of build tools between runs of the workspace (see paddock cache)")
}

// registerStrip adds the flag that asks for it.
func registerStrip(fs *pflag.FlagSet, strip *bool) {
	fs.BoolVar(strip, "strip-escapes", false, "take terminal escape sequences out of output that goes to a terminal")
}

// stripped wraps a stream that is a terminal.
func stripped(w io.Writer) io.Writer {
	if !isTerminal(w) {
		return w
	}
	return &stripper{out: w}
}

// isEmpty tells whether stdin is the null device, which a command without
// input reads anyway: no stream is needed for it.
func isEmpty(stdin io.Reader) bool {
	f, ok := stdin.(*os.File)
	if !ok {
		return false
	}
	in, err := f.Stat()
	if err != nil {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(in, null)
}

// seen asks the sandbox what it enforced and refused. Where it does not
// answer any more there is nothing to tell.
func (b *oneShot) seen() *paddock.Status {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	s, err := b.Status(ctx)
	if err != nil {
		return nil
	}
	return &s
}

// Because returns the signal that cancelled ctx, if a signal did, as an [Interrupted] error.
// Otherwise it returns err.
func Because(ctx context.Context, err error) error {
	var cut Interrupted
	if c := context.Cause(ctx); errors.As(c, &cut) {
		return cut
	}
	return err
}
