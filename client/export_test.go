package client

// CloseIdle closes connections that no call is using.
func (d *Driver) CloseIdle() { d.http.CloseIdleConnections() }
