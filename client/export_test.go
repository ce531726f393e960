package client

import "time"

// SetQuiet changes how long no output must come before what came is acknowledged.
func (d *Driver) SetQuiet(t time.Duration) { d.quiet = t }

// PatienceFor returns the same for a number of bytes, if the last acknowledgement was made since ago.
func PatienceFor(rest int64, since time.Duration) time.Duration {
	return patienceFor(rest, since, quietTime)
}

// Bounds of acknowledgements of output that ends for a moment.
const (
	QuietTime   = quietTime
	Trickle     = trickle
	TrickleTime = trickleTime
)

// CloseIdle closes idle connections.
func (d *Driver) CloseIdle() { d.http.CloseIdleConnections() }
