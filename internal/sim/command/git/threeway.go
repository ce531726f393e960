package git

import (
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// A conflict is a file that could not be merged: what the base, we and they
// have of it, and what stands in the worktree for it.
type conflict struct {
	name   string
	stages [3]*item
	text   []byte
	mode   filemode.FileMode
}

// A merger merges what two sides made of a base.
type merger struct {
	w                  *work
	base, ours, theirs side
	us, them           string // of the markers

	result    side
	conflicts []conflict
	said      []string
}

// edit is a change of one side: base lines [at, at+gone) became lines
// [from, from+come) of it.
type edit struct{ at, gone, from, come int }

func (c *comparison) edits() []edit {
	var out []edit
	i, j := 0, 0
	for i < len(c.a.lines) || j < len(c.b.lines) {
		e := edit{at: i, from: j}
		for i < len(c.a.lines) && c.a.changed[i] {
			i++
		}
		for j < len(c.b.lines) && c.b.changed[j] {
			j++
		}
		if e.gone, e.come = i-e.at, j-e.from; e.gone+e.come > 0 {
			out = append(out, e)
			continue
		}
		i++
		j++
	}
	return out
}

// A piece of a merge is clean, or what both sides say.
type piece struct {
	clean        []string
	ours, theirs []string
	conflict     bool
}

// text merges three texts.
func (m *merger) text(base, ours, theirs []byte) (merged []byte, conflicts int) {
	o, a, b := splitLines(string(base)), splitLines(string(ours)), splitLines(string(theirs))
	m.w.t.Step(1 + (len(base)+len(ours)+len(theirs))/8)
	x, y := m.w.compare(o, a).edits(), m.w.compare(o, b).edits()
	var out []piece
	at, atA, atB := 0, 0, 0
	for len(x) > 0 || len(y) > 0 {
		m.w.t.Step(4)
		lo := len(o) + 1
		if len(x) > 0 {
			lo = x[0].at
		}
		if len(y) > 0 {
			lo = min(lo, y[0].at)
		}
		skip := lo - at
		out = append(out, piece{clean: a[atA : atA+skip]})
		atA, atB = atA+skip, atB+skip
		hi, fromX, fromY := lo, false, false
		endA, endB := atA, atB
		var nx, ny int
		for more := true; more; {
			switch {
			case nx < len(x) && x[nx].at <= hi:
				hi, fromX = max(hi, x[nx].at+x[nx].gone), true
				nx++
			case ny < len(y) && y[ny].at <= hi:
				hi, fromY = max(hi, y[ny].at+y[ny].gone), true
				ny++
			default:
				more = false
			}
		}
		growth := func(list []edit) (n int) {
			for _, e := range list {
				n += e.come - e.gone
			}
			return n
		}
		endA += hi - lo + growth(x[:nx])
		endB += hi - lo + growth(y[:ny])
		switch {
		case !fromY:
			out = append(out, piece{clean: a[atA:endA]})
		case !fromX:
			out = append(out, piece{clean: b[atB:endB]})
		default:
			out = append(out, m.refined(a[atA:endA], b[atB:endB])...)
		}
		x, y = x[nx:], y[ny:]
		at, atA, atB = hi, endA, endB
	}
	out = append(out, piece{clean: a[atA:]})
	return m.write(joinedPieces(out))
}

// refined leaves out of a conflict what both sides have alike.
func (m *merger) refined(a, b []string) []piece {
	if slices.Equal(a, b) {
		return []piece{{clean: a}}
	}
	if len(a) == 0 || len(b) == 0 {
		return []piece{{ours: a, theirs: b, conflict: true}}
	}
	var out []piece
	at := 0
	for _, e := range m.w.compare(a, b).edits() {
		if e.at > at {
			out = append(out, piece{clean: a[at:e.at]})
		}
		out = append(out, piece{ours: a[e.at : e.at+e.gone], theirs: b[e.from : e.from+e.come], conflict: true})
		at = e.at + e.gone
	}
	if at < len(a) {
		out = append(out, piece{clean: a[at:]})
	}
	return out
}

// joinedPieces makes one of conflicts with three lines or fewer between them.
func joinedPieces(list []piece) []piece {
	var flat []piece
	for _, p := range list {
		switch n := len(flat); {
		case !p.conflict && len(p.clean) == 0:
		case !p.conflict && n > 0 && !flat[n-1].conflict:
			flat[n-1].clean = slices.Concat(flat[n-1].clean, p.clean)
		default:
			flat = append(flat, p)
		}
	}
	var out []piece
	for i, p := range flat {
		n := len(out)
		if !p.conflict && len(p.clean) <= 3 && n > 0 && i+1 < len(flat) && out[n-1].conflict && flat[i+1].conflict {
			out[n-1].ours, out[n-1].theirs = slices.Concat(out[n-1].ours, p.clean), slices.Concat(out[n-1].theirs, p.clean)
			continue
		}
		if p.conflict && n > 0 && out[n-1].conflict {
			out[n-1].ours, out[n-1].theirs = slices.Concat(out[n-1].ours, p.ours), slices.Concat(out[n-1].theirs, p.theirs)
			continue
		}
		out = append(out, p)
	}
	return out
}

func (m *merger) write(list []piece) (text []byte, conflicts int) {
	var b strings.Builder
	put := func(lines []string) {
		for _, l := range lines {
			b.WriteString(l)
			if !strings.HasSuffix(l, "\n") {
				b.WriteByte('\n')
			}
		}
	}
	for i, p := range list {
		if !p.conflict {
			for j, l := range p.clean {
				b.WriteString(l)
				if (i < len(list)-1 || j < len(p.clean)-1) && !strings.HasSuffix(l, "\n") {
					b.WriteByte('\n')
				}
			}
			continue
		}
		conflicts++
		b.WriteString("<<<<<<< " + m.us + "\n")
		put(p.ours)
		b.WriteString("=======\n")
		put(p.theirs)
		b.WriteString(">>>>>>> " + m.them + "\n")
	}
	return []byte(b.String()), conflicts
}

// follow moves what the other side did to a file to where one side renamed it.
func (m *merger) follow() error {
	find := func(s side) (map[string]string, error) {
		list, err := m.w.renamed(m.base, s, changes(m.base, s, nil))
		out := map[string]string{}
		for _, c := range list {
			if c.old != "" {
				out[c.old] = c.name
			}
		}
		return out, err
	}
	ours, err := find(m.ours)
	if err != nil {
		return err
	}
	theirs, err := find(m.theirs)
	if err != nil {
		return err
	}
	move := func(old, name string, other side) {
		i, ok := other.files[old]
		if _, taken := other.files[name]; !ok || taken {
			return
		}
		m.base.files[name], other.files[name] = m.base.files[old], i
		delete(m.base.files, old)
		delete(other.files, old)
	}
	for old, name := range ours {
		if theirs[old] == name {
			m.base.files[name] = m.base.files[old]
			delete(m.base.files, old)
			continue
		}
		move(old, name, m.theirs)
	}
	for old, name := range theirs {
		if _, both := ours[old]; !both {
			move(old, name, m.ours)
		}
	}
	return nil
}

// run merges all files.
func (m *merger) run() error {
	was := m.ours.files
	clone := func(s side) side {
		files := make(map[string]item, len(s.files))
		for n, i := range s.files {
			files[n] = i
		}
		return side{files, s.load}
	}
	m.base, m.ours, m.theirs = clone(m.base), clone(m.ours), clone(m.theirs)
	m.w.t.Grow(100 * (len(was) + len(m.base.files) + len(m.theirs.files)))
	if err := m.follow(); err != nil {
		return err
	}
	m.result = side{map[string]item{}, m.w.blob}
	all := map[string]bool{}
	for _, s := range []side{m.base, m.ours, m.theirs} {
		for n := range s.files {
			all[n] = true
		}
	}
	list := make([]string, 0, len(all))
	for n := range all {
		list = append(list, n)
	}
	slices.Sort(list)
	for _, n := range list {
		if err := m.one(n); err != nil {
			return err
		}
	}
	return nil
}

func get(s side, name string) *item {
	if i, ok := s.files[name]; ok {
		return &i
	}
	return nil
}

func same(a, b *item) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

func (m *merger) say(format string, args ...any) { m.said = append(m.said, sprintf(format, args...)) }

// one merges a file.
func (m *merger) one(name string) error {
	m.w.t.Step(4)
	b, o, t := get(m.base, name), get(m.ours, name), get(m.theirs, name)
	take := func(i *item) {
		if i != nil {
			m.result.files[name] = *i
		}
	}
	switch {
	case same(o, t) || same(t, b):
		take(o)
		return nil
	case same(o, b):
		take(t)
		return nil
	}
	c := conflict{name: name, stages: [3]*item{b, o, t}}
	if o == nil || t == nil {
		left, deleted, kept := o, m.them, m.us
		if o == nil {
			left, deleted, kept = t, m.us, m.them
		}
		m.say("CONFLICT (modify/delete): %s deleted in %s and modified in %s.  Version %s of %s left in tree.", name, deleted, kept, kept, name)
		var err error
		c.mode = left.mode
		c.text, err = m.w.blob(name, *left)
		m.conflicts = append(m.conflicts, c)
		return err
	}
	var texts [3][]byte
	for i, x := range []*item{b, o, t} {
		if x == nil {
			continue
		}
		var err error
		if texts[i], err = m.w.blob(name, *x); err != nil {
			return err
		}
	}
	mode := o.mode
	if b != nil && o.mode == b.mode {
		mode = t.mode
	}
	plain := func(i *item) bool { return i == nil || i.mode != filemode.Symlink && i.mode != filemode.Submodule }
	kind := "content"
	if b == nil {
		kind = "add/add"
	}
	m.say("Auto-merging %s", name)
	if !plain(b) || !plain(o) || !plain(t) || isBinary(texts[0]) || isBinary(texts[1]) || isBinary(texts[2]) {
		if plain(o) && plain(t) {
			m.said[len(m.said)-1] = sprintf("warning: Cannot merge binary files: %s (%s vs. %s)", name, m.us, m.them)
			m.say("Auto-merging %s", name)
		}
		m.say("CONFLICT (%s): Merge conflict in %s", kind, name)
		c.text, c.mode = texts[1], o.mode
		m.conflicts = append(m.conflicts, c)
		return nil
	}
	merged, n := m.text(texts[0], texts[1], texts[2])
	if n > 0 {
		m.say("CONFLICT (%s): Merge conflict in %s", kind, name)
		c.text, c.mode = merged, mode
		m.conflicts = append(m.conflicts, c)
		return nil
	}
	h, err := m.w.store(plumbing.BlobObject, merged)
	if err != nil {
		return err
	}
	m.result.files[name] = item{mode, h}
	return nil
}

// install brings the result into index and worktree, which were head's. verb
// is what would overwrite local changes.
func (m *merger) install(head side, verb string) error {
	w := m.w
	full := side{map[string]item{}, w.blob}
	for n, i := range m.result.files {
		full.files[n] = i
	}
	for _, c := range m.conflicts {
		full.files[c.name] = item{hash: plumbing.NewHash("1")} // differs from what is there
	}
	list := changes(head, full, nil)
	if err := w.spared(list, head, verb); err != nil {
		return err
	}
	if err := w.bring(changes(head, m.result, nil), m.result, true); err != nil {
		return err
	}
	if len(m.conflicts) == 0 {
		return nil
	}
	idx, err := w.repo.Storer.Index()
	if err != nil {
		return err
	}
	for _, c := range m.conflicts {
		forget(idx, c.name)
		for n, i := range c.stages {
			if i != nil {
				idx.Entries = append(idx.Entries, &index.Entry{Name: c.name, Mode: i.mode, Hash: i.hash, Stage: index.Stage(n + 1)})
			}
		}
		if err := w.put(c.name, item{mode: c.mode}, side{load: func(string, item) ([]byte, error) { return c.text, nil }}); err != nil {
			return err
		}
	}
	sortIndex(idx)
	return w.repo.Storer.SetIndex(idx)
}

func sortIndex(idx *index.Index) {
	slices.SortStableFunc(idx.Entries, func(a, b *index.Entry) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return int(a.Stage) - int(b.Stage)
	})
}

// forget takes all stages of a file out of the index.
func forget(idx *index.Index, name string) {
	idx.Entries = slices.DeleteFunc(idx.Entries, func(e *index.Entry) bool { return e.Name == name })
}

// unmerged gives the files in conflict, and which stages each has.
func (w *work) unmerged() (map[string][4]bool, error) {
	idx, err := w.repo.Storer.Index()
	if err != nil {
		return nil, err
	}
	out := map[string][4]bool{}
	for _, e := range idx.Entries {
		if e.Stage != 0 {
			s := out[e.Name]
			s[e.Stage&3] = true
			out[e.Name] = s
		}
	}
	return out, nil
}

// spared refuses changes that would overwrite what is not committed.
func (w *work) spared(list []change, before side, verb string) error {
	idx, err := w.indexSide()
	if err != nil {
		return err
	}
	now, err := w.workSide()
	if err != nil {
		return err
	}
	var lost, untracked []string
	for _, c := range list {
		was, known := before.files[c.name]
		i, inIndex := idx.files[c.name]
		n, inTree := now.files[c.name]
		switch {
		case known && (inIndex && i != was || inTree && n != was):
			lost = append(lost, c.name)
		case !known && !inIndex:
			if _, err := w.t.View.Lstat(path.Join(w.dir, c.name)); err == nil {
				untracked = append(untracked, c.name)
			}
		}
	}
	what := map[string]string{"checkout": "switch branches", "merge": "merge"}[verb]
	if what == "" {
		what = verb
	}
	text := ""
	if len(lost) > 0 {
		text = "error: Your local changes to the following files would be overwritten by " + verb + ":\n\t" + strings.Join(lost, "\n\t") + "\nPlease commit your changes or stash them before you " + what + ".\n"
	}
	if len(untracked) > 0 {
		text += "error: The following untracked working tree files would be overwritten by " + verb + ":\n\t" + strings.Join(untracked, "\n\t") + "\nPlease move or remove them before you " + what + ".\n"
	}
	if text != "" {
		return &fatal{text + "Aborting", 1}
	}
	return nil
}
