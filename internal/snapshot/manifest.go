package snapshot

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
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
// the previous path, and the rest. The parts of a file end with one of no bytes. An entry with
// attributes has their number before its parts, and of each its name and its value.
//
// Lists of versions 1 and 2 are read too. They have no attributes. In version 1 a hard link says
// the first path, and the parts of a file are counted before them.
const (
	magic  = "paddock snapshot 3\n"
	second = "paddock snapshot 2\n"
	older  = "paddock snapshot 1\n"
)

// Meta describes a snapshot.
type Meta struct {
	ID      paddock.SnapshotID `json:"id"`
	Tier    paddock.Tier       `json:"tier,omitempty"`   // tier that wrote it
	Base    string             `json:"base,omitempty"`   // the root that the entries are relative to
	Parent  paddock.SnapshotID `json:"parent,omitempty"` // the snapshot that the sandbox started from, for information only
	Name    string             `json:"name,omitempty"`
	Created time.Time          `json:"created,omitzero"`

	// Owner is whom commands ran as. Nil is an older snapshot of the simulated computer.
	Owner *Owner `json:"owner,omitempty"`

	// User is that of the sandbox's spec, and Limits are the limits of it that were not the tier's defaults. What begins
	// with the snapshot has them too, unless its own spec says otherwise.
	User   string         `json:"user,omitempty"`
	Limits paddock.Limits `json:"limits,omitzero"`
}

// An Owner is a user inside a sandbox.
type Owner struct {
	UID  uint32 `json:"uid"`
	GID  uint32 `json:"gid"`
	Home string `json:"home"` // an absolute path
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
	flagParts  = 4 // of a file: its parts follow
	flagNamed  = 8 // attributes follow
)

// A writer writes a list.
type writer struct {
	w     *bufio.Writer
	hash  hash.Hash
	buf   []byte
	last  string
	count uint64
	left  int64 // bytes that the list may still have
	end   int64 // of the last part of the file
}

// defaultList is how many bytes a list may have, unless the options of the store say so.
const defaultList = 256 << 20

// newWriter begins a list of at most so many bytes.
func newWriter(w io.Writer, m Meta, most int64) (*writer, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if len(text) > maxMeta {
		return nil, fmt.Errorf("a description of %d bytes: %w", len(text), paddock.Invalid)
	}
	x := &writer{hash: sha256.New(), left: most}
	x.w = bufio.NewWriterSize(io.MultiWriter(w, x.hash), 64<<10)
	x.buf = append(x.buf, magic...)
	x.buf = binary.AppendUvarint(x.buf, uint64(len(text)))
	x.buf = append(x.buf, text...)
	return x, x.flush()
}

func (x *writer) flush() error {
	if x.left -= int64(len(x.buf)); x.left < 0 {
		return fmt.Errorf("too many files, or too many names and parts of files, for one snapshot: remove some: %w", paddock.Exhausted)
	}
	_, err := x.w.Write(x.buf)
	x.buf = x.buf[:0]
	return err
}

func (x *writer) bytes(s string) {
	x.buf = binary.AppendUvarint(x.buf, uint64(len(s)))
	x.buf = append(x.buf, s...)
}

// entry writes an entry. The parts of a file with data follow, by part.
func (x *writer) entry(e *Entry) error {
	same := common(e.Path, x.last)
	x.last = e.Path
	x.count++
	flags := byte(0)
	if e.Opaque {
		flags |= flagOpaque
	}
	if e.Shared {
		flags |= flagShared
	}
	if hasParts(e) {
		flags |= flagParts
	}
	if len(e.Attributes) > 0 {
		flags |= flagNamed
	}
	x.buf = append(x.buf, byte(e.Kind), flags)
	x.buf = binary.AppendUvarint(x.buf, uint64(same))
	x.bytes(e.Path[same:])
	switch e.Kind {
	case Gone:
		return x.flush()
	case Same:
		x.buf = binary.AppendUvarint(x.buf, uint64(e.First))
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
		x.end = 0
	}
	x.attributes(e)
	return x.flush()
}

// attributes writes what an entry has besides.
func (x *writer) attributes(e *Entry) {
	if len(e.Attributes) == 0 {
		return
	}
	x.buf = binary.AppendUvarint(x.buf, uint64(len(e.Attributes)))
	for _, key := range slices.Sorted(maps.Keys(e.Attributes)) {
		x.bytes(key)
		x.bytes(e.Attributes[key])
	}
}

func hasParts(e *Entry) bool { return e.Kind == File && (e.Data != nil || e.Held != nil) }

// part writes the next part of the last file. The one after the last has no bytes.
func (x *writer) part(c chunk) error {
	x.buf = binary.AppendUvarint(x.buf, uint64(c.offset-x.end))
	x.buf = binary.AppendUvarint(x.buf, uint64(c.size))
	if c.size > 0 {
		x.buf = append(x.buf, c.sum[:]...)
	}
	x.end = c.offset + c.size
	return x.flush()
}

// parted writes that the last file has no more parts.
func (x *writer) parted() error { return x.part(chunk{offset: x.end}) }

// finish ends the list. w is the writer that the list was made with.
func (x *writer) finish(w io.Writer) error {
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
	named bool               // entries may have attributes
	names map[[16]byte]int32 // of version 1: hashes of the paths that hard links may say; nil in others

	// Of the file whose parts come next.
	parts bool   // there may be some
	left  uint64 // of version 1: how many
	read  int
	size  uint64
	end   uint64
	err   error // of reading them
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
	switch string(head) {
	case magic:
		x.named = true
	case second:
	case older:
		x.names = map[[16]byte]int32{}
	default:
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
func (x *reader) next() (*Entry, error) {
	for x.parts { // those that nobody asked for
		if _, _, err := x.part(); err != nil {
			return nil, err
		}
	}
	kind, err := x.r.ReadByte()
	if err != nil {
		return nil, corrupt("it ends too early")
	}
	if kind == 0 {
		return nil, x.finish()
	}
	x.count++
	e := &Entry{Kind: Kind(kind)}
	flags, err := x.r.ReadByte()
	if err != nil || flags&^(flagOpaque|flagShared|flagParts|flagNamed) != 0 ||
		flags&flagParts != 0 && (e.Kind != File || x.names != nil) || flags&flagNamed != 0 && (!x.named || e.Kind == Gone || e.Kind == Same) {
		return nil, corrupt("an entry has unknown marks")
	}
	e.Opaque, e.Shared = flags&flagOpaque != 0, flags&flagShared != 0
	same, err := x.number(uint64(len(x.last)))
	if err != nil {
		return nil, err
	}
	rest, err := x.bytes(maxPath - same)
	if err != nil {
		return nil, err
	}
	e.Path = x.last[:same] + rest
	x.last = e.Path
	x.parts = flags&flagParts != 0
	if err := x.body(e); err != nil {
		return nil, err
	}
	if flags&flagNamed != 0 {
		if err := x.attributes(e); err != nil {
			return nil, err
		}
	}
	if err := x.order.next(e); err != nil {
		return nil, err
	}
	if x.names != nil && e.Shared {
		if len(x.names) >= maxShared {
			return nil, fmt.Errorf("files with several names: %w", paddock.Exhausted)
		}
		x.names[short(e.Path)] = int32(x.order.shared - 1)
	}
	return e, nil
}

// attributes reads what an entry has besides.
func (x *reader) attributes(e *Entry) error {
	n, err := x.number(maxAttributes)
	if err != nil {
		return err
	}
	e.Attributes = map[string]string{}
	size := 0
	for range n {
		key, err := x.bytes(maxName)
		if err != nil {
			return err
		}
		value, err := x.bytes(maxAttribute)
		if err != nil {
			return err
		}
		if size += len(key) + len(value); size > maxAttribute {
			return corrupt("the attributes of %q have over %d bytes", e.Path, maxAttribute)
		}
		if _, twice := e.Attributes[key]; twice {
			return corrupt("%q has the attribute %q twice", e.Path, key)
		}
		e.Attributes[key] = value
	}
	if len(e.Attributes) == 0 {
		return corrupt("%q has attributes, and none", e.Path)
	}
	return nil
}

// short gives what a path is remembered by: there may be many long ones.
func short(path string) [16]byte {
	k := sha256.Sum256([]byte(path))
	return [16]byte(k[:16])
}

// first reads what a hard link is one to.
func (x *reader) first(e *Entry) error {
	if x.names == nil {
		n, err := x.number(1<<63 - 1)
		e.First = int64(n)
		return err
	}
	path, err := x.bytes(maxPath)
	if err != nil {
		return err
	}
	n, ok := x.names[short(path)]
	if !ok {
		return corrupt("%q is a hard link to %q, which is not an earlier file", e.Path, path)
	}
	e.First = int64(n)
	return nil
}

func (x *reader) body(e *Entry) error {
	switch e.Kind {
	case Gone:
		return nil
	case Same:
		return x.first(e)
	}
	var err error
	var mode, uid, gid, nsec uint64
	for _, n := range []*uint64{&mode, &uid, &gid} {
		if *n, err = x.number(1<<32 - 1); err != nil {
			return err
		}
	}
	sec, err := binary.ReadVarint(x.r)
	if err != nil {
		return corrupt("a time is cut off")
	}
	if nsec, err = x.number(999_999_999); err != nil {
		return err
	}
	e.Mode, e.UID, e.GID, e.ModTime = uint32(mode), uint32(uid), uint32(gid), time.Unix(sec, int64(nsec))
	switch e.Kind {
	case Link:
		e.Target, err = x.bytes(maxTarget)
	case Char, Block:
		e.Device, err = x.number(1<<64 - 1)
	case File:
		return x.file(e)
	}
	return err
}

// file reads what comes before the parts of a file.
func (x *reader) file(e *Entry) (err error) {
	if x.size, err = x.number(maxSize); err != nil {
		return err
	}
	e.Size = int64(x.size)
	x.read, x.end = 0, 0
	if x.names != nil {
		if x.left, err = x.number(min(x.size, maxChunks)); err != nil { // each part has at least one byte
			return err
		}
		x.parts = x.left > 0
	}
	return nil
}

// part reads the next part of the last file, if it has one. There may be many: nobody keeps them.
func (x *reader) part() (c chunk, ok bool, err error) {
	if !x.parts || x.err != nil {
		return chunk{}, false, x.err
	}
	defer func() { x.err = err }()
	gap, err := x.number(x.size)
	if err != nil {
		return chunk{}, false, err
	}
	length, err := x.number(maxChunk)
	if err != nil {
		return chunk{}, false, err
	}
	if length == 0 && gap == 0 && x.names == nil {
		x.parts = false
		return chunk{}, false, nil
	}
	c = chunk{offset: int64(x.end + gap), size: int64(length)}
	x.read++
	if x.end += gap + length; length == 0 || x.end > x.size || x.read > maxChunks {
		return chunk{}, false, corrupt("a file has a part from %d to %d of %d", c.offset, x.end, x.size)
	}
	if _, err := io.ReadFull(x.r, c.sum[:]); err != nil {
		return chunk{}, false, corrupt("a file is cut off")
	}
	if x.names != nil {
		x.left--
		x.parts = x.left > 0
	}
	return c, true, nil
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
