package git

import (
	"slices"
	"strings"

	lib "github.com/go-git/go-git/v5"
)

// A state is what status tells.
type state struct {
	staged, unstaged []change
	unmerged         map[string]string // in conflict: two letters for each
	untracked        []string          // a directory without known files ends in "/"

	head, idx, now side
}

// conflictLetters are the letters of a file in conflict, by which stages it has.
func conflictLetters(s [4]bool) string {
	switch {
	case s[1] && s[2] && s[3]:
		return "UU"
	case s[1] && s[2]:
		return "UD"
	case s[1] && s[3]:
		return "DU"
	case s[2] && s[3]:
		return "AA"
	case s[1]:
		return "DD"
	case s[2]:
		return "AU"
	}
	return "UA"
}

func (w *work) state(paths []string) (*state, error) { return w.stateOf(paths, false) }

func (w *work) stateOf(paths []string, each bool) (*state, error) {
	s := &state{unmerged: map[string]string{}}
	var err error
	if s.head, err = w.commitSide(w.head()); err != nil {
		return nil, err
	}
	if s.idx, err = w.indexSide(); err != nil {
		return nil, err
	}
	if s.now, err = w.workSide(); err != nil {
		return nil, err
	}
	files, err := w.unmerged()
	if err != nil {
		return nil, err
	}
	for n, stages := range files {
		if within(n, paths) {
			s.unmerged[n] = conflictLetters(stages)
		}
	}
	s.staged = slices.DeleteFunc(changes(s.head, s.idx, paths), func(c change) bool { _, ok := files[c.name]; return ok })
	if s.staged, err = w.renamed(s.head, s.idx, s.staged); err != nil {
		return nil, err
	}
	s.unstaged = changes(s.idx, s.now, paths)
	all, err := w.statuses()
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	directories := func(name string) {
		for i, c := range name {
			if c == '/' {
				known[name[:i+1]] = true
			}
		}
	}
	for name := range s.idx.files {
		directories(name)
	}
	for name := range files {
		directories(name)
	}
	seen := map[string]bool{}
	for name, f := range all {
		if f.Worktree != lib.Untracked || !within(name, paths) {
			continue
		}
		for i, c := range name {
			if c == '/' && !known[name[:i+1]] && !each {
				name = name[:i+1]
				break
			}
		}
		_, conflicting := files[name]
		if _, tracked := s.idx.files[name]; !tracked && !conflicting && !seen[name] {
			seen[name] = true
			s.untracked = append(s.untracked, name)
		}
	}
	slices.Sort(s.untracked)
	return s, nil
}

func letter(c change) byte {
	switch {
	case c.old != "":
		return 'R'
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
	o, err := w.options(args, "-s --short --porcelain -b --branch -z --long -u -uno -unormal -uall --ignored --show-stash -v --verbose --no-renames --ahead-behind --no-ahead-behind --renames", "--porcelain --untracked-files -u --ignored --column")
	if err != nil {
		return err
	}
	paths, err := w.relatives(append(o.rest, o.paths...))
	if err != nil {
		return err
	}
	loose := o.flags["--untracked-files"]
	for _, f := range []string{"no", "normal", "all"} {
		if o.has("-u" + f) {
			loose = f
		}
	}
	if o.has("-u") && loose == "" {
		loose = "all"
	}
	s, err := w.stateOf(paths, loose == "all")
	if err != nil {
		return err
	}
	if loose == "no" {
		s.untracked = nil
	}
	end := "\n"
	if o.has("-z") {
		end = "\x00"
	}
	branch := o.has("-b", "--branch")
	switch v := o.flags["--porcelain"]; {
	case o.has("--porcelain") && v != "" && v != "v1" && v != "1" && v != "v2" && v != "2":
		return fail("unsupported porcelain version '%s'", v)
	case v == "v2" || v == "2":
		w.second(s, branch, end)
	case o.has("-s", "--short", "--porcelain", "-z") && !o.has("--long"):
		if !o.has("--porcelain", "-z") {
			w.local(s)
		}
		w.short(s, branch, end)
	default:
		w.local(s)
		w.longOf(s, loose == "no")
	}
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
			if list[i].old != "" {
				list[i].old = name(list[i].old)
			}
		}
	}
	unmerged := map[string]string{}
	for n, l := range s.unmerged {
		unmerged[name(n)] = l
	}
	s.unmerged = unmerged
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
		default:
			if _, up, ok := w.upstream(name); ok {
				ahead, behind, known := w.apart(name)
				name += "..." + up
				switch {
				case !known:
					name += " [gone]"
				case ahead > 0 && behind > 0:
					name += sprintf(" [ahead %d, behind %d]", ahead, behind)
				case ahead > 0:
					name += sprintf(" [ahead %d]", ahead)
				case behind > 0:
					name += sprintf(" [behind %d]", behind)
				}
			}
		}
		w.printf("## %s%s", name, end)
	}
	marks, olds := s.marks()
	for _, name := range sortedKeys(marks) {
		m := marks[name]
		shown, old := name, olds[name]
		if end == "\n" {
			shown, old = spaced(name), spaced(old)
		}
		switch {
		case olds[name] == "":
			w.printf("%s %s%s", m, shown, end)
		case end == "\n":
			w.printf("%s %s -> %s%s", m, old, shown, end)
		default:
			w.printf("%s %s%s%s%s", m, shown, end, old, end)
		}
	}
	for _, name := range s.untracked {
		if end == "\n" {
			name = spaced(name)
		}
		w.printf("?? %s%s", name, end)
	}
}

// spaced quotes a name that has blanks, too: short lines are split at them.
func spaced(name string) string {
	if q := quoted(name); q != name || !strings.Contains(name, " ") {
		return q
	}
	return `"` + name + `"`
}

// marks gives the two letters of each file, and the names of before.
func (s *state) marks() (marks, olds map[string]string) {
	marks, olds = map[string]string{}, map[string]string{}
	for _, c := range s.staged {
		marks[c.name], olds[c.name] = string(letter(c))+" ", c.old
	}
	for _, c := range s.unstaged {
		first := " "
		if m, ok := marks[c.name]; ok {
			first = m[:1]
		}
		marks[c.name] = first + string(letter(c))
	}
	for n, l := range s.unmerged {
		marks[n] = l
	}
	return marks, olds
}

// second prints the second form for programs.
func (w *work) second(s *state, branch bool, end string) {
	if branch {
		name, ok := w.branchName()
		if !ok {
			name = "(detached)"
		}
		oid := "(initial)"
		if h := w.head(); h != nil {
			oid = h.Hash.String()
		}
		w.printf("# branch.oid %s%s# branch.head %s%s", oid, end, name, end)
		if _, up, ok := w.upstream(name); ok {
			w.printf("# branch.upstream %s%s", up, end)
			if ahead, behind, known := w.apart(name); known {
				w.printf("# branch.ab +%d -%d%s", ahead, behind, end)
			}
		}
	}
	marks, olds := s.marks()
	show := func(name string) string {
		if end == "\n" {
			return quoted(name)
		}
		return name
	}
	mode := func(f side, name string) uint32 {
		return uint32(f.files[name].mode)
	}
	for _, name := range sortedKeys(marks) {
		if _, ok := s.unmerged[name]; ok {
			continue
		}
		m := strings.ReplaceAll(marks[name], " ", ".")
		before := name
		kind, score, old := "1", "", ""
		for _, c := range s.staged {
			if c.name == name && c.old != "" {
				before, kind = c.old, "2"
				score, old = sprintf("R%d ", c.score), "\t"+show(olds[name])
				if end != "\n" {
					old = end + olds[name]
				}
			}
		}
		w.printf("%s %s N... %06o %06o %06o %s %s %s%s%s%s", kind, m, mode(s.head, before), mode(s.idx, name), mode(s.now, name), s.head.files[before].hash, s.idx.files[name].hash, score, show(name), old, end)
	}
	if len(s.unmerged) > 0 {
		w.secondUnmerged(s, show, end)
	}
	for _, name := range s.untracked {
		w.printf("? %s%s", show(name), end)
	}
}

func (w *work) secondUnmerged(s *state, show func(string) string, end string) {
	idx, err := w.repo.Storer.Index()
	if err != nil {
		return
	}
	for _, name := range sortedKeys(s.unmerged) {
		var stages [4]item
		for _, e := range idx.Entries {
			if e.Name == name {
				stages[e.Stage&3] = item{e.Mode, e.Hash}
			}
		}
		mode, err := w.modeOf(name)
		if err != nil {
			mode = 0
		}
		w.printf("u %s N... %06o %06o %06o %06o %s %s %s %s%s", s.unmerged[name], uint32(stages[1].mode), uint32(stages[2].mode), uint32(stages[3].mode), uint32(mode), stages[1].hash, stages[2].hash, stages[3].hash, show(name), end)
	}
}

// apart counts the commits that a branch and its upstream have not in common.
func (w *work) apart(branch string) (ahead, behind int, known bool) {
	ref, _, ok := w.upstream(branch)
	if !ok {
		return 0, 0, false
	}
	a, err := w.commitOf("refs/heads/" + branch)
	if err != nil {
		return 0, 0, false
	}
	b, err := w.commitOf(string(ref))
	if err != nil {
		return 0, 0, false
	}
	return w.between(b, a), w.between(a, b), true
}
