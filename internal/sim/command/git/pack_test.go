package git

import (
	"bytes"
	be "encoding/binary"
	"testing"
)

func TestTheIndexOfAPackHoldsWhatItSays(t *testing.T) {
	index := func(n uint32, size int) []byte {
		b := append([]byte("\377tOc\x00\x00\x00\x02"), make([]byte, size-8)...)
		be.BigEndian.PutUint32(b[8+255*4:], n)
		return b
	}
	falling := index(1, 2000)
	be.BigEndian.PutUint32(falling[8:], 7)
	for _, row := range []struct {
		name  string
		b     []byte
		sound bool
	}{
		{"p.idx", index(1, packTable+packEntry+packTrailer), true}, {"p.idx", index(0, packTable+packTrailer), true}, {"p.idx", []byte("short"), true}, {"p.pack", index(1<<31, 2000), true},
		{"p.idx", index(1, packTable+packTrailer), false}, {"p.idx", index(0xffffffff, 1<<16), false}, {"p.idx", falling, false},
	} {
		if got := soundIndex(row.name, bytes.NewReader(row.b), int64(len(row.b))); got != row.sound {
			t.Errorf("%s of %d bytes: %v", row.name, len(row.b), got)
		}
	}
}
