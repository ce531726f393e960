package lifetime

import (
	"slices"
	"sync"
)

// places are the places of a lane. Keys take turns, and each key has its own first-in,
// first-out order. So the sandboxes of one key, however many and however slow, delay another
// key only until one of them leaves its place.
type places struct {
	each int // maximum of one key

	mu    sync.Mutex
	free  int                  // guarded by mu
	held  map[string]int       // guarded by mu; places of each key, without zeros
	wait  map[string][]*ticket // guarded by mu; no empty lists
	turns []string             // guarded by mu; keys that wait, the next first
}

// A ticket is a place, or a position in the line for one.
type ticket struct {
	key   string
	ready chan struct{} // closed when it is a place
}

func newPlaces(all, each int) *places {
	return &places{each: each, free: all, held: make(map[string]int), wait: make(map[string][]*ticket)}
}

// ask takes a position in the line. Call leave afterwards.
func (p *places) ask(key string) *ticket {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := &ticket{key: key, ready: make(chan struct{})}
	if len(p.wait[key]) == 0 {
		p.turns = append(p.turns, key)
	}
	p.wait[key] = append(p.wait[key], t)
	p.grant()
	return t
}

// leave gives a place back, or a position in the line.
func (p *places) leave(t *ticket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := slices.Index(p.wait[t.key], t); at >= 0 {
		p.take(t.key, at)
	} else {
		p.free++
		if p.held[t.key]--; p.held[t.key] == 0 {
			delete(p.held, t.key)
		}
	}
	p.grant()
}

// grant gives the free places to the keys whose turn it is. mu is held.
func (p *places) grant() {
	for p.free > 0 {
		i := slices.IndexFunc(p.turns, func(key string) bool { return p.held[key] < p.each })
		if i < 0 {
			return
		}
		key := p.turns[i]
		t := p.take(key, 0)
		if len(p.wait[key]) > 0 { // move the key to the end
			p.turns = append(slices.Delete(p.turns, i, i+1), key)
		}
		p.free--
		p.held[key]++
		close(t.ready)
	}
}

// take removes a ticket from the line. mu is held.
func (p *places) take(key string, at int) *ticket {
	t := p.wait[key][at]
	if p.wait[key] = slices.Delete(p.wait[key], at, at+1); len(p.wait[key]) == 0 {
		delete(p.wait, key)
		p.turns = slices.DeleteFunc(p.turns, func(other string) bool { return other == key })
	}
	return t
}
