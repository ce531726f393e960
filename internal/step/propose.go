package step

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/snapshot"
)

// A laid is what an overlay means by a file of its upper layer.
type laid struct {
	whiteout bool // nothing is there, whatever is below
	opaque   bool // a directory that hides what is below it
	strange  bool // it depends on what Paddock never asks an overlay for

	copied bool   // the kernel made it a copy of a file of the host
	origin string // handle of that file; empty if its file system has none
}

// prefixOverlay begins the attributes of an overlay in a user namespace. The kernel hides them from the sandbox, which
// cannot set them.
const prefixOverlay = "user.overlay."

// read takes the attributes of a file.
func (l *laid) read(all map[string]string) {
	for key, value := range all {
		switch name, ok := strings.CutPrefix(key, prefixOverlay); {
		case !ok:
		case name == "opaque" && value == "y":
			l.opaque = true
		case name == "origin":
			l.copied, l.origin = true, originOf(value)
		case name == "impure", name == "uuid", name == "nlink", name == "upper": // of no effect here
		default: // a redirect, contents or a whiteout elsewhere, or what a later kernel means
			l.strange = true
		}
	}
}

// originOf returns the handle in a record of an overlay about where a file was copied from: the type and the bytes, after
// the version, a magic number, the length, flags, and the name of the file system.
func originOf(record string) string {
	const magic, before = 0xfb, 21
	if len(record) <= before || record[1] != magic || int(record[2]) != len(record) {
		return ""
	}
	return record[4:5] + record[before:]
}

// Reasons why something is not in a proposal, or cannot be applied.
const (
	whyWhile   = "it was changed here while the command ran"
	whyRemoved = "it was removed here while the command ran"
	whyOther   = "the directory is another one than when the command ran"
	whySpecial = "sockets and devices are not taken over"
	whyMount   = "another file system is mounted there, of which the command saw nothing"
	whyClosed  = "this user may not read the directory"
	whyUnread  = "it cannot be looked at"
	whyStrange = "the layer says something about it that Paddock does not know"
)

// baseText is how large a file may be whose base is kept for a merge.
const baseText = 1 << 20

// A proposing makes a proposal of layers.
type proposing struct {
	ctx   context.Context
	r     *Recorder
	x     *ending
	n     int          // of roots; the tree of a layer has the number of its root, and n more
	moved map[int]bool // roots that are other directories now
	known *bases       // nil if none were saved
	seen  int          // names that were read
	size  int          // bytes of them
	more  bool         // there were more
	hash  int64        // bytes that may still be read to tell a base

	missed []missed
}

// propose makes a proposal of layers.
func (v *Reviews) propose(ctx context.Context, name string, head *header, out Outcome, incomplete bool, known *bases) (*Record, error) {
	about := About{Sandbox: head.Sandbox, Tier: head.Tier, Kind: kindReview, Start: head.Start}
	for _, root := range head.Roots {
		about.Roots = append(about.Roots, Root{Path: root.Path, Target: root.Target})
	}
	for _, word := range head.Command {
		about.Command = append(about.Command, string(word))
	}
	r, err := v.begin(ctx, about, false)
	if err != nil {
		return nil, err
	}
	p := &proposing{known: known, ctx: ctx, r: r, n: len(head.Roots), moved: map[int]bool{}, hash: hashBudget}
	for i := range head.Roots {
		p.moved[i] = r.trees[i].ino != head.Roots[i].Ino
		upper := filepath.Join(v.dir, layerPath(name, strconv.Itoa(i), "upper"))
		if err := os.Chmod(upper, 0o700); err != nil { // the sandbox may have closed it
			return nil, errors.Join(err, r.Abandon())
		}
		t, err := openTree(upper)
		if err != nil {
			return nil, errors.Join(err, r.Abandon())
		}
		r.trees = append(r.trees, t)
	}
	if err := v.root.WriteFile(layerPath(name, fileProposed), strconv.AppendInt(nil, r.number, 10), 0o600); err != nil {
		return nil, errors.Join(err, r.Abandon())
	}
	r.lost = incomplete
	p.x = &ending{r: r, rec: r.record(out), now: map[key]place{}, none: map[int]bool{}}
	p.x.rec.Protect, p.x.rec.Monitor = head.Protect, head.Monitor
	rec, err := p.record()
	if err != nil {
		return nil, errors.Join(err, r.Abandon())
	}
	if len(rec.Changes) == 0 && len(rec.Left) == 0 {
		return nil, errors.Join(r.Abandon(), v.drop(name))
	}
	if err := p.x.store(ctx); err != nil {
		return nil, errors.Join(err, r.Abandon())
	}
	r.ended = true
	if err := errors.Join(v.put(ctx, rec, r.fresh), r.close(true)); err != nil {
		return nil, err
	}
	return rec, v.drop(name)
}

func (p *proposing) record() (*Record, error) {
	for i := range p.n {
		top, err := p.r.trees[i].stat(".")
		if err != nil {
			return nil, err
		}
		err = p.directory(i, "", shown{below: true, sure: !p.moved[i], still: !p.moved[i] && p.r.forged(&top)})
		if errors.Is(err, errEnough) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	p.explain()
	rec := p.x.rec
	slices.SortStableFunc(rec.Changes, func(a, b Change) int {
		return cmp.Or(a.Root-b.Root, snapshot.Compare(string(a.Path), string(b.Path)))
	})
	for _, k := range p.r.lefts {
		rec.Left = append(rec.Left, Left{k.root, Text(k.path), p.r.left[k]})
	}
	rec.Incomplete = p.r.lost
	return rec, nil
}

// left notes that something is not in the proposal.
func (p *proposing) left(at key, why string) { p.x.left(at, why) }

// errEnough ends the search for changes, of which there are more than a proposal can have.
var errEnough = errors.New(whyMany)

// maxNames bounds the bytes of the names that are read for one proposal.
const maxNames = 128 << 20

// enough notes that there is more than the proposal has, and ends the search.
func (p *proposing) enough(root int) error {
	p.left(key{root: root}, whyMany)
	return errEnough
}

// names lists a directory of a layer (upper) or of the host.
func (p *proposing) names(at key, upper bool) ([]string, error) {
	names, more, err := p.r.trees[at.root].list(at.path, 4*p.r.j.opts.Changes-p.seen, maxNames-p.size, upper)
	if err != nil {
		return nil, fmt.Errorf("read the directory %q: %w", at.path, err)
	}
	p.seen += len(names)
	for _, name := range names {
		p.size += len(name)
	}
	p.more = p.more || more
	return names, context.Cause(p.ctx)
}

// below lists a directory of the host. One that may not be read is left out.
func (p *proposing) below(root int, dir string) ([]string, error) {
	names, err := p.names(key{root, dir}, false)
	if errors.Is(err, paddock.Denied) {
		p.left(key{root, dir}, whyClosed)
		return nil, nil
	}
	return names, err
}

// directory looks at a directory that is in a layer.
func (p *proposing) directory(root int, dir string, in shown) error {
	names, err := p.names(key{p.n + root, dir}, true)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := p.entry(root, path.Join(dir, name), in); err != nil {
			return err
		}
	}
	if p.more {
		return p.enough(root)
	}
	if !in.below || !in.opaque {
		return nil
	}
	old, err := p.below(root, dir)
	if err != nil {
		return err
	}
	for _, name := range old {
		if _, there := slices.BinarySearch(names, name); there {
			continue
		}
		if err := p.gone(root, path.Join(dir, name), in); err != nil {
			return err
		}
	}
	return nil
}

// entry looks at a file of a layer.
func (p *proposing) entry(root int, at string, in shown) error {
	if err := context.Cause(p.ctx); err != nil { // a file takes long, and a directory has many
		return err
	}
	if path.Base(at) == stageDir { // of a broker that was killed
		return nil
	}
	if len(at) > maxPath {
		p.left(key{root, at}, whyLong)
		return nil
	}
	s, base, l, err := p.look(root, at, in)
	if errors.Is(err, paddock.Denied) || errors.Is(err, syscall.ENAMETOOLONG) { // of this path alone
		p.left(key{root, at}, whyUnread)
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at %q: %w", at, err)
	}
	switch {
	case base.Dev != 0:
		p.left(key{root, at}, whyMount)
		return nil
	case l.strange:
		p.left(key{root, at}, whyStrange)
		return nil
	case l.whiteout:
		if !in.below { // it hides nothing
			return nil
		}
		return p.gone(root, at, in)
	case s.Kind == Socket, s.Kind == Device:
		p.left(key{root, at}, whySpecial)
		return nil
	case s.Kind == Absent: // nobody else changes it
		return fmt.Errorf("%q: %w", at, errMoving)
	}
	if err := p.add(root, at, s, base, in, &l); err != nil {
		return err
	}
	if s.Kind == Dir {
		return p.directory(root, at, p.into(root, at, in, &l, &base))
	}
	if base.Kind == Dir {
		return p.inside(root, at, p.into(root, at, in, nil, &base))
	}
	return nil
}

// look looks at a file of a layer, and at that of the host. A directory of the layer can be read afterwards.
func (p *proposing) look(root int, at string, in shown) (s, base State, l laid, err error) {
	upper := p.r.trees[p.n+root]
	if s, err = upper.stat(at); err != nil {
		return s, base, l, err
	}
	if s.Kind == Dir && s.Mode&0o700 != 0o700 {
		if err := upper.unlock(at, 0o700); err != nil {
			return s, base, l, err
		}
	}
	if l, err = upper.laid(at, &s); err != nil || !in.below {
		return s, base, l, err
	}
	base, err = p.r.trees[root].stat(at)
	return s, base, l, err
}

// gone proposes that a file of the host goes, with all that is in it.
func (p *proposing) gone(root int, at string, in shown) error {
	if err := context.Cause(p.ctx); err != nil {
		return err
	}
	base, err := p.r.trees[root].stat(at)
	if errors.Is(err, paddock.Denied) {
		p.left(key{root, at}, whyClosed)
		return nil
	}
	if err != nil || !base.Exists() {
		return err
	}
	if base.Dev != 0 {
		p.left(key{root, at}, whyMount)
		return nil
	}
	if err := p.add(root, at, State{}, base, in, nil); err != nil || base.Kind != Dir {
		return err
	}
	return p.inside(root, at, p.into(root, at, in, nil, &base))
}

// inside proposes that all goes that is in a directory of the host.
func (p *proposing) inside(root int, dir string, in shown) (err error) {
	names, err := p.below(root, dir)
	if err != nil {
		return err
	}
	defer func() {
		if err == nil && p.more {
			err = p.enough(root)
		}
	}()
	for _, name := range names {
		if len(dir)+1+len(name) > maxPath {
			p.left(key{root, dir}, whyLong)
			continue
		}
		if err := p.gone(root, path.Join(dir, name), in); err != nil {
			return err
		}
	}
	return nil
}

// add adds the change of a path to the proposal, if it is one. in is known of the directory that it is in, and up is what
// the layer has there, if anything.
func (p *proposing) add(root int, at string, now, base State, in shown, up *laid) error {
	if err := validPath(at); err != nil {
		p.left(key{root, at[:min(len(at), maxPath)]}, whyLong)
		return nil //nolint:nilerr // it is left out
	}
	if len(p.x.rec.Changes) >= p.r.j.opts.Changes || p.x.size+len(at) > maxPathBytes {
		return p.enough(root)
	}
	c := Change{Root: root, Path: Text(at), Before: now, After: base}
	used := len(p.x.used)
	if err := p.contents(&c); err != nil {
		return err
	}
	b, a := &c.Before, &c.After
	if b.Kind == a.Kind && b.Mode == a.Mode && b.Target == a.Target && (b.Kind != File || b.Size == a.Size && b.Digest != "" && b.Digest == a.Digest) {
		p.x.used = p.x.used[:used]
		return nil
	}
	known, err := p.proven(&c, in, up)
	switch {
	case err != nil:
		return err
	case p.moved[root]:
		c.Why = whyOther
	case known:
	case in.sure && a.Kind == File:
		if err := p.recall(&c); err != nil {
			return err
		}
	default:
		c.Why = whyNot(a)
	}
	// The identity of what is to come is that of nothing. It has the owner of what it replaces.
	b.Dev, b.Ino, b.Change, b.Links, b.Racy = 0, 0, 0, 0, false
	if b.UID, b.GID = p.r.trees[root].uid, p.r.trees[root].gid; a.Exists() {
		b.UID, b.GID = a.UID, a.GID
	}
	if !b.Exists() {
		*b = State{}
	}
	p.x.size += len(at)
	p.x.rec.Changes = append(p.x.rec.Changes, c)
	return nil
}

// recall takes the base of a file that was changed here while the command ran, if it was saved before that.
func (p *proposing) recall(c *Change) error {
	s, name := p.known.find(key{c.Root, string(c.Path)})
	if name == "" {
		c.Why = whyWhile
		return nil
	}
	now, err := p.known.tree.stat(name)
	if err != nil || now.Kind != File {
		c.Why = whyWhile
		return err
	}
	at := key{len(p.r.trees), name}
	p.r.trees = append(p.r.trees, p.known.tree)
	e, err := p.keep(at, now)
	p.r.trees = p.r.trees[:at.root]
	if err != nil {
		return err
	}
	if e.State.Digest != s.Digest || e.Kept == 0 {
		c.Why = whyWhile
		return nil
	}
	c.After, c.BaseKept, c.BasePack = s, e.Kept, e.Pack
	return nil
}

// contents keeps those of both states of a change.
func (p *proposing) contents(c *Change) error {
	if c.Before.Kind == File {
		at := key{p.n + c.Root, string(c.Path)}
		if c.Before.Mode&0o400 == 0 {
			mode := c.Before.Mode
			if err := p.r.trees[at.root].unlock(at.path, 0o400); err != nil {
				return err
			}
			s, err := p.r.trees[at.root].stat(at.path)
			if err != nil {
				return err
			}
			c.Before = s
			defer func() { c.Before.Mode = mode }()
		}
		e, err := p.keep(at, c.Before)
		if err != nil {
			return err
		}
		c.Before, c.Kept, c.Pack, c.Why = e.State, e.Kept, e.Pack, e.Why
		if c.Before.Kind != File {
			return fmt.Errorf("%q: %w", c.Path, errMoving)
		}
		p.r.j.kept()
	}
	if c.After.Kind != File {
		return nil
	}
	at := key{c.Root, string(c.Path)}
	if c.Before.Kind == File && c.After.Size <= baseText {
		e, err := p.keep(at, c.After)
		if err != nil || e.State.Kind != File {
			return err
		}
		c.After, c.BaseKept, c.BasePack = e.State, e.Kept, e.Pack
		return nil
	}
	if c.After.Size > p.hash {
		return nil // its identity tells whether it is the same
	}
	p.hash -= c.After.Size
	s, err := p.r.trees[at.root].digest(at.path, c.After, hashBudget)
	if err == nil && s.Kind == File {
		c.After = s
	}
	return nil
}

// keep keeps the contents of a file. If what is to come cannot be kept for lack of room, that ends the proposal, so that the
// layer stays.
func (p *proposing) keep(at key, s State) (*entry, error) {
	e := &entry{Op: opSave, State: s}
	used, upper := p.r.bytes, at.root >= p.n && at.root < 2*p.n
	why, err := p.r.keep(at, e)
	if err != nil {
		return nil, err
	}
	if !upper { // the room is for what is to come
		p.r.bytes = used
	}
	switch {
	case !upper: // of a base, without which nothing is merged
	case why == errMoving.Error(): // paddock was killed, and the sandbox is ending
		return nil, fmt.Errorf("%q: %w: try again when its command has ended: %w", at.path, errMoving, paddock.Conflict)
	case why == whyStep, why == whySize, why == whyDisk:
		return nil, fmt.Errorf("%q cannot be kept: %s; `paddock discard` frees what other proposals have: %w", at.path, why, paddock.Exhausted)
	}
	if why != "" {
		e.Why, e.Kept, e.Pack, e.Parts = why, 0, 0, nil
		return e, nil
	}
	if e.Kept > 0 {
		k := &saved{state: e.State, kept: e.Kept, pack: e.Pack}
		if k.pack == 0 {
			k.contents = &snapshot.Contents{}
			if err := k.contents.UnmarshalBinary(e.Parts); err != nil {
				return nil, err
			}
		}
		p.r.saved[at] = k
		p.x.used = append(p.x.used, at)
	}
	return e, nil
}
