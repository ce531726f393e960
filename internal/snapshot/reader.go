package snapshot

import (
	"fmt"
	"io"
	"sort"

	"github.com/paddock-sandbox/paddock"
)

// A Reader reads contents of a store from any offset. It holds the last part that it read. It is not safe for concurrent
// use.
type Reader struct {
	s    *Store
	c    Contents
	last int
	b    []byte
}

// Reader returns a reader of contents.
func (s *Store) Reader(c Contents) *Reader { return &Reader{s: s, c: c} }

// Read returns bytes without holes at an offset.
func (r *Reader) Read(offset, size int64) ([]byte, error) {
	if offset < 0 || size < 0 || size > maxChunk {
		return nil, fmt.Errorf("%d bytes at %d: %w", size, offset, paddock.Invalid)
	}
	out := make([]byte, 0, size)
	for size > int64(len(out)) {
		at := offset + int64(len(out))
		i := sort.Search(len(r.c.parts), func(i int) bool { return r.c.parts[i].offset+r.c.parts[i].size > at })
		if i == len(r.c.parts) || r.c.parts[i].offset > at {
			return nil, io.ErrUnexpectedEOF
		}
		p := r.c.parts[i]
		if r.b == nil || r.last != i {
			b, err := r.s.blob(p)
			if err != nil {
				return nil, err
			}
			r.last, r.b = i, b
		}
		b := r.b[at-p.offset:]
		out = append(out, b[:min(int64(len(b)), size-int64(len(out)))]...)
	}
	return out, nil
}
