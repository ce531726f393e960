//go:build !linux

package gate

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/paddock-sandbox/paddock"
)

// A Gate is a gateway process, which there is on Linux alone.
type Gate struct{}

func unsupported() error {
	return fmt.Errorf("a gateway needs Linux: %w", paddock.Unsupported)
}

// Start is Unsupported here.
func Start(context.Context, *os.File, Config, Owner) (*Gate, error) { return nil, unsupported() }

// Ready is Unsupported here, as all that follows.
func (g *Gate) Ready(context.Context) (Ready, error) { return Ready{}, unsupported() }

// Link hands over a link.
func (g *Gate) Link(*os.File) error { return unsupported() }

// Dial connects by the rules.
func (g *Gate) Dial(context.Context, string, uint16) (net.Conn, error) { return nil, unsupported() }

// Channel gives a file for another process.
func (g *Gate) Channel() (*os.File, error) { return nil, unsupported() }

// Update puts other rules in place.
func (g *Gate) Update(context.Context, paddock.NetworkPolicy) error { return unsupported() }

// Names lists names that have addresses.
func (g *Gate) Names(context.Context) ([]string, error) { return nil, unsupported() }

// Traffic is nothing.
func (g *Gate) Traffic() paddock.Traffic { return paddock.Traffic{} }

// Done is never closed.
func (g *Gate) Done() <-chan struct{} { return nil }

// PID is no process.
func (g *Gate) PID() int { return 0 }

// Close ends the gateway.
func (g *Gate) Close() error { return nil }

// A Dialer dials through a file that Gate.Channel gave.
type Dialer struct{}

// NewDialer is Unsupported here.
func NewDialer(*os.File) (*Dialer, error) { return nil, unsupported() }

// Dial connects by the rules.
func (d *Dialer) Dial(context.Context, string, uint16) (net.Conn, error) { return nil, unsupported() }

// Close ends the channel.
func (d *Dialer) Close() error { return nil }
