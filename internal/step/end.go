package step

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/snapshot"
)

// hashBudget is how many bytes of present contents End reads to compute digests. Beyond, only the identity of a file
// tells whether it is still the one that the step left.
const hashBudget = 256 << 20

// End ends the step: it compares what was noted with the disk, and writes the record. If that fails, the step has ended
// too, and [Journal.Recover] tries again.
func (r *Recorder) End(ctx context.Context, o Outcome) (*Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil, fmt.Errorf("step %d has ended: %w", r.number, paddock.Conflict)
	}
	r.ended = true
	rec, err := r.end(ctx, o)
	if err != nil {
		err = fmt.Errorf("end step %d: %w", r.number, err)
		if r.draft != nil {
			err = errors.Join(err, r.draft.Leave())
		}
		return nil, errors.Join(err, r.close(false))
	}
	if err := r.close(true); err != nil {
		return nil, fmt.Errorf("end step %d: %w", r.number, err)
	}
	if w := r.j.opts.Watch; w != nil {
		w.Ended(rec)
	}
	return rec, nil
}

func (r *Recorder) end(ctx context.Context, o Outcome) (*Record, error) {
	rec := r.record(o)
	x := ending{r: r, rec: rec, now: map[key]place{}, none: map[int]bool{}}
	if err := x.compare(ctx); err != nil {
		return nil, err
	}
	x.date()
	if err := x.digests(ctx); err != nil {
		return nil, err
	}
	for _, k := range r.lefts {
		rec.Left = append(rec.Left, Left{k.root, Text(k.path), r.left[k]})
	}
	if r.lost {
		rec.Incomplete = true
	}
	if err := x.store(ctx); err != nil {
		return nil, err
	}
	r.pass()
	err := r.j.put(ctx, rec, r.fresh)
	r.pass()
	return rec, err
}

// record returns the record without what changed.
func (r *Recorder) record(o Outcome) *Record {
	rec := &Record{
		Number: r.number, Sandbox: r.head.Sandbox, Life: r.head.Life, Tier: r.head.Tier, Kind: r.head.Kind, Command: r.head.Command,
		Roots: r.head.Roots, Begin: r.head.Start, End: time.Now().Round(0), Exit: o.Exit, Undoes: r.head.Undoes,
		Concurrent: o.Concurrent[:min(len(o.Concurrent), maxList)], Use: o.Use,
	}
	for _, f := range o.Refused[:min(len(o.Refused), maxList)] {
		rec.Refused = append(rec.Refused, Refusal{f.Path[:min(len(f.Path), maxWords)], cut(f.Operation), cut(f.Why)})
	}
	for _, h := range o.Hosts[:min(len(o.Hosts), maxList)] {
		rec.Hosts = append(rec.Hosts, cut(h))
	}
	for _, s := range o.Secrets[:min(len(o.Secrets), maxList)] {
		rec.Secrets = append(rec.Secrets, cut(s))
	}
	return rec
}

// cut bounds a text, and makes it UTF-8.
func cut(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxWords)], "\uFFFD") }

// An ending compares what a recorder noted with the disk.
type ending struct {
	r    *Recorder
	rec  *Record
	now  map[key]place // where original files are that were moved
	made []key         // present paths
	used []key         // saved paths whose contents the record needs
	same []int         // changes that are none if the contents are the same
	none map[int]bool  // changes that are none
	size int           // bytes of paths of made and moved files
}

// maxPathBytes bounds the bytes of all paths of made and moved files in one record, and those of saved ones, and those of
// what is left. Their numbers are those of Options.Changes.
const maxPathBytes = 64 << 20

const (
	whyLong  = "its path is too long now for a record"
	whyRough = "it is not known what became of it, because the end of the step failed"
)

// fits reports whether the record has room for a made or moved file, and otherwise notes that it has not.
func (x *ending) fits(at, was key) bool {
	switch n := len(at.path) + len(was.path); {
	case len(at.path) > maxPath:
		x.left(at, whyLong)
	case len(x.made)+len(x.now) >= x.r.j.opts.Changes || x.size+n > maxPathBytes:
		x.left(key{root: at.root}, whyMany)
	default:
		x.size += n
		return true
	}
	return false
}

// left notes that something is not kept, or not known. Of a path that is too long it names a directory.
func (x *ending) left(at key, why string) {
	x.r.lost = true
	if len(at.path) > maxPath {
		at.path = at.path[:max(0, strings.LastIndexByte(at.path[:maxPath], '/'))]
	}
	x.r.apply(&entry{Op: opLeft, Root: at.root, Path: Text(at.path), Why: why})
}

type place struct {
	at  key
	ino uint64
}

func (x *ending) compare(ctx context.Context) error {
	r := x.r
	var moved []key
	for _, top := range r.names.tops {
		top.walk(func(n *node) {
			switch {
			case n.up == nil:
			case n.is == made:
				at := n.at()
				if x.fits(at, key{}) {
					x.made = append(x.made, at)
				}
			case n.is == original:
				if at := n.at(); n.was != at && x.fits(at, n.was) {
					x.now[n.was] = place{at, n.ino}
					moved = append(moved, n.was)
				}
			case n.is == unknown:
				r.lost = true
			}
		})
	}
	for _, all := range [][]key{x.made, moved} {
		slices.SortFunc(all, func(a, b key) int { return cmp.Or(a.root-b.root, snapshot.Compare(a.path, b.path)) })
	}
	before := map[key]int{} // changes of removed files by path
	for _, k := range r.order {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		s := r.saved[k]
		if s == nil {
			continue
		}
		if i := x.kept(k, s); i >= 0 && !x.rec.Changes[i].After.Exists() {
			before[k] = i
		}
	}
	for _, k := range moved {
		if r.saved[k] != nil {
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		x.moved(k)
	}
	for _, at := range x.made {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		x.create(at, before)
	}
	return nil
}

// kept compares a saved state with what has come of the file, and returns the index of the change or -1.
func (x *ending) kept(k key, s *saved) int {
	c := Change{Root: k.root, Path: Text(k.path), Before: s.state, Seen: s.seen, Why: s.why}
	at, there, ino := x.find(k)
	if there && len(at.path) > maxPath { // as if it was removed
		x.left(at, whyLong)
		there = false
	} else if !there { // or what should have removed it was not done
		now, _ := x.look(k)
		if is, _, _ := x.r.names.find(k); is != made && now.Exists() && sameFile(&now, &s.state) && now.Kind == s.state.Kind && now.Change == s.state.Change {
			at, there = k, true
		}
	}
	if there {
		now, why := x.look(at)
		if why != "" {
			c.Why = cmp.Or(c.Why, why)
		} else if at != k && (!now.Exists() || ino != 0 && now.Ino != ino) { // the move was not done, or undone by another
			if old, why := x.look(k); why != "" {
				c.Why = cmp.Or(c.Why, why)
			} else if old.Exists() && (ino != 0 && old.Ino == ino || ino == 0 && !x.taken(k)) {
				at, now = k, old
			} else if now.Exists() {
				x.r.apply(&entry{Op: opLeft, Root: at.root, Path: Text(at.path), Why: "something else came here than was told"})
				now = State{}
				at = k
			}
		}
		c.After = now
		if at != k && now.Exists() {
			c.Root, c.Path, c.Moved, c.From, c.FromRoot = at.root, Text(at.path), true, Text(k.path), k.root
		}
	}
	if !c.Moved && c.After.Exists() && alike(&c.Before, &c.After) {
		if c.Before.Kind != File || s.partial || x.untouched(&c.Before, &c.After) {
			return -1
		}
		x.same = append(x.same, len(x.rec.Changes))
	}
	if c.Before.Kind == File && !s.partial {
		if c.Kept, c.Pack = s.kept, s.pack; c.Kept > 0 {
			x.used = append(x.used, k)
		} else if c.Why == "" && c.Before.Size > 0 {
			c.Why = "its contents were not kept"
		}
	}
	if s.partial && !c.After.Exists() && c.Why == "" {
		c.Why = "its contents were not kept"
	}
	switch c.Before.Kind {
	case Socket, Device:
		c.Why = cmp.Or(c.Why, fmt.Sprintf("it was a %s", c.Before.Kind))
	}
	x.rec.Changes = append(x.rec.Changes, c)
	return len(x.rec.Changes) - 1
}

// taken reports whether something else than what was there before the step should be at a path.
func (x *ending) taken(k key) bool {
	is, was, _ := x.r.names.find(k)
	return is == made || is == original && was != k
}

// find returns where a file of before the step is now.
func (x *ending) find(k key) (at key, there bool, ino uint64) {
	for i := len(k.path); i > 0; i = max(0, strings.LastIndexByte(k.path[:i], '/')) {
		p, ok := x.now[key{k.root, k.path[:i]}]
		if !ok {
			continue
		}
		at := key{p.at.root, p.at.path + k.path[i:]}
		if is, was, _ := x.r.names.find(at); is == original && was == k {
			if i < len(k.path) {
				p.ino = 0
			}
			return at, true, p.ino
		}
		return key{}, false, 0
	}
	is, was, _ := x.r.names.find(k)
	return k, is == original && was == k, 0
}

// alike reports whether two states are equal but for the contents of files, times and identity.
func alike(a, b *State) bool {
	return a.Kind == b.Kind && a.Mode == b.Mode && a.UID == b.UID && a.GID == b.GID && a.Size == b.Size && a.Target == b.Target
}

// untouched reports whether a file is for sure the same, unread.
func (x *ending) untouched(a, b *State) bool {
	return !a.Racy && sameFile(a, b) && a.ModTime == b.ModTime && a.Change == b.Change
}

func sameFile(a, b *State) bool { return a.Ino == b.Ino && a.Dev == b.Dev }

// moved adds the change of a file that was only moved.
func (x *ending) moved(k key) {
	p := x.now[k]
	now, why := x.look(p.at)
	if why != "" {
		return
	}
	if !now.Exists() || p.ino != 0 && now.Ino != p.ino {
		old, why := x.look(k)
		if why != "" || old.Exists() && p.ino != 0 && old.Ino == p.ino { // it was not done
			return
		}
		if now.Exists() || !old.Exists() {
			x.r.apply(&entry{Op: opLeft, Root: p.at.root, Path: Text(p.at.path), Why: "what was moved here is not here any more"})
		}
		return
	}
	if x.r.forged(&now) {
		x.r.apply(&entry{Op: opLeft, Root: p.at.root, Path: Text(p.at.path), Why: whyForged})
		return
	}
	x.rec.Changes = append(x.rec.Changes, Change{
		Root: p.at.root, Path: Text(p.at.path), Moved: true, From: Text(k.path), FromRoot: k.root, Before: now, After: now,
	})
}

// create adds the change of a file that the step made.
func (x *ending) create(at key, before map[key]int) {
	now, _ := x.look(at)
	if !now.Exists() {
		return
	}
	if dir, ok := x.r.cache(at, true); ok {
		x.r.apply(&entry{Op: opLeft, Root: dir.root, Path: Text(dir.path), Why: whyRebuilt})
		return
	}
	i, replaced := before[at]
	// In a directory that is itself another one, nothing was replaced.
	replaced = replaced && (at.parent().path == "" || x.r.old(at.parent()))
	if x.r.forged(&now) {
		if replaced && sameFile(&now, &x.rec.Changes[i].Before) { // nor was it removed
			x.none[i] = true
		}
		x.r.apply(&entry{Op: opLeft, Root: at.root, Path: Text(at.path), Why: whyForged})
		return
	}
	if !replaced {
		x.rec.Changes = append(x.rec.Changes, Change{Root: at.root, Path: Text(at.path), After: now})
		return
	}
	c := &x.rec.Changes[i]
	c.After = now
	if alike(&c.Before, &c.After) && (c.Kept > 0 || c.Before.Kind != File) {
		x.same = append(x.same, i)
	}
}

// date finds the changes that may be those of the user after the recorder was killed.
func (x *ending) date() {
	for i := range x.rec.Changes {
		if c := &x.rec.Changes[i]; x.r.until > 0 && c.After.Exists() && c.After.Kind != Dir && c.After.Change > x.r.until && c.Why == "" {
			c.Why = "it changed after the last that is known of the step"
		}
	}
}

// look returns the state of a present path, or why it is not known. That is noted, and is nothing that ends the step.
func (x *ending) look(at key) (s State, why string) {
	if x.r.rough {
		x.left(key{root: at.root}, whyRough)
		return State{}, whyRough
	}
	s, err := x.r.look(at)
	switch {
	case err == nil:
		return s, ""
	case errors.Is(err, paddock.NotFound), errors.Is(err, paddock.Denied): // the root is gone, or nobody may look
		x.r.lost = true
		return State{}, ""
	}
	why = fmt.Sprintf("it could not be looked at when the step ended: %v", err)
	x.left(at, why)
	return State{}, why
}

// digests computes those of the present files, and leaves out changes that are none.
func (x *ending) digests(ctx context.Context) error {
	left := int64(hashBudget)
	var late []int
	for i := range x.rec.Changes {
		c := &x.rec.Changes[i]
		if c.After.Kind != File {
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if c.After.Size > left {
			late = append(late, i)
			continue
		}
		left -= c.After.Size
		s, err := x.r.trees[c.Root].digest(string(c.Path), c.After, hashBudget)
		if errors.Is(err, paddock.Denied) { // the step took away the right to read it
			late = append(late, i)
			continue
		}
		if err != nil || s.Kind != File || !sameFile(&s, &c.After) { // it is changing: what was seen first stands
			continue
		}
		c.After = s
		if c.Kept == 0 && c.Why == "" && c.Before.Kind == File && c.Before.Digest == "" && c.Before.Size == s.Size {
			c.Before.Digest = s.Digest
		}
	}
	if err := x.settle(ctx, late); err != nil {
		return err
	}
	none := x.none
	for _, i := range x.same {
		c := &x.rec.Changes[i]
		if c.Before.Kind != File || c.Before.Digest != "" && c.Before.Digest == c.After.Digest {
			none[i] = true
		}
	}
	if len(none) == 0 {
		return nil
	}
	kept := x.rec.Changes[:0]
	needed := map[int]bool{}
	for i := range x.rec.Changes {
		if none[i] {
			continue
		}
		needed[x.rec.Changes[i].Kept] = true
		kept = append(kept, x.rec.Changes[i])
	}
	x.rec.Changes = kept
	x.used = slices.DeleteFunc(x.used, func(k key) bool { return !needed[x.r.saved[k].kept] })
	return nil
}

// settle waits until files without a digest are old enough for their times to tell them from later ones.
func (x *ending) settle(ctx context.Context, late []int) error {
	racy := slices.ContainsFunc(late, func(i int) bool { return x.rec.Changes[i].After.Racy })
	if !racy {
		return nil
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(tick + tick/4):
	}
	for _, i := range late {
		c := &x.rec.Changes[i]
		if now, why := x.look(key{c.Root, string(c.Path)}); why == "" && now.Change == c.After.Change && sameFile(&now, &c.After) {
			c.After = now
		}
	}
	return nil
}

// store makes the contents that the record needs a snapshot.
func (x *ending) store(ctx context.Context) error {
	r := x.r
	slices.SortFunc(x.used, func(a, b key) int { return r.saved[a].kept - r.saved[b].kept })
	x.used = slices.CompactFunc(x.used, func(a, b key) bool { return r.saved[a].kept == r.saved[b].kept })
	packed := false
	for _, k := range x.used {
		s := r.saved[k]
		if s.pack > 0 {
			packed = true
			x.rec.Bytes += s.state.Size
		} else {
			x.rec.Bytes += s.contents.Size()
		}
	}
	if r.stored {
		if len(x.used) > 0 {
			x.rec.Snapshot = r.j.snapshot(r.number)
		}
		return nil
	}
	if len(x.used) == 0 {
		return r.draft.Discard()
	}
	x.rec.Snapshot = r.j.snapshot(r.number)
	var pack *snapshot.Contents
	if packed {
		c, _, err := r.draft.Add(ctx, r.packed.size, r.packed.data())
		if err != nil {
			return err
		}
		pack = &c
	}
	err := r.draft.Commit(ctx, snapshot.Meta{Tier: r.head.Tier, Name: r.head.Sandbox, Created: x.rec.End}, x.entries(pack))
	if err == nil || !r.rough || context.Cause(ctx) != nil || full(err) {
		return err
	}
	// It failed before, and would again. The record tells at least what cannot be undone.
	x.rec.Snapshot, x.rec.Bytes = "", 0
	for i := range x.rec.Changes {
		if c := &x.rec.Changes[i]; c.Kept > 0 {
			c.Kept, c.Pack, c.Why = 0, 0, cmp.Or(c.Why, fmt.Sprintf("its contents are lost: %v", err))
		}
	}
	return r.draft.Discard()
}

func (x *ending) entries(pack *snapshot.Contents) iter.Seq2[snapshot.Entry, error] {
	return func(yield func(snapshot.Entry, error) bool) {
		if pack != nil && !yield(snapshot.Entry{Path: entryName(0), Kind: snapshot.File, Mode: 0o600, Size: x.r.packed.size, Held: pack}, nil) {
			return
		}
		for _, k := range x.used {
			s := x.r.saved[k]
			if s.pack > 0 {
				continue
			}
			e := snapshot.Entry{Path: entryName(s.kept), Kind: snapshot.File, Mode: 0o600, Size: s.state.Size, Held: s.contents}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// entryName is the name of contents in a snapshot. Names of the workspace are only in the record.
func entryName(kept int) string { return fmt.Sprintf("%08x", kept) }
