package gateway

import (
	"fmt"
	"sync"

	"github.com/paddock-sandbox/paddock"
)

// An entry is something that lives and was allowed, or is being judged.
type entry struct {
	holds func(*state) bool // whether these rules allow it still
	cut   func()            // ends it; may be called more than once, and at any time
}

// live are all entries. Whoever adds one judges it afterwards, with the rules
// of then: so it is either judged by new rules, or found by them.
type live struct {
	most int // at once

	mu      sync.Mutex
	entries map[*entry]struct{} // guarded by mu
	over    bool                // guarded by mu
}

// add gives the way to take the entry out again. When all is over it is Canceled,
// and where there are as many as there may be, Exhausted.
func (l *live) add(e *entry) (remove func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.over:
		return nil, fmt.Errorf("the gateway is closed: %w", paddock.Canceled)
	case len(l.entries) >= l.most:
		return nil, fmt.Errorf("%d connections and requests are open: %w", l.most, paddock.Exhausted)
	case l.entries == nil:
		l.entries = map[*entry]struct{}{}
	}
	l.entries[e] = struct{}{}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.entries, e)
	}, nil
}

// judge cuts what a state does not allow.
func (l *live) judge(s *state) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e := range l.entries {
		if !e.holds(s) {
			e.cut()
		}
	}
}

// cut cuts everything, now and later.
func (l *live) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for e := range l.entries {
		e.cut()
	}
}
