package monitor

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/audit"
)

// What a Change did.
const (
	Created = "created"
	Edited  = "edited"
	Removed = "removed"
	Moved   = "moved"
	Emptied = "emptied"
	Unseen  = "unseen" // of no known path
)

// A Change is a change of one path of a directory of the host, told before or right after it is made.
type Change struct {
	Root int    // number of the directory
	Path string // below it
	What string // one of the constants
	From string // of Moved: the earlier path; of Created: the file that it is a hard link to

	FromRoot int // of Moved: number of the directory that From is below

	// Was is where it was when the step began, if that is another path: it is judged by both. Old means that it, or a directory
	// that it is in, may be of before the step, whatever the step made around it.
	Was string
	Old bool
	// Links is how many names a file has, if it has several, and Inode which file it is.
	Links uint64
	Inode [2]uint64

	Half Half // of Moved: of an exchange, which is told as two moves
	Link bool // of Created: it is a symbolic link
}

// A Half is one of the two moves of an exchange.
type Half uint8

// Halves of an exchange. Zero is a move of another sort.
const (
	FirstHalf  Half = 1
	SecondHalf Half = 2
)

// Change notes a change, and judges it if it is of a kind that matters, or the one removal too many. Until it returns, a
// change that destroys something is not made. A change that was judged before in the step gets the same verdict again: who
// was refused and tries again is refused again. What came of the decision must be told to Settled.
func (m *Monitor) Change(ctx context.Context, c Change) Decision {
	m.mu.Lock()
	p := m.current()
	if p.step.Files == nil {
		m.mu.Unlock()
		return Decision{Verdict: Allow}
	}
	fresh, removed := m.tally(p, &c)
	gone := p.step.Files.Removed + p.step.Files.Emptied
	many := removed && gone >= p.next
	if d, kept := p.kept(&c, fresh, removed); kept && (d.Verdict != Allow || !many) {
		m.mu.Unlock()
		return m.repeat(d)
	} else if kept {
		fresh = nil
	}
	if fresh == nil && !many {
		m.mu.Unlock()
		return Decision{Verdict: Allow}
	}
	if many {
		p.next, p.judged = p.next+p.next/2+1, gone
	}
	p.effects++
	beyond, count := p.effects > maxEffects, m.o.Count
	m.mu.Unlock()
	n, whole := 0, false
	if many && count != nil {
		n, whole = count()
	}
	m.mu.Lock()
	if many {
		p.step.Files.Present, p.step.Files.Partial = n, !whole
	}
	in := m.input(Effect)
	f := m.facts(in, p.text)
	f.fresh, f.beyond = fresh, beyond
	m.mu.Unlock()
	d := m.decide(ctx, f, "")
	m.mu.Lock()
	defer m.mu.Unlock()
	p.keep(&c, fresh, many, d)
	return d
}

// Settled notes what came of a decision about a change: whether it goes on, and why not. From then on the step gets the same
// again.
func (m *Monitor) Settled(c Change, d Decision, goesOn bool, why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.now
	if p == nil || p.step.Number != d.Step || d.Verdict == Allow || d.Failed {
		return
	}
	fresh := m.notable(p, &c)
	if !goesOn {
		d.Verdict, d.Reason, d.Rule = Deny, why, "" // the reason names the rule, and nobody's consent to another path is meant
		if fresh != nil {
			p.keep(&c, fresh, false, d)
		}
		if p.many != nil && c.What == Removed {
			p.many = &d
		}
		return
	}
	if d.Judge != judgeOfRules {
		p.strict = nil
	}
	p.waived = p.waived || d.Rule == RuleTooMany
	if c.What == Removed {
		p.many = nil
	}
	if fresh != nil {
		p.keep(&c, fresh, false, Decision{Moment: Effect, Step: d.Step, Verdict: Allow, Judge: d.Judge})
	}
}

// kept returns what was decided of the same before.
func (p *present) kept(c *Change, fresh *Notable, removed bool) (Decision, bool) {
	if removed && p.many != nil {
		return *p.many, true
	}
	if fresh == nil {
		return Decision{}, false
	}
	d, ok := p.told[c.key(fresh)]
	return d, ok
}

// keep keeps what was decided. No verdict at all is not kept: the same is put to the judge again.
func (p *present) keep(c *Change, fresh *Notable, many bool, d Decision) {
	d.Latency = 0
	switch {
	case d.Failed && many:
		p.next = p.judged + 1
	case d.Failed:
	case fresh != nil && len(p.told) < maxTold:
		p.told[c.key(fresh)] = d
	}
	if many && !d.Failed && d.Verdict != Allow {
		p.many = &d
	}
}

// key is what a decision about a change is kept for. The path of a Notable may be cut.
func (c *Change) key(n *Notable) [sha256.Size]byte {
	of := c.Path
	if n.Kind == kindRepository && n.What == Moved { // from there
		of = c.From
	}
	return sha256.Sum256(fmt.Appendf(nil, "%d %s %s %d %s%s", c.Root, n.What, n.Kind, len(of), of, c.Was))
}

// repeat gives a decision of an earlier change again.
func (m *Monitor) repeat(d Decision) Decision {
	if d.Verdict == Allow {
		return d
	}
	m.mu.Lock()
	d.Cached = true
	m.counts[d.Verdict]++
	p := m.current()
	p.repeats++
	f, record := m.facts(m.input(Effect), p.text), p.repeats <= maxRepeats
	m.mu.Unlock()
	if record {
		m.record(f, d)
	}
	return d
}

// tally counts a change. It returns the path if it matters by itself, and whether something was removed that counts. The
// caller holds m.mu.
func (m *Monitor) tally(p *present, c *Change) (fresh *Notable, removed bool) {
	files := p.step.Files
	id := func(path string) string { return fmt.Sprintf("%d/%s", c.Root, path) }
	made := p.made[id(c.Path)] && !c.Old
	m.linked(c)
	switch c.What {
	case Created:
		files.Created++
		if len(p.made) < maxKnown {
			p.made[id(c.Path)] = true
		}
	case Removed:
		delete(p.made, id(c.Path))
		switch {
		case made:
			return nil, false // nothing that was there before the step
		case c.rebuilt():
			files.Rebuilt++
		default:
			files.Removed++
			removed = true
		}
	case Moved:
		m.moved(p, c)
	case Emptied:
		files.Emptied++
	case Unseen:
		files.Changed++
	default:
		if !made {
			files.Changed++
		}
	}
	fresh = m.notable(p, c)
	if fresh != nil {
		p.list(*fresh)
		if fresh.Kind == kindKey {
			fresh = nil // it matters only together with a connection
		}
	}
	return fresh, removed
}

// rebuilt reports whether tools rebuild a file by all its names that are known.
func (c *Change) rebuilt() bool { return rebuildable(c.Path) && (c.Was == "" || rebuildable(c.Was)) }

// moved counts a move. The caller holds m.mu.
func (m *Monitor) moved(p *present, c *Change) {
	from, to := fmt.Sprintf("%d/%s", c.FromRoot, c.From), fmt.Sprintf("%d/%s", c.Root, c.Path)
	was, is := p.made[from], p.made[to]
	set := func(name string, made bool) {
		if delete(p.made, name); made {
			p.made[name] = true
		}
	}
	switch c.Half {
	case FirstHalf:
		set(from, is)
		set(to, was)
		p.step.Files.Changed++
	case SecondHalf: // which the first one has turned round
		p.step.Files.Changed++
	default:
		p.step.Files.Changed++
		if was {
			set(from, false)
			set(to, true)
		}
	}
}

// notable returns the path of a change that matters: of all names that are known of the file, the one that matters most. The
// caller holds m.mu.
func (m *Monitor) notable(p *present, c *Change) *Notable {
	if c.What == Unseen {
		return &Notable{Path: "what cannot be named", Kind: kindUnseen, What: c.What}
	}
	best := m.notableName(p, c)
	if best != nil && best.Kind != kindKey {
		return best
	}
	others := []Notable{}
	if c.Was != "" {
		others = append(others, Notable{Path: c.Was, Kind: notableKind(c.Was)})
	}
	if c.What == Created && c.From != "" {
		others = append(others, Notable{Path: c.From, Kind: notableKind(c.From)})
	}
	if c.Links > 1 && c.What == Edited {
		others = append(others, m.otherName(c))
	}
	for _, n := range others {
		if n.Kind == kindRepository && c.What != Removed && c.What != Moved || n.Kind == kindKey && best != nil {
			continue // git writes it all the time
		}
		if n.Kind != "" {
			n.Path, n.What = audit.Text(n.Path, maxText), c.What
			if best = &n; n.Kind != kindKey {
				break
			}
		}
	}
	return best
}

// notableName judges a change by the name that it has, or has now.
func (m *Monitor) notableName(p *present, c *Change) *Notable {
	n := Notable{Path: audit.Text(c.Path, maxText), Kind: notableKind(c.Path), What: c.What}
	if n.Kind == "" && (c.What == Moved || c.What == Created && c.Link) {
		n.Kind = treeKind(c.Path) // what is in it comes into place without a change of its own
	}
	if c.What == Moved && n.Kind == "" {
		if notableKind(c.From) == kindRepository {
			n.Path, n.Kind = audit.Text(c.From, maxText), kindRepository
		}
	} else if n.Kind == kindRepository && c.What != Removed {
		n.Kind = "" // git writes it all the time
	}
	if n.Kind == "" || m.within(p, c) && n.Kind != kindKey {
		return nil
	}
	return &n
}

// Files with several names are known by their numbers, in all steps: what is written by one name is written by all.
type links struct {
	notable map[[2]uint64]Notable // those that have, or had, a name that matters
	mixed   map[[2]uint64]bool    // those with a name in a directory that tools rebuild, and one elsewhere
	lost    bool                  // not all are known
}

// maxLinks bounds the files with several names that are known.
const maxLinks = 10_000

// linked notes the names of a file that has several. The caller holds m.mu.
func (m *Monitor) linked(c *Change) {
	l := &m.links
	within := func(path string) bool { return path == "" || rebuildable(path) }
	outside := !within(c.Path) || !within(c.From) || !within(c.Was)
	inside := rebuildable(c.Path) || rebuildable(c.From) || rebuildable(c.Was)
	if c.Links < 2 {
		// Whatever is in a directory comes along.
		l.lost = l.lost || c.What == Moved && outside && inside
		return
	}
	for _, name := range []string{c.Path, c.From, c.Was} {
		kind := notableKind(name)
		if kind == "" || kind == kindRepository {
			continue
		}
		if len(l.notable) >= maxLinks {
			l.lost = true
			return
		}
		l.notable[c.Inode] = Notable{Path: audit.Text(name, maxText), Kind: kind}
		break
	}
	if outside && inside {
		if l.mixed[c.Inode] = true; len(l.mixed) > maxLinks {
			l.lost = true
			clear(l.mixed)
		}
	}
}

// otherName returns what matters of the other names of a file. Where tools rebuild all of them, nobody else has it. The caller
// holds m.mu.
func (m *Monitor) otherName(c *Change) Notable {
	if n, ok := m.links.notable[c.Inode]; ok {
		return n
	}
	if rebuildable(c.Path) && !m.links.mixed[c.Inode] && !m.links.lost {
		return Notable{}
	}
	return Notable{Path: c.Path, Kind: kindLinked}
}

// list lists a path that matters. The newest is always in the list, and so is one that is named like a key, if there was one.
func (p *present) list(n Notable) {
	g := &p.step.Guest
	if slices.Contains(g.Notable, n) {
		return
	}
	if len(g.Notable) < maxNotable {
		g.Notable = append(g.Notable, n)
		return
	}
	at := maxNotable - 1
	if key := func(n Notable) bool { return n.Kind == kindKey && n.What != Removed }; key(g.Notable[at]) && !key(n) {
		at--
	}
	g.Notable[at], g.Cut = n, true
}

// within reports whether a path is in a tree that the step itself made, such as a clone of a repository or an unpacked
// archive: nothing of the user's acts on it. The caller holds m.mu.
func (m *Monitor) within(p *present, c *Change) bool {
	if c.Old {
		return false
	}
	return inMade(c.Path, func(dir string) bool { return p.made[fmt.Sprintf("%d/%s", c.Root, dir)] })
}

// inMade reports whether a path is in a directory that was made, of those that do not count by their names: such as .github,
// which may have been made for this very file.
func inMade(path string, made func(dir string) bool) bool {
	for {
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			return false
		}
		path = path[:i]
		base := path[strings.LastIndexByte(path, '/')+1:]
		if strings.HasPrefix(base, ".") || base == "workflows" || base == "hooks" || base == "actions" {
			continue
		}
		if made(path) {
			return true
		}
	}
}

// End judges a step that has ended by its record, which knows more than what was told while it ran.
func (m *Monitor) End(ctx context.Context, s Summary) Decision {
	m.mu.Lock()
	p := m.current()
	files := s.Files
	if p.step.Files != nil { // what was told is not forgotten, even if it was put back
		files.Rebuilt = max(files.Rebuilt, p.step.Files.Rebuilt)
		if was := p.step.Files; p.joined { // the record is of one of the commands
			files.Created, files.Changed = max(files.Created, was.Created), max(files.Changed, was.Changed)
			files.Removed, files.Emptied = max(files.Removed, was.Removed), max(files.Emptied, was.Emptied)
		}
		files.Present, files.Partial = p.step.Files.Present, p.step.Files.Partial
	}
	gone := files.Removed + files.Emptied
	judged := gone >= m.o.Removed && gone > p.judged
	count := m.o.Count
	m.mu.Unlock()
	if judged && count != nil {
		n, whole := count()
		files.Present, files.Partial = n, !whole
	}
	m.mu.Lock()
	if p.step.Files != nil {
		p.step.Files = &files
	}
	if !judged || p.step.Files == nil {
		m.mu.Unlock()
		return Decision{Verdict: Allow}
	}
	in := m.input(Effect)
	f := m.facts(in, p.text)
	m.mu.Unlock()
	return m.decide(ctx, f, "")
}
