package cli

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
)

// termFlags say how long a sandbox lives.
type termFlags struct {
	lifetime   TimeFlag
	idlePause  TimeFlag
	idleRemove TimeFlag
	renewEvery TimeFlag
	atEnd      string
}

func (f *termFlags) register(fs *pflag.FlagSet) {
	fs.Var(&f.lifetime, "lifetime", "end the sandbox this `time` after it was made; paddock extend moves that")
	fs.Var(&f.idlePause, "idle-pause", "pause it when nobody used it for this `time`; the next call wakes it")
	fs.Var(&f.idleRemove, "idle-remove", "remove it when nobody used it for this `time`")
	fs.Var(&f.renewEvery, "renew-every", "end it where paddock renew was not called for this `time`")
	fs.StringVar(&f.atEnd, "at-end", "remove", "`what` is done at the end of --lifetime and --renew-every: remove or pause")
}

// terms gives what the flags ask for; nil is nothing, and then the server's are.
func (f *termFlags) terms() (*client.Terms, error) {
	if f.atEnd != "remove" && f.atEnd != "pause" {
		return nil, WithHint(fmt.Errorf("--at-end %s: there is no such end: %w", f.atEnd, paddock.Invalid), "it is remove or pause")
	}
	end := client.RemoveAtEnd
	if f.atEnd == "pause" {
		end = client.PauseAtEnd
	}
	t := client.Terms{
		Lifetime: time.Duration(f.lifetime), KeepAlive: time.Duration(f.renewEvery), OnEnd: end,
		IdlePause: time.Duration(f.idlePause), IdleRemove: time.Duration(f.idleRemove), Wake: f.idlePause > 0,
	}
	if t == (client.Terms{}) {
		return nil, nil
	}
	if t.OnEnd == client.PauseAtEnd && t.Lifetime == 0 && t.KeepAlive == 0 {
		return nil, WithHint(fmt.Errorf("--at-end of what has no end: %w", paddock.Invalid), "say when: --lifetime or --renew-every")
	}
	return &t, nil
}

// termsWith gives what the flags and the policy file ask for; nil is nothing.
func (f *createFlags) termsWith(p *plan) (*client.Terms, error) {
	t, err := f.terms()
	if err != nil {
		return nil, err
	}
	b, err := p.budget(f.budget)
	if err != nil || !b.Bounds() {
		return t, err
	}
	if t == nil {
		t = &client.Terms{}
	}
	t.Budget = b
	return t, nil
}

// A lessor is a server whose sandboxes have terms.
type lessor interface {
	CreateWith(ctx context.Context, spec paddock.Spec, t client.Terms) (paddock.Sandbox, error)
	Terms(ctx context.Context, id paddock.ID) (client.Lease, error)
	Extend(ctx context.Context, id paddock.ID, by time.Duration) (client.Lease, error)
	Renew(ctx context.Context, id paddock.ID) (client.Lease, error)
	Raise(ctx context.Context, id paddock.ID, by client.Raise) (client.Lease, error)
}

// lessor gives the server as one.
func (r *Remote) lessor() (lessor, error) {
	if k, ok := paddock.As[lessor](r.Driver); ok {
		return k, nil
	}
	return nil, fmt.Errorf("server %s: its sandboxes have no terms: %w", r.At.Address, paddock.Unsupported)
}

// on makes a sandbox on terms; nil are the server's.
func (r *Remote) on(ctx context.Context, spec paddock.Spec, t *client.Terms) (paddock.Sandbox, error) {
	if t == nil {
		return r.Create(ctx, spec)
	}
	k, err := r.lessor()
	if err != nil {
		return nil, err
	}
	sb, err := k.CreateWith(ctx, spec, *t)
	if err != nil && strings.Contains(err.Error(), "have no terms") { // else it is the tier that lacks something
		return nil, Otherwise(err, keptTerms)
	}
	return sb, err
}

// keptTerms says who keeps terms.
const keptTerms = "paddock serve of this version keeps terms"

func (a *App) extendCommand() *cobra.Command {
	var f RemoteFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "extend [flags] ID TIME",
		Short: "Have a sandbox end later",
		Long: `Move the end of a sandbox by a time, from when it would be, or from now where that
has passed, and write the new end. What was paused at its end goes on. What has no
end has nothing to move.

Exit status: 0, or 125 if it was not moved.`,
		Example:               `  paddock extend "$id" 30m`,
		Args:                  cobra.ExactArgs(2),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     a.completeIDs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var by TimeFlag
			if err := by.Set(args[1]); err != nil {
				return WithHint(fmt.Errorf("%s: %w: %w", args[1], err, paddock.Invalid), "paddock extend ID 30m")
			}
			return a.With(c.Context(), &f, func(ctx context.Context, r *Remote) error {
				k, err := r.lessor()
				if err != nil {
					return err
				}
				l, err := k.Extend(ctx, paddock.ID(args[0]), time.Duration(by))
				if err != nil {
					return Otherwise(err, keptTerms)
				}
				if asJSON {
					return PrintJSON(a.Stdout, l)
				}
				return a.Say("%s\n", l.Ends.Local().Format(time.DateTime))
			})
		},
	}
	f.register(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "answer with one JSON object: its terms and times")
	return c
}

func (a *App) renewCommand() *cobra.Command {
	var f RemoteFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "renew [flags] ID…",
		Short: "Say that sandboxes are still wanted",
		Long: `Say that sandboxes are still wanted that were made with --renew-every. What was
paused since nobody had said so goes on.

Exit status: 0, or 125 if one of them could not be renewed.`,
		Args:                  cobra.MinimumNArgs(1),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     a.completeIDs(0),
		RunE: func(c *cobra.Command, args []string) error {
			return a.With(c.Context(), &f, func(ctx context.Context, r *Remote) error {
				k, err := r.lessor()
				if err != nil {
					return err
				}
				return a.each(args, asJSON, func(o *outcome) error {
					l, err := k.Renew(ctx, paddock.ID(o.ID))
					if err == nil {
						o.Lease = &l
					}
					return Otherwise(err, keptTerms)
				})
			})
		},
	}
	f.register(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "answer with a JSON list: each ID, with its terms and times, or its error")
	return c
}

// termsRows writes terms for people.
func termsRows(w *tabwriter.Writer, l client.Lease) {
	row := func(name, text string) { fmt.Fprintf(w, "%s:\t%s\n", name, OneLine(text)) }
	end := "removed"
	if l.Terms.OnEnd == client.PauseAtEnd {
		end = "paused"
	}
	if !l.Ends.IsZero() {
		row("ends", fmt.Sprintf("%s (%s)", l.Ends.Local().Format(time.DateTime), end))
	}
	if l.Terms.KeepAlive > 0 {
		row("renewed every", fmt.Sprintf("%s, or it is %s; next by %s", l.Terms.KeepAlive, end, l.Renew.Local().Format(time.DateTime)))
	}
	if l.Terms.IdlePause > 0 {
		woken := "resume it by hand"
		if l.Terms.Wake {
			woken = "the next call wakes it"
		}
		row("paused", fmt.Sprintf("when idle for %s; %s", l.Terms.IdlePause, woken))
	}
	if l.Terms.IdleRemove > 0 {
		row("removed", fmt.Sprintf("when idle for %s", l.Terms.IdleRemove))
	}
	budgetRows(row, l)
	if !l.Idle.IsZero() && (l.Terms.IdlePause > 0 || l.Terms.IdleRemove > 0) {
		row("idle since", l.Idle.Local().Format(time.DateTime))
	}
	if l.Paused != "" {
		row("paused by", l.Paused)
	}
	if l.Failure != "" {
		row("failed", l.Failure)
	}
}
