package git

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/command"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/regex"
)

func (w *work) reflog(args []string) error {
	if len(args) > 0 && (args[0] == "expire" || args[0] == "delete") {
		return fail("reflog %s is not supported in this sandbox", args[0])
	}
	if len(args) > 0 && args[0] == "show" {
		args = args[1:]
	}
	o, err := w.options(args, "--no-decorate --decorate --oneline --all --no-abbrev", "-n --max-count --date --format --pretty")
	if err != nil {
		return err
	}
	name, ref := "HEAD", "HEAD"
	if len(o.rest) > 0 {
		name = o.rest[0]
		r, ok := w.refName(name)
		if !ok {
			return unknown(name)
		}
		ref = string(r.Name())
	}
	most := -1
	if v := o.flags["-n"] + o.flags["--max-count"]; v != "" {
		if most, err = strconv.Atoi(v); err != nil {
			return fail("'%s': not an integer", v)
		}
	}
	marks := map[plumbing.Hash][]string{}
	if o.has("--decorate") {
		marks = w.decorations()
	}
	for i, e := range w.entries(ref) {
		if i == most {
			break
		}
		mark := ""
		if l := marks[e.new]; len(l) > 0 {
			mark = " (" + strings.Join(l, ", ") + ")"
		}
		w.printf("%s%s %s@{%d}: %s\n", short(e.new), mark, name, i, e.text)
	}
	return nil
}

func (w *work) clean(args []string) error {
	o, err := w.options(args, "-n --dry-run -f --force -d -x -X -q --quiet -ff", "-e --exclude")
	if err != nil {
		return err
	}
	dry := o.has("-n", "--dry-run")
	if !dry && !o.has("-f", "--force", "-ff") {
		if v, ok := w.configured("clean.requireforce"); !ok || v != "false" {
			return fail("clean.requireForce defaults to true and neither -i, -n, nor -f given; refusing to clean")
		}
	}
	paths, err := w.relatives(append(o.rest, o.paths...))
	if err != nil {
		return err
	}
	s, err := w.state(paths)
	if err != nil {
		return err
	}
	list := s.untracked
	if o.has("-x", "-X") {
		ignored, err := w.ignoredFiles(s)
		if err != nil {
			return err
		}
		if o.has("-X") {
			list = nil
		}
		list = append(list, ignored...)
		slices.Sort(list)
	}
	for _, n := range list {
		if !within(strings.TrimSuffix(n, "/"), paths) {
			continue
		}
		if strings.HasSuffix(n, "/") && !o.has("-d") {
			continue
		}
		if e, ok := o.flags["-e"]; ok {
			if hit, err := path.Match(e, path.Base(n)); err == nil && hit {
				continue
			}
		}
		if dry {
			w.printf("Would remove %s\n", quoted(n))
			continue
		}
		if full := path.Join(w.dir, n); strings.HasSuffix(n, "/") {
			w.removeBelow(full)
		} else if err := w.t.View.Unlink(full); err != nil {
			return fail("failed to remove %s: %s", n, message(err))
		}
		if !o.has("-q", "--quiet") {
			w.printf("Removing %s\n", quoted(n))
		}
	}
	return nil
}

// ignoredFiles gives what is neither known nor told of: files that rules leave out.
func (w *work) ignoredFiles(s *state) ([]string, error) {
	known := map[string]bool{}
	for n := range s.idx.files {
		known[n] = true
	}
	loose, err := w.untracked(nil)
	if err != nil {
		return nil, err
	}
	for _, n := range loose {
		known[n] = true
	}
	var out []string
	var walk func(dir string, depth int) error
	walk = func(dir string, depth int) error {
		list, err := w.t.View.ReadDir(path.Join(w.dir, dir))
		if err != nil || depth > 100 {
			return nil //nolint:nilerr // what cannot be read is left alone
		}
		w.t.Traverse(len(list))
		for _, e := range list {
			n := path.Join(dir, e.Name)
			switch {
			case n == ".git":
			case e.Info.IsDir():
				some := slices.ContainsFunc(sortedKeys(known), func(k string) bool { return strings.HasPrefix(k, n+"/") })
				if !some {
					out = append(out, n+"/")
				} else if err := walk(n, depth+1); err != nil {
					return err
				}
			case !known[n]:
				out = append(out, n)
			}
		}
		return nil
	}
	return out, walk("", 0)
}

func (w *work) lsTree(args []string) error {
	o, err := w.options(args, "-r -t -d -l --long --name-only --name-status -z --full-name --full-tree", "--abbrev")
	if err != nil {
		return err
	}
	if len(o.rest) == 0 {
		return &fatal{"usage: git ls-tree [<options>] <tree-ish> [<path>...]", 129}
	}
	h, err := w.resolve(o.rest[0])
	if err != nil {
		return fail("Not a valid object name %s", o.rest[0])
	}
	if h, err = w.peel(h, "tree", o.rest[0]); err != nil {
		return fail("not a tree object")
	}
	end := "\n"
	if o.has("-z") {
		end = "\x00"
	}
	return w.lsTreeOf(h, "", append(o.rest[1:], o.paths...), o, end, 0)
}

func (w *work) lsTreeOf(h plumbing.Hash, prefix string, paths []string, o *options, end string, depth int) error {
	t, err := w.repo.TreeObject(h)
	if err != nil || depth > 200 {
		return fail("not a tree object")
	}
	w.t.Traverse(len(t.Entries))
	for _, e := range t.Entries {
		name := prefix + e.Name
		dir := e.Mode == filemode.Dir
		wanted, above := len(paths) == 0, false
		for _, p := range paths {
			q := strings.TrimSuffix(p, "/")
			switch {
			case name == q && strings.HasSuffix(p, "/"), strings.HasPrefix(q, name+"/"):
				above = true
			case name == q, strings.HasPrefix(name, q+"/") && (strings.HasSuffix(p, "/") || o.has("-r")):
				wanted = true
			}
		}
		if !wanted && !above {
			continue
		}
		into := dir && (o.has("-r") || above)
		if wanted && (!into || o.has("-t")) && (dir || !o.has("-d")) {
			w.lsTreeLine(e, name, o, end)
		}
		if into {
			if err := w.lsTreeOf(e.Hash, name+"/", paths, o, end, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *work) lsTreeLine(e object.TreeEntry, name string, o *options, end string) {
	if end == "\n" {
		name = quoted(name)
	}
	if o.has("--name-only", "--name-status") {
		w.printf("%s%s", name, end)
		return
	}
	kind, size := "blob", ""
	switch e.Mode {
	case filemode.Dir:
		kind = "tree"
	case filemode.Submodule:
		kind = "commit"
	}
	if o.has("-l", "--long") {
		size = "       -"
		if b, err := w.repo.BlobObject(e.Hash); err == nil && kind == "blob" {
			size = sprintf(" %7d", b.Size)
		}
	}
	w.printf("%06o %s %s%s\t%s%s", uint32(e.Mode), kind, e.Hash, size, name, end)
}

func (w *work) describe(args []string) error {
	o, err := w.options(args, "--tags --all --always --long --dirty --exact-match --contains --first-parent", "--abbrev --match --dirty --candidates --exclude")
	if err != nil {
		return err
	}
	rev := "HEAD"
	if len(o.rest) > 0 {
		rev = o.rest[0]
	}
	c, err := w.commitOf(rev)
	if err != nil {
		return fail("Not a valid object name %s", rev)
	}
	tags, err := w.refsOf("refs/tags/")
	if err != nil {
		return err
	}
	at := map[plumbing.Hash]string{}
	plain := false
	for _, n := range sortedKeys(tags) {
		if m, ok := o.flags["--match"]; ok {
			if hit, err := path.Match(m, n); err != nil || !hit {
				continue
			}
		}
		_, err := w.repo.TagObject(tags[n])
		if err != nil && !o.has("--tags", "--all") {
			plain = true
			continue
		}
		if h, err := w.peel(tags[n], "commit", n); err == nil {
			at[h] = n
		}
	}
	digits := 7
	if v, ok := o.flags["--abbrev"]; ok {
		if digits, err = strconv.Atoi(v); err != nil || digits < 0 || digits > 40 {
			digits = 7
		}
	}
	dirty := ""
	if o.has("--dirty") {
		s, err := w.state(nil)
		if err != nil {
			return err
		}
		if len(s.staged)+len(s.unstaged)+len(s.unmerged) > 0 {
			dirty = "-dirty"
			if v := o.flags["--dirty"]; v != "" {
				dirty = v
			}
		}
	}
	var found *object.Commit
	err = w.walk([]*object.Commit{c}, nil, func(x *object.Commit) (bool, error) {
		if _, ok := at[x.Hash]; ok {
			found = x
		}
		return found == nil && !o.has("--exact-match"), nil
	})
	if err != nil {
		return err
	}
	switch {
	case found != nil:
		n := w.between(found, c)
		if (n == 0 || digits == 0) && !o.has("--long") {
			w.printf("%s%s\n", at[found.Hash], dirty)
		} else {
			w.printf("%s-%d-g%s%s\n", at[found.Hash], n, c.Hash.String()[:max(digits, 4)], dirty)
		}
	case o.has("--always"):
		w.printf("%s%s\n", c.Hash.String()[:max(digits, 4)], dirty)
	case o.has("--exact-match"):
		return fail("no tag exactly matches '%s'", c.Hash)
	case plain:
		return fail("No annotated tags can describe '%s'.\nHowever, there were unannotated tags: try --tags.", c.Hash)
	default:
		return fail("No names found, cannot describe anything.")
	}
	return nil
}

func (w *work) shortlog(args []string) error {
	o, err := w.options(args, "-s --summary -n --numbered -e --email -c --committer -sn -ns -sne --all --no-merges", "--group --format")
	if err != nil {
		return err
	}
	summary, numbered, email := o.has("-s", "--summary", "-sn", "-ns", "-sne"), o.has("-n", "--numbered", "-sn", "-ns", "-sne"), o.has("-e", "--email", "-sne")
	if len(o.rest) == 0 && !o.has("--all") {
		return nil // the log would come on standard input
	}
	starts, stops, paths, err := w.revisions(o)
	if err != nil {
		return err
	}
	list, err := w.selected(starts, stops, style{paths: paths}, o)
	if err != nil {
		return err
	}
	by := map[string][]string{}
	for _, c := range list {
		who := c.Author
		if o.has("-c", "--committer") {
			who = c.Committer
		}
		key := who.Name
		if email {
			key += " <" + who.Email + ">"
		}
		by[key] = append(by[key], subject(c))
	}
	names := sortedKeys(by)
	if numbered {
		slices.SortStableFunc(names, func(a, b string) int { return len(by[b]) - len(by[a]) })
	}
	for _, n := range names {
		if summary {
			w.printf("%6d\t%s\n", len(by[n]), n)
			continue
		}
		w.printf("%s (%d):\n", n, len(by[n]))
		slices.Reverse(by[n])
		for _, s := range by[n] {
			w.printf("      %s\n", s)
		}
		w.printf("\n")
	}
	return nil
}

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

func (w *work) grep(args []string) error {
	o, err := w.options(args, "-n --line-number -i --ignore-case -l --files-with-matches --name-only -L -c --count -w --word-regexp -v --invert-match -E --extended-regexp -F --fixed-strings -G --basic-regexp -P --perl-regexp -h -H -q --quiet -o --only-matching --cached -I -a --text --no-color --color --break --heading --untracked", "-e -f -m --max-depth -A -B -C")
	if err != nil {
		return err
	}
	text, rest := o.flags["-e"], o.rest
	if !o.has("-e") {
		if len(rest) == 0 {
			return fail("no pattern given")
		}
		text, rest = rest[0], rest[1:]
	}
	opt := regex.Options{Flavour: regex.GrepBRE, IgnoreCase: o.has("-i", "--ignore-case"), Word: o.has("-w", "--word-regexp"), Meter: meter{w}}
	switch {
	case o.has("-E", "--extended-regexp"):
		opt.Flavour = regex.GrepERE
	case o.has("-P", "--perl-regexp"):
		opt.Flavour = regex.Perl
	case o.has("-F", "--fixed-strings"):
		opt.Flavour = regex.Literal
	}
	re, err := regex.Compile(text, opt)
	if err != nil {
		return fail("command line, '%s': %s", text, err)
	}
	s, err := w.workSide()
	if o.has("--cached") || w.bare {
		s, err = w.indexSide()
	}
	if err != nil {
		return err
	}
	prefix := ""
	if len(rest) > 0 {
		if c, e := w.commitOf(rest[0]); e == nil {
			prefix = rest[0] + ":"
			if s, err = w.commitSide(c); err != nil {
				return err
			}
			rest = rest[1:]
		}
	}
	paths, err := w.relatives(append(rest, o.paths...))
	if err != nil {
		return err
	}
	hit := false
	for _, n := range names(s) {
		if !within(n, paths) {
			continue
		}
		b, err := s.load(n, s.files[n])
		if err != nil {
			return err
		}
		found, err := w.grepFile(re, b, prefix+n, o)
		if err != nil {
			return err
		}
		hit = hit || found
	}
	if !hit {
		return status(1)
	}
	return nil
}

// meter charges a search to the task.
type meter struct{ w *work }

func (m meter) Step(n int) error {
	m.w.t.Step(n)
	return nil
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func (w *work) grepFile(re *regex.Regexp, b []byte, name string, o *options) (bool, error) {
	count, first := 0, true
	for i, l := range splitLines(string(b)) {
		l = strings.TrimSuffix(l, "\n")
		loc, err := re.Find([]byte(l), 0, nil)
		if err != nil {
			return false, err
		}
		found := loc != nil
		if found == o.has("-v", "--invert-match") {
			continue
		}
		count++
		if o.has("-q", "--quiet", "-l", "--files-with-matches", "--name-only") {
			break
		}
		if o.has("-c", "--count", "-L") {
			continue
		}
		if isBinary(b) && !o.has("-a", "--text") {
			if first {
				w.printf("Binary file %s matches\n", name)
			}
			return true, nil
		}
		first = false
		if !o.has("-h") {
			w.printf("%s:", name)
		}
		if o.has("-n", "--line-number") {
			w.printf("%d:", i+1)
		}
		if o.has("-o", "--only-matching") && found {
			l = l[loc[0]:loc[1]]
		}
		w.printf("%s\n", l)
	}
	switch {
	case o.has("-q", "--quiet"):
	case o.has("-L") && count == 0, count > 0 && o.has("-l", "--files-with-matches", "--name-only"):
		w.printf("%s\n", name)
		return true, nil
	case o.has("-c", "--count") && count > 0:
		w.printf("%s:%d\n", name, count)
	}
	return count > 0 && !o.has("-L"), nil
}

func (w *work) checkIgnore(args []string) error {
	o, err := w.options(args, "-q --quiet --stdin --no-index -n", "")
	if err != nil {
		return err
	}
	names := append(slices.Clone(o.rest), o.paths...)
	if o.has("--stdin") {
		b, err := command.ReadAll(w.t, "-")
		if err != nil {
			return err
		}
		names = append(names, strings.Fields(string(b))...)
	}
	loose, err := w.untracked(nil)
	if err != nil {
		return err
	}
	idx, err := w.indexSide()
	if err != nil {
		return err
	}
	hit := false
	for _, n := range names {
		p, err := w.relative(n)
		if err != nil {
			return err
		}
		_, tracked := idx.files[p]
		below := slices.ContainsFunc(loose, func(l string) bool { return within(l, []string{p}) }) || slices.ContainsFunc(sortedKeys(idx.files), func(l string) bool { return within(l, []string{p}) })
		if _, err := w.t.View.Lstat(path.Join(w.dir, p)); err != nil || tracked || below {
			continue
		}
		hit = true
		if !o.has("-q", "--quiet") {
			w.printf("%s\n", n)
		}
	}
	if !hit {
		return status(1)
	}
	return nil
}

// columns counts the characters of a name.
func columns(s string) int { return len([]rune(s)) }

func (w *work) variable(args []string) error {
	if len(args) != 1 {
		return &fatal{"usage: git var (-l | <variable>)", 129}
	}
	role, ok := strings.CutSuffix(strings.TrimPrefix(args[0], "GIT_"), "_IDENT")
	if !ok || role != "AUTHOR" && role != "COMMITTER" {
		return &fatal{"usage: git var (-l | <variable>)", 129}
	}
	s, err := w.signature(role)
	if err != nil {
		return err
	}
	w.printf("%s <%s> %d %s\n", s.Name, s.Email, s.When.Unix(), s.When.Format("-0700"))
	return nil
}
