// Package layer unpacks the layers of an image into a directory, one over the other, by the OCI image
// specification.
//
// A layer is hostile input, and none of its files is written outside the directory. Every call goes
// through an [os.Root], and symbolic links resolve with the directory as their root. Devices, sockets,
// set-id bits and extended attributes are left out. Names and bytes are counted while they are
// unpacked.
package layer

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A Tree is a directory into which layers are unpacked. Nothing else may change the directory
// meanwhile.
type Tree struct {
	Root *os.Root
	// Owners are kept if this is set, which only root can do. Else all belongs to
	// the caller.
	Owners bool
	// Bytes and Names are how much more may be unpacked.
	Bytes int64
	Names int

	looks int // at names that a whiteout may be for
}

const (
	whiteout  = ".wh."
	opaque    = ".wh..wh..opq"
	maxLinks  = 40
	maxName   = 4096
	maxDepth  = 200       // of directories in each other: each is a step for whoever walks there
	maxLooks  = 4_000_000 // of whiteouts, of an image
	nameCosts = 512       // bytes that a name takes, however little is in the file
)

// A meter counts what an archive takes to be read, against the bytes that may be
// unpacked. Much of an archive need not become files.
type meter struct {
	r io.Reader
	t *Tree

	read, charged int64
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.read += int64(n)
	if m.read-m.charged > m.t.Bytes {
		return 0, tooLarge()
	}
	return n, err
}

// charge takes what an entry has, or what it took to come to it if that is more.
func (m *meter) charge(n int64) error {
	if n < 0 || n > m.t.Bytes {
		m.t.Bytes = -1
		return tooLarge()
	}
	if over := m.read - m.charged - n; over > 0 {
		n += over
	}
	m.charged += n
	if m.t.Bytes -= n; m.t.Bytes < 0 {
		return tooLarge()
	}
	return nil
}

// A mark stands for a name. Names may be long, and there may be many.
type mark [sha256.Size]byte

func marked(name string) mark { return sha256.Sum256([]byte(name)) }

// Unpack unpacks a layer, an uncompressed tar archive, over the layers before. After an error the
// tree must not be used.
func (t *Tree) Unpack(r io.Reader) error {
	m := &meter{r: r, t: t}
	in := tar.NewReader(m)
	made := map[mark]bool{} // by this layer
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		var k paddock.Kind
		if errors.As(err, &k) {
			return err // of who reads it
		}
		if err != nil {
			return fmt.Errorf("the layer is no archive: %w: %w", err, paddock.Invalid)
		}
		if err := Own(h); err != nil {
			return err
		}
		if t.Names--; t.Names < 0 {
			return fmt.Errorf("it has too many files: %w", paddock.Exhausted)
		}
		if err := m.charge(nameCosts); err != nil {
			return err
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue // what it says of other entries is not kept
		}
		if err := m.charge(h.Size); err != nil {
			return fmt.Errorf("%q: %w", clip(h.Name), err)
		}
		if err := t.entry(h, in, made); err != nil {
			return fmt.Errorf("%q: %w", clip(h.Name), err)
		}
	}
}

func tooLarge() error {
	return fmt.Errorf("it is larger, unpacked, than an image may be: %w", paddock.Exhausted)
}

func clip(name string) string {
	if len(name) > 200 {
		return name[:200] + "…"
	}
	return name
}

// clean gives a name in the tree, without a slash before it; "." is its top.
func clean(name string) (string, error) {
	if len(name) > maxName || strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("it is no name: %w", paddock.Invalid)
	}
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	if name == "" {
		name = "."
	}
	return name, nil
}

func (t *Tree) entry(h *tar.Header, in io.Reader, made map[mark]bool) error {
	name, err := clean(h.Name)
	if err != nil {
		return err
	}
	if name == "." {
		return nil
	}
	dir, base := path.Split(name)
	parent, err := t.directory(dir, made)
	if err != nil {
		return err
	}
	switch {
	case base == opaque:
		return t.prune(parent, made, true)
	case strings.HasPrefix(base, whiteout):
		gone := strings.TrimPrefix(base, whiteout)
		if gone == "" || gone == "." || gone == ".." {
			return fmt.Errorf("it removes nothing that has a name: %w", paddock.Invalid)
		}
		return t.prune(path.Join(parent, gone), made, false)
	}
	at := path.Join(parent, base)
	if err := t.put(at, h, in); err != nil || h.Typeflag == tar.TypeChar || h.Typeflag == tar.TypeBlock || h.Typeflag == tar.TypeFifo {
		return err
	}
	for ; at != "." && !made[marked(at)]; at = path.Dir(at) { // a whiteout of a directory leaves what this layer put there
		made[marked(at)] = true
	}
	return nil
}

// put makes one file, in place of what is there.
func (t *Tree) put(at string, h *tar.Header, in io.Reader) error {
	mode := fs.FileMode(h.Mode) & 0o777
	was, err := t.Root.Lstat(at)
	there := err == nil
	if there && (h.Typeflag != tar.TypeDir || !was.IsDir()) {
		if err := t.Root.RemoveAll(at); err != nil {
			return err
		}
		there = false
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if !there {
			if err := t.Root.Mkdir(at, 0o700); err != nil {
				return err
			}
		}
		if err := t.own(at, h); err != nil {
			return err
		}
		return t.Root.Chmod(at, mode|0o700)
	case tar.TypeReg, tar.TypeGNUSparse, '\x00':
		return t.file(at, h, mode, in)
	case tar.TypeSymlink:
		if h.Linkname == "" || len(h.Linkname) >= maxName || strings.ContainsRune(h.Linkname, 0) {
			return fmt.Errorf("it is a link to nothing: %w", paddock.Invalid)
		}
		if err := t.Root.Symlink(h.Linkname, at); err != nil {
			return err
		}
		return t.own(at, h)
	case tar.TypeLink:
		return t.link(at, h)
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		return nil // a sandbox has its own
	}
	return fmt.Errorf("it is of a kind, %q, that images do not have: %w", h.Typeflag, paddock.Unsupported)
}

func (t *Tree) file(at string, h *tar.Header, mode fs.FileMode, in io.Reader) (err error) {
	f, err := t.Root.OpenFile(at, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, in, h.Size)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("it ends early: %w", paddock.Invalid)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := t.own(at, h); err != nil {
		return err
	}
	if err := t.Root.Chmod(at, mode|0o600); err != nil {
		return err
	}
	if h.ModTime.Before(time.Unix(0, 0)) || h.ModTime.Year() > 2200 {
		return nil
	}
	return t.Root.Chtimes(at, h.ModTime, h.ModTime)
}

// link gives a file one more name.
func (t *Tree) link(at string, h *tar.Header) error {
	to, err := clean(h.Linkname)
	if err != nil {
		return err
	}
	dir, base := path.Split(to)
	parent, err := t.resolve(dir)
	if err != nil {
		return err
	}
	to = path.Join(parent, base)
	st, err := t.Root.Lstat(to)
	if err != nil || st.IsDir() {
		return fmt.Errorf("it is another name of what is not there: %w", paddock.Invalid)
	}
	return t.Root.Link(to, at)
}

func (t *Tree) own(at string, h *tar.Header) error {
	if !t.Owners {
		return nil
	}
	if h.Uid < 0 || h.Gid < 0 || h.Uid > 65535 || h.Gid > 65535 {
		return nil // of nobody that a sandbox could have
	}
	return t.Root.Lchown(at, h.Uid, h.Gid)
}

// resolve follows the links of a directory's name as the tree would, and gives a
// name without any. What is not there ends it as it is written.
func (t *Tree) resolve(name string) (string, error) {
	at, rest := ".", strings.Split(name, "/")
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, part)
		if strings.Count(next, "/") >= maxDepth {
			return "", fmt.Errorf("it is in more than %d directories, one in the other: %w", maxDepth, paddock.Unsupported)
		}
		st, err := t.Root.Lstat(next)
		if err != nil || st.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		if links++; links > maxLinks || len(rest) > maxName {
			return "", fmt.Errorf("its links lead in a circle: %w", paddock.Invalid)
		}
		to, err := t.Root.Readlink(next)
		if err != nil {
			return "", err
		}
		if path.IsAbs(to) {
			at = "."
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	return at, nil
}

// directory gives the real name of a directory, and makes what of it is missing.
func (t *Tree) directory(name string, made map[mark]bool) (string, error) {
	at, err := t.resolve(name)
	if err != nil || at == "." {
		return at, err
	}
	if st, err := t.Root.Lstat(at); err == nil {
		if !st.IsDir() {
			return "", fmt.Errorf("it is in what is no directory: %w", paddock.Invalid)
		}
		return at, nil
	}
	for dir := at; dir != "."; dir = path.Dir(dir) {
		if _, err := t.Root.Lstat(dir); err == nil {
			break
		}
		made[marked(dir)] = true
		if t.Names--; t.Names < 0 {
			return "", fmt.Errorf("it has too many files: %w", paddock.Exhausted)
		}
	}
	if err := t.Root.MkdirAll(at, 0o755); err != nil {
		return "", fmt.Errorf("make its directory: %w: %w", err, paddock.Invalid)
	}
	return at, nil
}

// prune removes what layers before put at a name, or only below it. What this
// layer made stays, whatever comes first in it.
func (t *Tree) prune(at string, made map[mark]bool, below bool) error {
	if t.looks++; t.looks > maxLooks {
		return fmt.Errorf("it removes files in too many ways: %w", paddock.Exhausted)
	}
	st, err := t.Root.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a whiteout of nothing
	}
	if err != nil {
		return err
	}
	if !below && !made[marked(at)] {
		return t.Root.RemoveAll(at)
	}
	if !st.IsDir() {
		return nil
	}
	list, err := fs.ReadDir(t.Root.FS(), at)
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := t.prune(path.Join(at, e.Name()), made, false); err != nil {
			return err
		}
	}
	return nil
}

// Find resolves the links of the tree in name. It returns the real name and the attributes of the
// file or directory, and reports whether it exists.
func (t *Tree) Find(name string) (string, fs.FileInfo, bool) {
	at, err := t.resolve(name)
	if err != nil {
		return "", nil, false
	}
	st, err := t.Root.Lstat(at)
	return at, st, err == nil
}
