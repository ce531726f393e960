package git

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/object"
)

// between counts the commits of b that a has not.
func (w *work) between(a, b *object.Commit) int {
	n := 0
	_ = w.walk([]*object.Commit{b}, []*object.Commit{a}, func(*object.Commit) (bool, error) { n++; return true, nil }) // what cannot be read is not counted
	return n
}

func plural(n int) string {
	if n == 1 {
		return "1 commit"
	}
	return sprintf("%d commits", n)
}

// following tells how a branch stands to its upstream.
func (w *work) following(name string) {
	_, up, ok := w.upstream(name)
	if !ok || w.head() == nil {
		return
	}
	ahead, behind, known := w.apart(name)
	switch {
	case !known:
		w.printf("Your branch is based on '%s', but the upstream is gone.\n  (use \"git branch --unset-upstream\" to fixup)\n", up)
	case ahead > 0 && behind > 0:
		w.printf("Your branch and '%s' have diverged,\nand have %d and %d different commits each, respectively.\n  (use \"git pull\" to merge the remote branch into yours)\n", up, ahead, behind)
	case ahead > 0:
		w.printf("Your branch is ahead of '%s' by %s.\n  (use \"git push\" to publish your local commits)\n", up, plural(ahead))
	case behind > 0:
		w.printf("Your branch is behind '%s' by %s, and can be fast-forwarded.\n  (use \"git pull\" to update your local branch)\n", up, plural(behind))
	default:
		w.printf("Your branch is up to date with '%s'.\n", up)
	}
}

// doing tells what is going on: a merge, a rebase.
func (w *work) doing(s *state) {
	merging := func(name string) bool { _, ok := w.readFile(name); return ok }
	open := len(s.unmerged) > 0
	switch {
	case merging("rebase-merge/head-name"):
		w.rebasing(open)
	case merging("MERGE_HEAD") && open:
		w.printf("You have unmerged paths.\n  (fix conflicts and run \"git commit\")\n  (use \"git merge --abort\" to abort the merge)\n\n")
	case merging("MERGE_HEAD"):
		w.printf("All conflicts fixed but you are still merging.\n  (use \"git commit\" to conclude merge)\n\n")
	default:
		for _, x := range [][3]string{{"CHERRY_PICK_HEAD", "cherry-pick", "cherry-picking"}, {"REVERT_HEAD", "revert", "reverting"}} {
			h, ok := w.readFile(x[0])
			if !ok {
				continue
			}
			w.printf("You are currently %s commit %s.\n", x[2], h[:min(7, len(h))])
			if open {
				w.printf("  (fix conflicts and run \"git %s --continue\")\n", x[1])
			} else {
				w.printf("  (all conflicts fixed: run \"git %s --continue\")\n", x[1])
			}
			w.printf("  (use \"git %s --skip\" to skip this patch)\n  (use \"git %s --abort\" to cancel the %s operation)\n\n", x[1], x[1], x[1])
		}
	}
}

func (w *work) rebasing(open bool) {
	ref, _ := w.readFile("rebase-merge/head-name")
	onto, _ := w.readFile("rebase-merge/onto")
	name, to := strings.TrimPrefix(ref, "refs/heads/"), onto[:min(7, len(onto))]
	if h, ok := w.readFile("rebase-merge/stopped-sha"); ok {
		if c, err := w.commitOf(h); err == nil {
			w.printf("Last command done (1 command done):\n   pick %s %s\n", short(c.Hash), subject(c))
		}
	}
	if todo, ok := w.readFile("rebase-merge/git-rebase-todo"); !ok || todo == "" {
		w.printf("No commands remaining.\n")
	} else {
		list := strings.Split(todo, "\n")
		if len(list) == 1 {
			w.printf("Next command to do (1 remaining command):\n")
		} else {
			w.printf("Next commands to do (%d remaining commands):\n", len(list))
		}
		for _, l := range list[:min(2, len(list))] {
			if f := strings.SplitN(l, " ", 3); len(f) == 3 && len(f[1]) > 7 {
				w.printf("   %s %s %s\n", f[0], f[1][:7], f[2])
			}
		}
		w.printf("  (use \"git rebase --edit-todo\" to view and edit)\n")
	}
	w.printf("You are currently rebasing branch '%s' on '%s'.\n", name, to)
	if open {
		w.printf("  (fix conflicts and then run \"git rebase --continue\")\n  (use \"git rebase --skip\" to skip this patch)\n  (use \"git rebase --abort\" to check out the original branch)\n\n")
	} else {
		w.printf("  (all conflicts fixed: run \"git rebase --continue\")\n\n")
	}
}

func (w *work) long(s *state) { w.longOf(s, false) }

func (w *work) longOf(s *state, hidden bool) {
	fresh := w.head() == nil
	if name, ok := w.branchName(); ok {
		w.printf("On branch %s\n", name)
		if _, _, ok := w.upstream(name); ok && !fresh {
			w.following(name)
			w.printf("\n")
		}
	} else if h := w.head(); h != nil {
		w.detached(h)
	}
	w.doing(s)
	if fresh {
		w.printf("\nNo commits yet\n\n")
	}
	_, merging := w.readFile("MERGE_HEAD")
	_, picking := w.readFile("CHERRY_PICK_HEAD")
	between := merging || picking
	word := func(c change) string {
		switch letter(c) {
		case 'A':
			return "new file:   "
		case 'D':
			return "deleted:    "
		case 'T':
			return "typechange: "
		case 'R':
			return "renamed:    " + quoted(c.old) + " -> "
		}
		return "modified:   "
	}
	if len(s.staged) > 0 {
		w.printf("Changes to be committed:\n")
		switch {
		case between:
		case fresh:
			w.printf("  (use \"git rm --cached <file>...\" to unstage)\n")
		default:
			w.printf("  (use \"git restore --staged <file>...\" to unstage)\n")
		}
		for _, c := range s.staged {
			w.printf("\t%s%s\n", word(c), quoted(c.name))
		}
		w.printf("\n")
	}
	w.openPaths(s, between)
	if len(s.unstaged) > 0 {
		w.printf("Changes not staged for commit:\n")
		if slices.ContainsFunc(s.unstaged, func(c change) bool { return c.to == nil }) {
			w.printf("  (use \"git add/rm <file>...\" to update what will be committed)\n")
		} else {
			w.printf("  (use \"git add <file>...\" to update what will be committed)\n")
		}
		w.printf("  (use \"git restore <file>...\" to discard changes in working directory)\n")
		for _, c := range s.unstaged {
			w.printf("\t%s%s\n", word(c), quoted(c.name))
		}
		w.printf("\n")
	}
	if len(s.untracked) > 0 {
		w.printf("Untracked files:\n  (use \"git add <file>...\" to include in what will be committed)\n")
		for _, name := range s.untracked {
			w.printf("\t%s\n", quoted(name))
		}
		w.printf("\n")
	} else if hidden && len(s.staged) > 0 {
		w.printf("Untracked files not listed (use -u option to show untracked files)\n")
	}
	switch {
	case len(s.staged) > 0:
	case len(s.unstaged) > 0 || len(s.unmerged) > 0:
		w.printf("no changes added to commit (use \"git add\" and/or \"git commit -a\")\n")
	case len(s.untracked) > 0:
		w.printf("nothing added to commit but untracked files present (use \"git add\" to track)\n")
	case fresh:
		w.printf("nothing to commit (create/copy files and use \"git add\" to track)\n")
	case hidden:
		w.printf("nothing to commit (use -u to show untracked files)\n")
	default:
		w.printf("nothing to commit, working tree clean\n")
	}
}

// detached tells where HEAD was detached.
func (w *work) detached(h *object.Commit) {
	if onto, ok := w.readFile("rebase-merge/onto"); ok {
		w.printf("interactive rebase in progress; onto %s\n", onto[:min(7, len(onto))])
		return
	}
	for _, e := range w.entries("HEAD") {
		rest, ok := strings.CutPrefix(e.text, "checkout: moving from ")
		if !ok {
			continue
		}
		_, to, ok := strings.Cut(rest, " to ")
		if !ok {
			break
		}
		name := to
		if isHash(to) {
			name = to[:7]
		} else if r, ok := w.refName(to); !ok || strings.HasPrefix(string(r.Name()), "refs/heads/") || to == "HEAD" {
			name = short(e.new)
		}
		word := "at"
		if e.new != h.Hash {
			word = "from"
		}
		w.printf("HEAD detached %s %s\n", word, name)
		return
	}
	w.printf("HEAD detached at %s\n", short(h.Hash))
}

// openPaths lists what is in conflict.
func (w *work) openPaths(s *state, between bool) {
	if len(s.unmerged) == 0 {
		return
	}
	w.printf("Unmerged paths:\n")
	if !between {
		w.printf("  (use \"git restore --staged <file>...\" to unstage)\n")
	}
	gone, kept := false, false
	for _, l := range s.unmerged {
		if strings.Contains(l, "D") {
			gone = true
		} else {
			kept = true
		}
	}
	if gone {
		w.printf("  (use \"git add/rm <file>...\" as appropriate to mark resolution)\n")
	} else if kept {
		w.printf("  (use \"git add <file>...\" to mark resolution)\n")
	}
	words := map[string]string{"UU": "both modified:   ", "AA": "both added:      ", "DU": "deleted by us:   ", "UD": "deleted by them: ", "DD": "both deleted:    ", "AU": "added by us:     ", "UA": "added by them:   "}
	for _, n := range sortedKeys(s.unmerged) {
		w.printf("\t%s%s\n", words[s.unmerged[n]], quoted(n))
	}
	w.printf("\n")
}
