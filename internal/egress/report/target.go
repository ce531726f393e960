package report

import (
	"net"
	"strconv"
)

// Target is what the event is about, in one word.
func (e Event) Target() string {
	host := e.Host
	if host == "" {
		host = e.Address
	}
	if e.Port != 0 {
		host = net.JoinHostPort(host, strconv.Itoa(int(e.Port)))
	}
	if e.Method != "" {
		return e.Method + " " + host + e.Path
	}
	return host
}
