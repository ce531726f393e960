package step

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/protect"
)

// An Application says what of a proposal is to be applied.
type Application struct {
	Number int64

	// Paths limits it to these paths of the host (absolute) and what is below them. Empty means all.
	Paths []string

	// Unprotect has names that are applied although no sandbox may write them.
	Unprotect []string

	// Pick is asked about each path, in order, if it is set.
	Pick func(*Offer) (Choice, error)

	// Judge is asked once, if it is set, when it is known what would be applied, and before anything of the host's is
	// changed. No other change is made afterwards; some may turn out to be conflicts. It is not asked if there is none. An
	// error ends the application, of which nothing is recorded then.
	Judge func([]*Change) error
}

// An Offer is a part of a proposal that may be chosen.
type Offer struct {
	Difference
	Hunks []Hunk // of text; empty if the path is chosen as a whole
}

// A Choice is what was chosen of an Offer.
type Choice struct {
	All   bool
	Hunks []int // if not All: which of them, in order
}

// An Applied is what became of an application.
type Applied struct {
	Result
	Stays int // paths that are left in the proposal; it is gone if there are none
}

// whyBoth is why a file cannot be merged.
const whyBoth = "it was changed here meanwhile, in the same lines or beside them"

// Apply makes the files of the host what a proposal says, where they are what they were when the command ran. Text that was
// changed since is merged. The rest are conflicts. It is recorded as a step of j, so that it can be undone. What is applied
// leaves the proposal.
func (j *Journal) Apply(ctx context.Context, v *Reviews, q Application) (_ *Applied, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("apply: %w", err)
		}
	}()
	rec, err := v.proposal(q.Number)
	if err != nil {
		return nil, err
	}
	for _, p := range q.Paths {
		if !path.IsAbs(p) || path.Clean(p) != p {
			return nil, fmt.Errorf("the path %q is not absolute and clean: %w", p, paddock.Invalid)
		}
	}
	req := &Request{Paths: q.Paths, Sandbox: rec.Sandbox, Tier: rec.Tier, Command: []string{"apply", strconv.FormatInt(q.Number, 10)}}
	if req.Protect, err = protect.New(rec.Protect, q.Unprotect); err != nil {
		return nil, err
	}
	has, err := v.stock(ctx, rec)
	if err != nil {
		return nil, err
	}
	u := &undo{j: j, ctx: ctx, q: req, res: &Result{}, review: has, of: rec, permit: q.Judge, patience: patience{claimTries}}
	if err := u.begin([]*Record{rec}); err != nil {
		return nil, err
	}
	a := &applying{u: u, rec: rec, has: has, shows: q.Pick != nil, parts: map[int]bool{}, notes: map[int]string{}}
	chosen, err := a.choose(q.Pick)
	if err == nil {
		err = u.step(chosen)
	}
	if u.denied != nil {
		return nil, errors.Join(u.denied, u.rec.Abandon())
	}
	res, err := u.end(err)
	if err != nil {
		return &Applied{*res, rec.Changed}, err
	}
	return a.settle(ctx, v, res)
}

// ask has the changes judged that are about to be made, if somebody judges them.
func (u *undo) ask() error {
	var list []*Change
	for _, x := range u.items {
		if !x.over {
			list = append(list, x.c)
		}
	}
	if u.permit != nil && len(list) > 0 {
		u.denied = u.permit(list)
	}
	return u.denied
}

// proposal reads one.
func (v *Reviews) proposal(number int64) (*Record, error) {
	rec, err := v.read(number, true)
	if errors.Is(err, paddock.NotFound) {
		return nil, fmt.Errorf("there is no proposal %d: %w", number, paddock.NotFound)
	}
	if err != nil {
		return nil, err
	}
	if rec.Kind != kindReview {
		return nil, fmt.Errorf("the record %d is no proposal: %w", number, paddock.Invalid)
	}
	return rec, nil
}

// An applying applies a proposal.
type applying struct {
	u     *undo
	rec   *Record
	has   *stock
	took  []int          // changes that were chosen, by index in rec; those of the record that is applied are in this order
	shows bool           // texts are shown
	parts map[int]bool   // of which only a part was chosen
	notes map[int]string // what is to be told of them
}

// A goal is what a path is to become, given what is there now.
type goal struct {
	change   Change
	old, now []byte // text, if it is
	text     bool
	why      string // why it cannot be
}

// goal compares a change with the present, and merges text if that is not what it was.
func (a *applying) goal(c *Change) (g goal, err error) {
	g.change = *c
	b, w := &c.Before, &c.After
	if b.Kind != File || w.Kind != File && w.Exists() {
		return g, nil
	}
	if !w.Exists() {
		if a.shows {
			g.now, g.text = a.text(c.Kept, c.Pack, b.Size)
		}
		return g, nil
	}
	at, why := a.u.place(c.Root, c.Path)
	if why != "" {
		return g, nil
	}
	now, err := a.u.stat(at)
	if err != nil {
		return g, err
	}
	if c.Why != "" { // it is no base that the present is compared with
		if a.shows && now.Kind == File && now.Size <= baseText {
			g.now, g.text = a.text(c.Kept, c.Pack, b.Size)
			here, _, err := a.u.tree(at).text(at.path, now, baseText)
			g.old, g.text = slices.Clone(here), g.text && err == nil && !isBinary(here)
		}
		return g, nil
	}
	same, now, err := a.u.is(at, now, w)
	if err != nil || same && !a.shows {
		return g, err
	}
	base, known := a.text(c.BaseKept, c.BasePack, w.Size)
	g.now, g.text = a.text(c.Kept, c.Pack, b.Size)
	g.old, g.text = base, g.text && known
	if same || now.Kind != File {
		return g, nil
	}
	if !g.text || now.Size > baseText {
		return g, nil
	}
	if done, _, err := a.u.is(at, now, b); done || err != nil {
		return g, err
	}
	here, now, err := a.u.tree(at).text(at.path, now, baseText)
	if err != nil || isBinary(here) {
		g.text = false
		return g, nil //nolint:nilerr // it changes, so it is not what it was
	}
	merged, clean := merge(base, here, g.now)
	if !clean {
		g.old, g.why = slices.Clone(here), whyBoth
		return g, nil
	}
	g.old, g.now = slices.Clone(here), merged
	g.change.After = now
	g.make(a.has, merged)
	if b.Mode == w.Mode {
		g.change.Before.Mode = now.Mode
	}
	return g, nil
}

// make makes the goal some text.
func (g *goal) make(has *stock, text []byte) {
	sum := sha256.Sum256(text)
	b := &g.change.Before
	b.Size, b.Digest, b.ModTime = int64(len(text)), hex.EncodeToString(sum[:]), time.Now().UnixNano()
	g.change.Kept, g.change.Pack = has.make(text), 0
}

// text returns kept contents if they are text that can be merged and shown.
func (a *applying) text(kept int, pack, size int64) ([]byte, bool) {
	return textOf(a.has, kept, pack, size)
}

func textOf(has *stock, kept int, pack, size int64) ([]byte, bool) {
	if size > baseText {
		return nil, false
	}
	text, ok := has.text(kept, pack, size)
	return text, ok && !isBinary(text)
}

// choose makes the record that is to be undone: of what is wanted, merged where that is necessary.
func (a *applying) choose(pick func(*Offer) (Choice, error)) (*Record, error) {
	of := *a.rec
	of.Changes = nil
	take := func(i int, c Change) {
		a.took = append(a.took, i)
		of.Changes = append(of.Changes, c)
	}
	var dirs []int // that are only asked about if nothing in them is
	for i := range a.rec.Changes {
		if err := context.Cause(a.u.ctx); err != nil {
			return nil, err
		}
		c := &a.rec.Changes[i]
		wanted := a.u.wanted(c.Root, c.Path)
		if !wanted && !a.u.around(c) {
			continue
		}
		if pick != nil && (c.Before.Kind == Dir) != (c.After.Kind == Dir) && a.holds(i) {
			dirs = append(dirs, i)
			continue
		}
		g, err := a.goal(c)
		if err != nil {
			return nil, err
		}
		if g.why != "" {
			a.u.of = a.rec
			a.u.conflict(&item{c: c}, g.why, byHand)
			a.parts[i] = true
			continue
		}
		if pick == nil || !wanted {
			if g.change.Kept != c.Kept {
				a.notes[i] = "merged with what was changed here meanwhile"
			}
			take(i, g.change)
			continue
		}
		some, err := a.pick(i, &g, pick)
		if err != nil {
			return nil, err
		}
		if some {
			take(i, g.change)
		}
	}
	for _, i := range dirs {
		if c := &a.rec.Changes[i]; a.follows(i) {
			take(i, *c)
		}
	}
	return &of, nil
}

// below reports whether the change with index k is in the directory of that with index i.
func (a *applying) below(i, k int) bool {
	d, c := &a.rec.Changes[i], &a.rec.Changes[k]
	return d.Root == c.Root && strings.HasPrefix(string(c.Path), string(d.Path)+"/")
}

// holds reports whether the proposal changes something in a directory.
func (a *applying) holds(i int) bool {
	return i+1 < len(a.rec.Changes) && a.below(i, i+1) // they are in order
}

// follows reports whether a directory comes or goes because of what was chosen in it.
func (a *applying) follows(i int) bool {
	comes := a.rec.Changes[i].Before.Kind == Dir
	for k := i + 1; k < len(a.rec.Changes) && a.below(i, k); k++ {
		c := &a.rec.Changes[k]
		if (c.Before.Kind == Dir) != (c.After.Kind == Dir) && a.holds(k) {
			continue // it follows too
		}
		if slices.Contains(a.took, k) == comes {
			return comes
		}
	}
	return !comes
}

// pick asks about one path. The goal becomes what was chosen of it.
func (a *applying) pick(i int, g *goal, pick func(*Offer) (Choice, error)) (some bool, err error) {
	c := &a.rec.Changes[i]
	o := &Offer{Difference: a.difference(g)}
	if g.text && c.Before.Kind == File && c.After.Kind == File {
		o.Hunks = hunks(g.old, g.now)
	}
	choice, err := pick(o)
	if err != nil {
		return false, err
	}
	if choice.All || len(o.Hunks) > 0 && len(choice.Hunks) == len(o.Hunks) {
		if g.change.Kept != c.Kept {
			a.notes[i] = "merged with what was changed here meanwhile"
		}
		return true, nil
	}
	if len(choice.Hunks) == 0 {
		return false, nil
	}
	var list []Hunk
	for _, h := range choice.Hunks {
		if h < 0 || h >= len(o.Hunks) {
			return false, fmt.Errorf("hunk %d of %d: %w", h, len(o.Hunks), paddock.Invalid)
		}
		list = append(list, o.Hunks[h])
	}
	g.make(a.has, choose(g.old, list))
	g.change.Before.Mode = g.change.After.Mode
	a.parts[i] = true
	a.notes[i] = fmt.Sprintf("%d of %d hunks", len(list), len(o.Hunks))
	return true, nil
}

// difference tells a goal to people.
func (a *applying) difference(g *goal) Difference {
	root := a.rec.Roots[g.change.Root].Path
	return difference(root, g)
}

func difference(root Text, g *goal) Difference {
	c := &g.change
	s := sum{was: spot{path: c.Path}, at: spot{path: c.Path}, before: c.After, after: c.Before}
	d := Difference{Root: root, Path: c.Path, Before: c.After, After: c.Before, Kinds: s.verbs(), Why: c.Why}
	from, to := string(c.Path), string(c.Path)
	if !c.After.Exists() {
		from = "/dev/null"
	}
	if !c.Before.Exists() {
		to = "/dev/null"
	}
	if g.why != "" {
		d.Why = g.why
	}
	switch {
	case !slices.Contains(d.Kinds, Edited) && !slices.Contains(d.Kinds, Created) && !slices.Contains(d.Kinds, Removed):
	case g.text:
		d.Text = unified(from, to, g.old, g.now)
	case c.Before.Kind == File || c.After.Kind == File:
		d.Binary = d.Why == ""
	}
	return d
}

// settle takes what was applied out of the proposal.
func (a *applying) settle(ctx context.Context, v *Reviews, res *Result) (*Applied, error) {
	type place struct{ root, path Text }
	conflicts := map[place]bool{}
	for _, c := range res.Conflicts {
		conflicts[place{c.Root, c.Path}] = true
	}
	done, notes := map[int]bool{}, map[place]string{}
	for _, i := range a.took {
		c := &a.rec.Changes[i]
		at := place{a.rec.Roots[c.Root].Path, c.Path}
		if !conflicts[at] {
			done[i], notes[at] = !a.parts[i], a.notes[i]
		}
	}
	for i := range res.Restored {
		r := &res.Restored[i]
		r.Note = strings.Trim(notes[place{r.Root, r.Path}]+"; "+r.Note, "; ")
	}
	rest := *a.rec
	rest.Changes = nil
	for i := range a.rec.Changes {
		if !done[i] {
			rest.Changes = append(rest.Changes, a.rec.Changes[i])
		}
	}
	out := &Applied{*res, len(rest.Changes)}
	ctx = context.WithoutCancel(ctx)
	switch {
	case len(rest.Changes) == 0:
		return out, v.Discard(ctx, rest.Number)
	case len(rest.Changes) < len(a.rec.Changes):
		return out, v.put(ctx, &rest, 0)
	}
	return out, nil
}

// Propositions tells what a proposal would change, as things are now, for the given paths of the host and what is below
// them, or for all.
func (v *Reviews) Propositions(ctx context.Context, number int64, paths []string) ([]Difference, error) {
	rec, err := v.proposal(number)
	if err != nil {
		return nil, err
	}
	has, err := v.stock(ctx, rec)
	if err != nil {
		return nil, err
	}
	left := diffTotal
	u := &undo{j: v.Journal, ctx: ctx, q: &Request{Paths: paths}, res: &Result{}, review: has, of: rec, roots: map[Root]int{}, bad: map[Root]string{}, rec: &Recorder{}}
	for i, root := range rec.Roots {
		t, err := openTree(string(root.Path))
		if err != nil {
			u.bad[root.bare()] = err.Error()
		} else {
			defer t.close()
		}
		u.roots[root.bare()] = i
		u.rec.trees = append(u.rec.trees, t)
	}
	a := &applying{u: u, rec: rec, has: has, shows: true}
	var list []Difference
	for i := range rec.Changes {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		c := &rec.Changes[i]
		if !u.wanted(c.Root, c.Path) {
			continue
		}
		g, err := a.goal(c)
		if err != nil {
			return nil, fmt.Errorf("proposal %d: %q: %w", number, c.Path, err)
		}
		if c.Before.Kind == Absent && c.After.Kind == File {
			a.removed(&g)
		}
		d := a.difference(&g)
		if left -= len(d.Text); left < 0 {
			d.Text, d.Why = "", "there are too many differences to show all: name paths"
		}
		has.made = nil
		list = append(list, d)
	}
	return list, nil
}

// removed reads the text of a file that is to go, if it is what it was.
func (a *applying) removed(g *goal) {
	c := &g.change
	at, why := a.u.place(c.Root, c.Path)
	if why != "" || c.After.Size > baseText {
		return
	}
	now, err := a.u.stat(at)
	if err != nil || now.Kind != File || now.Size != c.After.Size {
		return
	}
	text, now, err := a.u.tree(at).text(at.path, now, baseText)
	if err != nil || isBinary(text) || now.Digest != c.After.Digest && (!sameFile(&now, &c.After) || now.Change != c.After.Change) {
		return
	}
	g.old, g.now, g.text = slices.Clone(text), nil, true
}

// Name returns the path of a difference on the host.
func (d *Difference) Name() string { return path.Join(string(d.Root), string(d.Path)) }
