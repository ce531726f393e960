package gateway

import (
	"fmt"
	"sync"

	"github.com/paddock-sandbox/paddock"
)

// An entry is something in progress that was allowed, or is being judged.
type entry struct {
	holds func(*state) bool // reports whether these rules still allow it
	cut   func()            // ends it; may be called repeatedly, at any time
}

// live has all entries. Add an entry first and judge it afterwards by the rules at that
// time. Then new rules either judge it or find it in the list.
type live struct {
	most int // maximum at once

	mu      sync.Mutex
	entries map[*entry]struct{} // guarded by mu
	over    bool                // guarded by mu
}

// add returns a function that removes the entry. It returns Canceled after cut, and
// Exhausted at the maximum.
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
