package interpreter

import "sync"

// A Room limits the bytes of results that the host holds for several sandboxes: for those of one caller, or for all. A
// nil Room has no limit.
type Room struct{ b *budget }

// NewRoom makes a Room of most bytes. Its content counts in above too, which may be nil.
func NewRoom(most int, above *Room) *Room {
	return &Room{&budget{most: most, above: above.budget()}}
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
	b.mu.Unlock()
	if !b.above.take(n) {
		b.put(-n)
		return false
	}
	return true
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
