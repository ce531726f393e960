package attestation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// A repository is what git keeps of a working tree: its own directory, and the one that all working trees share. They
// are the same, but for a linked working tree.
type repository struct {
	own, common *os.Root
}

func (r *repository) close() {
	_ = r.own.Close() // only read
	if r.common != r.own {
		_ = r.common.Close() // as above
	}
}

// place returns the directory that has a reference.
func (r *repository) place(name string) *os.Root {
	for _, of := range []string{"refs/worktree/", "refs/bisect/", "refs/rewritten/"} {
		if strings.HasPrefix(name, of) {
			return r.own
		}
	}
	if strings.HasPrefix(name, "refs/") {
		return r.common
	}
	return r.own
}

// openRepository opens the repository of a working tree. Its .git is a directory, or the file of a linked working tree.
func openRepository(dir *os.Root) (*repository, error) {
	st, err := dir.Lstat(gitName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no .git in %s: %w", dir.Name(), paddock.NotFound)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", err, paddock.Denied)
	case st.Mode().IsRegular():
		return openLinked(dir, st)
	case !st.IsDir():
		return nil, fmt.Errorf(".git is no directory: %w", paddock.Unsupported)
	}
	git, err := openBelow(dir, gitName)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Denied)
	}
	return &repository{git, git}, nil
}

// openLinked opens the repository of a linked working tree. The file .git is not trusted, because a command could have
// written it: what it names must be what a repository has of a linked working tree, and lead back to this one.
func openLinked(dir *os.Root, file fs.FileInfo) (_ *repository, err error) {
	notLinked := func(why string) error {
		return fmt.Errorf(".git is a file, and not that of a linked working tree: %s: %w", why, paddock.Unsupported)
	}
	text, err := readFile(dir, gitName, maxRef)
	if err != nil {
		return nil, err
	}
	at, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), "gitdir: ")
	if !ok || strings.ContainsAny(at, "\x00\n") {
		return nil, notLinked("it names no directory")
	}
	at = anchored(dir.Name(), at)
	if filepath.Base(filepath.Dir(at)) != "worktrees" {
		return nil, notLinked("it names no directory below worktrees")
	}
	r := &repository{}
	if r.own, err = openDir(at); err != nil {
		return nil, notLinked(err.Error())
	}
	defer func() {
		if err != nil {
			_ = r.own.Close() // only read
		}
	}()
	up, err := readFile(r.own, "commondir", maxRef)
	if err != nil || strings.TrimRight(string(up), "\r\n") != "../.." {
		return nil, notLinked("it leads to no repository")
	}
	back, err := readFile(r.own, "gitdir", maxRef)
	if err != nil {
		return nil, notLinked("its repository does not know it")
	}
	name := anchored(at, strings.TrimRight(string(back), "\r\n"))
	there, err := os.Lstat(name)
	if err != nil || filepath.Base(name) != gitName || !os.SameFile(there, file) {
		return nil, notLinked("its repository has another working tree of the name")
	}
	if r.common, err = openDir(filepath.Dir(filepath.Dir(at))); err != nil {
		return nil, notLinked(err.Error())
	}
	return r, nil
}

// openBelow opens a directory. The dot has the kernel look first, so that a FIFO or a device in its place is not opened.
func openBelow(dir *os.Root, name string) (*os.Root, error) { return dir.OpenRoot(name + "/.") }

// openDir opens a directory by its path, and no link to one.
func openDir(path string) (*os.Root, error) {
	st, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, err
	case !st.IsDir():
		return nil, fmt.Errorf("%s is no directory", path)
	}
	dir, err := os.OpenRoot(path + "/.") // see openBelow
	if err != nil {
		return nil, err
	}
	if now, err := dir.Stat("."); err != nil || !os.SameFile(st, now) {
		_ = dir.Close() // nothing was done with it
		return nil, errReplaced
	}
	return dir, nil
}

// anchored returns a path, which is relative to dir if it is not absolute.
func anchored(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}
