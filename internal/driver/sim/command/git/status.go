package git

import (
	"slices"
	"strings"

	lib "github.com/go-git/go-git/v5"
)

// A state is what status tells.
type state struct {
	staged, unstaged []change
	untracked        []string // a directory without known files ends in "/"
}

func (w *work) state(paths []string) (*state, error) {
	head, err := w.commitSide(w.head())
	if err != nil {
		return nil, err
	}
	idx, err := w.indexSide()
	if err != nil {
		return nil, err
	}
	now, err := w.workSide()
	if err != nil {
		return nil, err
	}
	s := &state{staged: changes(head, idx, paths), unstaged: changes(idx, now, paths)}
	all, err := w.wt.StatusWithOptions(lib.StatusOptions{Strategy: lib.Empty})
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for name := range idx.files {
		for i, c := range name {
			if c == '/' {
				known[name[:i+1]] = true
			}
		}
	}
	seen := map[string]bool{}
	for name, f := range all {
		if f.Worktree != lib.Untracked || !within(name, paths) {
			continue
		}
		for i, c := range name {
			if c == '/' && !known[name[:i+1]] {
				name = name[:i+1]
				break
			}
		}
		if _, tracked := idx.files[name]; !tracked && !seen[name] {
			seen[name] = true
			s.untracked = append(s.untracked, name)
		}
	}
	slices.Sort(s.untracked)
	return s, nil
}

func letter(c change) byte {
	switch {
	case c.from == nil:
		return 'A'
	case c.to == nil:
		return 'D'
	case c.from.mode&0o170000 != c.to.mode&0o170000:
		return 'T'
	}
	return 'M'
}

func (w *work) status(args []string) error {
	short, branch, end := false, false, "\n"
	var paths []string
	for _, a := range args {
		switch a {
		case "-s", "--short", "--porcelain", "--porcelain=v1":
			short = true
		case "-b", "--branch":
			branch = true
		case "-sb", "-bs":
			short, branch = true, true
		case "-z":
			short, end = true, "\x00"
		case "--long", "-uno", "--untracked-files=normal", "-unormal", "--":
		default:
			if strings.HasPrefix(a, "-") {
				return &fatal{"error: unknown option `" + strings.TrimLeft(a, "-") + "'", 129}
			}
			p, err := w.relative(a)
			if err != nil {
				return err
			}
			paths = append(paths, p)
		}
	}
	s, err := w.state(paths)
	if err != nil {
		return err
	}
	if slices.Contains(args, "-uno") {
		s.untracked = nil
	}
	if short {
		if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--porcelain") || a == "-z" }) {
			w.local(s)
		}
		w.short(s, branch, end)
		return nil
	}
	w.local(s)
	w.long(s)
	return nil
}

// local names files from the working directory on.
func (w *work) local(s *state) {
	cwd, err := w.t.View.Getwd()
	if err != nil || cwd == w.dir {
		return
	}
	at := strings.TrimPrefix(cwd, strings.TrimSuffix(w.dir, "/")+"/")
	name := func(n string) string {
		up, base := "", at+"/"
		for !strings.HasPrefix(n, base) {
			up += "../"
			i := strings.LastIndexByte(base[:len(base)-1], '/')
			base = base[:i+1]
		}
		return up + n[len(base):]
	}
	for _, list := range [][]change{s.staged, s.unstaged} {
		for i := range list {
			list[i].name = name(list[i].name)
		}
	}
	for i := range s.untracked {
		if s.untracked[i] = name(s.untracked[i]); s.untracked[i] == "" {
			s.untracked[i] = "./"
		}
	}
}

func (w *work) short(s *state, branch bool, end string) {
	if branch {
		name, ok := w.branchName()
		switch {
		case !ok:
			name = "HEAD (no branch)"
		case w.head() == nil:
			name = "No commits yet on " + name
		}
		w.printf("## %s%s", name, end)
	}
	marks := map[string][2]byte{}
	for _, c := range s.staged {
		marks[c.name] = [2]byte{letter(c), ' '}
	}
	for _, c := range s.unstaged {
		m, ok := marks[c.name]
		if !ok {
			m[0] = ' '
		}
		m[1] = letter(c)
		marks[c.name] = m
	}
	names := make([]string, 0, len(marks))
	for name := range marks {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		m := marks[name]
		w.printf("%c%c %s%s", m[0], m[1], quoted(name), end)
	}
	for _, name := range s.untracked {
		w.printf("?? %s%s", quoted(name), end)
	}
}

func (w *work) long(s *state) {
	fresh := w.head() == nil
	if name, ok := w.branchName(); ok {
		w.printf("On branch %s\n", name)
	} else if h := w.head(); h != nil {
		w.printf("HEAD detached at %s\n", h.Hash.String()[:7])
	}
	if fresh {
		w.printf("\nNo commits yet\n\n")
	}
	word := func(c change) string {
		switch letter(c) {
		case 'A':
			return "new file:   "
		case 'D':
			return "deleted:    "
		case 'T':
			return "typechange: "
		}
		return "modified:   "
	}
	if len(s.staged) > 0 {
		w.printf("Changes to be committed:\n")
		if fresh {
			w.printf("  (use \"git rm --cached <file>...\" to unstage)\n")
		} else {
			w.printf("  (use \"git restore --staged <file>...\" to unstage)\n")
		}
		for _, c := range s.staged {
			w.printf("\t%s%s\n", word(c), quoted(c.name))
		}
		w.printf("\n")
	}
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
	}
	switch {
	case len(s.staged) > 0:
	case len(s.unstaged) > 0:
		w.printf("no changes added to commit (use \"git add\" and/or \"git commit -a\")\n")
	case len(s.untracked) > 0:
		w.printf("nothing added to commit but untracked files present (use \"git add\" to track)\n")
	case fresh:
		w.printf("nothing to commit (create/copy files and use \"git add\" to track)\n")
	default:
		w.printf("nothing to commit, working tree clean\n")
	}
}
