package layer

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/snapshot"
)

const (
	attributePrefix = "SCHILY.xattr."
	opaqueName      = "trusted.overlay.opaque"
	listPrefix      = "system.posix_acl_"
	rootEntry       = "./"
	block           = 4096 // aligned zeros of this size become holes
	readSize        = 256 << 10
)

// A Dialect is how a kernel writes and reads archives.
type Dialect struct {
	TextLists bool // access control lists are in base64
	Parents   bool // each directory on the way to a file needs an entry
	Removed   bool // there are removed files and directories that hide others
}

// WriteArchive writes an archive of entries, of which a directory comes before what is in it. Holes of the files are holes
// of the archive.
func WriteArchive(f *os.File, entries iter.Seq2[snapshot.Entry, error], d Dialect) error {
	holes := &holeWriter{f: f}
	w := &archiveWriter{Dialect: d, w: tar.NewWriter(holes), made: map[string]bool{}}
	if d.Parents {
		w.now = time.Now()
	}
	for e, err := range entries {
		if err == nil {
			err = w.entry(&e)
		}
		if err != nil {
			return err
		}
	}
	if err := w.w.Close(); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	return holes.finish()
}

type archiveWriter struct {
	Dialect
	w      *tar.Writer
	now    time.Time
	made   map[string]bool // directories with an entry
	shared []string        // names of files that hard links may name
}

func (w *archiveWriter) entry(e *snapshot.Entry) error {
	if w.Parents {
		if err := w.parents(path.Dir(e.Path), e.Path == ""); err != nil {
			return err
		}
	}
	h := &tar.Header{Format: tar.FormatPAX, Name: rootEntry + e.Path, Mode: int64(e.Mode), Uid: int(e.UID), Gid: int(e.GID), ModTime: e.ModTime}
	switch e.Kind {
	case snapshot.File:
		h.Typeflag, h.Size = tar.TypeReg, e.Size
	case snapshot.Dir:
		h.Typeflag = tar.TypeDir
		if e.Path != "" {
			h.Name += "/"
		}
		w.made[e.Path] = true
	case snapshot.Link:
		h.Typeflag, h.Linkname = tar.TypeSymlink, e.Target
	case snapshot.Pipe:
		h.Typeflag = tar.TypeFifo
	case snapshot.Char, snapshot.Block:
		h.Typeflag, h.Devmajor, h.Devminor = tar.TypeChar, int64(e.Device>>32), int64(e.Device&(1<<32-1))
		if e.Kind == snapshot.Block {
			h.Typeflag = tar.TypeBlock
		}
	case snapshot.Gone:
		if !w.Removed {
			return nil // nothing is below
		}
		h.Typeflag, h.ModTime = tar.TypeChar, w.now
	case snapshot.Same:
		if e.First < 0 || e.First >= int64(len(w.shared)) {
			return fmt.Errorf("%.300q is a hard link to file %d of %d: %w", e.Path, e.First, len(w.shared), paddock.Invalid)
		}
		h.Typeflag, h.Linkname = tar.TypeLink, w.shared[e.First]
	default: // a socket; Fit.Check has passed
		return fmt.Errorf("%.300q cannot be in an archive: %w", e.Path, paddock.Unsupported)
	}
	if e.Shared {
		w.shared = append(w.shared, h.Name)
	}
	if err := w.attributes(h, e); err != nil {
		return err
	}
	if err := w.w.WriteHeader(h); err != nil {
		return fmt.Errorf("write %.300q: %w", e.Path, err)
	}
	if e.Kind != snapshot.File {
		return nil
	}
	if err := w.contents(e); err != nil {
		return fmt.Errorf("write %.300q: %w", e.Path, err)
	}
	return nil
}

// parents writes the directories on the way to a path that have no entry. They are as the system has them mostly.
func (w *archiveWriter) parents(dir string, isRoot bool) error {
	if isRoot {
		return nil
	}
	if dir == "." {
		dir = ""
	}
	if w.made[dir] {
		return nil
	}
	if err := w.parents(path.Dir(dir), dir == ""); err != nil {
		return err
	}
	w.made[dir] = true
	name := rootEntry
	if dir != "" {
		name += dir + "/"
	}
	if err := w.w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Format: tar.FormatPAX, Name: name, Mode: 0o755, ModTime: w.now}); err != nil {
		return fmt.Errorf("write %.300q: %w", dir, err)
	}
	return nil
}

func (w *archiveWriter) attributes(h *tar.Header, e *snapshot.Entry) error {
	if len(e.Attributes) == 0 && !e.Opaque {
		return nil
	}
	h.PAXRecords = map[string]string{}
	for key, value := range e.Attributes {
		if value == "" { // it would be lost
			return fmt.Errorf("%.300q has the extended attribute %.64q without a value, which cannot be in an archive: %w", e.Path, key, paddock.Unsupported)
		}
		if w.TextLists && strings.HasPrefix(key, listPrefix) {
			value = base64.RawStdEncoding.EncodeToString([]byte(value))
		}
		h.PAXRecords[attributePrefix+key] = value
	}
	if e.Opaque && w.Removed {
		h.PAXRecords[attributePrefix+opaqueName] = "y"
	}
	return nil
}

func (w *archiveWriter) contents(e *snapshot.Entry) error {
	at := int64(0)
	if e.Data != nil {
		for x, err := range e.Data {
			if err != nil {
				return err
			}
			if x.Offset < at {
				return fmt.Errorf("contents at %d after %d: %w", x.Offset, at, paddock.Invalid)
			}
			if err := w.zeros(x.Offset - at); err != nil {
				return err
			}
			if _, err := w.w.Write(x.Bytes); err != nil {
				return err
			}
			at = x.Offset + int64(len(x.Bytes))
		}
	}
	return w.zeros(e.Size - at)
}

func (w *archiveWriter) zeros(n int64) error {
	var none [1 << 20]byte
	for n > 0 {
		m, err := w.w.Write(none[:min(n, int64(len(none)))])
		if err != nil {
			return err
		}
		n -= int64(m)
	}
	return nil
}

// A holeWriter writes a file, in which large writes of zeros are holes.
type holeWriter struct {
	f    *os.File
	size int64
}

func (h *holeWriter) Write(b []byte) (int, error) {
	if len(b) < block || !isZero(b) {
		if _, err := h.f.WriteAt(b, h.size); err != nil {
			return 0, err
		}
	}
	h.size += int64(len(b))
	return len(b), nil
}

func (h *holeWriter) finish() error { return h.f.Truncate(h.size) }

func isZero(b []byte) bool {
	var none [block]byte
	for len(b) > 0 {
		n := min(len(b), len(none))
		if !bytes.Equal(b[:n], none[:n]) {
			return false
		}
		b = b[n:]
	}
	return true
}

// Bounds of an archive that a guest kernel wrote.
const (
	mostFiles = 1 << 20
	mostNames = 64 << 20 // bytes of names, links and attributes
)

// FromArchive yields the entries of an archive that a guest kernel wrote, which may have been taken over, in the order of
// snapshots. most bounds the sizes of the files with their holes. The contents are read while the entries are.
func FromArchive(f *os.File, most int64, d Dialect) iter.Seq2[snapshot.Entry, error] {
	return func(yield func(snapshot.Entry, error) bool) {
		r := &archiveReader{Dialect: d, f: f, most: most}
		if err := r.index(); err != nil {
			yield(snapshot.Entry{}, fmt.Errorf("read the archive of the sandbox: %w", err))
			return
		}
		r.give(yield)
	}
}

// An item is a header of an archive.
type item struct {
	entry  snapshot.Entry
	link   string // of a hard link: what it is one to
	number int    // in the archive
	at     int64  // of the contents
	sparse bool
}

type archiveReader struct {
	Dialect
	f    *os.File
	most int64

	items  []*item
	byName map[string]*item // no hard links
	names  int64

	again *tar.Reader // for contents with holes, at the item after last
	last  int
}

// A position counts what is read. It cannot seek, so that nothing is read twice or left out.
type position struct {
	r io.Reader
	n int64
}

func (p *position) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.n += int64(n)
	return n, err
}

// index reads all headers.
func (r *archiveReader) index() error {
	r.byName = map[string]*item{}
	in := &position{r: io.NewSectionReader(r.f, 0, 1<<62)}
	t := tar.NewReader(in)
	size := int64(0)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("it is damaged: %w: %w", err, paddock.Invalid)
		}
		i := &item{number: len(r.items), at: in.n}
		if i.number >= mostFiles {
			return fmt.Errorf("it has more than %d files: %w", mostFiles, paddock.Exhausted)
		}
		if err := r.header(i, h); err != nil {
			return fmt.Errorf("%.300q: %w", h.Name, err)
		}
		if size += i.entry.Size; size > r.most || size < 0 {
			return fmt.Errorf("its files have more than %d MiB with their holes: %w", r.most>>20, paddock.Exhausted)
		}
		if r.names > mostNames {
			return fmt.Errorf("its names have more than %d MiB: %w", mostNames>>20, paddock.Exhausted)
		}
		r.items = append(r.items, i)
		if i.link == "" {
			r.byName[i.entry.Path] = i // one that comes twice is refused with its entry
		}
	}
	return r.sort()
}

// sort brings the items into the order of snapshots.
func (r *archiveReader) sort() error {
	inOrder := slices.IsSortedFunc(r.items, func(a, b *item) int { return snapshot.Compare(a.entry.Path, b.entry.Path) })
	if inOrder {
		return nil
	}
	if slices.ContainsFunc(r.items, func(i *item) bool { return i.sparse }) {
		return fmt.Errorf("it has files with holes, and is not in order: %w", paddock.Invalid)
	}
	slices.SortStableFunc(r.items, func(a, b *item) int { return snapshot.Compare(a.entry.Path, b.entry.Path) })
	return nil
}

// name returns the path of an entry for a name.
func name(text string) string {
	if text == "." || text == rootEntry {
		return ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(text, rootEntry), "/")
}

func (r *archiveReader) header(i *item, h *tar.Header) error {
	e := &i.entry
	if h.Uid < 0 || h.Gid < 0 || int64(h.Uid) > 1<<32-1 || int64(h.Gid) > 1<<32-1 || h.Size < 0 || h.Size > snapshot.MaxSize {
		return fmt.Errorf("its owner or size is none: %w", paddock.Invalid)
	}
	e.Path, e.Mode, e.UID, e.GID, e.ModTime = name(h.Name), uint32(h.Mode)&0o7777, uint32(h.Uid), uint32(h.Gid), h.ModTime
	r.names += int64(len(h.Name) + len(h.Linkname))
	switch h.Typeflag {
	case tar.TypeReg:
		e.Kind, e.Size = snapshot.File, h.Size
		_, i.sparse = h.PAXRecords["GNU.sparse.major"]
		_, old := h.PAXRecords["GNU.sparse.map"]
		i.sparse = i.sparse || old
	case tar.TypeDir:
		e.Kind = snapshot.Dir
	case tar.TypeSymlink:
		e.Kind, e.Target = snapshot.Link, h.Linkname
	case tar.TypeFifo:
		e.Kind = snapshot.Pipe
	case tar.TypeChar, tar.TypeBlock:
		if h.Devmajor < 0 || h.Devminor < 0 || h.Devmajor > 1<<32-1 || h.Devminor > 1<<32-1 {
			return fmt.Errorf("it is no device: %w", paddock.Invalid)
		}
		e.Kind, e.Device = snapshot.Char, uint64(h.Devmajor)<<32|uint64(h.Devminor)
		if h.Typeflag == tar.TypeBlock {
			e.Kind = snapshot.Block
		} else if e.Device == 0 {
			*e = snapshot.Entry{Path: e.Path, Kind: snapshot.Gone}
			return nil
		}
	case tar.TypeLink:
		i.link = name(h.Linkname)
		*e = snapshot.Entry{Path: e.Path, Kind: snapshot.Same}
		return nil
	default:
		return fmt.Errorf("it is of the type %q: %w", h.Typeflag, paddock.Invalid)
	}
	return r.attributes(e, h)
}

func (r *archiveReader) attributes(e *snapshot.Entry, h *tar.Header) error {
	for record, value := range h.PAXRecords {
		key, ok := strings.CutPrefix(record, attributePrefix)
		switch {
		case !ok, key == "trusted.overlay.impure", key == "trusted.overlay.origin", key == "trusted.overlay.uuid":
			continue
		case key == opaqueName:
			e.Opaque = e.Kind == snapshot.Dir && value == "y"
			continue
		case r.TextLists && strings.HasPrefix(key, listPrefix):
			b, err := base64.RawStdEncoding.DecodeString(value)
			if err != nil {
				return fmt.Errorf("its access control list: %w: %w", err, paddock.Invalid)
			}
			value = string(b)
		}
		if e.Attributes == nil {
			e.Attributes = map[string]string{}
		}
		r.names += int64(len(key) + len(value))
		e.Attributes[key] = value
	}
	return nil
}

// give yields the entries. The first of several names of a file has its contents, whichever that was in the archive.
func (r *archiveReader) give(yield func(snapshot.Entry, error) bool) {
	several := map[*item]bool{}
	for _, i := range r.items {
		if i.link == "" {
			continue
		}
		to := r.byName[i.link]
		if to == nil || to.entry.Kind == snapshot.Dir || to.entry.Kind == snapshot.Gone {
			yield(snapshot.Entry{}, fmt.Errorf("the archive of the sandbox has a hard link %.300q to %.300q, which is no file: %w", i.entry.Path, i.link, paddock.Invalid))
			return
		}
		several[to] = true
	}
	first := map[*item]int64{}
	for _, i := range r.items {
		file := i
		if i.link != "" {
			file = r.byName[i.link]
		}
		e := file.entry
		e.Path = i.entry.Path
		if n, ok := first[file]; ok && several[file] {
			e = snapshot.Entry{Path: e.Path, Kind: snapshot.Same, First: n}
		} else if several[file] {
			first[file], e.Shared = int64(len(first)), true
		}
		if e.Kind == snapshot.File && e.Size > 0 {
			e.Data = r.contents(file)
		}
		if !yield(e, nil) {
			return
		}
	}
}

// contents yields the contents of a file. Blocks of zeros become holes.
func (r *archiveReader) contents(i *item) iter.Seq2[snapshot.Extent, error] {
	return func(yield func(snapshot.Extent, error) bool) {
		var in io.Reader = io.NewSectionReader(r.f, i.at, i.entry.Size)
		if i.sparse {
			var err error
			if in, err = r.seek(i); err != nil {
				yield(snapshot.Extent{}, err)
				return
			}
		}
		buf := make([]byte, readSize)
		for at := int64(0); at < i.entry.Size; {
			n, err := io.ReadFull(in, buf[:min(int64(len(buf)), i.entry.Size-at)])
			if err != nil {
				yield(snapshot.Extent{}, fmt.Errorf("the archive is cut off: %w: %w", err, paddock.Invalid))
				return
			}
			if !spread(buf[:n], at, yield) {
				return
			}
			at += int64(n)
		}
	}
}

// spread yields what of a piece is not zero.
func spread(b []byte, at int64, yield func(snapshot.Extent, error) bool) bool {
	for len(b) > 0 {
		n := min(len(b), block)
		zero := isZero(b[:n])
		for n < len(b) && zero == isZero(b[n:min(n+block, len(b))]) {
			n = min(n+block, len(b))
		}
		if !zero && !yield(snapshot.Extent{Offset: at, Bytes: b[:n]}, nil) {
			return false
		}
		b, at = b[n:], at+int64(n)
	}
	return true
}

// seek goes on to the contents of an item in another pass over the archive, whose items are in order.
func (r *archiveReader) seek(i *item) (io.Reader, error) {
	if r.again == nil {
		r.again, r.last = tar.NewReader(&position{r: io.NewSectionReader(r.f, 0, 1<<62)}), -1
	}
	if r.last >= i.number {
		return nil, fmt.Errorf("contents are read once, with their entry: %w", paddock.Internal)
	}
	for r.last < i.number {
		if _, err := r.again.Next(); err != nil {
			return nil, fmt.Errorf("it is damaged: %w: %w", err, paddock.Invalid)
		}
		r.last++
	}
	return r.again, nil
}
