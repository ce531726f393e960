package vminit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/protocol"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// An archive of the private layer is a tar archive of the overlay's upper directory. A
// removed file is a character device 0:0, and the overlay's attributes are extended
// attributes. Sparse files use GNU tar's format 1.0, which package archive/tar can read but
// not write.

// An archiver writes an archive. The guest made the content, which does not change
// meanwhile.
type archiver struct {
	to     sink
	room   *protocol.Archive
	linked map[uint64]string // files with several names that were written
	path   []string          // of the current directory

	content int64 // content of files with their holes, in whole pages
	largest int64
	name    string // name of the largest
}

// A sink receives an archive.
type sink interface {
	io.Writer
	content(f *os.File, e sys.Extent) error
}

// A counter is a sink that does not read content.
type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

func (c *counter) content(_ *os.File, e sys.Extent) error {
	c.n += e.Length
	return nil
}

// A stream is a sink that writes.
type stream struct{ io.Writer }

func (s stream) content(f *os.File, e sys.Extent) error {
	n, err := io.Copy(s, io.NewSectionReader(f, e.Offset, e.Length))
	if err == nil && n < e.Length {
		err = zeros(s, e.Length-n)
	}
	return err
}

// count checks that a directory's archive fits.
func count(root *os.File, room *protocol.Archive) error {
	c := &counter{}
	a := &archiver{to: c, room: room}
	err := a.run(root)
	switch {
	case err != nil:
		return err
	case a.largest > room.File:
		return fmt.Errorf("the file %q has %d MiB including holes, and one file may have at most %d MiB within the limits of disk and memory: %w",
			a.name, a.largest>>20, room.File>>20, paddock.Exhausted)
	case a.content > room.Content:
		return fmt.Errorf("the files have %d MiB including holes, and may have at most %d MiB within the limit of the disk; the largest is %q: %w",
			a.content>>20, room.Content>>20, a.name, paddock.Exhausted)
	case c.n > room.All:
		return fmt.Errorf("the files and their names need %d MiB, and at most %d MiB can be saved: %w", c.n>>20, room.All>>20, paddock.Exhausted)
	}
	return nil
}

// archive writes an archive.
func archive(root *os.File, w io.Writer) error { return (&archiver{to: stream{w}}).run(root) }

func (a *archiver) run(root *os.File) error {
	a.linked = map[uint64]string{}
	fd, err := sys.Descriptor(root)
	if err != nil {
		return err
	}
	if err := a.entry(fd, "", "."); err != nil {
		return err
	}
	return zeros(a.to, 2*block) // the end
}

const (
	block       = 512
	pageSize    = 4096
	deepest     = 1000    // nesting of directories
	mostExtents = 8 << 10 // of a file, because readers bound them
	stopAt      = 1 << 50 // where counting ends; above every limit
	nameMax     = 300     // maximum length of a reported name in bytes
	attribute   = "SCHILY.xattr."
	sparseName  = "GNU.sparse.name"
	permissions = 0o7777
)

// entry writes an entry of an open directory and everything below it. path is its name in
// the archive.
func (a *archiver) entry(dir int, name, path string) error {
	st, err := sys.StatAt(dir, name)
	if err != nil {
		return fmt.Errorf("archive %s: %w", cut(path), err)
	}
	attributes, err := sys.AttributesAt(dir, name)
	if err != nil {
		return fmt.Errorf("archive %s: %w", cut(path), err)
	}
	h := &header{path: path, mode: st.Mode & permissions, uid: st.UID, gid: st.GID, changed: st.ModTime, records: kept(attributes)}
	if c, ok := a.to.(*counter); ok && (c.n > stopAt || c.n < 0) {
		return nil
	}
	kind := st.Mode & syscall.S_IFMT
	if kind != syscall.S_IFDIR && st.Links > 1 {
		if first, ok := a.linked[st.Ino]; ok {
			h.kind, h.link, h.records = '1', first, nil
			return h.write(a.to)
		}
		a.linked[st.Ino] = path
	}
	switch kind {
	case syscall.S_IFDIR:
		h.kind, h.path = '5', path+"/"
		if err := h.write(a.to); err != nil {
			return err
		}
		return a.directory(dir, name, path)
	case syscall.S_IFREG:
		return a.file(dir, name, st.Size, h)
	case syscall.S_IFLNK:
		if h.link, err = sys.ReadLinkAt(dir, name); err != nil {
			return fmt.Errorf("archive %s: %w", cut(path), err)
		}
		h.kind = '2'
		a.content += pageSize
		return h.write(a.to)
	case syscall.S_IFCHR:
		h.kind, h.major, h.minor = '3', st.Major, st.Minor
		return h.write(a.to)
	case syscall.S_IFBLK:
		h.kind, h.major, h.minor = '4', st.Major, st.Minor
		return h.write(a.to)
	case syscall.S_IFIFO:
		h.kind = '6'
		return h.write(a.to)
	}
	return nil // a socket, which is useless without its listener
}

func (a *archiver) directory(dir int, name, path string) error {
	if len(a.path) >= deepest {
		return fmt.Errorf("archive: directories nested more than %d deep: %w", deepest, paddock.Exhausted)
	}
	if name == "" {
		name = "."
	}
	fd, err := sys.OpenAt(dir, name, syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return fmt.Errorf("archive %s: %w", cut(path), err)
	}
	d := os.NewFile(uintptr(fd), path)
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return fmt.Errorf("archive %s: %w", cut(path), err)
	}
	slices.Sort(names)
	a.path = append(a.path, name)
	for _, n := range names {
		if err := a.entry(fd, n, path+"/"+n); err != nil {
			return err
		}
	}
	a.path = a.path[:len(a.path)-1]
	return nil
}

func (a *archiver) file(dir int, name string, size int64, h *header) error {
	h.kind = '0'
	a.content += (size + pageSize - 1) / pageSize * pageSize
	if size > a.largest {
		a.largest, a.name = size, cut(h.path)
	}
	if a.content < 0 || a.room != nil && (size > a.room.File || a.content > a.room.Content) {
		a.content = max(a.content, stopAt) // it will be refused, so it is not examined further
		return nil
	}
	fd, err := sys.OpenAt(dir, name, syscall.O_RDONLY, 0)
	if err != nil {
		return fmt.Errorf("archive %s: %w", cut(h.path), err)
	}
	f := os.NewFile(uintptr(fd), h.path)
	defer f.Close()
	extents, err := sys.Extents(f, size, mostExtents)
	if err != nil {
		return fmt.Errorf("archive %s: %w", cut(h.path), err)
	}
	h.size = size
	var list []byte
	if holes := !slices.Equal(extents, []sys.Extent{{Offset: 0, Length: size}}); holes && size > 0 {
		list = h.sparse(extents)
	}
	if err := h.write(a.to); err != nil {
		return err
	}
	if _, err := a.to.Write(list); err != nil {
		return err
	}
	for _, e := range extents {
		if err := a.to.content(f, e); err != nil {
			return fmt.Errorf("archive %s: %w", cut(h.path), err)
		}
	}
	return pad(a.to, h.size)
}

// kept returns the attributes that are valid in another overlay, as tar records. It leaves
// out references to files of the lower layer, which are other files there.
func kept(attributes map[string]string) map[string]string {
	records := map[string]string{}
	for key, value := range attributes {
		own, overlay := strings.CutPrefix(key, "trusted.overlay.")
		switch {
		case strings.ContainsAny(key, "=\x00"): // the format cannot express it
		case overlay && (own == "opaque" || own == "redirect" || own == "impure"),
			strings.HasPrefix(key, "user."), strings.HasPrefix(key, "system.posix_acl_"):
			records[attribute+key] = value
		}
	}
	return records
}

// A header describes an entry of an archive.
type header struct {
	path, link   string
	kind         byte
	mode         uint32
	uid, gid     uint32
	major, minor uint32
	size         int64 // of the content
	changed      int64 // ns since 1970
	records      map[string]string
}

// sparse makes it the header of a sparse file, and returns the beginning of the content.
func (h *header) sparse(extents []sys.Extent) []byte {
	list := strconv.AppendInt(nil, int64(len(extents)), 10)
	list = append(list, '\n')
	data := int64(0)
	for _, e := range extents {
		list = append(strconv.AppendInt(list, e.Offset, 10), '\n')
		list = append(strconv.AppendInt(list, e.Length, 10), '\n')
		data += e.Length
	}
	list = append(list, make([]byte, blocks(int64(len(list)))-int64(len(list)))...)
	h.records["GNU.sparse.major"], h.records["GNU.sparse.minor"] = "1", "0"
	h.records[sparseName] = h.path
	h.records["GNU.sparse.realsize"] = strconv.FormatInt(h.size, 10)
	h.size = int64(len(list)) + data
	return list
}

// write writes the header, with a header of records before it if needed.
func (h *header) write(w io.Writer) error {
	records := map[string]string{}
	for key, value := range h.records {
		records[key] = value
	}
	if len(h.path) > 99 || !ascii(h.path) {
		records["path"] = h.path
	}
	if len(h.link) > 99 || !ascii(h.link) {
		records["linkpath"] = h.link
	}
	if h.uid > 0o7777777 {
		records["uid"] = strconv.FormatUint(uint64(h.uid), 10)
	}
	if h.gid > 0o7777777 {
		records["gid"] = strconv.FormatUint(uint64(h.gid), 10)
	}
	if h.size > 0o77777777777 {
		records["size"] = strconv.FormatInt(h.size, 10)
	}
	if second := time.Second.Nanoseconds(); h.changed < 0 || h.changed%second != 0 || h.changed/second > 0o77777777777 {
		records["mtime"] = timeText(h.changed)
	}
	if len(records) > 0 {
		data := encode(records)
		if err := (&header{path: "PaxHeader", kind: 'x', mode: 0o644, size: int64(len(data))}).put(w); err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
		if err := pad(w, int64(len(data))); err != nil {
			return err
		}
	}
	return h.put(w)
}

// put writes the block of the header. Values in records may be shortened in it.
func (h *header) put(w io.Writer) error {
	var b [block]byte
	octal := func(at, length int, n int64) {
		if n < 0 || n >= 1<<(3*(length-1)) {
			n = 0
		}
		copy(b[at:], fmt.Sprintf("%0*o", length-1, n))
	}
	copy(b[0:99], h.path)
	octal(100, 8, int64(h.mode))
	octal(108, 8, int64(h.uid))
	octal(116, 8, int64(h.gid))
	octal(124, 12, h.size)
	octal(136, 12, h.changed/time.Second.Nanoseconds())
	b[156] = h.kind
	copy(b[157:256], h.link)
	copy(b[257:], "ustar\x0000")
	octal(329, 8, int64(h.major))
	octal(337, 8, int64(h.minor))
	copy(b[148:], "        ")
	sum := int64(0)
	for _, c := range b {
		sum += int64(c)
	}
	octal(148, 7, sum)
	b[154] = 0
	_, err := w.Write(b[:])
	return err
}

// encode encodes records, each with its own length.
func encode(records map[string]string) []byte {
	var b bytes.Buffer
	keys := make([]string, 0, len(records))
	for key := range records {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		rest := " " + key + "=" + records[key] + "\n"
		n := len(rest)
		for n != len(rest)+len(strconv.Itoa(n)) {
			n = len(rest) + len(strconv.Itoa(n))
		}
		b.WriteString(strconv.Itoa(n) + rest)
	}
	return b.Bytes()
}

// timeText returns a time in the form of a record.
func timeText(ns int64) string {
	second, rest := ns/1e9, ns%1e9
	sign := ""
	if ns < 0 {
		sign, second, rest = "-", -second, -rest
	}
	return fmt.Sprintf("%s%d.%09d", sign, second, rest)
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

func blocks(n int64) int64 { return (n + block - 1) / block * block }

// pad fills up n bytes to whole blocks.
func pad(w io.Writer, n int64) error { return zeros(w, blocks(n)-n) }

func zeros(w io.Writer, n int64) error {
	var none [32 << 10]byte
	for n > 0 {
		m, err := w.Write(none[:min(n, int64(len(none)))])
		if err != nil {
			return err
		}
		n -= int64(m)
	}
	return nil
}

// cut keeps the end of a name, which is the most useful part.
func cut(name string) string {
	name = strings.TrimPrefix(name, ".")
	if len(name) > nameMax {
		name = "…" + name[len(name)-nameMax:]
	}
	return strings.ToValidUTF8(name, "?")
}

// A chunker writes the chunks of a message.
type chunker struct {
	w   io.Writer
	buf []byte
}

func newChunker(w io.Writer) *chunker { return &chunker{w, make([]byte, 0, protocol.MaxChunk)} }

// Write implements io.Writer.
func (c *chunker) Write(p []byte) (n int, err error) {
	for n < len(p) {
		m := copy(c.buf[len(c.buf):cap(c.buf)], p[n:])
		c.buf = c.buf[:len(c.buf)+m]
		n += m
		if len(c.buf) == cap(c.buf) {
			if err := c.flush(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

func (c *chunker) flush() error {
	if len(c.buf) == 0 {
		return nil
	}
	err := protocol.WriteChunk(c.w, c.buf)
	c.buf = c.buf[:0]
	return err
}

// end writes the last, empty chunk.
func (c *chunker) end() error { return errors.Join(c.flush(), protocol.WriteChunk(c.w, nil)) }

// spoil makes the bytes written so far an invalid archive.
func (c *chunker) spoil() error {
	_, err := c.Write(bytes.Repeat([]byte{0xff}, 2*block))
	return err
}

// chunks reads the chunks of a chunker.
type chunks struct {
	r    io.Reader
	rest []byte
	over bool
}

// Read implements io.Reader.
func (c *chunks) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		if c.over {
			return 0, io.EOF
		}
		data, err := protocol.ReadChunk(c.r)
		if err != nil {
			return 0, errors.Join(err, io.ErrUnexpectedEOF)
		}
		c.rest, c.over = data, len(data) == 0
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// gone reports whether an error means that a name does not exist.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) }
