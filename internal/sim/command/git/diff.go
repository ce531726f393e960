package git

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	lib "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// An item is a file of a side.
type item struct {
	mode filemode.FileMode
	hash plumbing.Hash
}

// A side is one of two states that are compared.
type side struct {
	files map[string]item
	load  func(name string, i item) ([]byte, error)
}

// blob gives the content of a file, which nobody changes.
func (w *work) blob(_ string, i item) ([]byte, error) {
	o, err := w.disk.objects.get(i.hash)
	if err == nil && o.kind != plumbing.BlobObject {
		err = plumbing.ErrObjectNotFound
	}
	if err != nil {
		return nil, err
	}
	return o.b, nil
}

// perItem is what a file of a side has in memory besides its name.
const perItem = 200

// maxTrees bounds trees within trees.
const maxTrees = 4096

func (w *work) commitSide(c *object.Commit) (side, error) {
	s := side{map[string]item{}, w.blob}
	if c == nil {
		return s, nil
	}
	t, err := c.Tree()
	if err != nil {
		return s, err
	}
	return s, w.walkTree(t, "", 0, func(name string, e object.TreeEntry) {
		w.t.Grow(len(name) + perItem)
		s.files[name] = item{e.Mode, e.Hash}
	})
}

// walkTree shows all files of a tree. While it is in one, what that holds is counted.
func (w *work) walkTree(t *object.Tree, prefix string, depth int, f func(name string, e object.TreeEntry)) error {
	held := 0
	for _, e := range t.Entries {
		held += len(e.Name) + 50
	}
	if depth > maxTrees {
		return fail("exceeded maximum allowed tree depth")
	}
	w.t.Grow(held)
	defer w.t.Shrink(held)
	for _, e := range t.Entries {
		w.t.Traverse(1)
		name := prefix + e.Name
		if e.Mode != filemode.Dir {
			f(name, e)
			continue
		}
		sub, err := w.repo.TreeObject(e.Hash)
		if err != nil {
			return fail("unable to read tree %s", e.Hash)
		}
		if err := w.walkTree(sub, name+"/", depth+1, f); err != nil {
			return err
		}
	}
	return nil
}

// statuses gives what the library knows of the worktree. It looks at all trees of the last commit, and counts nothing:
// so what they hold is counted first.
func (w *work) statuses() (lib.Status, error) {
	if _, err := w.commitSide(w.head()); err != nil {
		return nil, err
	}
	return w.wt.StatusWithOptions(lib.StatusOptions{Strategy: lib.Empty})
}

func (w *work) indexSide() (side, error) {
	s := side{map[string]item{}, w.blob}
	idx, err := w.repo.Storer.Index()
	if err != nil {
		return s, err
	}
	for _, e := range idx.Entries {
		if e.Stage != 0 {
			continue
		}
		s.files[e.Name] = item{e.Mode, e.Hash}
	}
	return s, nil
}

// workSide gives the worktree's state of what the index knows.
func (w *work) workSide() (side, error) {
	idx, err := w.indexSide()
	s := side{map[string]item{}, func(name string, i item) ([]byte, error) { return w.contents(name, i.mode) }}
	if err != nil {
		return s, err
	}
	x := &tree{t: w.t, root: w.dir}
	for name, old := range idx.files {
		st, err := x.Lstat(name)
		if err != nil || st.IsDir() {
			continue
		}
		mode, err := filemode.NewFromOSFileMode(st.Mode())
		if err != nil {
			continue
		}
		if mode == filemode.Regular && old.mode == filemode.Deprecated {
			mode = old.mode
		}
		b, err := w.contents(name, mode)
		if err != nil {
			return s, err
		}
		s.files[name] = item{mode, plumbing.ComputeHash(plumbing.BlobObject, b)}
	}
	return s, nil
}

func (w *work) contents(name string, mode filemode.FileMode) ([]byte, error) {
	x := &tree{t: w.t, root: w.dir}
	if mode == filemode.Symlink {
		target, err := x.Readlink(name)
		return []byte(target), err
	}
	i, err := w.t.View.Stat(x.at(name))
	if err != nil {
		return nil, err
	}
	w.t.Bound("input", i.Size, w.t.K.Limits.Input)
	w.books().hold(ofBlob, int(i.Size))
	b, err := w.t.View.ReadFile(x.at(name), i.Size)
	w.t.Step(1 + len(b)/64)
	return b, err
}

// A change is a file that differs.
type change struct {
	name     string
	from, to *item
	old      string // where it was renamed: the name before
	score    int    // and the likeness in percent
}

// before is the name that a change's first side has.
func (c change) before() string {
	if c.old != "" {
		return c.old
	}
	return c.name
}

func changes(a, b side, paths []string) []change {
	var list []change
	for name, i := range a.files {
		if j, ok := b.files[name]; !ok {
			list = append(list, change{name: name, from: &i})
		} else if i != j {
			list = append(list, change{name: name, from: &i, to: &j})
		}
	}
	for name, j := range b.files {
		if _, ok := a.files[name]; !ok {
			list = append(list, change{name: name, to: &j})
		}
	}
	list = slices.DeleteFunc(list, func(c change) bool { return !within(c.name, paths) })
	slices.SortFunc(list, func(x, y change) int { return strings.Compare(x.name, y.name) })
	return list
}

// within reports whether a file is one of paths, or below one.
func within(name string, paths []string) bool {
	if len(paths) == 0 {
		return true
	}
	for _, p := range paths {
		if p == "." || name == p || strings.HasPrefix(name, strings.TrimSuffix(p, "/")+"/") {
			return true
		}
	}
	return false
}

// A line is one of a comparison: ' ', '-' or '+'.
type line struct {
	op   byte
	text string
}

func isBinary(b []byte) bool { return bytes.IndexByte(b[:min(len(b), 8000)], 0) >= 0 }

// quoted writes a name as git does where it has odd bytes.
func quoted(name string) string {
	if strings.IndexFunc(name, func(r rune) bool { return r < 32 || r >= 127 || r == '"' || r == '\\' }) < 0 {
		return name
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < 32 || c >= 127:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// both loads a change's two texts.
func both(a, b side, c change) (x, y []byte, err error) {
	if c.from != nil {
		if x, err = a.load(c.before(), *c.from); err != nil {
			return nil, nil, err
		}
	}
	if c.to != nil {
		y, err = b.load(c.name, *c.to)
	}
	return x, y, err
}

// patch prints changes as git diff does.
func (w *work) patch(a, b side, list []change, context int) error {
	var apart []change
	for _, c := range list {
		if c.from != nil && c.to != nil && letter(c) == 'T' { // another kind of file is another file
			apart = append(apart, change{name: c.name, from: c.from}, change{name: c.name, to: c.to})
		} else {
			apart = append(apart, c)
		}
	}
	for _, c := range apart {
		x, y, err := both(a, b, c)
		if err != nil {
			return err
		}
		from, to := "a/"+c.before(), "b/"+c.name
		w.printf("diff --git %s %s\n", quoted(from), quoted(to))
		hashes := [2]string{strings.Repeat("0", 7), strings.Repeat("0", 7)}
		suffix := ""
		switch {
		case c.from == nil:
			w.printf("new file mode %06o\n", uint32(c.to.mode))
			hashes[1], from = short(c.to.hash), "/dev/null"
		case c.to == nil:
			w.printf("deleted file mode %06o\n", uint32(c.from.mode))
			hashes[0], to = short(c.from.hash), "/dev/null"
		default:
			hashes = [2]string{short(c.from.hash), short(c.to.hash)}
			if c.from.mode != c.to.mode {
				w.printf("old mode %06o\nnew mode %06o\n", uint32(c.from.mode), uint32(c.to.mode))
			} else {
				suffix = fmt.Sprintf(" %06o", uint32(c.to.mode))
			}
			if c.old != "" {
				w.printf("similarity index %d%%\nrename from %s\nrename to %s\n", c.score, quoted(c.old), quoted(c.name))
			}
		}
		if hashes[0] == hashes[1] {
			continue
		}
		w.printf("index %s..%s%s\n", hashes[0], hashes[1], suffix)
		if isBinary(x) || isBinary(y) {
			w.printf("Binary files %s and %s differ\n", quoted(from), quoted(to))
			continue
		}
		if len(x) == 0 && len(y) == 0 {
			continue
		}
		w.printf("--- %s\n+++ %s\n", quoted(from), quoted(to))
		w.hunks(w.lines(string(x), string(y)), context)
	}
	return nil
}

func (w *work) hunks(list []line, context int) {
	old, now := 1, 1
	heading := ""
	for i := 0; i < len(list); {
		if list[i].op == ' ' {
			i, old, now = i+1, old+1, now+1
			continue
		}
		begin := max(0, i-context)
		for begin < i && list[begin].op != ' ' {
			begin++
		}
		end, last := i, i
		for end < len(list) && end-last <= 2*context+1 {
			if list[end].op != ' ' {
				last = end
			}
			end++
		}
		end = min(last+1+context, len(list))
		for j := begin - 1; j >= 0; j-- {
			if t := list[j].text; list[j].op != '+' && t != "" && (t[0] >= 'A' && t[0] <= 'Z' || t[0] >= 'a' && t[0] <= 'z' || t[0] == '_' || t[0] == '$') {
				heading = strings.TrimRight(t, " \t\r\n")
				for len(heading) > 80 || !utf8.ValidString(heading) && len(heading) > 77 {
					heading = heading[:min(80, len(heading)-1)]
				}
				break
			}
		}
		from, to := old-(i-begin), now-(i-begin)
		var del, ins int
		for _, l := range list[begin:end] {
			if l.op != '+' {
				del++
			}
			if l.op != '-' {
				ins++
			}
		}
		span := func(at, n int) string {
			switch n {
			case 0:
				return fmt.Sprintf("%d,0", at-1)
			case 1:
				return fmt.Sprint(at)
			}
			return fmt.Sprintf("%d,%d", at, n)
		}
		w.printf("@@ -%s +%s @@", span(from, del), span(to, ins))
		if heading != "" {
			w.printf(" %s", heading)
		}
		w.printf("\n")
		for _, l := range list[begin:end] {
			w.t.Step(1)
			w.printf("%c%s", l.op, l.text)
			if !strings.HasSuffix(l.text, "\n") {
				w.printf("\n\\ No newline at end of file\n")
			}
		}
		for _, l := range list[i:end] {
			if l.op != '+' {
				old++
			}
			if l.op != '-' {
				now++
			}
		}
		i = end
	}
}

// A count is how many lines a change adds and removes; of a binary file, bytes.
type count struct {
	name     string
	shown    string // where it was renamed: both names
	add, del int
	binary   bool
	from, to int
}

func (w *work) counts(a, b side, list []change) ([]count, error) {
	var out []count
	for _, c := range list {
		x, y, err := both(a, b, c)
		if err != nil {
			return nil, err
		}
		n := count{name: c.name, shown: arrow(c.old, c.name), binary: isBinary(x) || isBinary(y), from: len(x), to: len(y)}
		if !n.binary {
			for _, l := range w.lines(string(x), string(y)) {
				switch l.op {
				case '+':
					n.add++
				case '-':
					n.del++
				}
			}
		}
		out = append(out, n)
	}
	return out, nil
}

// summary is the last line of a statistic.
func summary(list []count) string {
	add, del := 0, 0
	for _, n := range list {
		add, del = add+n.add, del+n.del
	}
	s := func(n int, one, many string) string {
		if n == 1 {
			return fmt.Sprintf("%d %s", n, one)
		}
		return fmt.Sprintf("%d %s", n, many)
	}
	out := " " + s(len(list), "file changed", "files changed")
	if add > 0 || del == 0 {
		out += ", " + s(add, "insertion(+)", "insertions(+)")
	}
	if del > 0 || add == 0 {
		out += ", " + s(del, "deletion(-)", "deletions(-)")
	}
	return out
}

// statistic prints what --stat does.
func (w *work) statistic(list []count) {
	if len(list) == 0 {
		return
	}
	name, most, digits := 0, 0, 0
	for _, n := range list {
		name = max(name, utf8.RuneCountInString(n.shown))
		most = max(most, n.add+n.del)
		if n.binary {
			digits = max(digits, 3)
		}
	}
	digits = max(digits, len(fmt.Sprint(most)))
	width := 80
	if w.narrow > 0 {
		width = w.narrow
	}
	graph := max(width-name-digits-6, 6)
	for _, n := range list {
		w.printf(" %s%s | ", n.shown, strings.Repeat(" ", name-utf8.RuneCountInString(n.shown)))
		if n.binary {
			w.printf("%*s %d -> %d bytes\n", digits, "Bin", n.from, n.to)
			continue
		}
		add, del := n.add, n.del
		if most > graph {
			scale := func(v int) int {
				if v == 0 {
					return 0
				}
				return 1 + v*(graph-1)/most
			}
			total := scale(add + del)
			if add > 0 && del > 0 && total < 2 {
				total = 2
			}
			if add < del {
				add = scale(add)
				del = total - add
			} else {
				del = scale(del)
				add = total - del
			}
		}
		w.printf("%*d", digits, n.add+n.del)
		if add+del > 0 {
			w.printf(" %s%s", strings.Repeat("+", add), strings.Repeat("-", del))
		}
		w.printf("\n")
	}
	w.printf("%s\n", summary(list))
}

// modeOf gives the kind of a file of the worktree.
func (w *work) modeOf(name string) (filemode.FileMode, error) {
	st, err := (&tree{t: w.t, root: w.dir}).Lstat(name)
	if err != nil {
		return 0, err
	}
	return filemode.NewFromOSFileMode(st.Mode())
}
