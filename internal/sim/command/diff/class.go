package diff

import (
	"bytes"
	"hash/maphash"
)

// classes numbers texts: equal ones are of one class.
type classes struct {
	seed  maphash.Seed
	slots []int32 // a power of two of them: the number of a text and one, or 0
	texts []text
}

type text struct {
	hash uint64
	b    []byte
}

func newClasses(n int) *classes {
	size := 1024
	for size < 2*n && size < 1<<21 {
		size *= 2
	}
	return &classes{seed: maphash.MakeSeed(), slots: make([]int32, size), texts: make([]text, 0, size/4)}
}

// find gives the number of b, and tells whether it is a new one. A new text is
// kept, and copied if it is passing.
func (c *classes) find(b []byte, passing bool) (n int, fresh bool) {
	h := maphash.Bytes(c.seed, b)
	if 2*len(c.texts) >= len(c.slots) {
		c.grow()
	}
	slot := c.slot(h, b)
	if *slot > 0 {
		return int(*slot) - 1, false
	}
	if passing {
		b = bytes.Clone(b)
	}
	c.texts = append(c.texts, text{h, b})
	*slot = int32(len(c.texts)) // diff holds no 2³¹ lines: each is counted
	return len(c.texts) - 1, true
}

func (c *classes) slot(h uint64, b []byte) *int32 {
	mask := uint64(len(c.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		n := c.slots[i]
		if n == 0 || c.texts[n-1].hash == h && bytes.Equal(c.texts[n-1].b, b) {
			return &c.slots[i]
		}
	}
}

func (c *classes) grow() {
	c.slots = make([]int32, 2*len(c.slots))
	mask := uint64(len(c.slots) - 1)
	for n, x := range c.texts {
		i := x.hash & mask
		for c.slots[i] != 0 {
			i = (i + 1) & mask
		}
		c.slots[i] = int32(n + 1)
	}
}
