package python

import (
	"github.com/tetratelabs/wazero/experimental"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// A memory is what an interpreter holds. It counts for the computer.
type memory struct {
	t       *kernel.Task
	limit   int64
	b       []byte
	counted int64
	refused bool
}

func (m *memory) allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate implements the engine's interface: nil is a refusal, which the
// interpreter takes for having no more memory.
func (m *memory) Reallocate(size uint64) []byte {
	if int64(size) > m.limit {
		m.refused = true
		return nil
	}
	if size <= uint64(cap(m.b)) {
		m.b = m.b[:size]
		return m.b
	}
	room := min(m.limit, int64(size)+int64(size)/4)
	if m.t.K.Heap().Add(room-m.counted) != nil {
		room = int64(size)
		if m.t.K.Heap().Add(room-m.counted) != nil {
			m.refused = true
			return nil
		}
	}
	m.counted = room
	b := make([]byte, size, room)
	copy(b, m.b)
	m.b = b
	return b
}

// Free releases all memory.
func (m *memory) Free() {
	_ = m.t.K.Heap().Add(-m.counted)
	m.counted, m.b = 0, nil
}
