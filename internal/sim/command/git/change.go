package git

import (
	"path"
	"slices"
	"strings"

	lib "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// An options is a command line taken apart: flags by their names, with their
// values, and the rest.
type options struct {
	flags map[string]string
	rest  []string
	paths []string // behind "--"
	dash  bool     // there was a "--"
}

func (o *options) has(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { _, ok := o.flags[n]; return ok })
}

// options reads flags: plain ones, and those that take a value.
func (w *work) options(args []string, plain, valued string) (*options, error) {
	o := &options{flags: map[string]string{}}
	known, values := strings.Fields(plain), strings.Fields(valued)
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		name, value, given := strings.Cut(a, "=")
		switch {
		case a == "--":
			o.paths, o.dash = args, true
			return o, nil
		case len(a) < 2 || a[0] != '-':
			o.rest = append(o.rest, a)
		case slices.Contains(known, a):
			o.flags[a] = ""
		case slices.Contains(values, name) && given:
			o.flags[name] = joined(o.flags, name, value)
		case slices.Contains(values, a):
			if len(args) == 0 {
				return nil, &fatal{"error: option `" + strings.TrimLeft(a, "-") + "' requires a value", 129}
			}
			o.flags[a] = joined(o.flags, a, args[0])
			args = args[1:]
		case a[1] != '-' && slices.Contains(values, a[:2]):
			o.flags[a[:2]] = joined(o.flags, a[:2], a[2:])
		case a[1] != '-' && len(a) > 2 && slices.Contains(known, a[:2]):
			o.flags[a[:2]] = ""
			args = append([]string{"-" + a[2:]}, args...)
		default:
			return nil, &fatal{"error: unknown option `" + strings.TrimLeft(a, "-") + "'", 129}
		}
	}
	return o, nil
}

// joined is a value, or for messages the paragraphs of all.
func joined(flags map[string]string, name, value string) string {
	if old, ok := flags[name]; ok && (name == "-m" || name == "--message") {
		return old + "\n\n" + value
	}
	return value
}

func (w *work) relatives(names []string) ([]string, error) {
	var out []string
	for _, n := range names {
		p, err := w.relative(n)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

func (w *work) add(args []string) error {
	o, err := w.options(args, "-A --all -u --update -v --verbose -f --force -n --dry-run -N --intent-to-add --no-all --ignore-errors", "--chmod")
	if err != nil {
		return err
	}
	dry := o.has("-n", "--dry-run")
	told := dry || o.has("-v", "--verbose")
	names := append(o.rest, o.paths...)
	if len(names) == 0 && !o.has("-A", "--all", "-u", "--update") {
		_, err := w.t.Write(2, []byte("Nothing specified, nothing added.\nhint: Maybe you wanted to say 'git add .'?\nhint: Turn this message off by running\nhint: \"git config advice.addEmptyPathspec false\"\n"))
		return err
	}
	paths, err := w.relatives(names)
	if err != nil {
		return err
	}
	s, err := w.state(nil)
	if err != nil {
		return err
	}
	idx, err := w.repo.Storer.Index()
	if err != nil {
		return err
	}
	open, err := w.unmerged()
	if err != nil {
		return err
	}
	for n := range open {
		if within(n, paths) {
			s.unstaged = append(s.unstaged, change{name: n})
		}
	}
	for i, p := range paths {
		if _, err := (&tree{t: w.t, root: w.dir}).Lstat(p); err != nil && !slices.ContainsFunc(s.unstaged, func(c change) bool { return within(c.name, []string{p}) }) {
			return fail("pathspec '%s' did not match any files", names[i])
		}
	}
	for _, c := range s.unstaged {
		if within(c.name, paths) {
			if told {
				verb := "add"
				if c.to == nil && c.from != nil {
					verb = "remove"
				}
				w.printf("%s '%s'\n", verb, c.name)
			}
			if dry {
				continue
			}
			if err := w.stage(idx, c.name); err != nil {
				return err
			}
		}
	}
	if !o.has("-u", "--update") {
		all, err := w.statuses()
		if err != nil {
			return err
		}
		var loose []string
		for name, f := range all {
			if f.Worktree == lib.Untracked && within(name, paths) {
				if told {
					loose = append(loose, name)
				}
				if dry {
					continue
				}
				if err := w.stage(idx, name); err != nil {
					return err
				}
			}
		}
		slices.Sort(loose)
		for _, n := range loose {
			w.printf("add '%s'\n", n)
		}
		for _, p := range paths {
			if !o.has("-f", "--force") {
				continue
			}
			if !dry {
				if i, err := (&tree{t: w.t, root: w.dir}).Lstat(p); err == nil && !i.IsDir() {
					if err := w.stage(idx, p); err != nil {
						return err
					}
				}
			}
		}
	}
	if err := w.repo.Storer.SetIndex(idx); err != nil || o.has("-f", "--force", "-u", "--update", "-n", "--dry-run") {
		return err
	}
	return w.ignoredPaths(names, paths)
}

// ignoredPaths reports files that were named and that a .gitignore leaves out.
func (w *work) ignoredPaths(names, paths []string) error {
	var ignored []string
	for i, p := range paths {
		if hit, err := w.ignores(p); err != nil {
			return err
		} else if hit {
			ignored = append(ignored, names[i])
		}
	}
	if len(ignored) == 0 {
		return nil
	}
	if err := w.tell("The following paths are ignored by one of your .gitignore files:\n%s\nhint: Use -f if you really want to add them.\nhint: Turn this message off by running\nhint: \"git config advice.addIgnoredFile false\"\n", strings.Join(ignored, "\n")); err != nil {
		return err
	}
	return status(1)
}

// stage puts a file's state into the index.
func (w *work) stage(idx *index.Index, name string) error {
	w.t.Step(16)
	st, err := (&tree{t: w.t, root: w.dir}).Lstat(name)
	if err != nil || st.IsDir() {
		forget(idx, name)
		return nil //nolint:nilerr // it is not there any more
	}
	mode, err := filemode.NewFromOSFileMode(st.Mode())
	if err != nil {
		return fail("%s: can only add regular files, symbolic links or git-directories", name)
	}
	b, err := w.contents(name, mode)
	if err != nil {
		return fail("%s: %s", name, message(err))
	}
	h, err := w.store(plumbing.BlobObject, b)
	if err != nil {
		return err
	}
	e := w.entry(idx, name)
	e.Hash, e.Mode, e.Size, e.ModifiedAt = h, mode, uint32(st.Size()), st.ModTime()
	return nil
}

// entry gives a file's place in the index, where no conflict of it stays.
func (w *work) entry(idx *index.Index, name string) *index.Entry {
	e, err := idx.Entry(name)
	if err == nil && e.Stage == 0 {
		return e
	}
	if err == nil {
		forget(idx, name)
	}
	return idx.Add(name)
}

func (w *work) store(kind plumbing.ObjectType, b []byte) (plumbing.Hash, error) {
	return w.repo.Storer.SetEncodedObject(&stored{kind, plumbing.ComputeHash(kind, b), b})
}

func (w *work) remove(args []string) error {
	o, err := w.options(args, "--cached -r -f --force -q --quiet -n --dry-run --ignore-unmatch", "")
	if err != nil {
		return err
	}
	names := append(o.rest, o.paths...)
	if len(names) == 0 {
		return fail("No pathspec was given. Which files should I remove?")
	}
	paths, err := w.relatives(names)
	if err != nil {
		return err
	}
	idx, err := w.repo.Storer.Index()
	if err != nil {
		return err
	}
	if !o.has("-f", "--force") {
		if err := w.removable(idx, paths, o.has("--cached")); err != nil {
			return err
		}
	}
	dry := o.has("-n", "--dry-run")
	for i, p := range paths {
		found := false
		for _, e := range slices.Clone(idx.Entries) {
			if !within(e.Name, []string{p}) {
				continue
			}
			if e.Name != p && !o.has("-r") {
				return fail("not removing '%s' recursively without -r", names[i])
			}
			found = true
			if _, err := idx.Remove(e.Name); err != nil {
				return err
			}
			if !o.has("--cached") && !dry {
				_ = (&tree{t: w.t, root: w.dir}).Remove(e.Name) // it may be gone already
				w.prune(e.Name)
			}
			if !o.has("-q", "--quiet") {
				w.printf("rm '%s'\n", e.Name)
			}
		}
		if !found && !o.has("--ignore-unmatch") {
			return fail("pathspec '%s' did not match any files", names[i])
		}
	}
	if dry {
		return nil
	}
	return w.repo.Storer.SetIndex(idx)
}

// removable refuses to remove files whose changes are nowhere else.
func (w *work) removable(idx *index.Index, paths []string, cached bool) error {
	s, err := w.state(nil)
	if err != nil {
		return err
	}
	in := func(list []change, name string) bool {
		return slices.ContainsFunc(list, func(c change) bool { return c.name == name && c.to != nil })
	}
	var both, staged, local []string
	for _, e := range idx.Entries {
		if e.Stage != 0 || !within(e.Name, paths) {
			continue
		}
		switch inIndex, inTree := in(s.staged, e.Name), in(s.unstaged, e.Name); {
		case inIndex && inTree:
			both = append(both, e.Name)
		case cached:
		case inIndex:
			staged = append(staged, e.Name)
		case inTree:
			local = append(local, e.Name)
		}
	}
	var failed error
	for _, kind := range []struct {
		names     []string
		what, way string
	}{
		{both, "staged content different from both the\nfile and the HEAD", "(use -f to force removal)"},
		{staged, "changes staged in the index", "(use --cached to keep the file, or -f to force removal)"},
		{local, "local modifications", "(use --cached to keep the file, or -f to force removal)"},
	} {
		if len(kind.names) == 0 {
			continue
		}
		who := "file has "
		if len(kind.names) > 1 {
			who = "files have "
		}
		failed = status(1)
		if err := w.tell("error: the following %s%s:\n    %s\n%s\n", who, kind.what, strings.Join(kind.names, "\n    "), kind.way); err != nil {
			return err
		}
	}
	return failed
}

// prune removes directories that a file was the last of.
func (w *work) prune(name string) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if w.t.View.Rmdir(path.Join(w.dir, dir)) != nil {
			return
		}
	}
}

func (w *work) move(args []string) error {
	o, err := w.options(args, "-f --force -v --verbose -n --dry-run -k", "")
	if err != nil {
		return err
	}
	if len(o.rest) < 2 {
		return &fatal{"usage: git mv [<options>] <source>... <destination>", 129}
	}
	p, err := w.relatives(o.rest)
	if err != nil {
		return err
	}
	x := &tree{t: w.t, root: w.dir}
	last := p[len(p)-1]
	i, err := x.Stat(last)
	into := err == nil && i.IsDir()
	if len(p) > 2 && !into {
		return fail("destination '%s' is not a directory", last)
	}
	idx, err := w.repo.Storer.Index()
	if err != nil {
		return err
	}
	for _, from := range p[:len(p)-1] {
		to := last
		if into {
			to = path.Join(last, path.Base(from))
		}
		if err := w.moveOne(idx, x, from, to, o); err != nil {
			return err
		}
	}
	if o.has("-n", "--dry-run") {
		return nil
	}
	return w.repo.Storer.SetIndex(idx)
}

func (w *work) moveOne(idx *index.Index, x *tree, from, to string, o *options) error {
	known := slices.ContainsFunc(idx.Entries, func(e *index.Entry) bool { return within(e.Name, []string{from}) })
	st, err := x.Lstat(from)
	_, there := x.Lstat(to)
	switch {
	case err != nil:
		return fail("bad source, source=%s, destination=%s", from, to)
	case !known && st.IsDir():
		return fail("source directory is empty, source=%s, destination=%s", from, to)
	case !known:
		return fail("not under version control, source=%s, destination=%s", from, to)
	case within(to, []string{from}) && to != from:
		return fail("can not move directory into itself, source=%s, destination=%s", from, to)
	case there == nil && !o.has("-f", "--force"):
		return fail("destination exists, source=%s, destination=%s", from, to)
	}
	if o.has("-n", "--dry-run") {
		w.printf("Checking rename of '%s' to '%s'\n", from, to)
	}
	if o.has("-v", "--verbose", "-n", "--dry-run") {
		w.printf("Renaming %s to %s\n", from, to)
	}
	if o.has("-n", "--dry-run") {
		return nil
	}
	if _, err := x.Stat(path.Dir(to)); err != nil {
		return fail("renaming '%s' failed: %s", from, message(err))
	}
	if err := x.Rename(from, to); err != nil {
		return fail("renaming '%s' failed: %s", from, message(err))
	}
	if there == nil {
		forget(idx, to)
	}
	for _, e := range idx.Entries {
		if within(e.Name, []string{from}) {
			e.Name = to + strings.TrimPrefix(e.Name, from)
		}
	}
	return nil
}

// clean makes a message what git stores: no lines of space at its ends, and
// one newline.
func tidy(s string) string {
	lines := strings.Split(s, "\n")
	var out []string
	for _, l := range lines {
		l = strings.TrimRight(l, " \t\r")
		if l == "" && (len(out) == 0 || out[len(out)-1] == "") {
			continue
		}
		out = append(out, l)
	}
	return strings.TrimRight(strings.Join(out, "\n"), "\n") + "\n"
}
