package monitor

import (
	"context"
	"slices"

	"github.com/paddock-sandbox/paddock/internal/audit"
)

// A Summary is what a step, or a review, did as a whole.
type Summary struct {
	Files   Files
	Notable []Notable
	Cut     bool // there are more of them
	Exit    int
	Command []string // of Apply
}

// Apply judges the changes of a review before they are applied to the host's files. If it would remove many, Count counts
// what is there before.
func (m *Monitor) Apply(ctx context.Context, s Summary) Decision {
	files := s.Files
	if files.Removed+files.Emptied >= m.o.Removed && m.o.Count != nil {
		n, whole := m.o.Count()
		files.Present, files.Partial = max(0, n-files.Removed), !whole
	}
	m.mu.Lock()
	in := m.input(Apply)
	in.Measured.Files = true
	if m.now != nil {
		in.Earlier = m.earlier(m.now.step)
	}
	in.Step = Step{
		Number: m.last + 1, Exit: s.Exit, Files: &files, Guest: StepGuest{Command: slices.Clone(s.Command), Notable: slices.Clone(s.Notable), Cut: s.Cut},
	}
	f := m.facts(in, commandText(s.Command))
	m.mu.Unlock()
	return m.decide(ctx, f, "")
}

// Summarize sums up changes of a review, of which none is made yet. None of them is Moved: a review tells where a file goes
// and where it comes, and not that it is the same. What comes in a directory that comes too, such as a clone, does not matter
// by its name, as in a step.
func Summarize(list []Change) Summary {
	type place struct {
		root int
		path string
	}
	made := map[place]bool{}
	for _, c := range list {
		if c.What == Created {
			made[place{c.Root, c.Path}] = true
		}
	}
	var s Summary
	var more []Notable
	first := map[Notable]bool{} // of each kind, without its path
	for _, c := range list {
		s.Files.add(&c)
		n, ok := reviewed(&c)
		if !ok || n.Kind != kindKey && inMade(c.Path, func(dir string) bool { return made[place{c.Root, dir}] }) {
			continue
		}
		// One of each kind is always listed, so that no number of one hides another.
		if kind := (Notable{Kind: n.Kind, What: n.What}); !first[kind] {
			first[kind] = true
			s.Notable = append(s.Notable, n)
		} else if len(more) < maxNotable {
			more = append(more, n)
		} else {
			s.Cut = true
		}
	}
	room := max(0, maxNotable-len(s.Notable))
	s.Cut = s.Cut || len(more) > room
	s.Notable = append(s.Notable, more[:min(len(more), room)]...)
	return s
}

// reviewed returns a path of a review that matters.
func reviewed(c *Change) (Notable, bool) {
	n, ok := NotableOf(c.Path, c.What)
	if !ok && c.Link && c.What != Removed {
		n = Notable{Path: audit.Text(c.Path, maxText), Kind: treeKind(c.Path), What: c.What} // what is in it comes into place with it
	}
	return n, n.Kind != ""
}

// add counts a change.
func (f *Files) add(c *Change) {
	switch {
	case c.What == Created:
		f.Created++
	case c.What == Removed && c.rebuilt():
		f.Rebuilt++
	case c.What == Removed:
		f.Removed++
	case c.What == Emptied:
		f.Emptied++
	default:
		f.Changed++
	}
}
