package cli

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
)

// dial gives the driver of a server that can be connected to: a connection that
// breaks later is tried again for a while, but a server that is not there is told at
// once.
func dial(ctx context.Context, s Site) (paddock.Driver, error) {
	network, address := "tcp", ""
	if path, ok := strings.CutPrefix(s.Address, "unix:"); ok {
		network, address = "unix", path
	} else if u, err := url.Parse(s.Address); err == nil {
		address = u.Host
		if u.Port() == "" {
			address = net.JoinHostPort(u.Hostname(), u.Scheme) // ports have names, too
		}
	}
	c, err := (&net.Dialer{Timeout: Patience}).DialContext(ctx, network, address)
	if err != nil {
		return nil, WithHint(fmt.Errorf("%w: %w", err, paddock.Unavailable), "is it there, and is the address right? `paddock serve` starts one; `paddock logout` forgets the one of paddock login")
	}
	c.Close()
	d, err := client.New(client.Options{Address: s.Address, Key: s.Key})
	if err != nil {
		return nil, err
	}
	return d, nil
}
