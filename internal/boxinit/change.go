package boxinit

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// A ChangeKind is how a file of a tree changes.
type ChangeKind byte

// Kinds of changes. The init reports the first ones before it makes the change, and waits for the answer, because
// something is lost by them. It reports the others afterwards.
const (
	ChangeContent ChangeKind = 1 + iota // the file is opened for writing
	ChangeMode                          // permission bits
	ChangeRemoved                       // also by a rename of another file to the path
	ChangeSettled                       // no change: all that was reported before has been made or has failed
	ChangeMade
	ChangeFailed    // the last change that was reported for the path was not made
	ChangeLinked    // To is another name of the file at Path
	ChangeMoved     // nothing was at To
	ChangeExchanged // what was at To is at Path now
)

// Waits reports whether the init waits for the answer to a report of this kind.
func (k ChangeKind) Waits() bool { return k <= ChangeSettled }

// A Change is a report of the init on the file of FileWitness: a packet of the kind, the number of the tree in
// [Config.Trees] in two bytes, and the path in it. From ChangeLinked on a zero byte and the other number and path
// follow. All numbers are in network order.
//
// The answer of the host is the number of the error with which the call fails, in four bytes.
type Change struct {
	Kind   ChangeKind
	Tree   int
	Path   string // in the tree, without a slash before or after it; empty is the tree itself
	ToTree int    // of a link or a move
	To     string
}

// ChangeMax bounds a report in bytes.
const ChangeMax = 2*pathMax + 16

// pathMax bounds a path in bytes, as PATH_MAX of the kernel does.
const pathMax = 4096

// Two reports whether a report of this kind has two paths.
func (k ChangeKind) Two() bool { return k >= ChangeLinked }

// Append appends the report to b.
func (c *Change) Append(b []byte) []byte {
	b = append(b, byte(c.Kind))
	b = append(binary.BigEndian.AppendUint16(b, uint16(c.Tree)), c.Path...)
	if c.Kind.Two() {
		b = append(b, 0)
		b = append(binary.BigEndian.AppendUint16(b, uint16(c.ToTree)), c.To...)
	}
	return b
}

// ParseChange reads a report, which may be forged. Its paths have no empty part, no "." and no "..".
func ParseChange(b []byte) (c Change, err error) {
	bad := func(why string) (Change, error) {
		return Change{}, fmt.Errorf("a report of a change %s: %w", why, paddock.Invalid)
	}
	if len(b) < 3 || len(b) > ChangeMax {
		return bad(fmt.Sprintf("has %d bytes", len(b)))
	}
	c.Kind = ChangeKind(b[0])
	if c.Kind < ChangeContent || c.Kind > ChangeExchanged {
		return bad(fmt.Sprintf("has the kind %d", b[0]))
	}
	c.Tree = int(binary.BigEndian.Uint16(b[1:]))
	path, rest, more := strings.Cut(string(b[3:]), "\x00")
	if c.Path = path; more != c.Kind.Two() {
		return bad("has the wrong number of paths")
	}
	if more {
		if len(rest) < 2 || strings.IndexByte(rest[2:], 0) >= 0 {
			return bad("has no second path")
		}
		c.ToTree, c.To = int(binary.BigEndian.Uint16([]byte(rest))), rest[2:]
	}
	for _, p := range []string{c.Path, c.To} {
		if !plainPath(p) {
			return bad(fmt.Sprintf("has the path %.100q", p))
		}
	}
	return c, nil
}

// plainPath reports whether a path is one below a directory, or empty.
func plainPath(p string) bool {
	if p == "" {
		return true
	}
	if len(p) > pathMax {
		return false
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == "" || part == "." || part == ".." || len(part) > 255 {
			return false
		}
	}
	return true
}

// HeldMax bounds the list of open files. A list of so many may lack some.
const HeldMax = 10_000

// WriteChanges writes a list of changes: each with its length before it in two bytes, and at the end a length of zero.
func WriteChanges(w io.Writer, list []Change) error {
	out := bufio.NewWriter(w)
	var b []byte
	for _, c := range list {
		b = c.Append(append(b[:0], 0, 0))
		binary.BigEndian.PutUint16(b, uint16(len(b)-2))
		if _, err := out.Write(b); err != nil {
			return err
		}
	}
	if _, err := out.Write([]byte{0, 0}); err != nil {
		return err
	}
	return out.Flush()
}

// ReadChanges reads what WriteChanges has written. It may be forged.
func ReadChanges(r io.Reader) ([]Change, error) {
	var list []Change
	var head [2]byte
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return nil, fmt.Errorf("a list of changes is cut off: %w", err)
		}
		n := int(binary.BigEndian.Uint16(head[:]))
		if n == 0 {
			return list, nil
		}
		if len(list) >= HeldMax {
			return nil, fmt.Errorf("more than %d changes: %w", HeldMax, paddock.Invalid)
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, fmt.Errorf("a list of changes is cut off: %w", err)
		}
		c, err := ParseChange(b)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
}
