package git

import (
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// What the next line of a graph is.
type phase uint8

const (
	padding phase = iota
	skipped
	atCommit
	afterMerge
	collapsing
)

// A graph draws histories beside their commits, with git's own rules of which
// line goes where.
type graph struct {
	w       *work
	commit  plumbing.Hash
	parents []plumbing.Hash

	columns, fresh []plumbing.Hash // of this commit, and of the next
	mapping, old   []int
	size           int // of mapping
	width          int
	index, before  int // of the commit's column, and of the commit before
	layout         int // of a merge: 0 begins to the left
	added, prior   int // edges
	now, last      phase
}

func (g *graph) update(h plumbing.Hash, parents []plumbing.Hash) {
	g.commit, g.parents = h, parents
	g.before = g.index
	g.place()
	if g.now != padding {
		g.now = skipped
	} else {
		g.now = atCommit
	}
}

// place gives each line of history its column.
func (g *graph) place() {
	g.columns, g.fresh = g.fresh, nil
	g.size = 2 * (len(g.columns) + len(g.parents) + 1)
	g.w.t.Step(1 + g.size)
	g.mapping = make([]int, g.size+2)
	if len(g.old) < len(g.mapping) {
		g.old = append(g.old, make([]int, len(g.mapping)-len(g.old))...)
	}
	for i := range g.mapping {
		g.mapping[i] = -1
	}
	g.width, g.prior, g.added = 0, g.added, 0
	seen := false
	for i := 0; i <= len(g.columns); i++ {
		h := g.commit
		if i < len(g.columns) {
			h = g.columns[i]
		} else if seen {
			break
		}
		if h != g.commit {
			g.insert(h, -1)
			continue
		}
		seen = true
		g.index, g.layout = i, -1
		for _, p := range g.parents {
			g.insert(p, i)
		}
		if len(g.parents) == 0 {
			g.width += 2
		}
	}
	for g.size > 1 && g.mapping[g.size-1] < 0 {
		g.size--
	}
}

func (g *graph) find(h plumbing.Hash) int {
	for i, c := range g.fresh {
		if c == h {
			return i
		}
	}
	return -1
}

func (g *graph) insert(h plumbing.Hash, at int) {
	i := g.find(h)
	if i < 0 {
		i = len(g.fresh)
		g.fresh = append(g.fresh, h)
	}
	where := g.width
	switch {
	case len(g.parents) > 1 && at > -1 && g.layout == -1:
		far := at - i
		shift := 1
		if far > 1 {
			shift = 2*far - 3
		}
		g.layout = 1
		if far > 0 {
			g.layout = 0
		}
		g.added = len(g.parents) + g.layout - 2
		where = g.width + (g.layout-1)*shift
		g.width += 2 * g.layout
	case g.added > 0 && g.width >= 2 && i == g.mapping[g.width-2]:
		where = g.width - 2
		g.added = -1
	default:
		g.width += 2
	}
	g.mapping[where] = i
}

func (g *graph) correct() bool {
	for i, to := range g.mapping[:g.size] {
		if to >= 0 && to != i/2 {
			return false
		}
	}
	return true
}

func (g *graph) become(p phase) { g.last, g.now = g.now, p }

// next gives the next line; commit tells that it has the commit's mark.
func (g *graph) next() (text string, commit bool) {
	var b strings.Builder
	switch g.now {
	case padding:
		for range g.fresh {
			b.WriteString("| ")
		}
	case skipped:
		b.WriteString("...")
		g.become(atCommit)
	case atCommit:
		g.commitLine(&b)
		commit = true
	case afterMerge:
		g.mergeLine(&b)
	case collapsing:
		g.collapse(&b)
	}
	if n := g.width - b.Len(); n > 0 {
		b.WriteString(strings.Repeat(" ", n))
	}
	return b.String(), commit
}

func (g *graph) commitLine(b *strings.Builder) {
	seen := false
	for i := 0; i <= len(g.columns); i++ {
		h := g.commit
		if i < len(g.columns) {
			h = g.columns[i]
		} else if seen {
			break
		}
		switch {
		case h == g.commit:
			seen = true
			b.WriteByte('*')
		case seen && g.added > 1,
			seen && g.added == 1 && g.last == afterMerge && g.prior > 0 && g.before < i:
			b.WriteByte('\\')
		case seen && g.added == 1:
			b.WriteByte('|')
		case g.last == collapsing && 2*i+1 < len(g.old) && g.old[2*i+1] == i && g.mapping[2*i] < i:
			b.WriteByte('/')
		default:
			b.WriteByte('|')
		}
		b.WriteByte(' ')
	}
	switch {
	case len(g.parents) > 1:
		g.become(afterMerge)
	case g.correct():
		g.become(padding)
	default:
		g.become(collapsing)
	}
}

func (g *graph) mergeLine(b *strings.Builder) {
	const marks = `/|\`
	seen, joined := false, false
	for i := 0; i <= len(g.columns); i++ {
		h := g.commit
		if i < len(g.columns) {
			h = g.columns[i]
		} else if seen {
			break
		}
		switch {
		case h == g.commit:
			seen = true
			at := max(g.layout, 0)
			for j := range g.parents {
				b.WriteByte(marks[at])
				if at < 2 {
					at++
				} else if g.added > 0 || j < len(g.parents)-1 {
					b.WriteByte(' ')
				}
			}
			if g.added == 0 {
				b.WriteByte(' ')
			}
		case seen && g.added > 0:
			b.WriteString(`\ `)
		case seen:
			b.WriteString("| ")
		default:
			b.WriteByte('|')
			if g.layout != 0 || i != g.index-1 {
				if joined {
					b.WriteByte('_')
				} else {
					b.WriteByte(' ')
				}
			}
		}
		joined = joined || h == g.parents[0]
	}
	if g.correct() {
		g.become(padding)
	} else {
		g.become(collapsing)
	}
}

func (g *graph) collapse(b *strings.Builder) {
	used, edge, target := false, -1, -1
	old := append([]int(nil), g.mapping[:g.size]...)
	for i := range g.size {
		g.mapping[i] = -1
	}
	for i, to := range old {
		switch {
		case to < 0:
		case to*2 == i:
			g.mapping[i] = to
		case g.mapping[i-1] < 0:
			g.mapping[i-1] = to
			if edge == -1 {
				edge, target = i, to
				for j := to*2 + 3; j < i-2; j += 2 {
					g.mapping[j] = to
				}
			}
		case g.mapping[i-1] == to:
		default:
			g.mapping[i-2] = to
			if edge == -1 {
				edge, target = i-1, to
				for j := to*2 + 3; j < i-2; j += 2 {
					g.mapping[j] = to
				}
			}
		}
	}
	for len(g.old) < g.size {
		g.old = append(g.old, -1)
	}
	copy(g.old, g.mapping[:g.size])
	if g.mapping[g.size-1] < 0 {
		g.size--
	}
	for i := range g.size {
		switch to := g.mapping[i]; {
		case to < 0:
			b.WriteByte(' ')
		case to*2 == i:
			b.WriteByte('|')
		case to == target && i != edge-1:
			if i != to*2+3 {
				g.mapping[i] = -1
			}
			used = true
			b.WriteByte('_')
		default:
			if used && i < edge {
				g.mapping[i] = -1
			}
			b.WriteByte('/')
		}
	}
	if g.correct() {
		g.become(padding)
	}
}

// between gives the line between two commits.
func (g *graph) between() string {
	if g.now != atCommit {
		s, _ := g.next()
		return s
	}
	var b strings.Builder
	for range g.columns {
		b.WriteString("| ")
	}
	if n := g.width - b.Len(); n > 0 {
		b.WriteString(strings.Repeat(" ", n))
	}
	g.last = padding
	return b.String()
}

// sorted puts commits in an order in which no parent comes before a child.
func sorted(list []*object.Commit, parents map[plumbing.Hash][]plumbing.Hash) []*object.Commit {
	at := map[plumbing.Hash]*object.Commit{}
	children := map[plumbing.Hash]int{}
	for _, c := range list {
		at[c.Hash] = c
		for _, p := range parents[c.Hash] {
			children[p]++
		}
	}
	var stack, out []*object.Commit
	for i := len(list) - 1; i >= 0; i-- {
		if children[list[i].Hash] == 0 {
			stack = append(stack, list[i])
		}
	}
	for len(stack) > 0 {
		c := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		out = append(out, c)
		for _, p := range parents[c.Hash] {
			if children[p]--; children[p] == 0 && at[p] != nil {
				stack = append(stack, at[p])
			}
		}
	}
	return out
}

// lineage gives the parents of each commit as the graph has them: those that
// are shown too, or would be further down.
func (w *work) lineage(list []*object.Commit, stops []*object.Commit, rewrite bool) (map[plumbing.Hash][]plumbing.Hash, error) {
	hidden := map[plumbing.Hash]bool{}
	if len(stops) > 0 {
		if err := w.walk(stops, nil, func(c *object.Commit) (bool, error) { hidden[c.Hash] = true; return true, nil }); err != nil {
			return nil, err
		}
	}
	shown := map[plumbing.Hash]bool{}
	for _, c := range list {
		shown[c.Hash] = true
	}
	out := map[plumbing.Hash][]plumbing.Hash{}
	for _, c := range list {
		for _, p := range c.ParentHashes {
			for rewrite && !shown[p] && !hidden[p] {
				w.t.Step(8)
				x, err := w.repo.CommitObject(p)
				if err != nil {
					return nil, err
				}
				if len(x.ParentHashes) == 0 {
					p = plumbing.ZeroHash
					break
				}
				p = x.ParentHashes[0]
			}
			if !hidden[p] && !p.IsZero() {
				out[c.Hash] = append(out[c.Hash], p)
			}
		}
	}
	return out, nil
}

func (w *work) graph(list, stops []*object.Commit, s style, marks map[plumbing.Hash][]string) error {
	parents, err := w.lineage(list, stops, len(s.paths) > 0)
	if err != nil {
		return err
	}
	g := &graph{w: w}
	oneLine := s.oneline || s.format != "" && !s.separator
	for i, c := range sorted(list, parents) {
		g.update(c.Hash, parents[c.Hash])
		if i > 0 && !oneLine {
			w.printf("%s\n", g.between())
		}
		var b strings.Builder
		w.capture = &b
		err := w.showCommit(c, s, marks, true)
		w.capture = nil
		if err != nil {
			return err
		}
		for {
			text, mark := g.next()
			w.printf("%s", text)
			if mark {
				break
			}
			w.printf("\n")
		}
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		for j, l := range lines {
			if j > 0 {
				text, _ := g.next()
				w.printf("%s", text)
			}
			w.printf("%s\n", l)
		}
		for g.now != padding {
			text, _ := g.next()
			w.printf("%s\n", text)
		}
	}
	return nil
}
