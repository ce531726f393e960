package git

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	lib "github.com/go-git/go-git/v5"
)

const stashRef = "refs/stash"

func (w *work) stash(args []string) error {
	verb := "push"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		verb, args = args[0], args[1:]
	}
	switch verb {
	case "push", "save":
		return w.stashPush(verb, args)
	case "list":
		for i, e := range w.entries(stashRef) {
			w.printf("stash@{%d}: %s\n", i, e.text)
		}
		return nil
	case "clear":
		if _, err := w.repo.Reference(stashRef, true); err != nil {
			return nil //nolint:nilerr // there is none
		}
		return w.dropRef(stashRef)
	case "pop", "apply", "drop", "show", "branch":
	default:
		return &fatal{"fatal: subcommand wasn't specified; 'push' can't be assumed due to unexpected token '" + verb + "'", 128}
	}
	o, err := w.options(args, "-q --quiet --index -p --patch -u --stat --name-only --name-status --numstat", "")
	if err != nil {
		return err
	}
	branch := ""
	if verb == "branch" && len(o.rest) > 0 {
		branch, o.rest = o.rest[0], o.rest[1:]
	}
	n := 0
	if len(o.rest) > 0 {
		word := strings.TrimSuffix(strings.TrimPrefix(o.rest[0], "stash@{"), "}")
		if n, err = strconv.Atoi(word); err != nil || n < 0 {
			return fail("'%s' is not a stash-like commit", o.rest[0])
		}
	}
	list := w.entries(stashRef)
	switch {
	case len(list) == 0:
		return &fatal{"No stash entries found.", 1}
	case n >= len(list):
		return &fatal{sprintf("fatal: log for 'stash' only has %d entries", len(list)), 128}
	}
	c, err := w.repo.CommitObject(list[n].new)
	if err != nil {
		return err
	}
	switch verb {
	case "drop":
		return w.stashDrop(list, n, o.has("-q", "--quiet"))
	case "show":
		return w.stashShow(c, o)
	case "branch":
		parent, err := c.Parent(0)
		if err != nil {
			return err
		}
		if err := w.create(branch, []string{parent.Hash.String()}, false, false); err != nil {
			return err
		}
		verb = "pop"
	}
	if err := w.stashApply(c, o); err != nil {
		var s status
		if asStatus(err, &s) && verb == "pop" {
			_ = w.tell("") // what was printed comes first
			w.printf("The stash entry is kept in case you need it again.\n")
		}
		return err
	}
	if verb == "pop" {
		return w.stashDrop(list, n, o.has("-q", "--quiet"))
	}
	return nil
}

func (w *work) stashPush(verb string, args []string) error {
	o, err := w.options(args, "-u --include-untracked -a --all -k --keep-index --no-keep-index -q --quiet -S --staged", "-m --message")
	if err != nil {
		return err
	}
	head := w.head()
	if head == nil {
		return &fatal{"You do not have the initial commit yet", 1}
	}
	if err := w.conflicted("Stashing"); err != nil {
		return err
	}
	words := o.flags["-m"] + o.flags["--message"]
	names := append(slices.Clone(o.rest), o.paths...)
	if verb == "save" {
		words, names = strings.Join(o.rest, " "), nil
	}
	paths, err := w.relatives(names)
	if err != nil {
		return err
	}
	before, err := w.commitSide(head)
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
	var loose []string
	if o.has("-u", "--include-untracked", "-a", "--all") {
		if loose, err = w.untracked(paths); err != nil {
			return err
		}
	}
	saved := side{map[string]item{}, w.blob}
	for n, i := range before.files {
		saved.files[n] = i
	}
	list := changes(before, now, paths)
	if len(list) == 0 && len(changes(before, idx, paths)) == 0 && len(loose) == 0 {
		if !o.has("-q", "--quiet") {
			w.printf("No local changes to save\n")
		}
		return nil
	}
	for _, c := range list {
		if c.to == nil {
			delete(saved.files, c.name)
			continue
		}
		b, err := w.contents(c.name, c.to.mode)
		if err != nil {
			return err
		}
		if _, err := w.store(plumbing.BlobObject, b); err != nil {
			return err
		}
		saved.files[c.name] = *c.to
	}
	who, err := w.signature("COMMITTER")
	if err != nil {
		return err
	}
	branch, ok := w.branchName()
	if !ok {
		branch = "(no branch)"
	}
	tip := branch + ": " + short(head.Hash) + " " + subject(head)
	staged, err := w.object(&draft{text: "index on " + tip + "\n", author: who, committer: who, parents: []plumbing.Hash{head.Hash}, after: idx})
	if err != nil {
		return err
	}
	parents := []plumbing.Hash{head.Hash, staged}
	if len(loose) > 0 {
		third, err := w.saveLoose(loose, tip, who)
		if err != nil {
			return err
		}
		parents = append(parents, third)
	}
	text := "WIP on " + tip
	if words != "" {
		text = "On " + branch + ": " + words
	}
	h, err := w.object(&draft{text: text, author: who, committer: who, parents: parents, after: saved})
	if err != nil {
		return err
	}
	if err := w.point(stashRef, h, text); err != nil {
		return err
	}
	if !o.has("-q", "--quiet") {
		w.printf("Saved working directory and index state %s\n", text)
	}
	return w.stashed(before, idx, now, paths, loose, o.has("-k", "--keep-index"))
}

// stashed gives the worktree back what HEAD, or the index, has.
func (w *work) stashed(before, idx, now side, paths, loose []string, keep bool) error {
	to := before
	if keep {
		to = idx
	}
	list := changes(now, to, paths)
	for _, c := range changes(idx, to, paths) {
		if !slices.ContainsFunc(list, func(d change) bool { return d.name == c.name }) {
			list = append(list, c)
		}
	}
	if err := w.bring(list, to, true); err != nil {
		return err
	}
	for _, n := range loose {
		_ = (&tree{t: w.t, root: w.dir}).Remove(n) // what stays is seen in status
		w.prune(n)
	}
	return nil
}

func (w *work) saveLoose(names []string, tip string, who *object.Signature) (plumbing.Hash, error) {
	s := side{map[string]item{}, w.blob}
	for _, n := range names {
		mode, err := w.modeOf(n)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		b, err := w.contents(n, mode)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		h, err := w.store(plumbing.BlobObject, b)
		if err != nil {
			return h, err
		}
		s.files[n] = item{mode, h}
	}
	return w.object(&draft{text: "untracked files on " + tip + "\n", author: who, committer: who, after: s})
}

// untracked gives the files that git knows nothing of and is not told to ignore.
func (w *work) untracked(paths []string) ([]string, error) {
	idx, err := w.indexSide()
	if err != nil {
		return nil, err
	}
	all, err := w.statuses()
	if err != nil {
		return nil, err
	}
	var out []string
	for name, f := range all {
		if _, tracked := idx.files[name]; f.Worktree == lib.Untracked && !tracked && within(name, paths) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, nil
}

func (w *work) stashDrop(list []entry, n int, quiet bool) error {
	gone := list[n].new
	list = slices.Delete(slices.Clone(list), n, n+1)
	if len(list) == 0 {
		if err := w.dropRef(stashRef); err != nil {
			return err
		}
	} else {
		for i := range list {
			list[i].old = plumbing.ZeroHash
			if i+1 < len(list) {
				list[i].old = list[i+1].new
			}
		}
		if err := w.rewrite(stashRef, list); err != nil {
			return err
		}
		if err := w.repo.Storer.SetReference(plumbing.NewHashReference(stashRef, list[0].new)); err != nil {
			return err
		}
	}
	if !quiet {
		name := sprintf("stash@{%d}", n)
		if n == 0 {
			name = "refs/stash@{0}"
		}
		w.printf("Dropped %s (%s)\n", name, gone)
	}
	return nil
}

func (w *work) stashShow(c *object.Commit, o *options) error {
	a, b, err := w.sides(c)
	if err != nil {
		return err
	}
	s := w.style(o)
	if !s.diffs() {
		s.stat = true
	}
	return w.shown(a, b, changes(a, b, nil), s)
}

func (w *work) stashApply(c *object.Commit, o *options) error {
	base, stashed, err := w.sides(c)
	if err != nil {
		return err
	}
	idx, err := w.indexSide()
	if err != nil {
		return err
	}
	m := &merger{w: w, base: base, ours: idx, theirs: stashed, us: "Updated upstream", them: "Stashed changes"}
	if err := m.run(); err != nil {
		return err
	}
	if err := m.install(idx, "merge"); err != nil {
		return err
	}
	if len(c.ParentHashes) > 2 {
		third, err := c.Parent(2)
		if err != nil {
			return err
		}
		loose, err := w.commitSide(third)
		if err != nil {
			return err
		}
		for _, n := range names(loose) {
			if err := w.put(n, loose.files[n], loose); err != nil {
				return err
			}
		}
	}
	for _, l := range m.said {
		w.printf("%s\n", l)
	}
	if len(m.conflicts) == 0 {
		// The changes are in the worktree only; new files stay staged.
		back := side{map[string]item{}, w.blob}
		for n, i := range m.result.files {
			back.files[n] = i
			if old, ok := idx.files[n]; ok {
				back.files[n] = old
			}
		}
		for n, i := range idx.files {
			if _, ok := m.result.files[n]; !ok {
				back.files[n] = i
			}
		}
		if o.has("--index") {
			second, err := c.Parent(1)
			if err != nil {
				return err
			}
			if back, err = w.commitSide(second); err != nil {
				return err
			}
		}
		if err := w.bring(changes(m.result, back, nil), back, false); err != nil {
			return err
		}
	}
	if !o.has("-q", "--quiet") {
		if err := w.showStatus(); err != nil {
			return err
		}
	}
	if len(m.conflicts) > 0 {
		return status(1)
	}
	return nil
}

func (w *work) showStatus() error {
	s, err := w.state(nil)
	if err != nil {
		return err
	}
	w.local(s)
	w.long(s)
	return nil
}
