package cli

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/gitconfigcheck"
)

// commonDir returns the directory of the repository of a workspace that is a linked working tree or a submodule, if the
// repository is outside of the workspace.
//
// The workspace is not trusted: its file .git could name any directory, which an archive or an earlier sandbox could have
// prepared. So the repository must lead back to the workspace, belong to the same user, be a whole repository by itself,
// and be neither above the workspace nor a directory that a workspace may not be.
func commonDir(workspace, home string) (string, bool) {
	work, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return "", false
	}
	text, ok := smallFile(filepath.Join(work, ".git"))
	if !ok {
		return "", false
	}
	own, ok := strings.CutPrefix(text, "gitdir: ")
	if !ok {
		return "", false
	}
	if !filepath.IsAbs(own) {
		own = filepath.Join(work, own)
	}
	if own, err = filepath.EvalSymlinks(own); err != nil {
		return "", false
	}
	common := own
	switch {
	case filepath.Base(filepath.Dir(own)) == "worktrees":
		common = filepath.Dir(filepath.Dir(own))
		if !ofWorktree(own, work) {
			return "", false
		}
	case strings.Contains(own, "/.git/modules/"):
		if !ofSubmodule(own, work) {
			return "", false
		}
	default:
		return "", false
	}
	for _, dir := range []string{own, common} {
		if within(dir, work) || within(work, dir) || !sameOwner(dir, work) {
			return "", false
		}
	}
	if !isRepository(common) || tooMuch(common, home) != "" {
		return "", false
	}
	return common, true
}

// ofWorktree reports whether own is what a repository has of the linked working tree at work.
func ofWorktree(own, work string) bool {
	up, ok := smallFile(filepath.Join(own, "commondir"))
	back, found := smallFile(filepath.Join(own, "gitdir"))
	if !filepath.IsAbs(back) {
		back = filepath.Join(own, back)
	}
	return ok && found && up == "../.." && same(filepath.Dir(back), work) && filepath.Base(back) == ".git"
}

// ofSubmodule reports whether own is the repository of the submodule at work.
func ofSubmodule(own, work string) bool {
	config, ok := smallFile(filepath.Join(own, "config"))
	if !ok {
		return false
	}
	entries, err := gitconfigcheck.Parse([]byte(config))
	if err != nil {
		return false
	}
	leads := false
	for _, e := range entries {
		if e.Name() == "core.worktree" {
			leads = same(filepath.Join(own, e.Value), work)
		}
	}
	return leads
}

// isRepository reports whether a directory itself has what git needs of a repository, and none of it is a link.
func isRepository(dir string) bool {
	for name, kind := range map[string]fs.FileMode{"objects": fs.ModeDir, "refs": fs.ModeDir, "HEAD": 0, "config": 0} {
		if st, err := os.Lstat(filepath.Join(dir, name)); err != nil || st.Mode().Type() != kind {
			return false
		}
	}
	return true
}

// smallFile reads a regular file without waiting and without following a link, and cuts the line breaks at its end.
func smallFile(name string) (string, bool) {
	const most = 64 << 10
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", false
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return "", false
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil || len(data) > most {
		return "", false
	}
	return strings.TrimRight(string(data), "\r\n"), true
}

func same(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

func sameOwner(a, b string) bool {
	var x, y syscall.Stat_t
	return syscall.Stat(a, &x) == nil && syscall.Stat(b, &y) == nil && x.Uid == y.Uid
}
