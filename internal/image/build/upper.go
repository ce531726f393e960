package build

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of what a step may change.
const (
	maxNames  = 1_000_000
	maxMeta   = 256 << 20 // bytes of memory that names, links and attributes take
	nameCosts = 400       // of them each name, beside its text
	maxName   = 4096
	maxPart   = 255
	maxDepth  = 200
)

const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
)

// attribute is how an archive names extended attributes.
const attribute = "SCHILY.xattr."

// An upper is what a sandbox has over its image: the private layer, in the archive that a snapshot of files is. The
// sandbox wrote it.
type upper struct {
	from  io.ReaderAt
	files map[string]*change // by name, without a slash before it; the top is none of them
}

// A change is one file of it.
type change struct {
	kind         byte // as in an archive
	mode         int64
	uid, gid     int
	size         int64
	when         time.Time
	link         string // of a symbolic link; for another name of a file, the first
	major, minor int64
	attributes   map[string]string
	opaque       bool // nothing of the image shows through the directory

	at  int64             // where the content begins
	sum [sha256.Size]byte // of the content
}

// removed reports whether the change is that something of the image is gone.
func (c *change) removed() bool { return c.kind == tar.TypeChar && c.major == 0 && c.minor == 0 }

// A position counts what was read. It cannot seek, so that the count is where the reader is.
type position struct {
	ctx context.Context //nolint:containedctx // a reader has no other way to be told
	r   io.Reader
	n   int64
}

func (p *position) Read(b []byte) (int, error) {
	if p.ctx.Err() != nil {
		return 0, fmt.Errorf("it was given up: %w", paddock.Canceled)
	}
	n, err := p.r.Read(b)
	p.n += int64(n)
	return n, err
}

// readUpper reads an archive of this size.
func readUpper(ctx context.Context, from io.ReaderAt, size int64) (*upper, error) {
	u := &upper{from: from, files: map[string]*change{}}
	in := &position{ctx: ctx, r: io.NewSectionReader(from, 0, size)}
	r := tar.NewReader(in)
	meta := int64(maxMeta)
	for n := 0; ; n++ {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return u, u.linked()
		}
		if err != nil {
			return nil, unreadable(err)
		}
		if meta -= nameCosts + int64(len(h.Name)+len(h.Linkname)); meta < 0 || n > maxNames {
			return nil, fmt.Errorf("the step changed more files than an image may have: %w", paddock.Exhausted)
		}
		c, err := changeOf(h, in.n)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", clip(h.Name), err)
		}
		for k, v := range c.attributes {
			meta -= int64(len(k) + len(v))
		}
		if err := u.add(h.Name, c, r); err != nil {
			return nil, fmt.Errorf("%q: %w", clip(h.Name), err)
		}
	}
}

func unreadable(err error) error {
	var k paddock.Kind
	if errors.As(err, &k) {
		return err
	}
	return fmt.Errorf("what the sandbox says that it changed is no archive: %w: %w", err, paddock.Invalid)
}

// changeOf reads the header of a file. What no image has is dropped or refused.
func changeOf(h *tar.Header, at int64) (*change, error) {
	c := &change{kind: h.Typeflag, mode: h.Mode & 0o7777, uid: h.Uid, gid: h.Gid, when: h.ModTime.Truncate(time.Second), at: at}
	if h.Uid < 0 || h.Gid < 0 || int64(h.Uid) >= 1<<32-1 || int64(h.Gid) >= 1<<32-1 {
		return nil, fmt.Errorf("it belongs to a user whom no system has: %w", paddock.Invalid)
	}
	if c.when.Before(time.Unix(0, 0)) || c.when.Year() > 2200 {
		c.when = time.Unix(0, 0)
	}
	switch h.Typeflag {
	case tar.TypeReg:
		c.size = h.Size
	case tar.TypeDir, tar.TypeFifo:
	case tar.TypeSymlink:
		if h.Linkname == "" || len(h.Linkname) >= maxName || strings.ContainsRune(h.Linkname, 0) {
			return nil, fmt.Errorf("it is a link to nothing: %w", paddock.Invalid)
		}
		c.link = h.Linkname
	case tar.TypeLink:
		to, err := inside(h.Linkname)
		if err != nil || to == "" {
			return nil, fmt.Errorf("it is another name of nothing: %w", paddock.Invalid)
		}
		c.link = to
	case tar.TypeChar, tar.TypeBlock:
		if h.Devmajor < 0 || h.Devmajor >= 1<<12 || h.Devminor < 0 || h.Devminor >= 1<<20 {
			return nil, fmt.Errorf("it is a device that no kernel has: %w", paddock.Invalid)
		}
		c.major, c.minor = h.Devmajor, h.Devminor
	default:
		return nil, fmt.Errorf("it is of a kind, %q, that images do not have: %w", h.Typeflag, paddock.Unsupported)
	}
	for key, value := range h.PAXRecords {
		name, ok := strings.CutPrefix(key, attribute)
		switch {
		case strings.HasPrefix(key, "GNU.sparse."):
			return nil, fmt.Errorf("it has holes: %w", paddock.Unsupported)
		case !ok:
		case name == "trusted.overlay.opaque":
			c.opaque = c.kind == tar.TypeDir && value == "y"
		case name == "security.capability" || strings.HasPrefix(name, "user."):
			if c.attributes == nil {
				c.attributes = map[string]string{}
			}
			c.attributes[name] = value
		}
	}
	return c, nil
}

func (u *upper) add(text string, c *change, content io.Reader) error {
	name, err := inside(text)
	if err != nil {
		return err
	}
	if name == "" {
		return nil
	}
	if u.files[name] != nil {
		return fmt.Errorf("it is there twice: %w", paddock.Invalid)
	}
	if base := path.Base(name); strings.HasPrefix(base, whiteout) {
		return fmt.Errorf("names that begin with %q stand for removed files in an image: call it otherwise: %w", whiteout, paddock.Unsupported)
	}
	if c.kind == tar.TypeReg {
		sum := sha256.New()
		if n, err := io.Copy(sum, content); err != nil || n != c.size {
			return unreadable(errors.Join(err, io.ErrUnexpectedEOF))
		}
		sum.Sum(c.sum[:0])
	}
	u.files[name] = c
	return nil
}

// inside converts a name of an archive to one without a slash before it; the top is "".
func inside(name string) (string, error) {
	if len(name) > maxName || strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("it is no name: %w", paddock.Invalid)
	}
	name = path.Clean("/" + name)[1:]
	parts := strings.Split(name, "/")
	if len(parts) > maxDepth {
		return "", fmt.Errorf("it is in more than %d directories, one in the other: %w", maxDepth, paddock.Unsupported)
	}
	for _, p := range parts {
		if len(p) > maxPart {
			return "", fmt.Errorf("a name has at most %d bytes: %w", maxPart, paddock.Invalid)
		}
	}
	return name, nil
}

func clip(name string) string {
	if len(name) > 200 {
		return name[:200] + "…"
	}
	return name
}

// linked checks that each further name of a file has a file.
func (u *upper) linked() error {
	for name, c := range u.files {
		if c.kind != tar.TypeLink {
			continue
		}
		if to := u.files[c.link]; to == nil || to.kind == tar.TypeLink || to.kind == tar.TypeDir || to.removed() {
			return fmt.Errorf("%q: it is another name of what is not there: %w", clip(name), paddock.Invalid)
		}
	}
	return nil
}

// real returns a file by one of its names.
func (u *upper) real(name string) (first string, c *change) {
	c = u.files[name]
	if c != nil && c.kind == tar.TypeLink {
		return c.link, u.files[c.link]
	}
	return name, c
}

// same reports whether a name has in both what it had.
func (u *upper) same(before *upper, name string) bool {
	_, a := u.real(name)
	_, b := before.real(name)
	return a != nil && b != nil && a.kind == b.kind && a.mode == b.mode && a.uid == b.uid && a.gid == b.gid && a.size == b.size &&
		a.when.Equal(b.when) && a.link == b.link && a.major == b.major && a.minor == b.minor && a.opaque == b.opaque && a.sum == b.sum && maps.Equal(a.attributes, b.attributes)
}

// write writes what is in u and was not in before as a layer of an image, and returns how many files that is. Names for
// which skip returns true are left out, with all that is below them.
func (u *upper) write(to io.Writer, before *upper, skip func(name string) bool) (int, error) {
	names := map[string]bool{} // false for a directory that only leads to others
	for name := range u.files {
		if u.same(before, name) || skipped(name, skip) {
			continue
		}
		names[name] = true
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, ok := names[dir]; !ok && u.files[dir] != nil {
				names[dir] = false
			}
		}
	}
	w := tar.NewWriter(to)
	written := map[string]string{} // the name that has the content, by the first name in the archive
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if err := u.put(w, name, written); err != nil {
			return 0, fmt.Errorf("%q: %w", clip(name), err)
		}
	}
	return len(names), w.Close()
}

func skipped(name string, skip func(string) bool) bool {
	for ; name != "."; name = path.Dir(name) {
		if skip(name) {
			return true
		}
	}
	return false
}

func (u *upper) put(w *tar.Writer, name string, written map[string]string) error {
	first, c := u.real(name)
	if c.removed() {
		dir, base := path.Split(name)
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: dir + whiteout + base, Mode: 0o644})
	}
	h := &tar.Header{
		Typeflag: c.kind, Name: name, Linkname: c.link, Mode: c.mode, Uid: c.uid, Gid: c.gid, Size: c.size, ModTime: c.when,
		Devmajor: c.major, Devminor: c.minor, Format: tar.FormatPAX,
	}
	for key, value := range c.attributes {
		if h.PAXRecords == nil {
			h.PAXRecords = map[string]string{}
		}
		h.PAXRecords[attribute+key] = value
	}
	if c.kind == tar.TypeDir {
		h.Name += "/"
		if err := w.WriteHeader(h); err != nil || !c.opaque {
			return err
		}
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: h.Name + opaque, Mode: 0o644})
	}
	if there, ok := written[first]; ok {
		h.Typeflag, h.Linkname, h.Size, h.PAXRecords = tar.TypeLink, there, 0, nil
		return w.WriteHeader(h)
	}
	written[first] = name
	if err := w.WriteHeader(h); err != nil || c.kind != tar.TypeReg {
		return err
	}
	_, err := io.Copy(w, io.NewSectionReader(u.from, c.at, c.size))
	return err
}
