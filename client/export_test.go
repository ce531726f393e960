package client

// CloseIdle closes idle connections.
func (d *Driver) CloseIdle() { d.http.CloseIdleConnections() }
