package cli

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/step"
)

type applyFlags struct {
	monitorFlags
	interactive bool
	unprotect   listFlag
	json        bool
	audit       string
}

func (a *App) applyCommand() *cobra.Command {
	f := &applyFlags{}
	c := &cobra.Command{
		Use:   "apply [flags] [NUMBER] [PATH...]",
		Short: "Make the changes that a command of paddock run --review proposed",
		Long: `Make the changes of a proposal: without a number, of the only one for this
directory. With paths, only these, and what is below them. What is applied
leaves the proposal; the rest stays until paddock discard, or for 14 days.

A file is changed only if it is what it was when the command ran. Text that was
changed since is merged, where both did not change the same lines. The rest are
conflicts: they are shown and left as they are. Names that are protected, such
as .git/hooks, are not applied.

With -i, each change is asked about, text hunk by hunk: y applies it, n does
not, a applies it and the rest of the file, d leaves the rest of the file, and
q leaves all that is left.

If the command ran with a monitor, the same one judges what would be applied,
before anything changes. --monitor names another one, or none.

Apply is a step: paddock undo takes it back.

Exit status: 0; 1 if there was a conflict; 123 if the monitor refused it, and
nothing was applied; 125 if nothing could be applied.`,
		Example: `  paddock apply
  paddock apply src/main.go
  paddock apply -i
  paddock apply 3 src
  paddock apply --monitor rules`,
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			return a.apply(c.Context(), f, args, c.Flags().Changed)
		},
	}
	fs := c.Flags()
	fs.BoolVarP(&f.interactive, "interactive", "i", false, "ask about each change, text hunk by hunk")
	fs.Var(&f.unprotect, "unprotect", "apply changes to a protected `name` such as .git/hooks too (repeatable)")
	fs.StringVar(&f.monitor, "monitor", "", "`who` judges the changes, in place of the monitor of the run: rules (the built-in ones), a command of this machine, an https URL, or none")
	fs.StringVar(&f.task, "task", "", "what you want done, as `text` for the monitor, in place of that of the run")
	fs.StringVar(&f.audit, "audit", "", "record what the monitor decides in this new `FILE`, as signed lines of JSON")
	fs.BoolVar(&f.json, "json", false, "answer with one JSON object: what was applied, the conflicts, and how many paths are left")
	return c
}

func (a *App) apply(ctx context.Context, f *applyFlags, args []string, changed func(string) bool) error {
	if f.interactive && f.json {
		return WithHint(fmt.Errorf("-i and --json both want standard output: %w", paddock.Invalid), "leave one out")
	}
	v, err := a.reviews(ctx, false)
	if err != nil {
		return err
	}
	defer v.Close()
	n, args, err := a.proposal(ctx, v, args)
	if err != nil {
		return err
	}
	q := step.Application{Number: n, Unprotect: f.unprotect}
	if q.Paths, err = a.absolute(args); err != nil {
		return err
	}
	if f.interactive {
		q.Pick = newPicker(a.Stdin, a.Stdout).pick
	}
	judge, err := a.reviewJudge(ctx, f, v, n, changed)
	if err != nil {
		return err
	}
	defer func() { _ = judge.close() }() // what was judged is on the disk already
	if judge != nil {
		q.Judge = judge.judge
	}
	j, err := a.journal(ctx)
	if err != nil {
		return err
	}
	defer j.Close()
	result, err := j.Apply(ctx, v, q)
	if err != nil {
		return err
	}
	if f.json {
		err = PrintJSON(a.Stdout, appliedJSON(n, result))
	} else {
		a.tellApplied(n, result)
	}
	if result.Step != 0 {
		if r, err := j.Read(ctx, result.Step); err == nil {
			a.tellLeft(r, 3)
		}
	}
	if err == nil && len(result.Conflicts) > 0 {
		return ExitStatus(1)
	}
	return err
}

// tellPlaces tells which paths were changed and which were left alone. The command lists them all.
func (a *App) tellPlaces(restored []step.Restored, conflicts []step.Conflict, command string) {
	for i, r := range restored {
		if i == shownPaths {
			fmt.Fprintf(a.Stdout, "and %d more, which `%s` lists\n", len(restored)-shownPaths, command)
			break
		}
		note := ""
		if r.Note != "" {
			note = " (" + OneLine(r.Note) + ")"
		}
		fmt.Fprintf(a.Stdout, "%s%s\n", OneLine(filepath.Join(string(r.Root), string(r.Path))), note)
	}
	for _, c := range conflicts {
		fmt.Fprintf(a.Stderr, "paddock: %s is left as it is: %s; %s\n", OneLine(filepath.Join(string(c.Root), string(c.Path))), OneLine(c.Why), OneLine(c.Remedy))
	}
}

func (a *App) tellApplied(n int64, result *step.Applied) {
	a.tellPlaces(result.Restored, result.Conflicts, fmt.Sprintf("paddock show %d", result.Step))
	switch {
	case result.Step != 0:
		fmt.Fprintf(a.Stderr, "paddock: %s (step %d; `paddock undo` takes that back)\n", pathWords(len(result.Restored), "was applied", "were applied"), result.Step)
	case len(result.Conflicts) == 0:
		fmt.Fprintln(a.Stderr, "paddock: nothing was applied")
	}
	if result.Stays > 0 {
		fmt.Fprintf(a.Stderr, "paddock: %s in proposal %d\n", pathWords(result.Stays, "is left", "are left"), n)
	}
}

func appliedJSON(n int64, r *step.Applied) any {
	type place struct {
		Root   step.Text `json:"root"`
		Path   step.Text `json:"path"`
		Note   string    `json:"note,omitempty"`
		Why    string    `json:"why,omitempty"`
		Remedy string    `json:"remedy,omitempty"`
	}
	applied, conflicts := []place{}, []place{}
	for _, p := range r.Restored {
		applied = append(applied, place{Root: p.Root, Path: p.Path, Note: p.Note})
	}
	for _, p := range r.Conflicts {
		conflicts = append(conflicts, place{Root: p.Root, Path: p.Path, Why: p.Why, Remedy: p.Remedy})
	}
	return struct {
		Proposal  int64   `json:"proposal"`
		Step      int64   `json:"step,omitempty"` // that the application is recorded as
		Applied   []place `json:"applied"`
		Conflicts []place `json:"conflicts"`
		Left      int     `json:"left"` // paths that stay in the proposal
	}{n, r.Step, applied, conflicts, r.Stays}
}
