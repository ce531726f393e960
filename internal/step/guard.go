package step

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/gitconfigcheck"
	"github.com/paddock-sandbox/paddock/internal/protect"
)

// match returns how the names that the host trusts concern a path: also as part of a bare repository.
func (u *undo) match(at key) (rule string, hit protect.Hit) {
	set := u.q.Protect
	if rule, hit = set.Match(at.path); hit == protect.Protected {
		return rule, hit
	}
	for i := strings.IndexByte(at.path, '/'); i >= 0; {
		rest := at.path[i+1:]
		first, _, _ := strings.Cut(rest, "/")
		if set.BelowGit(first) && u.bareDir(key{at.root, at.path[:i]}, "") {
			if rule, hit := set.Match(".git/" + rest); hit == protect.Protected {
				return rule, hit
			}
		}
		next := strings.IndexByte(rest, '/')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	if first, _, _ := strings.Cut(at.path, "/"); set.BelowGit(first) && u.bareDir(key{at.root, ""}, "") {
		if rule, hit := set.Match(".git/" + at.path); hit == protect.Protected {
			return rule, hit
		}
	}
	return rule, hit
}

// bareDir reports whether git takes a directory for a bare repository, or would if it had a name as well.
func (u *undo) bareDir(dir key, also string) (is bool) {
	u.tree(dir).names(dir.path, func(has func(string) bool) {
		is = slices.ContainsFunc(protect.BareParts(), func(parts []string) bool {
			return !slices.ContainsFunc(parts, func(part string) bool { return !protect.Same(part, also) && !has(part) })
		})
	})
	return is
}

// becomes returns the name in a directory that git would obey if the last name of a path made the directory a bare
// repository.
func (u *undo) becomes(at key) (obeyed string) {
	dir, name := at.parent(), path.Base(at.path)
	if !protect.IsBarePart(name) || !u.bareDir(dir, name) || u.bareDir(dir, "") {
		return ""
	}
	if strings.EqualFold(path.Base(dir.path), ".git") { // names alone protect what is in it
		return ""
	}
	u.tree(dir).names(dir.path, func(has func(string) bool) {
		for _, n := range u.q.Protect.GitNames() {
			if first, _, _ := strings.Cut(n, "/"); has(first) && has(n) {
				obeyed = n
				return
			}
		}
	})
	return obeyed
}

// guard returns why a file may not come back to a path.
func (u *undo) guard(x *item, at key, s *State) (why string) {
	set := u.q.Protect
	if name := u.becomes(at); name != "" {
		return fmt.Sprintf("with it the directory would be a repository of git, and git would obey its %s", name)
	}
	if s.Kind == Symlink && set.InGit(at.path) && !x.c.Seen {
		return "a link below .git was not there under this name before the step"
	}
	rule, hit := u.match(at)
	switch {
	case hit == protect.Miss:
		return ""
	case hit == protect.Prefix && s.Kind == Dir:
		return ""
	case !x.c.Seen:
		return u.protected(rule) + ", and the journal did not see it under this name"
	case hit == protect.Protected && set.Content(rule) == protect.Config && s.Kind == File:
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
		for e, err := range u.j.store.Data(u.has[x.c.Kept]) {
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
		return fmt.Sprintf("the configuration of git from before is refused: %v", err)
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
func (u *undo) mayRemove(x *item, at key) string {
	rule, hit := u.match(at)
	if hit == protect.Protected && u.q.Protect.Content(rule) == protect.None {
		return u.protected(rule) + ", so no sandbox made it"
	}
	return ""
}

// mayMove returns why a file may not be moved back.
func (u *undo) mayMove(x *item, at key) string {
	set := u.q.Protect
	for _, k := range []key{at, x.to} {
		if x.temp && k == at {
			continue
		}
		if rule, hit := u.match(k); hit != protect.Miss {
			return u.protected(rule) + ", so no sandbox moved it"
		}
	}
	if name := u.becomes(x.to); name != "" {
		return fmt.Sprintf("with it the directory would be a repository of git, and git would obey its %s", name)
	}
	if set.InGit(x.to.path) && x.seen.Kind != File {
		return "only plain files are moved below .git"
	}
	return ""
}
