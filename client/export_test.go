package client

import "time"

// SetQuiet changes how long no output must come before what came is acknowledged.
func (d *Driver) SetQuiet(t time.Duration) { d.quiet = t }

// CloseIdle closes idle connections.
func (d *Driver) CloseIdle() { d.http.CloseIdleConnections() }
