package gateway

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/egress/netstack"
)

// Connections that ended still use the host's ports, and its table of connections, for a minute or two.
func TestAHostKeepsMostOfItsPortsHoweverFastASandboxConnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int64
		g, err := New(Options{
			Policy: paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{{Host: "192.0.2.1"}}},
			Dialer: netstack.Dialer{
				Own: func() ([]netip.Addr, error) { return nil, nil },
				Connect: func(context.Context, string, netip.AddrPort) (net.Conn, error) {
					made.Add(1)
					near, far := net.Pipe()
					_ = far.Close()
					return near, nil
				},
			},
			Event: func(gatewayclient.Event) {},
		})
		if err != nil {
			t.Fatal(err)
		}
		h, err := decide.ParseHost("192.0.2.1")
		if err != nil {
			t.Fatal(err)
		}
		const ports = 28232 // of a host, for one destination
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				for ctx.Err() == nil && made.Load() < ports { // time stands still while anything runs
					if c, err := g.dial(ctx, decide.Flow{Host: h, Port: 443}, ""); err == nil {
						_ = c.Close()
					}
				}
			})
		}
		time.Sleep(time.Minute)
		cancel()
		wg.Wait()
		if n := made.Load(); n > ports/4 {
			t.Errorf("%d connections in a minute, of %d ports", n, ports)
		} else if n < 1000 {
			t.Errorf("only %d connections in a minute", n)
		}
	})
}
