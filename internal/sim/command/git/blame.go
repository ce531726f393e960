package git

import (
	"container/heap"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// A guilt is a line of a file, and the commit that it came with.
type guilt struct {
	commit *object.Commit
	line   int // there
	name   string
	prior  string // the parent that had the file, and its name there
}

func (w *work) annotate(args []string) error { return w.blame(append([]string{"-c"}, args...)) }

func (w *work) blame(args []string) error {
	o, err := w.options(args, "-w -s -e --show-email -l -t --porcelain -p --line-porcelain -f --show-name -n --show-number -b --root -M -C -c", "-L --date --abbrev")
	if err != nil {
		return err
	}
	rev, names := "HEAD", append(slices.Clone(o.rest), o.paths...)
	if len(names) == 2 {
		rev, names = names[0], names[1:]
	}
	if len(names) != 1 {
		return &fatal{"usage: git blame [<options>] [<rev-opts>] [<rev>] [--] <file>", 129}
	}
	name, err := w.relative(names[0])
	if err != nil {
		return err
	}
	c, err := w.commitOf(rev)
	if err != nil {
		return err
	}
	b, err := w.fileOf(rev, name)
	if err != nil {
		return fail("no such path '%s' in %s", name, rev)
	}
	first := &suspect{commit: c, name: name, parents: c.ParentHashes}
	if len(o.rest)+len(o.paths) == 1 && w.wt != nil {
		if first, b, err = w.uncommitted(c, name); err != nil {
			return err
		}
	}
	lines := splitLines(string(b))
	first.lines = lines
	who, err := w.guilty(first)
	if err != nil {
		return err
	}
	from, to := 1, len(lines)
	if v, ok := o.flags["-L"]; ok {
		if from, to, err = span(v, name, lines); err != nil {
			return err
		}
	}
	return w.blamed(lines, who, from, to, name, o)
}

// uncommitted is the suspect for the file as it is in the working tree.
func (w *work) uncommitted(c *object.Commit, name string) (*suspect, []byte, error) {
	st, err := (&tree{t: w.t, root: w.dir}).Lstat(name)
	if err != nil {
		return nil, nil, fail("Cannot lstat '%s': %s", name, message(err))
	}
	mode, err := filemode.NewFromOSFileMode(st.Mode())
	if err != nil {
		return nil, nil, fail("unsupported file type %s", name)
	}
	b, err := w.contents(name, mode)
	if err != nil {
		return nil, nil, fail("cannot open '%s': %s", name, message(err))
	}
	nobody := object.Signature{Name: "Not Committed Yet", Email: "not.committed.yet", When: w.t.K.Now()}
	draft := &object.Commit{Author: nobody, Committer: nobody, Message: "Version of " + name + " from " + name}
	return &suspect{commit: draft, name: name, parents: []plumbing.Hash{c.Hash}}, b, nil
}

// span reads "from,to" and "from,+count"; either end may be a pattern.
func span(v, name string, lines []string) (from, to int, err error) {
	a, b, both := strings.Cut(v, ",")
	if strings.HasPrefix(v, "/") {
		if i := strings.Index(v[1:], "/,"); i >= 0 {
			a, b, both = v[:i+2], v[i+3:], true
		} else {
			a, b, both = v, "", false
		}
	}
	n := len(lines)
	find := func(text string, after int) (int, error) {
		re, err := regexp.Compile(strings.TrimSuffix(text[1:], "/"))
		if err != nil {
			return 0, fail("-L parameter '%s': invalid pattern", strings.Trim(text, "/"))
		}
		for i := after; i <= n; i++ {
			if re.MatchString(lines[i-1]) {
				return i, nil
			}
		}
		return 0, fail("-L parameter '%s' starting at line %d: No match", strings.Trim(text, "/"), after)
	}
	number := func(text string) (int, error) {
		i, err := strconv.Atoi(text)
		if err != nil || i < 1 {
			return 0, fail("-L invalid line number: %s", text)
		}
		return i, nil
	}
	from, to = 1, n
	switch {
	case strings.HasPrefix(a, "/"):
		from, err = find(a, 1)
	case a != "":
		from, err = number(a)
	}
	if err == nil && from > n {
		err = fail("file %s has only %d lines", name, n)
	}
	if err != nil {
		return 0, 0, err
	}
	switch {
	case !both || b == "":
	case strings.HasPrefix(b, "/"):
		to, err = find(b, from+1)
	case b[0] == '+':
		to, err = number(b[1:])
		to = min(to, n) + from - 1
	case b[0] == '-':
		to, err = number(b[1:])
		from, to = max(from-to+1, 1), from
	default:
		to, err = number(b)
	}
	if to < from {
		from, to = to, from
	}
	return from, min(to, n), err
}

// A suspect is a file of a commit, some lines of which may have come with it.
type suspect struct {
	commit  *object.Commit
	name    string
	parents []plumbing.Hash
	lines   []string
	where   [][]int // for each line, those of the result
}

// guilty finds the commit of each line. Suspects are asked latest first, and
// what a parent has too is the parent's; each line has the first parent that
// has it.
func (w *work) guilty(first *suspect) ([]guilt, error) {
	out := make([]guilt, len(first.lines))
	first.where = make([][]int, len(first.lines))
	for i := range first.where {
		first.where[i] = []int{i}
	}
	q := &queue{{first.commit, 0}}
	at := map[plumbing.Hash][]*suspect{first.commit.Hash: {first}}
	came := 0
	for q.Len() > 0 {
		next, ok := heap.Pop(q).(waiting)
		if !ok {
			return out, nil
		}
		list := at[next.Hash]
		delete(at, next.Hash)
		for _, s := range list {
			parents, err := w.parentFiles(s)
			if err != nil {
				return nil, err
			}
			// One that has the same file has all of it.
			if i := slices.IndexFunc(parents, func(p *suspect) bool { return slices.Equal(p.lines, s.lines) }); i >= 0 {
				parents = parents[i : i+1]
			}
			prior := ""
			for _, p := range parents {
				if prior == "" {
					prior = p.commit.Hash.String() + " " + p.name
				}
				if !w.pass(s, p) {
					continue
				}
				known := at[p.commit.Hash]
				if len(known) == 0 {
					came++
					heap.Push(q, waiting{p.commit, came})
				}
				if i := slices.IndexFunc(known, func(k *suspect) bool { return k.name == p.name }); i >= 0 {
					for n, at := range p.where {
						known[i].where[n] = append(known[i].where[n], at...)
					}
					continue
				}
				at[p.commit.Hash] = append(known, p)
			}
			for n, at := range s.where {
				for _, k := range at {
					out[k] = guilt{s.commit, n + 1, s.name, prior}
				}
			}
		}
	}
	return out, nil
}

// pass gives the lines that a parent has too to it, and reports whether there
// were some.
func (w *work) pass(s, p *suspect) bool {
	p.where = make([][]int, len(p.lines))
	any := false
	i, j := 0, 0
	x := w.compare(p.lines, s.lines)
	for i < len(p.lines) || j < len(s.lines) {
		switch {
		case i < len(p.lines) && x.a.changed[i]:
			i++
		case j < len(s.lines) && x.b.changed[j]:
			j++
		default:
			if len(s.where[j]) > 0 {
				p.where[i], s.where[j], any = s.where[j], nil, true
			}
			i++
			j++
		}
	}
	return any
}

// parentFiles gives the file in the parents that have it.
func (w *work) parentFiles(s *suspect) ([]*suspect, error) {
	w.t.Step(64 + len(s.lines))
	var list []*suspect
	for _, h := range s.parents {
		p, err := w.repo.CommitObject(h)
		if err != nil {
			return nil, err
		}
		before, err := w.commitSide(p)
		if err != nil {
			return nil, err
		}
		at := s.name
		if _, ok := before.files[at]; !ok && !s.commit.Hash.IsZero() {
			if at, err = w.cameFrom(before, s.commit, at); err != nil {
				return nil, err
			}
		}
		f, ok := before.files[at]
		if !ok {
			continue
		}
		b, err := w.blob(at, f)
		if err != nil {
			return nil, err
		}
		list = append(list, &suspect{commit: p, name: at, parents: p.ParentHashes, lines: splitLines(string(b))})
	}
	return list, nil
}

// cameFrom gives the name that a file of a commit had before, if the commit
// renamed it.
func (w *work) cameFrom(before side, c *object.Commit, name string) (string, error) {
	after, err := w.commitSide(c)
	if err != nil {
		return "", err
	}
	list, err := w.renamed(before, after, changes(before, after, nil))
	if err != nil {
		return "", err
	}
	for _, x := range list {
		if x.name == name && x.old != "" {
			return x.old, nil
		}
	}
	return name, nil
}

func (w *work) blamed(lines []string, who []guilt, from, to int, name string, o *options) error {
	widest, names := 0, 0
	moved := false
	for _, g := range who[from-1 : to] {
		label := g.commit.Author.Name
		if o.has("-e", "--show-email") {
			label = "<" + g.commit.Author.Email + ">"
		}
		widest, names = max(widest, columns(label)), max(names, columns(g.name))
		moved = moved || g.name != name
	}
	digits := len(strconv.Itoa(to))
	told := map[plumbing.Hash]bool{}
	for i := from; i <= to; i++ {
		g := who[i-1]
		if o.has("--porcelain", "-p", "--line-porcelain") {
			w.porcelain(who, i, to, told, o.has("--line-porcelain"))
			w.printf("\t%s", ended(lines[i-1]))
			continue
		}
		if o.has("-c") {
			w.printf("%s\t(%10s\t%10s\t%d)%s", g.commit.Hash.String()[:8], g.commit.Author.Name, when(g.commit.Author.When, "iso"), i, ended(lines[i-1]))
			continue
		}
		id := g.commit.Hash.String()
		if !o.has("-l") {
			id = id[:8]
		}
		if g.boundary() && !o.has("--root") {
			id = "^" + id[:len(id)-1]
			if o.has("-b") {
				id = strings.Repeat(" ", len(id))
			}
		}
		w.printf("%s ", id)
		if moved || o.has("-f", "--show-name") {
			w.printf("%s%s ", g.name, strings.Repeat(" ", names-columns(g.name)))
		}
		if o.has("-n", "--show-number") {
			w.printf("%*d ", digits, g.line)
		}
		if o.has("-s") {
			w.printf("%*d) %s", digits, i, ended(lines[i-1]))
			continue
		}
		label := g.commit.Author.Name
		if o.has("-e", "--show-email") {
			label = "<" + g.commit.Author.Email + ">"
		}
		at := when(g.commit.Author.When, "iso")
		if o.has("-t") {
			at = when(g.commit.Author.When, "raw")
		} else if d := o.flags["--date"]; d != "" {
			at = when(g.commit.Author.When, d)
		}
		w.printf("(%s%s %s %*d) %s", label, strings.Repeat(" ", widest-columns(label)), at, digits, i, ended(lines[i-1]))
	}
	return nil
}

// boundary reports whether nothing came before the commit.
func (g guilt) boundary() bool { return g.commit.NumParents() == 0 && !g.commit.Hash.IsZero() }

func ended(l string) string {
	if strings.HasSuffix(l, "\n") {
		return l
	}
	return l + "\n"
}

func (w *work) porcelain(who []guilt, i, to int, told map[plumbing.Hash]bool, each bool) {
	g := who[i-1]
	n := 1
	for i+n-1 < to && who[i+n-1].commit.Hash == g.commit.Hash && who[i+n-1].line == g.line+n {
		n++
	}
	first := i == 1 || who[i-2].commit.Hash != g.commit.Hash || who[i-2].line != g.line-1
	if first {
		w.printf("%s %d %d %d\n", g.commit.Hash, g.line, i, n)
	} else {
		w.printf("%s %d %d\n", g.commit.Hash, g.line, i)
	}
	if told[g.commit.Hash] && !each {
		return
	}
	told[g.commit.Hash] = true
	for _, p := range []struct {
		role string
		who  object.Signature
	}{{"author", g.commit.Author}, {"committer", g.commit.Committer}} {
		w.printf("%s %s\n%s-mail <%s>\n%s-time %d\n%s-tz %s\n", p.role, p.who.Name, p.role, p.who.Email, p.role, p.who.When.Unix(), p.role, p.who.When.Format("-0700"))
	}
	w.printf("summary %s\n", subject(g.commit))
	if g.boundary() {
		w.printf("boundary\n")
	} else if g.prior != "" {
		w.printf("previous %s\n", g.prior)
	}
	w.printf("filename %s\n", g.name)
}
