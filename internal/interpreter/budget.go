package interpreter

import "sync"

// A Room limits the bytes of results that the host holds for several sandboxes: for those of one caller, or for all. A
// nil Room has no limit.
type Room struct{ b *budget }

// NewRoom makes a Room of most bytes. Its content counts in above too, which may be nil. Up to floor bytes find room
// even if others use up the room above.
func NewRoom(most, floor int, above *Room) *Room {
	return &Room{&budget{most: most, floor: floor, above: above.budget()}}
}

// Held returns the number of bytes held.
func (r *Room) Held() int {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	return r.b.held
}

func (r *Room) budget() *budget {
	if r == nil {
		return nil
	}
	return r.b
}

// A budget bounds the bytes that the host holds of one kind. A nil one has no bound.
type budget struct {
	most  int
	floor int     // what it may hold even if the budget above has no room
	above *budget // what is held here counts there too; nil is none

	mu   sync.Mutex
	held int // guarded by mu
}

// take takes n bytes, and answers whether there was room.
func (b *budget) take(n int) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	if n > b.most-b.held {
		b.mu.Unlock()
		return false
	}
	b.held += n
	sure := b.held <= b.floor
	b.mu.Unlock()
	switch {
	case b.above.take(n):
	case sure:
		b.above.force(n)
	default:
		b.put(-n)
		return false
	}
	return true
}

// force takes n bytes even where there is no room.
func (b *budget) force(n int) {
	for ; b != nil; b = b.above {
		b.put(n)
	}
}

func (b *budget) give(n int) {
	for ; b != nil; b = b.above {
		b.put(-n)
	}
}

// put counts n bytes here alone.
func (b *budget) put(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held += n
}
