package archive

import (
	"encoding/binary"
	"io"
)

// A zstdFrames passes on zstd data. The header of each frame asks the decoder
// for a window; its memory counts before the decoder sees the header.
type zstdFrames struct {
	u *unpacker
	r io.Reader

	state  func(z *zstdFrames, b byte) // what the next byte is for; nil is the magic number
	field  []byte                      // bytes of the field that is being read
	skip   uint64                      // bytes that say nothing
	sum    bool                        // a checksum follows the last block
	lost   bool                        // it is no zstd, which the decoder says
	window int                         // held
}

func (z *zstdFrames) Read(p []byte) (int, error) {
	n, err := z.r.Read(p)
	z.scan(p[:n])
	return n, err
}

func (z *zstdFrames) scan(p []byte) {
	for len(p) > 0 && !z.lost {
		if z.skip > 0 {
			n := min(z.skip, uint64(len(p)))
			z.skip -= n
			p = p[n:]
			continue
		}
		if z.state == nil {
			z.state = (*zstdFrames).magic
		}
		z.field = append(z.field, p[0])
		z.state(z, p[0])
		p = p[1:]
	}
}

// next begins another field.
func (z *zstdFrames) next(state func(*zstdFrames, byte)) {
	z.field, z.state = z.field[:0], state
}

func (z *zstdFrames) magic(byte) {
	if len(z.field) < 4 {
		return
	}
	switch m := binary.LittleEndian.Uint32(z.field); {
	case m == 0xfd2fb528:
		z.next((*zstdFrames).header)
	case m&^15 == 0x184d2a50:
		z.next((*zstdFrames).skippable)
	default:
		z.lost = true
	}
}

func (z *zstdFrames) skippable(byte) {
	if len(z.field) == 4 {
		z.skip = uint64(binary.LittleEndian.Uint32(z.field))
		z.next(nil)
	}
}

// header reads the descriptor of a frame, its window, the number of its dictionary, and its size.
func (z *zstdFrames) header(byte) {
	d := z.field[0]
	single := d&0x20 != 0
	at := 1
	if !single {
		at++
	}
	at += []int{0, 1, 2, 4}[d&3]
	length := []int{0, 2, 4, 8}[d>>6]
	if length == 0 && single {
		length = 1
	}
	if len(z.field) < at+length {
		return
	}
	var window uint64
	if single {
		var size [8]byte
		copy(size[:], z.field[at:])
		if window = binary.LittleEndian.Uint64(size[:]); length == 2 {
			window += 256
		}
	} else {
		base := uint64(1) << (10 + z.field[1]>>3)
		window = base + base/8*uint64(z.field[1]&7)
	}
	z.sum = d&4 != 0
	z.next((*zstdFrames).block)
	if window > maxWindow { // the decoder refuses it
		z.lost = true
		return
	}
	if more := int(window) - z.window; more > 0 {
		z.u.hold(more)
		z.window += more
	}
}

func (z *zstdFrames) block(byte) {
	if len(z.field) < 3 {
		return
	}
	h := uint32(z.field[0]) | uint32(z.field[1])<<8 | uint32(z.field[2])<<16
	if z.skip = uint64(h >> 3); h>>1&3 == 1 { // one byte, many times
		z.skip = 1
	}
	z.next((*zstdFrames).block)
	if h&1 != 0 { // the last one
		if z.next(nil); z.sum {
			z.skip += 4
		}
	}
}
