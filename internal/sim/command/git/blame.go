package git

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// A guilt is a line of a file, and the commit that it came with.
type guilt struct {
	commit *object.Commit
	line   int // there
	name   string
}

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
	lines := splitLines(string(b))
	who, err := w.guilty(c, name, lines)
	if err != nil {
		return err
	}
	from, to := 1, len(lines)
	if v, ok := o.flags["-L"]; ok {
		if from, to, ok = span(v, len(lines)); !ok {
			return fail("-L invalid line number: %s", v)
		}
	}
	return w.blamed(lines, who, from, to, name, o)
}

// span reads "from,to" and "from,+count".
func span(v string, n int) (from, to int, ok bool) {
	a, b, both := strings.Cut(v, ",")
	from, err := strconv.Atoi(a)
	if a == "" {
		from, err = 1, nil
	}
	if err != nil || from < 1 || from > n {
		return 0, 0, false
	}
	to = n
	if both && b != "" {
		if to, err = strconv.Atoi(strings.TrimPrefix(b, "+")); err != nil {
			return 0, 0, false
		}
		if b[0] == '+' {
			to = from + to - 1
		}
	}
	return from, min(to, n), true
}

// guilty finds the commit of each line.
func (w *work) guilty(c *object.Commit, name string, lines []string) ([]guilt, error) {
	out := make([]guilt, len(lines))
	where := make([]int, len(lines)) // line of c's file -> line of the result, -1 where decided
	for i := range where {
		where[i] = i
	}
	open := len(lines)
	for c != nil && open > 0 {
		w.t.Step(64 + len(lines))
		var parent *object.Commit
		next, old := []string(nil), name
		for i := range c.NumParents() {
			p, err := c.Parent(i)
			if err != nil {
				return nil, err
			}
			before, err := w.commitSide(p)
			if err != nil {
				return nil, err
			}
			at := name
			if _, ok := before.files[name]; !ok {
				after, err := w.commitSide(c)
				if err != nil {
					return nil, err
				}
				list, err := w.renamed(before, after, changes(before, after, nil))
				if err != nil {
					return nil, err
				}
				for _, x := range list {
					if x.name == name && x.old != "" {
						at = x.old
					}
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
			if texts := splitLines(string(b)); parent == nil || slices.Equal(texts, lines) {
				parent, next, old = p, texts, at
				if slices.Equal(texts, lines) {
					break
				}
			}
		}
		moved := make([]int, len(next))
		for i := range moved {
			moved[i] = -1
		}
		i, j := 0, 0
		x := w.compare(next, lines)
		for i < len(next) || j < len(lines) {
			switch {
			case i < len(next) && x.a.changed[i]:
				i++
			case j < len(lines) && x.b.changed[j]:
				if k := where[j]; k >= 0 {
					out[k] = guilt{c, j + 1, name}
					open--
				}
				j++
			default:
				moved[i] = where[j]
				i++
				j++
			}
		}
		where, lines, name, c = moved, next, old, parent
	}
	return out, nil
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
		id := g.commit.Hash.String()[:8]
		if g.commit.NumParents() == 0 && !o.has("--root") {
			id = "^" + g.commit.Hash.String()[:7]
		}
		if o.has("-l") {
			id = g.commit.Hash.String()
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
		if d := o.flags["--date"]; d != "" {
			at = when(g.commit.Author.When, d)
		}
		w.printf("(%s%s %s %*d) %s", label, strings.Repeat(" ", widest-columns(label)), at, digits, i, ended(lines[i-1]))
	}
	return nil
}

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
	if g.commit.NumParents() == 0 {
		w.printf("boundary\n")
	}
	w.printf("filename %s\n", g.name)
}
