package gateway

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/paddock-sandbox/paddock"
)

// A meter counts the traffic of one rule over all connections. It implements inspect.Meter.
type meter struct {
	mu             sync.Mutex
	index          int                   // guarded by mu; index of the rule
	limits         paddock.NetworkLimits // guarded by mu
	requests       int64                 // guarded by mu; used so far
	bytes          int64                 // guarded by mu; used so far
	sent, received *rate.Limiter
}

// piece is the largest unit of rate limiting.
const piece = 64 << 10

func newMeter(index int, l paddock.NetworkLimits) *meter {
	m := &meter{sent: rate.NewLimiter(rate.Inf, piece), received: rate.NewLimiter(rate.Inf, piece)}
	m.set(index, l)
	return m
}

// set changes the limits. The used amounts stay.
func (m *meter) set(index int, l paddock.NetworkLimits) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.index, m.limits = index, l
	limit := rate.Inf
	if l.Rate > 0 {
		limit = rate.Limit(l.Rate)
	}
	m.sent.SetLimit(limit)
	m.received.SetLimit(limit)
}

// request counts one request or connection.
func (m *meter) request() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.limits.Requests > 0 && m.requests >= m.limits.Requests {
		return fmt.Errorf("rules[%d] allows %d requests, and they are used up: %w", m.index, m.limits.Requests, paddock.Exhausted)
	}
	if m.limits.Bytes > 0 && m.bytes >= m.limits.Bytes {
		return m.spent()
	}
	m.requests++
	return nil
}

// giveBack undoes request.
func (m *meter) giveBack() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests--
}

func (m *meter) spent() error {
	return fmt.Errorf("rules[%d] allows %d bytes, and they are used up: %w", m.index, m.limits.Bytes, paddock.Exhausted)
}

// Sent counts n bytes to the destination.
func (m *meter) Sent(ctx context.Context, n int) error { return m.take(ctx, m.sent, n) }

// Received counts n bytes to the guest.
func (m *meter) Received(ctx context.Context, n int) error { return m.take(ctx, m.received, n) }

func (m *meter) take(ctx context.Context, l *rate.Limiter, n int) error {
	m.mu.Lock()
	if m.limits.Bytes > 0 && int64(n) > m.limits.Bytes-m.bytes {
		m.bytes = m.limits.Bytes // refuse smaller pieces after a larger one was refused
		err := m.spent()
		m.mu.Unlock()
		return err
	}
	m.bytes += int64(n)
	m.mu.Unlock()
	for n > 0 {
		part := min(n, piece)
		if err := l.WaitN(ctx, part); err != nil {
			return err
		}
		n -= part
	}
	return nil
}

// allowed counts n bytes of datagrams in one direction, if the rate has room for them now.
func (m *meter) allowed(l *rate.Limiter, n int) error {
	if !l.AllowN(time.Now(), min(n, piece)) {
		return errTooFast
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.limits.Bytes > 0 && int64(n) > m.limits.Bytes-m.bytes {
		return m.spent()
	}
	m.bytes += int64(n)
	return nil
}

// A bucket is a token bucket. Its zero value gives no token.
type bucket struct {
	rate, room float64

	mu     sync.Mutex
	tokens float64   // guarded by mu; at the time last
	last   time.Time // guarded by mu
}

// take takes a token, if there is one.
func (b *bucket) take(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last.IsZero() {
		b.tokens = b.room
	} else {
		b.tokens = min(b.room, b.tokens+now.Sub(b.last).Seconds()*b.rate)
	}
	b.last = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
