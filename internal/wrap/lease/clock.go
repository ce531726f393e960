package lease

import "time"

// leap is how far the wall clock may drift from the monotonic one before that
// is a jump.
const leap = 2 * time.Second

// graces is for how many graces after a start a clock is waited for that is set
// again and again.
const graces = 10

// A clock is both clocks. What it gives as now has a monotonic reading, which
// alone is compared.
type clock struct {
	wall   func() time.Time // what a person's clock says
	base   time.Time        // some moment, with a monotonic reading
	offset time.Duration    // of the wall clock against the monotonic one, when it was last looked at
}

func newClock(wall func() time.Time) *clock {
	if wall == nil {
		wall = time.Now
	}
	c := &clock{wall: wall, base: time.Now()}
	c.offset = c.drift()
	return c
}

// now is by the wall clock alone.
func (c *clock) now() time.Time { return c.wall().Round(0).UTC() }

func (c *clock) drift() time.Duration { return c.now().Sub(c.base.Round(0).Add(time.Since(c.base))) }

// jumped tells whether the wall clock did, since it was last asked.
func (c *clock) jumped() bool {
	d := c.drift()
	if diff := d - c.offset; -leap < diff && diff < leap {
		return false
	}
	c.offset = d
	return true
}

// left is how long a moment of a record is away. A wall clock that stands before
// the moment when it was written is not believed.
func (c *clock) left(r Record, at time.Time) time.Duration {
	now := c.now()
	if now.Before(r.Written) {
		now = r.Written
	}
	return at.Sub(now)
}
