package access

import (
	"context"
	"sync"
	"time"
)

// How long, and of how many keys, it is known without a question that they are live. A
// page has many parts, each with the same signature.
const (
	liveTime = time.Second
	liveMost = 1024
)

// A holder is a tenant's key.
type holder struct{ tenant, key string }

// lives knows which keys were live a moment ago. A key that is not is asked for again
// each time: nothing here lets anybody in, or out, for longer than liveTime.
type lives struct {
	mu   sync.Mutex
	seen map[holder]time.Time // guarded by mu; when it was live
}

// alive tells whether a key is live, by what was known a moment ago or by asking.
func (l *lives) alive(ctx context.Context, who holder, now time.Time, ask func(ctx context.Context, tenant, key string) (bool, error)) (bool, error) {
	l.mu.Lock()
	at, known := l.seen[who]
	l.mu.Unlock()
	if age := now.Sub(at); known && age >= 0 && age < liveTime {
		return true, nil
	}
	live, err := ask(ctx, who.tenant, who.key)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || !live {
		delete(l.seen, who)
		return false, err
	}
	if l.seen == nil || len(l.seen) >= liveMost {
		l.seen = make(map[holder]time.Time)
	}
	l.seen[who] = now
	return true, nil
}
