package git

import (
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"
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
	if err := w.t.View.Unlink(full); err != nil && err != syscall.ENOENT {
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
	if st, err := (&tree{w.t, w.dir}).Lstat(name); err == nil {
		e.Size, e.ModifiedAt = uint32(st.Size()), st.ModTime()
	}
	return nil
}

func (w *work) branch(args []string) error {
	o, err := w.options(args, "-a --all -d --delete -D -m --move -M --show-current -v -vv --list -l -r -f --force -q", "--format")
	if err != nil {
		return err
	}
	current, attached := w.branchName()
	switch {
	case o.has("--show-current"):
		if attached {
			w.printf("%s\n", current)
		}
		return nil
	case o.has("-d", "-D", "--delete"):
		for _, name := range o.rest {
			ref, err := w.repo.Reference(plumbing.NewBranchReferenceName(name), true)
			if err != nil {
				return wrong("branch '%s' not found.", name)
			}
			if attached && name == current {
				return wrong("Cannot delete branch '%s' checked out at '%s'", name, w.dir)
			}
			if head := w.head(); !o.has("-D") && head != nil {
				c, err := w.repo.CommitObject(ref.Hash())
				if err != nil {
					return err
				}
				if ok, err := c.IsAncestor(head); err != nil || !ok {
					return wrong("The branch '%s' is not fully merged.\nIf you are sure you want to delete it, run 'git branch -D %s'.", name, name)
				}
			}
			if err := w.repo.Storer.RemoveReference(ref.Name()); err != nil {
				return err
			}
			w.printf("Deleted branch %s (was %s).\n", name, short(ref.Hash()))
		}
		return nil
	case o.has("-m", "-M", "--move"):
		from, to := current, ""
		switch len(o.rest) {
		case 1:
			to = o.rest[0]
		case 2:
			from, to = o.rest[0], o.rest[1]
		default:
			return fail("branch name required")
		}
		return w.renameBranch(from, to, attached && from == current, o.has("-M"))
	case len(o.rest) > 0 && !o.has("--list", "-l"):
		start := ""
		if len(o.rest) > 1 {
			start = o.rest[1]
		}
		return w.newBranch(o.rest[0], start, o.has("-f", "--force"))
	}
	refs, err := w.repo.Branches()
	if err != nil {
		return err
	}
	var names []string
	if err := refs.ForEach(func(r *plumbing.Reference) error { names = append(names, r.Name().Short()); return nil }); err != nil {
		return err
	}
	slices.Sort(names)
	if head := w.head(); !attached && head != nil {
		w.printf("* (HEAD detached at %s)\n", short(head.Hash))
	}
	for _, n := range names {
		mark := ' '
		if attached && n == current {
			mark = '*'
		}
		w.printf("%c %s", mark, n)
		if o.has("-v", "-vv") {
			if c, err := w.commitOf("refs/heads/" + n); err == nil {
				width := 0
				for _, m := range names {
					width = max(width, len(m))
				}
				w.printf("%s %s %s", strings.Repeat(" ", width-len(n)), short(c.Hash), subject(c))
			}
		}
		w.printf("\n")
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
		return fail("no branch named '%s'", from)
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
		return err
	}
	return w.repo.Storer.SetReference(plumbing.NewHashReference(ref, c.Hash))
}

func (w *work) checkout(args []string) error {
	o, err := w.options(args, "-f --force -q --quiet --detach", "-b -B --orphan")
	if err != nil {
		return err
	}
	for _, f := range []string{"-b", "-B"} {
		if name, ok := o.flags[f]; ok {
			return w.create(name, o.rest, f == "-B", o.has("-q", "--quiet"))
		}
	}
	if o.dash || len(o.rest) > 1 {
		names, from := o.paths, ""
		if len(o.rest) > 0 {
			from = o.rest[0]
			names = append(slices.Clone(o.rest[1:]), names...)
		}
		return w.take(from, names, from != "", true)
	}
	if len(o.rest) == 0 {
		return nil
	}
	name := o.rest[0]
	if _, err := w.repo.Reference(plumbing.NewBranchReferenceName(name), true); err == nil && !o.has("--detach") {
		return w.to(name, true, o)
	}
	if name == "-" {
		return fail("'-' is not supported in this sandbox: name the branch")
	}
	if _, err := w.commitOf(name); err == nil {
		return w.to(name, false, o)
	}
	if p, err := w.relative(name); err == nil {
		if idx, err := w.indexSide(); err == nil && slices.ContainsFunc(names(idx), func(n string) bool { return within(n, []string{p}) }) {
			return w.take("", []string{name}, false, true)
		}
	}
	return wrong("pathspec '%s' did not match any file(s) known to git", name)
}

func names(s side) []string {
	out := make([]string, 0, len(s.files))
	for n := range s.files {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// create makes a branch and goes there.
func (w *work) create(name string, start []string, force, quiet bool) error {
	if w.head() == nil && len(start) == 0 {
		if err := w.repo.Storer.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, plumbing.NewBranchReferenceName(name))); err != nil {
			return err
		}
		return w.tell("Switched to a new branch '%s'\n", name)
	}
	from := ""
	if len(start) > 0 {
		from = start[0]
	}
	if err := w.newBranch(name, from, force); err != nil {
		return err
	}
	if err := w.to(name, true, &options{flags: map[string]string{"-q": ""}}); err != nil {
		return err
	}
	if quiet {
		return nil
	}
	return w.tell("Switched to a new branch '%s'\n", name)
}

// tell writes to standard error, where git tells of its moves.
func (w *work) tell(format string, args ...any) error {
	if err := w.t.Flush(); err != nil {
		return err
	}
	_, err := w.t.Write(2, []byte(sprintf(format, args...)))
	return err
}

// to moves HEAD and the worktree to a branch, or to a commit.
func (w *work) to(name string, branch bool, o *options) error {
	rev := name
	if branch {
		rev = "refs/heads/" + name
	}
	c, err := w.commitOf(rev)
	if err != nil {
		return err
	}
	current, attached := w.branchName()
	before, err := w.commitSide(w.head())
	if err != nil {
		return err
	}
	after, err := w.commitSide(c)
	if err != nil {
		return err
	}
	if err := w.update(before, after, o.has("-f", "--force")); err != nil {
		return err
	}
	ref := plumbing.NewHashReference(plumbing.HEAD, c.Hash)
	if branch {
		ref = plumbing.NewSymbolicReference(plumbing.HEAD, plumbing.NewBranchReferenceName(name))
	}
	if err := w.repo.Storer.SetReference(ref); err != nil {
		return err
	}
	if o.has("-q", "--quiet") {
		return nil
	}
	now, err := w.workSide()
	if err != nil {
		return err
	}
	for _, x := range changes(after, now, nil) {
		w.printf("%c\t%s\n", letter(x), quoted(x.name))
	}
	switch {
	case branch && attached && current == name:
		return w.tell("Already on '%s'\n", name)
	case branch:
		return w.tell("Switched to branch '%s'\n", name)
	}
	return w.tell("HEAD is now at %s %s\n", short(c.Hash), subject(c))
}

func (w *work) change(args []string) error {
	o, err := w.options(args, "-f --force -q --quiet --detach", "-c -C --create")
	if err != nil {
		return err
	}
	for _, f := range []string{"-c", "-C", "--create"} {
		if name, ok := o.flags[f]; ok {
			return w.create(name, o.rest, f == "-C", o.has("-q", "--quiet"))
		}
	}
	if len(o.rest) != 1 {
		return fail("missing branch or commit argument")
	}
	if o.has("--detach") {
		return w.to(o.rest[0], false, o)
	}
	if _, err := w.repo.Reference(plumbing.NewBranchReferenceName(o.rest[0]), true); err != nil {
		if _, err := w.commitOf(o.rest[0]); err == nil {
			return fail("a branch is expected, got '%s'", o.rest[0])
		}
		return fail("invalid reference: %s", o.rest[0])
	}
	return w.to(o.rest[0], true, o)
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
	o, err := w.options(args, "--soft --mixed --hard -q --quiet", "")
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
		} else {
			names = append(slices.Clone(o.rest), names...)
		}
	}
	if w.head() == nil {
		return w.take("", append(names, w.dir), true, false)
	}
	if len(names) > 0 {
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
	switch {
	case o.has("--soft"):
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
	if err := w.bring(changes(idx, after, nil), after, false); err != nil {
		return err
	}
	if err := w.moveHead(c.Hash, "reset: moving to "+rev); err != nil {
		return err
	}
	return w.unstaged(o)
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
