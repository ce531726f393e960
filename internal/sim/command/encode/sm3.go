package encode

import (
	"encoding/binary"
	"hash"
	"math/bits"
)

// sm3 is the hash function of GB/T 32905-2016.
type sm3 struct {
	state [8]uint32
	block [64]byte
	held  int
	total uint64
}

func newSM3() hash.Hash {
	h := &sm3{}
	h.Reset()
	return h
}

func (h *sm3) Size() int      { return 32 }
func (h *sm3) BlockSize() int { return 64 }

func (h *sm3) Reset() {
	*h = sm3{state: [8]uint32{0x7380166f, 0x4914b2b9, 0x172442d7, 0xda8a0600, 0xa96f30bc, 0x163138aa, 0xe38dee4d, 0xb0fb0e4e}}
}

func (h *sm3) Write(p []byte) (int, error) {
	n := len(p)
	h.total += uint64(n)
	for len(p) > 0 {
		k := copy(h.block[h.held:], p)
		h.held += k
		p = p[k:]
		if h.held == len(h.block) {
			h.mix()
			h.held = 0
		}
	}
	return n, nil
}

func (h *sm3) Sum(b []byte) []byte {
	c := *h
	var tail [72]byte
	tail[0] = 0x80
	pad := 56 - c.held
	if pad <= 0 {
		pad += 64
	}
	binary.BigEndian.PutUint64(tail[pad:], h.total*8)
	_, _ = c.Write(tail[:pad+8])
	for _, x := range c.state {
		b = binary.BigEndian.AppendUint32(b, x)
	}
	return b
}

func (h *sm3) mix() {
	var w [68]uint32
	for i := range 16 {
		w[i] = binary.BigEndian.Uint32(h.block[4*i:])
	}
	for i := 16; i < 68; i++ {
		x := w[i-16] ^ w[i-9] ^ bits.RotateLeft32(w[i-3], 15)
		w[i] = x ^ bits.RotateLeft32(x, 15) ^ bits.RotateLeft32(x, 23) ^ bits.RotateLeft32(w[i-13], 7) ^ w[i-6]
	}
	s := h.state
	for i := range 64 {
		t := uint32(0x79cc4519)
		if i >= 16 {
			t = 0x7a879d8a
		}
		s1 := bits.RotateLeft32(bits.RotateLeft32(s[0], 12)+s[4]+bits.RotateLeft32(t, i%32), 7)
		s2 := s1 ^ bits.RotateLeft32(s[0], 12)
		var f, g uint32
		if i < 16 {
			f, g = s[0]^s[1]^s[2], s[4]^s[5]^s[6]
		} else {
			f, g = s[0]&s[1]|s[0]&s[2]|s[1]&s[2], s[4]&s[5]|^s[4]&s[6]
		}
		t1 := f + s[3] + s2 + (w[i] ^ w[i+4])
		t2 := g + s[7] + s1 + w[i]
		s[3], s[2], s[1], s[0] = s[2], bits.RotateLeft32(s[1], 9), s[0], t1
		s[7], s[6], s[5], s[4] = s[6], bits.RotateLeft32(s[5], 19), s[4], t2^bits.RotateLeft32(t2, 9)^bits.RotateLeft32(t2, 17)
	}
	for i := range s {
		h.state[i] ^= s[i]
	}
}
