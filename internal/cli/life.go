package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
)

// Interruptible returns a context that is cancelled by a signal, with the signal as its cause.
// Signals in but do not cancel it. Neither does SIGPIPE, because the write that it interrupts
// returns the error. The returned function must be called at the end.
func (a *App) Interruptible(ctx context.Context, but ...os.Signal) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	list := slices.DeleteFunc(slices.Clone(forwarded), func(s os.Signal) bool { return slices.Contains(but, s) })
	signals, stop := a.Notify(append(list, brokenPipe)...)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case sig := <-signals:
				if s, ok := sig.(syscall.Signal); ok && sig != brokenPipe {
					cancel(Interrupted{s})
					return
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return ctx, func() {
		stop()
		cancel(nil)
		wg.Wait()
	}
}

// completeIDs completes IDs of sandboxes for the first so many arguments; 0 is
// all. It starts no server.
func (a *App) completeIDs(most int) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveDefault
		}
		server, err := c.Flags().GetString("server")
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(c.Context(), Patience)
		defer cancel()
		quiet := *a
		quiet.Private = func(context.Context) (string, error) { return a.runningPrivate() }
		r, err := quiet.connect(ctx, &RemoteFlags{Server: server})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer r.Close() //nolint:errcheck // a connection that was used to the end
		list, err := r.List(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var ids []string
		for _, s := range list {
			if id := string(s.ID); strings.HasPrefix(id, typed) && s.ID.Valid() && !slices.Contains(args, id) {
				ids = append(ids, id)
			}
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}

func (a *App) removeCommand() *cobra.Command {
	var f RemoteFlags
	var all, force, snapshots, asJSON bool
	c := &cobra.Command{
		Use:   "rm [flags] ID…",
		Short: "Remove sandboxes, with everything in them",
		Long: `Remove sandboxes, whatever runs in them, with all of their files. With --snapshot
the IDs are of snapshots; sandboxes that were made from them stay.

Exit status: 0, or 125 if one of them was not there (but with -f) or could not be
removed; the others are gone then.`,
		Example: `  paddock rm "$id"
  paddock rm --all`,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     a.completeIDs(0),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case all && (len(args) > 0 || snapshots):
				return WithHint(fmt.Errorf("--all is of all sandboxes, and of nothing else: %w", paddock.Invalid), "leave the IDs out, or --all")
			case !all && len(args) == 0 && !force:
				return WithHint(fmt.Errorf("the ID of a sandbox to remove is missing: %w", paddock.Invalid), "paddock rm ID…, or paddock rm --all; paddock ls lists them")
			}
			return a.With(c.Context(), &f, func(ctx context.Context, r *Remote) error {
				if snapshots {
					return a.each(args, asJSON, func(o *outcome) error { return r.RemoveSnapshot(ctx, paddock.SnapshotID(o.ID)) })
				}
				if all {
					var err error
					if args, err = a.confirmAll(ctx, r, force); err != nil {
						return err
					}
				}
				defer a.progress("removing")()
				return a.each(args, asJSON, func(o *outcome) error { return remove(ctx, r, o.ID, force || all) })
			})
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	f.register(fs)
	fs.BoolVar(&all, "all", false, "remove all of yours, after a question at the terminal")
	fs.BoolVarP(&force, "force", "f", false, "ask nothing, and say nothing of those that are gone already")
	fs.BoolVar(&snapshots, "snapshot", false, "remove snapshots")
	registerOutcomes(fs, &asJSON)
	return c
}

func remove(ctx context.Context, r *Remote, id string, gone bool) error {
	sb, err := r.Open(ctx, paddock.ID(id))
	switch {
	case gone && errors.Is(err, paddock.NotFound):
		return nil
	case err != nil:
		return err
	}
	return sb.Remove(ctx)
}

// confirmAll lists all sandboxes, and asks a person whether all are meant.
func (a *App) confirmAll(ctx context.Context, r *Remote, force bool) ([]string, error) {
	list, err := r.List(ctx)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(list))
	for i, s := range list {
		ids[i] = string(s.ID)
	}
	if force || len(ids) == 0 {
		return ids, nil
	}
	if !isTerminal(a.Stdin) {
		return nil, WithHint(fmt.Errorf("%s would be removed, and there is nobody to ask: %w", Plural(len(ids), "sandbox", "sandboxes"), paddock.Invalid), "if you mean it: paddock rm --all -f")
	}
	fmt.Fprintf(a.Stderr, "remove %s with all that is in them? [y/N] ", Plural(len(ids), "sandbox", "sandboxes"))
	answer, err := bufio.NewReader(a.Stdin).ReadString('\n')
	if word := strings.ToLower(strings.TrimSpace(answer)); err != nil || word != "y" && word != "yes" {
		return nil, WithHint(fmt.Errorf("nothing was removed: %w", paddock.Canceled), "answer y to go on")
	}
	return ids, nil
}

// An outcome is how it went with one of a list.
type outcome struct {
	ID    string        `json:"id"`
	Error *failure      `json:"error,omitempty"` // none: it was done
	Lease *client.Lease `json:"lease,omitempty"` // what renew gave
}

// each does something for all of a list, and goes on where one fails; each
// failure is told with what it is about, and with asJSON all of it as one list too.
func (a *App) each(list []string, asJSON bool, do func(*outcome) error) error {
	failed := false
	outcomes := make([]outcome, len(list))
	for i, one := range list {
		outcomes[i].ID = one
		if err := do(&outcomes[i]); err != nil {
			failed = true
			outcomes[i].Error = failureOf(err)
			a.complain(fmt.Errorf("%s: %w", one, err))
		}
	}
	if asJSON {
		if err := PrintJSON(a.Stdout, outcomes); err != nil {
			return err
		}
	}
	if failed {
		return ExitStatus(paddock.Internal.Translate().Exit)
	}
	return nil
}

func registerOutcomes(fs *pflag.FlagSet, asJSON *bool) {
	fs.BoolVar(asJSON, "json", false, "answer with a JSON list: each ID, with its error where it failed")
}

// stateCommand makes a command that does one thing to sandboxes.
func (a *App) stateCommand(c *cobra.Command, what string, do func(context.Context, paddock.Sandbox) error) *cobra.Command {
	var f RemoteFlags
	var asJSON bool
	c.ValidArgsFunction = a.completeIDs(0)
	c.Args = cobra.MinimumNArgs(1)
	c.DisableFlagsInUseLine = true
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.With(c.Context(), &f, func(ctx context.Context, r *Remote) error {
			defer a.progress(what)()
			return a.each(args, asJSON, func(o *outcome) error {
				sb, err := r.Open(ctx, paddock.ID(o.ID))
				if err != nil {
					return err
				}
				return do(ctx, sb)
			})
		})
	}
	f.register(c.Flags())
	registerOutcomes(c.Flags(), &asJSON)
	return c
}

func (a *App) pauseCommand() *cobra.Command {
	return a.stateCommand(&cobra.Command{
		Use:   "pause [flags] ID…",
		Short: "Have nothing run in sandboxes; nothing is lost",
		Long: `Have nothing run in sandboxes. Nothing is lost: paddock resume has it go on. On
the tiers gvisor and microvm they are written to disk, and take no memory.

Exit status: 0, or 125 if one of them could not be paused.`,
	}, "pausing", func(ctx context.Context, sb paddock.Sandbox) error { return sb.Pause(ctx) })
}

func (a *App) snapshotCommand() *cobra.Command {
	var f RemoteFlags
	var o paddock.SnapshotOptions
	var asJSON bool
	c := &cobra.Command{
		Use:   "snapshot [flags] ID",
		Short: "Keep what is in a sandbox, to begin others with",
		Long: `Keep the files of a sandbox, or with --live its processes too, and write the ID
of the snapshot. paddock create --root snapshot:ID begins with it, and paddock
rm --snapshot removes it. The sandbox goes on.

Exit status: 0, or 125 if nothing was kept.`,
		Args:                  cobra.ExactArgs(1),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     a.completeIDs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.With(c.Context(), &f, func(ctx context.Context, r *Remote) error {
				sb, err := r.Open(ctx, paddock.ID(args[0]))
				if err != nil {
					return err
				}
				stop := a.progress("keeping the sandbox")
				id, err := sb.Snapshot(ctx, o)
				stop()
				if err != nil {
					return Otherwise(err, keptFiles)
				}
				if asJSON {
					return PrintJSON(a.Stdout, map[string]paddock.SnapshotID{"snapshot": id})
				}
				return a.Say("%s\n", id)
			})
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	f.register(fs)
	fs.BoolVar(&o.Memory, "live", false, "keep the processes and their memory too, on tiers that can")
	fs.StringVar(&o.Name, "name", "", "`name` that is kept with the snapshot, whose ID is made up")
	fs.BoolVar(&asJSON, "json", false, "answer with one JSON object")
	return c
}
