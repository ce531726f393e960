package qemu

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"iter"

	"github.com/paddock-sandbox/paddock"
)

const pageSize = 4096

// Bits of a page's entry in /proc/PID/pagemap.
const (
	pagePresent = 1 << 63
	pageSwapped = 1 << 62
	pageOfFile  = 1 << 61 // of a file, or shared

	entrySize = 8
)

// A run is a sequence of adjacent pages of one kind.
type run struct {
	first, count int64
	own          bool // QEMU's own page, of no file
}

// runs returns the runs in entries of pagemap.
func runs(entries []byte) iter.Seq[run] {
	return func(yield func(run) bool) {
		var r run
		for i := int64(0); len(entries) >= entrySize; i, entries = i+1, entries[entrySize:] {
			own := isOwn(binary.NativeEndian.Uint64(entries))
			if r.count > 0 && own != r.own {
				if !yield(r) {
					return
				}
				r = run{}
			}
			if r.count == 0 {
				r = run{first: i, own: own}
			}
			r.count++
		}
		if r.count > 0 {
			yield(r)
		}
	}
}

// isOwn reports whether a page of a private mapping was written, or may have been. For a
// swapped-out page pageOfFile has no meaning.
func isOwn(entry uint64) bool {
	return entry&pageSwapped != 0 || entry&pagePresent != 0 && entry&pageOfFile == 0
}

// A sheet writes the pages of a memory that are not zero.
type sheet struct {
	out  io.WriterAt
	left int64 // bytes that may still be written
	buf  []byte
	zero []byte
}

func newSheet(out io.WriterAt, limit int64) *sheet {
	return &sheet{out: out, left: limit, buf: make([]byte, 256*pageSize), zero: make([]byte, pageSize)}
}

// copy copies a range of whole pages from a reader by offset.
func (s *sheet) copy(read func(b []byte, off int64) error, off, end int64) error {
	for off < end {
		part := s.buf[:min(int64(len(s.buf)), end-off)]
		if err := read(part, off); err != nil {
			return err
		}
		if err := s.put(part, off); err != nil {
			return err
		}
		off += int64(len(part))
	}
	return nil
}

// put writes the pages that are not zero, in as few writes as possible.
func (s *sheet) put(part []byte, off int64) error {
	start := 0
	flush := func(end int) error {
		if start == end {
			return nil
		}
		if s.left -= int64(end - start); s.left < 0 {
			return fmt.Errorf("the saved memory would exceed the limit: %w", paddock.Exhausted)
		}
		_, err := s.out.WriteAt(part[start:end], off+int64(start))
		return err
	}
	for i := 0; i < len(part); i += pageSize {
		if !bytes.Equal(part[i:i+pageSize], s.zero) {
			continue
		}
		if err := flush(i); err != nil {
			return err
		}
		start = i + pageSize
	}
	return flush(len(part))
}
