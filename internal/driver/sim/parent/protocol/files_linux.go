package protocol

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/snapshot"
)

// Files go through the control socket as pieces, from the child when it is
// asked for a snapshot, and to it behind the order that makes a computer of
// one. A child has no directory to write to, and the host believes nothing that
// comes: the store checks each entry as one of a stranger.

// A Piece is one message of a stream of files: an entry, bytes of the entry before, or the end of
// the stream, with an error if it failed.
type Piece struct {
	Entry  *Entry
	Offset int64
	Bytes  string
	End    bool
	Kind   paddock.Kind
	Error  string
}

// An Entry is a snapshot.Entry without its content. Its path begins with so many bytes of the one
// before, and goes on with Path: in a deep directory, whole ones would be most of the stream.
type Entry struct {
	Same     int
	Path     string
	Kind     byte
	Mode     uint32
	UID, GID uint32
	ModTime  time.Time
	Target   string
	First    int64
	Device   uint64
	Opaque   bool
	Shared   bool
	Size     int64
}

// maxPiece bounds a piece, and maxBytes what of a file is in one.
const (
	maxPiece = 4 << 20
	maxBytes = 1 << 20
)

// A counted reader counts what is read.
type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// SendFiles writes a stream of files. An error of the entries ends the stream and is sent to the
// reader, as is the error of files for which the reader has no room.
func SendFiles(w io.Writer, entries iter.Seq2[snapshot.Entry, error], room Room) error {
	s := sender{w: w, left: room}
	var broken error
	for e, err := range entries {
		if broken = err; broken == nil {
			broken = s.file(e)
		}
		if broken != nil {
			break
		}
	}
	if s.err != nil {
		return s.err
	}
	end := Piece{End: true}
	if broken != nil {
		end.Kind, end.Error = paddock.KindOf(broken), broken.Error()
	}
	return Send(w, end)
}

// A sender writes the pieces of a stream, as long as there is room for them.
type sender struct {
	w    io.Writer
	left Room
	last string // the path of the last entry
	err  error  // of a write: nothing can follow
}

// file sends an entry and its contents.
func (s *sender) file(e snapshot.Entry) error {
	if len(e.Path) > s.left.Path {
		return fmt.Errorf("a path of %d bytes, and a snapshot has none over %d: make directories less deep: %w", len(e.Path), s.left.Path, paddock.Exhausted)
	}
	same := 0
	for same < len(s.last) && same < len(e.Path) && s.last[same] == e.Path[same] {
		same++
	}
	s.last = e.Path
	head := &Entry{
		Same: same, Path: e.Path[same:], Kind: byte(e.Kind), Mode: e.Mode, UID: e.UID, GID: e.GID, ModTime: e.ModTime,
		Target: e.Target, First: e.First, Device: e.Device, Opaque: e.Opaque, Shared: e.Shared, Size: e.Size,
	}
	if err := s.send(Piece{Entry: head}); err != nil || e.Data == nil {
		return err
	}
	for x, err := range e.Data {
		if err != nil {
			return err
		}
		for at := 0; at < len(x.Bytes); at += maxBytes {
			part := x.Bytes[at:min(at+maxBytes, len(x.Bytes))]
			if err := s.send(Piece{Offset: x.Offset + int64(at), Bytes: string(part)}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *sender) send(p Piece) error {
	b, err := pack(p)
	if err != nil {
		return err
	}
	if len(b)-headSize > maxPiece || !s.left.take(&p, int64(len(b))) {
		return fmt.Errorf("the files are more than a snapshot may have with this disk limit: remove some, or raise it: %w", paddock.Exhausted)
	}
	_, s.err = s.w.Write(b)
	return s.err
}

// A Stream reads what [SendFiles] writes.
type Stream struct {
	R     io.Reader
	Ready func() error // called before each piece; nil is nothing
	next  *Piece       // read already
	last  string       // the path of the last entry
	Ended bool
	err   error

	// Left is how much may still come, because a child that was taken over could send files without end.
	Left Room
}

// A Room is how much a stream may hold.
type Room struct {
	Bytes   int64 // of contents, each piece of them counted as a block of a disk at least
	Entries int64 // bytes of the messages of entries
	Pieces  int64
	Path    int // bytes of each path: entries share prefixes, so a path can be longer than its message
}

// take counts a message of n bytes, and reports whether there was room for it.
func (r *Room) take(p *Piece, n int64) bool {
	r.Pieces--
	if p.Entry != nil {
		r.Entries -= n
	} else {
		r.Bytes -= max(n, block)
	}
	return r.Pieces >= 0 && r.Bytes >= 0 && r.Entries >= 0
}

// block is the unit in which a computer counts contents. A piece of one byte becomes a file on the host's
// disk too.
const block = 4096

// RoomOf returns the room for the files of a computer with these limits. It is somewhat larger than the
// limits. Files of the host below a mount can still exceed it, if their attributes were changed.
func RoomOf(disk, inodes, path int64) Room {
	return Room{
		Bytes:   2*disk + 64<<20,
		Entries: 2*Names(inodes) + 64<<20,
		Pieces:  4*(inodes+disk/block) + 100_000,
		Path:    int(min(budget.Limits{Path: path}.Deepest(), maxPiece)) + maxTarget,
	}
}

// maxTarget is the maximum length of the target of a mount, in bytes.
const maxTarget = 4096

// Bounded returns a stream that fails when there is no room for what comes. A child sends no more than
// the room that its order names, so only a child that was taken over exceeds it.
func Bounded(r io.Reader, room Room) *Stream { return &Stream{R: r, Left: room} }

// Names returns how many bytes the names of so many files, and the texts of links, take at most, each
// counted with 64 bytes beside its own. A computer counts them so: a file may have many names.
func Names(inodes int64) int64 { return inodes * 256 }

// Trusted returns a stream of the host, which checked what it sends.
func Trusted(r io.Reader) *Stream { return &Stream{R: r, Left: Unbounded()} }

// Unbounded returns room for everything.
func Unbounded() Room { return Room{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt} }

// Look returns the next piece without consuming it.
func (s *Stream) Look() (*Piece, error) {
	if s.next != nil || s.err != nil {
		return s.next, s.err
	}
	if s.Ended {
		s.err = io.EOF
		return nil, s.err
	}
	if s.Ready != nil {
		if s.err = s.Ready(); s.err != nil {
			return nil, s.err
		}
	}
	var p Piece
	in := &counted{r: s.R}
	if s.err = Receive(in, &p, maxPiece); s.err != nil {
		return nil, s.err
	}
	fits := s.Left.take(&p, in.n)
	switch {
	case p.End:
		s.Ended = true
		s.err = io.EOF
		if p.Error != "" {
			s.err = Reply{Kind: p.Kind, Error: p.Error}.err()
		}
		return nil, s.err
	case !fits:
		s.err = fmt.Errorf("more files than there can be: %w", ErrNonsense)
		return nil, s.err
	case (p.Entry == nil) == (p.Bytes == ""):
		s.err = fmt.Errorf("a piece of files that is neither an entry nor bytes: %w", ErrNonsense)
		return nil, s.err
	}
	s.next = &p
	return s.next, nil
}

// Entries returns the entries of the stream. It can be called once.
func (s *Stream) Entries() iter.Seq2[snapshot.Entry, error] {
	return func(yield func(snapshot.Entry, error) bool) {
		for {
			p, err := s.Look()
			if errors.Is(err, io.EOF) && s.Ended {
				return
			}
			if err == nil && p.Entry == nil {
				s.err = fmt.Errorf("bytes that belong to no entry: %w", ErrNonsense)
				err = s.err
			}
			if err != nil {
				yield(snapshot.Entry{}, err)
				return
			}
			s.next = nil
			h := p.Entry
			if h.Same < 0 || h.Same > len(s.last) || h.Same+len(h.Path) > s.Left.Path {
				s.err = fmt.Errorf("a path that goes on from one that is not there, or is too long: %w", ErrNonsense)
				yield(snapshot.Entry{}, s.err)
				return
			}
			s.last = s.last[:h.Same] + h.Path
			e := snapshot.Entry{
				Path: s.last, Kind: snapshot.Kind(h.Kind), Mode: h.Mode, UID: h.UID, GID: h.GID, ModTime: h.ModTime,
				Target: h.Target, First: h.First, Device: h.Device, Opaque: h.Opaque, Shared: h.Shared, Size: h.Size,
			}
			if e.Kind == snapshot.File {
				e.Data = s.data()
			}
			if !yield(e, nil) {
				return
			}
			s.pass()
		}
	}
}

// data gives the bytes up to the next entry. An error is told by what follows,
// too.
func (s *Stream) data() iter.Seq2[snapshot.Extent, error] {
	return func(yield func(snapshot.Extent, error) bool) {
		for {
			p, err := s.Look()
			if err != nil {
				if !s.Ended || !errors.Is(err, io.EOF) {
					yield(snapshot.Extent{}, err)
				}
				return
			}
			if p.Entry != nil {
				return
			}
			s.next = nil
			if !yield(snapshot.Extent{Offset: p.Offset, Bytes: []byte(p.Bytes)}, nil) {
				return
			}
		}
	}
}

// pass goes over what is left of an entry's bytes. An error stays for look.
func (s *Stream) pass() {
	for {
		p, err := s.Look()
		if err != nil || p.Entry != nil {
			return
		}
		s.next = nil
	}
}

// Drain reads the rest of the stream, so that the next message can be read.
func (s *Stream) Drain() error {
	for {
		if _, err := s.Look(); err != nil {
			if s.Ended {
				return nil
			}
			return err
		}
		s.next = nil
	}
}
