package git

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
)

// A draft is a commit that is to be made.
type draft struct {
	text              string
	author, committer *object.Signature
	parents           []plumbing.Hash
	base              *object.Commit // what it is compared to when it is told of
	after             side
	note              string // of the reflog, before the subject
	o                 *options
}

// words finds the message of a commit that is not made by a merge.
func (w *work) words(o *options, head *object.Commit) (text string, err error) {
	text, given := o.flags["-m"]
	if m, ok := o.flags["--message"]; ok {
		text, given = m, true
	}
	for _, f := range []string{"-F", "--file"} {
		if name, ok := o.flags[f]; ok {
			b, err := command.ReadAll(w.t, name)
			if err != nil {
				return "", fail("could not read log file '%s': %s", name, message(err))
			}
			text, given = string(b), true
		}
	}
	for _, f := range []string{"-C", "--reuse-message", "-c"} {
		if rev, ok := o.flags[f]; ok {
			c, err := w.commitOf(rev)
			if err != nil {
				return "", fail("could not lookup commit %s", rev)
			}
			text, given = c.Message, true
		}
	}
	for _, f := range []string{"--fixup", "--squash"} {
		if rev, ok := o.flags[f]; ok {
			c, err := w.commitOf(rev)
			if err != nil {
				return "", fail("could not lookup commit %s", rev)
			}
			text, given = f[2:]+"! "+subject(c), true
		}
	}
	if given {
		return text, nil
	}
	if o.has("--amend") {
		return head.Message, nil
	}
	for _, name := range []string{"MERGE_MSG", "SQUASH_MSG"} {
		if m, ok := w.readFile(name); ok {
			var kept []string
			for _, l := range strings.Split(m, "\n") {
				if !strings.HasPrefix(l, "#") {
					kept = append(kept, l)
				}
			}
			return strings.Join(kept, "\n"), nil
		}
	}
	return "", &fatal{"error: there is no editor in this sandbox; please supply the message using either -m or -F option.", 1}
}

// conflicted refuses to go on while files are in conflict.
func (w *work) conflicted(doing string) error {
	files, err := w.unmerged()
	if err != nil || len(files) == 0 {
		return err
	}
	var list []string
	for n := range files {
		list = append(list, n)
	}
	slices.Sort(list)
	if err := w.tell("error: %s is not possible because you have unmerged files.\nhint: Fix them up in the work tree, and then use 'git add/rm <file>'\nhint: as appropriate to mark resolution and make a commit.\nfatal: Exiting because of an unresolved conflict.\n", doing); err != nil {
		return err
	}
	for _, n := range list {
		w.printf("U\t%s\n", n)
	}
	return status(128)
}

func (w *work) commit(args []string) error {
	o, err := w.options(args, "-a --all --amend --allow-empty --allow-empty-message -q --quiet --no-edit -n --no-verify -s --signoff -o --only -i --include -e --edit -v --verbose --no-gpg-sign --reset-author",
		"-m --message -F --file --author --date -C --reuse-message -c --fixup --squash --cleanup")
	if err != nil {
		return err
	}
	if o.has("-a", "--all") {
		if err := w.add([]string{"-u"}); err != nil {
			return err
		}
	}
	if err := w.conflicted("Committing"); err != nil {
		return err
	}
	head := w.head()
	if o.has("--amend") && head == nil {
		return fail("You have nothing to amend.")
	}
	d := draft{o: o, base: head, note: "commit: "}
	paths := append(slices.Clone(o.rest), o.paths...)
	if len(paths) > 0 {
		if err := w.add(paths); err != nil {
			return err
		}
	}
	if d.after, err = w.indexSide(); err != nil {
		return err
	}
	if len(paths) > 0 && !o.has("-i", "--include") {
		if err := w.only(&d, paths); err != nil {
			return err
		}
	}
	if d.text, err = w.words(o, head); err != nil {
		return err
	}
	if d.text = tidy(d.text); d.text == "\n" && !o.has("--allow-empty-message") {
		return &fatal{"Aborting commit due to empty commit message.", 1}
	}
	if err := w.people(&d, head); err != nil {
		return err
	}
	if o.has("-s", "--signoff") {
		sign := "Signed-off-by: " + d.committer.Name + " <" + d.committer.Email + ">\n"
		if !strings.Contains(d.text, sign) {
			d.text += "\n" + sign
		}
	}
	switch {
	case head == nil:
		d.note = "commit (initial): "
	case o.has("--amend"):
		d.note, d.parents, d.base = "commit (amend): ", head.ParentHashes, nil
		if head.NumParents() > 0 {
			if d.base, err = head.Parent(0); err != nil {
				return err
			}
		}
	default:
		d.parents = []plumbing.Hash{head.Hash}
	}
	if m, ok := w.readFile("MERGE_HEAD"); ok && head != nil && !o.has("--amend") {
		d.note = "commit (merge): "
		for l := range strings.SplitSeq(m, "\n") {
			d.parents = append(d.parents, plumbing.NewHash(l))
		}
	}
	return w.record(&d)
}

// only leaves of what would be committed what paths are.
func (w *work) only(d *draft, paths []string) error {
	list, err := w.relatives(paths)
	if err != nil {
		return err
	}
	before, err := w.commitSide(d.base)
	if err != nil {
		return err
	}
	for _, c := range changes(before, d.after, nil) {
		switch {
		case within(c.name, list):
		case c.from == nil:
			delete(d.after.files, c.name)
		default:
			d.after.files[c.name] = *c.from
		}
	}
	return nil
}

// people finds who wrote and who commits.
func (w *work) people(d *draft, head *object.Commit) (err error) {
	if d.author, err = w.signature("AUTHOR"); err != nil {
		return err
	}
	if d.committer, err = w.signature("COMMITTER"); err != nil {
		return err
	}
	o := d.o
	if o.has("--amend") && !o.has("--reset-author") {
		copied := head.Author
		d.author = &copied
	}
	for _, name := range []string{"CHERRY_PICK_HEAD", "REBASE_HEAD"} {
		if h, ok := w.readFile(name); ok {
			if c, err := w.commitOf(h); err == nil {
				d.author = &c.Author
			}
		}
	}
	for _, f := range []string{"-C", "--reuse-message", "-c"} {
		if rev, ok := o.flags[f]; ok {
			c, err := w.commitOf(rev)
			if err != nil {
				return err
			}
			d.author = &c.Author
		}
	}
	if a, ok := o.flags["--author"]; ok {
		name, rest, ok := strings.Cut(a, " <")
		if !ok || !strings.HasSuffix(rest, ">") {
			return fail("--author '%s' is not 'Name <email>' and matches no existing author", a)
		}
		d.author.Name, d.author.Email = name, strings.TrimSuffix(rest, ">")
	}
	if v, ok := o.flags["--date"]; ok {
		if d.author.When, err = date(v); err != nil {
			return fail("invalid date format: %s", v)
		}
	}
	return nil
}

// record makes the commit and tells of it.
func (w *work) record(d *draft) error {
	o := d.o
	before, err := w.commitSide(d.base)
	if err != nil {
		return err
	}
	list := changes(before, d.after, nil)
	if len(list) == 0 && !o.has("--allow-empty", "--amend") && len(d.parents) < 2 {
		s, err := w.state(nil)
		if err != nil {
			return err
		}
		w.long(s)
		return status(1)
	}
	_, branched := w.branchName()
	first, _, _ := strings.Cut(d.text, "\n")
	h, err := w.write(d, d.note+first)
	if err != nil {
		return err
	}
	w.removeFiles("MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "SQUASH_MSG", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD")
	if o.has("-q", "--quiet") {
		return nil
	}
	name, _ := w.branchName()
	if !branched {
		name = "detached HEAD"
	}
	if len(d.parents) == 0 {
		name += " (root-commit)"
	}
	w.printf("[%s %s] %s\n", name, short(h), first)
	a, c := d.author, d.committer
	if a.Email != c.Email || a.Name != c.Name {
		w.printf(" Author: %s <%s>\n", a.Name, a.Email)
	}
	if o.has("--amend", "--date", "-C", "-c", "--reuse-message") || d.note == "cherry-pick: " {
		w.printf(" Date: %s\n", a.When.Format(dateFormat))
	}
	if len(d.parents) > 1 {
		return nil
	}
	return w.summarise(before, d.after, list, false)
}

// summarise prints how many lines a commit changes, with the statistic of
// each file if that is wanted, and which files come and go.
func (w *work) summarise(before, after side, list []change, each bool) error {
	list, err := w.renamed(before, after, list)
	if err != nil {
		return err
	}
	counts, err := w.counts(before, after, list)
	if err != nil || len(counts) == 0 {
		return err
	}
	if each {
		w.statistic(counts)
	} else {
		w.printf("%s\n", summary(counts))
	}
	w.comings(list)
	return nil
}

// comings prints which files come, go, and change their kind.
func (w *work) comings(list []change) {
	for _, c := range list {
		switch {
		case c.old != "":
			w.printf(" rename %s (%d%%)\n", arrow(c.old, c.name), c.score)
			if c.from.mode != c.to.mode {
				w.printf(" mode change %06o => %06o\n", uint32(c.from.mode), uint32(c.to.mode))
			}
		case c.from == nil:
			w.printf(" create mode %06o %s\n", uint32(c.to.mode), quoted(c.name))
		case c.to == nil:
			w.printf(" delete mode %06o %s\n", uint32(c.from.mode), quoted(c.name))
		case c.from.mode != c.to.mode:
			w.printf(" mode change %06o => %06o %s\n", uint32(c.from.mode), uint32(c.to.mode), quoted(c.name))
		}
	}
}

// write stores the trees and the commit, and moves the branch.
func (w *work) write(d *draft, note string) (plumbing.Hash, error) {
	h, err := w.object(d)
	if err != nil {
		return h, err
	}
	return h, w.moveHead(h, note)
}

// object stores the trees and the commit.
func (w *work) object(d *draft) (plumbing.Hash, error) {
	root, err := w.writeTree(d.after.files, "")
	if err != nil {
		return root, err
	}
	c := &object.Commit{Author: *d.author, Committer: *d.committer, Message: d.text, TreeHash: root, ParentHashes: d.parents}
	x := w.repo.Storer.NewEncodedObject()
	if err := c.Encode(x); err != nil {
		return plumbing.ZeroHash, err
	}
	return w.repo.Storer.SetEncodedObject(x)
}

// writeTree stores the directory of files whose names begin with prefix.
func (w *work) writeTree(files map[string]item, prefix string) (plumbing.Hash, error) {
	if strings.Count(prefix, "/") > 200 {
		return plumbing.ZeroHash, fail("directories are too deep")
	}
	t := &object.Tree{}
	dirs := map[string]map[string]item{}
	for name, i := range files {
		w.t.Step(1)
		rest := name[len(prefix):]
		if dir, _, ok := strings.Cut(rest, "/"); ok {
			if dirs[dir] == nil {
				dirs[dir] = map[string]item{}
			}
			dirs[dir][name] = i
		} else {
			t.Entries = append(t.Entries, object.TreeEntry{Name: rest, Mode: i.mode, Hash: i.hash})
		}
	}
	for dir, inside := range dirs {
		h, err := w.writeTree(inside, prefix+dir+"/")
		if err != nil {
			return h, err
		}
		t.Entries = append(t.Entries, object.TreeEntry{Name: dir, Mode: filemode.Dir, Hash: h})
	}
	slices.SortFunc(t.Entries, func(a, b object.TreeEntry) int {
		key := func(e object.TreeEntry) string {
			if e.Mode == filemode.Dir {
				return e.Name + "/"
			}
			return e.Name
		}
		return strings.Compare(key(a), key(b))
	})
	x := w.repo.Storer.NewEncodedObject()
	if err := t.Encode(x); err != nil {
		return plumbing.ZeroHash, err
	}
	return w.repo.Storer.SetEncodedObject(x)
}
