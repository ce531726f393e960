package git

import (
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// put writes a file of a side into the worktree.
func (w *work) put(name string, i item, s side) error {
	b, err := s.load(name, i)
	if err != nil {
		return err
	}
	full := path.Join(w.dir, path.Join("/", name))
	if name == ".git" || strings.HasPrefix(name, ".git/") || path.Join("/", name) != "/"+name {
		return fail("invalid path '%s'", name)
	}
	if err := w.t.View.MkdirAll(path.Dir(full), 0o777); err != nil {
		return fail("cannot create directory at '%s': %s", path.Dir(name), message(err))
	}
	if err := w.t.View.Unlink(full); err != nil && err != linux.ENOENT {
		return fail("unable to unlink old '%s': %s", name, message(err))
	}
	if i.mode == filemode.Symlink {
		return w.t.View.Symlink(string(b), full)
	}
	mode := uint32(0o666)
	if i.mode == filemode.Executable {
		mode = 0o777
	}
	return w.t.View.WriteFile(full, b, mode)
}

// update makes index and worktree what a commit is, where they differ from
// before. What would be lost is refused.
func (w *work) update(before, after side, force bool) error {
	list := changes(before, after, nil)
	if !force {
		if err := w.spared(list, before, "checkout"); err != nil {
			return err
		}
		return w.bring(list, after, true)
	}
	idx, err := w.indexSide()
	if err != nil {
		return err
	}
	now, err := w.workSide()
	if err != nil {
		return err
	}
	list = changes(now, after, nil)
	for _, c := range changes(idx, after, nil) {
		if !slices.ContainsFunc(list, func(d change) bool { return d.name == c.name }) {
			list = append(list, c)
		}
	}
	unmerged, err := w.unmerged()
	if err != nil {
		return err
	}
	for n := range unmerged {
		if !slices.ContainsFunc(list, func(d change) bool { return d.name == n }) {
			list = append(list, change{name: n, to: get(after, n)})
		}
	}
	return w.bring(list, after, true)
}

// bring brings changes into the worktree and the index.
func (w *work) bring(list []change, after side, worktree bool) error {
	idx, err := w.repo.Storer.Index()
	if err != nil {
		return err
	}
	for _, c := range list {
		if c.to == nil {
			forget(idx, c.name)
			if worktree {
				_ = w.t.View.Unlink(path.Join(w.dir, c.name)) // nor this
				w.prune(c.name)
			}
		}
	}
	for _, c := range list {
		if c.to == nil {
			continue
		}
		if worktree {
			if err := w.put(c.name, *c.to, after); err != nil {
				return err
			}
		}
		if err := w.enter(idx, c.name, *c.to); err != nil {
			return err
		}
	}
	return w.repo.Storer.SetIndex(idx)
}

func (w *work) enter(idx *index.Index, name string, i item) error {
	e := w.entry(idx, name)
	e.Hash, e.Mode = i.hash, i.mode
	if st, err := (&tree{t: w.t, root: w.dir}).Lstat(name); err == nil {
		e.Size, e.ModifiedAt = uint32(st.Size()), st.ModTime()
	}
	return nil
}

func (w *work) renameBranch(from, to string, current, force bool) error {
	old, name := plumbing.NewBranchReferenceName(from), plumbing.NewBranchReferenceName(to)
	if err := name.Validate(); err != nil {
		return fail("'%s' is not a valid branch name", to)
	}
	if _, err := w.repo.Reference(name, true); err == nil && !force {
		return fail("a branch named '%s' already exists", to)
	}
	ref, err := w.repo.Reference(old, true)
	if err == nil {
		if err := w.repo.Storer.SetReference(plumbing.NewHashReference(name, ref.Hash())); err != nil {
			return err
		}
		if err := w.repo.Storer.RemoveReference(old); err != nil {
			return err
		}
	} else if !current {
		return fail("No branch named '%s'.", from)
	}
	if current {
		return w.repo.Storer.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, name))
	}
	return nil
}

func (w *work) newBranch(name, start string, force bool) error {
	ref := plumbing.NewBranchReferenceName(name)
	if err := ref.Validate(); err != nil || strings.HasPrefix(name, "-") {
		return fail("'%s' is not a valid branch name", name)
	}
	if _, err := w.repo.Reference(ref, true); err == nil && !force {
		return fail("a branch named '%s' already exists", name)
	}
	if start == "" && w.head() == nil {
		current, _ := w.branchName()
		return fail("not a valid object name: '%s'", current)
	}
	c, err := w.commitOf(start)
	if err != nil {
		return fail("not a valid object name: '%s'", start)
	}
	from := start
	if from == "" {
		from, _ = w.branchName()
	}
	return w.point(ref, c.Hash, "branch: Created from "+from)
}

func (w *work) restore(args []string) error {
	o, err := w.options(args, "--staged -S --worktree -W -q --quiet", "--source -s")
	if err != nil {
		return err
	}
	names := append(o.rest, o.paths...)
	if len(names) == 0 {
		return fail("you must specify path(s) to restore")
	}
	source := o.flags["--source"] + o.flags["-s"]
	staged := o.has("--staged", "-S")
	if staged && source == "" && w.head() != nil {
		source = "HEAD"
	}
	if staged {
		return w.take(source, names, true, o.has("--worktree", "-W"))
	}
	return w.take(source, names, false, true)
}

// take brings files from a commit, or from the index, into index and worktree.
func (w *work) take(from string, names []string, staged, worktree bool) error {
	paths, err := w.relatives(names)
	if err != nil {
		return err
	}
	idx, err := w.indexSide()
	if err != nil {
		return err
	}
	source := idx
	if from != "" {
		c, err := w.commitOf(from)
		if err != nil {
			return err
		}
		if source, err = w.commitSide(c); err != nil {
			return err
		}
	} else if staged {
		source = side{map[string]item{}, w.blob}
	}
	for i, p := range paths {
		in := func(s side) bool {
			for n := range s.files {
				if within(n, []string{p}) {
					return true
				}
			}
			return false
		}
		if !in(source) && !in(idx) {
			return wrong("pathspec '%s' did not match any file(s) known to git", names[i])
		}
	}
	if worktree {
		for n, i := range source.files {
			if within(n, paths) {
				if err := w.put(n, i, source); err != nil {
					return err
				}
			}
		}
	}
	if !staged {
		return nil
	}
	return w.bring(changes(idx, source, paths), source, false)
}

func (w *work) reset(args []string) error {
	o, err := w.options(args, "--soft --mixed --hard --merge --keep -q --quiet --no-refresh --refresh -N", "")
	if err != nil {
		return err
	}
	rev, names := "HEAD", o.paths
	if len(o.rest) > 0 {
		if _, err := w.commitOf(o.rest[0]); err == nil {
			rev = o.rest[0]
			names = append(slices.Clone(o.rest[1:]), names...)
		} else if o.has("--soft", "--hard", "--mixed") {
			return err
		} else if _, e := w.t.View.Lstat(o.rest[0]); e == nil || o.dash || w.knows(o.rest[0]) {
			names = append(slices.Clone(o.rest), names...)
		} else {
			return err
		}
	}
	if w.head() == nil {
		return w.take("", append(names, w.dir), true, false)
	}
	if len(names) > 0 {
		for _, how := range []string{"soft", "hard", "merge", "keep"} {
			if o.has("--" + how) {
				return fail("Cannot do %s reset with paths.", how)
			}
		}
		if err := w.take(rev, names, true, false); err != nil {
			return err
		}
		return w.unstaged(o)
	}
	c, err := w.commitOf(rev)
	if err != nil {
		return err
	}
	after, err := w.commitSide(c)
	if err != nil {
		return err
	}
	if err := w.keep("ORIG_HEAD", w.head().Hash); err != nil {
		return err
	}
	if !o.has("--soft") {
		w.removeFiles("MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "CHERRY_PICK_HEAD", "REVERT_HEAD", "SQUASH_MSG")
	}
	switch {
	case o.has("--soft"):
		return w.moveHead(c.Hash, "reset: moving to "+rev)
	case o.has("--merge", "--keep"):
		if err := w.resetKeeping(rev, after, o.has("--keep")); err != nil {
			return err
		}
		return w.moveHead(c.Hash, "reset: moving to "+rev)
	case o.has("--hard"):
		if err := w.update(side{}, after, true); err != nil {
			return err
		}
		if err := w.moveHead(c.Hash, "reset: moving to "+rev); err != nil {
			return err
		}
		if !o.has("-q", "--quiet") {
			w.printf("HEAD is now at %s %s\n", short(c.Hash), subject(c))
		}
		return nil
	}
	idx, err := w.indexSide()
	if err != nil {
		return err
	}
	list := changes(idx, after, nil)
	open, err := w.unmerged()
	if err != nil {
		return err
	}
	for n := range open {
		if !slices.ContainsFunc(list, func(c change) bool { return c.name == n }) {
			list = append(list, change{name: n, to: get(after, n)})
		}
	}
	if err := w.bring(list, after, false); err != nil {
		return err
	}
	if err := w.moveHead(c.Hash, "reset: moving to "+rev); err != nil {
		return err
	}
	return w.unstaged(o)
}

// resetKeeping makes index and worktree what a commit is, and leaves what was
// changed in the worktree alone: a file that would lose such a change ends it.
// With keep, changes in the index count as those of the worktree.
func (w *work) resetKeeping(rev string, after side, keep bool) error {
	s, err := w.state(nil)
	if err != nil {
		return err
	}
	list := changes(s.head, after, nil)
	local := s.unstaged
	if keep {
		local = append(slices.Clone(local), s.staged...)
	} else {
		for _, c := range changes(s.idx, after, nil) {
			if !slices.ContainsFunc(list, func(d change) bool { return d.name == c.name }) {
				list = append(list, c)
			}
		}
	}
	for _, c := range list {
		if slices.ContainsFunc(local, func(d change) bool { return d.name == c.name }) {
			return &fatal{"error: Entry '" + c.name + "' not uptodate. Cannot merge.\nfatal: Could not reset index file to revision '" + rev + "'.", 128}
		}
	}
	return w.bring(list, after, true)
}

// knows reports whether the index has a file of that name, or below it.
func (w *work) knows(name string) bool {
	p, err := w.relative(name)
	if err != nil {
		return false
	}
	idx, err := w.indexSide()
	if err != nil {
		return false
	}
	for n := range idx.files {
		if within(n, []string{p}) {
			return true
		}
	}
	return false
}

func (w *work) unstaged(o *options) error {
	if o.has("-q", "--quiet") {
		return nil
	}
	s, err := w.state(nil)
	if err != nil || len(s.unstaged) == 0 {
		return err
	}
	w.printf("Unstaged changes after reset:\n")
	for _, c := range s.unstaged {
		w.printf("%c\t%s\n", letter(c), c.name)
	}
	return nil
}

func subject(c *object.Commit) string {
	first, _, _ := strings.Cut(strings.TrimLeft(c.Message, "\n"), "\n\n")
	return strings.ReplaceAll(strings.TrimRight(first, "\n"), "\n", " ")
}
