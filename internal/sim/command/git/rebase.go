package git

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

func (w *work) rebase(args []string) error {
	o, err := w.options(args, "--abort --continue --skip --quit -q --quiet -f --force-rebase --no-ff --keep-empty --autostash --no-autostash -i --interactive --root -r --rebase-merges --autosquash -v --no-verify", "--onto -s -X --strategy --exec -x")
	if err != nil {
		return err
	}
	if o.has("-i", "--interactive") {
		return fail("rebase -i is not supported in this sandbox: there is no editor")
	}
	if o.has("--root", "-r", "--rebase-merges", "--exec", "-x", "--autosquash", "--autostash") {
		return fail("this way of rebase is not supported in this sandbox: only git rebase [--onto <newbase>] [<upstream> [<branch>]]")
	}
	s := &sequence{w: w, kind: "rebase", o: &options{flags: map[string]string{}}}
	if o.has("--abort", "--continue", "--skip", "--quit") {
		return w.resumeRebase(s, o)
	}
	if w.going() == "rebase" {
		return fail("It seems that there is already a rebase-merge directory, and\nI wonder if you are in the middle of another rebase.  If that is the\ncase, please try\n\tgit rebase (--continue | --abort | --skip)\nIf that is not the case, please\n\trm -fr \"%s\"\nand run me again.  I am stopping in case you still have something\nvaluable there.\n", w.file("rebase-merge"))
	}
	if len(o.rest) > 1 {
		if err := w.checkout([]string{"-q", o.rest[1]}); err != nil {
			return err
		}
	}
	up := ""
	current, attached := w.branchName()
	if len(o.rest) > 0 {
		up = o.rest[0]
	} else if _, name, ok := w.upstream(current); ok {
		up = name
	} else {
		return &fatal{"There is no tracking information for the current branch.\nPlease specify which branch you want to rebase against.\nSee git-rebase(1) for details.\n\n    git rebase '<branch>'\n\nIf you wish to set tracking information for this branch you can do so with:\n\n    git branch --set-upstream-to=<remote>/<branch> " + current + "\n", 1}
	}
	if up == "-" {
		up = "@{-1}"
	}
	upstream, err := w.commitOf(up)
	if err != nil {
		return fail("invalid upstream '%s'", up)
	}
	onto, name := upstream, up
	if v, ok := o.flags["--onto"]; ok {
		if onto, err = w.commitOf(v); err != nil {
			return fail("Does not point to a valid commit '%s'", v)
		}
		name = v
	}
	if err := w.settled(); err != nil {
		return err
	}
	return w.startRebase(s, upstream, onto, name, current, attached, o)
}

// settled refuses to rebase what is not committed.
func (w *work) settled() error {
	before, err := w.commitSide(w.head())
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
	staged, unstaged := len(changes(before, idx, nil)) > 0, len(changes(idx, now, nil)) > 0
	switch {
	case unstaged && staged:
		return &fatal{"error: cannot rebase: You have unstaged changes.\nerror: additionally, your index contains uncommitted changes.\nerror: Please commit or stash them.", 1}
	case unstaged:
		return &fatal{"error: cannot rebase: You have unstaged changes.\nerror: Please commit or stash them.", 1}
	case staged:
		return &fatal{"error: cannot rebase: Your index contains uncommitted changes.\nerror: Please commit or stash them.", 1}
	}
	return nil
}

func (w *work) startRebase(s *sequence, upstream, onto *object.Commit, name, current string, attached bool, o *options) error {
	head := w.head()
	if head == nil {
		return fail("You have nothing to rebase")
	}
	base, err := w.base(head, upstream)
	if err != nil {
		return err
	}
	if err := w.walk([]*object.Commit{head}, []*object.Commit{upstream}, func(c *object.Commit) (bool, error) {
		if c.NumParents() < 2 {
			s.todo = append(s.todo, c)
		}
		return true, nil
	}); err != nil {
		return err
	}
	slices.Reverse(s.todo)
	quiet := o.has("-q", "--quiet")
	if base != nil && base.Hash == upstream.Hash && onto.Hash == upstream.Hash && !o.has("-f", "--force-rebase", "--no-ff") {
		if !quiet {
			if attached {
				w.printf("Current branch %s is up to date.\n", current)
			} else {
				w.printf("HEAD is up to date.\n")
			}
		}
		return nil
	}
	ref := "detached HEAD"
	if attached {
		ref = "refs/heads/" + current
	}
	if s.todo, err = w.missing(s.todo, head, upstream, quiet); err != nil {
		return err
	}
	for _, f := range [][2]string{{"head-name", ref + "\n"}, {"onto", onto.Hash.String() + "\n"}, {"orig-head", head.Hash.String() + "\n"}} {
		if err := w.writeFile("rebase-merge/"+f[0], f[1]); err != nil {
			return err
		}
	}
	if err := w.keep("ORIG_HEAD", head.Hash); err != nil {
		return err
	}
	before, err := w.commitSide(head)
	if err != nil {
		return err
	}
	after, err := w.commitSide(onto)
	if err != nil {
		return err
	}
	if err := w.update(before, after, false); err != nil {
		w.removeFiles("rebase-merge")
		return err
	}
	if err := w.detach(onto.Hash, "rebase (start): checkout "+name); err != nil {
		return err
	}
	s.total, s.quiet = len(s.todo), quiet
	if err := w.writeFile("rebase-merge/end", sprintf("%d\n", s.total)); err != nil {
		return err
	}
	if err := s.run(); err != nil {
		return err
	}
	return w.finishRebase(quiet, s.total > 0)
}

// missing leaves out what upstream has already, by what is changed.
func (w *work) missing(todo []*object.Commit, head, upstream *object.Commit, quiet bool) ([]*object.Commit, error) {
	have := map[string]bool{}
	err := w.walk([]*object.Commit{upstream}, []*object.Commit{head}, func(c *object.Commit) (bool, error) {
		if c.NumParents() > 1 {
			return true, nil
		}
		id, err := w.patchID(c)
		have[id] = true
		return true, err
	})
	if err != nil || len(have) == 0 {
		return todo, err
	}
	var out []*object.Commit
	for _, c := range todo {
		id, err := w.patchID(c)
		if err != nil {
			return nil, err
		}
		if !have[id] {
			out = append(out, c)
		} else if !quiet {
			if err := w.tell("warning: skipped previously applied commit %s\n", short(c.Hash)); err != nil {
				return nil, err
			}
		}
	}
	if len(out) < len(todo) && !quiet {
		return out, w.tell("hint: use --reapply-cherry-picks to include skipped commits\nhint: Disable this message with \"git config advice.skippedCherryPicks false\"\n")
	}
	return out, nil
}

// patchID is a text that two commits with the same changes have in common.
func (w *work) patchID(c *object.Commit) (string, error) {
	a, b, err := w.sides(c)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, x := range changes(a, b, nil) {
		from, to, err := both(a, b, x)
		if err != nil {
			return "", err
		}
		out.WriteString(x.name + "\x00")
		for _, l := range w.lines(string(from), string(to)) {
			if l.op != ' ' {
				out.WriteString(string(l.op) + l.text)
			}
		}
	}
	return plumbing.ComputeHash(plumbing.BlobObject, []byte(out.String())).String(), nil
}

// detach points HEAD itself at a commit.
func (w *work) detach(h plumbing.Hash, note string) error {
	old := plumbing.ZeroHash
	if c := w.head(); c != nil {
		old = c.Hash
	}
	if err := w.repo.Storer.SetReference(plumbing.NewHashReference(plumbing.HEAD, h)); err != nil {
		return err
	}
	return w.note("HEAD", old, h, note)
}

func (w *work) finishRebase(quiet, shown bool) error {
	ref, _ := w.readFile("rebase-merge/head-name")
	onto, _ := w.readFile("rebase-merge/onto")
	head := w.head()
	w.removeFiles("rebase-merge", "REBASE_HEAD", "MERGE_MSG")
	if strings.HasPrefix(ref, "refs/") {
		name := plumbing.ReferenceName(ref)
		if err := w.point(name, head.Hash, "rebase (finish): "+ref+" onto "+onto); err != nil {
			return err
		}
		if err := w.repo.Storer.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, name)); err != nil {
			return err
		}
		if err := w.note("HEAD", head.Hash, head.Hash, "rebase (finish): returning to "+ref); err != nil {
			return err
		}
	} else {
		ref = "HEAD"
	}
	if quiet {
		return nil
	}
	if ref == "HEAD" {
		ref = "detached HEAD"
	}
	erase := ""
	if shown {
		erase = "\r\x1b[K" // of the line that counts
		if term := w.t.Getenv("TERM"); term == "" || term == "dumb" {
			erase = "\r" + strings.Repeat(" ", 80) + "\r"
		}
	}
	return w.tell("%sSuccessfully rebased and updated %s.\n", erase, ref)
}

func (w *work) resumeRebase(s *sequence, o *options) error {
	if w.going() != "rebase" {
		return fail("No rebase in progress?")
	}
	switch {
	case o.has("--quit"):
		w.removeFiles("rebase-merge")
		return nil
	case o.has("--abort"):
		ref, _ := w.readFile("rebase-merge/head-name")
		orig, _ := w.readFile("rebase-merge/orig-head")
		note := "rebase (abort): returning to " + ref
		if err := w.abandon(orig, note); err != nil {
			return err
		}
		w.removeFiles("rebase-merge")
		if strings.HasPrefix(ref, "refs/") {
			return w.repo.Storer.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, plumbing.ReferenceName(ref)))
		}
		return nil
	case o.has("--skip"):
		if err := w.abandon("HEAD", "reset: moving to HEAD"); err != nil {
			return err
		}
	default:
		if files, err := w.unmerged(); err != nil {
			return err
		} else if len(files) > 0 {
			for _, n := range sortedKeys(files) {
				w.printf("%s: needs merge\n", n)
			}
			w.printf("You must edit all merge conflicts and then\nmark them as resolved using git add\n")
			return status(1)
		}
		if text, ok := w.readFile("MERGE_MSG"); ok {
			if err := w.stepRebase(text); err != nil {
				return err
			}
		}
	}
	if err := s.load(); err != nil {
		return err
	}
	s.total, s.quiet = len(s.todo), o.has("-q", "--quiet")
	if v, ok := w.readFile("rebase-merge/end"); ok {
		if n, err := strconv.Atoi(v); err == nil && n >= len(s.todo) {
			s.total = n
		}
	}
	if err := s.run(); err != nil {
		return err
	}
	return w.finishRebase(s.quiet, true)
}

// stepRebase commits what was resolved.
func (w *work) stepRebase(string) error {
	head := w.head()
	before, err := w.commitSide(head)
	if err != nil {
		return err
	}
	idx, err := w.indexSide()
	if err != nil {
		return err
	}
	if len(changes(before, idx, nil)) == 0 {
		w.removeFiles("MERGE_MSG", "REBASE_HEAD")
		return nil
	}
	d := draft{o: &options{flags: map[string]string{"--no-edit": ""}}, base: head, note: "rebase (continue): ", after: idx, parents: []plumbing.Hash{head.Hash}}
	if d.text, err = w.words(d.o, head); err != nil {
		return err
	}
	d.text = tidy(d.text)
	if err := w.people(&d, head); err != nil {
		return err
	}
	return w.record(&d)
}
