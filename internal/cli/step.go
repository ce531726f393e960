package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// OpenJournal opens the journal of steps in a directory, or with an empty name that of the caller. It makes records of
// steps that were cut off. The caller closes it.
func (a *App) OpenJournal(ctx context.Context, dir string) (*step.Journal, error) {
	if dir == "" {
		return a.journal(ctx)
	}
	j, err := step.Open(dir, step.Options{})
	if err != nil {
		return nil, err
	}
	if _, err := j.Recover(ctx); err != nil {
		a.complain(fmt.Errorf("steps that were cut off: %w", err))
	}
	return j, nil
}

// journal opens the journal of the caller's steps, and makes records of those that were cut off.
func (a *App) journal(ctx context.Context) (*step.Journal, error) {
	dir, err := a.Data()
	if err != nil {
		return nil, err
	}
	j, err := step.Open(filepath.Join(dir, "steps"), step.Options{})
	if err != nil {
		return nil, fmt.Errorf("the journal of steps: %w", err)
	}
	if _, err := j.Recover(ctx); err != nil {
		a.complain(fmt.Errorf("steps that were cut off: %w", err))
	}
	return j, nil
}

// Steps is the directory of the journal of the caller's steps. It is empty if the caller has no data directory.
func (a *App) Steps() string {
	if a.Data == nil {
		return ""
	}
	dir, err := a.Data()
	if err != nil || dir == "" {
		return ""
	}
	return filepath.Join(dir, "steps")
}

// undoModes are the values of --undo.
func undoModes() []string { return []string{"on", "strict", "off"} }

// registerUndo adds the flag that says what is recorded.
func registerUndo(fs *pflag.FlagSet, mode *string) {
	fs.StringVar(mode, "undo", "off", "record what the command changes, for paddock undo: `MODE` is on, strict (also refuse a change that could not be undone) or off")
}

// parseUndo reads the value of --undo.
func parseUndo(mode string) (paddock.UndoMode, error) {
	switch mode {
	case "", "off": // nothing of a command without the flag
		return paddock.UndoOff, nil
	case string(paddock.UndoOn), string(paddock.UndoStrict):
		return paddock.UndoMode(mode), nil
	}
	return "", WithHint(fmt.Errorf("--undo %.40q: %w", mode, paddock.Invalid), "it is one of %s", Join(undoModes()))
}

// recording lets a run record what it changes in files of this machine, and opens the journal. Nil is that it records nothing.
func (a *App) recording(ctx context.Context, p *plan, mode string) (*step.Journal, error) {
	undo, err := parseUndo(mode)
	if err != nil {
		return nil, err
	}
	writes := slices.ContainsFunc(p.spec.Mounts, func(m paddock.Mount) bool { return m.Write && !m.Cache })
	if undo == paddock.UndoOff || !writes || p.spec.Tier == paddock.Sim {
		return nil, nil
	}
	for _, m := range p.spec.Mounts { // strict is refused by the driver
		if st, err := os.Stat(m.Source); m.Write && !m.Cache && err == nil && !st.IsDir() && undo == paddock.UndoOn {
			fmt.Fprintf(a.Stderr, "paddock: note: what changes in %s cannot be undone: it is a single file\n", OneLine(m.Source))
		}
	}
	j, err := a.journal(ctx)
	if err != nil && undo == paddock.UndoStrict {
		return nil, err
	}
	if err != nil {
		fmt.Fprintf(a.Stderr, "paddock: note: what this run changes cannot be undone: %s\n", OneLine(err.Error()))
		return nil, nil
	}
	p.spec.Undo = undo
	return j, nil
}

// noteUnrecorded tells what of a new sandbox is not recorded although that was asked for.
func (a *App) noteUnrecorded(spec paddock.Spec, st paddock.Status) {
	if st.Undo == nil {
		return
	}
	note := func(format string, args ...any) {
		fmt.Fprintf(a.Stderr, "paddock: note: "+format+"\n", args...)
	}
	if !slices.ContainsFunc(spec.Mounts, func(m paddock.Mount) bool { return m.Write && !m.Cache }) && spec.Root.Kind != paddock.RootOpen {
		note("nothing can be undone: no directory is writable inside; --workspace or --write shows one")
	}
	if st.Undo.Failed != "" {
		note("nothing can be undone: %s", OneLine(st.Undo.Failed))
	}
	if len(st.Undo.Without) > 1 { // the first is what is private, as always
		for _, w := range st.Undo.Without[1:] {
			note("it cannot be undone what changes in %s", OneLine(w))
		}
	}
}

// recorded tells what of a run cannot be undone, and with verbose how the rest can. It also removes old records.
func (a *App) recorded(ctx context.Context, j *step.Journal, b *oneShot, verbose bool) (numbers []int64) {
	if j == nil {
		return nil
	}
	if r, ok := b.Sandbox.(interface{ Unrecorded() error }); ok {
		if err := r.Unrecorded(); err != nil {
			fmt.Fprintf(a.Stderr, "paddock: note: not all that this run changed can be undone: %s\n", OneLine(err.Error()))
		}
	}
	list, err := j.List(ctx, step.Filter{Sandbox: string(b.ID())})
	if err != nil {
		a.complain(fmt.Errorf("the journal of steps: %w", err))
	}
	for _, s := range list {
		if s.Changed == 0 && s.Missed == 0 {
			continue
		}
		numbers = append(numbers, s.Number)
		if verbose {
			fmt.Fprintf(a.Stderr, "paddock: step %d: %s; `paddock undo %d` brings back what was\n", s.Number, changedWords(s.Changed), s.Number)
		}
		if s.Missed == 0 {
			continue
		}
		r, err := j.Read(ctx, s.Number)
		if err != nil {
			a.complain(fmt.Errorf("step %d: %w", s.Number, err))
			continue
		}
		a.tellLeft(r, 3)
	}
	if _, _, err := j.Trim(ctx); err != nil {
		a.complain(fmt.Errorf("remove old steps: %w", err))
	}
	return numbers
}

// tellLeft tells what of a step cannot be undone, at most so many places.
func (a *App) tellLeft(r *step.Record, most int) {
	for i, l := range r.Left {
		if i == most {
			fmt.Fprintf(a.Stderr, "paddock: note: step %d: %d more places cannot be undone; `paddock show %d` lists them\n", r.Number, len(r.Left)-most, r.Number)
			return
		}
		fmt.Fprintf(a.Stderr, "paddock: note: step %d: %s cannot be undone: %s\n", r.Number, OneLine(rooted(r, l.Root, l.Path)), OneLine(l.Why))
	}
}

// rooted returns the path on this machine of a path below a root of a step.
func rooted(r *step.Record, root int, path step.Text) string {
	if root < 0 || root >= len(r.Roots) {
		return string(path)
	}
	return filepath.Join(string(r.Roots[root].Path), string(path))
}

func changedWords(n int) string {
	if n == 1 {
		return "1 path changed"
	}
	return fmt.Sprintf("%d paths changed", n)
}

func (a *App) stepsCommand() *cobra.Command {
	f := &stepFlags{}
	var asJSON, all bool
	var last int
	c := &cobra.Command{
		Use:   "steps [flags] [ID]",
		Short: "List what commands of sandboxes changed in this directory",
		Long: `List the steps of this directory, or of a sandbox. A step is a command that ran
in a sandbox with a writable directory, a call about its files, or a cell.
paddock diff shows what it changed, and paddock undo brings back what was before.
What is private to a sandbox is not recorded.

The journal of steps is kept for 14 days and up to 4 GiB, in the data directory
of the user. No sandbox can reach it. The steps of a sandbox of another server
are in a journal there, which this command asks as long as the sandbox is there.

Exit status: 0, or 125 if the journal cannot be read.`,
		Example: `  paddock steps
  paddock steps --all
  paddock steps "$id"`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeIDs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				f.sandbox, f.here = args[0], true
			}
			f.all = all
			return a.steps(c.Context(), f, func(ctx context.Context, from stepSource) error {
				list, err := from.list(ctx, last)
				if err != nil {
					return err
				}
				if asJSON {
					return PrintJSON(a.Stdout, list)
				}
				if len(list) == 0 {
					fmt.Fprintln(a.Stderr, "paddock: there are no steps here; paddock run --undo on --workspace . records them, and so does paddock create --undo on")
					return nil
				}
				return listSteps(a.Stdout, list)
			})
		},
	}
	fs := c.Flags()
	f.RemoteFlags.register(fs)
	fs.BoolVar(&all, "all", false, "list the steps of all directories")
	fs.IntVarP(&last, "last", "n", 20, "list at most this `number` of steps, the newest")
	fs.BoolVar(&asJSON, "json", false, "answer with a JSON list")
	return c
}

func listSteps(out io.Writer, list []step.Record) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STEP\tTIME\tTIER\tEXIT\tCHANGED\tTOOK\tCPU\tNETWORK\tCOMMAND")
	for _, s := range list {
		exit := strconv.Itoa(s.Exit)
		if s.Exit < 0 || s.Kind == "undo" || s.Kind == "apply" {
			exit = "-"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", s.Number, s.Begin.Local().Format("2006-01-02 15:04:05"), OneLine(string(s.Tier)), exit, s.Changed,
			inTime(s.End.Sub(s.Begin)), stepCPU(&s), stepTraffic(&s), stepWords(&s))
	}
	return w.Flush()
}

// stepWords names a step in one line.
func stepWords(r *step.Record) string {
	var words []string
	for _, w := range r.Command {
		words = append(words, string(w))
	}
	text := OneLineOf(strings.Join(words, " "), 60)
	if r.Kind == "apply" {
		text = "paddock " + text
	}
	if len(r.Undoes) > 0 {
		var list []string
		for _, n := range r.Undoes {
			list = append(list, strconv.FormatInt(n, 10))
		}
		text = "undo of " + strings.Join(list, ", ")
	}
	if text == "" {
		text = OneLine(r.Kind)
	}
	if r.Incomplete {
		text += " (cut off)"
	}
	return text
}

// stepNumber reads the number of a step.
func stepNumber(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, WithHint(fmt.Errorf("%.40q is not the number of a step: %w", text, paddock.Invalid), "`paddock steps` lists the steps of this directory")
	}
	return n, nil
}

func (a *App) showCommand() *cobra.Command {
	f := &stepFlags{}
	var asJSON bool
	c := &cobra.Command{
		Use:   "show [flags] STEP",
		Short: "Show the record of a step",
		Long: `Show the record of a step: its command, how it ended, each path that it changed
and how, what it was refused, and what of it cannot be undone.

Exit status: 0, or 125 if there is no such step.`,
		Example: "  paddock show 12",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			n, err := stepNumber(args[0])
			if err != nil {
				return err
			}
			return a.steps(c.Context(), f, func(ctx context.Context, from stepSource) error {
				r, err := from.read(ctx, n)
				if err != nil {
					return err
				}
				if asJSON {
					return PrintJSON(a.Stdout, shownStep{r, r.Changes, r.Left, r.Digest})
				}
				a.showStep(r)
				return nil
			})
		},
	}
	f.register(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "answer with one JSON object")
	return c
}

// A shownStep is a record with its lists.
type shownStep struct {
	*step.Record
	Changes []step.Change `json:"changes"`
	Left    []step.Left   `json:"left,omitempty"`
	Digest  string        `json:"digest"`
}

func (a *App) showStep(r *step.Record) {
	w := a.Stdout
	fmt.Fprintf(w, "step %d: %s\n", r.Number, stepWords(r))
	fmt.Fprintf(w, "  sandbox  %s (%s)\n", OneLine(r.Sandbox), OneLine(string(r.Tier)))
	fmt.Fprintf(w, "  time     %s, %s\n", r.Begin.Local().Format(time.RFC3339), r.End.Sub(r.Begin).Round(time.Millisecond))
	if r.Kind != "undo" && r.Kind != "apply" {
		fmt.Fprintf(w, "  exit     %d\n", r.Exit)
	}
	a.showUse(r)
	fmt.Fprintf(w, "  record   sha256:%s\n", r.Digest)
	if r.Incomplete {
		fmt.Fprintln(w, "  the record is incomplete: the process that wrote it was killed, or could not note everything")
	}
	for _, c := range r.Changes {
		fmt.Fprintf(w, "  %s %s", changeMark(&c), OneLine(rooted(r, c.Root, c.Path)))
		if c.Moved {
			fmt.Fprintf(w, " (from %s)", OneLine(rooted(r, c.FromRoot, c.From)))
		}
		if c.Why != "" {
			fmt.Fprintf(w, " (cannot be undone: %s)", OneLine(c.Why))
		}
		fmt.Fprintln(w)
	}
	for _, l := range r.Left {
		fmt.Fprintf(w, "  ! %s (cannot be undone: %s)\n", OneLine(rooted(r, l.Root, l.Path)), OneLine(l.Why))
	}
	for _, f := range r.Refused {
		fmt.Fprintf(w, "  refused: %s %s: %s\n", OneLine(f.Operation), OneLine(string(f.Path)), OneLine(f.Why))
	}
	for _, h := range r.Hosts {
		fmt.Fprintf(w, "  reached: %s\n", OneLine(h))
	}
	for _, s := range r.Secrets {
		fmt.Fprintf(w, "  used the secret: %s\n", OneLine(s))
	}
}

// changeMark is a letter for the kind of a change: as git has it.
func changeMark(c *step.Change) string {
	switch {
	case c.Moved:
		return "R"
	case !c.Before.Exists():
		return "A"
	case !c.After.Exists():
		return "D"
	}
	return "M"
}

func (a *App) diffCommand() *cobra.Command {
	f := &stepFlags{}
	var asJSON bool
	c := &cobra.Command{
		Use:   "diff [flags] [STEP[..STEP]] [PATH...]",
		Short: "Show what steps changed, as a unified diff",
		Long: `Show what a step changed, or what the steps from the first number to the second
changed together. Without a number it is the last step of this directory, or the
newest proposal of paddock run --review, if that is newer.

The contents after a step are not kept. They are shown where the file is still
as the step left it, or where a later step kept them.

Exit status: 0, or 125 if there is no such step.`,
		Example: `  paddock diff
  paddock diff 12 src
  paddock diff 12..15`,
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			return a.steps(c.Context(), f, func(ctx context.Context, from stepSource) error {
				if own, ok := from.(*ownSteps); ok && own.sandbox == "" {
					if done, err := a.diffProposal(ctx, own.j, args, asJSON); done || err != nil {
						return err
					}
				}
				first, last, paths, err := a.stepRange(ctx, from, args)
				if err != nil {
					return err
				}
				list, err := from.diff(ctx, first, last, paths)
				if err != nil {
					return err
				}
				return a.printDifferences(list, asJSON)
			})
		},
	}
	f.register(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "answer with a JSON list: each path, how it changed, and the diff of its contents")
	return c
}

// A difference is a step.Difference in JSON.
type difference struct {
	Root     step.Text   `json:"root"`
	Path     step.Text   `json:"path"`
	FromRoot step.Text   `json:"from_root,omitempty"`
	From     step.Text   `json:"from,omitempty"`
	Kinds    []step.Verb `json:"kinds"`
	Before   step.State  `json:"before,omitzero"`
	After    step.State  `json:"after,omitzero"`
	Binary   bool        `json:"binary,omitempty"`
	Text     step.Text   `json:"text,omitempty"`
	Why      string      `json:"why,omitempty"` // why there is no text although contents changed
}

func differencesJSON(list []step.Difference) []difference {
	all := make([]difference, len(list))
	for i := range list {
		d := &list[i]
		all[i] = difference{d.Root, d.Path, d.FromRoot, d.From, d.Kinds, d.Before, d.After, d.Binary, step.Text(d.Text), d.Why}
	}
	return all
}

// stepRange reads the arguments of diff.
func (a *App) stepRange(ctx context.Context, from stepSource, args []string) (first, last int64, paths []string, err error) {
	if len(args) > 0 && strings.Trim(args[0], "0123456789.") == "" && strings.Trim(args[0], ".") != "" {
		begin, to, two := strings.Cut(args[0], "..")
		if first, err = stepNumber(begin); err != nil {
			return 0, 0, nil, err
		}
		if last = first; two {
			if last, err = stepNumber(to); err != nil {
				return 0, 0, nil, err
			}
		}
		args = args[1:]
	} else {
		r, err := from.latest(ctx, func(r *step.Record) bool { return r.Changed > 0 })
		if err != nil {
			return 0, 0, nil, err
		}
		first, last = r.Number, r.Number
	}
	paths, err = from.paths(args)
	return first, last, paths, err
}

func (a *App) printDifferences(list []step.Difference, asJSON bool) error {
	if asJSON {
		return PrintJSON(a.Stdout, differencesJSON(list))
	}
	for i := range list {
		a.printDifference(&list[i])
	}
	return nil
}

func (a *App) printDifference(d *step.Difference) {
	name := OneLine(filepath.Join(string(d.Root), string(d.Path)))
	fmt.Fprintf(a.Stdout, "%s: %s", name, toldChange(d))
	switch {
	case d.Binary:
		fmt.Fprint(a.Stdout, "; not text")
	case d.Why != "":
		fmt.Fprintf(a.Stdout, "; %s", OneLine(d.Why))
	}
	fmt.Fprintln(a.Stdout)
	for line := range strings.Lines(d.Text) {
		text, ended := strings.CutSuffix(line, "\n")
		if isTerminal(a.Stdout) {
			text = printable(text)
		}
		fmt.Fprint(a.Stdout, text)
		if ended {
			fmt.Fprintln(a.Stdout)
		}
	}
	if d.Text != "" && !strings.HasSuffix(d.Text, "\n") {
		fmt.Fprintln(a.Stdout)
	}
}

// printable replaces what would control a terminal. Tabs stay.
func printable(line string) string {
	parts := strings.Split(line, "\t")
	for i := range parts {
		parts[i] = OneLineOf(parts[i], len(parts[i])+1)
	}
	return strings.Join(parts, "\t")
}

type undoFlags struct {
	stepFlags
	to   int64
	json bool
}

func (a *App) undoCommand() *cobra.Command {
	f := &undoFlags{}
	c := &cobra.Command{
		Use:   "undo [flags] [STEP] [PATH...]",
		Short: "Bring back what was before a step",
		Long: `Bring back what was before a step: without a number the last step of this
directory that changed something and is not undone yet, so that undo again goes
back one more. With paths, only these, and what is below them.

Undo goes path by path, and changes only what is as the step left it. What was
changed since is a conflict: it is shown and left as it is. Directories that
tools rebuild, such as node_modules, files above 256 MiB, sockets and devices
are not brought back; paddock show tells which. Programs that run meanwhile,
such as a database, do not know that their files went back in time.

Undo is a step itself: paddock redo takes it back.

Exit status: 0; 1 if there was a conflict; 125 if nothing could be undone.`,
		Example: `  paddock undo
  paddock undo 12
  paddock undo 12 src/main.go
  paddock undo --to 10
  paddock undo --sandbox "$id"`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			return a.undo(c.Context(), f, args)
		},
	}
	fs := c.Flags()
	f.register(fs)
	fs.Int64Var(&f.to, "to", 0, "undo this `step` and all steps of this directory after it")
	fs.BoolVar(&f.json, "json", false, "answer with one JSON object: what was brought back, and the conflicts")
	return c
}

func (a *App) redoCommand() *cobra.Command {
	f := &undoFlags{}
	c := &cobra.Command{
		Use:   "redo [flags]",
		Short: "Take the last undo of this directory back",
		Long: `Take the last undo of this directory back, that is not taken back yet.

Exit status: 0; 1 if there was a conflict; 125 if there is nothing to redo.`,
		Example: "  paddock redo",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.steps(c.Context(), &f.stepFlags, func(ctx context.Context, from stepSource) error {
				undone, err := undoneOf(ctx, from)
				if err != nil {
					return err
				}
				r, err := from.latest(ctx, func(r *step.Record) bool {
					return len(r.Undoes) > 0 && !undone.redo[r.Number] && !undone.steps[r.Number]
				})
				if err != nil {
					return WithHint(fmt.Errorf("there is nothing to redo here: %w", paddock.NotFound), "`paddock steps` lists the steps")
				}
				return a.undoSteps(ctx, from, step.Request{Steps: []int64{r.Number}}, f.json)
			})
		},
	}
	f.register(c.Flags())
	c.Flags().BoolVar(&f.json, "json", false, "answer with one JSON object: what was brought back, and the conflicts")
	return c
}

// undoneSteps are the steps whose effects were undone and not redone, and the undos that took an undo back.
type undoneSteps struct {
	steps map[int64]bool
	redo  map[int64]bool
}

// undoneOf looks which steps are undone now.
func undoneOf(ctx context.Context, from stepSource) (undoneSteps, error) {
	u := undoneSteps{map[int64]bool{}, map[int64]bool{}}
	list, err := from.list(ctx, 0)
	if err != nil {
		return u, err
	}
	by := map[int64][]int64{} // what an undo undid
	for _, r := range list {
		if len(r.Undoes) == 0 {
			continue
		}
		by[r.Number] = r.Undoes
		for _, n := range r.Undoes {
			u.steps[n] = true
			if again := by[n]; again != nil {
				u.redo[r.Number] = true
				for _, m := range again {
					delete(u.steps, m)
				}
			}
		}
	}
	return u, nil
}

func (a *App) undo(ctx context.Context, f *undoFlags, args []string) error {
	return a.steps(ctx, &f.stepFlags, func(ctx context.Context, from stepSource) error {
		q, args, err := f.request(ctx, from, args)
		if err != nil {
			return err
		}
		if q.Paths, err = from.paths(args); err != nil {
			return err
		}
		return a.undoSteps(ctx, from, q, f.json)
	})
}

// request reads which steps are meant, and returns the arguments that name paths.
func (f *undoFlags) request(ctx context.Context, from stepSource, args []string) (q step.Request, paths []string, err error) {
	switch n, err := firstNumber(args); {
	case err == nil && f.to != 0:
		return q, nil, WithHint(fmt.Errorf("a step and --to: %w", paddock.Invalid), "give one of them")
	case err == nil:
		q.Steps = []int64{n}
		return q, args[1:], nil
	case f.to != 0:
		q.To = f.to
		return q, args, nil
	}
	undone, err := undoneOf(ctx, from)
	if err != nil {
		return q, nil, err
	}
	r, err := from.latest(ctx, func(r *step.Record) bool {
		return r.Changed > 0 && len(r.Undoes) == 0 && !undone.steps[r.Number]
	})
	if err != nil {
		return q, nil, err
	}
	q.Steps = []int64{r.Number}
	return q, args, nil
}

// firstNumber reads the first argument as a step's number. A file whose name is a number is named as ./1.
func firstNumber(args []string) (int64, error) {
	if len(args) == 0 {
		return 0, errors.New("no arguments")
	}
	return stepNumber(args[0])
}

// shownPaths is how many paths undo lists.
const shownPaths = 50

// undoSteps undoes steps, and tells what it did.
func (a *App) undoSteps(ctx context.Context, from stepSource, q step.Request, asJSON bool) error {
	result, more, err := from.undo(ctx, q)
	if err != nil {
		return err
	}
	if asJSON {
		if err := PrintJSON(a.Stdout, undoneJSON(result)); err != nil {
			return err
		}
	} else {
		a.tellPlaces(result.Restored, result.Conflicts, fmt.Sprintf("paddock show%s %d", from.flag(), result.Step))
		if more > 0 {
			fmt.Fprintf(a.Stderr, "paddock: %d more paths were brought back or left as they are\n", more)
		}
		switch {
		case result.Step != 0:
			fmt.Fprintf(a.Stderr, "paddock: %d paths were brought back (step %d; `paddock redo%s` takes that back)\n", len(result.Restored), result.Step, from.flag())
		case len(result.Conflicts) == 0:
			fmt.Fprintln(a.Stderr, "paddock: there was nothing to bring back")
		}
	}
	if len(result.Conflicts) > 0 {
		return ExitStatus(1)
	}
	return nil
}

func undoneJSON(r *step.Result) any {
	type place struct {
		Step   int64     `json:"step"`
		Root   step.Text `json:"root"`
		Path   step.Text `json:"path"`
		Note   string    `json:"note,omitempty"`
		Why    string    `json:"why,omitempty"`
		Remedy string    `json:"remedy,omitempty"`
	}
	restored, conflicts := []place{}, []place{}
	for _, p := range r.Restored {
		restored = append(restored, place{Step: p.Step, Root: p.Root, Path: p.Path, Note: p.Note})
	}
	for _, p := range r.Conflicts {
		conflicts = append(conflicts, place{Step: p.Step, Root: p.Root, Path: p.Path, Why: p.Why, Remedy: p.Remedy})
	}
	return struct {
		Step      int64   `json:"step,omitempty"` // of the undo
		Restored  []place `json:"restored"`
		Conflicts []place `json:"conflicts"`
	}{r.Step, restored, conflicts}
}
