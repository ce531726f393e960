package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
	"github.com/paddock-sandbox/paddock/internal/sim/budget"
)

// createFlags say what sandbox a server is to make.
type createFlags struct {
	specFlags
	RemoteFlags
	termFlags
	monitorFlags
	name   string
	labels listFlag
	undo   string
	budget []string
	json   bool
}

func (f *createFlags) registerAll(fs *pflag.FlagSet) {
	fs.SortFlags = false
	f.RemoteFlags.register(fs)
	fs.StringVar(&f.name, "name", "", "`ID` of the sandbox, of lower-case letters, digits and dashes (default: one that is made up)")
	fs.VarP(&f.labels, "label", "l", "a label by which it is found: `NAME=VALUE` (repeatable)")
	fs.BoolVar(&f.json, "json", false, "answer with one JSON object: its status")
	f.termFlags.register(fs)
	registerBudget(fs, &f.budget, budgetPauses)
	registerUndo(fs, &f.undo)
	f.registerKept(fs)
	f.specFlags.register(fs)
}

func (a *App) createCommand() *cobra.Command {
	f := &createFlags{}
	c := &cobra.Command{
		Use:   "create [flags]",
		Short: "Make a sandbox on a server, which stays until it is removed",
		Long: `Make a sandbox on a server, and write its ID. It stays when this command has
ended, and when the server has: paddock exec runs commands in it, paddock rm
removes it. Of the tier sim it lives as long as the server.

What it may see, change and reach is said as for paddock run. Files and
directories of this machine can be shown to it where the server runs on this
machine, and lets its callers do so; for any other there is paddock cp.

With --undo on, what its commands, and calls about its files, change in
directories of the server's machine is recorded: paddock steps ID lists it, and
paddock undo brings back what was before.

With --monitor rules, built-in rules judge its commands, connections and effects.
What they ask waits for an answer: paddock questions lists it. Its steps are
recorded then. docs/use/monitor.md tells more.

With --lifetime, --idle-pause, --idle-remove or --renew-every it has these terms and
none of the server's own; docs/server/leases.md tells what they promise.

With --budget cpu=10m, network=1G or cost=0.50, or the policy's key budget, it is
paused when it has used so much in all, and nothing runs in it until paddock resume
--budget raises that. docs/use/sandboxes.md tells more.

Where no server is named by --server, PADDOCK_SERVER or paddock login, one of
your own is started. It ends by itself when it has had no sandbox and no call
for five minutes.

Exit status: 0, or 125 if no sandbox was made.`,
		Example: `  id=$(paddock create --workspace . --memory 2G)
  paddock exec "$id" -- make test
  paddock create --name job-1 --label team=web --tier gvisor`,
		Args:                  cobra.NoArgs,
		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, _ []string) error {
			p, err := f.asked(a, c.Flags().Changed)
			if err != nil {
				return err
			}
			terms, err := f.termsWith(p)
			if err != nil {
				return err
			}
			return a.createRemote(c.Context(), f, p, terms)
		},
	}
	f.registerAll(c.Flags())
	return c
}

// asked gives what the flags ask of a server.
func (f *createFlags) asked(a *App, changed func(string) bool) (*plan, error) {
	p, err := f.plan(a, changed)
	if err != nil {
		return nil, err
	}
	if p.spec.Monitor, err = f.kept(p, changed); err != nil {
		return nil, err
	}
	switch {
	case p.limits != (budget.Limits{}):
		return nil, WithHint(fmt.Errorf("--limit is of sandboxes that one command makes for itself: %w", paddock.Unsupported),
			"leave it out, or use paddock run; every tier has --memory, --cpus, --pids, --disk, --files and --timeout")
	case changed("name") && !paddock.ID(f.name).Valid():
		return nil, WithHint(fmt.Errorf("--name %q is no ID of a sandbox: %w", f.name, paddock.Invalid),
			"an ID has 1 to 63 lower-case letters, digits and dashes, and no dash at either end")
	}
	p.spec.ID = paddock.ID(f.name)
	if p.spec.Undo, err = parseUndo(f.undo); err != nil {
		return nil, err
	}
	if p.spec.Labels, err = ParseLabels(f.labels); err != nil {
		return nil, err
	}
	return p, nil
}

// ParseLabels parses values of --label, NAME=VALUE each.
func ParseLabels(texts []string) (map[string]string, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	labels := map[string]string{}
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, WithHint(fmt.Errorf("--label %s: there is no name and value in it: %w", text, paddock.Invalid), "write NAME=VALUE")
		}
		if _, twice := labels[name]; twice {
			return nil, WithHint(fmt.Errorf("--label %s is there twice: %w", name, paddock.Invalid), "leave one out")
		}
		labels[name] = value
	}
	return labels, nil
}

func (a *App) createRemote(ctx context.Context, f *createFlags, p *plan, terms *client.Terms) error {
	if err := a.ownImage(ctx, &f.RemoteFlags, p); err != nil {
		return err
	}
	return a.With(ctx, &f.RemoteFlags, func(ctx context.Context, r *Remote) error {
		if err := r.sees(p.spec); err != nil {
			return err
		}
		if err := r.takeImage(ctx, a, p); err != nil {
			return err
		}
		sb, err := a.make(ctx, r, p.spec, terms)
		if err != nil {
			return err
		}
		return a.told(ctx, sb, f.json)
	})
}

// make makes a sandbox, and says so where it takes long.
func (a *App) make(ctx context.Context, r *Remote, spec paddock.Spec, terms *client.Terms) (paddock.Sandbox, error) {
	defer a.progress("making the sandbox")()
	sb, err := r.on(ctx, spec, terms)
	if err != nil {
		return nil, NotMade{Err: err}
	}
	if st, ok := sb.Born(); ok {
		a.noteWeaker(st.Tier, st.PassedOver)
		a.noteUnrecorded(spec, st)
	}
	return sb, nil
}

// told writes the ID of a sandbox, or its status.
func (a *App) told(ctx context.Context, sb paddock.Sandbox, asJSON bool) error {
	if !asJSON {
		return a.Say("%s\n", sb.ID())
	}
	s, err := sb.Status(ctx)
	if err != nil {
		return err
	}
	return PrintJSON(a.Stdout, s)
}

// sees refuses what is of this machine where the server is another.
func (r *Remote) sees(spec paddock.Spec) error {
	if r.At.local() || len(spec.Mounts) == 0 && spec.Root.Kind != paddock.RootDir && spec.Root.Kind != paddock.RootOpen {
		return nil
	}
	return WithHint(fmt.Errorf("the server %s is another machine, and does not see the files of this one: %w", r.At.Address, paddock.Unsupported),
		"make the sandbox without them, and copy what it needs: paddock cp PATH ID:/PATH")
}

// With connects to the server, calls do, and closes the connection. A signal cancels the context of
// do; the server then completes a request or does nothing of it.
func (a *App) With(ctx context.Context, f *RemoteFlags, do func(context.Context, *Remote) error) (err error) {
	ctx, stop := a.Interruptible(ctx)
	defer stop()
	r, err := a.connect(ctx, f)
	if err != nil {
		return Because(ctx, err)
	}
	defer r.Close() //nolint:errcheck // a connection that was used to the end
	if err := do(ctx, r); err != nil {
		return Because(ctx, err)
	}
	return nil
}

// WithRunning calls do with the server that was started for the caller. If none runs, it returns an
// error and starts none.
func (a *App) WithRunning(ctx context.Context, do func(context.Context, *Remote) error) error {
	address, err := a.runningPrivate()
	if err != nil {
		return err
	}
	at := Site{Address: address}
	d, err := a.Dial(ctx, at)
	if err != nil {
		return err
	}
	r := &Remote{Driver: d, At: at}
	return errors.Join(do(ctx, r), r.Close())
}

// Say writes an answer to standard output. Its arguments are those of fmt.Fprintf.
func (a *App) Say(format string, args ...any) error {
	if _, err := fmt.Fprintf(a.Stdout, format, args...); err != nil {
		return fmt.Errorf("write standard output: %w: %w", err, paddock.Exhausted)
	}
	return nil
}

func (a *App) forkCommand() *cobra.Command {
	f := &createFlags{}
	var memory bool
	var count int
	c := &cobra.Command{
		Use:   "fork [flags] ID",
		Short: "Make sandboxes that go on from where another one is",
		Long: `Make sandboxes of the same tier with the files of another one, and write their
IDs. With --live its processes go on in each of them too, on the tiers that
can. The sandbox itself goes on as it was.

Limits and labels are those of the sandbox, and its steps are recorded, and judged
by a monitor, where that does so. What it was shown and what it may
reach is not: say so again, as for paddock create.

Exit status: 0, or 125 if one of them was not made; those that were have been
removed then.`,
		Example: `  paddock fork "$id"
  paddock fork -n 3 --live "$id"`,
		Args:                  cobra.ExactArgs(1),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     a.completeIDs(1),
		RunE: func(c *cobra.Command, args []string) error {
			p, err := f.asked(a, c.Flags().Changed)
			if err != nil {
				return err
			}
			terms, err := f.termsWith(p)
			if err != nil {
				return err
			}
			for _, name := range []string{"tier", "root", "image", "pull"} {
				if c.Flags().Changed(name) {
					return WithHint(fmt.Errorf("--%s: a fork has that of its origin: %w", name, paddock.Invalid), "leave the flag out")
				}
			}
			switch {
			case count < 1 || count > maxForks:
				return WithHint(fmt.Errorf("-n %d: there is no such number of forks: %w", count, paddock.Invalid), "it is 1 to %d", maxForks)
			case count > 1 && f.name != "":
				return WithHint(fmt.Errorf("--name is of one sandbox, and %d are asked for: %w", count, paddock.Invalid), "leave one out")
			}
			return a.With(c.Context(), &f.RemoteFlags, func(ctx context.Context, r *Remote) error {
				return a.fork(ctx, r, fork{of: paddock.ID(args[0]), spec: p.spec, terms: terms, memory: memory, count: count, json: f.json})
			})
		},
	}
	f.registerAll(c.Flags())
	c.Flags().BoolVar(&memory, "live", false, "the processes and their memory too, on tiers that can")
	c.Flags().IntVarP(&count, "count", "n", 1, "`number` of forks")
	return c
}

// keptFiles says which tiers keep the files of a sandbox.
const keptFiles = "paddock create --tier gvisor makes sandboxes whose files, and processes, can be kept; so do jail and sim, for files"

// maxForks is more than anyone means.
const maxForks = 1000

// A fork is what is asked of paddock fork.
type fork struct {
	of     paddock.ID
	spec   paddock.Spec
	terms  *client.Terms // nil are the server's
	memory bool
	count  int
	json   bool
}

// fork makes them all, or none.
func (a *App) fork(ctx context.Context, r *Remote, f fork) (err error) {
	if err := r.sees(f.spec); err != nil {
		return err
	}
	sb, err := r.Open(ctx, f.of)
	if err != nil {
		return err
	}
	s, err := sb.Status(ctx)
	if err != nil {
		return err
	}
	stop := a.progress("keeping the sandbox")
	id, err := sb.Snapshot(ctx, paddock.SnapshotOptions{Memory: f.memory})
	stop()
	if err != nil {
		return Otherwise(err, keptFiles)
	}
	spec := f.spec
	spec.Tier, spec.Root = s.Tier, paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id}
	spec.InheritLimits(s, r.At.trusts())
	if spec.Labels == nil {
		spec.Labels = s.Labels
	}
	if s.Undo != nil {
		spec.Undo = cmp.Or(spec.Undo, s.Undo.Mode)
	}
	if s.Monitor != nil && spec.Monitor == nil {
		judged := s.Monitor.Settings
		spec.Monitor = &judged
	}
	forks := make([]paddock.Sandbox, 0, f.count)
	for range f.count {
		one, made := a.make(ctx, r, spec, f.terms)
		if made != nil {
			err = made
			break
		}
		forks = append(forks, one)
	}
	gone, cancel := context.WithTimeout(context.WithoutCancel(ctx), 6*Patience)
	defer cancel()
	if left := r.RemoveSnapshot(gone, id); left != nil {
		a.complain(fmt.Errorf("remove the snapshot %s: %w", id, left))
	}
	if err != nil {
		for _, one := range forks {
			if left := one.Remove(gone); left != nil {
				a.complain(fmt.Errorf("remove the fork %s: %w", one.ID(), left))
			}
		}
		return err
	}
	for _, one := range forks {
		if err := a.told(ctx, one, f.json); err != nil {
			return err
		}
	}
	return nil
}
