package step

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/protect"
	"github.com/paddock-sandbox/paddock/internal/snapshot"
)

// kindUndo is the Kind of the record of an undo.
const kindUndo = "undo"

// A landing is how a file comes from the stage, or goes there.
type landing uint8

const (
	landFree landing = iota // nothing is at the path
	landSwap                // what is at the path goes to the stage
	landOver                // what is at the path goes away
	landTake                // what is at the path goes to the stage, where nothing is
)

// staged reports whether a path is one that an undo made in a stage below a root.
func staged(p string) bool {
	rest, ok := strings.CutPrefix(p, stageDir+"/"+stagePrefix)
	return ok && strings.Count(rest, "/") == 1
}

// A guarded is an error with the reason why a path is not brought back.
type guarded string

func (g guarded) Error() string { return string(g) }

// Undo brings back what was before the steps of a request, the newest step first, where the present is what the step
// left. The undo is recorded as a step, so that it can be undone.
func (j *Journal) Undo(ctx context.Context, q Request) (_ *Result, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("undo: %w", err)
		}
	}()
	if q.Protect == nil {
		if q.Protect, err = protect.New(nil, nil); err != nil {
			return nil, err
		}
	}
	for _, p := range q.Paths {
		if !path.IsAbs(p) || path.Clean(p) != p {
			return nil, fmt.Errorf("the path %q is not absolute and clean: %w", p, paddock.Invalid)
		}
	}
	heads, err := j.requested(ctx, &q)
	if err != nil {
		return nil, err
	}
	u := &undo{j: j, ctx: ctx, q: &q, res: &Result{}, patience: patience{claimTries}}
	if err := u.begin(heads); err != nil {
		return nil, err
	}
	for _, head := range heads { // one after another, because they may be large
		var rec *Record
		if rec, err = j.read(head.Number, true); err != nil {
			break
		}
		if err = u.step(rec); err != nil {
			break
		}
	}
	return u.end(err)
}

// requested returns the heads of the records of a request, the newest first. The records can be read.
func (j *Journal) requested(ctx context.Context, q *Request) ([]*Record, error) {
	numbers := slices.Clone(q.Steps)
	if len(numbers) == 0 {
		if q.To <= 0 {
			return nil, fmt.Errorf("no step is named: %w", paddock.Invalid)
		}
		f := q.Only
		f.From, f.Lean = max(f.From, q.To), true
		list, err := j.List(ctx, f)
		if err != nil {
			return nil, err
		}
		for i := range list {
			numbers = append(numbers, list[i].Number)
		}
		if len(numbers) == 0 {
			return nil, fmt.Errorf("no step since %d: %w", q.To, paddock.NotFound)
		}
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	slices.Reverse(numbers)
	var heads []*Record
	var sum load
	for _, n := range numbers {
		rec, err := j.Head(ctx, n)
		if err == nil && !q.Only.selects(rec) {
			err = fmt.Errorf("step %d: %w", n, paddock.NotFound) // in the words for one that never was
		}
		if err == nil {
			err = sum.add(j, rec)
		}
		if err != nil {
			return nil, err
		}
		heads = append(heads, rec)
	}
	for _, n := range numbers {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		if _, err := j.read(n, true); err != nil { // before anything is changed
			return nil, err
		}
	}
	return heads, nil
}

// An undo is one that goes on.
type undo struct {
	j   *Journal
	ctx context.Context
	q   *Request
	res *Result
	rec *Recorder // of the undo itself

	review *stock // contents of the proposal that is applied; nil if steps are undone
	permit func([]*Change) error
	denied error // what permit returned

	roots map[Root]int // of records, without their targets, by the roots of rec
	bad   map[Root]string

	// Of the step that is being undone.
	of    *Record
	has   *stock
	names *names // where the files of changes are now
	items []*item
	other map[key][]meddler // paths that other steps changed while this one went on
	came  map[key]bool      // where files of After are by the record
	gives map[key]*item     // directories that come back, by where they were

	desk   key    // directory whose stage is open, for one file after another
	onDesk string // that file, or empty

	patience patience

	inodes map[[2]uint64][]*item // by the files that they found
	staged int
}

// An item is a change that is being undone.
type item struct {
	c    *Change
	n    *node // where the file of After is, if it is there
	seen State // that file, as it was checked
	to   key   // where the file of Before was
	over bool  // nothing is left to do
	open bool  // a directory that has a mode by which it can be looked into
	did  bool  // something was done
	note string
	with *item // directory that takes it along when that is moved back
	temp bool  // it was moved to a temporary name
	home *node // where that was

	judged bool // the path was protected at the last look of guard
}

// bare takes out of a root what may differ between records.
func (r Root) bare() Root { return Root{Path: r.Path, Ino: r.Ino} }

// begin opens the roots, and begins the step of the undo.
func (u *undo) begin(recs []*Record) error {
	u.roots, u.bad = map[Root]int{}, map[Root]string{}
	about := About{Sandbox: u.q.Sandbox, Life: u.q.Life, Tier: u.q.Tier, Kind: kindUndo, Start: time.Now()}
	if u.review != nil {
		about.Kind, about.Command = kindApply, u.q.Command
	} else if of := recs[0]; about.Life == "" && !slices.ContainsFunc(recs, func(r *Record) bool { return r.Sandbox != of.Sandbox || r.Life != of.Life }) {
		about.Sandbox, about.Life = cmp.Or(about.Sandbox, of.Sandbox), of.Life
	}
	for _, rec := range recs {
		if u.review == nil {
			about.Undoes = append(about.Undoes, rec.Number)
		}
		for _, root := range rec.Roots {
			b := root.bare()
			if _, known := u.roots[b]; known || u.bad[b] != "" {
				continue
			}
			t, err := openTree(string(root.Path))
			if err != nil {
				if errors.Is(err, paddock.Unsupported) {
					return err
				}
				u.bad[b] = fmt.Sprintf("the directory %q cannot be opened: %v", root.Path, err)
				continue
			}
			t.close()
			if t.ino != root.Ino {
				u.bad[b] = fmt.Sprintf("the directory %q is another one than in the step", root.Path)
				continue
			}
			u.roots[b] = len(about.Roots)
			about.Roots = append(about.Roots, Root{Path: root.Path, Target: root.Target})
		}
	}
	if len(about.Roots) == 0 {
		for _, why := range u.bad {
			return fmt.Errorf("%s: %w", why, paddock.Conflict)
		}
	}
	var err error
	if u.rec, err = u.j.begin(u.ctx, about, false); err != nil {
		return err
	}
	u.rec.sure = u.j.reserve() // the next step trims, and an undo must be possible in a full journal
	// What cannot be kept is a conflict, so that redo brings back what undo says it does. A proposal is applied all the same.
	u.rec.whole = u.review == nil
	for b, i := range u.roots { // between the two looks
		if u.rec.trees[i].ino != b.Ino {
			return errors.Join(fmt.Errorf("the directory %q was exchanged: %w", b.Path, paddock.Conflict), u.rec.Abandon())
		}
	}
	return nil
}

// end ends the step of the undo. What was done before an error is recorded as well.
func (u *undo) end(failed error) (*Result, error) {
	if len(u.res.Restored) == 0 && failed == nil {
		return u.res, u.rec.Abandon()
	}
	rec, err := u.rec.End(context.WithoutCancel(u.ctx), Outcome{})
	if err != nil {
		return u.res, errors.Join(failed, err)
	}
	u.res.Step = rec.Number
	return u.res, failed
}

// step undoes one step.
func (u *undo) step(rec *Record) (err error) {
	u.of, u.items, u.names = rec, nil, newNames(len(u.rec.trees))
	u.inodes, u.staged = nil, 0
	if u.has = u.review; u.has == nil {
		if u.has, err = u.j.stock(u.ctx, rec); err != nil {
			return fmt.Errorf("step %d: %w", rec.Number, err)
		}
		if err := u.overlaps(rec); err != nil {
			return err
		}
	}
	u.came = map[key]bool{}
	for i := range rec.Changes {
		if c := &rec.Changes[i]; c.After.Exists() {
			if at, why := u.place(c.Root, c.Path); why == "" {
				u.came[at] = true
			}
		}
	}
	if err := u.takeAll(rec); err != nil {
		return err
	}
	if err := u.ask(); err != nil {
		return err
	}
	for _, phase := range []func() error{u.open, u.removeFiles, u.arrange, u.restore, u.directories} {
		err := phase()
		u.clear()
		if err != nil {
			return err
		}
	}
	for _, x := range u.items {
		if x.did {
			was, p := x.c.Was()
			u.res.Restored = append(u.res.Restored, Restored{Place{rec.Number, rec.Roots[was].Path, p}, x.note})
		}
	}
	return nil
}

// A meddler is a step that changed a path while another one went on. before is when the file had changed that it found.
type meddler struct{ step, before int64 }

// later reports whether a meddler may have changed the path after a step did.
func (m meddler) later(step int64, c *Change) bool {
	if c.Before.Kind == Dir && c.After.Kind == Dir {
		return false
	}
	return m.before > c.Before.Change || m.before == c.Before.Change && m.step > step
}

// maxOverlaps bounds how many records are read because their steps went on at the same time.
const maxOverlaps = 100

// overlaps finds what other steps changed while one went on: the present may be theirs, although the step left it.
func (u *undo) overlaps(rec *Record) error {
	u.other = map[key][]meddler{}
	list, err := u.j.List(u.ctx, Filter{Since: rec.Begin, Lean: true})
	if list == nil && err != nil {
		return err
	}
	n, sum := 0, load{}
	for i := range list {
		o := &list[i]
		if o.Number == rec.Number || slices.Contains(u.rec.head.Undoes, o.Number) || !o.Begin.Before(rec.End) || !u.shares(o) {
			continue
		}
		if n++; n > maxOverlaps || sum.add(u.j, o) != nil {
			return fmt.Errorf("too many steps went on at the same time as step %d, or changed too much: undo the later ones first: %w", rec.Number, paddock.Conflict)
		}
		whole, err := u.j.read(o.Number, true)
		if errors.Is(err, paddock.NotFound) {
			continue
		}
		if err != nil {
			return err
		}
		for k := range whole.Changes {
			c := &whole.Changes[k]
			was, p := c.Was()
			for _, at := range []struct {
				root int
				path Text
			}{{c.Root, c.Path}, {was, p}} {
				if i, ok := u.roots[whole.Roots[at.root].bare()]; ok {
					k := key{i, string(at.path)}
					u.other[k] = append(u.other[k], meddler{o.Number, c.Before.Change})
				}
			}
		}
	}
	return nil
}

// shares reports whether a step could change something in the roots of the undo.
func (u *undo) shares(rec *Record) bool {
	return slices.ContainsFunc(rec.Roots, func(r Root) bool {
		_, ok := u.roots[r.bare()]
		return ok
	})
}

// conflict ends an item that cannot be undone.
func (u *undo) conflict(x *item, why, remedy string) {
	x.over = true
	root, p := x.c.Root, x.c.Path
	if !x.c.After.Exists() {
		root, p = x.c.Was()
	}
	u.res.Conflicts = append(u.res.Conflicts, Conflict{Place{u.of.Number, u.of.Roots[root].Path, p}, why, remedy})
}

// Remedies.
const (
	byHand  = "compare it with `paddock diff`, and change it by hand"
	again   = "undo again when nobody else changes it"
	makeWay = "move what is there away, and undo this path again"
	moreWay = "undo the later steps that changed it first, or restore it by hand"
)

// failed ends an item after an error of a call that concerns it alone. Others end the undo.
func (u *undo) failed(x *item, err error) error {
	if err == nil {
		return nil
	}
	u.clear() // its directory may be elsewhere by now
	if cause := context.Cause(u.ctx); cause != nil {
		return cause
	}
	var held *heldError
	switch {
	case errors.As(err, &held):
		u.conflict(x, held.Error(), "end that process, or the sandbox, and undo again")
	case full(err):
		return fmt.Errorf("%w: free space, and undo again: %w", err, paddock.Exhausted)
	case errors.Is(err, errMoving), errors.Is(err, os.ErrExist):
		u.conflict(x, "it changed while the undo went on", again)
	default:
		u.conflict(x, err.Error(), byHand)
	}
	return nil
}

func (u *undo) tree(k key) *tree { return u.rec.trees[k.root] }

func (u *undo) stat(k key) (State, error) { return u.tree(k).stat(k.path) }

// place translates a path of the record.
func (u *undo) place(root int, p Text) (key, string) {
	b := u.of.Roots[root].bare()
	if why := u.bad[b]; why != "" {
		return key{}, why
	}
	return key{u.roots[b], string(p)}, ""
}

// back reports whether a moved or removed directory is where it was.
func (x *item) back() bool {
	if x.with != nil {
		return x.with.back()
	}
	return x.did && !x.temp
}

// either returns words for an undo, or for the application of a proposal.
func (u *undo) either(undo, apply string) string {
	if u.review != nil {
		return apply
	}
	return undo
}

// wanted reports whether the request is about a path.
func (u *undo) wanted(root int, p Text) bool {
	full := path.Join(string(u.of.Roots[root].Path), string(p))
	return len(u.q.Paths) == 0 || slices.ContainsFunc(u.q.Paths, func(q string) bool { return within(full, q) })
}

// around reports whether a change is that of a removed directory that a path of the request was in.
func (u *undo) around(c *Change) bool {
	if c.Before.Kind != Dir || c.After.Exists() {
		return false
	}
	full := path.Join(string(u.of.Roots[c.Root].Path), string(c.Path))
	return slices.ContainsFunc(u.q.Paths, func(q string) bool { return within(q, full) })
}

// takeAll makes the items. Directories that the step made unsearchable come first, those above others before them: what is in
// one cannot be looked at until it has its mode again. An application of a proposal looks at layers, and asks before it changes
// anything.
func (u *undo) takeAll(rec *Record) error {
	order := map[*Change]int{}
	var first []*Change
	for i := range rec.Changes {
		c := &rec.Changes[i]
		if order[c] = i; u.review == nil && c.opens() {
			first = append(first, c)
		}
	}
	slices.SortStableFunc(first, func(a, b *Change) int { return cmp.Compare(len(a.Path), len(b.Path)) })
	early := map[*Change]bool{}
	for _, c := range first {
		early[c] = true
		n := len(u.items)
		if err := u.take(c); err != nil {
			return err
		}
		for _, x := range u.items[n:] {
			if err := u.openDir(x); err != nil {
				return err
			}
		}
	}
	for i := range rec.Changes {
		if c := &rec.Changes[i]; !early[c] {
			if err := u.take(c); err != nil {
				return err
			}
		}
	}
	slices.SortStableFunc(u.items, func(a, b *item) int { return cmp.Compare(order[a.c], order[b.c]) })
	return nil
}

// opens reports whether a change is that of a directory's mode, so that an undo opens it.
func (c *Change) opens() bool {
	return c.Before.Kind == Dir && c.After.Kind == Dir && !c.Moved && c.Before.Mode != c.After.Mode
}

// take makes an item of a change, and checks that the present is what the step left.
func (u *undo) take(c *Change) error {
	if err := context.Cause(u.ctx); err != nil {
		return err
	}
	wasRoot, was := c.Was()
	if !u.wanted(c.Root, c.Path) && !u.wanted(wasRoot, was) && !u.around(c) {
		return nil
	}
	x := &item{c: c}
	var why string
	if x.to, why = u.place(wasRoot, was); why != "" {
		u.conflict(x, why, "put the directory back to its place")
		return nil
	}
	at, why := u.place(c.Root, c.Path)
	if why != "" {
		u.conflict(x, why, "put the directory back to its place")
		return nil
	}
	if c.Why != "" {
		u.conflict(x, u.either("the step cannot be undone here: ", "")+c.Why, u.either("restore it from elsewhere, such as a backup", byHand))
		return nil
	}
	for _, k := range []key{at, x.to} {
		for _, m := range u.other[k] {
			if m.later(u.of.Number, c) {
				u.conflict(x, fmt.Sprintf("step %d changed it too while this one went on", m.step), moreWay)
				return nil
			}
		}
	}
	now, err := u.stat(at)
	if err != nil {
		return u.failed(x, err)
	}
	if !c.After.Exists() {
		if now.Exists() && !u.came[at] {
			if same, _, err := u.is(at, now, &c.Before); err == nil && same {
				return nil // it is back already
			}
			if c.Before.Kind == Dir && now.Kind == Dir {
				return nil // so that what was in it comes back into that one
			}
			u.conflict(x, "something else is there now", makeWay)
			return nil
		}
		u.items = append(u.items, x)
		return nil
	}
	same, now, err := u.is(at, now, &c.After)
	if err != nil {
		return u.failed(x, err)
	}
	if !same {
		if !c.Moved {
			if back, _, err := u.is(at, now, &c.Before); err == nil && back {
				return nil
			}
		}
		switch {
		case !now.Exists():
			u.conflict(x, u.either("it was removed, or moved away, after the step", "it was removed here meanwhile"), u.either(moreWay, byHand))
		default:
			u.conflict(x, u.either("it was changed after the step", "it was changed here meanwhile"), u.either(moreWay, byHand))
		}
		return nil
	}
	x.n, x.seen = u.names.put(at), now
	if x.n.is == made { // two changes claim one file
		u.conflict(x, "the record tells two things about it", byHand)
		return nil
	}
	x.n.is = made
	u.items = append(u.items, x)
	return nil
}

// is reports whether a present state is a recorded one.
func (u *undo) is(at key, now State, want *State) (bool, State, error) {
	if now.Kind != want.Kind {
		return false, now, nil
	}
	switch now.Kind {
	case Absent:
		return true, now, nil
	case Dir:
		return now.Mode == want.Mode, now, nil
	case Symlink:
		return now.Target == want.Target, now, nil
	case FIFO: // which has no contents, so one that an undo made is the same
		return now.Mode == want.Mode, now, nil
	case Socket, Device:
		return now.Mode == want.Mode && sameFile(&now, want), now, nil
	}
	if now.Mode != want.Mode || now.Size != want.Size {
		return false, now, nil
	}
	if !want.Racy && sameFile(&now, want) && now.ModTime == want.ModTime && now.Change == want.Change {
		return true, now, nil
	}
	if want.Digest == "" {
		return false, now, nil
	}
	s, err := u.tree(at).digest(at.path, now, max(u.j.opts.File, hashBudget))
	if err != nil {
		return false, now, err
	}
	return s.Digest == want.Digest && s.Mode == want.Mode, s, nil
}

// still reports whether a file is the one that was checked. A rename changes no more than the time of its inode.
func (x *item) still(now *State) bool {
	s := &x.seen
	return now.Kind == s.Kind && sameFile(now, s) && now.Mode == s.Mode && now.Size == s.Size && now.Target == s.Target &&
		(now.Kind == Dir || now.ModTime == s.ModTime && now.Change >= s.Change)
}

// touched reports whether a file is not even renamed since it was checked.
func (x *item) touched(now *State) bool {
	linked := now.Links > 1 || x.seen.Links > 1 // whose other names may come and go
	return !x.still(now) || now.Kind != Dir && !linked && now.Change != x.seen.Change
}

// open makes directories writable that the step made read-only, and files readable that it made unreadable: their contents
// are kept before they change.
func (u *undo) open() error {
	for _, x := range u.items {
		var err error
		switch {
		case x.over:
		case x.c.opens():
			err = u.openDir(x)
		case u.review == nil && x.c.After.Kind == File && x.seen.Kind == File && x.c.After.Mode&0o400 == 0:
			err = u.openFile(x)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (u *undo) openDir(x *item) error {
	if x.open || x.over {
		return nil
	}
	x.open = true
	c, at := x.c, x.n.at()
	if why := u.guard(x, at, &c.Before); why != "" {
		u.conflict(x, why, byHand)
		return nil
	}
	if err := u.rec.Mode(at.root, at.path); err != nil {
		return err
	}
	s := c.Before
	s.Mode, s.ModTime = s.Mode|0o700, x.seen.ModTime
	return u.failed(x, u.tree(at).settle(at.path, &x.seen, &s, -1, -1))
}

func (u *undo) openFile(x *item) error {
	at := x.n.at()
	why := u.mayRemove(at)
	if x.c.Before.Exists() {
		why = u.guard(x, at, &x.c.Before)
	}
	if why != "" {
		u.conflict(x, why, byHand)
		return nil
	}
	if err := u.rec.Mode(at.root, at.path); err != nil {
		return err
	}
	s := x.seen
	s.Mode |= 0o400
	if err := u.tree(at).settle(at.path, &x.seen, &s, -1, -1); err != nil {
		return u.failed(x, err)
	}
	now, err := u.stat(at)
	if err == nil && (!sameFile(&now, &x.seen) || now.Size != x.seen.Size || now.ModTime != x.seen.ModTime || now.Mode != s.Mode) {
		err = errMoving
	}
	x.seen = now
	return u.failed(x, err)
}

// goes reports whether the file of After has to go, because there was none before or one of another kind.
func (x *item) goes() bool {
	c := x.c
	return !x.over && !c.Moved && c.After.Exists() && (!c.Before.Exists() || (c.Before.Kind == Dir) != (c.After.Kind == Dir))
}

// staging returns the path of a file in the stage beside a path. It is free.
func (u *undo) staging(at key) (temp string, err error) {
	if dir := at.parent(); u.onDesk == "" || u.desk != dir {
		u.clear()
		if u.onDesk, err = u.tree(at).stage(at.path); err != nil {
			u.onDesk = ""
			return "", err
		}
		u.desk = dir
	}
	return u.onDesk, nil
}

// clear removes the stage that is open.
func (u *undo) clear() {
	if u.onDesk != "" {
		u.tree(u.desk).unstage(u.onDesk)
		u.onDesk = ""
	}
}

// removeFiles removes what the step made, but directories.
func (u *undo) removeFiles() error {
	for _, x := range u.items {
		if !x.goes() || x.c.After.Kind == Dir {
			continue
		}
		if err := context.Cause(u.ctx); err != nil {
			return err
		}
		at := x.n.at()
		if why := u.mayRemove(at); why != "" {
			u.conflict(x, why, byHand)
			continue
		}
		if err := u.failed(x, u.removeFile(x, at)); err != nil {
			return err
		}
	}
	return nil
}

func (u *undo) removeFile(x *item, at key) error {
	if now, err := u.stat(at); err != nil || x.touched(&now) {
		return errors.Join(err, errMoving)
	}
	t := u.tree(at)
	temp, err := u.staging(at)
	if err != nil {
		return err
	}
	if err := u.rec.Remove(at.root, at.path); err != nil {
		return err
	}
	failed := func(err error) error { return errors.Join(err, u.rec.Failed(at.root, at.path)) }
	if err := t.land(temp, at.path, landTake); err != nil {
		return failed(err)
	}
	back := func() error {
		if err := t.land(temp, at.path, landFree); err != nil {
			u.onDesk = "" // it stays there
			return fmt.Errorf("it is at %q now, and could not be put back: %w", temp, err)
		}
		return nil
	}
	if now, err := t.stat(temp); err != nil || !x.still(&now) {
		return failed(errors.Join(errMoving, err, back()))
	}
	if err := t.unlink(temp); err != nil {
		return failed(errors.Join(err, back()))
	}
	u.names.drop(x.n)
	x.n = nil
	x.did = true
	x.over = !x.c.Before.Exists()
	return nil
}

// arrange moves files back, and makes and removes directories, in an order in which that is possible.
func (u *undo) arrange() error {
	var moves, makes, takes []*item
	u.gives = map[key]*item{}
	here := map[key]*item{}
	for _, x := range u.items {
		if x.c.Before.Kind != Dir {
			continue
		}
		if x.c.Moved || x.n == nil || x.c.After.Kind != Dir {
			u.gives[x.to] = x
		}
		if x.c.Moved && x.n != nil {
			here[x.n.at()] = x
		}
	}
	for _, x := range u.items {
		switch {
		case x.over:
		case x.c.Moved:
			if x.with = carried(x, here); x.with == nil {
				moves = append(moves, x)
			}
		case x.goes() && x.c.After.Kind == Dir && x.n != nil:
			takes = append(takes, x)
			if x.c.Before.Exists() {
				continue
			}
		case x.c.Before.Kind == Dir && (x.n == nil || x.c.After.Kind != Dir):
			makes = append(makes, x)
		}
	}
	slices.SortFunc(makes, func(a, b *item) int { return snapshot.Compare(a.to.path, b.to.path) })
	slices.SortFunc(takes, func(a, b *item) int { return snapshot.Compare(b.n.at().path, a.n.at().path) })
	depth := func(x *item) int { return strings.Count(x.n.at().path, "/") }
	slices.SortStableFunc(moves, func(a, b *item) int { return depth(b) - depth(a) })
	ends := map[key]*item{}
	for _, x := range moves {
		ends[x.to] = x
	}
	for {
		progress := false
		for _, list := range []struct {
			items *[]*item
			do    func(*item, map[key]*item) (bool, error)
		}{{&makes, u.makeDir}, {&moves, u.moveBack}, {&takes, u.takeDir}} {
			var rest []*item
			for _, x := range *list.items {
				if x.over || x.did && x.c.Moved && !x.temp {
					continue
				}
				if err := context.Cause(u.ctx); err != nil {
					return err
				}
				done, err := list.do(x, ends)
				if err != nil {
					return err
				}
				progress = progress || done
				if !done && !x.over {
					rest = append(rest, x)
				}
			}
			*list.items = rest
		}
		if progress {
			continue
		}
		staged, err := u.stage(moves)
		if err != nil {
			return err
		}
		if !staged {
			break
		}
	}
	for _, x := range moves {
		if x.over || x.did && !x.temp {
			continue
		}
		if x.temp { // nothing made way for it
			at := x.n.at()
			if err := u.goHome(x, at); err != nil {
				u.conflict(x, fmt.Sprintf("it could not be moved, and is at %q now: %v", at.path, err), byHand)
				continue
			}
			u.tree(at).unstage(at.path)
		}
		u.conflict(x, fmt.Sprintf("it cannot be moved back to %q: something is there, or its directory is not", x.to.path), makeWay)
	}
	for _, x := range u.items {
		if x.with != nil && !x.over && !x.back() {
			u.conflict(x, "its directory could not be moved back", makeWay)
		}
	}
	for _, x := range makes {
		u.conflict(x, "its place is taken, or the directory that it was in is not there", makeWay)
	}
	for _, x := range takes {
		u.conflict(x, "the directory has contents that the step did not make", byHand)
	}
	return nil
}

// carried returns the moved directory that takes a file in it along when it is moved back, if it does.
func carried(x *item, here map[key]*item) *item {
	at := x.n.at()
	for i := strings.LastIndexByte(at.path, '/'); i > 0; i = strings.LastIndexByte(at.path[:i], '/') {
		d := here[key{at.root, at.path[:i]}]
		if d == nil {
			continue
		}
		if (key{d.to.root, d.to.path + at.path[i:]}) == x.to {
			return d
		}
		return nil
	}
	return nil
}

// makeDir makes a directory that the step removed, if that is possible now.
func (u *undo) makeDir(x *item, _ map[key]*item) (bool, error) {
	now, err := u.stat(x.to)
	if err != nil {
		return false, u.failed(x, err)
	}
	if now.Exists() || !u.parent(x.to) {
		return false, nil
	}
	if err := u.landDir(x); err != nil {
		return false, u.failed(x, err)
	}
	x.did = true
	return true, nil
}

// landDir makes a directory in the stage, where nobody can exchange it before it has its owner, and moves it to its place.
func (u *undo) landDir(x *item) (err error) {
	t := u.tree(x.to)
	temp, err := u.staging(x.to)
	if err != nil {
		return err
	}
	if err := t.mkdir(temp); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.rmdir(temp))
		}
	}()
	if x.seen, err = t.stat(temp); err != nil {
		return err
	}
	b := x.c.Before // at once, because it is not taken for another one if this is cut off
	b.Mode |= 0o700
	if err := u.settle(x, key{x.to.root, temp}, &x.seen, &b); err != nil {
		return err
	}
	release, err := u.claim(x.to)
	if err != nil {
		return err
	}
	defer release()
	if why := u.guard(x, x.to, &x.c.Before); why != "" {
		return guarded(why)
	}
	if err := u.rec.Create(x.to.root, x.to.path); err != nil {
		return err
	}
	if err := t.land(temp, x.to.path, landFree); err != nil {
		return errors.Join(err, u.rec.Failed(x.to.root, x.to.path))
	}
	return nil
}

// parent reports whether the directory of a path is there, and is the one from before the step.
func (u *undo) parent(k key) bool {
	up := k.parent()
	if up.path == "" {
		return true
	}
	for d := up; d.path != ""; d = d.parent() {
		if x := u.gives[d]; x != nil && !x.back() {
			return false
		}
	}
	s, err := u.stat(up)
	return err == nil && s.Kind == Dir
}

// takeDir removes a directory that the step made, if it is empty by now.
func (u *undo) takeDir(x *item, _ map[key]*item) (bool, error) {
	at := x.n.at()
	now, err := u.stat(at)
	if err != nil {
		return false, u.failed(x, err)
	}
	if !x.still(&now) {
		u.conflict(x, "it changed while the undo went on", again)
		return false, nil
	}
	empty, err := u.tree(at).empty(at.path)
	if err != nil || !empty {
		return false, u.failed(x, err)
	}
	if why := u.mayRemove(at); why != "" {
		u.conflict(x, why, byHand)
		return false, nil
	}
	if err := u.rec.Remove(at.root, at.path); err != nil {
		return false, err
	}
	if err := u.tree(at).rmdir(at.path); err != nil {
		return false, u.failed(x, errors.Join(err, u.rec.Failed(at.root, at.path)))
	}
	u.names.drop(x.n)
	x.n, x.did = nil, true
	x.over = !x.c.Before.Exists()
	return true, nil
}

// moveBack moves a file or directory back if its place is free, and then what waits for the place that it leaves.
func (u *undo) moveBack(x *item, ends map[key]*item) (bool, error) {
	progress := false
	for x != nil && !x.over && (!x.did || x.temp) {
		at := x.n.at()
		now, err := u.stat(at)
		if err != nil {
			return progress, u.failed(x, err)
		}
		if !x.still(&now) {
			u.conflict(x, "it changed while the undo went on", again)
			return progress, nil
		}
		there, err := u.stat(x.to)
		if err != nil {
			return progress, u.failed(x, err)
		}
		if there.Exists() || !u.parent(x.to) || related(at, x.to) {
			return progress, nil
		}
		if err := u.moveOne(x, at); err != nil {
			return progress, u.failed(x, err)
		}
		x.did, x.temp, progress = true, false, true
		x = ends[at]
	}
	return progress, nil
}

// moveOne moves a file or directory back, while nobody makes a repository there.
func (u *undo) moveOne(x *item, at key) error {
	release, err := u.claim(x.to)
	if err != nil {
		return err
	}
	defer release()
	if why := u.mayMove(x, at); why != "" {
		return guarded(why)
	}
	if err := u.shift(x, at, x.to); err != nil {
		return err
	}
	if x.temp {
		u.tree(at).unstage(at.path)
	}
	return nil
}

// shift moves a file or directory to a free name.
func (u *undo) shift(x *item, at, to key) error {
	if err := u.rec.Move(at.root, at.path, to.root, to.path, Free); err != nil {
		return err
	}
	if err := u.tree(at).move(at.path, u.tree(to), to.path); err != nil {
		return errors.Join(err, u.rec.Failed(to.root, to.path))
	}
	u.names.cut(x.n)
	u.names.set(x.n, to)
	return nil
}

// goHome moves a file from its temporary name to where the step left it, or to where that is now.
func (u *undo) goHome(x *item, at key) error {
	top := x.home
	for top.up != nil {
		top = top.up
	}
	if top != u.names.tops[top.root] {
		return fmt.Errorf("the directory that it was in is not there any more: %w", paddock.Conflict)
	}
	to := x.home.at()
	return u.shift(x, at, to)
}

// hope reports whether the place of a file may become free: at has the files that are still to be moved, by where they are.
func (u *undo) hope(x *item, at map[key]*item, seen map[*item]bool) bool {
	for x != nil && !seen[x] {
		seen[x] = true
		there, err := u.stat(x.to)
		if err != nil {
			return false
		}
		if !there.Exists() || related(x.n.at(), x.to) {
			return true
		}
		_, _, n := u.names.find(x.to)
		if n != nil && n.is == made && at[x.to] == nil {
			return there.Kind == Dir // it goes when it is empty
		}
		if x = at[x.to]; x == nil {
			return false
		}
	}
	return true // they wait for each other
}

// maxStaged bounds how many files are moved to temporary names.
const maxStaged = 1000

// stage moves one of the files that wait for each other to a temporary name.
func (u *undo) stage(moves []*item) (bool, error) {
	if u.staged >= maxStaged {
		return false, nil
	}
	at := map[key]*item{}
	for _, x := range moves {
		if !x.over && (!x.did || x.temp) {
			at[x.n.at()] = x
		}
	}
	for _, x := range moves {
		if x.over || x.did || x.temp {
			continue
		}
		here := x.n.at()
		other := at[x.to]
		waits := other != nil && other != x || related(here, x.to)
		for d := x.to.parent(); d.path != "" && !waits; d = d.parent() {
			g := u.gives[d]
			waits = g != nil && !g.over && !g.back()
		}
		if !waits || u.mayMove(x, here) != "" || !u.hope(x, at, map[*item]bool{}) {
			continue
		}
		temp, err := u.tree(here).stage("x") // at the top, where no directory has to go
		if err != nil {
			return false, err
		}
		if err := u.shift(x, here, key{here.root, temp}); err != nil {
			u.tree(here).unstage(temp)
			if err := u.failed(x, err); err != nil {
				return false, err
			}
			continue
		}
		x.temp, x.home = true, u.names.put(here)
		u.staged++
		return true, nil
	}
	return false, nil
}

// restore brings back files, links and FIFOs.
func (u *undo) restore() error {
	for _, x := range u.items {
		c := x.c
		if x.over || !c.Before.Exists() || c.Before.Kind == Dir || c.Moved && !x.back() {
			continue
		}
		if err := context.Cause(u.ctx); err != nil {
			return err
		}
		var data iter.Seq2[snapshot.Extent, error]
		if c.Kept > 0 {
			held, ok := u.has.data(c.Kept, c.Pack, c.Before.Size)
			if !ok {
				u.conflict(x, "its contents are not in the journal any more", "restore it from elsewhere, such as a backup")
				continue
			}
			data = held
		}
		if why := u.guard(x, x.to, &c.Before); why != "" {
			u.conflict(x, why, byHand)
			continue
		}
		if err := u.failed(x, u.restoreFile(x, data)); err != nil {
			return err
		}
	}
	return nil
}

func (u *undo) restoreFile(x *item, data iter.Seq2[snapshot.Extent, error]) error {
	b, a := &x.c.Before, &x.c.After
	if x.n == nil {
		return u.putBack(x, data)
	}
	if x.c.Moved && data == nil && b.Mode == a.Mode && b.UID == a.UID && b.GID == a.GID {
		return nil // it was only moved
	}
	now, err := u.stat(x.to)
	if err != nil {
		return err
	}
	if !x.still(&now) {
		// Another name of it may have been restored.
		if back, _, err := u.is(x.to, now, b); err == nil && back && b.Links > 1 {
			x.did = true
			return nil
		}
		return errMoving
	}
	x.seen = now
	if same := now.Kind == b.Kind && now.Target == b.Target && (b.Kind != File || data == nil || b.Digest != "" && b.Digest == a.Digest); same {
		if now.Kind == Symlink || now.Mode&0o1777 == b.Mode&0o1777 && now.UID == b.UID && now.GID == b.GID {
			return nil
		}
		if err := u.rec.Mode(x.to.root, x.to.path); err != nil {
			return err
		}
		x.did = true
		return errors.Join(u.settle(x, x.to, &now, b), u.refresh(x))
	}
	_, hit, _ := u.match(x.to)
	if now.Kind == File && b.Kind == File && now.Links > 1 && now.Ino == b.Ino && now.Dev == b.Dev && hit != protect.Protected {
		if err := u.rec.Write(x.to.root, x.to.path); err != nil {
			return err
		}
		if err := u.tree(x.to).rewrite(u.ctx, x.to.path, &now, b.Size, data, u.j.opts.Sync); err != nil {
			return err
		}
		x.did, x.note = true, "it has other names, which have these contents too"
		return errors.Join(u.settle(x, x.to, &now, b), u.refresh(x))
	}
	return u.build(x, data, func(temp string, built *State) error { return u.replace(x, temp, built) })
}

// refresh notes what this undo made of a file with several names, for the other names of it.
func (u *undo) refresh(x *item) error {
	if u.inodes == nil {
		u.inodes = map[[2]uint64][]*item{}
		for _, y := range u.items {
			if y.n != nil && y.seen.Links > 1 {
				k := [2]uint64{y.seen.Dev, y.seen.Ino}
				u.inodes[k] = append(u.inodes[k], y)
			}
		}
	}
	now, err := u.stat(x.to)
	if err != nil {
		return err
	}
	for _, y := range u.inodes[[2]uint64{now.Dev, now.Ino}] {
		y.seen = now
	}
	return nil
}

// putBack makes a file again where nothing is.
func (u *undo) putBack(x *item, data iter.Seq2[snapshot.Extent, error]) error {
	if !u.parent(x.to) {
		return fmt.Errorf("the directory that it was in is not there: %w", paddock.NotFound)
	}
	return u.build(x, data, func(temp string, built *State) error {
		if err := u.rec.Create(x.to.root, x.to.path); err != nil {
			return err
		}
		failed := func(err error) error { return errors.Join(err, u.rec.Failed(x.to.root, x.to.path)) }
		if err := u.tree(x.to).land(temp, x.to.path, landFree); err != nil {
			return failed(err)
		}
		return u.landed(x, temp, built, landTake, failed)
	})
}

// build makes the file of Before in the stage beside its place, and calls land while nobody makes a repository there. What
// is in the stage afterwards goes away.
func (u *undo) build(x *item, data iter.Seq2[snapshot.Extent, error], land func(temp string, built *State) error) error {
	t := u.tree(x.to)
	temp, err := u.staging(x.to)
	if err != nil {
		return err
	}
	if err := t.make(u.ctx, temp, &x.c.Before, data, u.j.opts.Sync); err != nil {
		return errors.Join(err, t.discard(temp))
	}
	built, err := t.stat(temp)
	if err == nil {
		err = u.settle(x, key{x.to.root, temp}, &built, &x.c.Before)
	}
	built, looked := t.stat(temp)
	u.j.built(temp)
	release, claimed := u.claim(x.to)
	defer release()
	if err = cmp.Or(err, looked, claimed); err == nil {
		if why := u.guard(x, x.to, &x.c.Before); why != "" {
			err = guarded(why)
		}
		_, hit, _ := u.match(x.to)
		x.judged = hit == protect.Protected
	}
	if err == nil {
		err = land(temp, &built)
	}
	if stays := (unreturned{}); errors.As(err, &stays) {
		u.onDesk = ""
		return err
	}
	return errors.Join(err, t.discard(temp))
}

// An unreturned is an error after which a file of somebody else stays in the stage.
type unreturned struct{ error }

func (e unreturned) Unwrap() error { return e.error }

// replace lands a built file where one is that the step left.
func (u *undo) replace(x *item, temp string, built *State) error {
	t, at := u.tree(x.to), x.to
	if err := u.rec.Remove(at.root, at.path); err != nil {
		return err
	}
	failed := func(err error) error { return errors.Join(err, u.rec.Failed(at.root, at.path)) }
	if err := u.rec.Create(at.root, at.path); err != nil {
		return failed(err)
	}
	gone := failed
	failed = func(err error) error { return gone(errors.Join(err, u.rec.Failed(at.root, at.path))) }
	how := landSwap
	err := errNoSwap
	if !u.j.noSwap {
		err = t.land(temp, at.path, landSwap)
	}
	if errors.Is(err, errNoSwap) {
		if now, err := u.stat(at); err != nil || !x.still(&now) {
			return failed(errors.Join(errMoving, err))
		}
		how = landOver
		err = t.land(temp, at.path, landOver)
		x.note = "the file system cannot exchange names, so an edit of the last moment would be lost"
	}
	if err != nil {
		return failed(err)
	}
	if how == landSwap {
		if out, err := t.stat(temp); err != nil || !x.still(&out) {
			err = errors.Join(errMoving, err)
			if back := t.land(temp, at.path, landSwap); back != nil {
				err = unreturned{errors.Join(err, fmt.Errorf("it is at %q now, and could not be put back: %w", temp, back))}
			}
			return failed(err)
		}
	}
	return u.landed(x, temp, built, how, failed)
}

// landed checks that what is at the path is what was built, and that the path is not one of a repository since the look
// before. Otherwise it takes the file back.
func (u *undo) landed(x *item, temp string, built *State, back landing, failed func(error) error) error {
	at := x.to
	why := ""
	now, err := u.stat(at)
	switch {
	case err != nil:
		return err
	case now.Kind != built.Kind || !sameFile(&now, built) || now.Size != built.Size || now.ModTime != built.ModTime || now.Mode != built.Mode || now.Target != built.Target:
		why = "something else came to its place while the undo went on"
	default:
		if rule, hit, _ := u.match(at); hit == protect.Protected && !x.judged {
			if back != landOver {
				err = u.tree(at).land(temp, at.path, back)
			}
			return failed(errors.Join(guarded(u.protected(rule)+", because its directory became a repository of git while the undo went on"), err))
		}
	}
	if why != "" {
		return guarded(why)
	}
	x.did = true
	if x.c.Before.Links > 1 {
		x.note = "it had other names, and is a file of its own now"
	}
	return nil
}

// settle gives a restored file its owner, mode and time, if it is still the one that was looked at.
func (u *undo) settle(x *item, at key, was, b *State) error {
	t := u.tree(at)
	uid, gid := -1, -1
	if os.Geteuid() == 0 {
		uid, gid = int(t.uid), int(t.gid)
		if x.c.Seen || u.review != nil || b.UID == t.uid { // a proposal has the owner that the host's file has
			uid, gid = int(b.UID), int(b.GID)
		}
	}
	if b.Mode&0o6000 != 0 {
		x.note = "without its set-id bits"
	}
	return t.settle(at.path, was, b, uid, gid)
}

// directories gives directories their modes and times, the deepest first.
func (u *undo) directories() error {
	var dirs []*item
	for _, x := range u.items {
		if !x.over && x.c.Before.Kind == Dir && (!x.c.Moved || x.back()) {
			dirs = append(dirs, x)
		}
	}
	slices.SortFunc(dirs, func(a, b *item) int { return snapshot.Compare(b.to.path, a.to.path) })
	for _, x := range dirs {
		now, err := u.stat(x.to)
		if err == nil && (now.Kind != Dir || !sameFile(&now, &x.seen)) {
			err = errMoving
		}
		if err != nil {
			if err := u.failed(x, err); err != nil {
				return err
			}
			continue
		}
		b, again := x.c.Before, x.n == nil // it was made again
		if !again {
			if a := &x.c.After; b.Mode == a.Mode && b.UID == a.UID && b.GID == a.GID {
				continue
			}
			b.ModTime = now.ModTime // that of what is in it now
		}
		if err := u.rec.Mode(x.to.root, x.to.path); err != nil {
			return err
		}
		if err := u.failed(x, u.settle(x, x.to, &now, &b)); err != nil {
			return err
		}
		x.did = x.did || !x.over
	}
	return nil
}
