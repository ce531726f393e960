package interpreter

import "sync"

// A budget bounds the bytes that the host holds of one kind. A nil one has no bound.
type budget struct {
	most int

	mu   sync.Mutex
	held int // guarded by mu
}

// take takes n bytes, and answers whether there was room.
func (b *budget) take(n int) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > b.most-b.held {
		return false
	}
	b.held += n
	return true
}

func (b *budget) give(n int) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= n
}
