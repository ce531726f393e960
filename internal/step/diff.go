package step

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/snapshot"
)

// Bounds of Diff.
const (
	diffText  = 1 << 20 // bytes of a file whose text is compared
	diffTotal = 16 << 20
	diffSteps = 1000 // steps that are taken together
	diffLater = 100  // later steps in which contents are looked for
)

// Diff tells the differences that the steps from the first number to the last made together, for the given paths of the
// host and what is below them, or for all.
func (j *Journal) Diff(ctx context.Context, first, last int64, paths []string) (_ []Difference, err error) {
	return j.DiffOf(ctx, Filter{From: first, To: last}, paths)
}

// DiffOf is Diff of the steps that a filter selects, which must have From and To.
func (j *Journal) DiffOf(ctx context.Context, f Filter, paths []string) (_ []Difference, err error) {
	first, last := f.From, f.To
	defer func() {
		if err != nil {
			err = fmt.Errorf("differences of steps %d to %d: %w", first, last, err)
		}
	}()
	f.Lean = true
	list, err := j.List(ctx, f)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 || first <= 0 || last < first {
		return nil, fmt.Errorf("there are none: %w", paddock.NotFound)
	}
	if len(list) > diffSteps {
		return nil, fmt.Errorf("%d steps; take at most %d together: %w", len(list), diffSteps, paddock.Exhausted)
	}
	var all load
	for i := range list {
		if err := all.add(j, &list[i]); err != nil {
			return nil, err
		}
	}
	d := differ{j: j, ctx: ctx, now: map[spot]*sum{}, gone: map[spot]*sum{}, trees: map[spot]*tree{}, has: map[int64]*stock{}, left: diffTotal}
	defer d.close()
	for i := range list {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		rec, err := j.read(list[i].Number, true)
		if err != nil {
			return nil, err
		}
		d.add(rec)
	}
	return d.result(last, paths)
}

// A spot is a path of the host.
type spot struct {
	root Root // without its target
	path Text
}

// A sum is what became of one file over several steps.
type sum struct {
	was, at       spot
	before, after State
	rec           int64 // whose contents before has
	kept          int
	pack          int64
	edited        bool // the contents changed
	none          bool // it came and went
}

type differ struct {
	j     *Journal
	ctx   context.Context
	all   []*sum
	now   map[spot]*sum // by the present path
	gone  map[spot]*sum // by the path before
	trees map[spot]*tree
	has   map[int64]*stock
	later map[spotted]held // contents that later steps kept; nil if it is not known
	left  int              // bytes of text
}

func (d *differ) close() {
	for _, t := range d.trees {
		if t != nil {
			t.close()
		}
	}
}

// add adds the changes of the next step. All of them happen at once.
func (d *differ) add(rec *Record) {
	type arrival struct {
		s *sum
		c *Change
	}
	var come []arrival
	for i := range rec.Changes {
		c := &rec.Changes[i]
		root, p := c.Was()
		was := spot{rec.Roots[root].bare(), p}
		at := spot{rec.Roots[c.Root].bare(), c.Path}
		var s *sum
		if c.Before.Exists() {
			if s = d.now[was]; s != nil {
				delete(d.now, was)
			}
		}
		if s == nil {
			s = &sum{was: was, before: c.Before}
			d.all = append(d.all, s)
		}
		changed := c.Kept > 0 || !c.Moved && (c.Before.Kind != c.After.Kind || c.Before.Digest != c.After.Digest || c.Before.Target != c.After.Target)
		if !s.edited && changed {
			s.rec, s.kept, s.pack, s.edited = rec.Number, c.Kept, c.Pack, true
		}
		s.at, s.after = at, c.After
		come = append(come, arrival{s, c})
	}
	for _, a := range come {
		s := a.s
		switch {
		case a.c.After.Exists():
			if old := d.gone[s.at]; old != nil && !s.before.Exists() { // it is there again
				s.before, s.rec, s.kept, s.pack, s.was = old.before, old.rec, old.kept, old.pack, old.was
				old.none = true
				delete(d.gone, s.at)
			}
			d.now[s.at] = s
		case s.before.Exists():
			d.gone[s.was] = s
		default:
			s.none = true
		}
	}
}

func (d *differ) result(last int64, paths []string) ([]Difference, error) {
	wanted := func(s spot) bool {
		full := path.Join(string(s.root.Path), string(s.path))
		return len(paths) == 0 || slices.ContainsFunc(paths, func(p string) bool { return within(full, p) })
	}
	var list []Difference
	for _, s := range d.all {
		if err := context.Cause(d.ctx); err != nil {
			return nil, err
		}
		if s.none || !wanted(s.at) && !wanted(s.was) {
			continue
		}
		x := Difference{Root: s.at.root.Path, Path: s.at.path, Before: s.before, After: s.after, Kinds: s.verbs()}
		if !s.after.Exists() {
			x.Root, x.Path = s.was.root.Path, s.was.path
		} else if s.before.Exists() && s.was != s.at {
			x.From, x.FromRoot = s.was.path, s.was.root.Path
		}
		if len(x.Kinds) == 0 {
			continue
		}
		d.text(&x, s, last)
		list = append(list, x)
	}
	slices.SortStableFunc(list, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Root, b.Root), snapshot.Compare(string(a.Path), string(b.Path)))
	})
	return list, nil
}

func (s *sum) verbs() (v []Verb) {
	a, b := &s.before, &s.after
	switch {
	case !a.Exists():
		return []Verb{Created}
	case !b.Exists():
		return []Verb{Removed}
	}
	if s.was != s.at {
		v = append(v, Moved)
	}
	switch {
	case a.Kind != b.Kind:
		v = append(v, Replaced)
	case a.Target != b.Target, a.Size != b.Size, a.Digest != b.Digest, a.Kind == File && a.Digest == "" && s.edited:
		v = append(v, Edited)
	}
	if a.Mode != b.Mode && a.Kind == b.Kind && a.Kind != Symlink {
		v = append(v, Mode)
	}
	return v
}

// text compares the contents, if both are at hand.
func (d *differ) text(x *Difference, s *sum, last int64) {
	a, b := &s.before, &s.after
	if a.Kind != File && b.Kind != File || a.Kind == File && b.Kind == File && !slices.Contains(x.Kinds, Edited) {
		return
	}
	old, why := d.old(s)
	var now []byte
	if why == "" && b.Kind == File {
		now, why = d.present(s, last)
	}
	if why != "" {
		x.Why = why
		return
	}
	if isBinary(old) || isBinary(now) {
		x.Binary = true
		return
	}
	if d.left -= len(old) + len(now); d.left < 0 {
		x.Why = "there are too many differences to show all: name paths"
		return
	}
	from, to := string(s.was.path), string(s.at.path)
	if !a.Exists() {
		from = "/dev/null"
	}
	if !b.Exists() {
		to = "/dev/null"
	}
	x.Text = unified(from, to, old, now)
}

const whyTooLarge = "it is too large to be shown"

// old returns the contents from before.
func (d *differ) old(s *sum) (text []byte, why string) {
	a := &s.before
	switch {
	case a.Kind != File || a.Size == 0:
		return nil, ""
	case a.Size > diffText:
		return nil, whyTooLarge
	case s.kept == 0:
		return nil, "the contents from before were not kept"
	}
	return d.stored(s.rec, s.kept, s.pack, a.Size)
}

// stored returns contents of the journal.
func (d *differ) stored(n int64, kept int, pack, size int64) (text []byte, why string) {
	has, known := d.has[n]
	if !known {
		var err error
		if has, err = d.j.stock(d.ctx, &Record{Number: n, Snapshot: d.j.snapshot(n)}); err != nil {
			has = nil
		}
		d.has[n] = has
	}
	if has == nil {
		has = &stock{}
	}
	data, ok := has.data(kept, pack, size)
	if !ok {
		return nil, "the contents from before are not in the journal any more"
	}
	text = make([]byte, size)
	for e, err := range data {
		if err != nil || e.Offset+int64(len(e.Bytes)) > size {
			return nil, "the contents in the journal are damaged"
		}
		copy(text[e.Offset:], e.Bytes)
	}
	return text, ""
}

// present returns the contents from after: those of the workspace if it still has them, or what a later step kept.
func (d *differ) present(s *sum, last int64) (text []byte, why string) {
	b := &s.after
	if b.Size > diffText {
		return nil, whyTooLarge
	}
	root := spot{root: s.at.root}
	t, known := d.trees[root]
	if !known {
		var err error
		if t, err = openTree(string(s.at.root.Path)); err == nil && t.ino != s.at.root.Ino {
			t.close()
			t = nil
		}
		d.trees[root] = t
	}
	if t != nil {
		now, err := t.stat(string(s.at.path))
		if err == nil && now.Kind == File && now.Size == b.Size {
			text, read, err := t.text(string(s.at.path), now, diffText)
			same := b.Digest != "" && read.Digest == b.Digest ||
				!b.Racy && sameFile(&now, b) && now.ModTime == b.ModTime && now.Change == b.Change
			if err == nil && same {
				return text, ""
			}
		}
	}
	if b.Digest != "" {
		if h, ok := d.laters(last)[spotted{b.Digest, b.Size}]; ok {
			return d.stored(h.step, h.kept, h.pack, b.Size)
		}
	}
	return nil, "the contents from after are not there any more"
}

// A spotted names contents, and a held says where they are.
type (
	spotted struct {
		digest string
		size   int64
	}
	held struct {
		step int64
		kept int
		pack int64
	}
)

// maxSpotted bounds how many contents of later steps are remembered.
const maxSpotted = 500_000

// laters reads steps after the last one, once.
func (d *differ) laters(last int64) map[spotted]held {
	if d.later != nil {
		return d.later
	}
	d.later = map[spotted]held{}
	all, err := d.j.numbers(dirRecords)
	if err != nil {
		return nil
	}
	steps := 0
	for _, n := range all {
		if n <= last || steps >= diffLater || context.Cause(d.ctx) != nil {
			continue
		}
		steps++
		rec, err := d.j.read(n, true)
		if err != nil {
			continue
		}
		for i := range rec.Changes {
			c := &rec.Changes[i]
			at := spotted{c.Before.Digest, c.Before.Size}
			if _, known := d.later[at]; !known && c.Kept > 0 && at.digest != "" && at.size <= diffText && len(d.later) < maxSpotted {
				d.later[at] = held{n, c.Kept, c.Pack}
			}
		}
	}
	return d.later
}

// isBinary reports whether contents are not text, as git judges it.
func isBinary(b []byte) bool { return bytes.IndexByte(b[:min(len(b), 8000)], 0) >= 0 }
