package git

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

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
					if _, e := (&tree{t: w.t, root: w.dir}).Lstat(q); e == nil {
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
