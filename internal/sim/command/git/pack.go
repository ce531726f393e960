package git

import (
	be "encoding/binary"
	"io"
	"strings"
)

// The library makes room for as many objects as the index of a pack says that
// there are, before it has read one. So what the index says is compared with
// its length first.
const (
	packTable   = 8 + 256*4  // signature, version, and how many names begin with each byte
	packEntry   = 20 + 4 + 4 // name, checksum, place
	packTrailer = 20 + 20
)

// soundIndex reports whether the index of a pack, if name is one, can hold what it
// says.
func soundIndex(name string, r io.ReaderAt, size int64) bool {
	if !strings.HasSuffix(name, ".idx") {
		return true
	}
	head := make([]byte, packTable)
	if n, _ := r.ReadAt(head, 0); n < len(head) {
		return true // the library says what is wrong
	}
	last := uint32(0)
	for at := 8; at < packTable; at += 4 {
		n := be.BigEndian.Uint32(head[at:])
		if n < last {
			return false
		}
		last = n
	}
	return packTable+int64(last)*packEntry+packTrailer <= size
}
