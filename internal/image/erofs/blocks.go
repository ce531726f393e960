package erofs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/paddock-sandbox/paddock"
)

const (
	blockBits = 12
	blockSize = 1 << blockBits
)

// A file is what an image is written into.
type file interface {
	io.WriterAt
	Truncate(size int64) error
}

// blocks are those of the file that is made, one after the other. The first is of the superblock.
type blocks struct {
	f    file
	next int64 // the first block that is free
	buf  []byte
}

func newBlocks(f file) *blocks { return &blocks{f: f, next: 1, buf: make([]byte, 256<<10)} }

// take gives the first of n free blocks.
func (b *blocks) take(n int64) (uint32, error) {
	first := b.next
	if b.next += n; b.next > math.MaxUint32 {
		return 0, tooLarge()
	}
	return uint32(first), nil
}

// put writes what a file contains into blocks of its own. Blocks of zeros become holes.
func (b *blocks) put(r io.Reader, size int64) (uint32, error) {
	if size == 0 {
		return 0, nil
	}
	first, err := b.take((size + blockSize - 1) / blockSize)
	if err != nil {
		return 0, err
	}
	for at := int64(first) * blockSize; size > 0; {
		n, err := io.ReadFull(r, b.buf[:min(size, int64(len(b.buf)))])
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, fmt.Errorf("it ends early: %w", paddock.Invalid)
		}
		if err != nil {
			return 0, err
		}
		if !zeros(b.buf[:n]) {
			if _, err := b.f.WriteAt(b.buf[:n], at); err != nil {
				return 0, fmt.Errorf("write the file of the image: %w", err)
			}
		}
		at, size = at+int64(n), size-int64(n)
	}
	return first, nil
}

// zeros reports whether all bytes are zero.
func zeros(p []byte) bool {
	return len(p) == 0 || p[0] == 0 && bytes.Equal(p[1:], p[:len(p)-1])
}
