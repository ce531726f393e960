package git

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// A sequence is a list of commits that are done again, one by one.
type sequence struct {
	w        *work
	kind     string // cherry-pick, revert, rebase
	o        *options
	todo     []*object.Commit
	mainline int
	total    int // of a rebase: how many there were
	quiet    bool
}

// list is the file in which a sequence is kept while it waits for help.
func (s *sequence) list() string {
	if s.kind == "rebase" {
		return "rebase-merge/git-rebase-todo"
	}
	return "sequencer/todo"
}

// going tells which sequence waits.
func (w *work) going() string {
	if _, ok := w.readFile("rebase-merge/head-name"); ok {
		return "rebase"
	}
	for _, x := range [][2]string{{"CHERRY_PICK_HEAD", "cherry-pick"}, {"REVERT_HEAD", "revert"}} {
		if _, ok := w.readFile(x[0]); ok {
			return x[1]
		}
	}
	if t, ok := w.readFile("sequencer/todo"); ok {
		if strings.HasPrefix(t, "revert") {
			return "revert"
		}
		return "cherry-pick"
	}
	return ""
}

// save keeps what is still to be done.
func (s *sequence) save(rest []*object.Commit) error {
	var b strings.Builder
	verb := "pick"
	if s.kind == "revert" {
		verb = "revert"
	}
	for _, c := range rest {
		b.WriteString(verb + " " + c.Hash.String() + " " + subject(c) + "\n")
	}
	return s.w.writeFile(s.list(), b.String())
}

func (s *sequence) load() error {
	text, ok := s.w.readFile(s.list())
	if !ok || text == "" {
		return nil
	}
	for l := range strings.SplitSeq(text, "\n") {
		f := strings.Fields(l)
		if len(f) < 2 {
			continue
		}
		c, err := s.w.commitOf(f[1])
		if err != nil {
			return err
		}
		s.todo = append(s.todo, c)
	}
	return nil
}

// picked gives the commits that words name; a range is taken from its oldest.
func (w *work) picked(words []string, reverse bool) ([]*object.Commit, error) {
	var out []*object.Commit
	for _, rev := range words {
		from, to, ranged := strings.Cut(rev, "..")
		if !ranged {
			c, err := w.commitOf(rev)
			if err != nil {
				return nil, fail("bad revision '%s'", rev)
			}
			out = append(out, c)
			continue
		}
		a, err := w.commitOf(from)
		if err != nil {
			return nil, fail("bad revision '%s'", rev)
		}
		b, err := w.commitOf(strings.TrimPrefix(to, "."))
		if err != nil {
			return nil, fail("bad revision '%s'", rev)
		}
		var list []*object.Commit
		if err := w.walk([]*object.Commit{b}, []*object.Commit{a}, func(c *object.Commit) (bool, error) { list = append(list, c); return true, nil }); err != nil {
			return nil, err
		}
		if !reverse {
			slices.Reverse(list)
		}
		out = append(out, list...)
	}
	if len(out) == 0 {
		return nil, wrong("empty commit set passed")
	}
	return out, nil
}

func (w *work) cherryPick(args []string) error { return w.sequence("cherry-pick", args) }

func (w *work) revert(args []string) error { return w.sequence("revert", args) }

func (w *work) sequence(kind string, args []string) error {
	o, err := w.options(args, "--abort --continue --skip --quit -n --no-commit -x -e --edit --no-edit -s --signoff --allow-empty --keep-redundant-commits --ff --no-gpg-sign", "-m --mainline --strategy -X")
	if err != nil {
		return err
	}
	s := &sequence{w: w, kind: kind, o: o}
	if v := o.flags["-m"] + o.flags["--mainline"]; v != "" {
		if s.mainline, err = strconv.Atoi(v); err != nil || s.mainline < 1 {
			return &fatal{"error: option `mainline' expects a number greater than zero", 129}
		}
	}
	if o.has("--abort", "--continue", "--skip", "--quit") {
		return s.resume()
	}
	if len(o.rest) == 0 {
		return &fatal{"usage: git " + kind + " [--edit] [-n] [-m <parent-number>] [-s] [-x] [--ff]\n                       <commit>...", 129}
	}
	if s.todo, err = w.picked(o.rest, kind == "revert"); err != nil {
		return err
	}
	head := w.head()
	if head == nil {
		return fail("cannot %s on an unborn branch", kind)
	}
	if files, err := w.unmerged(); err != nil {
		return err
	} else if len(files) > 0 {
		what := map[string]string{"cherry-pick": "Cherry-picking", "revert": "Reverting"}[kind]
		return &fatal{"error: " + what + " is not possible because you have unmerged files.\nhint: Fix them up in the work tree, and then use 'git add/rm <file>'\nhint: as appropriate to mark resolution and make a commit.\nfatal: " + kind + " failed", 128}
	}
	if err := w.begun(kind); err != nil {
		return err
	}
	if len(s.todo) > 1 {
		if err := w.keep("sequencer/head", head.Hash); err != nil {
			return err
		}
	}
	return s.run()
}

// begun refuses to begin where the index differs from HEAD.
func (w *work) begun(kind string) error {
	before, err := w.commitSide(w.head())
	if err != nil {
		return err
	}
	idx, err := w.indexSide()
	if err != nil {
		return err
	}
	if len(changes(before, idx, nil)) > 0 {
		return &fatal{"error: your local changes would be overwritten by " + kind + ".\nhint: commit your changes or stash them to proceed.\nfatal: " + kind + " failed", 128}
	}
	return nil
}

// resume goes on with what waits, or gives it up.
func (s *sequence) resume() error {
	w := s.w
	if w.going() != s.kind {
		return &fatal{"error: no cherry-pick or revert in progress\nfatal: " + s.kind + " failed", 128}
	}
	switch {
	case s.o.has("--quit"):
		w.removeFiles("CHERRY_PICK_HEAD", "REVERT_HEAD", "sequencer")
		return nil
	case s.o.has("--abort"):
		rev := "HEAD"
		if h, ok := w.readFile("sequencer/head"); ok {
			rev = h
		}
		w.removeFiles("sequencer")
		return w.abandon(rev, "reset: moving to "+rev)
	case s.o.has("--skip"):
		if err := w.abandon("HEAD", "reset: moving to HEAD"); err != nil {
			return err
		}
	default:
		if err := w.conflicted("Committing"); err != nil {
			return err
		}
		if _, ok := w.readFile("MERGE_MSG"); ok {
			if err := w.commit([]string{"--no-edit"}); err != nil {
				return err
			}
		}
	}
	if err := s.load(); err != nil {
		return err
	}
	return s.run()
}

func (s *sequence) run() error {
	for i, c := range s.todo {
		if s.kind == "rebase" {
			if err := s.save(s.todo[i+1:]); err != nil {
				return err
			}
			if !s.quiet {
				if err := s.w.tell("Rebasing (%d/%d)\r", s.total-len(s.todo)+i+1, s.total); err != nil {
					return err
				}
			}
		} else if len(s.todo) > 1 {
			if err := s.save(s.todo[i+1:]); err != nil {
				return err
			}
		}
		if err := s.one(c); err != nil {
			return err
		}
	}
	if s.kind != "rebase" {
		s.w.removeFiles("sequencer")
	}
	return nil
}

// one does a commit again, or undoes it.
func (s *sequence) one(c *object.Commit) error {
	w := s.w
	var parent *object.Commit
	n := 1
	switch {
	case c.NumParents() > 1 && s.mainline == 0:
		return &fatal{"error: commit " + c.Hash.String() + " is a merge but no -m option was given.\nfatal: " + s.kind + " failed", 128}
	case s.mainline > 0:
		n = s.mainline
	}
	if len(c.ParentHashes) >= n {
		var err error
		if parent, err = c.Parent(n - 1); err != nil {
			return err
		}
	}
	m := &merger{w: w, us: "HEAD", them: short(c.Hash) + " (" + subject(c) + ")"}
	var err error
	if m.base, err = w.commitSide(parent); err != nil {
		return err
	}
	if m.theirs, err = w.commitSide(c); err != nil {
		return err
	}
	text := c.Message
	if s.kind == "revert" {
		m.base, m.theirs = m.theirs, m.base
		m.them = "parent of " + m.them
		if parent == nil {
			m.them = "(empty tree)"
		}
		text = "Revert \"" + subject(c) + "\"\n\nThis reverts commit " + c.Hash.String() + ".\n"
		if s.mainline > 0 {
			text = "Revert \"" + subject(c) + "\"\n\nThis reverts commit " + c.Hash.String() + ", reversing\nchanges made to " + parent.Hash.String() + ".\n"
		}
	}
	if s.o.has("-x") {
		text = tidy(text) + "\n(cherry picked from commit " + c.Hash.String() + ")\n"
	}
	head := w.head()
	before, err := w.commitSide(head)
	if err != nil {
		return err
	}
	if s.o.has("-n", "--no-commit") {
		if before, err = w.indexSide(); err != nil {
			return err
		}
	}
	m.ours = before
	if err := m.run(); err != nil {
		return err
	}
	if err := m.install(before, "merge"); err != nil {
		var f *fatal
		if asFatal(err, &f) {
			return &fatal{f.text + "\nfatal: " + s.kind + " failed", 128}
		}
		return err
	}
	for _, l := range m.said {
		w.printf("%s\n", l)
	}
	if len(m.conflicts) > 0 {
		return s.stop(c, text+conflictWords(m))
	}
	if s.o.has("-n", "--no-commit") {
		return nil
	}
	return s.commit(c, text, before, m.result)
}

// stop leaves a conflict to whoever resolves it.
func (s *sequence) stop(c *object.Commit, text string) error {
	w := s.w
	if err := w.writeFile("MERGE_MSG", text); err != nil {
		return err
	}
	name := map[string]string{"revert": "REVERT_HEAD"}[s.kind]
	if name == "" {
		name = "CHERRY_PICK_HEAD"
	}
	if s.kind == "rebase" {
		name = "REBASE_HEAD"
	}
	if err := w.keep(name, c.Hash); err != nil {
		return err
	}
	verb := "apply"
	if s.kind == "revert" {
		verb = "revert"
	}
	what := sprintf("%s... %s", short(c.Hash), subject(c))
	if s.kind == "rebase" {
		if err := w.keep("rebase-merge/stopped-sha", c.Hash); err != nil {
			return err
		}
		return &fatal{"error: could not apply " + what + "\nhint: Resolve all conflicts manually, mark them as resolved with\nhint: \"git add/rm <conflicted_files>\", then run \"git rebase --continue\".\nhint: You can instead skip this commit: run \"git rebase --skip\".\nhint: To abort and get back to the state before \"git rebase\", run \"git rebase --abort\".\nCould not apply " + what, 1}
	}
	return &fatal{"error: could not " + verb + " " + what + "\nhint: After resolving the conflicts, mark them with\nhint: \"git add/rm <pathspec>\", then run\nhint: \"git " + s.kind + " --continue\".\nhint: You can instead skip this commit with \"git " + s.kind + " --skip\".\nhint: To abort and get back to the state before \"git " + s.kind + "\",\nhint: run \"git " + s.kind + " --abort\".", 1}
}

// commit records what a commit became.
func (s *sequence) commit(c *object.Commit, text string, before, after side) error {
	w := s.w
	head := w.head()
	if len(changes(before, after, nil)) == 0 && c.NumParents() > 0 && !s.o.has("--allow-empty", "--keep-redundant-commits") {
		if s.kind == "rebase" {
			return w.tell("dropping %s %s -- patch contents already upstream\n", c.Hash, subject(c))
		}
		return s.empty(c, text)
	}
	author := c.Author
	committer, err := w.signature("COMMITTER")
	if err != nil {
		return err
	}
	note := s.kind + ": "
	d := &draft{text: tidy(text), author: &author, committer: committer, parents: []plumbing.Hash{head.Hash}, base: head, after: after, note: note, o: &options{flags: map[string]string{"--allow-empty": ""}}}
	switch s.kind {
	case "revert":
		if d.author, err = w.signature("AUTHOR"); err != nil {
			return err
		}
	case "rebase":
		d.note = "rebase (pick): "
		d.o.flags["-q"] = ""
	}
	if s.o.has("-s", "--signoff") {
		d.text += "\nSigned-off-by: " + committer.Name + " <" + committer.Email + ">\n"
	}
	return w.record(d)
}

// empty says that a commit changes nothing any more.
func (s *sequence) empty(c *object.Commit, text string) error {
	w := s.w
	if s.kind == "revert" {
		st, err := w.state(nil)
		if err != nil {
			return err
		}
		w.long(st)
		return status(1)
	}
	if err := w.keep("CHERRY_PICK_HEAD", c.Hash); err != nil {
		return err
	}
	if err := w.writeFile("MERGE_MSG", text); err != nil {
		return err
	}
	if err := w.tell("The previous cherry-pick is now empty, possibly due to conflict resolution.\nIf you wish to commit it anyway, use:\n\n    git commit --allow-empty\n\nOtherwise, please use 'git cherry-pick --skip'\n"); err != nil {
		return err
	}
	st, err := w.state(nil)
	if err != nil {
		return err
	}
	w.long(st)
	return status(1)
}
