package cli

import (
	"bufio"
	"bytes"
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
	"github.com/paddock-sandbox/paddock/internal/protect"
)

func (a *App) copyCommand() *cobra.Command {
	var f RemoteFlags
	var unprotect listFlag
	c := &cobra.Command{
		Use:   "cp [flags] SOURCE TARGET",
		Short: "Copy files into a sandbox, or out of it",
		Long: `Copy a file, or a directory with all that is in it, into a sandbox or out of it. One
of the two is ID:/PATH. If the target is a directory, or ends with a slash, the
copy is made in it, under its own name; else it is made as the target. "-" is
standard input or output, for one file.

Permission bits are kept, links are copied as links, and what is neither file,
directory nor link is left out and told. A directory that is here already gives other
users no rights that it did not give before. What comes out of a sandbox is written in
the target and nowhere else, whatever names and links it holds: think before you
follow one of its links yourself. Of a directory that comes out, protected names are
left out and told, such as .git/hooks, unless they are what is there already: programs
on this machine obey them without being asked. --unprotect NAME copies one.

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
				if cp.names, err = protectedBut(unprotect); err != nil {
					return err
				}
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
	c.Flags().Var(&unprotect, "unprotect", "copy a protected `name` such as .git/hooks out, too (repeatable)")
	return c
}

// protectedBut returns the protected names without some.
func protectedBut(names []string) (*protect.Set, error) {
	for _, name := range names {
		if err := checkUnprotect(name); err != nil {
			return nil, err
		}
	}
	return protect.New(nil, names)
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
	names *protect.Set // that are not copied out; nil is all protected ones
	above string       // path of the target, which is a part of names; empty if the caller named a protected one itself
	bare  []string     // directories that come out and are bare repositories, which git obeys as it does .git
	left  int          // what was left out
	fresh bool         // names come from the sandbox: no link is made, and nothing replaced
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
	root, err := c.into(target)
	if err != nil {
		return err
	}
	defer root.Close()
	if _, hit := c.names.Match(path.Join(c.above, base)); hit == protect.Protected {
		c.above = ""
	}
	return c.outEntry(ctx, root, st, source, base, 0)
}

// into opens a directory of this machine to copy to.
func (c *copying) into(target string) (*os.Root, error) {
	root, err := os.OpenRoot(target)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Denied)
	}
	if c.names == nil {
		if c.names, err = protect.New(nil, nil); err != nil {
			return nil, errors.Join(err, root.Close())
		}
	}
	if real, err := filepath.EvalSymlinks(target); err == nil {
		c.above = filepath.ToSlash(real)
	}
	return root, nil
}

// contents copies what is in a directory of the sandbox to one of this machine, and returns the names that are there then.
// They are of the sandbox's choice.
func (c *copying) contents(ctx context.Context, source, target string) (names []string, err error) {
	c.fresh = true
	root, err := c.into(target)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for st, err := range c.files.List(ctx, source, 1) {
		if err != nil {
			return names, err
		}
		name := path.Base(st.Name)
		left := c.left
		if err := c.outEntry(ctx, root, st, st.Name, name, 1); err != nil {
			return names, err
		}
		if c.left == left || st.Mode.IsDir() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// outEntry copies one thing to name below root, which nothing leads out of. Of protected names, only the one file that
// the caller named itself is copied.
func (c *copying) outEntry(ctx context.Context, root *os.Root, st paddock.FileInfo, source, name string, depth int) error {
	if depth > 0 || !st.Mode.IsRegular() {
		if why := c.obeyed(root, st, name); why != "" {
			return c.outObeyed(ctx, root, st, source, name, depth, why)
		}
	}
	return c.outKind(ctx, root, st, source, name, depth)
}

// obeyed returns why a name is not copied; empty if it is.
func (c *copying) obeyed(root *os.Root, st paddock.FileInfo, file string) string {
	name := filepath.ToSlash(file)
	for _, dir := range c.bare {
		prefix := dir + "/"
		if dir == "." {
			prefix = "" // the target itself
		}
		if rest, below := strings.CutPrefix(name, prefix); below && name != dir {
			if protect.IsBarePart(rest) && !st.Mode.IsDir() {
				return "it makes a bare repository of its directory, whose configuration git obeys; copy it by its own name"
			}
			name = ".git/" + rest
			break
		}
	}
	rule, hit := c.names.Match(path.Join(c.above, name))
	switch {
	case hit == protect.Protected, hit == protect.Root && !isDir(root, file):
		why := c.names.Reason(rule) + "; programs on this machine would obey it"
		if c.fresh {
			return why
		}
		return why + "; to copy it: --unprotect " + rule
	case hit != protect.Miss && !st.Mode.IsDir():
		return "programs on this machine obey what is in a directory of this name, and it is none"
	}
	return ""
}

// isDir reports whether a directory itself, and no link, is there.
func isDir(root *os.Root, name string) bool {
	st, err := root.Lstat(name)
	return err == nil && st.IsDir()
}

// outObeyed leaves out what programs of this machine would obey, unless it is there already and the same: so a tree
// that was copied in comes out again as it was, and nothing that was changed inside does.
func (c *copying) outObeyed(ctx context.Context, root *os.Root, st paddock.FileInfo, source, name string, depth int, why string) error {
	old, err := root.Lstat(name)
	if err == nil && old.Mode().Type() == st.Mode.Type() {
		switch st.Mode.Type() {
		case fs.ModeDir:
			return c.outDir(ctx, root, st, source, name, depth, true)
		case fs.ModeSymlink:
			if link, err := root.Readlink(name); err == nil && link == st.Link {
				return nil
			}
		case 0:
			same, err := c.sameFile(ctx, root, old, source, name)
			if err != nil || same {
				return err
			}
		}
	}
	c.leaveOut(source, why)
	return nil
}

// sameFile reports whether a file of the sandbox has the content of one that is there.
func (c *copying) sameFile(ctx context.Context, root *os.Root, old fs.FileInfo, source, name string) (bool, error) {
	f, err := root.Open(name)
	if err != nil {
		return false, nil // it is not known to be the same
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(old, now) {
		return false, nil // as above
	}
	have := &comparing{to: bufio.NewReader(f)}
	switch err := c.read(ctx, source, have); {
	case errors.Is(err, errDiffers):
		return false, nil
	case err != nil:
		return false, err
	}
	_, err = have.to.ReadByte()
	return errors.Is(err, io.EOF), nil
}

// errDiffers ends a comparison.
var errDiffers = errors.New("it differs")

// comparing is a writer of what must be the content of a reader.
type comparing struct{ to *bufio.Reader }

// Write returns errDiffers at the first difference.
func (w *comparing) Write(p []byte) (int, error) {
	have := make([]byte, len(p))
	if _, err := io.ReadFull(w.to, have); err != nil || !bytes.Equal(have, p) {
		return 0, errDiffers
	}
	return len(p), nil
}

// isBare reports whether the entries of a directory, with what is there already, make it a bare repository.
func isBare(root *os.Root, name string, entries []paddock.FileInfo) bool {
	for _, parts := range protect.BareParts() {
		missing := slices.ContainsFunc(parts, func(part string) bool {
			if slices.ContainsFunc(entries, func(e paddock.FileInfo) bool { return protect.Same(path.Base(e.Name), part) }) {
				return false
			}
			_, err := root.Lstat(filepath.Join(name, part))
			return err != nil
		})
		if !missing {
			return true
		}
	}
	return false
}

// outKind copies one thing.
func (c *copying) outKind(ctx context.Context, root *os.Root, st paddock.FileInfo, source, name string, depth int) error {
	switch st.Mode.Type() {
	case fs.ModeDir:
		return c.outDir(ctx, root, st, source, name, depth, false)
	case fs.ModeSymlink:
		if c.fresh {
			c.leaveOut(source, "it is a link")
			return nil
		}
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
	old, err := root.Lstat(name)
	if err == nil && c.fresh {
		c.leaveOut(source, "something of this name is there already")
		return nil
	}
	if err == nil && !old.Mode().IsRegular() {
		return WithHint(fmt.Errorf("%s is there, and is no file: %w", filepath.Join(root.Name(), name), paddock.Exists), "remove it, or name another target")
	}
	if err == nil {
		mode = modeOver(old.Mode(), mode, false)
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode.Perm()|0o200)
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
// it is a plain name. obeyed tells that programs obey the directory.
func (c *copying) outDir(ctx context.Context, root *os.Root, st paddock.FileInfo, source, name string, depth int, obeyed bool) error {
	if depth >= maxDepth {
		return fmt.Errorf("%s: directories are deeper than %d: %w", OneLine(source), maxDepth, paddock.Exhausted)
	}
	var old fs.FileInfo // of one that is there
	if name != "." {
		switch err := root.Mkdir(name, st.Mode.Perm()|0o700); {
		case errors.Is(err, fs.ErrExist):
			if old, err = root.Lstat(name); err != nil || !old.IsDir() {
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
	if !protect.Same(filepath.Base(name), ".git") && isBare(root, name, entries) {
		c.bare = append(c.bare, filepath.ToSlash(name))
	}
	for _, e := range entries {
		base := path.Base(e.Name)
		if path.Join(source, base) != e.Name || !filepath.IsLocal(base) || base == "." || strings.ContainsRune(base, filepath.Separator) {
			return fmt.Errorf("the sandbox says that %q is in %q: %w", e.Name, source, paddock.Invalid)
		}
		if err := c.outEntry(ctx, root, e, e.Name, filepath.Join(name, base), depth+1); err != nil {
			return err
		}
	}
	if name == "." {
		return nil
	}
	mode := st.Mode.Perm()
	if old != nil {
		have := old.Mode()
		_, hit := c.names.Match(path.Join(c.above, filepath.ToSlash(name)))
		obeyed = obeyed || hit != protect.Miss
		if mode = modeOver(have, mode, obeyed); obeyed && mode.Perm() != st.Mode.Perm() {
			c.leaveOut(source, fmt.Sprintf("its mode alone, %#o: the directory here keeps %#o", st.Mode.Perm(), mode.Perm()))
		}
		if mode == have&(fs.ModePerm|specialBits) {
			return nil
		}
	}
	if err := root.Chmod(name, mode); err != nil {
		return fmt.Errorf("%w: %w", err, paddock.Denied)
	}
	return nil
}

// specialBits are what a mode has beside permissions.
const specialBits = fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// modeOver returns the mode of a file or directory that is there, for which the sandbox wants another one. Other users of
// this machine get no right that they did not have. A directory that programs obey keeps its mode: without rights for its
// owner, hooks that guard a repository would no longer run.
func modeOver(have, want fs.FileMode, obeyed bool) fs.FileMode {
	if obeyed {
		return have & (fs.ModePerm | specialBits)
	}
	return want.Perm()&(0o700|have) | have&specialBits
}
