package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
)

func (a *App) copyCommand() *cobra.Command {
	var f RemoteFlags
	c := &cobra.Command{
		Use:   "cp [flags] SOURCE TARGET",
		Short: "Copy files into a sandbox, or out of it",
		Long: `Copy a file, or a directory with all that is in it, into a sandbox or out of it. One
of the two is ID:/PATH. If the target is a directory, or ends with a slash, the
copy is made in it, under its own name; else it is made as the target. "-" is
standard input or output, for one file.

Permission bits are kept, links are copied as links, and what is neither file,
directory nor link is left out and told. What comes out of a sandbox is written in
the target and nowhere else, whatever names and links it holds: think before you
follow one of its links yourself.

Exit status: 0, 1 if something was left out, 125 if Paddock itself failed.`,
		Example: `  paddock cp ./data "$id":/tmp/
  paddock cp "$id":/tmp/report.md .
  paddock cp "$id":/tmp/report.md - | less`,
		Args:                  cobra.ExactArgs(2),
		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, args []string) error {
			from, out := inBox(args[0])
			to, in := inBox(args[1])
			if in == out {
				return WithHint(fmt.Errorf("one of the two is in a sandbox, and the other on this machine: %w", paddock.Invalid), "paddock cp PATH ID:/PATH, or paddock cp ID:/PATH PATH; a file whose name has a colon is ./NAME")
			}
			return a.With(c.Context(), &f, func(ctx context.Context, r *Remote) error {
				id := from.id
				if in {
					id = to.id
				}
				sb, err := r.Open(ctx, id)
				if err != nil {
					return err
				}
				cp := &copying{files: sb.FS(), a: a}
				defer a.progress("copying")()
				if in {
					err = cp.in(ctx, args[0], to.path)
				} else {
					err = cp.out(ctx, from.path, args[1])
				}
				if err == nil && cp.left > 0 {
					err = ExitStatus(1)
				}
				return err
			})
		},
	}
	f.register(c.Flags())
	return c
}

// A boxPath is a path in a sandbox.
type boxPath struct {
	id   paddock.ID
	path string
}

// inBox reads ID:/PATH.
func inBox(text string) (boxPath, bool) {
	id, name, ok := strings.Cut(text, ":")
	if !ok || !paddock.ID(id).Valid() || !strings.HasPrefix(name, "/") {
		return boxPath{}, false
	}
	return boxPath{paddock.ID(id), name}, true
}

// copying is one call of paddock cp.
type copying struct {
	files paddock.FS
	a     *App
	left  int // what was left out
}

// maxDepth bounds how deep directories of a sandbox are followed.
const maxDepth = 1000

func (c *copying) leaveOut(name, why string) {
	c.left++
	fmt.Fprintf(c.a.Stderr, "paddock: %s was left out: %s\n", OneLine(name), why)
}

// in copies from this machine.
func (c *copying) in(ctx context.Context, from, to string) error {
	target := path.Clean(to)
	into := strings.HasSuffix(to, "/")
	if st, err := c.files.Stat(ctx, target); err == nil && (st.Mode.IsDir() || st.Mode.Type() == fs.ModeSymlink && into) {
		into = true
	}
	if from == "-" {
		if into {
			return WithHint(fmt.Errorf("standard input has no name to have in %s: %w", to, paddock.Invalid), "name the file")
		}
		r, w := io.Pipe()
		defer context.AfterFunc(ctx, func() { r.CloseWithError(ctx.Err()) })()
		// As in a session: nothing can interrupt a read of someone else's pipe, so
		// this one may outlive the copy, and ends with its next read.
		go func() {
			_, err := io.Copy(w, onlyReader{c.a.Stdin})
			w.CloseWithError(err)
		}()
		return c.write(ctx, target, 0o644, r)
	}
	dir, err := c.a.Dir()
	if err != nil {
		return err
	}
	from = Absolute(from, dir)
	if into {
		target = path.Join(target, filepath.Base(from))
	}
	st, err := os.Stat(from) // a link that the caller names is meant with what it leads to
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return WithHint(fmt.Errorf("%s: there is no such file or directory: %w", from, paddock.NotFound), "%s", orTilde(from, "check the name"))
	case err != nil:
		return fmt.Errorf("%w: %w", err, paddock.Denied)
	case !st.IsDir():
		f, err := os.Open(from)
		if err != nil {
			return fmt.Errorf("%w: %w", err, paddock.Denied)
		}
		defer f.Close()
		return c.write(ctx, target, st.Mode().Perm(), f)
	}
	root, err := os.OpenRoot(from)
	if err != nil {
		return fmt.Errorf("%w: %w", err, paddock.Denied)
	}
	defer root.Close()
	return c.inDir(ctx, root, ".", target, st.Mode().Perm())
}

// inDir copies a directory below root. Its own mode comes last: it may forbid to
// write in it.
func (c *copying) inDir(ctx context.Context, root *os.Root, name, target string, mode fs.FileMode) error {
	if err := c.files.Mkdir(ctx, target, paddock.MkdirOptions{Mode: mode | 0o700, Parents: true}); err != nil {
		return err
	}
	d, err := root.Open(name)
	if err != nil {
		return fmt.Errorf("%w: %w", err, paddock.Denied)
	}
	entries, err := d.ReadDir(-1)
	d.Close()
	if err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		if err := c.inEntry(ctx, root, filepath.Join(name, e.Name()), path.Join(target, e.Name())); err != nil {
			return err
		}
	}
	return c.files.Chmod(ctx, target, mode)
}

func (c *copying) inEntry(ctx context.Context, root *os.Root, name, target string) error {
	st, err := root.Lstat(name)
	if err != nil {
		return err
	}
	switch st.Mode().Type() {
	case fs.ModeDir:
		return c.inDir(ctx, root, name, target, st.Mode().Perm())
	case fs.ModeSymlink:
		link, err := root.Readlink(name)
		if err != nil {
			return err
		}
		if err := c.files.Remove(ctx, target, false); err != nil && !errors.Is(err, paddock.NotFound) {
			return err
		}
		return c.files.Symlink(ctx, link, target)
	case 0:
		f, err := root.Open(name)
		if err != nil {
			return fmt.Errorf("%w: %w", err, paddock.Denied)
		}
		defer f.Close()
		return c.write(ctx, target, st.Mode().Perm(), f)
	}
	c.leaveOut(filepath.Join(root.Name(), name), "it is no file, directory or link")
	return nil
}

// write makes a file in the sandbox. One that is there keeps its mode while it is
// written, so it gets the new one last.
func (c *copying) write(ctx context.Context, target string, mode fs.FileMode, from io.Reader) error {
	w, err := c.files.Create(ctx, target, paddock.CreateOptions{Mode: mode | 0o200, Parents: true})
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = w.Close() }) // what is said of a copy that was given up is not wanted
	_, err = io.Copy(w, onlyReader{from})
	if stop() {
		err = errors.Join(err, w.Close())
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	return c.files.Chmod(ctx, target, mode)
}

// out copies to this machine.
func (c *copying) out(ctx context.Context, from, to string) error {
	source := path.Clean(from)
	st, err := c.files.Stat(ctx, source)
	if err != nil {
		return err
	}
	if st.Mode.Type() == fs.ModeSymlink && strings.HasSuffix(from, "/") {
		return WithHint(fmt.Errorf("%s is a link: %w", from, paddock.Invalid), "name what it leads to: %s", OneLine(st.Link))
	}
	if to == "-" {
		if !st.Mode.IsRegular() {
			return WithHint(fmt.Errorf("%s is no file: %w", from, paddock.Invalid), "only a file goes to standard output")
		}
		return c.read(ctx, source, c.a.Stdout)
	}
	dir, err := c.a.Dir()
	if err != nil {
		return err
	}
	target := Absolute(to, dir)
	base := path.Base(source)
	if info, err := os.Stat(target); err == nil && info.IsDir() {
		if base == "/" {
			base = "."
		}
	} else {
		if strings.HasSuffix(to, "/") {
			return WithHint(fmt.Errorf("%s: there is no such directory: %w", to, paddock.NotFound), "make it with mkdir, or leave the slash out")
		}
		base, target = filepath.Base(target), filepath.Dir(target)
	}
	root, err := os.OpenRoot(target)
	if err != nil {
		return fmt.Errorf("%w: %w", err, paddock.Denied)
	}
	defer root.Close()
	return c.outEntry(ctx, root, st, source, base, 0)
}

// outEntry copies one thing to name below root, which nothing leads out of.
func (c *copying) outEntry(ctx context.Context, root *os.Root, st paddock.FileInfo, source, name string, depth int) error {
	switch st.Mode.Type() {
	case fs.ModeDir:
		return c.outDir(ctx, root, st, source, name, depth)
	case fs.ModeSymlink:
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: %w", err, paddock.Denied)
		}
		if err := root.Symlink(st.Link, name); err != nil {
			return fmt.Errorf("%w: %w", err, paddock.Denied)
		}
		return nil
	case 0:
		return c.outFile(ctx, root, st.Mode.Perm(), source, name)
	}
	c.leaveOut(source, "it is no file, directory or link")
	return nil
}

func (c *copying) outFile(ctx context.Context, root *os.Root, mode fs.FileMode, source, name string) error {
	if old, err := root.Lstat(name); err == nil && !old.Mode().IsRegular() {
		return WithHint(fmt.Errorf("%s is there, and is no file: %w", filepath.Join(root.Name(), name), paddock.Exists), "remove it, or name another target")
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode|0o200)
	if err != nil {
		return fmt.Errorf("%w: %w", err, paddock.Denied)
	}
	err = c.read(ctx, source, f)
	if err == nil {
		err = f.Chmod(mode)
	}
	return errors.Join(err, f.Close())
}

// read copies a file of the sandbox.
func (c *copying) read(ctx context.Context, source string, to io.Writer) error {
	r, err := c.files.Open(ctx, source, paddock.OpenOptions{})
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { r.Close() })
	_, err = io.Copy(to, r)
	if stop() {
		err = errors.Join(err, r.Close())
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// outDir copies a directory. What the sandbox says is in it is taken only where
// it is a plain name.
func (c *copying) outDir(ctx context.Context, root *os.Root, st paddock.FileInfo, source, name string, depth int) error {
	if depth >= maxDepth {
		return fmt.Errorf("%s: directories are deeper than %d: %w", OneLine(source), maxDepth, paddock.Exhausted)
	}
	made := name != "."
	if made {
		switch err := root.Mkdir(name, st.Mode.Perm()|0o700); {
		case errors.Is(err, fs.ErrExist):
			if old, err := root.Lstat(name); err != nil || !old.IsDir() {
				return WithHint(fmt.Errorf("%s is there, and is no directory: %w", filepath.Join(root.Name(), name), paddock.Exists), "remove it, or name another target")
			}
		case err != nil:
			return fmt.Errorf("%w: %w", err, paddock.Denied)
		}
	}
	var entries []paddock.FileInfo
	for e, err := range c.files.List(ctx, source, 1) {
		if err != nil {
			return err
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b paddock.FileInfo) int { return strings.Compare(a.Name, b.Name) })
	for _, e := range entries {
		base := path.Base(e.Name)
		if path.Join(source, base) != e.Name || !filepath.IsLocal(base) || base == "." || strings.ContainsRune(base, filepath.Separator) {
			return fmt.Errorf("the sandbox says that %q is in %q: %w", e.Name, source, paddock.Invalid)
		}
		if err := c.outEntry(ctx, root, e, e.Name, filepath.Join(name, base), depth+1); err != nil {
			return err
		}
	}
	if !made {
		return nil
	}
	if err := root.Chmod(name, st.Mode.Perm()); err != nil {
		return fmt.Errorf("%w: %w", err, paddock.Denied)
	}
	return nil
}
