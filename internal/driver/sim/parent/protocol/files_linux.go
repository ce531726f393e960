package protocol

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/paddock-sandbox/paddock"
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

// An Entry is a snapshot.Entry without its content.
type Entry struct {
	Path     string
	Kind     byte
	Mode     uint32
	UID, GID uint32
	ModTime  time.Time
	Target   string
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

// SendFiles writes a stream of files. An error of the entries ends the stream and is sent to the
// reader.
func SendFiles(w io.Writer, entries iter.Seq2[snapshot.Entry, error]) error {
	var broken error
	for e, err := range entries {
		if broken = err; broken != nil {
			break
		}
		head := &Entry{
			Path: e.Path, Kind: byte(e.Kind), Mode: e.Mode, UID: e.UID, GID: e.GID, ModTime: e.ModTime,
			Target: e.Target, Device: e.Device, Opaque: e.Opaque, Shared: e.Shared, Size: e.Size,
		}
		if err := Send(w, Piece{Entry: head}); err != nil {
			return err
		}
		if e.Data == nil {
			continue
		}
		for x, err := range e.Data {
			if broken = err; broken != nil {
				break
			}
			for at := 0; at < len(x.Bytes); at += maxBytes {
				part := x.Bytes[at:min(at+maxBytes, len(x.Bytes))]
				if err := Send(w, Piece{Offset: x.Offset + int64(at), Bytes: string(part)}); err != nil {
					return err
				}
			}
		}
		if broken != nil {
			break
		}
	}
	end := Piece{End: true}
	if broken != nil {
		end.Kind, end.Error = paddock.KindOf(broken), broken.Error()
	}
	return Send(w, end)
}

// A Stream reads what [SendFiles] writes.
type Stream struct {
	R     io.Reader
	Ready func() error // called before each piece; nil is nothing
	next  *Piece       // read already
	Ended bool
	err   error

	// How much may come yet: bytes of files, and pieces. The end of a stream of
	// a child that was taken over must not be that child's affair.
	Bytes, Pieces int64
}

// Bounded returns a stream that fails when it exceeds bounds. The bounds are somewhat larger than
// the limits of disk and inodes, so that only a child that was taken over exceeds them.
func Bounded(r io.Reader, disk, inodes int64) *Stream {
	return &Stream{R: r, Bytes: 2*disk + 64<<20, Pieces: 4*(inodes+disk/4096) + 100_000}
}

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
	if s.err = Receive(s.R, &p, maxPiece); s.err != nil {
		return nil, s.err
	}
	s.Pieces--
	s.Bytes -= int64(len(p.Bytes))
	switch {
	case s.Pieces < 0 || s.Bytes < 0:
		s.err = fmt.Errorf("more files than there can be: %w", ErrNonsense)
		return nil, s.err
	case p.End:
		s.Ended = true
		s.err = io.EOF
		if p.Error != "" {
			s.err = Reply{Kind: p.Kind, Error: p.Error}.err()
		}
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
			e := snapshot.Entry{
				Path: h.Path, Kind: snapshot.Kind(h.Kind), Mode: h.Mode, UID: h.UID, GID: h.GID, ModTime: h.ModTime,
				Target: h.Target, Device: h.Device, Opaque: h.Opaque, Shared: h.Shared, Size: h.Size,
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
