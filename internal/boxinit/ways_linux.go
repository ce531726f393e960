package boxinit

import (
	"errors"
	"io"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock/internal/gitconfigcheck"
	"github.com/paddock-sandbox/paddock/internal/protect"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// git of the host sets core.worktree for each submodule, and writes the working tree's files there, from wherever the
// repository is entered. A guest may move the working tree away, with its file .git. So nothing may come to be on that
// path that a link could lead out of.

// ways are the absolute paths to which core.worktree of a repository, and those of its submodules, leads.
type ways struct {
	to      []string
	unknown bool // there may be more
	of      inode
	until   time.Time
}

const (
	waysFor     = time.Second // how long they are taken for unchanged: only the host adds one
	waysMax     = 1000        // directories that are remembered
	waysEntries = 50_000      // of .git/modules
	waysDepth   = 64
)

// staysPut reports whether a place may become what from is, or a link if from is nil: no working tree of a repository
// may be reached through a link then.
func (c *call) staysPut(op string, p, from *place) bool {
	for _, way := range c.waysBelow(p) {
		if from != nil && !linkOn(from.full+strings.TrimPrefix(way, p.full)) {
			continue
		}
		c.refuseFor(op, p.full, ".git/modules", "core.worktree of a repository leads there, and git of the host would write where the link leads")
		return false
	}
	return true
}

// linkOn reports whether a link may be on a path.
func linkOn(full string) bool {
	fd, err := sys.ResolvePlain(full)
	if err != nil {
		return !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ENOTDIR)
	}
	defer sys.Close(fd)
	st, err := sys.StatAt(fd, "")
	return err != nil || st.Mode&sys.TypeMask == sys.TypeLink
}

// waysBelow returns the working trees at a place or below it, by core.worktree of the repositories around it.
func (c *call) waysBelow(p *place) (found []string) {
	t := p.tree
	if t.protected == nil {
		return nil
	}
	if _, hit := t.protected.Match(".git/modules/x/config"); hit != protect.Protected {
		return nil // the caller gave it up
	}
	add := func(w ways) {
		if w.unknown {
			found = append(found, p.full)
		}
		for _, to := range w.to {
			if below(to, p.full) {
				found = append(found, to)
			}
		}
	}
	for at := path.Dir(p.full); below(at, t.path); at = path.Dir(at) {
		add(c.waysOf(path.Join(at, ".git")))
		if at == "/" {
			break
		}
	}
	// The repository of a linked working tree, or of a submodule, is a mount of its own.
	for i := range c.trees {
		if g := &c.trees[i]; g.protected != nil && g.above != "" && g.protected.InGit(g.above+"x") {
			add(c.waysOf(g.path))
		}
	}
	return found
}

// waysOf returns the ways of a repository, at the absolute path of its directory.
func (c *call) waysOf(repository string) ways {
	fd, err := sys.ResolvePlain(repository)
	if err != nil {
		return ways{unknown: mayExist(err) && !errors.Is(err, syscall.ELOOP)}
	}
	defer sys.Close(fd)
	st, err := sys.StatAt(fd, "")
	if err != nil || st.Mode&sys.TypeMask != sys.TypeDir {
		return ways{unknown: err != nil}
	}
	now, of := time.Now(), inode{st.Dev, st.Ino}
	if w, ok := c.ways[repository]; ok && w.of == of && now.Before(w.until) {
		return w
	}
	if len(c.ways) >= waysMax {
		clear(c.ways)
	}
	s := search{root: c.root, left: waysEntries}
	s.configs(fd, repository)
	for _, name := range []string{"modules", "worktrees"} {
		s.below(fd, repository, name, 0)
	}
	w := ways{to: s.to, unknown: s.left <= 0, of: of, until: now.Add(waysFor)}
	if !w.unknown {
		c.ways[repository] = w
	}
	return w
}

// A search collects the ways of a repository. The directories may be the guest's.
type search struct {
	root string
	to   []string
	left int // entries that it still looks at
}

// configs reads the configurations in a directory.
func (s *search) configs(dir int, full string) {
	for _, name := range []string{"config", "config.worktree"} {
		content, _, err := readPlain(dir, name, gitconfigcheck.MaxSize)
		values, known := gitconfigcheck.Worktrees(content)
		if err != nil && !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.ELOOP) || !known { // no file, or a link of the host
			s.left = 0
		}
		for _, to := range values {
			if path.IsAbs(to) {
				s.to = append(s.to, s.root+path.Clean(to))
			} else {
				s.to = append(s.to, path.Join(full, to))
			}
		}
	}
}

// below looks into a directory in which there are repositories at any depth. Objects have no names of their own.
func (s *search) below(in int, above, name string, depth int) {
	if depth > waysDepth {
		s.left = 0
	}
	if s.left <= 0 {
		return
	}
	fd, err := sys.OpenAt(in, name, syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		if mayExist(err) && !errors.Is(err, syscall.ELOOP) {
			s.left = 0
		}
		return
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	full := path.Join(above, name)
	s.configs(fd, full)
	for s.left > 0 {
		names, err := f.Readdirnames(256) // and not ReadDir: see namesIn
		s.left -= len(names)
		for _, base := range names {
			if name == "objects" && (len(base) == 2 || base == "pack" || base == "info") {
				continue
			}
			switch st, err := sys.StatAt(fd, base); {
			case err != nil && mayExist(err):
				s.left = 0
			case err == nil && st.Mode&sys.TypeMask == sys.TypeDir:
				s.below(fd, full, base, depth+1)
			}
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			s.left = 0
		}
	}
}
