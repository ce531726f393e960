package git

import (
	"archive/tar"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// revisions takes the words of log and rev-list apart: where to start, where
// to stop, which files.
func (w *work) revisions(o *options) (starts, stops []*object.Commit, paths []string, err error) {
	files := slices.Clone(o.paths)
	for i, rev := range o.rest {
		from, to, ranged := strings.Cut(rev, "..")
		if ranged {
			symmetric := strings.HasPrefix(to, ".")
			a, err := w.commitOf(from)
			if err != nil {
				return nil, nil, nil, err
			}
			b, err := w.commitOf(strings.TrimPrefix(to, "."))
			if err != nil {
				return nil, nil, nil, err
			}
			if symmetric {
				bases, err := w.bases(a, b)
				if err != nil {
					return nil, nil, nil, err
				}
				starts, stops = append(starts, a, b), append(stops, bases...)
			} else {
				starts, stops = append(starts, b), append(stops, a)
			}
			continue
		}
		c, err := w.commitOf(strings.TrimPrefix(rev, "^"))
		if err != nil {
			if p, e := w.relative(rev); e == nil && !o.dash {
				if _, e := (&tree{t: w.t, root: w.dir}).Lstat(p); e == nil {
					files = append(slices.Clone(o.rest[i:]), files...)
					break
				}
			}
			return nil, nil, nil, err
		}
		if strings.HasPrefix(rev, "^") {
			stops = append(stops, c)
		} else {
			starts = append(starts, c)
		}
	}
	if o.has("--all", "--branches", "--tags") {
		all, err := w.refsOf("refs/")
		if err != nil {
			return nil, nil, nil, err
		}
		for _, n := range sortedKeys(all) {
			if o.has("--all") || o.has("--branches") && strings.HasPrefix(n, "heads/") || o.has("--tags") && strings.HasPrefix(n, "tags/") {
				if c, err := w.commitOf("refs/" + n); err == nil {
					starts = append(starts, c)
				}
			}
		}
		if h := w.head(); h != nil && o.has("--all") {
			starts = append(starts, h)
		}
	}
	if len(starts) == 0 {
		head := w.head()
		if head == nil {
			name, _ := w.branchName()
			return nil, nil, nil, fail("your current branch '%s' does not have any commits yet", name)
		}
		starts = append(starts, head)
	}
	paths, err = w.relatives(files)
	return starts, stops, paths, err
}

func (w *work) revList(args []string) error {
	args = numbered(args)
	o, err := w.options(args, "--count --all --branches --tags --reverse --no-merges --merges --oneline --abbrev-commit --first-parent --parents --objects --topo-order --date-order -i --left-right --quiet", "-n --max-count --skip --author --grep --since --after --until --before --format --pretty --max-parents --min-parents")
	if err != nil {
		return err
	}
	if len(o.rest) == 0 && !o.has("--all", "--branches", "--tags") {
		return &fatal{"usage: git rev-list [<options>] <commit>... [--] [<path>...]", 129}
	}
	starts, stops, paths, err := w.revisions(o)
	if err != nil {
		return err
	}
	s := w.style(o)
	s.paths = paths
	list, err := w.selected(starts, stops, s, o)
	if err != nil {
		return err
	}
	if o.has("--reverse") {
		slices.Reverse(list)
	}
	if o.has("--count") {
		w.printf("%d\n", len(list))
		return nil
	}
	for _, c := range list {
		id := c.Hash.String()
		if o.has("--abbrev-commit", "--oneline") {
			id = short(c.Hash)
		}
		switch {
		case o.has("--oneline"):
			w.printf("%s %s\n", id, subject(c))
		case s.format != "":
			w.printf("commit %s\n%s\n", id, expand(s.format, c, nil, s.dates, w.t.K.Now()))
		case o.has("--parents"):
			w.printf("%s", id)
			for _, h := range c.ParentHashes {
				w.printf(" %s", h)
			}
			w.printf("\n")
		default:
			w.printf("%s\n", id)
		}
	}
	return nil
}

func (w *work) symbolicRef(args []string) error {
	o, err := w.options(args, "--short -q --quiet -d --delete", "-m")
	if err != nil {
		return err
	}
	switch len(o.rest) {
	case 1:
		r, err := w.repo.Reference(plumbing.ReferenceName(o.rest[0]), false)
		if err != nil || r.Type() != plumbing.SymbolicReference {
			if o.has("-q", "--quiet") {
				return status(1)
			}
			return fail("ref %s is not a symbolic ref", o.rest[0])
		}
		if o.has("--short") {
			w.printf("%s\n", r.Target().Short())
		} else {
			w.printf("%s\n", r.Target())
		}
		return nil
	case 2:
		if !strings.HasPrefix(o.rest[1], "refs/") {
			return fail("Refusing to point HEAD outside of refs/")
		}
		return w.repo.Storer.SetReference(plumbing.NewSymbolicReference(plumbing.ReferenceName(o.rest[0]), plumbing.ReferenceName(o.rest[1])))
	}
	return &fatal{"usage: git symbolic-ref [-m <reason>] <name> <ref>", 129}
}

func (w *work) showRef(args []string) error {
	o, err := w.options(args, "--heads --tags --verify -q --quiet -s --hash -d --head --abbrev", "")
	if err != nil {
		return err
	}
	all, err := w.refsOf("refs/")
	if err != nil {
		return err
	}
	hit := false
	for _, n := range sortedKeys(all) {
		if o.has("--heads", "--tags") && (!o.has("--heads") || !strings.HasPrefix(n, "heads/")) && (!o.has("--tags") || !strings.HasPrefix(n, "tags/")) {
			continue
		}
		full := "refs/" + n
		if len(o.rest) > 0 && !slices.ContainsFunc(o.rest, func(p string) bool { return full == p || !o.has("--verify") && strings.HasSuffix(full, "/"+p) }) {
			continue
		}
		hit = true
		switch {
		case o.has("-q", "--quiet"):
		case o.has("-s", "--hash"):
			w.printf("%s\n", all[n])
		default:
			w.printf("%s %s\n", all[n], full)
		}
	}
	switch {
	case hit:
		return nil
	case o.has("--verify") && !o.has("-q", "--quiet") && len(o.rest) > 0:
		return fail("'%s' - not a valid ref", o.rest[0])
	}
	return status(1)
}

func (w *work) updateRef(args []string) error {
	o, err := w.options(args, "-d --no-deref --create-reflog", "-m")
	if err != nil {
		return err
	}
	switch {
	case o.has("-d") && len(o.rest) > 0:
		return w.dropRef(plumbing.ReferenceName(o.rest[0]))
	case len(o.rest) < 2:
		return &fatal{"usage: git update-ref [<options>] <refname> <new-val> [<old-val>]", 129}
	}
	h, err := w.resolve(o.rest[1])
	if err != nil {
		return fail("%s: not a valid SHA1", o.rest[1])
	}
	name := plumbing.ReferenceName(o.rest[0])
	if name == plumbing.HEAD {
		return w.moveHead(h, o.flags["-m"])
	}
	if !strings.HasPrefix(string(name), "refs/") || name.Validate() != nil {
		return fail("update_ref failed for ref '%s': refusing to update ref with bad name '%s'", name, name)
	}
	return w.point(name, h, o.flags["-m"])
}

func (w *work) writeTreeOf([]string) error {
	if err := w.conflicted("Committing"); err != nil {
		return err
	}
	idx, err := w.indexSide()
	if err != nil {
		return err
	}
	h, err := w.writeTree(idx.files, "")
	if err != nil {
		return err
	}
	w.printf("%s\n", h)
	return nil
}

func (w *work) commitTree(args []string) error {
	var rest []string
	c := &object.Commit{}
	text, given := "", false
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		if (a == "-p" || a == "-m") && len(args) > 0 {
			if a == "-m" {
				if text != "" {
					text += "\n"
				}
				text, given = text+args[0]+"\n", true
			} else {
				p, err := w.commitOf(args[0])
				if err != nil {
					return fail("not a valid object name %s", args[0])
				}
				c.ParentHashes = append(c.ParentHashes, p.Hash)
			}
			args = args[1:]
			continue
		}
		rest = append(rest, a)
	}
	if len(rest) != 1 {
		return &fatal{"usage: git commit-tree <tree> [(-p <parent>)...] [-m <message>]", 129}
	}
	h, err := w.resolve(rest[0])
	if err != nil {
		return fail("not a valid object name %s", rest[0])
	}
	if c.TreeHash, err = w.peel(h, "tree", rest[0]); err != nil {
		return err
	}
	if !given {
		b, err := command.ReadAll(w.t, "-")
		if err != nil {
			return err
		}
		text = string(b)
	}
	author, err := w.signature("AUTHOR")
	if err != nil {
		return err
	}
	committer, err := w.signature("COMMITTER")
	if err != nil {
		return err
	}
	c.Author, c.Committer, c.Message = *author, *committer, text
	x := w.repo.Storer.NewEncodedObject()
	if err := c.Encode(x); err != nil {
		return err
	}
	if h, err = w.repo.Storer.SetEncodedObject(x); err != nil {
		return err
	}
	w.printf("%s\n", h)
	return nil
}

func (w *work) forEachRef(args []string) error {
	o, err := w.options(args, "", "--format --sort --count --points-at --contains")
	if err != nil {
		return err
	}
	all, err := w.refsOf("refs/")
	if err != nil {
		return err
	}
	for _, n := range sortedKeys(all) {
		full := "refs/" + n
		if len(o.rest) > 0 && !slices.ContainsFunc(o.rest, func(p string) bool {
			ok, err := path.Match(p, full)
			return err == nil && ok || full == p || strings.HasPrefix(full, strings.TrimSuffix(p, "/")+"/")
		}) {
			continue
		}
		kind := "commit"
		if x, err := w.repo.Storer.EncodedObject(plumbing.AnyObject, all[n]); err == nil {
			kind = x.Type().String()
		}
		f, ok := o.flags["--format"]
		if !ok {
			w.printf("%s %s\t%s\n", all[n], kind, full)
			continue
		}
		w.printf("%s\n", w.refFormat(f, full, all[n], kind))
	}
	return nil
}

// refFormat fills a format of references in.
func (w *work) refFormat(f, full string, h plumbing.Hash, kind string) string {
	c, err := w.commitOf(h.String())
	if err != nil {
		c = &object.Commit{}
	}
	_, up, _ := w.upstream(strings.TrimPrefix(full, "refs/heads/"))
	name := plumbing.ReferenceName(full).Short()
	mark := " "
	if current, ok := w.branchName(); ok && "refs/heads/"+current == full {
		mark = "*"
	}
	fields := map[string]string{
		"refname": full, "refname:short": name, "objectname": h.String(), "objectname:short": short(h), "objecttype": kind, "subject": subject(c), "contents:subject": subject(c), "HEAD": mark,
		"authorname": c.Author.Name, "authoremail": "<" + c.Author.Email + ">", "committername": c.Committer.Name, "upstream:short": up, "contents": c.Message,
		"authordate": when(c.Author.When, ""), "authordate:short": when(c.Author.When, "short"), "authordate:iso": when(c.Author.When, "iso"), "committerdate": when(c.Committer.When, ""),
		"committerdate:short": when(c.Committer.When, "short"), "committerdate:iso": when(c.Committer.When, "iso"), "committerdate:unix": when(c.Committer.When, "unix"), "creatordate": when(c.Committer.When, ""),
	}
	var b strings.Builder
	for f != "" {
		i := strings.Index(f, "%(")
		end := strings.IndexByte(f, ')')
		if i < 0 || end < i {
			break
		}
		b.WriteString(f[:i] + fields[f[i+2:end]])
		f = f[end+1:]
	}
	return b.String() + strings.ReplaceAll(f, "%%", "%")
}

func (w *work) diffTree(args []string) error {
	o, err := w.options(args, "-r -p --patch --stat --name-only --name-status --no-commit-id --root -u --numstat -m -t", "")
	if err != nil {
		return err
	}
	if len(o.rest) == 0 {
		return &fatal{"usage: git diff-tree <tree-ish> [<tree-ish>] [<path>...]", 129}
	}
	b, err := w.commitOf(o.rest[0])
	if err != nil {
		return err
	}
	s := w.style(o)
	s.apart = true
	x, y, err := w.sides(b)
	rest := o.rest[1:]
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		if c, e := w.commitOf(rest[0]); e == nil {
			rest = rest[1:]
			x = y
			if y, err = w.commitSide(c); err != nil {
				return err
			}
		}
	} else if !o.has("--no-commit-id") {
		w.printf("%s\n", b.Hash)
	}
	paths, err := w.relatives(append(rest, o.paths...))
	if err != nil {
		return err
	}
	list := changes(x, y, paths)
	if s.diffs() {
		return w.shown(x, y, list, s)
	}
	for _, c := range list {
		var from, to item
		if c.from != nil {
			from = *c.from
		}
		if c.to != nil {
			to = *c.to
		}
		w.printf(":%06o %06o %s %s %c\t%s\n", uint32(from.mode), uint32(to.mode), from.hash, to.hash, letter(c), quoted(c.name))
	}
	return nil
}

func (w *work) nameRev(args []string) error {
	o, err := w.options(args, "--name-only --tags --always", "")
	if err != nil {
		return err
	}
	heads, err := w.refsOf("refs/")
	if err != nil {
		return err
	}
	for _, rev := range o.rest {
		c, err := w.commitOf(rev)
		if err != nil {
			return err
		}
		name := "undefined"
		names := sortedKeys(heads)
		slices.SortStableFunc(names, func(a, b string) int { // tags are preferred
			return strings.Compare(strings.TrimPrefix(path.Dir(b), "heads"), strings.TrimPrefix(path.Dir(a), "heads"))
		})
		for _, n := range names {
			tip, err := w.commitOf("refs/" + n)
			if err != nil {
				continue
			}
			short := strings.TrimPrefix(n, "heads/")
			for i := 0; tip != nil && name == "undefined"; i++ {
				w.t.Step(8)
				if tip.Hash == c.Hash {
					name = short
					if i > 0 {
						name = sprintf("%s~%d", short, i)
					}
				}
				if tip, err = tip.Parent(0); err != nil {
					break
				}
			}
		}
		if o.has("--name-only") {
			w.printf("%s\n", name)
		} else {
			w.printf("%s %s\n", rev, name)
		}
	}
	return nil
}

func (w *work) archive(args []string) error {
	o, err := w.options(args, "-v --verbose -l --list -0 -9", "--format --prefix -o --output")
	if err != nil {
		return err
	}
	if o.has("-l", "--list") {
		w.printf("tar\n")
		return nil
	}
	if len(o.rest) == 0 {
		return fail("must specify tree-ish")
	}
	out := o.flags["-o"] + o.flags["--output"]
	if f := o.flags["--format"]; f != "" && f != "tar" || strings.HasSuffix(out, ".zip") || strings.HasSuffix(out, ".gz") || strings.HasSuffix(out, ".tgz") {
		return fail("only tar archives are made in this sandbox: git archive HEAD | gzip > x.tar.gz")
	}
	c, err := w.commitOf(o.rest[0])
	if err != nil {
		return fail("not a valid object name: %s", o.rest[0])
	}
	s, err := w.commitSide(c)
	if err != nil {
		return err
	}
	paths, err := w.relatives(append(o.rest[1:], o.paths...))
	if err != nil {
		return err
	}
	to := w.t.Stream(1)
	if err := w.t.Flush(); err != nil {
		return err
	}
	if out == "" {
		return w.tarOf(tar.NewWriter(to), s, c, o.flags["--prefix"], paths)
	}
	f, err := command.Create(w.t, out, linux.O_TRUNC)
	if err != nil {
		return fail("could not create archive file '%s': %s", out, message(err))
	}
	return errors.Join(w.tarOf(tar.NewWriter(f), s, c, o.flags["--prefix"], paths), f.Close())
}

func (w *work) tarOf(x *tar.Writer, s side, c *object.Commit, prefix string, paths []string) error {
	made := map[string]bool{}
	if err := x.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: map[string]string{"comment": c.Hash.String()}}); err != nil {
		return err
	}
	head := func(name string, mode int64, size int, kind byte, link string) error {
		return x.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(size), Typeflag: kind, Linkname: link, ModTime: c.Committer.When, Uname: "root", Gname: "root"})
	}
	for _, n := range names(s) {
		if !within(n, paths) {
			continue
		}
		full := prefix + n
		for i := range full {
			if full[i] == '/' && !made[full[:i]] && i+1 < len(full) {
				made[full[:i]] = true
				if err := head(full[:i+1], 0o775, 0, tar.TypeDir, ""); err != nil {
					return err
				}
			}
		}
		b, err := s.load(n, s.files[n])
		if err != nil {
			return err
		}
		switch s.files[n].mode {
		case filemode.Symlink:
			err = head(full, 0o777, 0, tar.TypeSymlink, string(b))
		case filemode.Executable:
			err = head(full, 0o775, len(b), tar.TypeReg, "")
		default:
			err = head(full, 0o664, len(b), tar.TypeReg, "")
		}
		if err != nil {
			return err
		}
		if s.files[n].mode != filemode.Symlink {
			if _, err := x.Write(b); err != nil {
				return err
			}
		}
	}
	return x.Close()
}
