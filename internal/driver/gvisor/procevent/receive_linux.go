package procevent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock/internal/audit"
)

// A sentry that was taken over, or a loop in the sandbox, must not fill a disk:
// of each kind this many events come at once, and this many each second.
const (
	burst = 50_000
	rate  = 5_000
)

// maxLost bounds what one packet may say was lost, so that a lie does not make
// the count useless for what follows.
const maxLost = 1 << 24

// Options say what events become.
type Options struct {
	Sandbox string
	Sink    audit.Sink
	Now     func() time.Time
}

// Receive records what comes from the socket until its other end is closed, which
// is no error, or f is, which is [os.ErrClosed]. A sandbox whose sentry still runs
// when Receive returns is no longer watched; the caller ends it.
//
// Events have the host's time. Packets that cannot be read, that come too fast, or
// that the sentry could not send, are told as lost with the next event.
func Receive(f *os.File, o Options) error {
	r := receiver{Options: o, quota: map[audit.Kind]*bucket{}}
	packet := make([]byte, MaxPacket+1) // one that is longer is cut, and seen to be
	for {
		n, err := f.Read(packet)
		if err != nil {
			r.end()
			if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
				return nil
			}
			return fmt.Errorf("receive trace points: %w", err)
		}
		r.take(packet[:n])
	}
}

type receiver struct {
	Options
	quota map[audit.Kind]*bucket
	seen  uint32 // what the sentry said was lost so far
	lost  uint64 // not told yet
}

func (r *receiver) take(packet []byte) {
	p, err := Decode(packet)
	if p.Header {
		r.lost += uint64(min(p.Lost-r.seen, maxLost)) // the count wraps, and so does this
		r.seen = p.Lost
	}
	if err != nil {
		r.lost++
		return
	}
	now := r.Now()
	if !r.bucket(p.Event.Kind).take(now) {
		r.lost++
		return
	}
	p.Event.Time = now
	r.record(p.Event)
}

// bucket gives the quota of a kind: a flood of one does not push out another.
func (r *receiver) bucket(k audit.Kind) *bucket {
	b := r.quota[k]
	if b == nil {
		b = &bucket{left: burst}
		r.quota[k] = b
	}
	return b
}

func (r *receiver) record(e audit.Event) {
	e.Sandbox, e.Dropped = r.Sandbox, r.lost
	r.lost = 0
	r.Sink.Record(e)
}

// end tells what was lost after the last event.
func (r *receiver) end() {
	if r.lost > 0 {
		r.record(audit.Event{Kind: audit.Lost, Time: r.Now()})
	}
}

// A bucket holds the events that may still come.
type bucket struct {
	left float64
	last time.Time
}

func (b *bucket) take(now time.Time) bool {
	if !b.last.IsZero() {
		b.left = min(burst, b.left+max(now.Sub(b.last).Seconds(), 0)*rate)
	}
	b.last = now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}
