package git

import (
	"container/heap"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/paddock-sandbox/paddock/internal/sim/strftime"
)

func sprintf(format string, args ...any) string { return fmt.Sprintf(format, args...) }

const dateFormat = "Mon Jan 2 15:04:05 2006 -0700"

// A queue holds commits, the latest first.
type queue []waiting

// A waiting commit has the number by which it came.
type waiting struct {
	*object.Commit
	n int
}

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	a, b := q[i].Committer.When, q[j].Committer.When
	return a.After(b) || a.Equal(b) && q[i].n < q[j].n
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any) {
	if c, ok := x.(waiting); ok {
		*q = append(*q, c)
	}
}

func (q *queue) Pop() any {
	old := *q
	c := old[len(old)-1]
	*q = old[:len(old)-1]
	return c
}

// walk gives the commits that lead to starts and not to stops, latest first,
// until f says no.
func (w *work) walk(starts, stops []*object.Commit, f func(*object.Commit) (bool, error)) error {
	hidden := map[plumbing.Hash]bool{}
	mark := func(list []*object.Commit) error {
		for len(list) > 0 {
			c := list[len(list)-1]
			list = list[:len(list)-1]
			if hidden[c.Hash] {
				continue
			}
			hidden[c.Hash] = true
			w.t.Step(32)
			for _, h := range c.ParentHashes {
				p, err := w.repo.CommitObject(h)
				if err != nil {
					return err
				}
				list = append(list, p)
			}
		}
		return nil
	}
	if err := mark(slices.Clone(stops)); err != nil {
		return err
	}
	seen := map[plumbing.Hash]bool{}
	q := &queue{}
	push := func(c *object.Commit) {
		if !seen[c.Hash] && !hidden[c.Hash] {
			seen[c.Hash] = true
			heap.Push(q, waiting{c, len(seen)})
		}
	}
	for _, c := range starts {
		push(c)
	}
	for q.Len() > 0 {
		w.t.Step(64)
		next, ok := heap.Pop(q).(waiting)
		if !ok {
			return nil
		}
		c := next.Commit
		for _, h := range c.ParentHashes {
			p, err := w.repo.CommitObject(h)
			if err != nil {
				return err
			}
			push(p)
		}
		more, err := f(c)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// walkFirst is walk along the first parents alone.
func (w *work) walkFirst(starts, stops []*object.Commit, f func(*object.Commit) (bool, error)) error {
	hidden := map[plumbing.Hash]bool{}
	if err := w.walk(stops, nil, func(c *object.Commit) (bool, error) { hidden[c.Hash] = true; return true, nil }); err != nil {
		return err
	}
	for _, c := range starts {
		for c != nil && !hidden[c.Hash] {
			w.t.Step(32)
			hidden[c.Hash] = true
			if more, err := f(c); err != nil || !more {
				return err
			}
			if c.NumParents() == 0 {
				break
			}
			var err error
			if c, err = c.Parent(0); err != nil {
				return err
			}
		}
	}
	return nil
}

// decorations name the references of each commit.
func (w *work) decorations() map[plumbing.Hash][]string {
	out := map[plumbing.Hash][]string{}
	current, attached := w.branchName()
	if h := w.head(); h != nil {
		if attached {
			out[h.Hash] = []string{"HEAD -> " + current}
		} else {
			out[h.Hash] = []string{"HEAD"}
		}
	}
	for _, prefix := range []string{"refs/tags/", "refs/remotes/", "refs/heads/"} {
		refs, err := w.repo.References()
		if err != nil {
			return out
		}
		var names []string
		at := map[string]plumbing.Hash{}
		_ = refs.ForEach(func(r *plumbing.Reference) error { // a reference that cannot be read names nothing
			if n := r.Name().String(); strings.HasPrefix(n, prefix) {
				if r.Type() == plumbing.SymbolicReference {
					full, err := w.repo.Reference(r.Name(), true)
					if err != nil {
						return nil //nolint:nilerr // it names nothing
					}
					r = plumbing.NewHashReference(r.Name(), full.Hash())
				}
				names = append(names, n)
				h := r.Hash()
				if t, err := w.repo.TagObject(h); err == nil {
					h = t.Target
				}
				at[n] = h
			}
			return nil
		})
		slices.Sort(names)
		if prefix == "refs/remotes/" {
			slices.Reverse(names)
		}
		for _, n := range names {
			short := strings.TrimPrefix(strings.TrimPrefix(n, "refs/heads/"), "refs/remotes/")
			short = strings.TrimPrefix(short, "refs/tags/")
			if prefix == "refs/tags/" {
				short = "tag: " + short
			} else if attached && short == current {
				continue
			}
			out[at[n]] = append(out[at[n]], short)
		}
	}
	return out
}

func (w *work) log(args []string) error {
	args = numbered(args)
	o, err := w.options(args, "--oneline -p --patch -u --stat --name-only --name-status --numstat --all --branches --tags --reverse --decorate --no-decorate --no-merges --merges --first-parent --graph -i --regexp-ignore-case -E -F --fixed-strings --extended-regexp --no-patch -s --abbrev-commit --no-abbrev-commit --date-order --topo-order --author-date-order --shortstat --follow --no-color --color --no-renames -M --full-history --cc -c -m --no-ext-diff --summary --invert-grep --all-match -w --relative-date --left-right --no-notes --no-show-signature --no-pager",
		"-n --max-count --skip --format --pretty --author --committer --grep --since --after --until --before --date -U --decorate -S -G --color --diff-filter -L --abbrev --max-parents --min-parents")
	if err != nil {
		return err
	}
	if o.has("-L", "-G") {
		return fail("log -L and -G are not supported in this sandbox")
	}
	s := w.style(o)
	starts, stops, paths, err := w.revisions(o)
	if err != nil {
		return err
	}
	s.paths = paths
	if o.has("--follow") {
		if len(paths) != 1 {
			return fail("--follow requires exactly one pathspec")
		}
		s.followed = map[plumbing.Hash][]string{}
	}
	list, err := w.selected(starts, stops, s, o)
	if err != nil {
		return err
	}
	if o.has("--topo-order") && !o.has("--graph") {
		parents, err := w.lineage(list, stops, len(paths) > 0)
		if err != nil {
			return err
		}
		list = sorted(list, parents)
	}
	if o.has("--reverse") {
		slices.Reverse(list)
	}
	marks := map[plumbing.Hash][]string{}
	if s.decorate || strings.Contains(s.format, "%d") || strings.Contains(s.format, "%D") {
		marks = w.decorations()
	}
	if o.has("--graph") {
		return w.graph(list, stops, s, marks)
	}
	for i, c := range list {
		if err := w.showCommit(c, s, marks, i == 0); err != nil {
			return err
		}
	}
	return nil
}

// selected gives the commits that a log shows.
func (w *work) selected(starts, stops []*object.Commit, s style, o *options) ([]*object.Commit, error) {
	most, skip := -1, 0
	for _, f := range []string{"-n", "--max-count"} {
		if v, ok := o.flags[f]; ok {
			n, err := strconv.Atoi(v)
			if err != nil {
				return nil, fail("'%s': not an integer", v)
			}
			most = n
		}
	}
	if v, ok := o.flags["--skip"]; ok {
		skip, _ = strconv.Atoi(v) // what is no number skips nothing
	}
	match := func(flag string) (*regexp.Regexp, error) {
		v, ok := o.flags[flag]
		if !ok {
			return nil, nil
		}
		if o.has("-i", "--regexp-ignore-case") {
			v = "(?i)" + v
		}
		re, err := regexp.Compile(v)
		if err != nil {
			return nil, fail("%s: invalid pattern", flag)
		}
		return re, nil
	}
	author, err := match("--author")
	if err != nil {
		return nil, err
	}
	committer, err := match("--committer")
	if err != nil {
		return nil, err
	}
	grep, err := match("--grep")
	if err != nil {
		return nil, err
	}
	bound := func(flags ...string) time.Time {
		for _, f := range flags {
			if v, ok := o.flags[f]; ok {
				if t, err := w.approximate(v); err == nil {
					return t
				}
			}
		}
		return time.Time{}
	}
	since, until := bound("--since", "--after"), bound("--until", "--before")
	var list []*object.Commit
	walk := w.walk
	if o.has("--first-parent") {
		walk = w.walkFirst
	}
	err = walk(starts, stops, func(c *object.Commit) (bool, error) {
		touched := true
		if len(s.paths) > 0 && (most < 0 || len(list) < most) {
			var err error
			if touched, err = w.touchesPaths(c, &s); err != nil {
				return false, err
			}
		}
		switch {
		case most >= 0 && len(list) >= most:
			return false, nil
		case author != nil && !author.MatchString(c.Author.Name+" <"+c.Author.Email+">"), grep != nil && !grep.MatchString(c.Message),
			!since.IsZero() && c.Committer.When.Before(since), !until.IsZero() && c.Committer.When.After(until),
			o.has("--no-merges") && c.NumParents() > 1, o.has("--merges") && c.NumParents() < 2:
			return true, nil
		case committer != nil && !committer.MatchString(c.Committer.Name+" <"+c.Committer.Email+">"):
			return true, nil
		}
		if text, ok := o.flags["-S"]; ok {
			if hit, err := w.touches(c, text); err != nil || !hit {
				return err == nil, err
			}
		}
		if !touched {
			return true, nil
		}
		if skip > 0 {
			skip--
			return true, nil
		}
		list = append(list, c)
		return true, nil
	})
	return list, err
}

// touchesPaths reports whether a commit changed the paths of a log; a merge did
// if they are as in no parent. It follows a renamed file if it is asked to, and
// then leaves merges out, as git does.
func (w *work) touchesPaths(c *object.Commit, s *style) (bool, error) {
	if s.followed != nil && c.NumParents() > 1 {
		return false, nil
	}
	after, err := w.commitSide(c)
	if err != nil {
		return false, err
	}
	for i := range max(c.NumParents(), 1) {
		var parent *object.Commit
		if c.NumParents() > 0 {
			if parent, err = c.Parent(i); err != nil {
				return false, err
			}
		}
		before, err := w.commitSide(parent)
		if err != nil {
			return false, err
		}
		list := changes(before, after, s.paths)
		if len(list) == 0 {
			return false, nil
		}
		if s.followed == nil {
			continue
		}
		s.followed[c.Hash] = s.paths
		name := s.paths[0]
		if len(list) != 1 || list[0].name != name || list[0].from != nil {
			continue
		}
		old, err := w.cameFrom(before, c, name)
		if err != nil {
			return false, err
		}
		if old != name {
			s.followed[c.Hash] = []string{old, name}
			s.paths = []string{old}
		}
	}
	return true, nil
}

// approximate reads a date in words.
func (w *work) approximate(v string) (time.Time, error) {
	if t, err := date(v); err == nil {
		return t, nil
	}
	return strftime.Parse(strings.NewReplacer(".", " ", "_", " ").Replace(v), w.t.K.Now().UTC())
}

// touches reports whether a commit changes how often a text occurs.
func (w *work) touches(c *object.Commit, text string) (bool, error) {
	a, b, err := w.sides(c)
	if err != nil {
		return false, err
	}
	for _, x := range changes(a, b, nil) {
		from, to, err := both(a, b, x)
		if err != nil {
			return false, err
		}
		w.t.Step(1 + (len(from)+len(to))/64)
		if strings.Count(string(from), text) != strings.Count(string(to), text) {
			return true, nil
		}
	}
	return false, nil
}

// sides gives what a commit changed.
func (w *work) sides(c *object.Commit) (before, after side, err error) {
	var parent *object.Commit
	if c.NumParents() > 0 {
		if parent, err = c.Parent(0); err != nil {
			return before, after, err
		}
	}
	if before, err = w.commitSide(parent); err != nil {
		return before, after, err
	}
	after, err = w.commitSide(c)
	return before, after, err
}
