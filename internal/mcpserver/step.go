package mcpserver

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of what is told about steps.
const (
	mostSteps    = 100
	usualDiff    = 16 << 10
	mostDiff     = 64 << 10
	mostRestored = 50
)

type changesIn struct {
	Sandbox string   `json:"sandbox"`
	Since   int64    `json:"since"`
	Paths   []string `json:"paths"`
	Offset  int      `json:"offset"`
	Limit   int      `json:"limit"`
}

type changesOut struct {
	Steps []string `json:"steps"`
	Diff  string   `json:"diff"`
	Next  int      `json:"next,omitempty"` // offset to go on at
	Total int      `json:"total"`
}

// journal gives the journal of a sandbox, or says how one is had.
func (b *box) journal() (paddock.Journal, error) {
	if b.labels[labelDirectory] != shownWrite {
		return nil, fmt.Errorf("changes are recorded in sandboxes that have the directory writable (sandbox_create with directory: write): %w", paddock.Unsupported)
	}
	return paddock.JournalOf(b.Sandbox)
}

func changes(ctx context.Context, c *call, in changesIn) (changesOut, error) {
	if in.Since < 0 || in.Offset < 0 || in.Limit < 0 || in.Limit > mostDiff {
		return changesOut{}, fmt.Errorf("since and offset are not negative, and limit is at most %d: %w", mostDiff, paddock.Invalid)
	}
	b, err := c.open(ctx, in.Sandbox)
	if err != nil {
		return changesOut{}, err
	}
	j, err := b.journal()
	if err != nil {
		return changesOut{}, err
	}
	paths, err := b.all(in.Paths)
	if err != nil {
		return changesOut{}, err
	}
	steps, err := j.Steps(ctx, paddock.StepFilter{Last: mostSteps})
	if err != nil {
		return changesOut{}, err
	}
	steps = slices.DeleteFunc(steps, func(s paddock.Step) bool { return s.Number <= in.Since || s.Changed == 0 && s.Missed == 0 })
	out := changesOut{Steps: []string{}}
	if len(steps) == 0 {
		c.text = "nothing was changed."
		return out, nil
	}
	for _, s := range steps {
		text := fmt.Sprintf("%d: %s %s, %d changed", s.Number, s.Kind, clip(oneLine(strings.Join(s.Command, " ")), longCommand), s.Changed)
		if s.Missed > 0 {
			text += fmt.Sprintf(", %d cannot be undone", s.Missed)
		}
		out.Steps = append(out.Steps, text)
	}
	diffs, err := j.Diff(ctx, steps[0].Number, steps[len(steps)-1].Number, paths)
	if err != nil {
		return changesOut{}, err
	}
	whole := b.unified(diffs)
	out.Total = len(whole)
	limit := in.Limit
	if limit == 0 {
		limit = usualDiff
	}
	at := min(in.Offset, len(whole))
	end := min(at+limit, len(whole))
	out.Diff = plain([]byte(whole[at:end]))
	var t strings.Builder
	if in.Offset == 0 {
		t.WriteString("steps:\n" + strings.Join(out.Steps, "\n") + "\n\n")
	}
	t.WriteString(out.Diff)
	if end < len(whole) {
		out.Next = end
		endLine(&t)
		fmt.Fprintf(&t, "[%d of %d bytes; go on at offset %d]", end, len(whole), end)
	}
	c.text = t.String()
	return out, nil
}

// unified writes differences one behind the other.
func (b *box) unified(diffs []paddock.StepDiff) string {
	var t strings.Builder
	for _, d := range diffs {
		fmt.Fprintf(&t, "%s %s", strings.Join(d.Kinds, ", "), b.short(d.Path))
		if d.From != "" {
			fmt.Fprintf(&t, " (from %s)", b.short(d.From))
		}
		switch {
		case d.Binary:
			t.WriteString(" (no text)")
		case d.Why != "":
			fmt.Fprintf(&t, " (%s)", oneLine(d.Why))
		}
		t.WriteByte('\n')
		t.WriteString(d.Text)
		if d.Text != "" && !strings.HasSuffix(d.Text, "\n") {
			t.WriteByte('\n')
		}
	}
	return t.String()
}

func (b *box) all(names []string) ([]string, error) {
	var list []string
	for _, name := range names {
		p, err := b.inside(name)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

type undoIn struct {
	Sandbox string   `json:"sandbox"`
	Steps   []int64  `json:"steps"`
	To      int64    `json:"to"`
	Paths   []string `json:"paths"`
}

type undoOut struct {
	Step      int64    `json:"step,omitempty"` // whose undo is a redo
	Undone    []int64  `json:"undone"`
	Restored  []string `json:"restored"`
	Conflicts []string `json:"conflicts"`
	More      int      `json:"more,omitempty"`
}

func undo(ctx context.Context, c *call, in undoIn) (undoOut, error) {
	if in.To < 0 || in.To > 0 && len(in.Steps) > 0 {
		return undoOut{}, fmt.Errorf("give steps, or the step to go back to, or neither for the last one: %w", paddock.Invalid)
	}
	b, err := c.open(ctx, in.Sandbox)
	if err != nil {
		return undoOut{}, err
	}
	j, err := b.journal()
	if err != nil {
		return undoOut{}, err
	}
	paths, err := b.all(in.Paths)
	if err != nil {
		return undoOut{}, err
	}
	steps := in.Steps
	if len(steps) == 0 && in.To == 0 {
		last, err := lastChange(ctx, j)
		if err != nil {
			return undoOut{}, err
		}
		steps = []int64{last}
	}
	done, err := j.Undo(ctx, paddock.Undo{Steps: steps, To: in.To, Paths: paths})
	if err != nil {
		return undoOut{}, err
	}
	out := undoOut{Step: done.Step, Undone: append([]int64{}, steps...), Restored: []string{}, Conflicts: []string{}, More: done.More}
	for _, p := range done.Restored {
		out.Restored = append(out.Restored, strings.TrimSuffix(b.short(p.Path)+": "+oneLine(p.Note), ": "))
	}
	for _, p := range done.Conflicts {
		out.Conflicts = append(out.Conflicts, b.short(p.Path)+": "+oneLine(p.Why))
	}
	out.tell(c)
	return out, nil
}

func (out *undoOut) tell(c *call) {
	var t strings.Builder
	fmt.Fprintf(&t, "%d paths are as they were: %s\n", len(out.Restored), enough(out.Restored, mostRestored))
	if len(out.Restored) == 0 {
		t.Reset()
		t.WriteString("nothing was brought back.\n")
	}
	if len(out.Conflicts) > 0 {
		fmt.Fprintf(&t, "%d are left as they are, because they changed since: %s\n", len(out.Conflicts), enough(out.Conflicts, mostRestored))
	}
	if out.Step > 0 {
		fmt.Fprintf(&t, "This is step %d; undo it to have the changes again.", out.Step)
	}
	c.text = strings.TrimSpace(t.String())
	for _, list := range []*[]string{&out.Restored, &out.Conflicts} {
		if n := len(*list) - mostRestored; n > 0 {
			*list, out.More = (*list)[:mostRestored], out.More+n
		}
	}
}

// lastChange gives the newest step that changed something, and is not undone.
func lastChange(ctx context.Context, j paddock.Journal) (int64, error) {
	steps, err := j.Steps(ctx, paddock.StepFilter{Last: mostSteps})
	if err != nil {
		return 0, err
	}
	var gone []int64
	for _, s := range slices.Backward(steps) {
		switch {
		case slices.Contains(gone, s.Number):
		case s.Kind == "undo":
			gone = append(gone, s.Undoes...)
		case s.Changed > 0:
			return s.Number, nil
		}
	}
	return 0, fmt.Errorf("no step of this sandbox changed anything that could be undone: %w", paddock.NotFound)
}
