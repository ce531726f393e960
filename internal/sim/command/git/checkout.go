package git

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"
)

func (w *work) checkout(args []string) error {
	o, err := w.options(args, "-f --force -q --quiet --detach -d --ours --theirs -t --track --no-track --guess --no-guess -m --merge --progress --no-progress -l", "-b -B --orphan")
	if err != nil {
		return err
	}
	for _, f := range []string{"-b", "-B"} {
		if name, ok := o.flags[f]; ok {
			return w.createFor(name, o.rest, f == "-B", o)
		}
	}
	if name, ok := o.flags["--orphan"]; ok {
		if err := w.repo.Storer.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, plumbing.NewBranchReferenceName(name))); err != nil {
			return err
		}
		return w.tell("Switched to a new branch '%s'\n", name)
	}
	if o.has("--ours", "--theirs") {
		return w.takeStage(append(slices.Clone(o.rest), o.paths...), o.has("--theirs"))
	}
	if len(o.rest) > 0 && o.rest[0] == "-" {
		name, ok := w.lastBranch(1)
		if !ok {
			return wrong("pathspec '-' did not match any file(s) known to git")
		}
		o.rest[0] = name
	}
	if o.dash || len(o.rest) > 1 {
		names, from := o.paths, ""
		if len(o.rest) > 0 {
			from = o.rest[0]
			names = append(slices.Clone(o.rest[1:]), names...)
			if _, err := w.commitOf(from); err != nil && !o.dash {
				from, names = "", o.rest
			}
		}
		return w.taken(from, names, o)
	}
	if len(o.rest) == 0 && o.has("--detach", "-d") && w.head() != nil {
		o.rest = []string{"HEAD"}
	}
	if len(o.rest) == 0 {
		return nil
	}
	name := o.rest[0]
	if _, err := w.repo.Reference(plumbing.NewBranchReferenceName(name), true); err == nil && !o.has("--detach", "-d") {
		return w.to(name, true, o)
	}
	if c, err := w.commitOf(name); err == nil && (c != nil) {
		return w.to(name, false, o)
	}
	if remote, ok := w.guessed(name); ok {
		return w.createFor(name, []string{remote}, false, o)
	}
	if p, err := w.relative(name); err == nil {
		if idx, err := w.indexSide(); err == nil && slices.ContainsFunc(names(idx), func(n string) bool { return within(n, []string{p}) }) {
			return w.taken("", []string{name}, o)
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

// guessed finds the one remote that has a branch of that name.
func (w *work) guessed(name string) (string, bool) {
	all, err := w.refsOf("refs/remotes/")
	if err != nil {
		return "", false
	}
	found := ""
	for n := range all {
		if _, branch, ok := strings.Cut(n, "/"); ok && branch == name {
			if found != "" {
				return "", false
			}
			found = n
		}
	}
	return found, found != ""
}

// createFor makes a branch that follows a remote's, if it begins there.
func (w *work) createFor(name string, start []string, force bool, o *options) error {
	if err := w.create(name, start, force, o.has("-q", "--quiet")); err != nil {
		return err
	}
	if len(start) == 0 || o.has("--no-track") {
		return nil
	}
	return w.track(name, start[0], o.has("-t", "--track"))
}

// track makes a branch follow another, if that is a remote's.
func (w *work) track(name, start string, always bool) error {
	r, ok := w.refName(start)
	if !ok {
		return nil
	}
	remote, branch := ".", string(r.Name())
	if rest, ok := strings.CutPrefix(branch, "refs/remotes/"); ok {
		first, last, ok := strings.Cut(rest, "/")
		if !ok {
			return nil
		}
		remote, branch = first, "refs/heads/"+last
	} else if !always || !strings.HasPrefix(branch, "refs/heads/") {
		return nil
	}
	if err := w.config([]string{"--local", "branch." + name + ".remote", remote}); err != nil {
		return err
	}
	if err := w.config([]string{"--local", "branch." + name + ".merge", branch}); err != nil {
		return err
	}
	shown := start
	w.printf("branch '%s' set up to track '%s'.\n", name, shown)
	return nil
}

// takeStage brings one side of conflicts into the worktree.
func (w *work) takeStage(words []string, theirs bool) error {
	paths, err := w.relatives(words)
	if err != nil {
		return err
	}
	idx, err := w.repo.Storer.Index()
	if err != nil {
		return err
	}
	want, n := index.Stage(2), 0
	if theirs {
		want = 3
	}
	for _, e := range idx.Entries {
		if e.Stage == want && within(e.Name, paths) {
			if err := w.put(e.Name, item{e.Mode, e.Hash}, side{load: w.blob}); err != nil {
				return err
			}
			n++
		}
	}
	return w.tell("Updated %s from the index\n", strings.Replace(plural(n), "commit", "path", 1))
}

// taken is take by checkout, which tells how many files it brought.
func (w *work) taken(from string, names []string, o *options) error {
	paths, err := w.relatives(names)
	if err != nil {
		return err
	}
	idx, err := w.indexSide()
	if err != nil {
		return err
	}
	now, err := w.workSide()
	if err != nil {
		return err
	}
	source, where := idx, "the index"
	if from != "" {
		c, err := w.commitOf(from)
		if err != nil {
			return err
		}
		if source, err = w.commitSide(c); err != nil {
			return err
		}
		where = short(c.TreeHash)
	}
	n := 0
	for name, i := range source.files {
		if j, ok := now.files[name]; within(name, paths) && (!ok || i != j) {
			n++
		}
	}
	if err := w.has(from, names); err != nil {
		return err
	}
	if err := w.take(from, names, from != "", true); err != nil || o.dash || o.has("-q", "--quiet") {
		return err
	}
	return w.tell("Updated %s from %s\n", strings.Replace(plural(n), "commit", "path", 1), where)
}

// has tells of a path that a commit does not hold.
func (w *work) has(rev string, names []string) error {
	if rev == "" {
		return nil
	}
	c, err := w.commitOf(rev)
	if err != nil {
		return err
	}
	source, err := w.commitSide(c)
	if err != nil {
		return err
	}
	paths, err := w.relatives(names)
	if err != nil {
		return err
	}
	for i, p := range paths {
		if !slices.ContainsFunc(sortedKeys(source.files), func(n string) bool { return within(n, []string{p}) }) {
			return wrong("pathspec '%s' did not match any file(s) known to git", names[i])
		}
	}
	return nil
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
	if _, err := w.commitOf(from); err != nil && from != "" {
		return fail("'%s' is not a commit and a branch '%s' cannot be created from it", from, name)
	}
	_, err := w.repo.Reference(plumbing.NewBranchReferenceName(name), true)
	was := err == nil
	at, _ := w.branchName()
	if err := w.newBranch(name, from, force); err != nil {
		return err
	}
	if err := w.to(name, true, &options{flags: map[string]string{"-q": ""}}); err != nil {
		return err
	}
	if quiet {
		return nil
	}
	if was && at == name {
		return w.tell("Reset branch '%s'\n", name)
	}
	if was {
		return w.tell("Switched to and reset branch '%s'\n", name)
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
	left := w.head()
	if err := w.free(o); err != nil {
		return err
	}
	before, err := w.commitSide(left)
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
	was, old := current, plumbing.ZeroHash
	if left != nil {
		if old = left.Hash; !attached {
			was = left.Hash.String()
		}
	}
	if !branch || !attached || current != name {
		if err := w.note("HEAD", old, c.Hash, "checkout: moving from "+was+" to "+name); err != nil {
			return err
		}
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
	if !attached && left != nil && left.Hash != c.Hash {
		if err := w.leaving(left, c); err != nil {
			return err
		}
	}
	switch {
	case branch && attached && current == name:
		err = w.tell("Already on '%s'\n", name)
	case branch:
		err = w.tell("Switched to branch '%s'\n", name)
	default:
		if v, ok := w.configured("advice.detachedhead"); attached && !o.has("--detach", "-d") && !(ok && v == "false") {
			err = w.tell("%s", "Note: switching to '"+name+"'.\n\n"+advice)
		}
		if err == nil {
			err = w.tell("HEAD is now at %s %s\n", short(c.Hash), subject(c))
		}
	}
	if err == nil && branch {
		w.following(name)
	}
	return err
}

const advice = `You are in 'detached HEAD' state. You can look around, make experimental
changes and commit them, and you can discard any commits you make in this
state without impacting any branches by switching back to a branch.

If you want to create a new branch to retain commits you create, you may
do so (now or later) by using -c with the switch command. Example:

  git switch -c <new-branch-name>

Or undo this operation with:

  git switch -

Turn off this advice by setting config variable advice.detachedHead to false

`

// free refuses to leave files in conflict.
func (w *work) free(o *options) error {
	open, err := w.unmerged()
	if err != nil || len(open) == 0 || o.has("-f", "--force") {
		return err
	}
	text := ""
	for _, n := range sortedKeys(open) {
		text += n + ": needs merge\n"
	}
	return &fatal{"error: you need to resolve your current index first\n" + strings.TrimSuffix(text, "\n"), 1}
}

// leaving tells where HEAD was, and what no branch leads to then.
func (w *work) leaving(left, to *object.Commit) error {
	heads, err := w.refsOf("refs/")
	if err != nil {
		return err
	}
	stops := []*object.Commit{to}
	for n := range heads {
		if c, err := w.commitOf("refs/" + n); err == nil {
			stops = append(stops, c)
		}
	}
	var lost []*object.Commit
	if err := w.walk([]*object.Commit{left}, stops, func(c *object.Commit) (bool, error) { lost = append(lost, c); return true, nil }); err != nil {
		return err
	}
	if len(lost) == 0 {
		return w.tell("Previous HEAD position was %s %s\n", short(left.Hash), subject(left))
	}
	it, text := "it", "Warning: you are leaving 1 commit behind, not connected to\nany of your branches:\n\n"
	if len(lost) > 1 {
		it, text = "them", sprintf("Warning: you are leaving %d commits behind, not connected to\nany of your branches:\n\n", len(lost))
	}
	for _, c := range lost[:min(4, len(lost))] {
		text += "  " + short(c.Hash) + " " + subject(c) + "\n"
	}
	if len(lost) > 4 {
		text += sprintf(" ... and %d more.\n", len(lost)-4)
	}
	return w.tell("%s\nIf you want to keep %s by creating a new branch, this may be a good time\nto do so with:\n\n git branch <new-branch-name> %s\n\n", text, it, short(left.Hash))
}

func (w *work) change(args []string) error {
	o, err := w.options(args, "-f --force -q --quiet --detach -d --discard-changes -t --track --no-track --guess --no-guess --progress -m --merge", "-c -C --create --force-create --orphan")
	if err != nil {
		return err
	}
	for _, f := range []string{"-c", "-C", "--create"} {
		if name, ok := o.flags[f]; ok {
			return w.createFor(name, o.rest, f == "-C", o)
		}
	}
	if len(o.rest) == 0 && o.has("--detach", "-d") && w.head() != nil {
		o.rest = []string{"HEAD"}
	}
	if len(o.rest) != 1 {
		return fail("missing branch or commit argument")
	}
	if o.has("--discard-changes") {
		o.flags["-f"] = ""
	}
	if o.rest[0] == "-" {
		name, ok := w.lastBranch(1)
		if !ok {
			return fail("invalid reference: -")
		}
		o.rest[0] = name
	}
	if o.has("--detach", "-d") {
		return w.to(o.rest[0], false, o)
	}
	if _, err := w.repo.Reference(plumbing.NewBranchReferenceName(o.rest[0]), true); err != nil {
		if _, err := w.commitOf(o.rest[0]); err == nil {
			kind := "commit"
			if r, ok := w.refName(o.rest[0]); ok && strings.HasPrefix(string(r.Name()), "refs/tags/") {
				kind = "tag"
			} else if ok && strings.HasPrefix(string(r.Name()), "refs/remotes/") {
				kind = "remote branch"
			}
			return &fatal{"fatal: a branch is expected, got " + kind + " '" + o.rest[0] + "'\nhint: If you want to detach HEAD at the commit, try again with the --detach option.", 128}
		}
		if remote, ok := w.guessed(o.rest[0]); ok {
			return w.createFor(o.rest[0], []string{remote}, false, o)
		}
		return fail("invalid reference: %s", o.rest[0])
	}
	return w.to(o.rest[0], true, o)
}
