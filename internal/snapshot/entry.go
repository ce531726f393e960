package snapshot

import (
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A Kind is the kind of an entry.
type Kind byte

// Kinds of entries. The numbers are written to disk.
const (
	File   Kind = 1
	Dir    Kind = 2
	Link   Kind = 3
	Pipe   Kind = 4
	Socket Kind = 5
	Char   Kind = 6
	Block  Kind = 7
	Gone   Kind = 8 // the base has a file here, this tree has none
	Same   Kind = 9 // a hard link to an earlier entry
)

// An Entry is one path where a tree differs from its base. It replaces the base's file there, unless both are
// directories: then it only changes the directory itself.
//
// Entries are in the order of [Compare], so that a directory comes before its contents, and each path occurs once.
type Entry struct {
	Path string // raw bytes, without a leading slash; empty is the root directory
	Kind Kind

	Mode     uint32 // permission bits, 07777
	UID, GID uint32
	ModTime  time.Time

	Target string // of a symbolic link: its text
	First  int64  // of a hard link: the number of the earlier entry, counting from 0 those that are Shared
	Device uint64 // of a device: major<<32 | minor
	Opaque bool   // of a directory: hides all contents of the base's directory
	Shared bool   // of a non-directory: a later entry may be a hard link to it

	// Attributes are extended attributes with their names as Linux has them, such as "user.x". Access control lists are in
	// the form of Linux, with numbers of the sandbox's own users.
	Attributes map[string]string

	Size int64 // of a file
	// Data yields the contents of a file in order; gaps are holes. The bytes are valid until the next step. A file with
	// nil Data is one hole.
	Data iter.Seq2[Extent, error]
	// Held takes the place of Data in a call of [Draft.Commit].
	Held *Contents
}

// An Extent is a piece of a file.
type Extent struct {
	Offset int64
	Bytes  []byte
}

// Compare orders paths as a walk visits them: by names in byte order, a directory before its contents.
func Compare(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			switch {
			case a[i] == '/':
				return -1
			case b[i] == '/':
				return 1
			case a[i] < b[i]:
				return -1
			}
			return 1
		}
	}
	return len(a) - len(b)
}

// MaxSize is the size of the largest file that a snapshot can hold, with its holes.
const MaxSize = 1 << 50

// Bounds of an entry.
const (
	maxPath   = 1 << 20 // snapshots from before paths had a bound can have such long ones
	maxName   = 255
	maxTarget = 1 << 16
	maxSize   = MaxSize
	maxChunk  = 4 << 20
	maxChunks = 1 << 20 // of one file

	maxAttributes = 256      // of one file
	maxAttribute  = 64 << 10 // bytes of all names and values of one file

	maxShared = 500_000 // files with other names in a list of version 1, each of which a reader remembers
)

// valid returns what is wrong with the entry itself. The first bytes of its path
// are those of a path that is valid: they end at a slash, or with the path.
func (e *Entry) valid(known int) error {
	if err := validPath(e.Path, known); err != nil {
		return err
	}
	switch {
	case e.Kind < File || e.Kind > Same:
		return fmt.Errorf("%q has the unknown kind %d: %w", e.Path, e.Kind, paddock.Invalid)
	case e.Path == "" && e.Kind != Dir:
		return fmt.Errorf("the root is not a directory: %w", paddock.Invalid)
	case e.Mode&^0o7777 != 0:
		return fmt.Errorf("%q has mode %#o: %w", e.Path, e.Mode, paddock.Invalid)
	case e.Size < 0 || e.Size > maxSize || e.Size > 0 && e.Kind != File:
		return fmt.Errorf("%q has %d bytes: %w", e.Path, e.Size, paddock.Invalid)
	case e.Opaque && e.Kind != Dir, e.Shared && (e.Kind == Dir || e.Kind == Gone || e.Kind == Same):
		return fmt.Errorf("%q has a mark that is invalid for its kind: %w", e.Path, paddock.Invalid)
	case e.First < 0, e.First > 0 && e.Kind != Same:
		return fmt.Errorf("%q is a hard link to entry %d: %w", e.Path, e.First, paddock.Invalid)
	case e.Kind == Link && (e.Target == "" || len(e.Target) > maxTarget || strings.IndexByte(e.Target, 0) >= 0),
		e.Kind != Link && e.Target != "":
		return fmt.Errorf("%q is a link to %q: %w", e.Path, e.Target, paddock.Invalid)
	case e.Device != 0 && e.Kind != Char && e.Kind != Block:
		return fmt.Errorf("%q has a device number, but is not a device: %w", e.Path, paddock.Invalid)
	}
	return e.validAttributes()
}

func (e *Entry) validAttributes() error {
	if len(e.Attributes) > maxAttributes || len(e.Attributes) > 0 && (e.Kind == Gone || e.Kind == Same) {
		return fmt.Errorf("%q has %d attributes: %w", e.Path, len(e.Attributes), paddock.Invalid)
	}
	size := 0
	for key, value := range e.Attributes {
		if size += len(key) + len(value); key == "" || len(key) > maxName || strings.ContainsAny(key, "=\x00") || size > maxAttribute {
			return fmt.Errorf("%q has the attribute %.64q of %d bytes: %w", e.Path, key, len(value), paddock.Invalid)
		}
	}
	return nil
}

func validPath(p string, known int) error {
	if len(p) > maxPath {
		return fmt.Errorf("a path of %d bytes: %w", len(p), paddock.Invalid)
	}
	if p == "" {
		return nil
	}
	for name := range strings.SplitSeq(p[known:], "/") {
		if name == "" || name == "." || name == ".." || len(name) > maxName || strings.IndexByte(name, 0) >= 0 {
			return fmt.Errorf("the path %q: %w", p, paddock.Invalid)
		}
	}
	return nil
}

// An order checks each entry against the earlier ones. It keeps two paths and a
// number, however many entries come.
type order struct {
	began  bool
	last   string
	solid  string // the last path that is not a directory
	shared int64  // how many entries later hard links may name
}

// next checks an entry, and that it may come next.
func (o *order) next(e *Entry) error {
	known := common(o.last, e.Path)
	known = strings.LastIndexByte(e.Path[:known], '/') + 1
	if err := e.valid(known); err != nil {
		return err
	}
	switch {
	case o.began && Compare(e.Path, o.last) <= 0:
		return fmt.Errorf("%q comes after %q: %w", e.Path, o.last, paddock.Invalid)
	case o.solid != "" && strings.HasPrefix(e.Path, o.solid) && strings.HasPrefix(e.Path[len(o.solid):], "/"):
		return fmt.Errorf("%q is in %q, which is not a directory: %w", e.Path, o.solid, paddock.Invalid)
	case e.Kind == Same && e.First >= o.shared:
		return fmt.Errorf("%q is a hard link to entry %d, which is not an earlier file: %w", e.Path, e.First, paddock.Invalid)
	}
	o.began, o.last = true, e.Path
	if e.Kind != Dir {
		o.solid = e.Path
	}
	if e.Shared {
		o.shared++
	}
	return nil
}

// common returns how many bytes two texts begin with alike.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
