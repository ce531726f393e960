package build

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A writer writes the layer of an instruction that copies files. What it writes is added to the tree.
type writer struct {
	ctx   context.Context //nolint:containedctx // it is one call, of many files
	t     *tree
	w     *tar.Writer
	sum   hash.Hash // of what is in the layer, but for the times of files: files that were only touched are the same
	names int       // files that it may still have
	size  int64     // bytes that their contents may still have
	count int       // files that were written
	owner *[2]int   // of everything; nil leaves what each file has
	mode  *int64    // likewise
}

func newWriter(ctx context.Context, to io.Writer, t *tree, size int64) *writer {
	return &writer{ctx: ctx, t: t, w: tar.NewWriter(to), sum: sha256.New(), names: maxNames, size: size}
}

// A file is what is to be written of one.
type file struct {
	kind         byte
	mode         int64
	uid, gid     int
	size         int64
	when         time.Time
	link         string // of a symbolic link; a name without a slash before it for another name of a file
	major, minor int64
}

// put writes a file at a name without links, in a directory that is there. What is there is replaced, unless it is a
// directory. A directory that is there stays as it is.
func (w *writer) put(at string, f file, content io.Reader) error {
	if w.ctx.Err() != nil {
		return fmt.Errorf("it was given up: %w", paddock.Canceled)
	}
	was, there, err := w.t.look(at)
	switch {
	case err != nil:
		return err
	case strings.HasPrefix(path.Base(at), whiteout):
		return fmt.Errorf("/%s: names that begin with %q stand for removed files in an image: call it otherwise: %w", clip(at), whiteout, paddock.Unsupported)
	case there && was.isDir() && f.kind == tar.TypeDir:
		return nil
	case there && was.isDir():
		return fmt.Errorf("/%s is a directory of the image, and what is copied there is none: %w", clip(at), paddock.Conflict)
	case there && f.kind == tar.TypeDir && was.mode&fs.ModeSymlink == 0:
		return fmt.Errorf("/%s is no directory in the image, and what is copied there is one: %w", clip(at), paddock.Conflict)
	}
	if f.uid < 0 || f.gid < 0 || int64(f.uid) >= 1<<32-1 || int64(f.gid) >= 1<<32-1 {
		return fmt.Errorf("/%s belongs to a user whom no system has: %w", clip(at), paddock.Invalid)
	}
	if w.names--; w.names < 0 {
		return fmt.Errorf("there are more files than an image may have: %w", paddock.Exhausted)
	}
	if w.size -= f.size; f.size < 0 || w.size < 0 {
		return fmt.Errorf("/%s: the files are larger than the disk of the build, see --disk: %w", clip(at), paddock.Exhausted)
	}
	w.apply(&f)
	h := &tar.Header{
		Typeflag: f.kind, Name: at, Linkname: f.link, Mode: f.mode, Uid: f.uid, Gid: f.gid, Size: f.size, ModTime: f.when.Truncate(time.Second),
		Devmajor: f.major, Devminor: f.minor, Format: tar.FormatPAX,
	}
	n := node{mode: fs.FileMode(f.mode & 0o777)}
	switch f.kind {
	case tar.TypeDir:
		h.Name += "/"
		n.mode |= fs.ModeDir
	case tar.TypeSymlink:
		n.mode, n.link = fs.ModeSymlink|0o777, f.link
	}
	w.note(at, f.link)
	w.numbers(int64(f.kind), f.mode, int64(f.uid), int64(f.gid), f.size, f.major, f.minor)
	if err := w.w.WriteHeader(h); err != nil {
		return err
	}
	if f.kind == tar.TypeReg {
		if _, err := io.CopyN(w.w, io.TeeReader(content, w.sum), f.size); errors.Is(err, io.EOF) {
			return fmt.Errorf("/%s became shorter while it was copied: %w", clip(at), paddock.Conflict)
		} else if err != nil {
			return err
		}
	}
	w.t.added[at] = n
	w.count++
	return nil
}

// apply gives a file the owner and the permissions that were asked for.
func (w *writer) apply(f *file) {
	if w.owner != nil {
		f.uid, f.gid = w.owner[0], w.owner[1]
	}
	if w.mode != nil && f.kind != tar.TypeSymlink {
		f.mode = *w.mode
	}
	if f.when.Before(time.Unix(0, 0)) || f.when.Year() > 2200 {
		f.when = time.Unix(0, 0)
	}
}

// note and numbers add to the sum, so that no two layers have the same words.
func (w *writer) note(words ...string) {
	for _, text := range words {
		w.numbers(int64(len(text)))
		_, _ = io.WriteString(w.sum, text) // it never fails
	}
}

func (w *writer) numbers(list ...int64) {
	for _, n := range list {
		_ = binary.Write(w.sum, binary.BigEndian, n) // likewise
	}
}

// directory makes a directory and those above it which are not there, as root's, and returns its name without links.
func (w *writer) directory(name string) (string, error) {
	return w.makeAll(name, file{kind: tar.TypeDir, mode: 0o755})
}

func (w *writer) makeAll(name string, f file) (string, error) {
	at, there, n, err := w.t.resolve(name, true)
	if err != nil {
		return "", err
	}
	if there && !n.isDir() {
		return "", fmt.Errorf("/%s is no directory in the image: %w", clip(name), paddock.Conflict)
	}
	if there {
		return at, nil
	}
	for i := range len(at) {
		if at[i] != '/' {
			continue
		}
		if err := w.put(at[:i], f, nil); err != nil {
			return "", err
		}
	}
	return at, w.put(at, f, nil)
}
