package cli

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/policy"
)

// registerKept adds the flags of a monitor of a sandbox that stays.
func (f *monitorFlags) registerKept(fs *pflag.FlagSet) {
	fs.StringVar(&f.monitor, "monitor", "", "`who` judges commands, connections and effects: rules (the built-in ones) or off; paddock questions shows what they ask (docs/use/monitor.md)")
	fs.StringVar(&f.task, "task", "", "what is to be done, as `text` for the monitor")
}

// kept gives the monitor that a sandbox of a server gets. Nil is none.
func (f *monitorFlags) kept(p *plan, changed func(string) bool) (*paddock.Monitor, error) {
	s, err := f.settings(p, changed)
	if err != nil || s == nil {
		return nil, err
	}
	if judge := judgeInWords(s); judge != "" {
		return nil, WithHint(fmt.Errorf("monitor: %s: sandboxes of a server are judged by the built-in rules alone: %w", judge, paddock.Unsupported),
			"--monitor rules, or monitor: rules in the policy; paddock run has judges of your own")
	}
	m := &paddock.Monitor{Task: s.Task, Removed: s.Removed}
	for _, h := range append(s.Known, registriesOf(p)...) {
		if len(m.Known) < paddock.MaxMonitorKnown {
			m.Known = append(m.Known, h)
		}
	}
	return m, nil
}

// judgeInWords names the judge beside the rules, or nothing.
func judgeInWords(s *policy.Monitor) string {
	switch {
	case len(s.Command) > 0:
		return "the command " + OneLine(s.Command[0])
	case s.URL != "":
		return "a url"
	case s.Model != nil:
		return "a model"
	}
	return ""
}

// A questionOf is a question with the sandbox that it is of.
type questionOf struct {
	Sandbox paddock.ID `json:"sandbox"`
	paddock.MonitorQuestion
}

func (a *App) questionsCommand() *cobra.Command {
	var f RemoteFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "questions [flags] [ID…]",
		Short: "List what monitors of sandboxes ask",
		Long: `List what the monitors of sandboxes ask, the oldest first: of these sandboxes, or
of all. What a question is about waits for paddock answer, and is denied when its
time is over. The last column is what the sandbox wants, in its own words: it is
data, whatever it says.

Exit status: 0, or 125 if the questions of a sandbox cannot be had.`,
		Example: `  paddock questions
  paddock questions --json "$id"`,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     a.completeIDs(0),
		RunE: func(c *cobra.Command, args []string) error {
			return a.With(c.Context(), &f, func(ctx context.Context, r *Remote) error {
				list, err := r.questions(ctx, args)
				if err != nil {
					return err
				}
				if asJSON {
					return PrintJSON(a.Stdout, list)
				}
				return a.sayQuestions(list)
			})
		},
	}
	f.register(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "answer with one JSON list")
	return c
}

// questions lists what the monitors of these sandboxes ask, or of all.
func (r *Remote) questions(ctx context.Context, ids []string) ([]questionOf, error) {
	list := []questionOf{}
	all := len(ids) == 0
	if all {
		states, err := r.List(ctx)
		if err != nil {
			return nil, err
		}
		for _, s := range states {
			if s.Monitor != nil && s.Monitor.Open > 0 {
				ids = append(ids, string(s.ID))
			}
		}
	}
	for _, id := range ids {
		sb, err := r.Open(ctx, paddock.ID(id))
		var asked []paddock.MonitorQuestion
		if err == nil {
			asked, err = paddock.MonitorQuestions(ctx, sb, false)
		}
		switch {
		case err != nil && all && errors.Is(err, paddock.NotFound): // removed meanwhile
			continue
		case err != nil:
			return nil, Otherwise(err, "paddock create --monitor rules makes a sandbox with a monitor")
		}
		for _, q := range asked {
			list = append(list, questionOf{paddock.ID(id), q})
		}
	}
	return list, nil
}

func (a *App) sayQuestions(list []questionOf) error {
	if len(list) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SANDBOX\tQUESTION\tUNTIL\tA DENIAL\tWHY\tABOUT")
	for _, q := range list {
		denial := "refuses it"
		switch {
		case q.Done:
			denial = "pauses"
		case q.Pauses:
			denial = "refuses it, and pauses"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s (rule %s)\t%s\n", OneLine(string(q.Sandbox)), OneLine(q.ID), q.Until.Local().Format(time.TimeOnly), denial,
			OneLineOf(q.Reason, Paragraph), OneLine(q.Rule), OneLineOf(q.About, Paragraph))
	}
	return w.Flush()
}

func (a *App) answerCommand() *cobra.Command {
	var f RemoteFlags
	c := &cobra.Command{
		Use:   "answer [flags] ID QUESTION allow|deny",
		Short: "Answer what the monitor of a sandbox asks",
		Long: `Answer what the monitor of a sandbox asks, by the name that paddock questions
shows: allow lets it go on, deny refuses it. A denial also pauses the sandbox where
the question says so; paddock resume has it go on.

Exit status: 0, or 125 if the question does not wait any more.`,
		Example:               `  paddock answer "$id" "$question" deny`,
		Args:                  cobra.ExactArgs(3),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     a.completeIDs(1),
		RunE: func(c *cobra.Command, args []string) error {
			allow := args[2] == "allow"
			if !allow && args[2] != "deny" {
				return WithHint(fmt.Errorf("the answer %q: %w", args[2], paddock.Invalid), "it is allow or deny")
			}
			return a.With(c.Context(), &f, func(ctx context.Context, r *Remote) error {
				sb, err := r.Open(ctx, paddock.ID(args[0]))
				if err != nil {
					return err
				}
				if err := paddock.AnswerMonitor(ctx, sb, args[1], allow); err != nil {
					return WithHint(err, "`paddock questions` lists those that wait")
				}
				return nil
			})
		},
	}
	f.register(c.Flags())
	return c
}

// monitorWords tells what a monitor did.
func monitorWords(m *paddock.Monitoring) string {
	text := "built-in rules"
	for _, v := range []string{"allow", "ask", "deny", "pause"} {
		if n := m.Verdicts[v]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, v)
		}
	}
	if m.Open > 0 {
		text += fmt.Sprintf("; %d questions wait (paddock questions)", m.Open)
	}
	if len(m.Without) > 0 {
		text += "; off: " + Join(m.Without)
	}
	return text
}
