package lifetime

import "time"

// A fault tells whose it is that a pause failed.
type fault uint8

const (
	ofSandbox fault = iota // code inside can bring it about
	ofHost                 // nothing inside has a part in it, as the driver says
	ofDriver               // it opens no sandbox, and so can remove none
)

const (
	// stubborn is how long a sandbox may let the pause at the end of its time fail before it is removed. Code inside can
	// make that fail, and goes on for as long.
	stubborn = time.Hour

	// hindered is how long the host itself may let it fail, for example by a full disk. It is longer, because files of
	// people that did nothing are lost then. But it has an end: the sandboxes that go on may be what keeps the disk full.
	hindered = 24 * time.Hour
)

// An unpaused is a pause at the end of a sandbox's time that fails, and for how long it has by whose fault. While it
// fails by one of them, the time of the others stands still. The zero value has not failed.
type unpaused struct {
	at     time.Time // of the last failure
	by     fault
	lasted [ofDriver + 1]time.Duration // until then
}

// failed notes a failure.
func (u *unpaused) failed(by fault) {
	now := time.Now()
	if !u.at.IsZero() {
		u.lasted[u.by] += now.Sub(u.at)
	}
	u.at, u.by = now, by
}

// over returns when it will have failed for too long, or zero for never.
func (u *unpaused) over() time.Time {
	switch {
	case u.at.IsZero() || u.by == ofDriver:
		return time.Time{}
	case u.by == ofHost:
		return u.at.Add(hindered - u.lasted[ofHost])
	}
	return u.at.Add(stubborn - u.lasted[ofSandbox])
}
