package lifetime

import "time"

// leap is the drift of the wall clock against the monotonic one above which it has jumped.
const leap = 2 * time.Second

// graces is how many grace periods after the start a clock may delay deadlines that is set
// again and again.
const graces = 10

// A clock combines the wall clock and the monotonic clock. Comparisons use only the
// monotonic reading.
type clock struct {
	wall   func() time.Time // the wall clock
	base   time.Time        // a time with a monotonic reading
	offset time.Duration    // wall clock minus monotonic clock at the last check
}

func newClock(wall func() time.Time) *clock {
	if wall == nil {
		wall = time.Now
	}
	c := &clock{wall: wall, base: time.Now()}
	c.offset = c.drift()
	return c
}

// now returns the time by the wall clock, without the monotonic clock.
func (c *clock) now() time.Time { return c.wall().Round(0).UTC() }

func (c *clock) drift() time.Duration { return c.now().Sub(c.base.Round(0).Add(time.Since(c.base))) }

// jumped reports whether the wall clock has jumped since the last call.
func (c *clock) jumped() bool {
	d := c.drift()
	if diff := d - c.offset; -leap < diff && diff < leap {
		return false
	}
	c.offset = d
	return true
}

// left returns the time until at, a time of a record. A wall clock before the last write of
// the record is wrong, and the time of that write is used instead.
func (c *clock) left(r Record, at time.Time) time.Duration {
	now := c.now()
	if now.Before(r.Written) {
		now = r.Written
	}
	return at.Sub(now)
}
