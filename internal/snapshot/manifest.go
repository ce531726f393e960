package snapshot

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// The format of a list of entries:
//
//	magic, with the version
//	length and bytes of the description, in JSON
//	entries, each beginning with its kind
//	a zero, the number of entries
//	the SHA-256 of all before
//
// Numbers are varints. A path is written as the length of the prefix that it shares with
// the previous path, and the rest.
const magic = "paddock snapshot 1\n"

// Meta describes a snapshot.
type Meta struct {
	ID      paddock.SnapshotID `json:"id"`
	Tier    paddock.Tier       `json:"tier,omitempty"`   // tier that wrote it
	Base    string             `json:"base,omitempty"`   // the root that the entries are relative to
	Parent  paddock.SnapshotID `json:"parent,omitempty"` // the snapshot that the sandbox started from, for information only
	Name    string             `json:"name,omitempty"`
	Created time.Time          `json:"created,omitzero"`
}

const maxMeta = 64 << 10

// A chunk is a part of a file, stored as a blob.
type chunk struct {
	offset int64
	size   int64
	sum    sum
}

// A sum names a blob.
type sum [sha256.Size]byte

const (
	flagOpaque = 1
	flagShared = 2
)

// A writer writes a list.
type writer struct {
	w     *bufio.Writer
	hash  hash.Hash
	buf   []byte
	last  string
	count uint64
}

func newWriter(w io.Writer, m Meta) (*writer, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if len(text) > maxMeta {
		return nil, fmt.Errorf("a description of %d bytes: %w", len(text), paddock.Invalid)
	}
	x := &writer{hash: sha256.New()}
	x.w = bufio.NewWriterSize(io.MultiWriter(w, x.hash), 64<<10)
	x.buf = append(x.buf, magic...)
	x.buf = binary.AppendUvarint(x.buf, uint64(len(text)))
	x.buf = append(x.buf, text...)
	return x, x.flush()
}

func (x *writer) flush() error {
	_, err := x.w.Write(x.buf)
	x.buf = x.buf[:0]
	return err
}

func (x *writer) bytes(s string) {
	x.buf = binary.AppendUvarint(x.buf, uint64(len(s)))
	x.buf = append(x.buf, s...)
}

func (x *writer) entry(e *Entry, chunks []chunk) error {
	same := 0
	for same < len(e.Path) && same < len(x.last) && e.Path[same] == x.last[same] {
		same++
	}
	x.last = e.Path
	x.count++
	flags := byte(0)
	if e.Opaque {
		flags |= flagOpaque
	}
	if e.Shared {
		flags |= flagShared
	}
	x.buf = append(x.buf, byte(e.Kind), flags)
	x.buf = binary.AppendUvarint(x.buf, uint64(same))
	x.bytes(e.Path[same:])
	switch e.Kind {
	case Gone:
		return x.flush()
	case Same:
		x.bytes(e.Target)
		return x.flush()
	}
	for _, n := range []uint64{uint64(e.Mode), uint64(e.UID), uint64(e.GID)} {
		x.buf = binary.AppendUvarint(x.buf, n)
	}
	x.buf = binary.AppendVarint(x.buf, e.ModTime.Unix())
	x.buf = binary.AppendUvarint(x.buf, uint64(e.ModTime.Nanosecond()))
	switch e.Kind {
	case Link:
		x.bytes(e.Target)
	case Char, Block:
		x.buf = binary.AppendUvarint(x.buf, e.Device)
	case File:
		x.buf = binary.AppendUvarint(x.buf, uint64(e.Size))
		x.buf = binary.AppendUvarint(x.buf, uint64(len(chunks)))
		end := int64(0)
		for _, c := range chunks {
			x.buf = binary.AppendUvarint(x.buf, uint64(c.offset-end))
			x.buf = binary.AppendUvarint(x.buf, uint64(c.size))
			x.buf = append(x.buf, c.sum[:]...)
			end = c.offset + c.size
		}
	}
	return x.flush()
}

// end finishes the list. w is the writer that the list was made with.
func (x *writer) end(w io.Writer) error {
	x.buf = append(x.buf, 0)
	x.buf = binary.AppendUvarint(x.buf, x.count)
	if err := x.flush(); err != nil {
		return err
	}
	if err := x.w.Flush(); err != nil {
		return err
	}
	_, err := w.Write(x.hash.Sum(nil))
	return err
}

// A reader reads a list. It does not trust the content.
type reader struct {
	r     *bufio.Reader
	in    *summed
	meta  Meta
	last  string
	order order
	count uint64
}

// A summed reader hashes everything that is read from it, except the last bytes, which are
// the hash.
type summed struct {
	r    io.Reader
	hash hash.Hash
	tail []byte // read, not hashed yet
}

func (s *summed) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.tail = append(s.tail, p[:n]...)
	if over := len(s.tail) - sha256.Size; over > 0 {
		s.hash.Write(s.tail[:over])
		s.tail = append(s.tail[:0], s.tail[over:]...)
	}
	return n, err
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("snapshot is damaged: "+format+": %w", append(args, paddock.Invalid)...)
}

func newReader(r io.Reader) (*reader, error) {
	in := &summed{r: r, hash: sha256.New()}
	x := &reader{r: bufio.NewReaderSize(in, 64<<10), in: in}
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(x.r, head); err != nil {
		return nil, corrupt("it ends in its first line")
	}
	if string(head) != magic {
		return nil, corrupt("it begins with %q", head)
	}
	text, err := x.bytes(maxMeta)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(text), &x.meta); err != nil {
		return nil, corrupt("its description: %v", err)
	}
	if !paddock.ID(x.meta.ID).Valid() {
		return nil, corrupt("its name is %q", x.meta.ID)
	}
	return x, nil
}

func (x *reader) number(limit uint64) (uint64, error) {
	n, err := binary.ReadUvarint(x.r)
	if err != nil {
		return 0, corrupt("a number is cut off")
	}
	if n > limit {
		return 0, corrupt("the number %d is over %d", n, limit)
	}
	return n, nil
}

func (x *reader) bytes(limit uint64) (string, error) {
	n, err := x.number(limit)
	if err != nil {
		return "", err
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(x.r, b); err != nil {
		return "", corrupt("a text is cut off")
	}
	return string(b), nil
}

// next reads an entry. At the end it checks the hash and returns io.EOF.
func (x *reader) next() (*Entry, []chunk, error) {
	kind, err := x.r.ReadByte()
	if err != nil {
		return nil, nil, corrupt("it ends too early")
	}
	if kind == 0 {
		return nil, nil, x.finish()
	}
	x.count++
	e := &Entry{Kind: Kind(kind)}
	flags, err := x.r.ReadByte()
	if err != nil || flags&^(flagOpaque|flagShared) != 0 {
		return nil, nil, corrupt("an entry has unknown marks")
	}
	e.Opaque, e.Shared = flags&flagOpaque != 0, flags&flagShared != 0
	same, err := x.number(uint64(len(x.last)))
	if err != nil {
		return nil, nil, err
	}
	rest, err := x.bytes(maxPath - same)
	if err != nil {
		return nil, nil, err
	}
	e.Path = x.last[:same] + rest
	x.last = e.Path
	chunks, err := x.body(e)
	if err != nil {
		return nil, nil, err
	}
	if err := e.valid(); err != nil {
		return nil, nil, err
	}
	return e, chunks, x.order.next(e)
}

func (x *reader) body(e *Entry) ([]chunk, error) {
	var err error
	switch e.Kind {
	case Gone:
		return nil, nil
	case Same:
		e.Target, err = x.bytes(maxPath)
		return nil, err
	}
	var mode, uid, gid, nsec uint64
	for _, n := range []*uint64{&mode, &uid, &gid} {
		if *n, err = x.number(1<<32 - 1); err != nil {
			return nil, err
		}
	}
	sec, err := binary.ReadVarint(x.r)
	if err != nil {
		return nil, corrupt("a time is cut off")
	}
	if nsec, err = x.number(999_999_999); err != nil {
		return nil, err
	}
	e.Mode, e.UID, e.GID, e.ModTime = uint32(mode), uint32(uid), uint32(gid), time.Unix(sec, int64(nsec))
	switch e.Kind {
	case Link:
		e.Target, err = x.bytes(maxTarget)
	case Char, Block:
		e.Device, err = x.number(1<<64 - 1)
	case File:
		return x.chunks(e)
	}
	return nil, err
}

func (x *reader) chunks(e *Entry) ([]chunk, error) {
	size, err := x.number(maxSize)
	if err != nil {
		return nil, err
	}
	n, err := x.number(min(size, maxChunks)) // each chunk has at least one byte
	if err != nil {
		return nil, err
	}
	e.Size = int64(size)
	var all []chunk // not allocated by an untrusted number
	end := uint64(0)
	for range n {
		gap, err := x.number(size)
		if err != nil {
			return nil, err
		}
		length, err := x.number(maxChunk)
		if err != nil {
			return nil, err
		}
		c := chunk{offset: int64(end + gap), size: int64(length)}
		if end += gap + length; length == 0 || end > size {
			return nil, corrupt("%q has a part from %d to %d of %d", e.Path, c.offset, end, size)
		}
		if _, err := io.ReadFull(x.r, c.sum[:]); err != nil {
			return nil, corrupt("%q is cut off", e.Path)
		}
		all = append(all, c)
	}
	return all, nil
}

// finish checks the bytes after the entries.
func (x *reader) finish() error {
	count, err := x.number(1<<64 - 1)
	if err != nil {
		return err
	}
	if count != x.count {
		return corrupt("it has %d entries instead of %d", x.count, count)
	}
	var want, more sum
	if _, err := io.ReadFull(x.r, want[:]); err != nil {
		return corrupt("its checksum is cut off")
	}
	if n, _ := io.ReadFull(x.r, more[:1]); n != 0 {
		return corrupt("something follows its end")
	}
	if sum(x.in.hash.Sum(nil)) != want {
		return corrupt("its checksum is wrong")
	}
	return io.EOF
}
