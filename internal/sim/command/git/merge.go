package git

import (
	"encoding/hex"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// base gives the commit where two histories part, nil where they have nothing
// in common.
func (w *work) base(a, b *object.Commit) (*object.Commit, error) {
	list, err := w.bases(a, b)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0], nil
}

// bases gives the best common ancestors of two commits, the latest first.
func (w *work) bases(a, b *object.Commit) ([]*object.Commit, error) {
	ours := map[plumbing.Hash]bool{}
	if err := w.walk([]*object.Commit{a}, nil, func(c *object.Commit) (bool, error) { ours[c.Hash] = true; return true, nil }); err != nil {
		return nil, err
	}
	var out []*object.Commit
	err := w.walk([]*object.Commit{b}, nil, func(c *object.Commit) (bool, error) {
		if !ours[c.Hash] {
			return true, nil
		}
		for _, o := range out {
			if ok, err := w.leads(c, o); err != nil || ok {
				return err == nil, err
			}
		}
		out = append(out, c)
		return len(out) < 16, nil
	})
	return out, err
}

// leads reports whether a is b or an ancestor of it.
func (w *work) leads(a, b *object.Commit) (bool, error) {
	found := false
	err := w.walk([]*object.Commit{b}, nil, func(c *object.Commit) (bool, error) {
		found = found || c.Hash == a.Hash
		return !found, nil
	})
	return found, err
}

// mergeWords is the message of a merge.
func (w *work) mergeWords(rev string) string {
	text := "Merge commit '" + rev + "'"
	if r, ok := w.refName(rev); ok {
		switch name := string(r.Name()); {
		case strings.HasPrefix(name, "refs/heads/"):
			text = "Merge branch '" + rev + "'"
		case strings.HasPrefix(name, "refs/tags/"):
			text = "Merge tag '" + rev + "'"
		case strings.HasPrefix(name, "refs/remotes/"):
			text = "Merge remote-tracking branch '" + rev + "'"
		}
	}
	return text + w.into()
}

// into names the branch that is merged into, if it is not the usual one.
func (w *work) into() string {
	current, _ := w.branchName()
	if current == "main" || current == "master" {
		return ""
	}
	return " into " + current
}

func (w *work) merge(args []string) error {
	o, err := w.options(args, "--ff-only --ff --no-ff -q --quiet --abort --continue --quit --squash --no-commit --commit --no-edit -e --edit --stat --no-stat -n --allow-unrelated-histories --signoff --no-verify -v", "-m -s --strategy -X --strategy-option -F")
	if err != nil {
		return err
	}
	if v := o.flags["-s"] + o.flags["--strategy"]; v != "" && v != "ort" && v != "recursive" {
		return fail("merge -s %s is not supported in this sandbox", v)
	}
	if v := o.flags["-X"] + o.flags["--strategy-option"]; v != "" {
		return fail("merge -X %s is not supported in this sandbox", v)
	}
	_, merging := w.readFile("MERGE_HEAD")
	switch {
	case o.has("--abort"):
		if !merging {
			return fail("There is no merge to abort (MERGE_HEAD missing).")
		}
		return w.abandon("HEAD", "reset: moving to HEAD")
	case o.has("--quit"):
		w.removeFiles("MERGE_HEAD", "MERGE_MSG", "MERGE_MODE")
		return nil
	case o.has("--continue"):
		if !merging {
			return fail("There is no merge in progress (MERGE_HEAD missing).")
		}
		return w.commit([]string{"--no-edit"})
	}
	if files, err := w.unmerged(); err != nil {
		return err
	} else if len(files) > 0 {
		return &fatal{"error: Merging is not possible because you have unmerged files.\nhint: Fix them up in the work tree, and then use 'git add/rm <file>'\nhint: as appropriate to mark resolution and make a commit.\nfatal: Exiting because of an unresolved conflict.", 128}
	}
	if merging {
		return fail("You have not concluded your merge (MERGE_HEAD exists).\nPlease, commit your changes before you merge.")
	}
	rev := ""
	switch len(o.rest) {
	case 0:
		name, _ := w.branchName()
		if _, up, ok := w.upstream(name); ok {
			rev = up
			break
		}
		return fail("No remote for the current branch.")
	case 1:
		rev = o.rest[0]
	default:
		return fail("merges of more than one branch at once are not supported in this sandbox")
	}
	if rev == "-" {
		rev = "@{-1}"
		if name, ok := w.lastBranch(1); ok {
			rev = name
		}
	}
	c, err := w.commitOf(rev)
	if err != nil {
		return &fatal{"merge: " + rev + " - not something we can merge", 1}
	}
	return w.mergeCommit(o, rev, c, "merge "+rev)
}

// mergeCommit merges a commit into HEAD. note begins the reflog's line.
func (w *work) mergeCommit(o *options, rev string, c *object.Commit, note string) error {
	quiet := o.has("-q", "--quiet")
	head := w.head()
	after, err := w.commitSide(c)
	if err != nil {
		return err
	}
	before, err := w.commitSide(head)
	if err != nil {
		return err
	}
	if head == nil {
		if err := w.update(before, after, false); err != nil {
			return err
		}
		return w.moveHead(c.Hash, "initial pull")
	}
	base, err := w.base(head, c)
	switch {
	case err != nil:
		return err
	case base != nil && base.Hash == c.Hash:
		if !quiet {
			w.printf("Already up to date.\n")
		}
		return nil
	case base == nil && !o.has("--allow-unrelated-histories"):
		return fail("refusing to merge unrelated histories")
	}
	if base != nil && base.Hash == head.Hash && !o.has("--no-ff", "--squash") {
		return w.forward(head, c, before, after, note, quiet, o.has("-n", "--no-stat"))
	}
	if o.has("--ff-only") {
		return fail("Not possible to fast-forward, aborting.")
	}
	if err := w.keep("ORIG_HEAD", head.Hash); err != nil {
		return err
	}
	m := &merger{w: w, ours: before, theirs: after, us: "HEAD", them: rev}
	if m.base, err = w.commitSide(base); err != nil {
		return err
	}
	if err := m.run(); err != nil {
		return err
	}
	staged, err := w.indexSide()
	if err != nil {
		return err
	}
	if list := changes(before, staged, nil); len(list) > 0 {
		var names []string
		for _, c := range list {
			names = append(names, c.name)
		}
		return &fatal{"error: Your local changes to the following files would be overwritten by merge:\n  " + strings.Join(names, " ") + "\nMerge with strategy ort failed.", 2}
	}
	if err := m.install(before, "merge"); err != nil {
		var f *fatal
		if asFatal(err, &f) {
			return &fatal{f.text + "\nMerge with strategy ort failed.", 2}
		}
		return err
	}
	if !quiet || len(m.conflicts) > 0 {
		for _, s := range m.said {
			w.printf("%s\n", s)
		}
	}
	text := tidy(o.flags["-m"])
	if text == "\n" {
		text = w.mergeWords(rev) + "\n"
	}
	if o.has("--squash") {
		w.printf("Squash commit -- not updating HEAD\n")
		if err := w.squashed(head, c); err != nil || len(m.conflicts) > 0 {
			return orWords(err, "Automatic merge failed; fix conflicts and then commit the result.", w)
		}
		if !o.has("--no-commit") && !quiet {
			return w.tell("Automatic merge went well; stopped before committing as requested\n")
		}
		return nil
	}
	if len(m.conflicts) > 0 || o.has("--no-commit") {
		return w.stopMerge(m, c, text)
	}
	author, err := w.signature("AUTHOR")
	if err != nil {
		return err
	}
	committer, err := w.signature("COMMITTER")
	if err != nil {
		return err
	}
	d := &draft{text: text, author: author, committer: committer, parents: []plumbing.Hash{head.Hash, c.Hash}, after: m.result}
	if _, err := w.write(d, note+": Merge made by the 'ort' strategy."); err != nil || quiet {
		return err
	}
	w.printf("Merge made by the 'ort' strategy.\n")
	if o.has("-n", "--no-stat") {
		return nil
	}
	return w.summarise(before, m.result, changes(before, m.result, nil), true)
}

func orWords(err error, words string, w *work) error {
	if err != nil {
		return err
	}
	w.printf("%s\n", words)
	return status(1)
}

// stopMerge leaves a merge to whoever commits it.
func (w *work) stopMerge(m *merger, c *object.Commit, text string) error {
	if len(m.conflicts) > 0 {
		text += conflictWords(m)
	}
	if err := w.writeFile("MERGE_MSG", text); err != nil {
		return err
	}
	if err := w.keep("MERGE_HEAD", c.Hash); err != nil {
		return err
	}
	if err := w.writeFile("MERGE_MODE", ""); err != nil {
		return err
	}
	if len(m.conflicts) == 0 {
		return w.tell("Automatic merge went well; stopped before committing as requested\n")
	}
	w.printf("Automatic merge failed; fix conflicts and then commit the result.\n")
	return status(1)
}

func conflictWords(m *merger) string {
	var b strings.Builder
	b.WriteString("\n# Conflicts:\n")
	for _, c := range m.conflicts {
		b.WriteString("#\t" + c.name + "\n")
	}
	return b.String()
}

// keep writes a file that holds a commit's name.
func (w *work) keep(name string, h plumbing.Hash) error { return w.writeFile(name, h.String()+"\n") }

// forward moves HEAD along its own line.
func (w *work) forward(head, c *object.Commit, before, after side, note string, quiet, bare bool) error {
	if err := w.keep("ORIG_HEAD", head.Hash); err != nil {
		return err
	}
	if !quiet {
		w.printf("Updating %s..%s\n", short(head.Hash), short(c.Hash))
	}
	if err := w.spared(changes(before, after, nil), before, "merge"); err != nil {
		return err
	}
	if err := w.update(before, after, false); err != nil {
		return err
	}
	if err := w.moveHead(c.Hash, note+": Fast-forward"); err != nil || quiet {
		return err
	}
	w.printf("Fast-forward\n")
	if bare {
		return nil
	}
	return w.summarise(before, after, changes(before, after, nil), true)
}

// squashed writes the message of a squashed merge.
func (w *work) squashed(head, c *object.Commit) error {
	var b strings.Builder
	b.WriteString("Squashed commit of the following:\n")
	err := w.walk([]*object.Commit{c}, []*object.Commit{head}, func(x *object.Commit) (bool, error) {
		b.WriteString("\ncommit " + x.Hash.String() + "\nAuthor: " + x.Author.Name + " <" + x.Author.Email + ">\nDate:   " + x.Author.When.Format(dateFormat) + "\n\n    " + strings.ReplaceAll(strings.TrimRight(x.Message, "\n"), "\n", "\n    ") + "\n")
		return true, nil
	})
	if err != nil {
		return err
	}
	return w.writeFile("SQUASH_MSG", b.String())
}

// abandon gives index and worktree back what a commit has, and forgets what
// was going on.
func (w *work) abandon(rev, note string) error {
	c, err := w.commitOf(rev)
	if err != nil {
		return err
	}
	after, err := w.commitSide(c)
	if err != nil {
		return err
	}
	if err := w.update(side{}, after, true); err != nil {
		return err
	}
	w.removeFiles("MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "SQUASH_MSG", "CHERRY_PICK_HEAD", "REVERT_HEAD")
	return w.moveHead(c.Hash, note)
}

func (w *work) mergeBase(args []string) error {
	o, err := w.options(args, "--is-ancestor -a --all", "")
	if err != nil {
		return err
	}
	if len(o.rest) < 2 {
		return &fatal{"usage: git merge-base [-a | --all] <commit> <commit>...", 129}
	}
	var c [2]*object.Commit
	for i := range c {
		if c[i], err = w.commitOf(o.rest[i]); err != nil {
			return fail("Not a valid object name %s", o.rest[i])
		}
	}
	if o.has("--is-ancestor") {
		if ok, err := w.leads(c[0], c[1]); err != nil || !ok {
			return orStatus(err)
		}
		return nil
	}
	list, err := w.bases(c[0], c[1])
	if err != nil || len(list) == 0 {
		return orStatus(err)
	}
	if !o.has("-a", "--all") {
		list = list[:1]
	}
	for _, b := range list {
		w.printf("%s\n", b.Hash)
	}
	return nil
}

func orStatus(err error) error {
	if err != nil {
		return err
	}
	return status(1)
}

// isHash reports whether a text is an object's whole name.
func isHash(s string) bool {
	_, err := hex.DecodeString(s)
	return len(s) == 40 && err == nil
}

// sortedKeys gives the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
