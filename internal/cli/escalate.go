package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
)

func (a *App) escalateCommand() *cobra.Command {
	var f RemoteFlags
	var tier, name string
	var e client.Escalation
	var asJSON bool
	c := &cobra.Command{
		Use:   "escalate [flags] ID",
		Short: "Move a sandbox to a stronger tier, in the middle of its life",
		Long: `Move a sandbox to another tier: make a new one there that begins with its files, and
write the new ID. Labels, policy, secrets, mounts, limits and what is left of its
terms go along, and the label paddock.from has the former ID. Processes do not go
along: if some run, the command asks, or needs --yes.

The former sandbox is removed when the new one can run commands. If anything fails
before, it stays as it is. What the other tier cannot have of the files is listed,
and nothing is moved. A weaker tier has to be asked for with --weaker.

Exit status: 0, or 125 if the sandbox was not moved.`,
		Example: `  id=$(paddock escalate --tier gvisor "$id")
  paddock escalate --tier microvm --yes "$id"`,
		Args:                  cobra.ExactArgs(1),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     a.completeIDs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if tier == "" || tier == "auto" {
				return WithHint(fmt.Errorf("the tier to move to is missing: %w", paddock.Invalid), "paddock escalate --tier gvisor ID")
			}
			if e.Tier, err = parseTier(tier); err != nil {
				return err
			}
			e.ID = paddock.ID(name)
			return a.With(c.Context(), &f, func(ctx context.Context, r *Remote) error {
				return a.escalate(ctx, r, paddock.ID(args[0]), e, asJSON)
			})
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	f.register(fs)
	fs.StringVar(&tier, "tier", "", "the `tier` to move to: sim, jail, gvisor or microvm")
	fs.StringVar(&name, "name", "", "`ID` of the new sandbox (default: one that is made up)")
	fs.BoolVarP(&e.End, "yes", "y", false, "end what runs in it, without a question")
	fs.BoolVar(&e.Weaker, "weaker", false, "also to a tier that isolates less")
	fs.BoolVar(&asJSON, "json", false, "answer with one JSON object")
	return c
}

func (a *App) escalate(ctx context.Context, r *Remote, id paddock.ID, e client.Escalation, asJSON bool) error {
	if !e.End {
		if err := a.confirmEnd(ctx, r, id, &e); err != nil {
			return err
		}
	}
	k, ok := paddock.As[escalator](r.Driver)
	if !ok {
		return fmt.Errorf("escalate: %w", paddock.Unsupported)
	}
	stop := a.progress("moving the sandbox")
	sb, left, err := k.Escalate(ctx, id, e)
	stop()
	switch {
	case errors.Is(err, paddock.Denied) && !e.Weaker:
		return WithHint(err, "paddock escalate --weaker --tier %s %s", e.Tier, id)
	case err != nil:
		return err
	}
	if left != "" {
		a.complain(WithHint(fmt.Errorf("the former sandbox %s could not be removed: %s: %w", id, left, paddock.Conflict), "paddock rm %s", id))
	}
	return a.told(ctx, sb, asJSON)
}

// An escalator moves sandboxes, as [client.Driver] does.
type escalator interface {
	Escalate(ctx context.Context, id paddock.ID, e client.Escalation) (sb paddock.Sandbox, left string, err error)
}

// confirmEnd asks a person whether what runs may end. Without a terminal the server refuses.
func (a *App) confirmEnd(ctx context.Context, r *Remote, id paddock.ID, e *client.Escalation) error {
	if !isTerminal(a.Stdin) {
		return nil
	}
	sb, err := r.Open(ctx, id)
	if err != nil {
		return err
	}
	list, err := sb.Processes(ctx)
	if err != nil {
		return err
	}
	run := 0
	for _, p := range list {
		if p.Exit == nil {
			run++
		}
	}
	if run == 0 {
		return nil
	}
	fmt.Fprintf(a.Stderr, "move %s, and end %s that run in it? [y/N] ", id, Plural(run, "process", "processes"))
	answer, err := bufio.NewReader(a.Stdin).ReadString('\n')
	if word := strings.ToLower(strings.TrimSpace(answer)); err != nil || word != "y" && word != "yes" {
		return WithHint(fmt.Errorf("nothing was moved: %w", paddock.Canceled), "answer y to go on")
	}
	e.End = true
	return nil
}
