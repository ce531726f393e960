package git

import (
	"encoding/hex"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// file names a file of the repository.
func (w *work) file(elem ...string) string {
	return path.Join(append([]string{w.git}, elem...)...)
}

// readFile gives a file of the repository, without the newline at its end; ok
// is false where there is none.
func (w *work) readFile(name string) (string, bool) {
	b, err := w.t.View.ReadFile(w.file(name), 16<<20)
	return strings.TrimRight(string(b), "\n"), err == nil
}

func (w *work) writeFile(name, text string) error {
	full := w.file(name)
	if err := w.t.View.MkdirAll(path.Dir(full), 0o777); err != nil {
		return fail("cannot create '%s': %s", path.Dir(full), message(err))
	}
	if err := w.t.View.WriteFile(full, []byte(text), 0o666); err != nil {
		return fail("cannot write '%s': %s", full, message(err))
	}
	return nil
}

func (w *work) removeFiles(names ...string) {
	for _, n := range names {
		if err := w.t.View.Unlink(w.file(n)); err == linux.EISDIR {
			w.removeBelow(w.file(n))
		}
	}
}

func (w *work) removeBelow(dir string) {
	list, err := w.t.View.ReadDir(dir)
	if err != nil || strings.Count(dir, "/") > 200 {
		return
	}
	w.t.Traverse(len(list))
	for _, e := range list {
		if full := path.Join(dir, e.Name); e.Info.IsDir() {
			w.removeBelow(full)
		} else {
			_ = w.t.View.Unlink(full) // what stays is seen at the end
		}
	}
	_ = w.t.View.Rmdir(dir)
}

// An entry is a line of a reflog.
type entry struct {
	old, new plumbing.Hash
	who      string
	when     time.Time
	text     string
}

// entries reads a reflog, the latest entry first.
func (w *work) entries(ref string) []entry {
	text, ok := w.readFile("logs/" + ref)
	if !ok || text == "" {
		return nil
	}
	var out []entry
	for l := range strings.SplitSeq(text, "\n") {
		w.t.Step(4)
		head, msg, _ := strings.Cut(l, "\t")
		if len(head) < 82 {
			continue
		}
		e := entry{old: plumbing.NewHash(head[:40]), new: plumbing.NewHash(head[41:81]), text: msg}
		who := head[82:]
		if i := strings.LastIndex(who, "> "); i >= 0 {
			e.who = who[:i+1]
			e.when, _ = date("@" + who[i+2:]) // of a line that git did not write: none
		}
		out = append(out, e)
	}
	slices.Reverse(out)
	return out
}

// note adds a line to a reflog.
func (w *work) note(ref string, old, now plumbing.Hash, text string) error {
	if w.bare {
		return nil
	}
	who := &object.Signature{Name: "user", Email: "user@localhost", When: w.t.K.Now().UTC()}
	if s, err := w.signature("COMMITTER"); err == nil {
		who = s
	}
	name := "logs/" + ref
	b, err := w.t.View.ReadFile(w.file(name), 16<<20)
	if err != nil && err != linux.ENOENT && err != linux.ENOTDIR {
		return err
	}
	l := old.String() + " " + now.String() + " " + who.Name + " <" + who.Email + "> " + strconv.FormatInt(who.When.Unix(), 10) + who.When.Format(" -0700") + "\t" + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", " ") + "\n"
	return w.writeFile(name, string(b)+l)
}

// rewrite stores entries, the latest first, as the reflog.
func (w *work) rewrite(ref string, list []entry) error {
	var b strings.Builder
	for i := len(list) - 1; i >= 0; i-- {
		e := list[i]
		b.WriteString(e.old.String() + " " + e.new.String() + " " + e.who + " " + strconv.FormatInt(e.when.Unix(), 10) + e.when.Format(" -0700") + "\t" + e.text + "\n")
	}
	return w.writeFile("logs/"+ref, b.String())
}

// point makes a reference a commit's, and notes it.
func (w *work) point(ref plumbing.ReferenceName, h plumbing.Hash, text string) error {
	old := plumbing.ZeroHash
	if r, err := w.repo.Reference(ref, true); err == nil {
		old = r.Hash()
	}
	if err := w.repo.Storer.SetReference(plumbing.NewHashReference(ref, h)); err != nil {
		return err
	}
	if head, err := w.repo.Reference(plumbing.HEAD, false); err == nil && head.Type() == plumbing.SymbolicReference && head.Target() == ref {
		if err := w.note("HEAD", old, h, text); err != nil {
			return err
		}
	}
	if strings.HasPrefix(string(ref), "refs/tags/") {
		return nil
	}
	return w.note(string(ref), old, h, text)
}

// moveHead points the current branch, or a detached HEAD, at a commit.
func (w *work) moveHead(h plumbing.Hash, text string) error {
	if ref, err := w.repo.Reference(plumbing.HEAD, false); err == nil && ref.Type() == plumbing.SymbolicReference {
		return w.point(ref.Target(), h, text)
	}
	return w.point(plumbing.HEAD, h, text)
}

// dropRef removes a reference and its log.
func (w *work) dropRef(name plumbing.ReferenceName) error {
	w.removeFiles("logs/" + string(name))
	return w.repo.Storer.RemoveReference(name)
}

// lastBranch gives what was checked out n moves ago.
func (w *work) lastBranch(n int) (string, bool) {
	for _, e := range w.entries("HEAD") {
		rest, ok := strings.CutPrefix(e.text, "checkout: moving from ")
		if !ok {
			continue
		}
		from, _, ok := strings.Cut(rest, " to ")
		if n--; ok && n == 0 {
			return from, true
		}
	}
	return "", false
}

// refName finds the full name of what a short one may mean.
func (w *work) refName(name string) (*plumbing.Reference, bool) {
	for _, p := range []string{"", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/"} {
		if p == "" && strings.ToUpper(name) != name && !strings.HasPrefix(name, "refs/") {
			continue
		}
		if r, err := w.repo.Reference(plumbing.ReferenceName(p+name), true); err == nil {
			return plumbing.NewHashReference(plumbing.ReferenceName(p+name), r.Hash()), true
		}
	}
	if r, err := w.repo.Reference(plumbing.ReferenceName("refs/remotes/"+name+"/HEAD"), true); err == nil {
		return r, true
	}
	return nil, false
}

// unknown is what git says of a word that is no revision.
func unknown(rev string) error {
	return &fatal{"fatal: ambiguous argument '" + rev + "': unknown revision or path not in the working tree.\nUse '--' to separate paths from revisions, like this:\n'git <command> [<revision>...] -- [<file>...]'", 128}
}

// baseOf finds the object that a revision without suffixes names.
func (w *work) baseOf(name string) (plumbing.Hash, bool) {
	if name == "" || name == "@" {
		name = "HEAD"
	}
	if len(name) == 40 {
		if b, err := hex.DecodeString(name); err == nil && len(b) == 20 {
			return plumbing.NewHash(name), true
		}
	}
	if r, ok := w.refName(name); ok {
		return r.Hash(), true
	}
	if i := strings.LastIndex(name, "-g"); i > 0 {
		if h, ok := w.abbreviated(name[i+2:]); ok {
			return h, true
		}
	}
	return w.abbreviated(name)
}

// abbreviated finds the one object whose name begins so.
func (w *work) abbreviated(name string) (plumbing.Hash, bool) {
	if len(name) < 4 || len(name) > 40 {
		return plumbing.ZeroHash, false
	}
	name = strings.ToLower(name)
	prefix, err := hex.DecodeString(name[:len(name)&^1])
	if err != nil {
		return plumbing.ZeroHash, false
	}
	list, err := w.disk.objects.begin(prefix)
	if err != nil {
		return plumbing.ZeroHash, false
	}
	list = slices.DeleteFunc(list, func(h plumbing.Hash) bool { return !strings.HasPrefix(h.String(), name) })
	if len(list) > 1 { // a commit is meant rather than what is none
		list = slices.DeleteFunc(list, func(h plumbing.Hash) bool { _, err := w.repo.CommitObject(h); return err != nil })
	}
	if len(list) != 1 {
		return plumbing.ZeroHash, false
	}
	return list[0], true
}

// resolve finds the object that a revision names.
func (w *work) resolve(rev string) (plumbing.Hash, error) {
	w.t.Step(16)
	if before, name, ok := strings.Cut(rev, ":"); ok && !strings.Contains(before, "{") {
		return w.within(rev, before, name)
	}
	cut := len(rev)
	for i := 1; i < len(rev); i++ {
		if rev[i] == '^' || rev[i] == '~' || rev[i] == '@' && i+1 < len(rev) && rev[i+1] == '{' {
			cut = i
			break
		}
	}
	if strings.HasPrefix(rev, "@{") {
		cut = 0
	}
	base, rest := rev[:cut], rev[cut:]
	h, ok := plumbing.ZeroHash, false
	if strings.HasPrefix(rest, "@{") {
		end := strings.IndexByte(rest, '}')
		if end < 0 {
			return h, unknown(rev)
		}
		if h, ok = w.past(base, rest[2:end]); !ok {
			return h, unknown(rev)
		}
		rest = rest[end+1:]
	} else if h, ok = w.baseOf(base); !ok {
		return h, unknown(rev)
	}
	for rest != "" {
		var err error
		if h, rest, err = w.step(h, rest, rev); err != nil {
			return h, err
		}
	}
	return h, nil
}

// step takes one suffix of a revision.
func (w *work) step(h plumbing.Hash, rest, rev string) (plumbing.Hash, string, error) {
	w.t.Step(4)
	kind := rest[0]
	if kind == '^' && strings.HasPrefix(rest, "^{") {
		end := strings.IndexByte(rest, '}')
		if end < 0 {
			return h, "", unknown(rev)
		}
		to, err := w.peel(h, rest[2:end], rev)
		return to, rest[end+1:], err
	}
	i := 1
	for i < len(rest) && rest[i] >= '0' && rest[i] <= '9' {
		i++
	}
	n := 1
	if i > 1 {
		var err error
		if n, err = strconv.Atoi(rest[1:i]); err != nil {
			return h, "", unknown(rev)
		}
	}
	h, err := w.peel(h, "commit", rev)
	if err != nil {
		return h, "", err
	}
	switch kind {
	case '^':
		c, err := w.repo.CommitObject(h)
		switch {
		case n == 0:
		case err != nil || n > len(c.ParentHashes):
			return h, "", unknown(rev)
		default:
			h = c.ParentHashes[n-1]
		}
	case '~':
		for range n {
			w.t.Step(4)
			c, err := w.repo.CommitObject(h)
			if err != nil || len(c.ParentHashes) == 0 {
				return h, "", unknown(rev)
			}
			h = c.ParentHashes[0]
		}
	default:
		return h, "", unknown(rev)
	}
	return h, rest[i:], nil
}

// peel goes from tags, and commits, to what they are of.
func (w *work) peel(h plumbing.Hash, kind, rev string) (plumbing.Hash, error) {
	for range 64 {
		t, err := w.repo.TagObject(h)
		if err != nil {
			break
		}
		h = t.Target
	}
	x, err := w.repo.Storer.EncodedObject(plumbing.AnyObject, h)
	if err != nil {
		return h, unknown(rev)
	}
	if kind == "tree" && x.Type() == plumbing.CommitObject {
		c, err := w.repo.CommitObject(h)
		if err != nil {
			return h, err
		}
		return c.TreeHash, nil
	}
	if kind != "" && kind != "object" && x.Type().String() != kind {
		return h, fail("Not a valid object name %s", rev)
	}
	return h, nil
}

// within finds "commit:name" and ":name".
func (w *work) within(rev, before, name string) (plumbing.Hash, error) {
	if before == "" && strings.HasPrefix(name, "/") {
		return w.said(rev, name[1:])
	}
	if before == "" {
		stage := 0
		if len(name) > 2 && name[1] == ':' && name[0] >= '0' && name[0] <= '3' {
			stage, name = int(name[0]-'0'), name[2:]
		}
		idx, err := w.repo.Storer.Index()
		if err != nil {
			return plumbing.ZeroHash, err
		}
		for _, e := range idx.Entries {
			if e.Name == name && int(e.Stage) == stage {
				return e.Hash, nil
			}
		}
		return plumbing.ZeroHash, fail("path '%s' does not exist (neither on disk nor in the index)", name)
	}
	h, err := w.resolve(before)
	if err != nil {
		return h, fail("invalid object name '%s'.", before)
	}
	if h, err = w.peel(h, "tree", rev); err != nil {
		return h, err
	}
	if strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") {
		if name, err = w.relative(name); err != nil {
			return h, err
		}
	}
	if name = strings.Trim(name, "/"); name == "" || name == "." {
		return h, nil
	}
	t, err := w.repo.TreeObject(h)
	if err != nil {
		return h, err
	}
	e, err := t.FindEntry(name)
	if err != nil {
		if _, err := w.t.View.Lstat(path.Join(w.dir, name)); err == nil {
			return h, fail("path '%s' exists on disk, but not in '%s'", name, before)
		}
		return h, fail("path '%s' does not exist in '%s'", name, before)
	}
	return e.Hash, nil
}

// said finds the latest commit whose message matches.
func (w *work) said(rev, text string) (plumbing.Hash, error) {
	re, err := regexp.Compile(text)
	head := w.head()
	if err != nil || head == nil {
		return plumbing.ZeroHash, unknown(rev)
	}
	found := plumbing.ZeroHash
	err = w.walk([]*object.Commit{head}, nil, func(c *object.Commit) (bool, error) {
		if re.MatchString(c.Message) {
			found = c.Hash
		}
		return found.IsZero(), nil
	})
	if err != nil || found.IsZero() {
		return found, unknown(rev)
	}
	return found, nil
}

// past finds what a reference was, or its upstream.
func (w *work) past(base, what string) (plumbing.Hash, bool) {
	if what == "u" || what == "upstream" || what == "push" {
		if base == "" || base == "HEAD" || base == "@" {
			base, _ = w.branchName()
		}
		ref, _, ok := w.upstream(base)
		if !ok {
			return plumbing.ZeroHash, false
		}
		r, err := w.repo.Reference(ref, true)
		if err != nil {
			return plumbing.ZeroHash, false
		}
		return r.Hash(), true
	}
	n, err := strconv.Atoi(what)
	if err != nil {
		return plumbing.ZeroHash, false
	}
	if n < 0 && base == "" {
		name, ok := w.lastBranch(-n)
		if !ok {
			return plumbing.ZeroHash, false
		}
		return w.baseOf(name)
	}
	name := base
	switch base {
	case "":
		if ref, err := w.repo.Reference(plumbing.HEAD, false); err == nil && ref.Type() == plumbing.SymbolicReference {
			name = string(ref.Target())
		} else {
			name = "HEAD"
		}
	case "@":
		name = "HEAD"
	default:
		if r, ok := w.refName(base); ok {
			name = string(r.Name())
		}
	}
	list := w.entries(name)
	switch {
	case n >= 0 && n < len(list):
		return list[n].new, true
	case n == len(list) && n > 0 && !list[n-1].old.IsZero():
		return list[n-1].old, true
	}
	return plumbing.ZeroHash, false
}

// upstream gives the reference that a branch follows, and its short name.
func (w *work) upstream(branch string) (ref plumbing.ReferenceName, short string, ok bool) {
	remote, ok := w.configured("branch." + branch + ".remote")
	if !ok {
		return "", "", false
	}
	merge, ok := w.configured("branch." + branch + ".merge")
	if !ok {
		return "", "", false
	}
	name := strings.TrimPrefix(merge, "refs/heads/")
	if remote == "." {
		return plumbing.ReferenceName(merge), name, true
	}
	return plumbing.ReferenceName("refs/remotes/" + remote + "/" + name), remote + "/" + name, true
}

// commitOf finds the commit that a revision names.
func (w *work) commitOf(rev string) (*object.Commit, error) {
	h, err := w.resolve(rev)
	if err != nil {
		return nil, err
	}
	if h, err = w.peel(h, "commit", rev); err != nil {
		return nil, err
	}
	c, err := w.repo.CommitObject(h)
	if err != nil {
		return nil, fail("bad object %s", rev)
	}
	return c, nil
}
