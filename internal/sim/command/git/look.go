package git

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
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
	if o.has("--all") {
		heads, err := w.refsOf("refs/heads/")
		if err != nil {
			return err
		}
		for _, n := range sortedKeys(heads) {
			at[heads[n]] = "heads/" + n
		}
	}
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
			if o.has("--all") {
				at[h] = "tags/" + n
			}
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
