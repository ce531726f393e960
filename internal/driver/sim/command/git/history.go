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
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/strftime"
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
	var mark func([]*object.Commit) error
	mark = func(list []*object.Commit) error {
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

// A style is how commits are shown.
type style struct {
	format                              string // of --format, after its "format:"
	oneline, separator                  bool   // a newline goes between, not behind
	patch, stat, names, status, numstat bool
	shown                               bool // by show, not log
	comings                             bool // which files come and go
	total                               bool // of the statistic only the last line
	apart                               bool // renames are shown as two changes
	decorate, full                      bool
	dates                               string
	context                             int
	paths                               []string
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
	list, err := w.selected(starts, stops, s, o)
	if err != nil {
		return err
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

func (s style) diffs() bool {
	return s.comings || s.patch || s.stat || s.names || s.status || s.numstat
}

func (w *work) style(o *options) style {
	s := style{
		oneline: o.has("--oneline"), patch: o.has("-p", "--patch", "-u"), stat: o.has("--stat", "--shortstat"), total: o.has("--shortstat"), comings: o.has("--summary"), apart: o.has("--no-renames"), names: o.has("--name-only"), status: o.has("--name-status"),
		numstat: o.has("--numstat"), decorate: o.has("--decorate"), dates: o.flags["--date"], context: 3,
	}
	if n, err := strconv.Atoi(o.flags["-U"]); err == nil {
		s.context = max(0, min(n, 1<<20))
	}
	f, ok := o.flags["--format"]
	if p, given := o.flags["--pretty"]; given {
		f, ok = p, true
	}
	if !ok {
		return s
	}
	switch {
	case f == "oneline":
		s.oneline, s.full = true, true
	case f == "short" || f == "medium" || f == "":
	case strings.HasPrefix(f, "format:"):
		s.format, s.separator = strings.TrimPrefix(f, "format:"), true
	case strings.HasPrefix(f, "tformat:"):
		s.format = strings.TrimPrefix(f, "tformat:")
	default:
		s.format = f
	}
	return s
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
	err = w.walk(starts, stops, func(c *object.Commit) (bool, error) {
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
		if len(s.paths) > 0 {
			a, b, err := w.sides(c)
			if err != nil {
				return false, err
			}
			if len(changes(a, b, s.paths)) == 0 {
				return true, nil
			}
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

// approximate reads a date in words.
func (w *work) approximate(v string) (time.Time, error) {
	if t, err := date(v); err == nil {
		return t, nil
	}
	return strftime.Parse(strings.NewReplacer(".", " ", "_", " ").Replace(v), w.t.K.Now().UTC())
}

// touches tells whether a commit changes how often a text occurs.
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

func (w *work) showCommit(c *object.Commit, s style, marks map[plumbing.Hash][]string, first bool) error {
	mark := ""
	if names := marks[c.Hash]; len(names) > 0 && s.decorate {
		mark = " (" + strings.Join(names, ", ") + ")"
	}
	switch {
	case s.format != "":
		if s.separator && !first {
			w.printf("\n")
		}
		w.printf("%s", expand(s.format, c, marks[c.Hash], s.dates))
		if !s.separator || s.diffs() {
			w.printf("\n")
		}
	case s.oneline && s.full:
		w.printf("%s%s %s\n", c.Hash, mark, subject(c))
	case s.oneline:
		w.printf("%s%s %s\n", short(c.Hash), mark, subject(c))
	default:
		if !first {
			w.printf("\n")
		}
		w.printf("commit %s%s\n", c.Hash, mark)
		if c.NumParents() > 1 {
			w.printf("Merge:")
			for _, h := range c.ParentHashes {
				w.printf(" %s", short(h))
			}
			w.printf("\n")
		}
		w.printf("Author: %s <%s>\nDate:   %s\n\n", c.Author.Name, c.Author.Email, when(c.Author.When, s.dates))
		for _, l := range strings.Split(strings.TrimRight(c.Message, "\n"), "\n") {
			if l == "" {
				w.printf("    \n")
			} else {
				w.printf("    %s\n", l)
			}
		}
	}
	if s.diffs() && c.NumParents() > 1 && s.shown && !s.oneline && s.format == "" {
		w.printf("\n")
	}
	if !s.diffs() || c.NumParents() > 1 {
		return nil
	}
	a, b, err := w.sides(c)
	if err != nil {
		return err
	}
	list := changes(a, b, s.paths)
	if len(list) > 0 && !s.oneline {
		w.printf("\n")
	}
	return w.shown(a, b, list, s)
}

// shown prints changes in the ways that were asked for.
func (w *work) shown(a, b side, list []change, s style) error {
	if !s.apart {
		var err error
		if list, err = w.renamed(a, b, list); err != nil {
			return err
		}
	}
	switch {
	case s.names:
		for _, c := range list {
			w.printf("%s\n", quoted(c.name))
		}
		return nil
	case s.status:
		for _, c := range list {
			if c.old != "" {
				w.printf("R%03d\t%s\t%s\n", c.score, quoted(c.old), quoted(c.name))
				continue
			}
			w.printf("%c\t%s\n", letter(c), quoted(c.name))
		}
		return nil
	}
	if s.stat || s.numstat {
		counts, err := w.counts(a, b, list)
		if err != nil {
			return err
		}
		if s.numstat {
			for _, n := range counts {
				if n.binary {
					w.printf("-\t-\t%s\n", n.shown)
				} else {
					w.printf("%d\t%d\t%s\n", n.add, n.del, n.shown)
				}
			}
		} else if s.total && len(counts) > 0 {
			w.printf("%s\n", summary(counts))
		} else {
			w.statistic(counts)
		}
		if s.patch {
			w.printf("\n")
		}
	}
	if s.comings {
		w.comings(list)
	}
	if s.patch {
		return w.patch(a, b, list, s.context)
	}
	return nil
}

func when(t time.Time, style string) string {
	switch {
	case style == "iso" || style == "iso8601":
		return t.Format("2006-01-02 15:04:05 -0700")
	case style == "iso-strict" || style == "iso8601-strict":
		return t.Format(time.RFC3339)
	case style == "short":
		return t.Format("2006-01-02")
	case style == "unix":
		return strconv.FormatInt(t.Unix(), 10)
	case style == "raw":
		return t.Format(strconv.FormatInt(t.Unix(), 10) + " -0700")
	case style == "rfc":
		return t.Format("Mon, 2 Jan 2006 15:04:05 -0700")
	}
	return t.Format(dateFormat)
}

// expand fills a format in.
func expand(f string, c *object.Commit, names []string, dates string) string {
	var b strings.Builder
	person := func(p object.Signature, k byte) string {
		switch k {
		case 'n':
			return p.Name
		case 'e':
			return p.Email
		case 'd':
			return when(p.When, dates)
		case 'i':
			return when(p.When, "iso")
		case 'I':
			return when(p.When, "iso-strict")
		case 's':
			return when(p.When, "short")
		case 't':
			return when(p.When, "unix")
		case 'D':
			return when(p.When, "rfc")
		}
		return ""
	}
	parents := func(short int) string {
		var l []string
		for _, h := range c.ParentHashes {
			l = append(l, h.String()[:short])
		}
		return strings.Join(l, " ")
	}
	for i := 0; i < len(f); i++ {
		if f[i] != '%' || i+1 >= len(f) {
			b.WriteByte(f[i])
			continue
		}
		i++
		switch k := f[i]; k {
		case 'H':
			b.WriteString(c.Hash.String())
		case 'h':
			b.WriteString(short(c.Hash))
		case 'T':
			b.WriteString(c.TreeHash.String())
		case 't':
			b.WriteString(short(c.TreeHash))
		case 'P':
			b.WriteString(parents(40))
		case 'p':
			b.WriteString(parents(7))
		case 's':
			b.WriteString(subject(c))
		case 'b':
			_, body, _ := strings.Cut(c.Message, "\n\n")
			b.WriteString(body)
		case 'B':
			b.WriteString(c.Message)
		case 'n':
			b.WriteByte('\n')
		case '%':
			b.WriteByte('%')
		case 'd':
			if len(names) > 0 {
				b.WriteString(" (" + strings.Join(names, ", ") + ")")
			}
		case 'D':
			b.WriteString(strings.Join(names, ", "))
		case 'a', 'c':
			if i+1 < len(f) {
				i++
				p := c.Author
				if k == 'c' {
					p = c.Committer
				}
				b.WriteString(person(p, f[i]))
			}
		case 'x':
			if i+2 < len(f) {
				if n, err := strconv.ParseUint(f[i+1:i+3], 16, 8); err == nil {
					b.WriteByte(byte(n))
					i += 2
					continue
				}
			}
			b.WriteString("%x")
		case 'C':
			for _, colour := range []string{"reset", "red", "green", "blue", "yellow"} {
				if strings.HasPrefix(f[i+1:], colour) {
					i += len(colour)
				}
			}
			if strings.HasPrefix(f[i+1:], "(") {
				if end := strings.IndexByte(f[i:], ')'); end > 0 {
					i += end
				}
			}
		default:
			b.WriteByte('%')
			b.WriteByte(k)
		}
	}
	return b.String()
}

func (w *work) show(args []string) error {
	o, err := w.options(args, "--oneline --stat --name-only --name-status --numstat -p --patch -s --no-patch --decorate", "--format --pretty --date -U")
	if err != nil {
		return err
	}
	revs := o.rest
	if len(revs) == 0 {
		revs = []string{"HEAD"}
	}
	s := w.style(o)
	s.shown = true
	if !s.diffs() && !o.has("-s", "--no-patch") {
		s.patch = true
	}
	for i, rev := range revs {
		if done, err := w.showObject(rev); done || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		c, err := w.commitOf(rev)
		if err != nil {
			return err
		}
		if err := w.showCommit(c, s, w.decorations(), i == 0); err != nil {
			return err
		}
		if s.separator && !s.diffs() {
			w.printf("\n")
		}
	}
	return nil
}

// showObject shows what is no commit: a file, a directory, a tag.
func (w *work) showObject(rev string) (done bool, err error) {
	h, err := w.resolve(rev)
	if err != nil {
		return false, err
	}
	x, err := w.repo.Storer.EncodedObject(plumbing.AnyObject, h)
	if err != nil {
		return false, fail("bad object %s", rev)
	}
	switch x.Type() {
	case plumbing.BlobObject:
		b, err := w.blob(rev, item{hash: h})
		if err != nil {
			return true, err
		}
		_, err = w.t.Out().Write(b)
		return true, err
	case plumbing.TreeObject:
		t, err := w.repo.TreeObject(h)
		if err != nil {
			return true, err
		}
		w.printf("tree %s\n\n", rev)
		for _, e := range t.Entries {
			if e.Mode == filemode.Dir {
				w.printf("%s/\n", e.Name)
			} else {
				w.printf("%s\n", e.Name)
			}
		}
		return true, nil
	case plumbing.TagObject:
		t, err := w.repo.TagObject(h)
		if err != nil {
			return true, err
		}
		w.printf("tag %s\nTagger: %s <%s>\nDate:   %s\n\n%s\n", t.Name, t.Tagger.Name, t.Tagger.Email, t.Tagger.When.Format(dateFormat), t.Message)
	}
	return false, nil
}

// fileOf reads a file of a commit, or of the index.
func (w *work) fileOf(rev, name string) ([]byte, error) {
	s, err := w.indexSide()
	if rev != "" {
		var c *object.Commit
		if c, err = w.commitOf(rev); err == nil {
			s, err = w.commitSide(c)
		}
	}
	if err != nil {
		return nil, err
	}
	i, ok := s.files[name]
	if !ok {
		return nil, fail("path '%s' does not exist in '%s'", name, rev)
	}
	return w.blob(name, i)
}

func (w *work) diff(args []string) error {
	o, err := w.options(args, "--cached --staged --stat --shortstat --summary --name-only --name-status --numstat -p --patch -u --no-color --color --quiet -q --exit-code --no-ext-diff --no-renames -M -C --find-renames -R --word-diff --check -w -b --ignore-all-space --ignore-space-change --ignore-blank-lines --minimal --patience --histogram --no-prefix -a --text --merge-base --no-index --no-patch -s --full-index --binary --raw -z --no-textconv --color-words --compact-summary", "-U --unified --diff-filter --color --word-diff --stat --diff-algorithm --src-prefix --dst-prefix --relative --color-words -M --inter-hunk-context")
	if o != nil && o.has("--word-diff", "--color-words", "-w", "-b", "--ignore-all-space", "--ignore-space-change", "--ignore-blank-lines", "--no-index", "--raw", "--check", "--src-prefix", "--dst-prefix") {
		return w.diffOther(args, o)
	}
	if err != nil {
		return err
	}
	s := w.style(o)
	if v, ok := o.flags["--unified"]; ok {
		if n, err := strconv.Atoi(v); err == nil {
			s.context = max(0, min(n, 1<<20))
		}
	}
	if !s.diffs() || o.has("-p", "--patch", "-u") {
		s.patch = true
	}
	var revs []*object.Commit
	names := slices.Clone(o.paths)
	for i, rev := range o.rest {
		parts := []string{rev}
		if a, b, ok := strings.Cut(rev, ".."); ok {
			parts = []string{a, strings.TrimPrefix(b, ".")}
			if strings.HasPrefix(b, ".") { // from where they part
				x, err := w.commitOf(a)
				if err != nil {
					return err
				}
				y, err := w.commitOf(b[1:])
				if err != nil {
					return err
				}
				base, err := w.base(x, y)
				if err != nil {
					return err
				}
				if base == nil {
					return fail("%s: no merge base", rev)
				}
				parts[0] = base.Hash.String()
			}
		}
		for _, p := range parts {
			c, err := w.commitOf(p)
			if err != nil {
				if q, e := w.relative(rev); e == nil && len(parts) == 1 {
					if _, e := (&tree{w.t, w.dir}).Lstat(q); e == nil {
						names = append(names, o.rest[i:]...)
						break
					}
				}
				return err
			}
			revs = append(revs, c)
		}
		if len(names) > len(o.paths) {
			break
		}
	}
	paths, err := w.relatives(names)
	if err != nil {
		return err
	}
	a, b, err := w.compared(revs, o.has("--cached", "--staged"))
	if err != nil {
		return err
	}
	if o.has("-R") {
		a, b = b, a
	}
	list := changes(a, b, paths)
	if len(revs) == 0 {
		open, err := w.unmerged()
		if err != nil {
			return err
		}
		for _, n := range sortedKeys(open) {
			switch {
			case !within(n, paths):
			case s.names && !o.has("--cached", "--staged"):
				w.printf("%s\n%s\n", n, n)
			case s.names:
				w.printf("%s\n", n)
			case s.status:
				w.printf("U\t%s\n", n)
			default:
				w.printf("* Unmerged path %s\n", n)
			}
			list = slices.DeleteFunc(list, func(c change) bool { return c.name == n })
		}
	}
	if f := o.flags["--diff-filter"]; f != "" {
		if list, err = w.filtered(a, b, list, f); err != nil {
			return err
		}
	}
	if !o.has("-q", "--quiet") {
		if err := w.shown(a, b, list, s); err != nil {
			return err
		}
	}
	if o.has("-q", "--quiet", "--exit-code") && len(list) > 0 {
		return status(1)
	}
	return nil
}

// filtered leaves the changes whose letters are wanted; small letters are not.
func (w *work) filtered(a, b side, list []change, letters string) ([]change, error) {
	list, err := w.renamed(a, b, list)
	if err != nil {
		return nil, err
	}
	without := strings.ToUpper(letters) != letters
	return slices.DeleteFunc(list, func(c change) bool {
		l := string(letter(c))
		if without {
			return strings.Contains(letters, strings.ToLower(l))
		}
		return !strings.Contains(letters, l)
	}), nil
}

// compared gives the two sides of a diff.
func (w *work) compared(revs []*object.Commit, cached bool) (a, b side, err error) {
	switch {
	case len(revs) > 2:
		return a, b, fail("too many revisions")
	case len(revs) == 2:
		if a, err = w.commitSide(revs[0]); err == nil {
			b, err = w.commitSide(revs[1])
		}
		return a, b, err
	case cached:
		from := w.head()
		if len(revs) == 1 {
			from = revs[0]
		}
		if a, err = w.commitSide(from); err == nil {
			b, err = w.indexSide()
		}
		return a, b, err
	case len(revs) == 1:
		a, err = w.commitSide(revs[0])
	default:
		a, err = w.indexSide()
	}
	if err == nil {
		b, err = w.workSide()
	}
	return a, b, err
}
