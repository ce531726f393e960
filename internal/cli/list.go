package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
	"github.com/paddock-sandbox/paddock/internal/policy"
)

func (a *App) listCommand() *cobra.Command {
	var f RemoteFlags
	var labels listFlag
	var state, tier string
	var quiet, asJSON bool
	c := &cobra.Command{
		Use:   "ls [flags]",
		Short: "List the sandboxes of a server",
		Long: `List the sandboxes of a server that are yours, oldest first.

Exit status: 0, or 125 if Paddock itself failed.`,
		Example: `  paddock ls
  paddock ls --label team=web --state paused
  paddock rm $(paddock ls -q --label team=web)`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			want, err := ParseLabels(labels)
			if err != nil {
				return err
			}
			wanted, err := parseTier(tier)
			if err != nil {
				return err
			}
			if state != "" && !slices.Contains(stateWords(), state) {
				return WithHint(fmt.Errorf("--state %s: there is no such state: %w", state, paddock.Invalid), "%sstates are %s", meant(policy.Nearest(state, stateWords())), Join(stateWords()))
			}
			return a.With(c.Context(), &f, func(ctx context.Context, r *Remote) error {
				list, err := r.List(ctx)
				if err != nil {
					return err
				}
				list = slices.DeleteFunc(list, func(s paddock.Status) bool {
					return state != "" && string(s.State) != state || wanted != paddock.Auto && s.Tier != wanted || !labelled(s, want)
				})
				return a.list(list, quiet, asJSON)
			})
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	f.register(fs)
	fs.VarP(&labels, "label", "l", "only those with this label: `NAME=VALUE` (repeatable)")
	fs.StringVar(&state, "state", "", "only those in this `state`: ready, paused or dead")
	fs.StringVar(&tier, "tier", "", "only those of this `tier`")
	fs.BoolVarP(&quiet, "quiet", "q", false, "write IDs alone")
	fs.BoolVar(&asJSON, "json", false, "answer with a JSON list of their statuses")
	return c
}

// labelled tells whether a sandbox has all of these labels.
func labelled(s paddock.Status, want map[string]string) bool {
	for name, value := range want {
		if have, ok := s.Labels[name]; !ok || have != value {
			return false
		}
	}
	return true
}

func (a *App) list(list []paddock.Status, quiet, asJSON bool) error {
	if asJSON {
		if list == nil {
			list = []paddock.Status{}
		}
		return PrintJSON(a.Stdout, list)
	}
	if quiet {
		for _, s := range list {
			if err := a.Say("%s\n", s.ID); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tTIER\tSTATE\tCREATED\tLABELS")
	for _, s := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", OneLine(string(s.ID)), OneLine(string(s.Tier)), OneLine(string(s.State)), s.Created.Local().Format(time.DateTime), labelsInWords(s.Labels))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, s := range list {
		if s.Reason == "" {
			continue
		}
		if _, err := fmt.Fprintf(a.Stderr, "paddock: %s is %s: %s\n", OneLine(string(s.ID)), OneLine(string(s.State)), OneLine(s.Reason)); err != nil {
			return err
		}
	}
	return nil
}

func labelsInWords(labels map[string]string) string {
	var words []string
	for name, value := range labels {
		words = append(words, OneLine(name+"="+value))
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

func (a *App) inspectCommand() *cobra.Command {
	var f RemoteFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "inspect ID",
		Short: "Tell all that is known of a sandbox",
		Long: `Tell all that is known of a sandbox: its state, its limits, what it used, how it
is enforced, what was refused, and where it has terms, when it ends.

Exit status: 0, or 125 if there is no such sandbox or Paddock itself failed.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeIDs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.With(c.Context(), &f, func(ctx context.Context, r *Remote) error {
				sb, err := r.Open(ctx, paddock.ID(args[0]))
				if err != nil {
					return err
				}
				s, err := sb.Status(ctx)
				if err != nil {
					return err
				}
				l, err := r.lease(ctx, s.ID)
				if err != nil {
					return err
				}
				if asJSON {
					return PrintJSON(a.Stdout, inspected{s, l})
				}
				return a.inspect(s, l)
			})
		},
	}
	f.register(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "answer with one JSON object")
	return c
}

// An inspected sandbox is what paddock inspect --json answers.
type inspected struct {
	paddock.Status
	Lease *client.Lease `json:"lease,omitempty"`
}

// lease gives how a sandbox stands to its terms; nil is that it can have none.
func (r *Remote) lease(ctx context.Context, id paddock.ID) (*client.Lease, error) {
	k, err := r.lessor()
	if err != nil {
		return nil, nil //nolint:nilerr // none is what it has
	}
	l, err := k.Terms(ctx, id)
	switch {
	case errors.Is(err, paddock.Unsupported), errors.Is(err, paddock.Unavailable): // such as one that is lost
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &l, nil
}

// inspect writes a status for people.
func (a *App) inspect(s paddock.Status, l *client.Lease) error {
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s:\t%s\n", name, OneLine(fmt.Sprintf(format, args...)))
	}
	row("id", "%s", s.ID)
	row("tier", "%s", s.Tier)
	row("state", "%s", s.State)
	if s.Reason != "" {
		row("reason", "%s", s.Reason)
	}
	row("created", "%s", s.Created.Local().Format(time.DateTime))
	row("user", "%s", s.User)
	row("directory", "%s", s.Dir)
	if len(s.Labels) > 0 {
		row("labels", "%s", labelsInWords(s.Labels))
	}
	if s.Limits.Memory > 0 {
		row("memory", "%s of %s", measured(s.Usage.Memory), BytesInWords(s.Limits.Memory))
	}
	if s.Usage.CPU >= 0 {
		row("processor", "%s", s.Usage.CPU.Round(time.Millisecond))
	}
	if u := s.Undo; u != nil {
		text := fmt.Sprintf("%s, but not of %s", u.Mode, strings.Join(u.Without, "; "))
		if u.Failed != "" {
			text = "nothing is recorded any more: " + u.Failed
		}
		row("undo", "%s", text)
	}
	if s.Monitor != nil {
		row("monitor", "%s", monitorWords(s.Monitor))
	}
	if l != nil {
		termsRows(w, *l)
	}
	for _, e := range s.Enforced {
		if e.Strength == paddock.Full {
			continue
		}
		row(string(e.Strength), "%s: %s", e.Control, e.Cause)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	refusals(a.Stdout, s.Refused)
	return nil
}

// measured writes an amount that may not be known.
func measured(n int64) string {
	if n < 0 {
		return "an unknown part"
	}
	return BytesInWords(n)
}
