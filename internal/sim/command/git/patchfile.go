package git

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
)

// A patched file is one of those that a patch changes.
type patched struct {
	old, new string // "" where it comes or goes
	mode     filemode.FileMode
	hunks    []hunk
	binary   bool
}

// A hunk is one place of a file that a patch changes.
type hunk struct {
	at, size int // in the old file
	to       int
	lines    []line
}

// name is what the file is called in messages.
func (p *patched) name() string {
	if p.new != "" {
		return p.new
	}
	return p.old
}

// readPatch reads unified differences, with git's additions to them.
func (w *work) readPatch(text string, strip int) ([]*patched, error) {
	var out []*patched
	var p *patched
	lines := splitLines(text)
	cut := func(name string) string {
		name, _, _ = strings.Cut(strings.TrimRight(name, "\r\n"), "\t")
		if name == "/dev/null" {
			return ""
		}
		if strings.HasPrefix(name, `"`) {
			if s, err := strconv.Unquote(name); err == nil {
				name = s
			}
		}
		for range strip {
			if _, rest, ok := strings.Cut(name, "/"); ok {
				name = rest
			}
		}
		return name
	}
	for i := 0; i < len(lines); i++ {
		w.t.Step(1)
		l := strings.TrimRight(lines[i], "\n")
		head := p != nil && len(p.hunks) == 0
		switch {
		case strings.HasPrefix(l, "diff --git "):
			p = &patched{}
			out = append(out, p)
			if a, b, ok := strings.Cut(strings.TrimPrefix(l, "diff --git "), " b/"); ok {
				p.old, p.new = cut(a), cut("b/"+b)
			}
		case head && strings.HasPrefix(l, "new file mode "):
			p.old, p.mode = "", modeText(l[14:])
		case head && strings.HasPrefix(l, "deleted file mode "):
			p.new = ""
		case head && strings.HasPrefix(l, "new mode "):
			p.mode = modeText(l[9:])
		case head && strings.HasPrefix(l, "rename from "):
			p.old = l[12:]
		case head && strings.HasPrefix(l, "rename to "):
			p.new = l[10:]
		case head && (strings.HasPrefix(l, "GIT binary patch") || strings.HasPrefix(l, "Binary files ")):
			p.binary = true
		case strings.HasPrefix(l, "--- ") && i+1 < len(lines) && strings.HasPrefix(lines[i+1], "+++ "):
			if !head || p == nil {
				p = &patched{}
				out = append(out, p)
			}
			p.old, p.new = cut(l[4:]), cut(lines[i+1][4:])
			i++
		case strings.HasPrefix(l, "@@ -") && p != nil:
			h, n, err := readHunk(lines[i:])
			if err != nil {
				return nil, fail("corrupt patch at line %d", i+n+1)
			}
			p.hunks = append(p.hunks, h)
			i += n - 1
		}
	}
	return out, nil
}

func modeText(s string) filemode.FileMode {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 8, 32)
	if err != nil {
		return filemode.Regular
	}
	return filemode.FileMode(n)
}

// readHunk reads a hunk and tells how many lines it has.
func readHunk(lines []string) (h hunk, used int, err error) {
	var to int
	numbers, _, _ := strings.Cut(strings.TrimPrefix(lines[0], "@@ -"), " @@")
	a, b, ok := strings.Cut(numbers, " +")
	if !ok {
		return h, 0, strconv.ErrSyntax
	}
	pair := func(s string) (at, n int) {
		x, y, two := strings.Cut(s, ",")
		if at, err = strconv.Atoi(x); err != nil {
			return 0, 0
		}
		n = 1
		if two {
			n, err = strconv.Atoi(y)
		}
		return at, n
	}
	if h.at, h.size = pair(a); err != nil {
		return h, 0, err
	}
	if h.to, to = pair(b); err != nil {
		return h, 0, err
	}
	old := h.size
	for used = 1; used < len(lines) && (old > 0 || to > 0); used++ {
		l := lines[used]
		switch l[0] {
		case ' ', '\n':
			old, to = old-1, to-1
			if l[0] == '\n' {
				l = " " + l
			}
		case '-':
			old--
		case '+':
			to--
		case '\\':
			chop(&h)
			continue
		default:
			return h, used, strconv.ErrSyntax
		}
		h.lines = append(h.lines, line{l[0], l[1:]})
	}
	if old != 0 || to != 0 {
		return h, used, strconv.ErrSyntax
	}
	if used < len(lines) && lines[used][0] == '\\' {
		chop(&h)
		used++
	}
	return h, used, nil
}

// chop takes the newline of the last line away.
func chop(h *hunk) {
	if n := len(h.lines); n > 0 {
		h.lines[n-1].text = strings.TrimSuffix(h.lines[n-1].text, "\n")
	}
}

// turned is the patch that takes another back.
func (p *patched) turned() *patched {
	q := &patched{old: p.new, new: p.old, mode: p.mode, binary: p.binary}
	for _, h := range p.hunks {
		n := 0
		var lines []line
		for _, l := range h.lines {
			switch l.op {
			case '-':
				l.op = '+'
			case '+':
				l.op = '-'
			}
			if l.op != '+' {
				n++
			}
			lines = append(lines, l)
		}
		q.hunks = append(q.hunks, hunk{at: h.to, size: n, to: h.at, lines: lines})
	}
	return q
}

// patchText applies a file's hunks to its text. bad is the line of one that
// does not fit, 0 where all do.
func (w *work) patchText(p *patched, text string) (out string, bad int) {
	lines := splitLines(text)
	shift := 0
	for _, h := range p.hunks {
		var old, fresh []string
		lead, tail := 0, 0
		for _, l := range h.lines {
			if l.op != '+' {
				old = append(old, l.text)
			}
			if l.op != '-' {
				fresh = append(fresh, l.text)
			}
			if l.op == ' ' {
				tail++
			} else {
				tail = 0
			}
		}
		for lead < len(h.lines) && h.lines[lead].op == ' ' {
			lead++
		}
		want := max(0, h.at-1) + shift
		if h.size == 0 {
			want = h.at + shift
		}
		at := w.place(lines, old, want, h.at <= 1 && lead < tail, tail < lead)
		if at < 0 {
			return "", max(h.at, 1)
		}
		shift += len(fresh) - len(old) + at - want
		lines = slices.Concat(lines[:at], fresh, lines[at+len(old):])
	}
	return strings.Join(lines, ""), 0
}

// place finds where lines stand, nearest to where they should.
func (w *work) place(lines, old []string, want int, begin, end bool) int {
	fits := func(at int) bool {
		w.t.Step(1 + len(old)/4)
		return at >= 0 && at+len(old) <= len(lines) && (!begin || at == 0) && (!end || at+len(old) == len(lines)) && slices.Equal(lines[at:at+len(old)], old)
	}
	for d := 0; d <= len(lines)+want; d++ {
		if fits(want + d) {
			return want + d
		}
		if fits(want - d) {
			return want - d
		}
	}
	return -1
}

func (w *work) applyPatch(args []string) error {
	o, err := w.options(args, "--check --stat --numstat --summary --index --cached -R --reverse -v --verbose -q --quiet --apply --whitespace --no-add -3 --3way --reject --recount --unidiff-zero --ignore-whitespace --ignore-space-change --allow-empty", "-p --whitespace --directory --exclude --include -C")
	if err != nil {
		return err
	}
	if o.has("-3", "--3way", "--reject") {
		return fail("git apply --3way and --reject are not supported in this sandbox")
	}
	files := o.rest
	if len(files) == 0 {
		files = []string{"-"}
	}
	strip := 1
	if v, ok := o.flags["-p"]; ok {
		if strip, err = strconv.Atoi(v); err != nil || strip < 0 || strip > 64 {
			return fail("option -p expects a non-negative integer, got '%s'", v)
		}
	}
	var list []*patched
	for _, f := range files {
		b, err := command.ReadAll(w.t, f)
		if err != nil {
			return &fatal{"error: can't open patch '" + f + "': " + message(err), 128}
		}
		more, err := w.readPatch(string(b), strip)
		if err != nil {
			return err
		}
		list = append(list, more...)
	}
	if len(list) == 0 {
		if o.has("--allow-empty") {
			return nil
		}
		return &fatal{`error: No valid patches in input (allow with "--allow-empty")`, 128}
	}
	if o.has("-R", "--reverse") {
		for i := range list {
			list[i] = list[i].turned()
		}
	}
	if o.has("--stat", "--numstat", "--summary") && !o.has("--apply") {
		w.patchStat(list, o)
		return nil
	}
	return w.applyAll(list, o.has("--index"), o.has("--cached"), o.has("--check"))
}

func (w *work) patchStat(list []*patched, o *options) {
	var counts []count
	for _, p := range list {
		n := count{name: p.name(), shown: arrow(p.old, p.name())}
		if p.old == "" || p.new == "" {
			n.shown = quoted(p.name())
		}
		for _, h := range p.hunks {
			for _, l := range h.lines {
				switch l.op {
				case '+':
					n.add++
				case '-':
					n.del++
				}
			}
		}
		counts = append(counts, n)
	}
	if o.has("--numstat") {
		for _, n := range counts {
			w.printf("%d\t%d\t%s\n", n.add, n.del, n.shown)
		}
	} else if o.has("--stat") {
		w.patchGraph(counts)
	}
	if o.has("--summary") {
		for _, p := range list {
			switch {
			case p.old == "":
				w.printf(" create mode %06o %s\n", uint32(p.mode), quoted(p.new))
			case p.new == "":
				w.printf(" delete mode %06o %s\n", uint32(p.mode), quoted(p.old))
			}
		}
	}
}

// patchGraph prints the statistic of apply, which is not that of diff.
func (w *work) patchGraph(list []count) {
	name, most := 0, 0
	for _, n := range list {
		name, most = max(name, len(n.shown)), max(most, n.add+n.del)
	}
	name = min(name, 50)
	for _, n := range list {
		add, del := n.add, n.del
		if width := max(min(79-name-10, most), 1); most > width {
			total := (add + del) * width / most
			add = (add*total + (add+del)/2) / max(add+del, 1)
			del = total - add
		}
		w.printf(" %-*s |%5d %s%s\n", name, n.shown, n.add+n.del, strings.Repeat("+", add), strings.Repeat("-", del))
	}
	w.printf("%s\n", summary(list))
}

// An outcome is what a patch makes of a file.
type outcome struct {
	*patched

	text []byte
	mode filemode.FileMode
}

// applyAll applies patches to worktree and index: all of them, or none.
func (w *work) applyAll(list []*patched, index, cached, check bool) error {
	idx, err := w.indexSide()
	if err != nil {
		return err
	}
	var out []outcome
	var bad strings.Builder
	for _, p := range list {
		r, complaint, err := w.applyOne(p, idx, index, cached)
		if err != nil {
			return err
		}
		bad.WriteString(complaint)
		out = append(out, r)
	}
	if bad.Len() > 0 {
		return &fatal{strings.TrimSuffix(bad.String(), "\n"), 1}
	}
	if check {
		return nil
	}
	after := side{map[string]item{}, w.blob}
	for n, i := range idx.files {
		after.files[n] = i
	}
	for _, r := range out {
		if r.old != "" && r.old != r.new {
			delete(after.files, r.old)
			if !cached {
				_ = w.t.View.Unlink(path.Join(w.dir, r.old)) // what stays is seen in status
				w.prune(r.old)
			}
		}
		if r.new == "" {
			continue
		}
		h, err := w.store(plumbing.BlobObject, r.text)
		if err != nil {
			return err
		}
		after.files[r.new] = item{r.mode, h}
		if !cached {
			if err := w.put(r.new, item{r.mode, h}, after); err != nil {
				return err
			}
		}
	}
	if !index && !cached {
		return nil
	}
	return w.bring(changes(idx, after, nil), after, false)
}

// applyOne applies a patch to one file, in memory.
func (w *work) applyOne(p *patched, idx side, index, cached bool) (r outcome, complaint string, err error) {
	r = outcome{patched: p, mode: p.mode}
	if p.binary {
		return r, "error: cannot apply binary patch to '" + p.name() + "' without full index line\nerror: " + p.name() + ": patch does not apply\n", nil
	}
	before := ""
	if p.old == "" {
		if _, err := w.t.View.Lstat(path.Join(w.dir, p.new)); err == nil && !cached {
			return r, "error: " + p.new + ": already exists in working directory\n", nil
		}
	} else {
		i, known := idx.files[p.old]
		if !known && (index || cached) {
			return r, "error: " + p.old + ": does not exist in index\n", nil
		}
		var b []byte
		mode := i.mode
		if cached {
			b, err = w.blob(p.old, i)
		} else if mode, err = w.modeOf(p.old); err == nil {
			b, err = w.contents(p.old, mode)
		}
		if err != nil {
			return r, "error: " + p.old + ": " + message(err) + "\n", nil
		}
		if index && plumbing.ComputeHash(plumbing.BlobObject, b) != i.hash {
			return r, "error: " + p.old + ": does not match index\n", nil
		}
		if r.mode == 0 || p.new == "" {
			r.mode = mode
		}
		before = string(b)
	}
	if r.mode == 0 {
		r.mode = filemode.Regular
	}
	text, bad := w.patchText(p, before)
	if bad > 0 {
		return r, fmt.Sprintf("error: patch failed: %s:%d\nerror: %s: patch does not apply\n", p.name(), bad, p.name()), nil
	}
	r.text = []byte(text)
	return r, "", nil
}
