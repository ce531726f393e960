package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// registerReview adds the flag that keeps changes away from directories of this machine.
func registerReview(fs *pflag.FlagSet, review *bool) {
	fs.BoolVar(review, "review", false, "change nothing in directories of this machine, but propose the changes at the end, for paddock apply")
}

// openReviews opens the proposals.
func (a *App) openReviews() (*step.Reviews, error) {
	dir, err := a.Data()
	if err != nil {
		return nil, err
	}
	v, err := step.OpenReviews(filepath.Join(dir, "reviews"), step.Options{})
	if err != nil {
		return nil, fmt.Errorf("the proposals: %w", err)
	}
	return v, nil
}

// reviews opens the proposals, and makes those of commands whose paddock was killed; with again also those of which it was
// tried before.
func (a *App) reviews(ctx context.Context, again bool) (*step.Reviews, error) {
	v, err := a.openReviews()
	if err != nil {
		return nil, err
	}
	list, err := v.Salvage(ctx, again)
	if err != nil {
		a.complain(WithHint(fmt.Errorf("a review that was cut off: %w", err), "`paddock review` tries again; `paddock discard NAME` throws the layer away, with the last part of its path as the name"))
	}
	for i := range list {
		fmt.Fprintf(a.Stderr, "paddock: proposal %d is of a command that was cut off\n", list[i].Number)
	}
	return v, nil
}

// A review is one of a run that goes on. Nil is of a run that is not reviewed.
type review struct {
	reviews *step.Reviews
	layers  *step.Layers
	wg      sync.WaitGroup
	stop    context.CancelFunc // of the watch; nil before it
	full    error              // why the watch ended the command; for others when it has ended
}

// because returns why the command was ended, if this review did it.
func (r *review) because(err error) error {
	if r != nil && r.full != nil {
		return r.full
	}
	return err
}

// reviewing puts a layer over each directory of this machine that the run may write.
func (a *App) reviewing(ctx context.Context, f *runFlags, p *plan, args []string) (*review, error) {
	if !f.review {
		return nil, nil
	}
	if f.undo != "" && f.undo != "off" {
		return nil, WithHint(fmt.Errorf("--review and --undo: with --review there is nothing to undo: %w", paddock.Invalid), "leave --undo out; paddock apply is recorded, and paddock undo takes it back")
	}
	if p.spec.Limits.Disk > mostLayered {
		return nil, WithHint(fmt.Errorf("--review with a disk of %d MiB: a proposal can keep %d MiB: %w", p.spec.Limits.Disk>>20, int64(mostLayered)>>20, paddock.Invalid), "use --disk 8G or less, or leave --review out")
	}
	if p.spec.Tier == paddock.Sim {
		return nil, WithHint(fmt.Errorf("--review: tier sim never changes this machine, and what it changes vanishes: %w", paddock.Unsupported), "leave --tier out, or use --tier jail")
	}
	var roots []step.Root
	seen := map[string]bool{}
	for i := range p.spec.Mounts {
		m := &p.spec.Mounts[i]
		if !m.Write || m.Cache {
			continue
		}
		st, err := os.Stat(m.Source)
		switch {
		case err != nil:
			return nil, fmt.Errorf("--review: %w: %w", err, paddock.NotFound)
		case !st.IsDir():
			return nil, WithHint(fmt.Errorf("--review: %s is a single file: %w", OneLine(m.Source), paddock.Unsupported), "mount the directory that it is in")
		case target(*m) == "/":
			return nil, WithHint(fmt.Errorf("--review: the whole file tree is writable: %w", paddock.Unsupported), "use --workspace DIR, so that only a directory is")
		case seen[m.Source]:
			return nil, WithHint(fmt.Errorf("--review: %s is mounted twice for writing: %w", OneLine(m.Source), paddock.Invalid), "mount it once")
		}
		seen[m.Source] = true
		m.Write, m.Overlay = false, true
		roots = append(roots, step.Root{Path: step.Text(m.Source), Target: step.Text(target(*m))})
	}
	if len(roots) == 0 {
		return nil, WithHint(fmt.Errorf("--review: the command can write no directory of this machine: %w", paddock.Invalid), "add --workspace DIR, or leave --review out")
	}
	v, err := a.reviews(ctx, false)
	if err != nil {
		return nil, err
	}
	l, err := v.Begin(ctx, step.About{Command: args, Roots: roots, Protect: p.spec.Policy.Files.Protect, Monitor: p.judgedBy})
	if err != nil {
		return nil, errors.Join(err, v.Close())
	}
	p.layers, p.changing = l.Dirs(), l.Changing
	return &review{reviews: v, layers: l}, nil
}

// mostLayered is how much layers may take if no limit is given: what a proposal can keep.
const mostLayered = 8 << 30

// watch removes the sandbox of a run whose layers come to take too much.
func (r *review) watch(ctx context.Context, limit int64, b *oneShot) {
	if r == nil {
		return
	}
	if limit <= 0 {
		limit = mostLayered
	}
	watching, stop := context.WithCancel(ctx)
	r.stop = stop
	r.wg.Go(func() {
		r.layers.Watch(watching, limit, func(why string) {
			r.full = WithHint(fmt.Errorf("the command was ended: %s: %w", why, paddock.Exhausted), "raise --disk, which is at most 8G for a review; docs/use/review.md tells what is measured")
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 6*Patience)
			defer cancel()
			_ = b.Remove(ctx) // what is left the removal at the end tells
		})
	})
}

// unwatch ends the watch.
func (r *review) unwatch() {
	if r.stop != nil {
		r.stop()
	}
	r.wg.Wait()
}

// close removes the layers of a run of which there is no proposal.
func (r *review) close(a *App) {
	if r == nil {
		return
	}
	r.unwatch()
	if err := errors.Join(r.layers.Abandon(), r.reviews.Close()); err != nil {
		a.complain(fmt.Errorf("remove the layers of a review: %w", err))
	}
}

// shownChanges is how many paths of a proposal the end of a run lists.
const shownChanges = 20

// propose makes a proposal when the sandbox is gone, and tells it. left is why the sandbox may not be gone.
func (r *review) propose(ctx context.Context, a *App, b *oneShot, exit paddock.Exit, left error) int64 {
	if r == nil {
		return 0
	}
	r.unwatch()
	if left != nil {
		fmt.Fprintln(a.Stderr, "paddock: note: the proposal is made when the sandbox is gone, by the next `paddock review`")
		if err := r.layers.Leave(); err != nil {
			a.complain(err)
		}
		return 0
	}
	// The signal that ended the command must not end this too, but one that comes now may: the layer stays.
	proposing, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	signals, stop := a.Notify(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	over := make(chan struct{})
	r.wg.Go(func() {
		select {
		case <-signals:
			cancel(fmt.Errorf("interrupted: %w", context.Canceled))
		case <-over:
		}
	})
	rec, err := r.layers.Propose(proposing, step.Proposer{Sandbox: string(b.ID()), Tier: b.tier, Exit: exit.Code})
	stop()
	close(over)
	r.wg.Wait()
	cancel(nil)
	if err != nil {
		remedy := "free space, and `paddock review` tries again"
		if errors.Is(err, context.Canceled) {
			remedy = "`paddock review` makes the proposal"
		}
		a.complain(WithHint(err, "nothing of the directory was changed; %s", remedy))
		return 0
	}
	if rec == nil {
		fmt.Fprintln(a.Stderr, "paddock: the command changed nothing")
		return 0
	}
	a.tellProposal(rec)
	return rec.Number
}

// tellProposal tells what a proposal is, and what to type next.
func (a *App) tellProposal(r *step.Record) {
	fmt.Fprintf(a.Stderr, "paddock: proposal %d: %s, none of it is done yet\n", r.Number, pathWords(len(r.Changes), "would change", "would change"))
	shown := 0
	for i := 0; i < len(r.Changes); shown++ {
		c := &r.Changes[i]
		end := i + 1
		for end < len(r.Changes) && takesAlong(c, &r.Changes[end]) {
			end++
		}
		if shown == shownChanges {
			fmt.Fprintf(a.Stderr, "  and %d more\n", len(r.Changes)-i)
			break
		}
		line := proposed(r, c)
		if inside := end - i - 1; inside > 0 {
			line += ", with " + pathWords(inside, "in it", "in it")
		}
		fmt.Fprintf(a.Stderr, "  %s\n", line)
		i = end
	}
	a.tellMissing(r, 3)
	fmt.Fprintf(a.Stderr, "hint: `paddock diff` shows it; `paddock apply %d [PATH…]` makes the changes, with -i one by one; `paddock discard %d` throws them away\n", r.Number, r.Number)
}

// tellMissing tells what of a command is not in its proposal.
func (a *App) tellMissing(r *step.Record, most int) {
	for i, l := range r.Left {
		if i == most {
			fmt.Fprintf(a.Stderr, "paddock: note: %d more paths are not in the proposal; `paddock review --json %d` lists them\n", len(r.Left)-most, r.Number)
			break
		}
		fmt.Fprintf(a.Stderr, "paddock: note: %s is not in the proposal: %s\n", OneLine(rooted(r, l.Root, l.Path)), OneLine(l.Why))
	}
	if r.Incomplete {
		fmt.Fprintln(a.Stderr, "paddock: note: the proposal is incomplete: the run was cut off, or there was more than a proposal can have")
	}
}

// pathWords says what of so many paths is.
func pathWords(n int, one, many string) string {
	if n == 1 {
		return "1 path " + one
	}
	return fmt.Sprintf("%d paths %s", n, many)
}

// takesAlong reports whether a change is in a directory that comes or goes as a whole, with all that is in it.
func takesAlong(dir, c *step.Change) bool {
	comes, goes := dir.Before.Kind == step.Dir && !dir.After.Exists(), dir.After.Kind == step.Dir && !dir.Before.Exists()
	return (comes || goes) && c.Root == dir.Root && strings.HasPrefix(string(c.Path), string(dir.Path)+"/")
}

// proposed is a line about one path of a proposal.
func proposed(r *step.Record, c *step.Change) string {
	mark := "M"
	switch {
	case !c.Before.Exists():
		mark = "D"
	case !c.After.Exists():
		mark = "A"
	}
	line := mark + " " + OneLine(rooted(r, c.Root, c.Path))
	if b, a := &c.Before, &c.After; mark == "M" && b.Kind == a.Kind && b.Mode != a.Mode && b.Kind != step.Symlink {
		line += fmt.Sprintf(" (%04o to %04o)", a.Mode, b.Mode)
	}
	line += toldState(string(r.Roots[c.Root].Path), string(c.Path), &c.After, &c.Before)
	if c.Why != "" {
		line += " (" + OneLine(c.Why) + ")"
	}
	return line
}

// proposals lists those of an argument's directory: without one, the working directory.
func (a *App) proposals(ctx context.Context, v *step.Reviews, all bool) ([]step.Record, error) {
	f, err := (&ownSteps{a: a, all: all}).filter()
	if err != nil {
		return nil, err
	}
	list, err := v.List(ctx, f)
	if err != nil {
		a.complain(fmt.Errorf("the proposals: %w", err))
	}
	return list, nil
}

// proposal chooses one: that with a number, or the only one of the working directory.
func (a *App) proposal(ctx context.Context, v *step.Reviews, args []string) (int64, []string, error) {
	if n, err := firstNumber(args); err == nil {
		return n, args[1:], nil
	}
	list, err := a.proposals(ctx, v, false)
	if err != nil {
		return 0, nil, err
	}
	switch len(list) {
	case 0:
		return 0, nil, WithHint(fmt.Errorf("there is no proposal for this directory: %w", paddock.NotFound), "`paddock run --review -w . -- COMMAND` makes one; `paddock review --all` lists those of all directories")
	case 1:
		return list[0].Number, args, nil
	}
	var numbers []string
	for _, r := range list {
		numbers = append(numbers, strconv.FormatInt(r.Number, 10))
	}
	return 0, nil, WithHint(fmt.Errorf("there are several proposals for this directory: %s: %w", strings.Join(numbers, ", "), paddock.Conflict), "give the number of one; `paddock review` lists them")
}

func (a *App) reviewCommand() *cobra.Command {
	var asJSON, all bool
	c := &cobra.Command{
		Use:   "review [flags] [NUMBER [PATH...]]",
		Short: "List what commands of paddock run --review would change, or show it",
		Long: `List the proposals for this directory: what commands of paddock run --review
would have changed. With the number of one, show it as a unified diff.

A proposal is kept for 14 days. paddock apply makes its changes, and paddock
discard throws it away.

Exit status: 0, or 125 if there is no such proposal.`,
		Example: `  paddock review
  paddock review 3
  paddock review 3 src`,
		DisableFlagsInUseLine: true,
		Args:                  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			v, err := a.reviews(c.Context(), true)
			if err != nil {
				return err
			}
			defer v.Close()
			if len(args) > 0 {
				n, err := stepNumber(args[0])
				if err != nil {
					return WithHint(fmt.Errorf("%.40q is not the number of a proposal: %w", args[0], paddock.Invalid), "`paddock review` lists the proposals for this directory")
				}
				return a.showProposal(c.Context(), v, n, args[1:], asJSON)
			}
			list, err := a.proposals(c.Context(), v, all)
			if err != nil {
				return err
			}
			if asJSON {
				return PrintJSON(a.Stdout, append([]step.Record{}, list...))
			}
			if len(list) == 0 {
				fmt.Fprintln(a.Stderr, "paddock: there are no proposals here; paddock run --review --workspace . makes one")
				return nil
			}
			w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "PROPOSAL\tTIME\tTIER\tEXIT\tPATHS\tCOMMAND")
			for _, r := range list {
				exit := strconv.Itoa(r.Exit)
				if r.Exit < 0 {
					exit = "-"
				}
				fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%d\t%s\n", r.Number, r.Begin.Local().Format("2006-01-02 15:04:05"), OneLine(string(r.Tier)), exit, r.Changed, stepWords(&r))
			}
			return w.Flush()
		},
	}
	fs := c.Flags()
	fs.BoolVar(&all, "all", false, "list the proposals for all directories")
	fs.BoolVar(&asJSON, "json", false, "answer with a JSON list; of one proposal: each path, how it would change, and the diff of its contents")
	return c
}

func (a *App) showProposal(ctx context.Context, v *step.Reviews, n int64, args []string, asJSON bool) error {
	paths, err := a.absolute(args)
	if err != nil {
		return err
	}
	list, err := v.Propositions(ctx, n, paths)
	if err != nil {
		return err
	}
	r, err := v.Read(ctx, n)
	if err != nil {
		return err
	}
	a.tellMissing(r, 1000)
	return a.printDifferences(list, asJSON)
}

// diffProposal shows the newest proposal for the working directory, if no step is newer and no number of a step is given.
func (a *App) diffProposal(ctx context.Context, j *step.Journal, args []string, asJSON bool) (done bool, err error) {
	if len(args) > 0 && strings.Trim(args[0], "0123456789.") == "" && strings.Trim(args[0], ".") != "" {
		return false, nil
	}
	v, err := a.reviews(ctx, false)
	if err != nil {
		return false, err
	}
	defer v.Close()
	list, err := a.proposals(ctx, v, false)
	if err != nil || len(list) == 0 {
		return false, err
	}
	newest := list[len(list)-1]
	f, err := (&ownSteps{a: a}).filter()
	if err != nil {
		return false, err
	}
	f.Last = 1
	steps, err := j.List(ctx, f)
	if err != nil {
		a.complain(fmt.Errorf("the journal of steps: %w", err))
	}
	if len(steps) > 0 && steps[0].End.After(newest.End) {
		return false, nil
	}
	fmt.Fprintf(a.Stderr, "paddock: this is proposal %d, of %s; it is not applied\n", newest.Number, newest.End.Local().Format(time.RFC3339))
	return true, a.showProposal(ctx, v, newest.Number, args, asJSON)
}

func (a *App) discardCommand() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "discard [flags] [NUMBER|LAYER...]",
		Short: "Throw away what a command of paddock run --review proposed",
		Long: `Throw proposals away: without a number, the only one for this directory. With
--all, all of them for this directory, and layers of which no proposal could be
made. The name of such a layer throws that one away. This cannot be taken back.

Exit status: 0, or 125 if there is no such proposal.`,
		Example: `  paddock discard
  paddock discard 3`,
		RunE: func(c *cobra.Command, args []string) error {
			return a.discard(c.Context(), args, all)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "throw away all proposals for this directory, and all layers that were left over")
	return c
}

func (a *App) discard(ctx context.Context, args []string, all bool) error {
	if all && len(args) > 0 {
		return WithHint(fmt.Errorf("a number and --all: %w", paddock.Invalid), "give one of them")
	}
	v, err := a.openReviews() // a layer whose proposal takes for ever can be thrown away
	if err != nil {
		return err
	}
	defer v.Close()
	var numbers []int64
	switch {
	case all:
		list, err := a.proposals(ctx, v, false)
		if err != nil {
			return err
		}
		for _, r := range list {
			numbers = append(numbers, r.Number)
		}
		left, err := v.Layered()
		for _, name := range left {
			err = errors.Join(err, v.DiscardLayer(name))
		}
		if err != nil {
			return err
		}
	case len(args) == 0:
		n, _, err := a.proposal(ctx, v, nil)
		if err != nil {
			return err
		}
		numbers = append(numbers, n)
	}
	layers := 0
	for _, text := range args {
		n, err := stepNumber(text)
		if err != nil && v.DiscardLayer(text) == nil {
			layers++
			continue
		}
		if err != nil {
			return WithHint(fmt.Errorf("%.40q is neither the number of a proposal nor the name of a layer that was left over: %w", text, paddock.Invalid), "`paddock review` lists the proposals for this directory")
		}
		if _, err := v.Read(ctx, n); errors.Is(err, paddock.NotFound) {
			return WithHint(fmt.Errorf("there is no proposal %d: %w", n, paddock.NotFound), "`paddock review --all` lists the proposals")
		}
		numbers = append(numbers, n)
	}
	if layers > 0 && len(numbers) == 0 {
		fmt.Fprintf(a.Stderr, "paddock: discarded what %d commands left over\n", layers)
		return nil
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	if err := v.Discard(ctx, numbers...); err != nil {
		return err
	}
	what := "proposals"
	if len(numbers) == 1 {
		what = "proposal"
	}
	fmt.Fprintf(a.Stderr, "paddock: discarded %d %s\n", len(numbers), what)
	return nil
}
