package build

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/moby/patternmatcher"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image/dockerfile"
)

const maxMatches = 10_000 // of a pattern

// contextFiles are the files beside a Dockerfile. Whatever somebody makes of them meanwhile, nothing outside of the
// directory is opened, and nothing is waited for.
type contextFiles struct{ root *os.Root }

func (c contextFiles) Lstat(name string) (fs.FileInfo, error)  { return c.root.Lstat(name) }
func (c contextFiles) ReadLink(name string) (string, error)    { return c.root.Readlink(name) }
func (c contextFiles) ReadDir(n string) ([]fs.DirEntry, error) { return fs.ReadDir(c.root.FS(), n) }

func (c contextFiles) Open(name string) (fs.File, error) {
	return c.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// A copier copies what one instruction names.
type copier struct {
	w    *writer
	step *dockerfile.Copy
	from files
	what string // the files are those of: "the context", …
	own  bool   // owners are kept; else all is root's

	ignored  *patternmatcher.PatternMatcher // nil ignores nothing
	excluded *patternmatcher.PatternMatcher // likewise
}

func (c *copier) look(name string) (node, bool, error) { return lookIn(c.from, name) }

// run copies all.
func (c *copier) run() error {
	var sources []string
	for _, p := range c.step.Paths {
		list, err := c.match(p)
		if err != nil {
			return err
		}
		sources = append(sources, list...)
	}
	if n := len(sources) + len(c.step.Inline); n > 1 && !strings.HasSuffix(c.step.To, "/") {
		return fmt.Errorf("%d files are copied to %s: end its name with a slash, because it has to be a directory: %w", n, c.step.To, paddock.Invalid)
	}
	for _, f := range c.step.Inline {
		at, err := c.target(path.Base(f.Name), "")
		if err != nil {
			return err
		}
		own := file{kind: tar.TypeReg, mode: 0o644, size: int64(len(f.Data)), when: time.Unix(0, 0)}
		if err := c.w.put(at, own, strings.NewReader(f.Data)); err != nil {
			return err
		}
	}
	for _, name := range sources {
		if err := c.source(name); err != nil {
			return err
		}
	}
	return nil
}

// match returns the names that a pattern is for.
func (c *copier) match(pattern string) ([]string, error) {
	if !strings.ContainsAny(pattern, `*?[\`) {
		return []string{pattern}, nil
	}
	found := []string{""}
	for part := range strings.SplitSeq(pattern, "/") {
		var next []string
		for _, dir := range found {
			at, there, n, err := resolve(c.look, dir, true)
			if err != nil {
				return nil, err
			}
			if !there || !n.isDir() {
				continue
			}
			list, err := c.from.ReadDir(dot(at))
			if err != nil {
				return nil, fmt.Errorf("%s: %w: %w", clip(dir), err, paddock.Denied)
			}
			for _, e := range list {
				ok, err := path.Match(part, e.Name())
				if err != nil {
					return nil, fmt.Errorf("%s: it is no pattern: %w", clip(pattern), paddock.Invalid)
				}
				if ok {
					next = append(next, path.Join(dir, e.Name()))
				}
			}
			if len(next) > maxMatches {
				return nil, fmt.Errorf("%s: it is for more than %d files: %w", clip(pattern), maxMatches, paddock.Exhausted)
			}
		}
		found = next
	}
	kept := found[:0]
	for _, name := range found {
		if left, err := c.left(name); err != nil {
			return nil, err
		} else if !left {
			kept = append(kept, name)
		}
	}
	if len(kept) == 0 {
		return nil, fmt.Errorf("%s: there is nothing of such a name in %s: %w", clip(pattern), c.what, paddock.NotFound)
	}
	return kept, nil
}

func dot(name string) string {
	if name == "" {
		return "."
	}
	return name
}

// left reports whether a file is left out.
func (c *copier) left(name string) (bool, error) {
	for _, m := range []*patternmatcher.PatternMatcher{c.ignored, c.excluded} {
		if m == nil || name == "" {
			continue
		}
		out, err := m.MatchesOrParentMatches(name)
		if err != nil {
			return false, fmt.Errorf("%s: %w: %w", clip(name), err, paddock.Invalid)
		}
		if out {
			return true, nil
		}
	}
	return false, nil
}

// again reports whether something below a directory that is left out may be taken after all.
func (c *copier) again() bool {
	return c.ignored != nil && c.ignored.Exclusions() || c.excluded != nil && c.excluded.Exclusions()
}

// source copies a file, or what is in a directory.
func (c *copier) source(name string) error {
	at, there, n, err := resolve(c.look, name, true)
	if err != nil {
		return err
	}
	left, err := c.left(name)
	if err != nil {
		return err
	}
	switch {
	case !there && at != name:
		return fmt.Errorf("%s: it is a link that leads to nothing in %s: what is outside is never copied: %w", clip(name), c.what, paddock.NotFound)
	case !there:
		return fmt.Errorf("%s: it is not in %s: %w", clip(name), c.what, paddock.NotFound)
	case left && (!n.isDir() || !c.again()):
		return fmt.Errorf("%s: .dockerignore or --exclude leaves it out: %w", clip(name), paddock.NotFound)
	case n.isDir():
		to := strings.TrimPrefix(c.step.To, "/")
		if c.step.Parents {
			to = path.Join(to, name)
		}
		to, err := c.w.directory(to)
		if err != nil {
			return err
		}
		return c.below(at, to, 0)
	}
	if c.step.Unpack && n.mode.IsRegular() {
		if done, err := c.unpack(at); done || err != nil {
			return err
		}
	}
	to, err := c.target(path.Base(name), path.Dir(name))
	if err != nil {
		return err
	}
	return c.file(at, to)
}

// target is where a file of this name goes, without links. The directory of the source counts with --parents.
func (c *copier) target(base, dir string) (string, error) {
	to := strings.TrimPrefix(c.step.To, "/")
	_, there, n, err := c.w.t.resolve(to, true)
	if err != nil {
		return "", err
	}
	if !strings.HasSuffix(c.step.To, "/") && (!there || !n.isDir()) && !c.step.Parents {
		dir, base := path.Split(to)
		at, err := c.w.directory(dir)
		return path.Join(at, base), err
	}
	if c.step.Parents {
		to = path.Join(to, dir)
	}
	at, err := c.w.directory(to)
	return path.Join(at, base), err
}

// below copies what is in a directory. Links are copied as links.
func (c *copier) below(dir, to string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%s: it is in more than %d directories, one in the other: %w", clip(dir), maxDepth, paddock.Unsupported)
	}
	list, err := c.from.ReadDir(dot(dir))
	if err != nil {
		return fmt.Errorf("%s: %w: %w", clip(dir), err, paddock.Denied)
	}
	for _, e := range list {
		name, at := path.Join(dir, e.Name()), path.Join(to, e.Name())
		left, err := c.left(name)
		if err != nil {
			return err
		}
		if !e.IsDir() {
			if !left {
				if _, err := c.w.directory(to); err != nil {
					return err
				}
				err = c.file(name, at)
			}
			if err != nil {
				return err
			}
			continue
		}
		if left && !c.again() {
			continue
		}
		real, there, n, err := c.w.t.resolve(at, true)
		switch {
		case err != nil:
			return err
		case there && n.isDir():
			at = real
		case !left:
			if err := c.file(name, at); err != nil {
				return err
			}
		}
		if err := c.below(name, at, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// file copies one file, a link as a link and a directory without what is in it.
func (c *copier) file(name, to string) error {
	st, err := c.from.Lstat(name)
	if err != nil {
		return fmt.Errorf("%s: %w: %w", clip(name), err, paddock.Conflict)
	}
	f := file{mode: permissions(st.Mode()), when: st.ModTime()}
	if own, ok := st.(interface {
		UID() uint32
		GID() uint32
	}); ok && c.own {
		f.uid, f.gid = int(own.UID()), int(own.GID())
	}
	switch m := st.Mode(); {
	case m.IsRegular():
		return c.content(name, to, f)
	case m.IsDir():
		f.kind = tar.TypeDir
	case m&fs.ModeSymlink != 0:
		f.kind, f.mode = tar.TypeSymlink, 0o777
		if f.link, err = c.from.ReadLink(name); err != nil {
			return fmt.Errorf("%s: %w: %w", clip(name), err, paddock.Conflict)
		}
		if f.link == "" || len(f.link) >= maxName {
			return fmt.Errorf("%s: it is a link to nothing: %w", clip(name), paddock.Invalid)
		}
	case m&fs.ModeSocket != 0:
		return nil // it is nobody's without the program that listens
	default:
		return fmt.Errorf("%s: it is neither a file, a directory nor a link: %w", clip(name), paddock.Unsupported)
	}
	return c.w.put(to, f, nil)
}

// content copies a regular file.
func (c *copier) content(name, to string, f file) error {
	in, size, err := c.open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	f.kind, f.size = tar.TypeReg, size
	return c.w.put(to, f, in)
}

// open opens a regular file. What was put in its place meanwhile is refused.
func (c *copier) open(name string) (io.ReadCloser, int64, error) {
	in, err := c.from.Open(name)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w: %w", clip(name), err, paddock.Denied)
	}
	st, err := in.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s became something else while it was copied: %w", clip(name), paddock.Conflict)
	}
	if err != nil {
		return nil, 0, errors.Join(err, in.Close())
	}
	return in, st.Size(), nil
}

// permissions are the bits of a mode as an archive has them.
func permissions(m fs.FileMode) int64 {
	bits := int64(m.Perm())
	for bit, flag := range map[int64]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if m&flag != 0 {
			bits |= bit
		}
	}
	return bits
}
