package step

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/snapshot"
)

// A Recorder records one step. It is safe for concurrent use. End or Abandon must be called.
type Recorder struct {
	j      *Journal
	number int64
	head   header
	strict bool
	whole  bool  // contents that cannot be kept are refused, as by a strict one
	begun  int64 // nanoseconds since 1970: files that changed later are the step's

	mu     sync.Mutex
	trees  []*tree // nil of a root that is not there any more, of a dead recorder
	names  *names
	saved  map[key]*saved
	order  []key             // of saved
	linked map[[2]uint64]key // of saved, by device and inode, if there are other names
	caches map[key]bool      // directories that tools rebuild, or not
	judged int               // bytes of caches
	asked  map[asked]bool    // of what the watcher was told
	times  [][2]int64        // when other steps of the journal went on; nil if it is not known yet
	left   map[key]string
	lefts  []key // of left

	savedBytes, leftBytes int // of the paths of both

	log     *logFile
	path    string // of the log
	draft   *snapshot.Draft
	packed  *packFile
	moving  map[[2]uint64]bool         // files with several names that changed while they were read
	held    map[int]*snapshot.Contents // by number, those that several names share
	kept    int                        // numbers of contents that were given away
	bytes   int64                      // of contents
	fresh   int64                      // of contents that the store did not have
	room    int64                      // for fresh ones, that was taken
	sure    int64                      // room that the step gets even if the journal is full
	lives   map[int64]string           // of open steps
	granted int64                      // room that it has, for contents and for its log
	lost    bool                       // something was not noted
	stored  bool                       // the contents are a snapshot already
	recent  []recent
	pass    func() // of tests: called between two changes of the journal
	ended   bool
	until   int64 // nanoseconds since 1970: what changed later is not the step's; zero while the recorder lives
	rough   bool  // the end failed before: the record is made without a look at the disk
}

// A recent is a change that was told lately, and may turn out to have failed.
type recent struct {
	e    *entry
	at   key
	back func()
}

// maxMoving bounds how many files that change all the time are remembered.
const maxMoving = 1000

// maxRecent is how many changes may be told until a failure of the first of them is told.
const maxRecent = 256

// A saved is the state of a path before the step.
type saved struct {
	state    State
	contents *snapshot.Contents // one of all that have the number
	kept     int                // number of the contents, or zero
	pack     int64              // one more than their offset in the pack, or zero
	seen     bool               // under its own name
	partial  bool               // without contents, because only the mode was about to change
	why      string
}

// Reasons why something is not kept.
const (
	whyStep   = "the contents kept for one step have reached their limit"
	whySize   = "the journal is full"
	whyDisk   = "the disk is full"
	whyStray  = "somebody else made it while the step went on, and the step changed it"
	whyMany   = "the step changed more paths than its record can have"
	whyForged = "it was told to be made or moved here, and was here before the step by its times"
)

// Number returns the number of the step, which is unique in its journal.
func (r *Recorder) Number() int64 { return r.number }

// enter begins a call.
func (r *Recorder) enter(at ...key) error {
	for _, k := range at {
		if k.root < 0 || k.root >= len(r.head.Roots) {
			return fmt.Errorf("step %d has no root %d: %w", r.number, k.root, paddock.Invalid)
		}
		if err := validPath(k.path); err != nil {
			return fmt.Errorf("step %d: %w", r.number, err)
		}
	}
	r.mu.Lock()
	if r.ended {
		r.mu.Unlock()
		return fmt.Errorf("step %d has ended: %w", r.number, paddock.Conflict)
	}
	return nil
}

// Write notes that the contents of a file are about to change: it is opened for writing, or truncated. Wait for it before
// the change.
func (r *Recorder) Write(root int, path string) error { return r.change(key{root, path}, false) }

// Mode notes that the mode, owner, times or attributes of a file or directory are about to change, but not its
// contents. Wait for it before the change.
func (r *Recorder) Mode(root int, path string) error { return r.change(key{root, path}, true) }

func (r *Recorder) change(at key, partial bool) error {
	if err := r.enter(at); err != nil {
		return err
	}
	defer r.mu.Unlock()
	if err := r.watchChange(at, Edited); err != nil {
		return err
	}
	is, was, n := r.names.find(at)
	if is == gone || is == unknown {
		s, err := r.look(at)
		if err != nil {
			return err
		}
		if !s.Exists() {
			return r.elsewhere(at)
		}
		if is, was, n, err = r.stray(at, is, &s); err != nil || is == gone || is == unknown {
			return err
		}
	}
	if is == made {
		if n == nil || !n.link {
			return nil
		}
		was = n.was // what it shares its contents with
	}
	entry, err := r.save(at, was, partial)
	if err != nil || entry == nil {
		return err
	}
	if entry.Op == opCreate {
		return r.elsewhere(at)
	}
	return r.note(true, entry)
}

// elsewhere is the error of a change of a file that is not where it was told to be. Who told it has just seen it there, so
// somebody else moved it, or a directory that it is in, and what is about to change is not known.
func (r *Recorder) elsewhere(at key) error {
	return fmt.Errorf("step %d: %q is not there any more, so it is not changed: %w", r.number, at.path, errElsewhere)
}

var errElsewhere = fmt.Errorf("another sandbox, or somebody on the host, moved it: %w", paddock.Conflict)

// Elsewhere reports whether an error of a Recorder means that what is about to change is not where it was told to be.
func Elsewhere(err error) bool { return errors.Is(err, errElsewhere) }

// Remove notes that a file or an empty directory is about to be removed. Wait for it before the removal.
func (r *Recorder) Remove(root int, path string) error {
	at := key{root, path}
	if err := r.enter(at); err != nil {
		return err
	}
	defer r.mu.Unlock()
	if err := r.watchChange(at, Removed); err != nil {
		return err
	}
	is, was, _ := r.names.find(at)
	var first *entry
	if is == gone || is == unknown {
		s, err := r.look(at)
		if err != nil {
			return err
		}
		if !s.Exists() {
			return r.elsewhere(at)
		}
		if is, was, _, err = r.stray(at, is, &s); err != nil || is == gone || is == unknown {
			return err
		}
	}
	if is == original {
		var err error
		if first, err = r.save(at, was, false); err != nil {
			return err
		}
		if _, ok := r.cache(was, true); ok && r.saved[was] == nil {
			return r.note(false, first)
		}
		if first != nil && first.Op == opCreate {
			return r.elsewhere(at)
		}
		if first != nil && first.Op == opLeft {
			return r.note(false, first)
		}
	}
	var now State
	if first != nil && first.Op == opSave && first.Seen && len(r.linked) == 0 {
		now = first.State // it was just looked at
	} else {
		var err error
		if now, err = r.look(at); err != nil {
			return err
		}
		if !now.Exists() {
			return r.elsewhere(at)
		}
	}
	err := r.note(is == original, first, &entry{Op: opRemove, Root: root, Path: Text(path), Inos: [2]uint64{now.Ino}})
	if err == nil {
		r.unlinked(&now)
	}
	return err
}

// Create notes that a file of any kind is made where nothing is. It may come after the fact.
func (r *Recorder) Create(root int, path string) error {
	at := key{root, path}
	if err := r.enter(at); err != nil {
		return err
	}
	defer r.mu.Unlock()
	r.watchMade(at, nil)
	if dir, ok := r.cache(at, false); ok {
		return r.leave(dir, whyRebuilt)
	}
	return r.note(false, &entry{Op: opCreate, Root: root, Path: Text(path)})
}

// Link notes that a hard link to a file is made where nothing is. It may come after the fact.
func (r *Recorder) Link(fromRoot int, from string, root int, path string) error {
	at, other := key{root, path}, key{fromRoot, from}
	if err := r.enter(other, at); err != nil {
		return err
	}
	defer r.mu.Unlock()
	r.watchMade(at, &other)
	e := &entry{Op: opLink, Root: root, Path: Text(path)}
	is, was, n := r.names.find(other)
	if is == made && n != nil && n.link {
		is, was = original, n.was
	}
	if is != original {
		e.Op = opCreate
	} else if dir, ok := r.cache(was, true); ok && r.inCache(at) {
		return r.leave(dir, whyRebuilt)
	}
	e.FromRoot, e.From = was.root, Text(was.path)
	return r.note(false, e)
}

func (r *Recorder) inCache(at key) bool {
	_, ok := r.cache(at, false)
	return ok
}

// Move notes that a file or directory is renamed. With Free it may come after the fact. Wait for it otherwise.
func (r *Recorder) Move(fromRoot int, from string, root int, path string, how How) error {
	src, at := key{fromRoot, from}, key{root, path}
	if err := r.enter(src, at); err != nil {
		return err
	}
	defer r.mu.Unlock()
	if how > Exchange {
		return fmt.Errorf("step %d: a move of the unknown sort %d: %w", r.number, how, paddock.Invalid)
	}
	if related(src, at) { // the kernel refuses it, or does nothing
		return nil
	}
	is, was, _ := r.names.find(src)
	isTo, wasTo, _ := r.names.find(at)
	if err := r.watchMove(src, at, how); err != nil {
		return err
	}
	if is == unknown || isTo == unknown {
		return r.leave(at, whyMany)
	}
	a, err := r.look(src)
	if err != nil {
		return err
	}
	b, err := r.look(at)
	if err != nil {
		return err
	}
	e := &entry{Op: opMove, FromRoot: fromRoot, From: Text(from), Root: root, Path: Text(path), How: how, Inos: [2]uint64{a.Ino, b.Ino}}
	var first *entry
	switch how {
	case Free:
		if is == original {
			if dir, ok := r.cache(was, true); ok && r.inCache(at) {
				return r.leave(dir, whyRebuilt)
			}
		}
		if !a.Exists() { // it was moved already
			a = b
		}
		e.Inos = [2]uint64{a.Ino}
	case Replace:
		if b.Exists() && a.Ino == b.Ino && a.Dev == b.Dev { // two names of one file: the kernel does nothing
			return nil
		}
		if b.Exists() && isTo == original {
			if dir, ok := r.cache(wasTo, true); ok && is != made && r.inCache(src) {
				return r.leave(dir, whyRebuilt)
			}
			if first, err = r.save(at, wasTo, false); err != nil {
				return err
			}
			if first != nil && first.Op != opSave {
				if err := r.note(false, first); err != nil {
					return err
				}
				first = nil
			}
		}
		e.Inos = [2]uint64{a.Ino}
	}
	err = r.note(how == Replace, first, e)
	if err == nil && how == Replace {
		r.unlinked(&b)
	}
	return err
}

// unlinked forgets a file of which the last name goes: its number may come to be that of another one.
func (r *Recorder) unlinked(s *State) {
	if s.Kind == File && s.Links <= 1 {
		delete(r.linked, [2]uint64{s.Dev, s.Ino})
		delete(r.moving, [2]uint64{s.Dev, s.Ino})
	}
}

// Failed notes that the last change that was told about a path was not made, because the call failed. Of a Move it is the
// new path. Call it soon for each change that fails: otherwise the record says that the change was made.
func (r *Recorder) Failed(root int, path string) error {
	if err := r.enter(key{root, path}); err != nil {
		return err
	}
	defer r.mu.Unlock()
	return r.note(false, &entry{Op: opFail, Root: root, Path: Text(path)})
}

// stray is about a file that is where the step removed one, or where it is not known what happened. If it is the removed one,
// the removal failed, and is taken back. Otherwise somebody else made the file. Its contents are not kept, because the path
// stands for what was there before: so it is noted, or refused.
func (r *Recorder) stray(at key, is origin, s *State) (origin, key, *node, error) {
	for i := len(r.recent) - 1; i >= 0 && is == gone; i-- {
		if x := r.recent[i]; x.at == at {
			old := r.saved[at]
			// The number of a removed file is soon given to another one, so its times have to be the same too.
			if x.e.Op != opRemove || x.e.Inos[0] != s.Ino || old == nil || old.state.Kind != s.Kind || s.Kind != Dir && old.state.Change != s.Change {
				break
			}
			if err := r.note(false, &entry{Op: opFail, Root: at.root, Path: Text(at.path)}); err != nil {
				return is, at, nil, err
			}
			is, was, n := r.names.find(at)
			return is, was, n, nil
		}
	}
	why := whyStray
	if is == unknown {
		why = whyMany
	}
	if _, err := r.refuse(at, why); err != nil {
		return is, at, nil, err
	}
	return is, at, nil, r.leave(at, why)
}

func (r *Recorder) remember(e *entry, at key, back func()) {
	if len(r.recent) >= 2*maxRecent {
		r.recent = append(r.recent[:0], r.recent[maxRecent:]...)
	}
	r.recent = append(r.recent, recent{e, at, back})
}

// related reports whether a path is the other one, or in it, or around it.
func related(a, b key) bool {
	return a.root == b.root && (a.path == b.path || strings.HasPrefix(a.path, b.path+"/") || strings.HasPrefix(b.path, a.path+"/"))
}

// forged reports whether a file did not change since the step began, so that it was neither made nor moved by it.
func (r *Recorder) forged(s *State) bool {
	if s.Change%1e9 == 0 { // as file systems have it that keep whole seconds, and some of networks
		return s.Change < r.begun-int64(tickCoarse)
	}
	return s.Change < r.begun
}

// look returns the state of a present path.
func (r *Recorder) look(at key) (State, error) {
	t := r.trees[at.root]
	if t == nil {
		return State{}, fmt.Errorf("the directory %q is not there: %w", r.head.Roots[at.root].Path, paddock.NotFound)
	}
	return t.stat(at.path)
}

// refuse returns the error of a change that cannot be undone, if such ones are refused, and otherwise notes that
// something is left.
func (r *Recorder) refuse(at key, why string) (*entry, error) {
	if r.strict || r.whole {
		return nil, fmt.Errorf("step %d: %q cannot be kept, so it is not changed: %s; raise the limit of the journal, free space, or allow changes that cannot be undone: %w",
			r.number, at.path, why, paddock.Exhausted)
	}
	return &entry{Op: opLeft, Root: at.root, Path: Text(at.path), Why: why}, nil
}

// save stores the state of a path before the step, which is at another path now, unless it is stored. It returns what is
// to be noted: nil if nothing is, and opCreate if there is nothing yet.
func (r *Recorder) save(at, was key, partial bool) (*entry, error) {
	old := r.saved[was]
	if old != nil && (!old.partial || partial) {
		return nil, nil
	}
	if dir, ok := r.cache(was, true); ok {
		if _, known := r.left[dir]; known || len(r.left) >= r.j.opts.Changes {
			return nil, nil
		}
		return &entry{Op: opLeft, Root: dir.root, Path: Text(dir.path), Why: whyRebuilt}, nil
	}
	s, err := r.look(at)
	if err == nil && !s.Exists() && at != was { // it was not moved yet
		s, err = r.look(was)
		if err == nil && s.Exists() {
			at = was
		}
	}
	if err != nil {
		return nil, err
	}
	if !s.Exists() {
		return &entry{Op: opCreate, Root: at.root, Path: Text(at.path)}, nil
	}
	if old == nil && (len(r.saved) >= r.j.opts.Changes || r.savedBytes+len(was.path) > maxPathBytes) {
		r.lost = true
		return r.refuse(key{root: was.root}, whyMany)
	}
	e := &entry{Op: opSave, FromRoot: was.root, From: Text(was.path), State: s, Seen: at == was, Partial: partial && s.Kind == File}
	base := old
	if base == nil && s.Kind == File {
		// Another name of it may be saved already, and gone by now, and the file changed since.
		if other, ok := r.linked[[2]uint64{s.Dev, s.Ino}]; ok {
			base = r.saved[other]
		}
	}
	if base != nil {
		if e.State, e.Kept = base.state, base.kept; e.Kept > 0 {
			e.Partial, e.Pack, e.Shared = false, base.pack, true
			return e, nil // the parts are known by the number
		}
	}
	if s.Kind != File || e.Partial {
		return e, nil
	}
	if base != nil { // the mode may have changed since, and the contents not
		was := base.state
		e.State = s
		defer func() {
			e.State.Mode, e.State.UID, e.State.GID, e.State.ModTime = was.Mode, was.UID, was.GID, was.ModTime
		}()
	}
	why, err := r.keep(at, e)
	if why != "" && err == nil {
		if _, err := r.refuse(was, why); err != nil {
			return nil, err
		}
		e.Why, e.Kept, e.Pack, e.Parts = why, 0, 0, nil
	}
	return e, err
}

// keep stores the contents of a file. why is the reason if it could not.
func (r *Recorder) keep(at key, e *entry) (why string, err error) {
	t := r.trees[at.root]
	var most int64
	id := [2]uint64{e.State.Dev, e.State.Ino}
	if r.moving[id] { // by another name of it
		return errMoving.Error(), nil
	}
	for range 3 {
		if most = min(r.j.opts.File, r.j.opts.Step-r.bytes); e.State.Size > 0 && most <= 0 {
			return whyStep, nil
		}
		var c snapshot.Contents
		var fresh int64
		var s State
		if e.State.Size <= min(packMost, most) && (r.packed == nil || r.packed.size < packRoom) {
			if err = r.keepSmall(t, at, e); err == nil {
				return "", nil
			}
			if !errors.Is(err, errMoving) {
				break
			}
			if e.State, err = t.stat(at.path); err != nil {
				return "", err
			}
			if e.State.Kind != File {
				return "", nil
			}
			err = errMoving
			continue
		}
		s, err = t.contents(at.path, e.State, most, func(data iter.Seq2[snapshot.Extent, error]) (err error) {
			c, fresh, err = r.draft.Add(context.Background(), e.State.Size, r.within(data))
			r.bytes += c.Size() // also of what turns out to be no use: it stays in the draft
			r.fresh += fresh
			r.pass()
			return err
		})
		if err == nil {
			r.kept++
			e.State, e.Kept = s, r.kept
			e.Parts, err = c.MarshalBinary()
			return "", err
		}
		if !errors.Is(err, errMoving) {
			break
		}
		if e.State, err = t.stat(at.path); err != nil {
			return "", err
		}
		if e.State.Kind != File {
			return "", nil
		}
		err = errMoving
	}
	if errors.Is(err, errMoving) && e.State.Links > 1 && len(r.moving) < maxMoving {
		r.moving[id] = true
	}
	switch {
	case errors.Is(err, errLarge) && most < r.j.opts.File:
		return whyStep, nil
	case errors.Is(err, errRoom):
		return whySize, nil
	case errors.Is(err, errLarge), errors.Is(err, errPieces), errors.Is(err, errMoving):
		return err.Error(), nil
	case full(err), errors.Is(err, paddock.Exhausted):
		return whyDisk, nil
	case errors.Is(err, os.ErrPermission), errors.Is(err, paddock.Denied):
		return "it may not be read", nil
	case errors.Is(err, paddock.Invalid): // it grew
		return errMoving.Error(), nil
	case errors.Is(err, paddock.NotFound), errors.Is(err, paddock.Conflict):
		return errMoving.Error(), nil
	}
	return "", fmt.Errorf("keep the contents of %q: %w", at.path, err)
}

// keepSmall stores the contents of a small file.
func (r *Recorder) keepSmall(t *tree, at key, e *entry) error {
	b, s, err := t.small(at.path, e.State, packMost)
	r.pass()
	if err != nil {
		return err
	}
	if !r.roomy(int64(len(b))) {
		return errRoom
	}
	offset, err := r.pack(b)
	r.pass()
	if err != nil {
		return err
	}
	r.kept++
	r.bytes += int64(len(b))
	r.fresh += int64(len(b))
	e.State, e.Kept, e.Pack = s, r.kept, offset+1
	return nil
}

var errRoom = errors.New(whySize)

// within ends data where the room for contents ends.
func (r *Recorder) within(data iter.Seq2[snapshot.Extent, error]) iter.Seq2[snapshot.Extent, error] {
	n := int64(0)
	return func(yield func(snapshot.Extent, error) bool) {
		for x, err := range data {
			if n += int64(len(x.Bytes)); err == nil && !r.roomy(n) {
				err = errRoom
			}
			if !yield(x, err) {
				return
			}
		}
	}
}

// leave notes once that something is not kept.
func (r *Recorder) leave(at key, why string) error {
	if _, known := r.left[at]; known {
		return nil
	}
	return r.note(false, &entry{Op: opLeft, Root: at.root, Path: Text(at.path), Why: why})
}

// note writes entries to the log and then applies them. If the log cannot be written, a strict recorder refuses what it
// was asked. Another one goes on, and its record is incomplete if its process is killed.
func (r *Recorder) note(durable bool, all ...*entry) error {
	var lines []any
	destroys := false
	for _, e := range all {
		if e != nil {
			lines = append(lines, e)
			destroys = destroys || e.Op == opSave
		}
	}
	if len(lines) == 0 {
		return nil
	}
	r.pass()
	err := r.log.add(durable, lines...)
	r.pass()
	if err != nil {
		gap := r.log.lose()
		r.lost = true
		if r.strict || gap != nil {
			return errors.Join(fmt.Errorf("step %d: what it changes cannot be noted: free space, or end the step: %w: %w", r.number, err, paddock.Exhausted), gap)
		}
	}
	for _, e := range all {
		if e != nil {
			r.apply(e)
		}
	}
	return nil
}

// apply changes the state of the recorder. It does not look at the disk, because a log is applied again after a kill.
func (r *Recorder) apply(e *entry) {
	at, src := key{e.Root, strings.Clone(string(e.Path))}, key{e.FromRoot, strings.Clone(string(e.From))}
	switch e.Op {
	case opSave:
		s := &saved{state: e.State, kept: e.Kept, pack: e.Pack, seen: e.Seen, partial: e.Partial, why: e.Why}
		if s.kept > 0 && s.pack == 0 {
			if s.contents = r.held[s.kept]; s.contents == nil {
				s.contents = &snapshot.Contents{}
				if s.contents.UnmarshalBinary(e.Parts) != nil || s.state.Size > 0 && len(e.Parts) == 0 && e.Shared {
					s.kept, s.why = 0, "its contents are damaged"
				}
			}
			if s.kept > 0 && s.state.Links > 1 {
				r.held[s.kept] = s.contents
			}
		}
		r.kept = max(r.kept, e.Kept)
		old := r.saved[src]
		if old == nil {
			r.savedBytes += len(src.path)
			r.order = append(r.order, src)
		} else if old.partial {
			s.seen = s.seen && old.seen
		}
		r.saved[src] = s
		if s.state.Links > 1 && s.state.Kind == File {
			r.linked[[2]uint64{s.state.Dev, s.state.Ino}] = src
		}
		if e.Why != "" {
			r.apply(&entry{Op: opLeft, Root: e.FromRoot, Path: e.From, Why: e.Why})
		}
	case opLeft:
		if _, known := r.left[at]; !known && (len(r.left) >= r.j.opts.Changes || r.leftBytes+len(at.path) > maxPathBytes) {
			r.lost = true
		} else if !known {
			r.leftBytes += len(at.path)
			r.left[at] = e.Why
			r.lefts = append(r.lefts, at)
		}
		if at.path != "" && e.Why == whyMany {
			r.names.lose(at)
		}
	case opRemove:
		r.remember(e, at, r.names.remove(at))
	case opFail:
		for i := len(r.recent) - 1; i >= 0; i-- {
			if x := r.recent[i]; x.at == at {
				r.recent = slices.Delete(r.recent, i, i+1)
				x.back()
				break
			}
		}
	case opCreate, opLink, opMove:
		if r.names.count >= 4*r.j.opts.Changes {
			r.lost = true
			for _, k := range []key{at, src} {
				if k.path != "" {
					r.names.lose(k)
				}
			}
			r.apply(&entry{Op: opLeft, Root: at.root, Why: whyMany})
			return
		}
		switch e.Op {
		case opMove:
			r.remember(e, at, r.names.move(src, at, e.How, e.Inos))
		case opLink:
			r.remember(e, at, r.names.create(at, &src))
		default:
			r.remember(e, at, r.names.create(at, nil))
		}
	}
}

// Abandon ends the step without a record, and forgets what was kept. It does nothing after End.
func (r *Recorder) Abandon() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil
	}
	r.ended = true
	return errors.Join(r.draft.Discard(), r.close(true))
}

// close closes what is open, and removes the log if the step is done.
func (r *Recorder) close(done bool) (err error) {
	if done {
		err = r.j.root.Remove(r.path)
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		if r.packed != nil {
			err = errors.Join(err, r.j.root.Remove(packPath(r.number)))
		}
		err = errors.Join(err, r.j.release(r.number))
	}
	if r.packed != nil {
		err = errors.Join(err, r.packed.f.Close())
	}
	for _, t := range r.trees {
		if t != nil {
			t.close()
		}
	}
	return errors.Join(err, r.log.f.Close())
}

func newRecorder(j *Journal, h header) *Recorder {
	return &Recorder{
		j: j, number: h.Number, head: h, begun: h.Start.Add(-tick).UnixNano(), trees: make([]*tree, len(h.Roots)),
		names: newNames(len(h.Roots)), saved: map[key]*saved{}, linked: map[[2]uint64]key{}, held: map[int]*snapshot.Contents{}, moving: map[[2]uint64]bool{}, caches: map[key]bool{}, left: map[key]string{}, asked: map[asked]bool{}, pass: func() {},
	}
}
