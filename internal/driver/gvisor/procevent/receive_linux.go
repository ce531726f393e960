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

// Bounds of the events of each kind: at once, and per second. Neither a compromised sentry
// nor a loop in the sandbox may fill a disk.
const (
	burst = 50_000
	rate  = 5_000
)

// maxLost bounds the number of lost packets that one packet may report, so that a false
// number does not make the count useless.
const maxLost = 1 << 24

// Options say where events go.
type Options struct {
	Sandbox string
	Sink    audit.Sink
	Now     func() time.Time
}

// Receive records events from the socket until the other end is closed, which is not an
// error, or until f is closed, which is [os.ErrClosed]. If the sentry still runs when
// Receive returns, the sandbox is no longer observed, and the caller must end it.
//
// Events have the host's time. Packets that are invalid, that exceed the rate, or that the
// sentry could not send are counted as lost in the next event.
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

// bucket returns the quota of a kind. Each kind has its own, so that a flood of one does
// not displace another.
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

// end reports packets that were lost after the last event.
func (r *receiver) end() {
	if r.lost > 0 {
		r.record(audit.Event{Kind: audit.Lost, Time: r.Now()})
	}
}

// A bucket limits the rate of events.
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
