package allowance

import (
	"math"
	"math/bits"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A Use is what a sandbox used.
type Use struct {
	CPU     time.Duration `json:"cpu"`
	Network int64         `json:"network"` // bytes in both directions
	Memory  int64         `json:"memory"`  // bytes times seconds
}

// A Meter adds up what a sandbox uses, look by look. Its exported fields are what is to be stored, so that the next
// process goes on from there. The zero Meter has seen nothing: its first look counts all that the sandbox has used.
type Meter struct {
	Use Use `json:"use"`

	// The counters of the sandbox at the last look.
	CPU     time.Duration `json:"cpu"`
	Network int64         `json:"network"`

	memory int64     // at the last look
	at     time.Time // of it, monotonic; zero if this process has not looked yet
}

// most is more memory than any machine has. A larger figure of a tier is ignored.
const most = 1 << 50

// Look adds what was used since the last look. What the status does not have adds nothing.
func (m *Meter) Look(st *paddock.Status, now time.Time) {
	if st.Usage.CPU >= 0 {
		m.Use.CPU = time.Duration(plus(int64(m.Use.CPU), since(int64(m.CPU), int64(st.Usage.CPU))))
		m.CPU = st.Usage.CPU
	}
	if st.Traffic != nil {
		n := st.Traffic.Plus(paddock.Traffic{In: st.Traffic.Out}).In
		m.Use.Network = plus(m.Use.Network, since(m.Network, n))
		m.Network = n
	}
	if memory := min(st.Usage.Memory, most); memory >= 0 {
		if took := now.Sub(m.at); !m.at.IsZero() && took > 0 {
			m.Use.Memory = plus(m.Use.Memory, byteSeconds(m.memory+(memory-m.memory)/2, took))
		}
		m.memory, m.at = memory, now
	}
}

// Still says that the sandbox uses nothing until the next look, because it is paused.
func (m *Meter) Still() { m.at = time.Time{} }

// since returns what a counter has grown by. One that is lower than before has begun again.
func since(before, now int64) int64 {
	if now < before {
		return now
	}
	return now - before
}

// plus adds two numbers that are not negative. A sum that is too large is the largest number.
func plus(a, b int64) int64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxInt64
}

// byteSeconds multiplies bytes with a time.
func byteSeconds(n int64, d time.Duration) int64 {
	hi, lo := bits.Mul64(uint64(max(n, 0)), uint64(d))
	if hi >= uint64(time.Second) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(time.Second))
	return int64(min(q, math.MaxInt64))
}
