package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
)

func (a *App) resumeCommand() *cobra.Command {
	var f RemoteFlags
	var texts []string
	var asJSON bool
	c := &cobra.Command{
		Use:   "resume [flags] ID…",
		Short: "Have paused sandboxes go on",
		Long: `Have paused sandboxes go on, where they were. One that was paused because its
budget is used up goes on with a larger one: --budget cpu=+10m adds to what it had,
and --budget cpu=1h is a new one in all. That is also for sandboxes that run.

Exit status: 0, or 125 if one of them could not be resumed.`,
		Example: `  paddock resume "$id"
  paddock resume --budget cpu=+10m "$id"`,
		Args:                  cobra.MinimumNArgs(1),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     a.completeIDs(0),
		RunE: func(c *cobra.Command, args []string) error {
			by, err := parseBudget(texts, true)
			if err != nil {
				return err
			}
			return a.With(c.Context(), &f, func(ctx context.Context, r *Remote) error {
				defer a.progress("resuming")()
				return a.each(args, asJSON, func(o *outcome) error { return r.resume(ctx, paddock.ID(o.ID), by) })
			})
		},
	}
	f.register(c.Flags())
	c.Flags().StringSliceVar(&texts, "budget", nil, "raise its budget: `NAME=+VALUE` adds to it, NAME=VALUE is a new one; cpu=TIME, network=SIZE or cost=NUMBER (repeatable; commas between several)")
	registerOutcomes(c.Flags(), &asJSON)
	return c
}

// resume has a sandbox go on, if there is one with more to spend.
func (r *Remote) resume(ctx context.Context, id paddock.ID, by client.Raise) error {
	if by != (client.Raise{}) {
		k, err := r.lessor()
		if err != nil {
			return err
		}
		if _, err := k.Raise(ctx, id, by); err != nil {
			return Otherwise(err, keptTerms)
		}
	}
	sb, err := r.Open(ctx, id)
	if err != nil {
		return err
	}
	if err := sb.Resume(ctx); err != nil {
		if over := r.overBudget(ctx, id); over != "" {
			return WithHint(err, "paddock resume --budget %s %s", over, id)
		}
		return err
	}
	return nil
}

// overBudget returns an example of what raises the budget of a sandbox that is used up. It is empty if none is.
func (r *Remote) overBudget(ctx context.Context, id paddock.ID) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), Patience)
	defer cancel()
	l, err := r.lease(ctx, id)
	if err != nil || l == nil || l.Spent == nil {
		return ""
	}
	switch l.Spent.Over {
	case "cpu":
		return "cpu=+10m"
	case "network":
		return "network=+1G"
	case "cost":
		return "cost=+" + string(l.Terms.Budget.Cost)
	}
	return ""
}

// broke tells that a command waits, or was not begun, because the budget of its sandbox is used up. Any other error it
// returns.
func (a *App) broke(ctx context.Context, r *Remote, id paddock.ID, pid paddock.PID, err error) error {
	if !errors.Is(err, paddock.Exhausted) {
		return err
	}
	more := r.overBudget(ctx, id)
	if more == "" {
		return err
	}
	hint := fmt.Sprintf("go on: paddock resume --budget %s %s", more, id)
	if pid != 0 {
		hint += fmt.Sprintf("; then join the command again: paddock attach %s %d", id, pid)
	}
	a.complain(WithHint(err, "%s", hint))
	return ExitStatus(overBudget)
}

// budgetRows writes a budget for people.
func budgetRows(row func(name, text string), l client.Lease) {
	b, s := l.Terms.Budget, l.Spent
	if s == nil {
		return
	}
	if b.CPU != 0 {
		row("budget", fmt.Sprintf("%s of processor time; %s were used", b.CPU, inTime(s.CPU)))
	}
	if b.Network != 0 {
		row("budget", fmt.Sprintf("%s of network traffic; %s were used", BytesInWords(b.Network), BytesInWords(s.Network)))
	}
	if b.Cost != "" {
		row("budget", fmt.Sprintf("%s of cost; %s was used", b.Cost, s.Cost))
	}
}
