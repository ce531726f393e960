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

// Bounds of the events of each kind: at once, and per second. A loop in the sandbox may not fill a
// disk. A genuine sentry keeps to them by itself: see package emitter.
const (
	burst = 50_000
	rate  = 5_000
)

// Packets that no genuine sentry sends are dropped. If there are more than so many at once and per
// second, each makes the sentry wait, because a compromised one could use up a processor of the host's,
// outside of the limits of its sandbox. A few of a genuine sentry are dropped, too: the two count the
// rate each by its own clock.
const (
	spareBurst = 10_000
	spareRate  = 500
	pause      = time.Millisecond
)

// maxLost bounds the number of lost packets that one packet may report, so that a false
// number does not make the count useless.
const maxLost = 1 << 24

// Options say where events go.
type Options struct {
	Sandbox string
	Sink    audit.Sink
	Now     func() time.Time
	Sleep   func(time.Duration) // nil waits
}

// Receive records events from the socket until the other end is closed, which is not an
// error, or until f is closed, which is [os.ErrClosed]. If the sentry still runs when
// Receive returns, the sandbox is no longer observed, and the caller must end it.
//
// A sentry that sends more than a genuine one is slowed down, because the socket fills up.
//
// Events have the host's time. Packets that are invalid, that exceed the rate, or that the
// sentry could not send are counted as lost in the next event.
func Receive(f *os.File, o Options) error {
	r := receiver{Options: o, quota: map[audit.Kind]*Bucket{}}
	if r.Sleep == nil {
		r.Sleep = func(d time.Duration) { <-time.After(d) }
	}
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
	quota map[audit.Kind]*Bucket
	spare Bucket // packets that may be dropped without a pause
	seen  uint32 // packets that the sentry has reported as lost
	lost  uint64 // lost packets not yet reported in an event
}

func (r *receiver) take(packet []byte) {
	p, err := Decode(packet)
	if p.Header {
		r.lost += uint64(min(p.Lost-r.seen, maxLost)) // both counts wrap around
		r.seen = p.Lost
	}
	if err != nil {
		r.drop()
		return
	}
	now := r.Now()
	if !r.bucket(p.Event.Kind).Take(now) {
		r.drop()
		return
	}
	p.Event.Time = now
	r.record(p.Event)
}

// drop counts a packet that is not recorded.
func (r *receiver) drop() {
	r.lost++
	if !r.spare.take(r.Now(), spareBurst, spareRate) {
		r.Sleep(pause)
	}
}

// bucket returns the quota of a kind. Each kind has its own, so that a flood of one does
// not displace another.
func (r *receiver) bucket(k audit.Kind) *Bucket {
	b := r.quota[k]
	if b == nil {
		b = &Bucket{}
		r.quota[k] = b
	}
	return b
}

func (r *receiver) record(e audit.Event) {
	e.Sandbox, e.Dropped = r.Sandbox, r.lost
	r.lost = 0
	r.Sink.Record(e)
}

// end reports packets that were lost after the last event.
func (r *receiver) end() {
	if r.lost > 0 {
		r.record(audit.Event{Kind: audit.Lost, Time: r.Now()})
	}
}

// A Bucket limits the rate of events of a kind. The zero value has all of its room.
type Bucket struct {
	used float64
	last time.Time
}

// Take reports whether there is room for one more event, and takes it.
func (b *Bucket) Take(now time.Time) bool { return b.take(now, burst, rate) }

func (b *Bucket) take(now time.Time, most, perSecond float64) bool {
	if !b.last.IsZero() {
		b.used = max(0, b.used-max(now.Sub(b.last).Seconds(), 0)*perSecond)
	}
	b.last = now
	if b.used+1 > most {
		return false
	}
	b.used++
	return true
}
