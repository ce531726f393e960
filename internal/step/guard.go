package step

import (
	"cmp"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/gitconfigcheck"
	"github.com/paddock-sandbox/paddock/internal/protect"
)

// named is how names alone protect a path, also those above the root.
func (u *undo) named(at key) (rule string, hit protect.Hit) {
	if rule, hit = u.q.Protect.Match(at.path); hit != protect.Miss {
		return rule, hit
	}
	if above := u.above(at); above != "" {
		return u.q.Protect.Match(above + at.path)
	}
	return rule, hit
}

// above is the path of a root, where a protected name may begin, unless the root is such a place itself.
func (u *undo) above(at key) string {
	p := strings.Trim(string(u.rec.head.Roots[at.root].Path), "/")
	if _, hit := u.q.Protect.Match(p); p == "" || hit == protect.Protected {
		return ""
	}
	return p + "/"
}

// inGit reports whether a path is below a directory .git.
func (u *undo) inGit(at key) bool {
	return u.q.Protect.InGit(at.path) || u.q.Protect.InGit(u.above(at)+at.path)
}

// match returns how the names that the host trusts concern a path. bare means that they do because a directory of the path
// is a repository of git by what is in it.
func (u *undo) match(at key) (rule string, hit protect.Hit, bare bool) {
	if rule, hit = u.named(at); hit == protect.Protected {
		return rule, hit, false
	}
	for p, rest := range suffixes(at.path) {
		first, _, _ := strings.Cut(rest, "/")
		if !u.q.Protect.BelowGit(first) || !u.bareDir(key{at.root, p}, "", (*tree).mayHave) {
			continue
		}
		switch r, h := u.q.Protect.Match(".git/" + rest); {
		case h == protect.Protected:
			return r, h, true
		case h != protect.Miss && hit == protect.Miss:
			rule, hit, bare = r, h, true
		}
	}
	return rule, hit, bare
}

// suffixes yields each directory on a path, the root first, with the rest of the path.
func suffixes(p string) iter.Seq2[string, string] {
	return func(yield func(dir, rest string) bool) {
		for from := 0; yield(strings.TrimSuffix(p[:from], "/"), p[from:]); {
			next := strings.IndexByte(p[from:], '/')
			if next < 0 {
				return
			}
			from += next + 1
		}
	}
}

// bareDir reports whether git takes a directory for a bare repository, or would if it had a name as well.
func (u *undo) bareDir(dir key, also string, look func(*tree, string, func(func(string) bool))) (is bool) {
	look(u.tree(dir), dir.path, func(has func(string) bool) {
		is = slices.ContainsFunc(protect.BareParts(), func(parts []string) bool {
			return !slices.ContainsFunc(parts, func(part string) bool { return !protect.Same(part, also) && !has(part) })
		})
	})
	return is
}

// becomes returns the name in a directory that git would obey if the last name of a path made the directory a bare
// repository. That may be the last name itself.
func (u *undo) becomes(at key) (obeyed string) {
	dir, name := at.parent(), path.Base(at.path)
	if !protect.IsBarePart(name) || !u.bareDir(dir, name, (*tree).mayHave) || u.bareDir(dir, "", (*tree).names) {
		return ""
	}
	if _, hit := u.named(dir.in("config")); hit == protect.Protected { // names alone protect what is in it
		return ""
	}
	u.tree(dir).mayHave(dir.path, func(has func(string) bool) {
		for _, n := range u.q.Protect.GitNames() {
			if protect.Same(n, name) || has(n) {
				obeyed = n
				return
			}
		}
	})
	return obeyed
}

// claim keeps brokers of sandboxes from making a directory of a path a repository of git, until release. They claim the
// same directories for the names that matter.
func (u *undo) claim(at key) (release func(), err error) {
	var dirs []string
	for dir, rest := range suffixes(at.path) {
		first, _, more := strings.Cut(rest, "/")
		counts := !more && protect.IsBarePart(first)
		if !counts && u.q.Protect.BelowGit(first) {
			_, hit := u.q.Protect.Match(".git/" + rest)
			counts = hit != protect.Miss
		}
		if counts {
			dirs = append(dirs, dir)
		}
	}
	return u.tree(at).claim(u.ctx, dirs, &u.patience)
}

// A patience is how often an undo may wait for locks, all its paths together: a guest may hold each of them for ever.
type patience struct{ left int }

// claimTries is how often: a broker holds a claim for much less than a millisecond.
const claimTries = 500

// A heldError is a directory that a process has locked.
type heldError struct{ dir string }

func (e *heldError) Error() string {
	return fmt.Sprintf("a process holds a lock on the directory %q, in which a repository of git could come to be meanwhile", cmp.Or(e.dir, "."))
}

// guard returns why a file may not come back to a path.
func (u *undo) guard(x *item, at key, s *State) (why string) {
	set := u.q.Protect
	if name := u.becomes(at); name != "" {
		return fmt.Sprintf("with it the directory would be a repository of git, and git would obey its %s", name)
	}
	if s.Kind == Symlink && u.inGit(at) && !x.c.Seen {
		return u.either("a link below .git was not there under this name before the step", "it is a link below .git, which no sandbox may make")
	}
	rule, hit, bare := u.match(at)
	judged := hit == protect.Protected && set.Content(rule) == protect.Config && s.Kind == File
	switch {
	case hit == protect.Miss:
		return ""
	case hit == protect.Prefix && s.Kind == Dir:
		return ""
	case bare && !judged:
		// When the journal saw it the directory may not have been one, and so a sandbox may have written it.
		return u.protected(rule) + ", because its directory is a repository of git now, and may not have been one before the step"
	case u.review != nil && !judged && u.harmless(at, rule, s.Kind):
		return ""
	case u.review != nil && !judged:
		return u.protected(rule) + ", so what a sandbox puts there is not applied"
	case u.review == nil && !x.c.Seen:
		return u.protected(rule) + ", and the journal did not see it under this name"
	case judged:
		return u.judge(x, at, s)
	}
	return ""
}

// judge returns what is wrong with a configuration of git that is to come back.
func (u *undo) judge(x *item, at key, s *State) string {
	var old, restored []byte
	if x.n != nil && x.seen.Kind == File {
		text, _, err := u.tree(at).text(at.path, x.seen, gitconfigcheck.MaxSize)
		if err != nil {
			return fmt.Sprintf("the configuration of git that is there cannot be read: %v", err)
		}
		old = append([]byte{}, text...)
	}
	if s.Size > gitconfigcheck.MaxSize {
		return "it is a configuration of git, and too large to be judged"
	}
	restored = make([]byte, s.Size)
	if x.c.Kept > 0 {
		data, ok := u.has.data(x.c.Kept, x.c.Pack, s.Size)
		if !ok {
			return "its contents are not in the journal any more"
		}
		for e, err := range data {
			if err != nil || e.Offset+int64(len(e.Bytes)) > s.Size {
				return "the contents that were kept are damaged"
			}
			copy(restored[e.Offset:], e.Bytes)
		}
	} else if x.n != nil {
		restored = old
	}
	full := path.Join("/", string(u.target(at)), at.path)
	where := gitconfigcheck.Place{Dir: path.Dir(full), Worktree: path.Base(full) == "config.worktree"}
	if i := strings.Index(full, "/.git/modules/"); i >= 0 {
		where.Top = full[:i]
	}
	if err := gitconfigcheck.Judge(old, restored, where); err != nil {
		return fmt.Sprintf("the configuration of git%s is refused: %v", u.either(" from before", ""), err)
	}
	return ""
}

// target returns where the sandbox saw a root.
func (u *undo) target(at key) Text {
	for b, i := range u.roots {
		if i != at.root {
			continue
		}
		for _, r := range u.of.Roots {
			if r.bare() == b {
				return r.Target
			}
		}
	}
	return ""
}

func (u *undo) protected(rule string) string {
	if reason := u.q.Protect.Reason(rule); reason != "" {
		return fmt.Sprintf("the name is protected (%s: %s)", rule, reason)
	}
	return fmt.Sprintf("the name is protected (%s)", rule)
}

// mayRemove returns why what the step made may not be removed.
func (u *undo) mayRemove(at key) string {
	rule, hit, _ := u.match(at)
	if hit != protect.Protected {
		return ""
	}
	if u.review != nil {
		now, err := u.stat(at)
		if err == nil && (u.harmless(at, rule, now.Kind) || now.Kind == File && u.q.Protect.Content(rule) == protect.Config) {
			return ""
		}
		return u.protected(rule) + ", so no sandbox may remove it"
	}
	if u.q.Protect.Content(rule) == protect.None {
		return u.protected(rule) + ", so no sandbox made it"
	}
	return ""
}

// harmless reports whether a sandbox may make and remove a file under a protected name, because of what it is: a directory
// that git looks into, without what it looks for, or a sample of a hook.
func (u *undo) harmless(at key, rule string, kind Kind) bool {
	dir, base := at.parent(), path.Base(at.path)
	inside := func(k key) bool {
		if k.path == "" {
			return false
		}
		_, hit, _ := u.match(k)
		return hit == protect.Protected
	}
	switch content := u.q.Protect.Content(rule); {
	case content == protect.Hooks && inside(dir):
		return kind == File && protect.Sample(base) && path.Base(dir.path) == "hooks" && !inside(dir.parent())
	case inside(dir):
	case content == protect.Hooks:
		return kind == Dir && base == "hooks"
	case content == protect.Empty:
		return kind == Dir
	}
	return false
}

// mayMove returns why a file may not be moved back.
func (u *undo) mayMove(x *item, at key) string {
	for _, k := range []key{at, x.to} {
		if k == at && staged(at.path) { // an undo put it there
			continue
		}
		if rule, hit, _ := u.match(k); hit != protect.Miss {
			return u.protected(rule) + ", so no sandbox moved it"
		}
	}
	if name := u.becomes(x.to); name != "" {
		return fmt.Sprintf("with it the directory would be a repository of git, and git would obey its %s", name)
	}
	if u.inGit(x.to) && x.seen.Kind != File {
		return "only plain files are moved below .git"
	}
	return ""
}
